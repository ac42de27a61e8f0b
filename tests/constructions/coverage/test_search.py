"""Covers of a given number of points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskcoreset.constructions.coverage import cover
from daskcoreset.core.typing import AnyArray
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.testing.tools import CountingArray, cut_rows
from tests.acceptance.tools.strategies import chunks_of
from tests.pairs import each
from tests.tools.covers import check, distances, gonzalez, near_a_surface

CELLS = ("euclidean", "chebyshev")
STRATEGIES = ("online", "farthest")


def least_diameter(X: AnyArray, count: int, cells: str) -> float:
    """Least diameter of a cover by at most two rows, by trying all."""
    gaps = distances(X, X, cells)
    if count == 1:
        return float(2 * gaps.max(axis=1).min())
    pairs = np.minimum(gaps[:, None], gaps[None]).max(axis=2)
    return float(2 * pairs.min())


@pytest.mark.parametrize("cells", CELLS)
def test_cover__of_one_block_takes_the_farthest_rows(cells: Any) -> None:
    X = near_a_surface(400)
    rows, gaps = gonzalez(X, 41, cells)
    found = cover(row_blocks(X), max_points=40, cells=cells, strategy="farthest")
    assert found.indices.tolist() == sorted(rows[:40])
    np.testing.assert_allclose([found.radius, found.least_diameter], gaps[40])
    assert found.reads == 2
    given_diameter = cover(
        row_blocks(X), 2 * gaps[20] * (1 + 1e-9), cells=cells, strategy="farthest"
    )
    assert given_diameter.indices.tolist() == sorted(rows[:20])


@each(cells=CELLS, n_blocks=[5, 30])
def test_cover__takes_the_farthest_rows_of_many_blocks(cells: Any, n_blocks: int) -> None:
    X = near_a_surface(3000)
    X = X[np.argsort(X[:, 0])]  # blocks unlike one another
    one = row_blocks(X)
    many = row_blocks(CountingArray(X), chunks=-(-len(X) // n_blocks))
    for options in ({"diameter": 0.4}, {"max_points": 60}):
        alone: Any = cover(one, cells=cells, strategy="farthest", **options)
        found: Any = cover(many, cells=cells, strategy="farthest", **options)
        check(found, X)
        assert len(found) <= 1.3 * len(alone) + 2
        assert found.diameter <= 1.3 * alone.diameter
        assert found.reads <= 12


def test_cover__by_the_farthest_rows_reads_what_it_says() -> None:
    rows = CountingArray(near_a_surface(1000))
    found = cover(row_blocks(rows, chunks=100), 0.3, strategy="farthest")
    assert (rows.reads == found.reads).all()


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(
    sizes=chunks_of(40),
    seed=st.integers(0, 1000),
    count=st.integers(1, 2),
    cells=st.sampled_from(CELLS),
    scale=st.sampled_from([1e-3, 1.0, 1e4]),
)
def test_cover__of_so_many_points_bounds_the_least_diameter(
    strategy: Any, sizes: tuple[int, ...], seed: int, *, count: int, cells: Any, scale: float
) -> None:
    X = np.random.default_rng(seed).standard_cauchy(size=(40, 2)) * scale
    found = cover(cut_rows(X, sizes), max_points=count, cells=cells, strategy=strategy)
    check(found, X)
    assert len(found) == count if strategy == "farthest" else 1 <= len(found) <= count
    least = least_diameter(X, count, cells)
    assert found.least_diameter <= least * (1 + 1e-9)
    assert least <= found.diameter * (1 + 1e-9)
    assert found.diameter <= 4.5 * least


@each(chunks=[2000, 90], cells=CELLS, strategy=STRATEGIES)
def test_cover__of_so_many_points_is_near_that_of_gonzalez(
    strategy: Any, cells: Any, chunks: int
) -> None:
    X = near_a_surface(2000)
    for count in (10, 100):
        found = cover(
            row_blocks(X, chunks=chunks), max_points=count, cells=cells, strategy=strategy
        )
        check(found, X)
        assert len(found) == count if strategy == "farthest" else 0.7 * count <= len(found) <= count
        _, gaps = gonzalez(X, count + 1, cells)
        assert found.radius <= 1.3 * gaps[-1]
        assert 1.0 <= found.diameter / found.least_diameter <= 3.5
        assert found.reads <= 20


@each(strategy=STRATEGIES, chunks=[100, 7])
def test_cover__of_more_points_than_distinct_rows(strategy: Any, chunks: int) -> None:
    X = np.repeat(np.arange(5.0), 20)[:, None] * [1.0, 2.0]
    found = cover(row_blocks(X, chunks=chunks), max_points=50, strategy=strategy)
    assert found.indices.tolist() == [0, 20, 40, 60, 80]
    assert found.weights.tolist() == [20.0] * 5
    assert (found.diameter, found.radius, found.least_diameter) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("cells", CELLS)
def test_cover__takes_no_row_before_one_that_its_block_held_back(cells: Any) -> None:
    """As in one block: no core point is nearer to the others than a row left out to all."""
    rng = np.random.default_rng(0)
    X = 1e-3 * rng.random((3200, 2))
    X[:400] = rng.random((400, 2))  # the first block could give all; the others give tiny gaps
    found = cover(row_blocks(X, chunks=400), max_points=150, cells=cells, strategy="farthest")
    gaps = distances(found.points, found.points, cells)
    np.fill_diagonal(gaps, np.inf)
    assert gaps.min() >= found.radius * (1 - 1e-9)
    assert found.least_diameter <= gaps.min() * (1 + 1e-9)
