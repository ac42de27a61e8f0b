"""Matrix products of tiles whose bits do not depend on the number of BLAS threads.

Tasks run on threads of their own, and in those OpenBLAS does not let its number of threads be
set. So products are cut into pieces that it gives to one thread in any case.
"""

from __future__ import annotations

import numpy as np

from daskcoreset.core.tiles import (product)
from daskcoreset.core.typing import FloatArray

__all__ = ["GramSum", "gram_of", "product", "thin_product"]

_SIDE = 64
"""Rows, columns and terms of a piece: 2**18 multiplications, the most for one thread."""

_WAITING = 2**20
"""Numbers that wait in all sums of a block: 8 MiB, so that their own are seldom gone through."""


def thin_product(left: FloatArray, right: FloatArray) -> FloatArray:
    """Product with a matrix of few columns.

    One column alone would be a product of a matrix and a vector, for which BLAS has other
    limits; a column of zeros beside it costs little.

    Examples
    --------
    >>> thin_product(np.eye(2), np.array([[1.0], [2.0]]))
    array([[1.],
           [2.]])
    """
    if right.shape[1] > 1:
        return product(left, right)
    return product(left, np.concatenate([right, np.zeros_like(right)], axis=1))[:, :1]


def gram_of(rows: FloatArray) -> FloatArray:
    """Product of the transpose of rows with them, of shape (r, r).

    Only one half is computed.

    Examples
    --------
    >>> gram_of(np.array([[1.0, 2.0]]))
    array([[1., 2.],
           [2., 4.]])
    """
    n, r = rows.shape
    out = np.zeros((r, r))
    for i in range(0, r, _SIDE):
        first = slice(i, i + _SIDE)
        for j in range(i, r, _SIDE):
            second = slice(j, j + _SIDE)
            block = out[first, second]
            for k in range(0, n, _SIDE):
                block += rows[k : k + _SIDE, first].T @ rows[k : k + _SIDE, second]
            out[second, first] = block.T
    return out


class GramSum:
    """Sum of products of the transpose of rows with them, of a few rows at a time.

    Parameters
    ----------
    width : int
        Numbers r of a row.
    beside : int, default=1
        Sums that are made at the same time.

    Examples
    --------
    >>> sum_ = GramSum(2)
    >>> sum_.add(np.array([[1.0, 2.0]]))
    >>> sum_.add(np.array([[0.0, 1.0]]))
    >>> sum_.total()
    array([[1., 2.],
           [2., 5.]])
    """

    def __init__(self, width: int, beside: int = 1) -> None:
        self._sum = np.zeros((width, width))
        waiting = _WAITING // (width * beside)
        self._rows = np.empty((waiting if waiting >= _SIDE else 0, width))
        self._filled = 0

    def add(self, rows: FloatArray) -> None:
        """Add rows, of shape (n, r)."""
        if not len(self._rows):
            self._sum += gram_of(rows)
            return
        while len(rows):
            some = rows[: len(self._rows) - self._filled]
            self._rows[self._filled : self._filled + len(some)] = some
            self._filled += len(some)
            rows = rows[len(some) :]
            if self._filled == len(self._rows):
                self.total()

    def total(self) -> FloatArray:
        """Return the sum so far, of shape (r, r)."""
        if self._filled:
            self._sum += gram_of(self._rows[: self._filled])
            self._filled = 0
        return self._sum
