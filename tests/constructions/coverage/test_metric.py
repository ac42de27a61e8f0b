"""Nearest points by the metric, whatever the reach."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskcoreset.constructions.coverage.metric import Metric, Sorted
from tests.tools.covers import distances


@pytest.mark.parametrize("boxes", [False, True])
@given(seed=st.integers(0, 1000), reach=st.floats(0.0, 2.0))
def test_sorted_nearest__is_the_nearest_whatever_the_reach(
    boxes: bool, seed: int, reach: float
) -> None:
    rng = np.random.default_rng(seed)
    X, centers = rng.integers(0, 9, size=(30, 2)) / 4, rng.integers(0, 9, size=(12, 2)) / 4
    labels, measures = Sorted.of(centers, Metric(boxes)).nearest(X, reach)
    gaps = distances(X, centers, "chebyshev" if boxes else "euclidean")
    assert labels.tolist() == gaps.argmin(axis=1).tolist()
    np.testing.assert_allclose(measures, gaps.min(axis=1) ** (1 if boxes else 2), atol=1e-12)
