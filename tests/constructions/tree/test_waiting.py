"""Tests of rows that wait in a stream."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from daskcoreset.constructions.tree.stream import CoresetStream
from daskcoreset.constructions.tree.waiting import Waiting, add_waiting
from daskcoreset.core.errors import InvalidInputError, StoreError
from daskcoreset.core.points import WeightedPoints, from_checked


def rows(values: range, start: int = 0) -> WeightedPoints:
    """Return rows that hold their own numbers."""
    numbers = np.arange(values.start, values.stop, dtype=np.float32)
    weights = np.arange(1.0, len(values) + 1.0)
    indices = np.array(values, dtype=np.int64) - start
    return WeightedPoints(np.stack([numbers, -numbers], axis=1), weights, indices)


def test_waiting__holds_few_parts() -> None:
    waiting: tuple[WeightedPoints, ...] = ()
    for i in range(1000):
        row = WeightedPoints(np.ones((1, 2)), np.ones(1), np.array([i]))
        waiting = add_waiting(waiting, row)
        assert len(waiting) <= 62  # 31 of one row and of 32
    assert sum(map(len, waiting)) == 1000
    assert waiting[0].indices.tolist() == [*range(32)]


@pytest.mark.parametrize("batches", [(1,) * 90, (30, 30, 30), (5, 50, 1, 34), (90,)])
def test_waiting__rows_are_as_they_came(batches: tuple[int, ...]) -> None:
    waiting, start = Waiting(), 0
    for count in batches:
        waiting = waiting.add(rows(range(start, start + count), start), start, 90 - start)
        start += count
        assert len(waiting) == start
        assert len(waiting.all_parts) == 1
    [joined] = waiting.joined()
    whole = rows(range(90))
    assert np.array_equal(joined.points, whole.points)
    assert np.array_equal(joined.indices, whole.indices)
    weights = np.concatenate([1.0 + np.arange(count) for count in batches])
    assert np.array_equal(joined.weights, weights)


def test_waiting__rows_before_do_not_change_and_two_may_follow_one() -> None:
    before = Waiting().add(rows(range(3)), 0, 100)
    held = before.joined()[0]
    one = before.add(rows(range(10, 14)), 0, 97)
    other = before.add(rows(range(20, 25)), 0, 97)
    third = before.with_array(np.zeros((2, 2), np.float32), 3) if before.places(held.points) else ""
    assert third == ""  # its room is that of the first
    assert one.room is before.room
    assert other.room is not before.room
    assert held.points[:, 0].tolist() == before.joined()[0].points[:, 0].tolist() == [0, 1, 2]
    assert one.joined()[0].points[:, 0].tolist() == [0, 1, 2, 10, 11, 12, 13]
    assert other.joined()[0].points[:, 0].tolist() == [0, 1, 2, 20, 21, 22, 23, 24]


def test_waiting__a_leaf_of_batches_is_one_array() -> None:
    waiting = Waiting()
    for start in range(0, 640, 20):
        waiting = waiting.add(rows(range(start, start + 20)), 0, 640 - start)
    assert len(waiting.all_parts) == 1
    assert waiting.joined()[0].points.base is not None  # of the room, and no copy


def test_waiting__labels_and_sparse_rows() -> None:
    dense = rows(range(4))
    labelled = WeightedPoints(dense.points, dense.weights, dense.indices, np.array([1, 0, 1, 1]))
    sparse = WeightedPoints(sp.csr_array(dense.points), dense.weights, dense.indices)
    for points in (labelled, sparse):
        waiting = Waiting().add(points, 0, 50).add(points, 4, 46)
        [joined] = waiting.joined()
        assert joined.indices.tolist() == list(range(8))
        assert waiting.room is None


def test_waiting__no_rows() -> None:
    none = rows(range(0))
    assert not len(Waiting().add(none, 0, 10))
    assert not Waiting().add(none, 0, 10).joined()
    before = Waiting().add(rows(range(3)), 0, 10)
    assert before.add(none, 3, 7) is before
    assert before.add(rows(range(3, 5)), 0, 7).joined()[0].indices.tolist() == [0, 1, 2, 3, 4]


def test_waiting__is_pickled_without_its_room() -> None:
    waiting = Waiting().add(rows(range(3)), 0, 100_000).add(rows(range(3, 6)), 0, 99_997)
    copy = pickle.loads(pickle.dumps(waiting))
    assert copy.joined()[0].equals(waiting.joined()[0])
    assert len(pickle.dumps(waiting)) < 2000
    assert copy.add(rows(range(6, 9)), 0, 99_994).joined()[0].indices.tolist() == list(range(9))


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


def test_waiting__rows_after_an_interrupted_copy_have_their_own_weights_and_numbers() -> None:
    before = Waiting().add(rows(range(3)), 0, 100)
    room = before.room
    assert room is not None
    ones = np.array([[5.0, -5.0]], np.float32)
    with pytest.raises(ValueError, match="broadcast"):  # the weights are written by then
        room.fill(ones, np.array([7.0]), np.array([70, 71]))
    assert not before.places(ones)
    after = before.add(from_checked(ones, np.ones(1), np.zeros(1, np.int64), None), 3, 97)
    further = after.with_array(ones, 4)
    assert further is not None
    [joined] = further.joined()
    assert joined.weights.tolist() == [1, 2, 3, 1, 1]
    assert joined.indices.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e200])
def test_waiting__rows_that_cannot_be_used_leave_their_places_to_others(bad: float) -> None:
    fine = np.arange(8.0).reshape(4, 2)
    before = Waiting().add(from_checked(fine, np.ones(4), np.arange(4), None), 0, 100)
    spoilt = fine.copy()
    spoilt[2, 1] = bad
    assert before.with_array(spoilt, 4) is None
    assert before.places(fine) == 96
    after = before.with_array(fine, 4)
    assert after is not None
    assert np.array_equal(after.joined()[0].points, np.tile(fine, (2, 1)))
