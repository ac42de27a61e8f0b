"""Buckets of core points: the same answers as without them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskcoreset.constructions.coverage import grid
from daskcoreset.constructions.coverage.metric import Metric, Sorted
from daskcoreset.constructions.coverage.online import online


@pytest.mark.parametrize(
    ("boxes", "d", "radius", "offset", "dtype"),
    [
        (False, 2, 0.05, 0.0, np.float64),
        (True, 6, 0.5, 1e6, np.float32),
        (False, 20, 0.8, -1e3, np.float64),
    ],
)
def test_open_cells__in_buckets_opens_the_same_cells(
    boxes: Any, d: int, radius: float, *, offset: float, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = (np.random.default_rng(0).normal(size=(6000, d)) + offset).astype(dtype)
    X[3000:] = X[:3000] + (X[3000:] - offset) * radius / 8
    metric = Metric(boxes=boxes)
    rows, _ = online(X, radius, metric, max_points=6000)
    assert grid.grid_of(X[rows].astype(np.float64), len(rows), radius) is not None
    labels, measures = Sorted.of(X[rows], metric).nearest(X, radius)
    monkeypatch.setattr(grid, "_LEAST", 10**9)
    plain, _ = online(X, radius, metric, max_points=6000)
    np.testing.assert_array_equal(rows, plain)
    expected = Sorted.of(X[rows], metric).nearest(X, radius)
    np.testing.assert_array_equal(labels, expected[0])
    np.testing.assert_array_equal(measures, expected[1])


def test_nearest__of_rows_outside_all_buckets_is_found() -> None:
    X = np.random.default_rng(0).random((3000, 2)) * 100
    Z = np.concatenate([X, X[:5] + 1e4, [[np.inf, 0.0]]])
    labels, measures = Sorted.of(X, Metric(boxes=False)).nearest(Z, 0.1)
    gaps = np.square(Z[3000:3005, np.newaxis] - X).sum(axis=2)
    np.testing.assert_array_equal(labels[3000:3005], gaps.argmin(axis=1))
    np.testing.assert_array_equal(labels[:3000], np.arange(3000))
    assert np.isinf(measures[-1])
