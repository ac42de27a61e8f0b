"""Problems of the outlier search: subsets that are drawn."""

from __future__ import annotations

import numpy as np
import scipy.stats

from daskcoreset.constructions.margin.outlier_problems import Draws, MarginQuery, find_smallest
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
