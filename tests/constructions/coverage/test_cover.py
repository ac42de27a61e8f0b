"""Covers by the online rule: the promise by brute force, on any chunks, weights and dtypes."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st

import daskcoreset
from daskcoreset import Draw, MergeReduce
from daskcoreset.constructions.coverage import Coverage, cover
from daskcoreset.constructions.coverage.cover import CoverReducer
from daskcoreset.core.errors import CoresetWarning, InvalidInputError
from daskcoreset.core.typing import AnyArray
from daskcoreset.inputs.blocks import RowBlocks, row_blocks
from daskcoreset.testing.tools import cut_rows
from tests.acceptance.tools.strategies import chunks_of, dask_arrays, matrices
from tests.pairs import each
from tests.tools.covers import check, distances, near_a_surface

CELLS = ("euclidean", "chebyshev")
STRATEGIES = ("online", "farthest")


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(
    data=dask_arrays(matrices(max_rows=80)),
    share=st.floats(0.02, 1.2),
    cells=st.sampled_from(CELLS),
    split_every=st.sampled_from([2, 16]),
)
def test_cover__keeps_its_promise_on_any_input(
    strategy: Any, data: tuple[AnyArray, Any], share: float, cells: Any, split_every: int
) -> None:
    held, array = data
    points = held.astype(np.float64)
    extent = float(np.ptp(points, axis=0).max())
    assume(np.isfinite(extent) and 0 < extent < 1e100)
    with dask.config.set(scheduler="sync"):
        found = cover(
            row_blocks(array), share * extent, cells=cells, strategy=strategy,
            split_every=split_every,
        )  # fmt: skip
    assert found.diameter == share * extent
    check(found, points_as_read(held))


def points_as_read(held: AnyArray) -> AnyArray:
    """Rows in the dtype in which the library holds them."""
    return held.astype(row_blocks(held).schema.dtype)


@given(
    sizes=chunks_of(60),
    seed=st.integers(0, 100),
    diameter=st.floats(0.05, 1.5),
    cells=st.sampled_from(CELLS),
    strategy=st.sampled_from(STRATEGIES),
    offset=st.sampled_from([0.0, 1e6]),
)
def test_cover__of_weighted_duplicates_under_an_offset(
    sizes: tuple[int, ...],
    seed: int,
    diameter: float,
    *,
    cells: Any,
    strategy: Any,
    offset: float,
) -> None:
    rng = np.random.default_rng(seed)
    # A quarter is what float32 resolves at 1e6 and more; rows repeat.
    X = (offset + rng.integers(0, 12, size=(60, 2)) / 4).astype(np.float32)
    u = rng.integers(0, 3, size=60).astype(np.float64)
    u[0] = 1.0
    found = cover(cut_rows(X, sizes, sample_weight=u), diameter, cells=cells, strategy=strategy)
    assert found.points.dtype == np.float32
    check(found, X, u)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_cover__of_sparse_rows_is_that_of_dense_ones(
    strategy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daskcoreset.constructions.coverage.metric._TILE_BYTES", 7 * 8 * 5)
    X = np.round(near_a_surface(300, 5), 1)
    X[X < 0.5] = 0.0
    for options in ({"diameter": 0.4}, {"max_points": 9}):
        dense = cover(row_blocks(X, chunks=100), strategy=strategy, **options)
        sparse = cover(row_blocks(sp.csr_array(X), chunks=100), strategy=strategy, **options)
        assert isinstance(sparse.points, np.ndarray)
        assert dense.indices.tolist() == sparse.indices.tolist()
        assert dense.weights.tolist() == sparse.weights.tolist()


def test_cover__keeps_labels_and_counts_dropped_rows() -> None:
    X = near_a_surface(200)
    y = np.arange(200)
    X[[3, 150]] = np.nan
    blocks = row_blocks(X, y, chunks=60, on_invalid="drop")
    found = cover(blocks, 0.4)
    assert found.labels is not None
    assert found.labels.tolist() == found.indices.tolist()
    assert found.n_rows == 198
    assert sum(found.sizes.values()) == 200
    np.testing.assert_array_equal(found.points, X[found.indices])
    with pytest.raises(InvalidInputError, match="row 3"):
        cover(row_blocks(X, chunks=60), 0.4)


def test_cover__promises_rows_without_weight_too() -> None:
    X = np.array([[0.0], [100.0], [101.0]])
    found = cover(row_blocks(X, sample_weight=np.array([1.0, 0.0, 0.0])), 4.0)
    assert found.indices.tolist() == [0, 1]
    assert found.weights.tolist() == [1.0, 0.0]
    with pytest.raises(InvalidInputError, match="sample_weight is zero on every row"):
        cover(row_blocks(X, sample_weight=np.zeros(3)), 4.0)


# --- bad input


def few() -> RowBlocks:
    return row_blocks(near_a_surface(500), chunks=200)


@each(max_points=[10, 60, 75], strategy=STRATEGIES)
def test_cover__that_needs_too_many_says_what_to_try(strategy: Any, max_points: int) -> None:
    needed = len(cover(few(), 0.2, strategy=strategy))
    assert needed > 75
    with pytest.raises(InvalidInputError) as caught:
        cover(few(), 0.2, max_points=max_points, strategy=strategy)
    message = str(caught.value)
    assert f"needs more than {max_points} core points: {max_points} were found" in message
    wider = float(message.split("at about ")[1].split(" ", 1)[0])
    assert len(cover(few(), wider, strategy=strategy)) < needed
    assert len(cover(few(), 0.2, max_points=2 * needed, strategy=strategy)) == needed


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_cover__says_that_distances_overflow(strategy: Any) -> None:
    X = np.array([[1e200], [-1e200], [0.0]])
    with pytest.raises(InvalidInputError, match="of values so large squared distances overflow"):
        cover(row_blocks(X), 1.0, strategy=strategy)
    # Rows without weight may hold any number, but there is no distance from it.
    rows = row_blocks(X, None, [0.0, 0.0, 1.0])
    with pytest.raises(InvalidInputError, match="overflow"):
        cover(rows, max_points=1, strategy=strategy)


# --- as a coreset


def arrays_of(coreset: Any) -> tuple[bytes, bytes]:
    return coreset.indices.tobytes(), coreset.weights.tobytes()


def test_build__by_coverage() -> None:
    X = near_a_surface(300)
    expected = arrays_of(daskcoreset.build(X, method=daskcoreset.Coverage(0.5)))
    assert arrays_of(daskcoreset.build(X, method=Coverage(0.5), random_state=0)) == expected
    assert 4 <= len(daskcoreset.build(X, method="coverage", size=7)) <= 7
    wrong: list[tuple[dict[str, Any], str]] = [
        ({}, "neither diameter nor max_points"),
        ({"size": "auto"}, "is for constructions that draw"),
        ({"diameter": 1.0, "compute": False}, "neither lazy nor planned"),
        ({"diameter": 1.0, "dry_run": True}, "neither lazy nor planned"),
        ({"diameter": 1.0, "draw": Draw(passes=2)}, "passes=2 has no use"),
        ({"diameter": 1.0, "draw": MergeReduce()}, "strategy='tree' has no use"),
        ({"diameter": 1.0, "method": "lightweight", "size": 9}, 'is for method="coverage"'),
    ]
    build: Any = daskcoreset.build
    for options, message in wrong:
        with pytest.raises(InvalidInputError, match=message):
            build(X, **{"method": "coverage", **options})
    with pytest.warns(CoresetWarning, match="nothing was reduced"):  # of 300 rows
        build(X)


def test_cover_reducer__in_the_tree_of_build() -> None:
    X = near_a_surface(600)
    few = daskcoreset.build(
        X, size=500, chunks=100, method=CoverReducer(0.8, 2), draw=daskcoreset.MergeReduce()
    )
    assert few.total_weight == 600.0
    assert len(few) < 400
    assert distances(X, np.asarray(few.points), "euclidean").min(axis=1).max() <= 0.4
