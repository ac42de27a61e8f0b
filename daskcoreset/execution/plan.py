"""The plan of a build: passes, tasks and memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any, TypeVar

from daskcoreset.core.tables import counted, size_in_bytes
from daskcoreset.execution.lazy import Lazy, active_client
from daskcoreset.execution.local import compute_options, runs_here
from daskcoreset.execution.progress import show_progress
from daskcoreset.execution.waiting import ask
from daskcoreset.inputs.blocks import RowBlocks

T = TypeVar("T")

# A chunk as it lies on the disk, at worst incompressible, and as decoded.
_STORED_COPIES = 2

# Candidates as sent, gathered, scored and ordered.
_ROOT_COPIES = 4


# Temporaries of a leaf beside the points: weights, scores, distances, inclusion, float64.
_BYTES_PER_ROW = 56

# Schedulers of Dask whose processes run one task at a time.
_ONE_THREAD = ("sync", "synchronous", "single-threaded", "processes", "multiprocessing")


@dataclass(frozen=True)
class Forecast:
    """The predicted costs of a build.

    Attributes
    ----------
    reads : int
        Passes over the data. A block with too few candidates is read once more.
    n_blocks : int
    n_rows : int or None
        None if Dask does not know the number of rows.
    bytes_read : int or None
        Decoded bytes of all passes together. None if the number of rows is unknown.
    tasks : int
        Tasks that will run. Zero for one block in memory, which needs no scheduler.
    block_bytes : int or None
        Bytes of the largest block of points.
    threads : int
        Threads of the largest worker, which is the number of blocks that it holds at a time.
    peak_bytes : int or None
        Predicted peak memory of a worker, without the interpreter and its packages.
    decoder : str or None
        The decoder of the chunks of a Zarr array. None for other inputs.
    here : bool
        Whether threads of this process do the work although a client is active, because the data
        are in its memory.
    merged_chunks : int
        Chunks that cut the features of an xarray object. A task holds this number of chunks
        beside the rows that it makes of them. One if no chunk cuts the features.
    cut_bytes : int
        Bytes of the largest chunk of Dask that is cut into blocks. It stays in memory until the
        last block is done. Zero if no chunk is cut.
    """

    reads: int
    n_blocks: int
    n_rows: int | None
    bytes_read: int | None
    tasks: int
    block_bytes: int | None
    threads: int
    peak_bytes: int | None
    decoder: str | None
    here: bool
    merged_chunks: int
    cut_bytes: int

    def __str__(self) -> str:
        rows = "an unknown number of" if self.n_rows is None else f"{self.n_rows:,}"
        largest = (
            "" if self.block_bytes is None else f" of at most {size_in_bytes(self.block_bytes)}"
        )
        if self.cut_bytes:
            largest += f", cut from chunks of {size_in_bytes(self.cut_bytes)}"
        decoded = "" if self.decoder is None else f", decoded by {self.decoder}"
        if self.merged_chunks > 1:
            decoded += f", {self.merged_chunks} chunks of features merged in each task"
        tasks = counted(self.tasks, "task") if self.tasks else "no scheduler"
        return (
            f"{counted(self.reads, 'read')} of {rows} rows in "
            f"{counted(self.n_blocks, 'block')}{largest}: "
            f"{size_in_bytes(self.bytes_read)} in all{decoded}, {tasks}, "
            f"peak {size_in_bytes(self.peak_bytes)} per worker of {counted(self.threads, 'thread')}"
            f"{', here, for the data are in memory' if self.here else ''}"
        )


class Plan(Lazy[T]):
    """A build that has not run yet. `daskcoreset.plan` returns it.

    See :doc:`/choose`.

    It is a Dask collection of the coreset.

    Attributes
    ----------
    forecast : Forecast
        All predicted costs. The other attributes are the most important ones.
    reads : int
        Passes over the data.
    bytes_read : int or None
        Bytes of all passes together. None if the number of rows is unknown.
    peak_bytes : int or None
        Predicted peak memory of a worker, without the interpreter and its packages.

    Examples
    --------
    >>> import numpy as np, daskcoreset
    >>> daskcoreset.plan(np.zeros((1000, 4)), size=10)
    Plan(1 read of 1,000 rows in 1 block of at most 31.2 KiB: 31.2 KiB in all, no scheduler, ...)
    """

    def __init__(
        self,
        lazy: Lazy[T],
        blocks: RowBlocks,
        reads: int,
        n_candidates: float,
        progress: bool | None = False,
    ) -> None:
        super().__init__(lazy._graph, lazy._key, lazy._finish)  # noqa: SLF001 - of the base class
        self._blocks, self._reads, self._n_candidates = blocks, reads, n_candidates
        self._progress = progress

    @cached_property
    def forecast(self) -> Forecast:
        """All predicted costs."""
        return forecast(self._blocks, self, self._reads, self._n_candidates)

    @property
    def reads(self) -> int:
        """Passes over the data."""
        return self._reads

    @property
    def bytes_read(self) -> int | None:
        """Bytes of all passes together, or None if the number of rows is unknown."""
        return self.forecast.bytes_read

    @property
    def peak_bytes(self) -> int | None:
        """Predicted peak memory of a worker in bytes."""
        return self.forecast.peak_bytes

    def compute(self, **options: Any) -> T:
        """Build the coreset.

        Parameters
        ----------
        **options
            Options of ``dask.compute``, for example ``scheduler="processes"``.

        Returns
        -------
        Coreset
            Identical to the result of `daskcoreset.build`.

        Examples
        --------
        >>> import numpy as np, daskcoreset
        >>> plan = daskcoreset.plan(np.zeros((1000, 4)), size=10, random_state=0)
        >>> plan.compute()
        Coreset(lightweight: 10 of 1,000 rows, 4 features, no labels, seed 0)
        """
        with show_progress(self._progress, self):
            return super().compute(**{**compute_options(self._blocks), **options})

    def __repr__(self) -> str:
        return f"Plan({self.forecast}; compute() builds the coreset)"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>"


def forecast(
    blocks: RowBlocks,
    lazy: Lazy[Any],
    reads: int,
    candidates: float,
    threads: int | None = None,
) -> Forecast:
    """Predict what a build costs.

    Parameters
    ----------
    blocks : RowBlocks
    lazy : Lazy
        The graph of the build.
    reads : int
    candidates : float
        Rows that are gathered at the root.
    threads : int, optional
        Threads of a worker. By default those of the active client's largest worker, or one
        for every core.
    """
    here = runs_here(blocks)
    threads = threads or (1 if blocks.in_memory else threads_of_a_worker(here=here))
    peak = block_bytes = None
    points = _row_bytes(blocks)
    copies = _STORED_COPIES + (blocks.cube is not None)  # as it lies, and as rows
    leaf = _leaf_bytes(blocks, copies)
    if blocks.sizes is not None and points is not None and leaf is not None:
        root = min(candidates, sum(blocks.sizes)) * (points + _BYTES_PER_ROW) * _ROOT_COPIES
        whole = min(threads * blocks.cut_bytes, blocks.stored_bytes or 0)
        peak = int(min(threads, blocks.n_blocks) * leaf + whole + root)
        block_bytes = int(max(blocks.sizes) * points)
    return Forecast(
        reads=reads,
        n_blocks=blocks.n_blocks,
        n_rows=blocks.n_rows,
        bytes_read=None if blocks.stored_bytes is None else reads * blocks.stored_bytes,
        tasks=0 if blocks.in_memory else lazy.n_tasks,
        block_bytes=block_bytes,
        threads=threads,
        peak_bytes=peak,
        decoder=blocks.decoder,
        here=here,
        merged_chunks=1 if blocks.cube is None else blocks.cube.merged,
        cut_bytes=blocks.cut_bytes,
    )


def _row_bytes(blocks: RowBlocks) -> float | None:
    """Bytes of the points of a row once they are brought to form. None where not known."""
    if not blocks.sparse:
        return blocks.schema.dtype.itemsize * blocks.schema.n_features
    return None if blocks.stored_bytes is None else _stored_row_bytes(blocks)


def _stored_row_bytes(blocks: RowBlocks) -> float:
    """Bytes of a row once it is decoded."""
    return (blocks.stored_bytes or 0) / (blocks.n_rows or 1)


def _leaf_bytes(blocks: RowBlocks, copies: float) -> float | None:
    """Bytes that work on the largest block takes, which holds `copies` of it in its stored form."""
    points = _row_bytes(blocks)
    if blocks.sizes is None or points is None:
        return None
    read = 0.0 if blocks.are_views else copies * _stored_row_bytes(blocks)
    return max(blocks.sizes, default=0) * (read + points + _BYTES_PER_ROW)


def threads_of_a_worker(*, here: bool = False) -> int:
    """Return the threads that share the memory of one worker, where a build would run now.

    With `here`, those of this process although a client is active.
    """
    import dask

    scheduler = dask.config.get("scheduler", None)
    client = active_client() if scheduler in (None, "distributed", "dask.distributed") else None
    if client is not None and not here and (threads := ask(client, client.nthreads)):
        return int(max(threads.values()))
    if scheduler in _ONE_THREAD:
        return 1
    from dask.system import CPU_COUNT

    return int(dask.config.get("num_workers", None) or CPU_COUNT)
