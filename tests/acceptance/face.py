"""The library as the acceptance tests call it: the only module here that imports `daskcoreset`.

Tests take every name from this module, in the form that the public face will have. A change of the
public face changes this module, and no assertion.
"""

# mypy: implicit-reexport
# ruff: noqa: F401 - tests import these names from here

from __future__ import annotations

import runpy
import sys
import warnings
from collections.abc import Callable
from functools import partial, reduce
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

import daskcoreset as dc
from daskcoreset import (
    SVM,
    Coreset,
    CoresetStream,
    CoresetTree,
    Coverage,
    Draw,
    LeastSquares,
    Lightweight,
    LightweightBregman,
    Logistic,
    MergeReduce,
    Mixture,
    Portfolio,
    Reducer,
    Rows,
    Sensitivity,
    StrongBregman,
    StrongKMeans,
    Uniform,
    WeightedPoints,
    datasets,
    errors,
    grow,
    metrics,
    objectives,
    open_rows,
    plotting,
    time_limit,
)
from daskcoreset.errors import CoresetError, CoresetWarning, NotSeparableError
from daskcoreset.estimators import ActiveMaxMarginClassifier, StructuredProblem
from daskcoreset.objectives import Objective

T = TypeVar("T")

library: Any = dc
"""Everything that is public, for tests of the arguments of every call."""

divergences = objectives.divergences


def call(method: Callable[..., T], X: Any, *args: Any, **options: Any) -> T:
    """Call a method of an estimator, tree or coreset that takes rows."""
    return method(X, *args, **options)


def source_rows(coreset: Coreset, X: Any = None, positions: Any = None) -> Any:
    """Return rows of the data that rows of a coreset are."""
    return coreset.source_rows(positions, X)


def build(X: Any, y: Any = None, **options: Any) -> Coreset:
    """Build a coreset, of an xarray object without its masked cells."""
    return dc.build(X, y, **_given(X, options))


def plan(X: Any, y: Any = None, **options: Any) -> Any:
    """Return a Dask collection of a coreset."""
    return dc.plan(X, y, **_given(X, options))


def build_many(X: Any, y: Any = None, **options: Any) -> Portfolio:
    """Build a coreset by each method."""
    return dc.build_many(X, y, **_given(X, options))


def moments(X: Any, y: Any = None, **options: Any) -> Any:
    """Return the exact moments of all rows, as a portfolio has them."""
    return build_many(X, y, methods=["uniform"], sizes=50, **options).moments


def forecast(X: Any, y: Any = None, **options: Any) -> Any:
    """Return what a plan says of its reads, bytes and memory."""
    if isinstance(options.get("method"), dict):
        named = {"methods": options.pop("method"), "sizes": options.pop("size")}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a plan says nothing of errors
            return SimpleNamespace(reads=build_many(X, y, **named, **options).provenance["passes"])
    return plan(X, y, **options).forecast


def stream(**options: Any) -> CoresetStream:
    """Return a stream without rows."""
    return CoresetStream(**options)


def create_tree(path: Any, **options: Any) -> CoresetTree:
    """Create a tree without leaves."""
    return CoresetTree.create(path, **options)


def follow(source: Any, path: Any, **options: Any) -> CoresetTree:
    """Create a view of a source, or bring it up to date."""
    return CoresetTree.follow(source, path, **options)


def program(*words: object) -> int:
    """Run the command line in this process, and return its exit code."""
    given = sys.argv
    sys.argv = ["daskcoreset", *map(str, words)]
    try:
        runpy.run_module("daskcoreset", run_name="__main__")
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        sys.argv = given
    return 0


def block(points: Any, weights: Any = None, labels: Any = None) -> Any:
    """Return rows as sensitivities and objectives take them."""
    made: Any = objectives.__dict__["Block"]
    return made(points, np.ones(points.shape[0]) if weights is None else weights, labels)


def ask_labels(
    X: Any, *, known: Any = None, sample_weight: Any = None, classes: Any = None, **options: Any
) -> Any:
    """Start active learning by questions and answers; with C errors are allowed from the start."""
    intercept, soft = options.pop("intercept", True), "C" in options
    options = {"fit_intercept": intercept, "on_inseparable": "raise", **options}
    model = ActiveMaxMarginClassifier(**options)
    return model.start(X, known=known, sample_weight=sample_weight, classes=classes, soft=soft)


def margins(model: Any) -> tuple[float, float]:
    """Return the margin of a fitted model on all data, and that on its core set."""
    return model.margin_, model.core_margin_


def scores(method: Any, *blocks: Any, seed: int = 0) -> list[Any]:
    """Score the rows of blocks by what a construction knows of all of them."""
    return [method.scores(each, known) for known, each, _ in _known(method, blocks, seed)]


def total_scores(method: Any, *blocks: Any, seed: int = 0) -> list[float]:
    """Sum up the scores of each block, from its summary alone."""
    return [
        float(method.total_scores(own, known)) for known, _, own in _known(method, blocks, seed)
    ]


def _known(method: Any, blocks: Any, seed: int) -> Any:
    known: Any = None
    for _ in range(method.n_folds):
        rng = np.random.default_rng(seed)
        found = [method.block_summary(each, known, rng) for each in blocks]
        own = [getattr(each, "summary", each) for each in found]
        known = method.finalize(reduce(method.merge, own), rng)
    return [(known, each, local) for each, local in zip(blocks, own, strict=True)]


estimators: Any = dc.estimators


def _given(X: Any, options: dict[str, Any]) -> dict[str, Any]:
    has_dims = isinstance(X, Rows) and X.options.has_dims
    made = {name: one() if isinstance(one, partial) else one for name, one in options.items()}
    return {"on_invalid": "drop" if has_dims else "raise", **made}
