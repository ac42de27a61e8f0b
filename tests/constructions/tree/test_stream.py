"""`CoresetStream`: the sequence of rows decides, whatever brings them and whatever dies."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from copy import copy, deepcopy
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from daskcoreset import CoresetStream
from daskcoreset.constructions.tree.reducer import Reducer
from daskcoreset.constructions.tree.stream import EARLY_LEAVES, is_reduced, lowest_level
from daskcoreset.core.errors import (
    InvalidInputError,
)
from daskcoreset.core.points import WeightedPoints

N = 1500


def data(n: int = N, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, 3)) * rng.lognormal(size=(n, 1))).astype(np.float32)
    y = np.array(["no", "perhaps"])[rng.integers(0, 2, n)]
    return X, y, rng.integers(0, 3, n) * rng.random(n)


def made(**options: Any) -> CoresetStream:
    given_options: dict[str, Any] = {"size": 20, "leaf_size": 90, "random_state": 3, **options}
    return CoresetStream(**given_options)


# --- the sequence of rows decides ----------------------------------------------------------


def test_partial_fit__arrays_as_before_are_checked_as_the_first() -> None:
    X, _, _ = data(400)
    one, other = made(), made()
    for start in range(0, 400, 50):
        one.partial_fit(X[start : start + 50])
        other.partial_fit(X[start : start + 50], sample_weight=np.ones(50))
    assert one.coreset().equals(other.coreset())
    for wrong, match in (
        (X[:, :2], "2 features, and the rows before it have 3"),
        (X.astype(float), "float64, and the rows before it are float32"),
        (X[0], "dimension"),
        (np.where(np.arange(400)[:, np.newaxis] == 7, np.nan, X), "at row 7"),
    ):
        array = wrong.astype(np.float32) if "row 7" in match else wrong
        with pytest.raises(InvalidInputError, match=match):
            one.partial_fit(array)
    assert one.partial_fit(X[:0]).partial_fit(X.astype(">f4")).n_rows == 800
    dropping = made(on_invalid="drop").partial_fit(X)
    dropping.partial_fit(np.where(np.arange(400)[:, np.newaxis] < 5, np.nan, X).astype("f4"))
    assert (dropping.n_rows, dropping.n_dropped) == (800, 5)


class First(Reducer):
    """The first rows, as a view of what it is given."""

    def reduce(self, points: WeightedPoints, size: int, rng: np.random.Generator) -> WeightedPoints:
        del rng
        return points.take(slice(size))


@pytest.mark.parametrize("method", ["uniform", "lightweight", First()])
@pytest.mark.parametrize("sparse", [False, True])
def test_partial_fit__leaves_that_are_left_as_they_are_hold_nothing_of_a_batch(
    method: Any, sparse: bool
) -> None:
    """Of twelve rows no sixteen candidates can be drawn: all of them stay."""
    X, _, w = data(150)
    w += 1.0
    streams = []
    for changes in (False, True):
        stream = CoresetStream(method, 4, leaf_size=12, random_state=0)
        for start in (0, 50, 100):
            part: Any = X[start : start + 50].copy()
            part, weights = sp.csr_array(part) if sparse else part, w[start : start + 50].copy()
            stream.partial_fit(part, sample_weight=weights)
            if changes:
                values = part.data if sparse else part
                values[:] = weights[:] = 77.0
        streams.append(stream)
    assert streams[0].rows().equals(streams[1].rows())


# --- what it promises ----------------------------------------------------------------------


@pytest.mark.parametrize("duplicate", [copy, deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies__share_no_memory_for_further_rows(
    duplicate: Callable[[CoresetStream], CoresetStream],
) -> None:
    """Two threads that feed one each may look for places there at the same time."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    stream = made().partial_fit(X[:20])
    assert stream._state.waiting.room is not None
    other = duplicate(stream)
    assert other._state.waiting.room is None
    assert np.array_equal(other.partial_fit(X[30:]).rows().points, np.delete(X, slice(20, 30), 0))
    assert np.array_equal(stream.partial_fit(X[20:]).rows().points, X)


def test_stream__late_leaves_are_thinned_and_four_then_eight_reduced_together() -> None:
    X, y, w = data(60 * (EARLY_LEAVES + 11))
    w += 1.0
    one = made(size=4, leaf_size=60).partial_fit(X, y, w)
    other = made(size=4, leaf_size=60)
    for start in range(0, len(X), 130):
        batch = slice(start, start + 130)
        other.partial_fit(X[batch], y[batch], w[batch])

    # Of 15 leaves 8 were reduced to 8 rows, by four, and the others thinned to 16 candidates each.
    assert [lowest_level(leaf) for leaf in range(17)] == [0] * 4 + [2] * 4 + [3] * 9
    assert [*filter(is_reduced, range(10))] == [0, 2, 3, 5, 7, 9]
    assert one.levels == (3, 2, 1, 0)
    assert [len(part) for part in one._state.parts] == [8, 64, 32, 16]
    assert one.rows().equals(other.rows())
    assert one.coreset().equals(other.coreset())
    assert len(one.partial_fit(X[:60], y[:60], w[:60])._state.parts) == 1


def test_stream__sparse_and_wide_text() -> None:
    X = sp.random_array((400, 6), density=0.3, rng=np.random.default_rng(0), format="csr")
    y = np.array(["a", "a much longer word"], dtype=object)[np.arange(400) // 395]
    one = made().partial_fit(X, y).coreset()
    two = made().partial_fit(X[:50], y[:50]).partial_fit(X[50:], y[50:]).coreset()
    assert sp.issparse(one.points)
    assert one.equals(two)


# --- bad input: nothing is lost, nothing counted ------------------------------------------


NAN = data(200, 1)[0]
NAN[150, 1] = np.nan


def test_partial_fit__labels_that_come_late_and_narrow_rows() -> None:
    X, y, _ = data()
    with pytest.raises(InvalidInputError, match="y is given, and the rows before have none"):
        made().partial_fit(X).partial_fit(X, y)
    wide = made().partial_fit(X.astype(float)).partial_fit(X)  # float32 fits into float64
    assert wide.coreset().points.dtype == np.float64
