"""Covers of a diameter and of a number of points: the promise by brute force."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, strategies as st

from daskcoreset.constructions.coverage.reads import cover, nearest
from daskcoreset.core.typing import AnyArray
from daskcoreset.errors import InvalidInputError
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.testing import cut_rows
from tests.acceptance.tools.strategies import chunks_of, dask_arrays, matrices
from tests.tools.covers import check, distances, gonzalez, near_a_surface

WAYS: list[dict[str, Any]] = [{"diameter": 0.4}, {"max_points": 9}]


@given(
    data=dask_arrays(matrices(max_rows=80)),
    share=st.floats(0.02, 1.2),
)
def test_cover__keeps_its_promise_on_any_input(data: tuple[AnyArray, Any], share: float) -> None:
    held, array = data
    extent = float(np.ptp(held.astype(np.float64), axis=0).max())
    assume(np.isfinite(extent) and 0 < extent < 1e100)
    with dask.config.set(scheduler="sync"):
        found = cover(row_blocks(array), share * extent)
    assert found.diameter == share * extent
    # Rows in the dtype in which the library holds them.
    check(found, held.astype(row_blocks(held).schema.dtype))


@given(
    sizes=chunks_of(60),
    seed=st.integers(0, 100),
    diameter=st.floats(0.05, 1.5) | st.none(),
    offset=st.sampled_from([0.0, 1e6]),
)
def test_cover__of_weighted_duplicates_under_an_offset(
    sizes: tuple[int, ...], seed: int, diameter: float | None, *, offset: float
) -> None:
    rng = np.random.default_rng(seed)
    # A quarter is what float32 resolves at 1e6 and more; rows repeat.
    X = (offset + rng.integers(0, 12, size=(60, 2)) / 4).astype(np.float32)
    u = rng.integers(0, 3, size=60).astype(np.float64)
    u[0] = 1.0
    max_points = 20 if diameter is None else None
    found = cover(cut_rows(X, sizes, sample_weight=u), diameter, max_points=max_points)
    assert found.points.dtype == np.float32
    check(found, X, u)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_cover__of_sparse_rows_is_that_of_dense_ones(
    way: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daskcoreset.constructions.coverage.reads._TILE_BYTES", 7 * 8 * 5)
    X = np.round(near_a_surface(300, 5), 1)
    X[X < 0.5] = 0.0
    dense, sparse = (cover(cut_rows(rows, [120, 0, 180]), **way) for rows in (X, sp.csr_array(X)))
    assert isinstance(sparse.points, np.ndarray)
    assert dense.indices.tolist() == sparse.indices.tolist()
    assert dense.weights.tolist() == sparse.weights.tolist()


def test_cover__promises_rows_without_weight_too() -> None:
    X = np.array([[0.0], [100.0], [101.0]])
    found = cover(row_blocks(X, sample_weight=np.array([1.0, 0.0, 0.0])), 4.0)
    assert found.indices.tolist() == [0, 1]
    assert found.weights.tolist() == [1.0, 0.0]
    with pytest.raises(InvalidInputError, match="sample_weight is zero on every row"):
        cover(row_blocks(X, sample_weight=np.zeros(3)), 4.0)


def test_cover__says_that_distances_overflow() -> None:
    X = np.array([[1e200], [-1e200], [0.0]])
    with pytest.raises(InvalidInputError, match="overflow"):
        cover(row_blocks(X), 1.0)
    # Rows without weight may hold any number, but there is no distance from it.
    with pytest.raises(InvalidInputError, match="overflow"):
        cover(row_blocks(X, None, [0.0, 0.0, 1.0]), max_points=1)


def test_cover__of_one_block_takes_the_farthest_rows() -> None:
    X = near_a_surface(400)
    rows, gaps = gonzalez(X, 41)
    found = cover(row_blocks(X), max_points=40)
    assert found.indices.tolist() == sorted(rows[:40])
    np.testing.assert_allclose([found.radius, found.least_diameter], gaps[40])
    assert found.reads == 2


def least_diameter(X: AnyArray, count: int) -> float:
    """Least diameter of a cover by at most two rows, by trying all."""
    gaps = distances(X, X)
    if count == 1:
        return float(2 * gaps.max(axis=1).min())
    pairs = np.minimum(gaps[:, None], gaps[None]).max(axis=2)
    return float(2 * pairs.min())


@given(
    sizes=chunks_of(40),
    seed=st.integers(0, 1000),
    count=st.integers(1, 2),
    scale=st.sampled_from([1e-3, 1.0, 1e4]),
)
def test_cover__of_so_many_points_bounds_the_least_diameter(
    sizes: tuple[int, ...], seed: int, *, count: int, scale: float
) -> None:
    X = np.random.default_rng(seed).standard_cauchy(size=(40, 2)) * scale
    found = cover(cut_rows(X, sizes), max_points=count)
    check(found, X)
    assert len(found) == count
    least = least_diameter(X, count)
    assert found.least_diameter <= least * (1 + 1e-9)
    assert least <= found.diameter * (1 + 1e-9)
    assert found.diameter <= 4.5 * least


@pytest.mark.parametrize("chunks", [100, 7])
def test_cover__of_more_points_than_distinct_rows(chunks: int) -> None:
    X = np.repeat(np.arange(5.0), 20)[:, None] * [1.0, 2.0]
    found = cover(row_blocks(X, chunks=chunks), max_points=50)
    assert found.indices.tolist() == [0, 20, 40, 60, 80]
    assert found.weights.tolist() == [20.0] * 5
    assert (found.diameter, found.radius, found.least_diameter) == (0.0, 0.0, 0.0)


def test_nearest__distances_are_exact_or_infinite() -> None:
    from scipy.spatial import cKDTree

    X = near_a_surface(50)
    rows = np.concatenate([X + 3.0, [np.full(6, 1e200)]])
    labels, squares = nearest(cKDTree(X), rows)
    expected = distances(X + 3.0, X)
    assert labels[:50].tolist() == expected.argmin(axis=1).tolist()
    np.testing.assert_allclose(squares[:50], expected.min(axis=1) ** 2)
    assert np.isinf(squares[50:]).all()
