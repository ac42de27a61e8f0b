"""Rows of the demonstration: made block by block, and never more in memory than a limit allows."""

from __future__ import annotations

import threading
import weakref
from pathlib import Path
from typing import Any

from daskcoreset import datasets
from daskcoreset.core.errors import StoreError
from daskcoreset.core.typing import AnyArray

_MB = 1_000_000


class LimitedRows:
    """Rows of a stored array, of which only so many bytes may be in memory at the same time.

    Parameters
    ----------
    array : zarr.Array
    limit : int
        In bytes.

    Attributes
    ----------
    shape, dtype, ndim
        Those of the array.
    most : int
        Most bytes that were in memory at the same time.
    """

    def __init__(self, array: Any, limit: int) -> None:
        self._array, self._limit, self._held, self.most = array, limit, 0, 0
        self._lock = threading.Lock()
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim

    def __getitem__(self, rows: Any) -> AnyArray:
        """Return a block.

        Raises
        ------
        MemoryError
            With it, more would be in memory than may be.
        """
        whole = rows[0] if isinstance(rows, tuple) else rows
        n_rows = len(range(*whole.indices(self.shape[0])))
        size = n_rows * self.shape[1] * self.dtype.itemsize
        with self._lock:
            if self._held + size > self._limit:
                raise MemoryError(
                    f"{(self._held + size) / _MB:.0f} MB of rows, and {self._limit / _MB:.0f} MB "
                    f"may be in memory"
                )
            self._held += size
            self.most = max(self.most, self._held)
        block: AnyArray = self._array[whole]
        weakref.finalize(block, self._release, size)
        return block

    def _release(self, size: int) -> None:
        with self._lock:
            self._held -= size


def write_made(path: Path, n_rows: int, n_clusters: int, rows: int) -> None:
    """Write clusters at all scales to a Zarr group, a block of `rows` rows at a time."""
    import zarr

    if path.exists():
        raise StoreError(f"{str(path)!r} exists already; remove it, or choose another folder.")
    X, _ = datasets.make_geometric(n_rows, 10, n_clusters=n_clusters, chunks=rows, random_state=0)
    path.parent.mkdir(parents=True, exist_ok=True)
    group = zarr.create_group(path)
    stored = group.create_array("X", shape=X.shape, chunks=(rows, X.shape[1]), dtype=X.dtype)
    for start in range(0, n_rows, rows):
        stored[start : start + rows] = X[start : start + rows].compute(scheduler="synchronous")
