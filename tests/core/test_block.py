"""Blocks: what was read, brought to form, or the problem found in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from hypothesis import given, strategies as st

from daskcoreset.core.block import Block, BlockSchema, class_codes, concatenate, validate_block
from daskcoreset.core.labels import class_order


def test_rows__of_read_only_sparse_are_put_in_order() -> None:
    parts = np.array([1, 2, 3], np.float32), np.array([1, 0, 1]), np.array([0, 3])
    for part in parts:
        part.flags.writeable = False
    unsorted = sp.csr_array(parts, shape=(1, 2))
    found = validate_block({"X": unsorted}, BlockSchema(2, np.dtype(np.float32)))
    points: Any = found.valid_block.points
    np.testing.assert_array_equal(points.toarray(), [[2.0, 4.0]])
    assert points.has_canonical_format
    assert unsorted.indices.tolist() == [1, 0, 1]


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


def test_concatenate__an_empty_block_makes_no_text_of_numbers() -> None:
    empty = Block(np.zeros((0, 1)), np.zeros(0), np.array([], dtype=str)).numbered()
    full = Block(np.ones((2, 1)), np.ones(2), np.array([3, 4])).numbered()
    labels = concatenate([empty, full, empty]).labels
    assert labels is not None
    assert labels.tolist() == [3, 4]
    assert len(concatenate([empty, empty])) == 0
