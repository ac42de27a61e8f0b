"""``build(draw=MergeReduce())``: one read, one tree, the same bits everywhere."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from daskcoreset import MergeReduce, build
from daskcoreset.errors import CoresetWarning, InvalidInputError
from daskcoreset.sensitivities import StrongKMeans, Uniform

N = 3000


def data(n: int = N) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = np.sort(rng.normal(scale=5.0, size=(n, 1)), axis=0) + rng.normal(size=(n, 4))
    return X, rng.integers(0, 3, n), rng.integers(0, 3, n) * rng.lognormal(size=n)


def test_build__a_reducer_needs_the_tree_and_few_rows_warn() -> None:
    from daskcoreset.constructions.tree.reducer import SensitivityReducer

    X = data(100)[0]
    with pytest.raises(InvalidInputError, match=r"pass draw=MergeReduce"):
        build(X, size=9, method=SensitivityReducer(Uniform()))
    with pytest.warns(CoresetWarning, match="is below n_clusters=12"):
        build(X, size=9, method=StrongKMeans(12), draw=MergeReduce())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build(X, size=12, method=StrongKMeans(12), draw=MergeReduce())
