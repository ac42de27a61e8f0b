"""The pool of rows: draws in proportion to weights."""

from __future__ import annotations

import numpy as np
import pytest

from daskcoreset.constructions.margin.pool import open_pool
from daskcoreset.core.random import Stage, stream


@pytest.mark.statistical
def test_pool__draws_in_proportion_to_weights() -> None:
    """Chi-squared of 20,000 draws over 40 rows; false alarm 1e-7."""
    from scipy.stats import chi2

    u = np.random.default_rng(0).integers(0, 5, size=40).astype(float)
    X = np.arange(40.0)[:, None]
    X[3] = np.nan
    pool = open_pool(X, None, u, chunks=7, on_invalid="drop")
    u[3] = 0
    drawn = pool.draw(stream(0, Stage.LABELS), 20_000)
    counts = np.bincount(drawn.indices, minlength=40)
    assert np.array_equal(drawn.block.points[:, 0], drawn.indices)
    assert not counts[u == 0].any()
    expected = 20_000 * u[u > 0] / u.sum()
    statistic = float(((counts[u > 0] - expected) ** 2 / expected).sum())
    assert statistic < chi2.isf(1e-7, (u > 0).sum() - 1)
