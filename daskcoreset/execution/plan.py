"""The plan of a build: passes, tasks and memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar

from dask.utils import format_bytes

from daskcoreset.core.deadline import in_time
from daskcoreset.core.messages import warn_user
from daskcoreset.core.tables import counted
from daskcoreset.execution.lazy import Lazy
from daskcoreset.execution.local import compute_options, reading_threads
from daskcoreset.execution.progress import show_progress
from daskcoreset.execution.timeout import active_client
from daskcoreset.inputs.blocks import RowBlocks

T = TypeVar("T")

# A chunk as it lies on the disk, at worst incompressible, and as decoded.
_STORED_COPIES = 2

# Candidates as sent, gathered, scored and ordered.
_ROOT_COPIES = 4

# Temporaries of a leaf beside the points: weights, scores, distances, inclusion, float64.
_BYTES_PER_ROW = 56


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
        Package that decodes stored rows, such as "zarrs", "zarr", "pyarrow" or "h5py". None for
        rows in memory, files of NumPy, cubes and Dask collections.
    merged_chunks : int
        Chunks that cut the features of an xarray object. A task holds this number of chunks
        beside the rows that it makes of them. One if no chunk cuts the features.
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
    merged_chunks: int

    def __str__(self) -> str:
        rows = "an unknown number of" if self.n_rows is None else f"{self.n_rows:,}"
        largest = f" of at most {format_bytes(self.block_bytes)}" if self.block_bytes else ""
        size, peak = (
            "an unknown size" if count is None else format_bytes(count)
            for count in (self.bytes_read, self.peak_bytes)
        )
        decoded = "" if self.decoder is None else f", decoded by {self.decoder}"
        tasks = counted(self.tasks, "task") if self.tasks else "no scheduler"
        if self.merged_chunks > 1:
            tasks += f", {self.merged_chunks} chunks of features merged in each task"
        return (
            f"{counted(self.reads, 'read')} of {rows} rows in "
            f"{counted(self.n_blocks, 'block')}{largest}: "
            f"{size} in all{decoded}, {tasks}, "
            f"peak {peak} per worker of {counted(self.threads, 'thread')}"
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
    Plan(1 read of 1,000 rows in 1 block of at most 31.25 kiB: 31.25 kiB in all, ...)
    """

    def __init__(
        self,
        lazy: Lazy[T],
        blocks: RowBlocks,
        reads: int,
        n_candidates: float,
        progress: bool | None = False,
    ) -> None:
        super().__init__(lazy._graph, lazy._key, *lazy._finish)  # noqa: SLF001 - of the base class
        self._blocks, self._reads, self._n_candidates = blocks, reads, n_candidates
        self._progress = progress

    @cached_property
    def forecast(self) -> Forecast:
        """All predicted costs. It warns if they exceed the memory of a worker."""
        blocks = self._blocks
        threads, room = (1, math.inf) if blocks.in_memory else _threads_and_memory(blocks)
        peak = block_bytes = None
        if blocks.sizes is not None and blocks.stored_bytes is not None:
            stored = blocks.stored_bytes / (blocks.n_rows or 1)
            points = (
                stored if blocks.sparse else blocks.schema.dtype.itemsize * blocks.schema.n_features
            )
            block_bytes = int(max(blocks.sizes, default=0) * points)
            peak = _peak_bytes(blocks, points, threads, self._n_candidates)
            if peak > room:
                warn_user(
                    f"the build takes {format_bytes(peak)} per worker, and a worker has "
                    f"{format_bytes(int(room))}; pass smaller chunks, or give workers fewer "
                    "threads or more memory"
                )
        return Forecast(
            reads=self._reads,
            n_blocks=blocks.n_blocks,
            n_rows=blocks.n_rows,
            bytes_read=None if blocks.stored_bytes is None else self._reads * blocks.stored_bytes,
            tasks=0 if blocks.in_memory else self._n_tasks(),
            block_bytes=block_bytes,
            threads=threads,
            peak_bytes=peak,
            decoder=getattr(blocks.arrays["X"], "decoder", None),
            merged_chunks=1 if blocks.cube is None else blocks.cube.merged,
        )

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
            own = {} if "scheduler" in options else compute_options(self._blocks)
            return super().compute(**{**own, **options})

    def _n_tasks(self) -> int:
        from dask._task_spec import DataNode

        graph = self.__dask_optimize__(self._graph, [self._key])
        return sum(not isinstance(node, DataNode) for node in graph.values())

    def __repr__(self) -> str:
        return f"Plan({self.forecast}; compute() builds the coreset)"


def _peak_bytes(blocks: RowBlocks, points: float, threads: int, candidates: float) -> int:
    """Predict the peak of a worker, from the bytes of a row of points."""
    sizes, stored_bytes = blocks.sizes or (0,), blocks.stored_bytes or 0
    copies = _STORED_COPIES + (blocks.cube is not None)  # as it lies, and as rows
    read = 0.0 if blocks.are_views else copies * stored_bytes / (blocks.n_rows or 1)
    leaf = max(sizes) * (read + points + _BYTES_PER_ROW)
    root = min(candidates, sum(sizes)) * (points + _BYTES_PER_ROW) * _ROOT_COPIES
    # A chunk that is cut into blocks stays until the last of them is done.
    whole = min(threads * blocks.cut_bytes, stored_bytes)
    return int(min(threads, blocks.n_blocks) * leaf + whole + root)


def _threads_and_memory(blocks: RowBlocks) -> tuple[int, float]:
    """Return the threads of the largest worker, and the memory of the smallest one."""
    client = None if blocks.are_views else active_client()
    if client is not None:
        ask = partial(client.scheduler_info, n_workers=-1)
        workers = in_time(ask, lambda: "the scheduler has not answered")["workers"].values()
        if workers:
            memory = min(worker["memory_limit"] or math.inf for worker in workers)
            return max(worker["nthreads"] for worker in workers), memory
    return reading_threads(blocks), math.inf
