"""The shape of a tree over its leaves, and covers of windows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from daskcoreset.constructions.tree.shape import (
    cover,
    finer,
    level_of,
    shape_of,
)


@given(
    n=st.integers(1, 80),
    offset=st.integers(0, 200),
    bounds=st.tuples(st.integers(0, 80), st.integers(0, 80)),
)
def test_shape__is_a_binary_tree_whose_covers_are_exact_and_small(
    n: int, offset: int, bounds: tuple[int, int]
) -> None:
    names = [f"leaf-{offset + i}" for i in range(n)]
    top = shape_of([*map(level_of, names)], names)
    parts = list(top)
    assert [part.name for part in parts[::2]] == names
    assert not any(part.below for part in parts[::2])
    assert all(part.below for part in parts[1::2])
    for part in parts:
        assert [below.name for below in part if not below.below] == [
            name for name in names if name in {below.name for below in part}
        ]
        assert len(list(part)) == 2 * part.n_leaves - 1
    assert {part.name for part in top.new(())} == {part.name for part in parts[1::2]}
    start, stop = sorted(bounds)
    wanted = [start <= i < stop for i in range(n)]
    covering = cover(top, wanted)
    assert [i for part, at in covering for i in range(at, at + part.n_leaves)] == [
        i for i in range(n) if wanted[i]
    ]
    assert len(covering) <= 2 * top.depth + 1


@pytest.mark.parametrize("n_leaves", [17, 100])
def test_finer__gives_parts_of_about_as_many_leaves(n_leaves: int) -> None:
    rng = np.random.default_rng(n_leaves)
    for _ in range(10):
        keys = [f"{i}-{rng.integers(10**9)}" for i in range(n_leaves)]
        top = shape_of([*map(level_of, keys)], keys)
        parts = finer([(top, 0)])
        sizes = [part.n_leaves for part, _ in parts]
        assert [start for _, start in parts] == [0, *np.cumsum(sizes)[:-1]]
        shares = np.array(sizes) / n_leaves
        assert len(parts) == 16
        assert np.square(shares).sum() < 0.12  # of the variance of the last draw is added
        few = cover(top, [i < n_leaves // 2 for i in range(n_leaves)])
        assert min(16, n_leaves // 2) <= len(finer(few)) <= max(16, len(few))
