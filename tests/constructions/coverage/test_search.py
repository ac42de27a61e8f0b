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
from daskcoreset.testing.tools import cut_rows
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


@each(strategy=STRATEGIES, chunks=[100, 7])
def test_cover__of_more_points_than_distinct_rows(strategy: Any, chunks: int) -> None:
    X = np.repeat(np.arange(5.0), 20)[:, None] * [1.0, 2.0]
    found = cover(row_blocks(X, chunks=chunks), max_points=50, strategy=strategy)
    assert found.indices.tolist() == [0, 20, 40, 60, 80]
    assert found.weights.tolist() == [20.0] * 5
    assert (found.diameter, found.radius, found.least_diameter) == (0.0, 0.0, 0.0)
