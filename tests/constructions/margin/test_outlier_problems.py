"""Problems of the outlier search: subsets that are drawn, and the smallest margins."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, strategies as st

from daskcoreset.constructions.margin.outlier_problems import (
    Draws,
    MarginQuery,
    find_smallest,
    leave_out,
)
from daskcoreset.inputs.blocks import row_blocks


def test_draws__rows_are_in_subsets_independently() -> None:
    """Inclusion of a row: binomial, tested at a false-alarm rate of 1e-6."""
    n, q, share = 200, 300, 0.3
    X, y = np.arange(1.0, n + 1)[:, None], np.where(np.arange(n) % 2, 1, -1)
    starts = {0: 0, 1: 60, 2: 120, 3: 180}
    question = MarginQuery(
        np.ones((q, 1)), np.array([-1, 1]), n, starts, Draws(5, share, tuple(range(q)))
    )
    found = find_smallest(row_blocks(X, y, chunks=60), question).rows
    counts = found.members.sum()
    low, high = scipy.stats.binom.interval(1 - 1e-6, len(found.members) * q, share)
    assert len(found.members) == n
    assert low <= counts <= high
    # Another read, of some of the subsets, sees the same ones.
    some = MarginQuery(np.ones((2, 1)), np.array([-1, 1]), n, starts, Draws(5, share, (7, 3)))
    again = find_smallest(row_blocks(X, y, chunks=60), some).rows
    kept = found.members[np.isin(found.indices, again.indices)][:, [7, 3]]
    assert (again.members == kept).all()


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(0, 3), intercept=st.booleans())
def test_ask_smallest__is_a_sort_of_all_margins(seed: int, k: int, intercept: bool) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.integers(-3, 4, size=(50, 2)).astype(float), rng.choice([-1.0, 1.0], 50)
    y[:10] = np.repeat([1.0, -1.0], 5)
    W = rng.normal(size=(4, 2))
    blocks = row_blocks(X, y, chunks=7)
    starts = {i: 7 * i for i in range(8)}
    gathered = find_smallest(blocks, MarginQuery(W, np.array([-1.0, 1.0]), k + 1, starts))
    for j, w in enumerate(W):
        products = y * (X @ w)
        for group, sign in enumerate((1.0, -1.0)):
            expected = np.sort(products[y == sign])[: k + 1]
            assert gathered.values[group, :, j] == pytest.approx(expected)
        margin, b, _ = leave_out(gathered.values[:, :, j], k, intercept=intercept)
        if not intercept:
            assert margin == pytest.approx(np.sort(products)[k])
        else:
            assert margin == pytest.approx(np.sort(products + y * b)[k])
            for other in rng.normal(size=20) * 3:
                assert np.sort(products + y * other)[k] <= margin + 1e-12
