"""Weighted points: what they take, share and compare, and equal rows in one form."""

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

TEXT = np.array(["red", "blue", "Zoë", ""])


@pytest.mark.parametrize("sparse", [False, True])
def test_take__selects_by_position_mask_and_slice(sparse: bool) -> None:
    coreset: Any = make_coreset(sparse=sparse, labels=TEXT)
    part: Any = coreset.take(np.array([3, 1]))
    assert type(part).__name__ == "WeightedPoints"
    assert part.indices.tolist() == [999, 7]
    assert part.labels.tolist() == ["", "blue"]
    found = part.points.toarray() if sparse else part.points
    assert np.array_equal(found, rows()[[3, 1]])
    assert coreset.take(coreset.weights > 250).indices.tolist() == [7, 999]
    assert coreset.take(slice(None, None, 2)).weights.tolist() == [100.0, 300.5]
    assert len(coreset.take([])) == 0
    for wrong in (np.array([4]), np.array([0.0])):
        with pytest.raises(IndexError):
            coreset.take(wrong)


CHANGES = {
    "last bit": {"points": rows() + 1e-15},
    "dtype": {"points": rows().astype(np.float32)},
    "sparse": {"points": rows(sparse=True)},
    "columns": {"points": rows(d=2), "provenance": {}},
    "indices": {"indices": np.array([5, 7, 8, 999])},
    "width": {"labels": TEXT.astype("U9")},
    "order": {"labels": TEXT[::-1]},
    "none": {"labels": None},
    "provenance": {"provenance": {}},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_equals__sees_any_difference(change: dict[str, Any]) -> None:
    coreset = make_coreset(labels=TEXT)
    other = dataclasses.replace(coreset, **change)
    assert not coreset.equals(other)
    assert WeightedPoints.equals(coreset, other) is (change.keys() == {"provenance"})


def test_equals__compares_bits() -> None:
    zero, nan = np.array([[0.0]]), np.array([np.nan])
    parts = ((zero, None), (-zero, None), (zero, nan), (zero, nan.copy()))
    one = [WeightedPoints(x, np.ones(1), np.arange(1), labels) for x, labels in parts]
    assert not one[0].equals(one[1])
    assert one[2].equals(one[3])
    assert one[2] != one[3]
    variable = TEXT.astype(np.dtypes.StringDType())
    assert make_coreset(labels=variable).equals(make_coreset(labels=variable.copy()))


SMALL = arrays(
    np.float64, st.tuples(st.integers(1, 12), st.integers(1, 4)), elements=st.integers(-1, 1)
)


def bits(part: Any) -> bytes:
    plain: AnyArray = part.toarray() if sp.issparse(part) else part
    return plain.tobytes()


@given(SMALL, st.data())
def test_deduplicate__weights_and_repeats_are_the_same(rows: AnyArray, data: Any) -> None:
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
