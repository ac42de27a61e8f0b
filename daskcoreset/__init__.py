"""Coresets of data larger than memory: small weighted subsets with a guarantee.

Two calls do most of the work::

    coreset = daskcoreset.build(X, size=2000, n_clusters=10)  # a Coreset: points, weights, indices
    model = daskcoreset.estimators.CoresetKMeans(10).fit(X)  # builds one, and solves on it

X is an array, data frame or path, in memory, on disk or on a cluster; any solver with
``sample_weight`` takes the rows of a coreset. ``help(daskcoreset.build)`` says what X may be, and
which constructions there are; the help of every name below, and the guide, say more.

Build and keep
    `build`, `Coreset` (``to_zarr``, ``from_zarr``, ``merge``, ``audit``, ``plot``,
    ``to_xarray``), `Portfolio`, `WeightedPoints`; lazily `Lazy`, `BuildPlan`;
    `time_limit`
Models, as in scikit-learn
    `estimators`: CoresetKMeans, CoresetGaussianMixture, CoresetBregman, CoresetLogisticRegression,
    CoresetSVC, CoresetRidge, CoresetElasticNet, CoresetEstimator,
    CSVRGClassifier, MaxMarginClassifier, ActiveMaxMarginClassifier and others
Which method, which size, and can it be trusted
    `audit`, `Audit`, `sizing`, `metrics`, `plotting`
Constructions, for ``build(X, method=...)``
    `Uniform`, `Lightweight`, `StrongKMeans`, `Mixture`, `LightweightBregman`,
    `StrongBregman`, `SVM`, `Logistic`, `LeastSquares`, `Coverage`,
    `MaxMarginCoreset`, `ActiveMaxMargin`, `OutlierMaxMargin`, `coverage`, `margin`
Streams and stored trees
    `CoresetStream`, `CoresetTree`, `TreeWindow`, `Refresh`
For constructions of one's own
    `Sensitivity`, `Reducer`, `SensitivityReducer`, `objectives`, `testing`
Else
    `datasets`, `errors`; ``import daskcoreset.xarray`` gives xarray objects ``.coreset``
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from daskcoreset import (
        coverage,
        datasets,
        errors,
        estimators,
        margin,
        metrics,
        objectives,
        plotting,
        sizing,
    )
    from daskcoreset.build import build
    from daskcoreset.constructions.coverage.cover import Coverage
    from daskcoreset.constructions.margin import ActiveMaxMargin, MaxMarginCoreset, OutlierMaxMargin
    from daskcoreset.constructions.tree.following import Refresh
    from daskcoreset.constructions.tree.reducer import Reducer, SensitivityReducer
    from daskcoreset.constructions.tree.store import CoresetTree
    from daskcoreset.constructions.tree.stream import CoresetStream
    from daskcoreset.constructions.tree.windows import TreeWindow
    from daskcoreset.core.coreset import Coreset
    from daskcoreset.core.deadline import time_limit
    from daskcoreset.core.points import WeightedPoints
    from daskcoreset.core.portfolio import Portfolio
    from daskcoreset.execution.lazy import Lazy
    from daskcoreset.execution.plan import BuildPlan
    from daskcoreset.inputs.options import Rows, open_rows
    from daskcoreset.metrics.audit import Audit, audit
    from daskcoreset.sensitivities import (
        SVM,
        LeastSquares,
        Lightweight,
        LightweightBregman,
        Logistic,
        Mixture,
        Sensitivity,
        StrongBregman,
        StrongKMeans,
        Uniform,
    )

__all__ = [
    "SVM",
    "ActiveMaxMargin",
    "Audit",
    "BuildPlan",
    "Coreset",
    "CoresetStream",
    "CoresetTree",
    "Coverage",
    "Lazy",
    "LeastSquares",
    "Lightweight",
    "LightweightBregman",
    "Logistic",
    "MaxMarginCoreset",
    "Mixture",
    "OutlierMaxMargin",
    "Portfolio",
    "Reducer",
    "Refresh",
    "Rows",
    "Sensitivity",
    "SensitivityReducer",
    "StrongBregman",
    "StrongKMeans",
    "TreeWindow",
    "Uniform",
    "WeightedPoints",
    "audit",
    "build",
    "coverage",
    "datasets",
    "errors",
    "estimators",
    "margin",
    "metrics",
    "objectives",
    "open_rows",
    "plotting",
    "sizing",
    "time_limit",
]

# Without `testing`, which needs pytest. The list itself is for type checkers; at run time it comes
# from `__getattr__`.
_PUBLIC = __all__
del __all__

__version__ = "0.1.0"

# Where public names are that are no modules of their own. Each is imported when it is first asked
# for, so that to import the package takes neither NumPy nor Dask.
_HOMES = {
    "build": ("build",),
    "constructions.coverage.cover": ("Coverage",),
    "inputs.options": ("Rows", "open_rows"),
    "constructions.margin": ("ActiveMaxMargin", "MaxMarginCoreset", "OutlierMaxMargin"),
    "constructions.tree.following": ("Refresh",),
    "constructions.tree.reducer": ("Reducer", "SensitivityReducer"),
    "constructions.tree.store": ("CoresetTree",),
    "constructions.tree.stream": ("CoresetStream",),
    "constructions.tree.windows": ("TreeWindow",),
    "core.coreset": ("Coreset",),
    "core.deadline": ("time_limit",),
    "core.points": ("WeightedPoints",),
    "core.portfolio": ("Portfolio",),
    "execution.lazy": ("Lazy",),
    "execution.plan": ("BuildPlan",),
    "metrics.audit": ("Audit", "audit"),
    "sensitivities": (
        "SVM",
        "LightweightBregman",
        "LeastSquares",
        "Lightweight",
        "Logistic",
        "Mixture",
        "Sensitivity",
        "StrongBregman",
        "StrongKMeans",
        "Uniform",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


class _Package(ModuleType):
    def __setattr__(self, name: str, value: Any) -> None:
        # Whoever imports the module `daskcoreset.build` first, the name is that of its function.
        if name == "build" and isinstance(value, ModuleType):
            value = value.build
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    # `help` prints the whole bodies of all that is in `__all__`, some 6,000 lines, where a name is
    # what is looked for. For all others, such as `import *`, it is there.
    if name == "__all__" and sys._getframe(1).f_globals.get("__name__") != "pydoc":  # noqa: SLF001 - who asks is not said otherwise
        return list(_PUBLIC)
    if name in _HOME_OF:
        found = getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
        globals()[name] = found
        return found
    if name in (*_PUBLIC, "testing"):  # not among them, since it needs pytest
        return importlib.import_module(f"{__name__}.{name}")
    msg = f"module {__name__!r} has no attribute {name!r}"
    for folder in ("estimators", "datasets") if name[:1].isalpha() else ():
        if name in importlib.import_module(f"{__name__}.{folder}").__all__:
            msg += f": from daskcoreset.{folder} import {name}"
    raise AttributeError(msg)
