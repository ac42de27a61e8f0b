"""Coresets of data larger than memory: small weighted subsets that represent all rows.

Two calls do most of the work::

    import daskcoreset

    coreset = daskcoreset.build(X, size=2000, n_clusters=10)  # points, weights, indices
    model = daskcoreset.estimators.CoresetKMeans(10).fit(X)  # builds a coreset and solves on it

X is an array, data frame, path or URL, in memory, on disk or on a cluster. Fit any solver that
accepts ``sample_weight`` on a coreset::

    KMeans(10).fit(coreset.points, sample_weight=coreset.weights)

Build
    `build` one coreset, `build_many` from shared passes, or `grow` one to a wanted error.
    `plan` predicts the cost of a build. `compare` tries methods and sizes.
Options
    `open_rows` (columns, credentials, dimensions), `Draw`, `MergeReduce`, `time_limit`.
Results
    `Coreset` (``to_zarr``, ``from_zarr``, ``merge``, ``compress``, ``audit``, ``plot``),
    `Portfolio`, `Plan`, `Rows`, `WeightedPoints`.
Streams and trees
    `CoresetStream`, `CoresetTree`.
Methods, for ``build(X, method=...)``
    `Uniform`, `Lightweight`, `StrongKMeans`, `LightweightBregman`, `StrongBregman`, `Mixture`,
    `SVM`, `Logistic`, `LeastSquares`, `Coverage`.
Models, with the interface of scikit-learn
    `estimators`: CoresetKMeans, CoresetBregman, CoresetGaussianMixture, CoresetSVC,
    CoresetLogisticRegression, CoresetRidge, CoresetElasticNet, CoresetEstimator,
    CoresetKernelClassifier, ODMClassifier, MaxMarginClassifier, OutlierMaxMarginClassifier,
    ActiveMaxMarginClassifier, StructuredMaxMargin.
Your own methods
    `Sensitivity`, `Reducer`, `Objective`, `objectives`, `testing`.
Other modules
    `metrics`, `plotting`, `datasets`, `errors`. ``import daskcoreset.xarray`` adds the accessor
    ``.coreset`` to xarray objects.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from daskcoreset import (
        datasets as datasets,
        errors as errors,
        estimators as estimators,
        metrics as metrics,
        objectives as objectives,
        plotting as plotting,
        testing as testing,
    )
    from daskcoreset._build import (
        build as build,
        build_many as build_many,
        grow as grow,
        plan as plan,
    )
    from daskcoreset.constructions.coverage.cover import Coverage as Coverage
    from daskcoreset.constructions.draws import Draw as Draw, MergeReduce as MergeReduce
    from daskcoreset.constructions.tree.reducer import Reducer as Reducer
    from daskcoreset.constructions.tree.store import CoresetTree as CoresetTree
    from daskcoreset.constructions.tree.stream import CoresetStream as CoresetStream
    from daskcoreset.core.coreset import Coreset as Coreset
    from daskcoreset.core.deadline import time_limit as time_limit
    from daskcoreset.core.points import WeightedPoints as WeightedPoints
    from daskcoreset.core.portfolio import Portfolio as Portfolio
    from daskcoreset.execution.plan import Plan as Plan
    from daskcoreset.inputs.options import Rows as Rows, open_rows as open_rows
    from daskcoreset.metrics.compare import compare as compare
    from daskcoreset.objectives import Objective as Objective
    from daskcoreset.sensitivities import (
        SVM as SVM,
        LeastSquares as LeastSquares,
        Lightweight as Lightweight,
        LightweightBregman as LightweightBregman,
        Logistic as Logistic,
        Mixture as Mixture,
        Sensitivity as Sensitivity,
        StrongBregman as StrongBregman,
        StrongKMeans as StrongKMeans,
        Uniform as Uniform,
    )

__version__ = "0.1.0"

# The module of each public name. It is imported at first use, so that importing the package loads
# neither NumPy nor Dask. The value of a module is its own name. There is no `__all__`: with it,
# `help` of the package prints the bodies of all classes.
_HOMES = {
    "Coreset": "core.coreset",
    "CoresetStream": "constructions.tree.stream",
    "CoresetTree": "constructions.tree.store",
    "Coverage": "constructions.coverage.cover",
    "Draw": "constructions.draws",
    "LeastSquares": "sensitivities",
    "Lightweight": "sensitivities",
    "LightweightBregman": "sensitivities",
    "Logistic": "sensitivities",
    "MergeReduce": "constructions.draws",
    "Mixture": "sensitivities",
    "Objective": "objectives",
    "Plan": "execution.plan",
    "Portfolio": "core.portfolio",
    "Reducer": "constructions.tree.reducer",
    "Rows": "inputs.options",
    "SVM": "sensitivities",
    "Sensitivity": "sensitivities",
    "StrongBregman": "sensitivities",
    "StrongKMeans": "sensitivities",
    "Uniform": "sensitivities",
    "WeightedPoints": "core.points",
    "build": "_build",
    "build_many": "_build",
    "compare": "metrics.compare",
    "datasets": "datasets",
    "errors": "errors",
    "estimators": "estimators",
    "grow": "_build",
    "metrics": "metrics",
    "objectives": "objectives",
    "open_rows": "inputs.options",
    "plan": "_build",
    "plotting": "plotting",
    "testing": "testing",
    "time_limit": "core.deadline",
}


def __dir__() -> list[str]:
    return sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        home = importlib.import_module(f"{__name__}.{_HOMES[name]}")
        found = home if _HOMES[name] == name else getattr(home, name)
        globals()[name] = found
        return found
    message = f"module {__name__!r} has no attribute {name!r}"
    for folder in ("estimators", "datasets") if name[:1].isalpha() else ():
        if name in importlib.import_module(f"{__name__}.{folder}").__all__:
            message += f"; write: from daskcoreset.{folder} import {name}"
    raise AttributeError(message)
