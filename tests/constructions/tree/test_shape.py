"""The shape of a tree over its leaves, and covers of windows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from daskcoreset.constructions.tree.shape import (
    cover,
    finer,
    shape_by_keys,
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
    top = shape_by_keys(names, names)
    parts = list(top)
    assert [part.name for part in parts if not part.below] == names
    assert len(parts) == 2 * n - 1
    for part in parts:
        if part.below:
            left, right = part.below
            assert (left.start, left.stop, right.stop) == (part.start, right.start, part.stop)
    groups = list(top.groups())
    assert sorted(part.name for group in groups for part in group.own_nodes()) == sorted(
        part.name for part in parts if part.below
    )
    start, stop = sorted(bounds)
    wanted = [start <= i < stop for i in range(n)]
    covering = cover(top, wanted)
    assert [i for part in covering for i in range(part.start, part.stop)] == [
        i for i in range(n) if wanted[i]
    ]
    assert len(covering) <= 2 * top.depth + 1


@pytest.mark.parametrize("n_leaves", [17, 100])
def test_finer__gives_parts_of_about_as_many_leaves(n_leaves: int) -> None:
    rng = np.random.default_rng(n_leaves)
    for _ in range(10):
        keys = [f"{i}-{rng.integers(10**9)}" for i in range(n_leaves)]
        top = shape_by_keys(keys, keys)
        assert [part.name for part in top if not part.below] == keys
        parts = finer([top])
        assert [part.start for part in parts[1:]] == [part.stop for part in parts[:-1]]
        shares = np.array([part.stop - part.start for part in parts]) / n_leaves
        assert len(parts) == 16
        assert np.square(shares).sum() < 0.12  # of the variance of the last draw is added
        few = cover(top, [i < n_leaves // 2 for i in range(n_leaves)])
        assert min(16, n_leaves // 2) <= len(finer(few)) <= max(16, len(few))
