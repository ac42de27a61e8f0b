"""Coresets of data larger than memory: small weighted subsets with a guarantee.

Two calls do most of the work::

    coreset = daskcoreset.build(X, size=2000, n_clusters=10)  # a Coreset: points, weights, indices
    model = daskcoreset.estimators.CoresetKMeans(10).fit(X)  # builds one, and solves on it

X is an array, data frame or path, in memory, on disk or on a cluster; any solver with
``sample_weight`` takes the rows of a coreset. ``help(daskcoreset.build)`` says what X may be, and
which constructions there are; the help of every name below, and the guide, say more.

Build and keep
    `build`, `Coreset` (``save``, ``load``, ``merge``, ``audit``, ``plot``, ``explore``,
    ``to_xarray``), `Portfolio`, `DataSummary`, `WeightedPoints`; lazily `Lazy`, `BuildPlan`;
    `time_limit`, `trusted_stores`
Models, as in scikit-learn
    `estimators`: CoresetKMeans, CoresetGaussianMixture, CoresetBregman, CoresetLogisticRegression,
    CoresetSVC, CoresetRidge, CoresetElasticNet, CoresetQuantileRegressor, CoresetEstimator,
    CSVRGClassifier, MaxMarginClassifier, ActiveMaxMarginClassifier and others
Which method, which size, and can it be trusted
    `advise`, `Advice`, `audit`, `Audit`, `sizing`, `metrics`, `plotting`
Constructions, for ``build(X, method=...)``
    `Uniform`, `Lightweight`, `StrongKMeans`, `MixtureCoreset`, `BregmanLightweight`,
    `StrongBregman`, `SVM`, `Logistic`, `LeastSquares`, `QuantileRegression`, `Coverage`,
    `MaxMarginCoreset`, `ActiveMaxMargin`, `OutlierMaxMargin`, `coverage`, `margin`, `divergences`
Streams and stored trees
    `CoresetStream`, `CoresetTree`, `TreeWindow`, `Refresh`, `Drift`
For constructions of one's own
    `Sensitivity`, `Reducer`, `SensitivityReducer`, `objectives`, `testing`
Else
    `datasets`, `errors`; ``import daskcoreset.xarray`` gives xarray objects ``.coreset``
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING

from daskcoreset import metrics, objectives
from daskcoreset.build import build
from daskcoreset.constructions import coverage, margin
from daskcoreset.constructions.coverage.cover import Coverage
from daskcoreset.constructions.margin import ActiveMaxMargin, MaxMarginCoreset, OutlierMaxMargin
from daskcoreset.constructions.tree.drift import Drift
from daskcoreset.constructions.tree.following import Refresh
from daskcoreset.constructions.tree.reducer import Reducer, SensitivityReducer
from daskcoreset.constructions.tree.store import CoresetTree
from daskcoreset.constructions.tree.stream import CoresetStream
from daskcoreset.constructions.tree.windows import TreeWindow
from daskcoreset.core import errors
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.data_summary import DataSummary
from daskcoreset.core.deadline import time_limit
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.portfolio import Portfolio
from daskcoreset.core.trust import trusted_stores
from daskcoreset.execution.lazy import Lazy
from daskcoreset.execution.plan import BuildPlan
from daskcoreset.metrics import plot as plotting
from daskcoreset.metrics import sizing
from daskcoreset.metrics.advice import Advice, advise
from daskcoreset.metrics.audit import Audit, audit
from daskcoreset.sensitivities import (
    SVM,
    BregmanLightweight,
    LeastSquares,
    Lightweight,
    Logistic,
    MixtureCoreset,
    QuantileRegression,
    Sensitivity,
    StrongBregman,
    StrongKMeans,
    Uniform,
)
from daskcoreset.solvers import divergences

if TYPE_CHECKING:
    from daskcoreset import datasets, estimators

__all__ = [
    "SVM",
    "ActiveMaxMargin",
    "Advice",
    "Audit",
    "BregmanLightweight",
    "BuildPlan",
    "Coreset",
    "CoresetStream",
    "CoresetTree",
    "Coverage",
    "DataSummary",
    "Drift",
    "Lazy",
    "LeastSquares",
    "Lightweight",
    "Logistic",
    "MaxMarginCoreset",
    "MixtureCoreset",
    "OutlierMaxMargin",
    "Portfolio",
    "QuantileRegression",
    "Reducer",
    "Refresh",
    "Sensitivity",
    "SensitivityReducer",
    "StrongBregman",
    "StrongKMeans",
    "TreeWindow",
    "Uniform",
    "WeightedPoints",
    "advise",
    "audit",
    "build",
    "coverage",
    "datasets",
    "divergences",
    "errors",
    "estimators",
    "margin",
    "metrics",
    "objectives",
    "plotting",
    "sizing",
    "time_limit",
    "trusted_stores",
]

# Without `testing`, which needs pytest. The list itself is for type checkers; at run time it comes
# from `__getattr__`.
_PUBLIC = __all__
del __all__

__version__ = "0.1.0"

# Modules that users import by these names, and that lie in folders.
for _name, _module in {"errors": errors, "plotting": plotting, "sizing": sizing}.items():
    sys.modules[f"{__name__}.{_name}"] = _module

# Those that are folders hand on their names only: `daskcoreset.coverage.cover` would import the
# file a second time, with classes that nothing else knows.
for _name, _module in {"coverage": coverage, "divergences": divergences, "margin": margin}.items():
    _public = ModuleType(f"{__name__}.{_name}", _module.__doc__)
    _public.__dict__.update(
        {name: getattr(_module, name) for name in (*_module.__all__, "__all__")}
    )
    globals()[_name] = sys.modules[_public.__name__] = _public


def __dir__() -> list[str]:
    return sorted(_PUBLIC)


def __getattr__(name: str) -> ModuleType:
    # `help` prints the whole bodies of all that is in `__all__`, some 6,000 lines, where a name is
    # what is looked for. For all others, such as `import *`, it is there.
    if name == "__all__" and sys._getframe(1).f_globals.get("__name__") != "pydoc":  # noqa: SLF001 - who asks is not said otherwise
        return list(_PUBLIC)  # type: ignore[return-value] # the only name that is no module
    # They import dask.array and scikit-learn, which take longer than everything else together.
    if name in ("datasets", "estimators", "testing"):
        return importlib.import_module(f"daskcoreset.{name}")
    msg = f"module {__name__!r} has no attribute {name!r}"
    for folder in ("estimators", "datasets") if name[:1].isalpha() else ():
        if name in importlib.import_module(f"daskcoreset.{folder}").__all__:
            msg += f": from daskcoreset.{folder} import {name}"
    raise AttributeError(msg)
