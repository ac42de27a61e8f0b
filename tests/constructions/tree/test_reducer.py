"""Reducers: constructions without scores, and a reducer of the user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import daskcoreset
from daskcoreset.constructions.tree.reducer import Reducer, SensitivityReducer
from daskcoreset.core.points import WeightedPoints
from daskcoreset.errors import InvalidInputError
from daskcoreset.sensitivities import Uniform


@dataclass(frozen=True)
class Silent(Uniform):
    """A construction that scores nothing."""

    def scores(self, block: Any, summary: float) -> Any:
        del summary
        return np.zeros((1, len(block)))


def test_reduce__no_scores_is_an_error() -> None:
    points = WeightedPoints(np.ones((20, 2)), np.ones(20), np.arange(20))
    with pytest.raises(InvalidInputError, match="gives a score of zero to every row"):
        SensitivityReducer(Silent()).reduce(points, 5, np.random.default_rng(0))


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
