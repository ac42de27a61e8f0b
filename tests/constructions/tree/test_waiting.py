"""Tests of rows that wait in a stream."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from daskcoreset.constructions.tree.stream import CoresetStream
from daskcoreset.core.errors import InvalidInputError, StoreError
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


def test_stream__a_batch_that_could_not_be_saved_leaves_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.random.default_rng(0).normal(size=(2000, 3))
    undisturbed = CoresetStream(size=20, random_state=0)
    stream = CoresetStream(size=20, random_state=0, store=tmp_path / "stream.zarr")
    write = CoresetStream._write

    def refuse(*_: object) -> None:
        raise StoreError("the disk is full")

    for start in range(0, len(X), 25):
        if start % 75 == 0:
            monkeypatch.setattr(CoresetStream, "_write", refuse)
            with pytest.raises(StoreError, match="full"):
                stream.partial_fit(-X[start : start + 25])
            monkeypatch.setattr(CoresetStream, "_write", write)
        stream.partial_fit(X[start : start + 25])
        undisturbed.partial_fit(X[start : start + 25])
    assert stream.rows().equals(undisturbed.rows())
    assert CoresetStream.load(tmp_path / "stream.zarr").coreset().equals(undisturbed.coreset())


def test_stream__rows_of_one_array_after_another_are_checked() -> None:
    X = np.random.default_rng(0).normal(size=(100, 3))
    stream = CoresetStream(size=100, random_state=0).partial_fit(X)
    for value, match in ((np.nan, "NaN"), (1e200, "overflow")):
        bad = X.copy()
        bad[7, 1] = value
        with pytest.raises(InvalidInputError, match=match):
            stream.partial_fit(bad)
    assert stream.partial_fit(X).n_rows == 200
    assert stream.partial_fit(X[:, ::-1][::2]).n_rows == 250  # no plain memory
    X[:] = 0.0
    assert stream.rows().points[:100].any()


def test_stream__numbers_and_weights_of_rows_between_weighted_and_dropped_ones() -> None:
    X = np.random.default_rng(0).normal(size=(120, 3))
    X[[37, 38, 90]] = np.nan
    weights = np.where(np.arange(120) // 10 == 6, 5.0, 1.0)
    stream = CoresetStream(size=100, random_state=0, on_invalid="drop")
    for start in range(0, 120, 10):
        part = slice(start, start + 10)
        stream.partial_fit(X[part], sample_weight=weights[part] if start == 60 else None)
    kept = np.flatnonzero(np.isfinite(X[:, 0]))
    rows = stream.rows()
    assert rows.indices.tolist() == kept.tolist()
    assert rows.weights.tolist() == weights[kept].tolist()
    assert np.array_equal(rows.points, X[kept])
