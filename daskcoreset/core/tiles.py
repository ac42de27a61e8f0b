"""Rows in tiles, dense, and products of them with fixed bits."""

from __future__ import annotations
from daskcoreset.core.typing import AnyArray
import numpy as np
from typing import Any
from daskcoreset.core.typing import FloatArray
import numpy as np
from typing import Any
from collections.abc import Iterator

__all__ = ["dense_rows", "tiles", "dense", "product", ]


_TILE_NUMBERS = 2**17
"""Numbers held at a time, 1 MiB in float64: n x k matrices are never formed."""
_BLAS_NUMBERS = 2**18
"""Multiplications per call of BLAS; OpenBLAS spreads larger products over threads."""
_BLAS_ROWS = 32
"""Rows of a product that are worth a call."""
def tiles(n_rows: int, width: int) -> Iterator[slice]:
    """Slices of rows, each of about a MiB in float64 when rows have `width` numbers.

    Examples
    --------
    >>> list(tiles(5, 2**16))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, _TILE_NUMBERS // max(1, width))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))
def dense(points: Any) -> FloatArray:
    """Rows as a dense float64 array, which shares memory where it can."""
    rows = points if isinstance(points, np.ndarray) else points.toarray()
    return rows.astype(np.float64, copy=False)
def product(left: FloatArray, right: FloatArray) -> FloatArray:
    """Matrix product whose bits do not depend on the number of threads.

    It is cut into pieces that BLAS gives to one thread. They stay in the cache, so that
    this costs no time.

    Examples
    --------
    >>> product(np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 2.],
           [3., 4.]])
    """
    inner, width = right.shape
    columns = min(width, max(1, _BLAS_NUMBERS // (_BLAS_ROWS * inner)))
    rows = max(1, _BLAS_NUMBERS // (inner * columns))
    out = np.empty((len(left), width))
    for column in range(0, width, columns):
        panel = right[:, column : column + columns]
        for row in range(0, len(left), rows):
            piece = left[row : row + rows]
            out[row : row + rows, column : column + columns] = piece @ panel
    return out


def dense_rows(points: Any) -> AnyArray:
    """Return rows as an array in C order, whether they are sparse or not."""
    return np.ascontiguousarray(points if isinstance(points, np.ndarray) else points.toarray())
