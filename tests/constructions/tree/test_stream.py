"""`CoresetStream`: the sequence of rows decides, whatever brings them and whatever dies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskcoreset import CoresetStream
from daskcoreset.errors import InvalidInputError

N = 1500


def data(n: int = N, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, 3)) * rng.lognormal(size=(n, 1))).astype(np.float32)
    y = np.array(["no", "perhaps"])[rng.integers(0, 2, n)]
    return X, y, rng.integers(0, 3, n) * rng.random(n)


def made(**options: Any) -> CoresetStream:
    given_options: dict[str, Any] = {"size": 20, "leaf_size": 90, "random_state": 3, **options}
    return CoresetStream(**given_options)


def test_partial_fit__labels_that_come_late_and_narrow_rows() -> None:
    X, y, _ = data()
    with pytest.raises(InvalidInputError, match="y is given instead of missing"):
        made().partial_fit(X).partial_fit(X, y)
    wide = made().partial_fit(X.astype(float)).partial_fit(X)  # float32 fits into float64
    assert wide.coreset().points.dtype == np.float64


def test_stream__weights_that_overflow_together_are_refused() -> None:
    stream = CoresetStream("uniform", size=10, random_state=0)
    X = np.zeros((3, 2))
    stream.partial_fit(X, sample_weight=np.full(3, 4e307))
    stream.partial_fit(X, sample_weight=np.full(3, 4e307))
    with pytest.raises(InvalidInputError, match="sums to inf"):
        stream.coreset()
