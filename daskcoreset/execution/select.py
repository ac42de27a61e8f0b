"""Rows that a read selects, and their numbers in the whole data."""

from __future__ import annotations

import numpy as np

from daskcoreset.core.block import Block
from daskcoreset.core.typing import IndexArray

# Bits of the number of a row within its block.
_WITHIN = 40


def row_keys(block: Block, block_index: int) -> IndexArray:
    """Return a key of every row of a block: distinct, and in the order of the whole data."""
    within = np.arange(len(block)) if block.rows is None else block.rows
    return (block_index << _WITHIN) + within.astype(np.int64)


def row_numbers(keys: IndexArray, starts: dict[int, int]) -> IndexArray:
    """Return the numbers of rows in the whole data, by their keys.

    Parameters
    ----------
    keys : ndarray of shape (r,), int64
    starts : dict of int to int
        Number of the first row of every block, from `BlockResults.offsets`.

    Examples
    --------
    >>> row_numbers(np.array([(1 << 40) + 2, 3]), {0: 0, 1: 10})
    array([12,  3])
    """
    known = np.array(list(starts.items()), dtype=np.int64).reshape(-1, 2)
    places = np.searchsorted(known[:, 0], keys >> _WITHIN)
    return np.asarray(known[places, 1] + (keys & ((1 << _WITHIN) - 1)))
