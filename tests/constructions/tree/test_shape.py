"""The shape of a tree over its leaves, and covers of windows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from daskcoreset.constructions.tree.shape import (
    cover,
    finer,
    shape_by_keys,
    shape_of,
)


@given(slots=st.sets(st.integers(0, 10_000), min_size=1, max_size=60))
def test_shape__is_a_binary_tree_over_the_leaves_in_order(slots: set[int]) -> None:
    ordered = sorted(slots)
    top = shape_of(ordered, [str(slot) for slot in ordered])
    parts = list(top)
    assert [part.name for part in parts if not part.below] == [str(slot) for slot in ordered]
    assert len(parts) == 2 * len(ordered) - 1
    for part in parts:
        if part.below:
            left, right = part.below
            assert (left.start, left.stop, right.stop) == (part.start, right.start, part.stop)
    span = ordered[-1] - ordered[0] + 1
    assert top.depth <= min(len(slots) - 1, int(np.ceil(np.log2(span))) + 1)


@given(
    n=st.integers(1, 80),
    offset=st.integers(0, 200),
    bounds=st.tuples(st.integers(0, 80), st.integers(0, 80)),
)
def test_cover__is_exact_and_small_for_windows(
    n: int, offset: int, bounds: tuple[int, int]
) -> None:
    top = shape_of(range(offset, offset + n), [str(i) for i in range(n)])
    start, stop = sorted(bounds)
    wanted = [start <= i < stop for i in range(n)]
    parts = cover(top, wanted)
    assert [i for part in parts for i in range(part.start, part.stop)] == [
        i for i in range(n) if wanted[i]
    ]
    assert len(parts) <= 2 * np.ceil(np.log2(n)) + 2


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
