"""Arrays and schedulers that count what is asked of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import dask
import dask.array as da
import numpy as np


class CountingScheduler:
    """A Dask scheduler that counts how often it is called, and then runs synchronously.

    Examples
    --------
    >>> import dask.array as da
    >>> scheduler = CountingScheduler()
    >>> with dask.config.set(scheduler=scheduler):
    ...     lazy = da.ones(4, chunks=2).sum()
    >>> scheduler.calls
    0
    """

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, graph: Any, keys: Any, **options: Any) -> Any:
        """Run a graph, as Dask asks schedulers to."""
        self.calls += 1
        return dask.get(graph, keys, **options)


@dataclass(eq=False)
class CountingArray:
    """Rows with shape, dtype and slicing that count how often each of them is read.

    Examples
    --------
    >>> rows = CountingArray(np.zeros((3, 2)))
    >>> rows[1:].shape, rows.reads
    ((2, 2), array([0, 1, 1]))
    """

    array: np.ndarray[Any, Any]
    reads: Any = field(init=False)

    def __post_init__(self) -> None:
        self.reads = np.zeros(len(self.array), dtype=np.int64)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return tuple(self.array.shape)

    @property
    def ndim(self) -> int:
        """Number of its dimensions."""
        return self.array.ndim

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the array."""
        dtype: np.dtype[Any] = self.array.dtype
        return dtype

    def __getitem__(self, index: Any) -> np.ndarray[Any, Any]:
        self.reads[index[0] if isinstance(index, tuple) else index] += 1
        rows: np.ndarray[Any, Any] = self.array[index]
        return rows

    def lazy(self, rows: int) -> Any:
        """Return it as a Dask array with blocks of so many rows."""
        return da.from_array(self, chunks=(rows, *self.shape[1:]))
