"""Tests of rows that wait in a stream."""

from __future__ import annotations

import numpy as np
import pytest

from daskcoreset.constructions.tree.stream import CoresetStream
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.points import WeightedPoints


def rows(values: range, start: int = 0) -> WeightedPoints:
    """Return rows that hold their own numbers."""
    numbers = np.arange(values.start, values.stop, dtype=np.float32)
    weights = np.arange(1.0, len(values) + 1.0)
    indices = np.array(values, dtype=np.int64) - start
    return WeightedPoints(np.stack([numbers, -numbers], axis=1), weights, indices)


def test_stream__weights_that_overflow_together_are_refused() -> None:
    stream = CoresetStream("uniform", size=10, random_state=0)
    X = np.zeros((3, 2))
    stream.partial_fit(X, sample_weight=np.full(3, 4e307))
    stream.partial_fit(X, sample_weight=np.full(3, 4e307))
    with pytest.raises(InvalidInputError, match="adds up to inf"):
        stream.coreset()
