"""Values of blocks behave as the dict that they stand for."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from daskcoreset.core.block_values import BlockValues, merge_values, values_of


def test_block_values__are_a_mapping() -> None:
    values: BlockValues[float] = BlockValues([2, 5, 9], [1.0, 2.5, 4.0])
    assert values == {2: 1.0, 5: 2.5, 9: 4.0}
    assert (len(values), list(values), values[5], values.get(3)) == (3, [2, 5, 9], 2.5, None)
    assert isinstance(values[5], float)
    for missing in (3, 10, -1):
        with pytest.raises(KeyError):
            values[missing]
    assert values.of_blocks(3, 9) == {5: 2.5}
    assert "2.5" in repr(values)


def test_merge_values__of_dicts_and_arrays_in_order() -> None:
    merged = merge_values([{}, {0: 3}, BlockValues([1, 2], [4, 5]), {4: 6}])
    assert merged == {0: 3, 1: 4, 2: 5, 4: 6}
    assert values_of(merged).tolist() == [3, 4, 5, 6]
    assert merge_values([{7: 1}]) == {7: 1}
    assert merge_values([]) == {}


def test_merge_values__of_rows_of_numbers() -> None:
    merged = merge_values([{0: np.array([1.0, 2.0])}, {1: np.array([3.0, 4.0])}])
    np.testing.assert_array_equal(merged[1], [3.0, 4.0])


def test_block_values__a_million_take_sixteen_bytes_each() -> None:
    values: BlockValues[int] = BlockValues(np.arange(10**6), np.ones(10**6, dtype=np.int64))
    assert len(pickle.dumps(values)) < 16.1e6
