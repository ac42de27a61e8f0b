"""Reducers: few weighted rows of many, without bias, for every construction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import daskcoreset
from daskcoreset.constructions.tree.reducer import Reducer, SensitivityReducer
from daskcoreset.core.points import WeightedPoints
from daskcoreset.errors import InvalidInputError
from daskcoreset.sensitivities import (
    Uniform,
)


def rows(n: int = 400, seed: int = 0) -> WeightedPoints:
    """Clusters and an outlier, weights of which some are zero, and row numbers that repeat."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(size=(n - 60, 3)), rng.normal(15.0, 1.0, size=(60, 3))])
    X[-1] = 60.0
    weights = rng.integers(0, 4, n) * rng.lognormal(size=n)
    weights[-1] = 2.0
    return WeightedPoints(X, weights, np.arange(n) // 2, rng.integers(0, 2, n))


def costs(points: WeightedPoints) -> Any:
    """Four queries: total weight, two k-means costs, a cost of the labels."""
    X, w = np.asarray(points.points), points.weights
    assert points.labels is not None
    near = np.einsum("ij,ij->i", X, X)
    far = np.minimum(near, np.einsum("ij,ij->i", X - 15.0, X - 15.0))
    return np.array([w.sum(), w @ near, w @ far, w @ (points.labels * np.abs(X[:, 0]))])


@dataclass(frozen=True)
class Silent(Uniform):
    """A construction that scores nothing."""

    def scores(self, block: Any, summary: float) -> Any:
        del summary
        return np.zeros((1, len(block)))


def test_reduce__no_scores_is_an_error() -> None:
    with pytest.raises(InvalidInputError, match="gives a score of zero to every row"):
        SensitivityReducer(Silent()).reduce(rows(), 5, np.random.default_rng(0))


@dataclass(frozen=True)
class Last(Reducer):
    """A reducer of one's own: the last rows."""

    def reduce(self, points: WeightedPoints, size: int, rng: np.random.Generator) -> WeightedPoints:
        del rng
        return points.take(slice(-size, None)) if len(points) > size else points


def test_reducer__of_one_s_own_in_all_three_forms(tmp_path: Any) -> None:
    X = np.arange(400.0).reshape(200, 2)
    own = Last()
    built = daskcoreset.build(X, size=5, method=own, chunks=30, draw=daskcoreset.MergeReduce())
    stream = daskcoreset.CoresetStream(own, size=5, leaf_size=40, random_state=0).partial_fit(X)
    tree = daskcoreset.CoresetTree.create(tmp_path / "t", method=own, size=5, random_state=0)
    tree.append(X[:100])
    tree.append(X[100:])
    for coreset in (built, stream.coreset(), tree.coreset()):
        assert coreset.indices.tolist() == [195, 196, 197, 198, 199]
        assert coreset.provenance["method"] == "Last"
    with pytest.raises(InvalidInputError, match=r"method is None, and .* was made with 'Last'"):
        daskcoreset.CoresetTree.open(tmp_path / "t")
    assert daskcoreset.CoresetTree.open(tmp_path / "t", own).coreset().equals(tree.coreset())
    with pytest.raises(InvalidInputError, match="was made with 'Last'"):
        daskcoreset.CoresetTree.open(tmp_path / "t", "uniform")
