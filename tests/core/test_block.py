"""Blocks: what was read, brought to form, or the problem found in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st

from daskcoreset.core.block import (
    Block,
    BlockSchema,
    class_codes,
    concatenate,
    promoted_dtype,
    validate_block,
)
from daskcoreset.core.labels import class_order
from daskcoreset.core.typing import AnyArray
from tests.acceptance.tools.strategies import matrices

SCHEMA = BlockSchema(2, np.dtype(np.float32))
DROP = BlockSchema(2, np.dtype(np.float32), "drop")


def usable(X: Any, y: Any = None, sample_weight: Any = None, schema: BlockSchema = SCHEMA) -> Block:
    parts = {"X": X, "y": y, "sample_weight": sample_weight}
    rows = validate_block({k: part for k, part in parts.items() if part is not None}, schema)
    assert rows.problem is None
    return rows.valid_block


@given(array=matrices())
def test_rows_from__same_numbers_in_plain_memory(array: AnyArray) -> None:
    schema = BlockSchema(array.shape[1], promoted_dtype(array.dtype))
    for given_as in (array, np.asfortranarray(array), np.ma.masked_array(array)):
        points: Any = usable(given_as, schema=schema).points
        assert type(points) is np.ndarray
        assert points.dtype == schema.dtype
        assert points.flags.c_contiguous
        assert points.dtype.isnative
        np.testing.assert_array_equal(points, array.astype(schema.dtype))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_rows_from__are_those_that_are_finite(form: Any) -> None:
    X = np.ones((6, 2), np.float32)
    X[4, 0], X[3, 1], X[5] = np.nan, -np.inf, np.inf
    problem = validate_block({"X": form(X)}, SCHEMA).problem
    assert problem is not None
    assert str(problem.error(100)).startswith(
        "Input X contains infinity (-inf) in column 1 at row 103; clean the data, or"
    )
    weights = np.array([0.0, 1.0, 2.0, np.nan, -1.0, 5.0])
    block = usable(form(X), np.arange(6), weights, DROP)
    for found in (block.rows, block.labels, block.weights):
        np.testing.assert_array_equal(found, [0, 1, 2])


def test_rows_from__read_only_sparse_is_put_in_order() -> None:
    parts = np.array([1, 2, 3], np.float32), np.array([1, 0, 1]), np.array([0, 3])
    for part in parts:
        part.flags.writeable = False
    points: Any = usable(sp.csr_array(parts, shape=(1, 2))).points
    np.testing.assert_array_equal(points.toarray(), [[2.0, 4.0]])
    assert points.has_canonical_format


def test_block__take_keeps_numbers_of_rows() -> None:
    block = Block(np.arange(10.0).reshape(5, 2), np.arange(5.0), np.array([b"a"] * 5))
    first = block.take(np.array([4, 1, 2]))
    again = first.take(np.array([2, 0]))
    np.testing.assert_array_equal(again.rows, [2, 4])
    np.testing.assert_array_equal(again.points, [[4, 5], [8, 9]])
    assert again.labels is not None
    assert again.labels.tolist() == ["a", "a"]
    np.testing.assert_array_equal(block.numbered().rows, np.arange(5))
    assert again.numbered() is again


def test_concatenate__labels_widen_and_sparse_wins() -> None:
    dense = Block(np.eye(2), np.ones(2), np.array(["a", "b"])).numbered()
    sparse = Block(sp.csr_array(np.eye(2)), np.ones(2), np.array(["long", "x"])).numbered()
    assert concatenate([dense]) is dense
    joined = concatenate([dense, sparse])
    points: Any = joined.points
    assert isinstance(points, sp.csr_array)
    np.testing.assert_array_equal(points.toarray(), np.vstack([np.eye(2), np.eye(2)]))
    assert joined.labels is not None
    assert joined.labels.tolist() == ["a", "b", "long", "x"]
    assert concatenate([dense.take(np.array([0])), Block(np.eye(2), np.ones(2))]).labels is None


@given(
    st.sampled_from(["?", "i1", "u1", ">i2", "i8", "u8", "f2", "f4", "f8", "U2"]),
    st.sampled_from([(0, 1), (-128, 127), (-3, 10**6), (2**62, 2**62 + 5), (-0.5, 0.5)]),
    st.integers(0, 40),
    st.integers(0, 9),
)
def test_classes__are_those_of_sorting(
    dtype: str, ends: tuple[float, float], n: int, seed: int
) -> None:
    """Whole numbers that lie near one another are looked up in a table, whatever their dtype."""
    drawn = np.random.default_rng(seed).choice([*ends, 1, 0], n)
    with np.errstate(invalid="ignore", over="ignore"):
        labels = drawn.astype(np.int64).astype(dtype) if dtype[-1] in "128" else drawn.astype(dtype)
    found, classes, codes = Block(np.zeros((n, 1)), np.ones(n), labels).coded
    sorted_classes, places = np.unique(labels, return_inverse=True)
    assert classes.dtype == labels.dtype
    np.testing.assert_array_equal(classes, sorted_classes)
    np.testing.assert_array_equal(codes, places)
    assert codes.dtype == np.int64
    assert found is labels


def test_classes__totals_order_and_rows_without_weight() -> None:
    block = Block(np.zeros((5, 1)), np.array([1.0, 0.0, 2.0, 0.5, 0.0]), np.array([7, 9, 9, 7, 3]))
    counts, weights = block.class_totals
    assert counts.tolist() == [0, 2, 1]
    assert weights.tolist() == [0.0, 1.5, 2.0]
    assert class_order(block.coded[2]).tolist() == [4, 0, 3, 1, 2]
    assert class_codes(block, np.array([7, 9])).tolist() == [0, 1, 1, 0, 0]
