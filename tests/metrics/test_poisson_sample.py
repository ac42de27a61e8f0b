"""The sample of an audit, and the bound on its errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import daskcoreset
from tests.tools.heavy_tails import X


@pytest.mark.parametrize("chunks", ["auto", 100])
def test_audit__row_of_weight_zero_may_overflow(chunks: Any) -> None:
    """A row of weight zero changes no bit, even where its squared distances are infinite."""
    weights = np.ones(400)
    weights[7] = 0.0
    small, large = X[:400].copy(), X[:400].copy()
    large[7] = 1e200
    coreset = daskcoreset.build(
        large, sample_weight=weights, size=60, method="kmeans", n_clusters=3, random_state=1
    )
    first, second = (
        coreset.audit(rows, sample_weight=weights, random_state=1, sample_size=50, chunks=chunks)
        for rows in (small, large)
    )
    np.testing.assert_array_equal(first.on_data, second.on_data)
    assert first.interval(X[20:23]) == second.interval(X[20:23])
