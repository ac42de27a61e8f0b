"""Blocks: what was read, brought to form, or the problem found in it."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import daskcoreset
from daskcoreset.core.blocks import (
    Block,
    BlockSchema,
    InvalidRow,
    class_codes,
    concatenate,
    find_bad_label,
    promoted_dtype,
    validate_block,
)
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.typing import AnyArray
from tests.acceptance.tools.strategies import matrices

SCHEMA = BlockSchema(2, np.dtype(np.float32))
DROP = BlockSchema(2, np.dtype(np.float32), "drop")


def usable(X: Any, y: Any = None, sample_weight: Any = None, schema: BlockSchema = SCHEMA) -> Block:
    rows = validate_block(X, y, sample_weight, schema)
    assert rows.problem is None
    assert rows.block is not None
    return rows.block


def problem_of(
    X: Any, y: Any = None, sample_weight: Any = None, schema: BlockSchema = SCHEMA
) -> str:
    rows = validate_block(X, y, sample_weight, schema)
    assert rows.block is None
    assert rows.problem is not None
    return str(rows.problem.error(100))


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("?", "f4"),
        ("i1", "f4"),
        ("u2", "f4"),
        ("i4", "f8"),
        ("u8", "f8"),
        ("f2", "f4"),
        ("f4", "f4"),
        (">f4", "f4"),
        (">f8", "f8"),
        ("g", "f8"),
    ],
)
def test_promoted_dtype__by_dtype(dtype: str, expected: str) -> None:
    found = promoted_dtype(np.dtype(dtype))
    assert found == np.dtype(expected)
    assert found.isnative


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


def test_rows_from__no_copy_where_none_is_needed() -> None:
    X = np.zeros((5, 2), np.float32)
    assert np.shares_memory(usable(X).points, X)


def test_rows_from__wide_floats_that_do_not_fit() -> None:
    X = np.array([[0, 0], [1, np.longdouble("1e4000")]], dtype=np.longdouble)
    schema = BlockSchema(2, np.dtype(np.float64))
    assert "X contains infinity (inf) in column 1 at row 101" in problem_of(X, schema=schema)


def test_rows_from__float16_is_widened_before_it_is_squared() -> None:
    X = np.full((3, 2), 60000, np.float16)
    points: Any = usable(X).points
    np.testing.assert_array_equal(points, np.full((3, 2), np.float32(60000)))
    assert np.isfinite((points**2).sum())


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_rows_from__first_row_that_is_not_finite(form: Any) -> None:
    X = np.ones((6, 2), np.float32)
    X[4, 0], X[3, 1], X[5] = np.nan, -np.inf, np.inf
    assert problem_of(form(X)).startswith(
        "Input X contains infinity (-inf) in column 1 at row 103; clean the data, or"
    )
    block = usable(form(X), np.arange(6), np.arange(6.0), DROP)
    assert block.rows is not None
    np.testing.assert_array_equal(block.rows, [0, 1, 2])
    np.testing.assert_array_equal(block.labels, [0, 1, 2])
    np.testing.assert_array_equal(block.weights, [0, 1, 2])
    assert validate_block(form(X), None, None, DROP).read == 6


def test_rows_from__all_rows_dropped() -> None:
    block = usable(np.full((3, 2), np.nan, np.float32), schema=DROP)
    assert len(block) == 0
    assert block.points.shape == (0, 2)


def test_rows_from__masked_entries_are_missing() -> None:
    X = np.ma.masked_array(np.ones((4, 2), np.int16), np.arange(8).reshape(4, 2) == 5)
    assert "X contains NaN in column 1 at row 102" in problem_of(X)
    w = np.ma.masked_array(np.ones(4), np.arange(4) == 1)
    assert "sample_weight is nan at row 101" in problem_of(np.ones((4, 2)), None, w)
    y = np.ma.masked_array(np.arange(4), np.arange(4) == 3)
    assert "y is masked at row 103; fill" in problem_of(np.ones((4, 2)), y)


@pytest.mark.parametrize(
    ("weights", "found"),
    [
        ([1, 2, -1, -2], "sample_weight is -1.0 at row 102"),
        ([1, np.nan, 1, 1], "sample_weight is nan at row 101"),
        ([1, 1, 1, np.inf], "sample_weight is inf at row 103"),
        ([np.inf, -np.inf, 1, 1], "sample_weight is inf at row 100"),
        ([1e308] * 4, "sample_weight sums to infinity; scale it down"),
    ],
)
def test_rows_from__bad_weights(weights: list[float], found: str) -> None:
    for schema in (SCHEMA, DROP):
        assert problem_of(np.ones((4, 2)), None, np.array(weights), schema).startswith(found)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.float32, ">f8"])
def test_rows_from__weights_of_any_dtype(dtype: Any) -> None:
    weights = usable(np.ones((3, 2)), None, np.array([1, 0, 1]).astype(dtype)).weights
    assert weights.dtype == np.float64
    np.testing.assert_array_equal(weights, [1.0, 0.0, 1.0])


def test_rows_from__shapes_that_do_not_fit() -> None:
    X = np.ones((4, 2))
    assert "y has a block of shape (3,) beside a block of X with 4 rows" in problem_of(
        X, np.ones(3)
    )
    w = np.ones((4, 1))
    assert "sample_weight has a block of shape (4, 1)" in problem_of(X, None, w)
    assert "X has a block of shape (4, 3) where 2 columns" in problem_of(np.ones((4, 3)))
    assert "X has a block of shape (4,) where 2 columns" in problem_of(np.ones(4))


def test_rows_from__empty_block() -> None:
    for X in (np.empty((0, 2)), sp.csr_array((0, 2))):
        block = usable(X, np.empty(0), np.empty(0))
        assert len(block) == 0
        assert len(block.all_rows()) == 0


def test_rows_from__read_only_sparse_is_put_in_order() -> None:
    parts = np.array([1.0, 2.0, 3.0]), np.array([1, 0, 1]), np.array([0, 3])
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
    np.testing.assert_array_equal(block.all_rows().rows, np.arange(5))
    assert again.all_rows() is again


def test_concatenate__labels_widen_and_sparse_wins() -> None:
    dense = Block(np.eye(2), np.ones(2), np.array(["a", "b"])).all_rows()
    sparse = Block(sp.csr_array(np.eye(2)), np.ones(2), np.array(["long", "x"])).all_rows()
    assert concatenate([dense]) is dense
    joined = concatenate([dense, sparse])
    points: Any = joined.points
    assert isinstance(points, sp.csr_array)
    np.testing.assert_array_equal(points.toarray(), np.vstack([np.eye(2), np.eye(2)]))
    assert joined.labels is not None
    assert joined.labels.tolist() == ["a", "b", "long", "x"]
    assert concatenate([dense.take(np.array([0])), Block(np.eye(2), np.ones(2))]).labels is None


@given(row=st.none() | st.integers(0, 100), offset=st.integers(0, 2**40))
def test_problem__row_counts_from_the_start(row: int | None, offset: int) -> None:

    error = InvalidRow("X is nan{row}; fix it.", row).error(offset)
    assert isinstance(error, InvalidInputError)
    expected = "X is nan; fix it." if row is None else f"X is nan at row {row + offset}; fix it."
    assert str(error) == expected


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


def test_classes__totals_and_order() -> None:
    block = Block(np.zeros((5, 1)), np.array([1.0, 0.0, 2.0, 0.5, 0.0]), np.array([7, 9, 9, 7, 3]))
    counts, weights = block.class_totals
    assert counts.tolist() == [0, 2, 1]
    assert weights.tolist() == [0.0, 1.5, 2.0]
    assert block.class_order.tolist() == [4, 0, 3, 1, 2]


def test_once__threads_wait_for_the_one_that_finds() -> None:
    block, calls, begun, go_on = Block(np.zeros((1, 1)), np.ones(1)), [], Event(), Event()

    def find() -> str:
        calls.append(1)
        begun.set()
        assert go_on.wait(20)
        return "found"

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(block.once, "key", find)
        assert begun.wait(20)
        others = [pool.submit(block.once, "key", find) for _ in range(2)]
        assert block.once("another key", lambda: "other") == "other"  # waits for none of them
        go_on.set()
        assert [each.result(20) for each in (first, *others)] == ["found"] * 3
    assert len(calls) == 1
    copy = pickle.loads(pickle.dumps(block))
    assert copy.once("key", lambda: "anew") == "anew"


def test_once__what_fails_is_found_by_the_next() -> None:
    block = Block(np.zeros((1, 1)), np.ones(1))
    with pytest.raises(ZeroDivisionError):
        block.once("key", lambda: 1 / 0)
    assert block.once("key", lambda: 1.0) == 1.0


def test_classes__rows_without_weight_and_numbers_of_rows() -> None:
    block = Block(np.zeros((3, 1)), np.array([1.0, 1.0, 0.0]), np.array([1, 2, 9]))
    assert class_codes(block, np.array([1, 2])).tolist() == [0, 1, 1]
    missing = Block(np.zeros((2, 1)), np.ones(2), np.array([1.0, np.nan]), np.array([7, 8]))
    problem = find_bad_label(missing)
    assert problem is not None
    assert problem.row == 8
    assert find_bad_label(Block(np.zeros((2, 1)), np.ones(2))) is not None


def test_build__takes_bfloat16_block_by_block() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    rows = np.random.default_rng(0).normal(size=(600, 3)).astype(ml_dtypes.bfloat16)
    options: dict[str, Any] = {"size": 50, "random_state": 0, "chunks": 200}
    wide = daskcoreset.build(rows.astype(np.float32), **options)
    for X in (rows, da.from_array(rows, chunks=(200, 3))):
        coreset = daskcoreset.build(X, **options)
        assert coreset.points.dtype == np.float32
        np.testing.assert_array_equal(coreset.points, wide.points)
