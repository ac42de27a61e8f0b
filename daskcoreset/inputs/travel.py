"""Rows in the memory of this process, and how they get to others: packed, without loss."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskcoreset.core.typing import AnyArray

# Of a longer sequence so many are packed to tell what all take.
_SAMPLE = 16

# The format of Blosc counts bytes in 31 bits.
_MOST_BYTES = 2**30


@dataclass(frozen=True, eq=False, slots=True)
class RowsInMemory:
    """A loader of rows that are there; it pickles as `PackedRows`, where these are smaller.

    Labels are few values in eight bytes each, and weights often are: their bits, sorted by place,
    compress to a tenth and less, and come back as they were.
    """

    rows: AnyArray

    def __call__(self) -> AnyArray:
        """Return the rows, as a view."""
        return self.rows

    def __reduce__(self) -> Any:
        packed = self.packed()
        return (RowsInMemory, (self.rows,)) if packed is None else (PackedRows, packed)

    def packed(self) -> tuple[bytes, np.dtype[Any], tuple[int, ...]] | None:
        """Return the arguments of `PackedRows`; None where they would hardly be smaller."""
        rows = self.rows
        if rows.dtype.kind not in "biuf" or not 0 < rows.nbytes <= _MOST_BYTES:
            return None
        from numcodecs import blosc

        data = blosc.compress(np.ascontiguousarray(rows), b"lz4", 5, blosc.BITSHUFFLE)
        return (data, rows.dtype, rows.shape) if 4 * len(data) <= 3 * rows.nbytes else None


@dataclass(frozen=True, eq=False, slots=True)
class PackedRows:
    """A loader of rows that came from another process, unpacked where they are used."""

    data: bytes
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def __call__(self) -> AnyArray:
        """Return the rows."""
        from numcodecs import blosc

        rows = np.empty(self.shape, self.dtype)
        blosc.decompress(self.data, rows)
        return rows


def bytes_to_send(loaders: Sequence[Any]) -> int:
    """Return about how many bytes loaders of rows in memory take when they are sent.

    Examples
    --------
    >>> labels = np.arange(80_000) % 2
    >>> bytes_to_send([RowsInMemory(labels)]) < labels.nbytes // 10
    True
    """
    step = max(1, len(loaders) // _SAMPLE)
    sample = loaders[::step]
    return sum(len(pickle.dumps(loader)) for loader in sample) * len(loaders) // len(sample)
