"""Coresets of data larger than memory: small weighted subsets with a guarantee.

`build` turns any array-like, in memory, on disk or on a cluster, into a `Coreset`, whose
points and weights any solver with ``sample_weight`` takes.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from daskcoreset.build import build
from daskcoreset.constructions.coverage.cover import Coverage
from daskcoreset.constructions.margin import ActiveMaxMargin, MaxMarginCoreset, OutlierMaxMargin
from daskcoreset.constructions.tree.reducer import Reducer, SensitivityReducer
from daskcoreset.constructions.tree.store import CoresetTree
from daskcoreset.constructions.tree.stream import CoresetStream
from daskcoreset.core import errors
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.points import WeightedPoints
from daskcoreset.execution.lazy import Lazy
from daskcoreset.execution.plan import BuildPlan
from daskcoreset.metrics import costs as metrics
from daskcoreset.metrics import plot as plotting
from daskcoreset.metrics import sizing
from daskcoreset.metrics.audit import Audit, audit
from daskcoreset.sensitivities import (
    SVM,
    BregmanLightweight,
    Lightweight,
    Logistic,
    MixtureCoreset,
    Sensitivity,
    StrongBregman,
    StrongKMeans,
    Uniform,
)

if TYPE_CHECKING:
    from daskcoreset import datasets

__all__ = [
    "SVM",
    "ActiveMaxMargin",
    "Audit",
    "BregmanLightweight",
    "BuildPlan",
    "Coreset",
    "CoresetStream",
    "CoresetTree",
    "Coverage",
    "Lazy",
    "Lightweight",
    "Logistic",
    "MaxMarginCoreset",
    "MixtureCoreset",
    "OutlierMaxMargin",
    "Reducer",
    "Sensitivity",
    "SensitivityReducer",
    "StrongBregman",
    "StrongKMeans",
    "Uniform",
    "WeightedPoints",
    "audit",
    "build",
    "datasets",
    "errors",
    "metrics",
    "plotting",
    "sizing",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> ModuleType:
    # The generators import dask.array, which takes longer than everything else together.
    if name == "datasets":
        return importlib.import_module("daskcoreset.datasets")
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
