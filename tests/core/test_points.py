"""Weighted points: what they take, refuse and share, and when two are equal."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from daskcoreset.core.points import WeightedPoints, deduplicate
from daskcoreset.core.typing import AnyArray
from tests.tools.coresets import make_coreset, rows


def dense(part: WeightedPoints) -> AnyArray:
    points: Any = part.points
    return np.asarray(points.toarray() if sp.issparse(points) else points)


TEXT = np.array(["red", "blue", "Zoë", ""])


def test_weighted_points__share_memory_and_are_read_only() -> None:
    points, weights, indices, labels = rows(), np.ones(4), np.arange(4), np.arange(4)
    part = WeightedPoints(points, weights, indices, labels)
    for given_array, kept in (
        (points, part.points),
        (weights, part.weights),
        (indices, part.indices),
        (labels, part.labels),
    ):
        assert np.shares_memory(given_array, kept)
        assert not kept.flags.writeable  # type: ignore[union-attr]
        assert given_array.flags.writeable
    with pytest.raises(dataclasses.FrozenInstanceError):
        part.weights = weights  # type: ignore[misc]


def test_weighted_points__keep_sparse_input_untouched() -> None:
    matrix = rows(sparse=True)
    part = WeightedPoints(matrix, np.ones(4), np.arange(4))
    assert np.shares_memory(part.points.data, matrix.data)
    assert not any(getattr(part.points, k).flags.writeable for k in ("data", "indices", "indptr"))
    matrix.data[0] = 5.0
    matrix.sum_duplicates()
    unsorted = sp.csr_array(([1.0, 2.0, 3.0], [1, 0, 1], [0, 3]), shape=(1, 2))
    part = WeightedPoints(unsorted, np.ones(1), np.arange(1))
    assert part.points.has_canonical_format  # type: ignore[union-attr]
    assert dense(part).tolist() == [[2.0, 4.0]]
    assert list(unsorted.indices) == [1, 0, 1]
    for other in (sp.csc_array(matrix), sp.coo_matrix(matrix), sp.csr_matrix(matrix)):
        again = WeightedPoints(other, np.ones(4), np.arange(4))
        assert type(again.points) is sp.csr_array
        assert (again.points != matrix).nnz == 0


@pytest.mark.parametrize("sparse", [False, True])
def test_take__selects_by_position_mask_and_slice(sparse: bool) -> None:
    coreset = make_coreset(sparse=sparse, labels=TEXT)
    for picked in (np.array([3, 1]), [3, 1]):
        part = coreset.take(picked)  # type: ignore[arg-type]
        assert type(part) is WeightedPoints
        assert part.indices.tolist() == [999, 7]
        assert part.labels is not None
        assert part.labels.tolist() == ["", "blue"]
        assert np.array_equal(dense(part), rows()[[3, 1]])
    assert coreset.take(coreset.weights > 250).indices.tolist() == [7, 999]
    assert coreset.take(slice(None, None, 2)).weights.tolist() == [100.0, 300.5]
    assert len(coreset.take([])) == 0  # type: ignore[arg-type]
    with pytest.raises(IndexError):
        coreset.take(np.array([4]))
    with pytest.raises(IndexError):
        coreset.take(np.array([0.0]))


@pytest.mark.parametrize(
    "change",
    [
        {"points": np.asfortranarray(rows() + 1e-15)},
        {"points": rows().astype(np.float32)},
        {"points": rows(sparse=True)},
        {"points": rows(d=2), "provenance": {}},
        {"weights": np.array([100.0, 200.0, 300.5, 399.5]) * (1 + 1e-15)},
        {"indices": np.array([5, 7, 8, 999])},
        {"labels": TEXT.astype("U9")},
        {"labels": TEXT[::-1]},
        {"labels": None},
        {"provenance": {}},
    ],
    ids=[
        "last-bit",
        "dtype",
        "sparse",
        "columns",
        "weights",
        "indices",
        "width",
        "order",
        "none",
        "provenance",
    ],
)
def test_equals__sees_any_difference(change: dict[str, Any]) -> None:
    coreset = make_coreset(labels=TEXT)
    assert coreset.equals(dataclasses.replace(coreset))
    other = dataclasses.replace(coreset, **change)
    assert not coreset.equals(other)
    assert WeightedPoints.equals(coreset, other) is (change.keys() == {"provenance"})


SMALL = arrays(
    np.float64, st.tuples(st.integers(1, 12), st.integers(1, 4)), elements=st.integers(-1, 1)
)


def bits(part: Any) -> bytes:
    plain: AnyArray = part.toarray() if sp.issparse(part) else part
    return plain.tobytes()


@given(SMALL, st.data())
def test_canonical__weights_and_repeats_are_the_same(rows: AnyArray, data: Any) -> None:
    n = len(rows)
    counts = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    labels = np.array(data.draw(st.lists(st.sampled_from("ab"), min_size=n, max_size=n)))
    order = np.array(data.draw(st.permutations(range(n))))
    repeated = order.repeat(counts[order])
    signed = np.where(rows == 0, -0.0, rows)
    for make in (np.asarray, sp.csr_array):
        one = deduplicate(make(rows), counts.astype(float), labels)
        ones = np.ones(len(repeated))
        other = deduplicate(make(signed[repeated]), ones, labels[repeated])
        assert [bits(part) for part in one] == [bits(part) for part in other]
