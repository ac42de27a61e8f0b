"""Labels of all rows as a file or a Zarr array, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.atomic import new_file, new_store
from daskcoreset.core.blocks import Block
from daskcoreset.core.contents import HEADER
from daskcoreset.core.typing import AnyArray
from daskcoreset.execution.engine import map_rows
from daskcoreset.execution.plan import threads_of_a_worker
from daskcoreset.execution.progress import count_reads
from daskcoreset.execution.waiting import compute_all
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.solvers.kmeans import nearest_labels

if TYPE_CHECKING:
    from daskcoreset.estimators.kmeans import CoresetKMeans

# Kinds of files; whatever ends otherwise is a Zarr array.
FILES = (".parquet", ".csv", ".npy")

# Of the attribute that says what a Zarr array is.
KIND = "labels"

# Name of the column, as that of the series which models return for data frames.
_COLUMN = "cluster"

# What rows with NaN or infinity have in place of a cluster.
_NO_CLUSTER = -1

# Labels that are written at once: a chunk of a Zarr array, or a row group.
_ROWS = 2**20

# Blocks that a thread works on before its labels are written.
_BLOCKS = 4


def labels_of(model: CoresetKMeans, blocks: RowBlocks) -> Any:
    """Define the number of the nearest center of every row, -1 for rows that are left out.

    Returns
    -------
    dask.array.Array of shape (n,), int32
    """
    blocks = model._checked(blocks)  # noqa: SLF001 - as its `predict` does
    work = partial(_nearest, centers=model.cluster_centers_)
    return map_rows(blocks, work, dtype=np.int32, missing=_NO_CLUSTER)


def write_labels(
    labels: Any, path: Path, *, may_replace: Callable[[], bool], progress: bool | None = None
) -> dict[str, int]:
    """Compute labels, some blocks at a time, and write them; the file is whole or absent.

    Parameters
    ----------
    labels : dask.array.Array of shape (n,), int32
        Of chunks that are known.
    path : Path
        A file of one of the kinds in `FILES`, or the folder of a Zarr array.
    may_replace : callable
        As in `daskcoreset.core.atomic.new_directory`, for a Zarr array.
    progress : bool or None, default=None
        As in `daskcoreset.build`.

    Returns
    -------
    dict of str to int
        Rows that were written, and those of them that have no cluster.
    """
    suffix = path.suffix if path.suffix in FILES else ""
    n_rows, missing = int(labels.shape[0]), 0
    with (
        new_file(path) if suffix else new_store(path, may_replace) as scratch,
        _WRITERS[suffix](scratch, n_rows) as write,
    ):
        for piece in _pieces(_computed(labels, progress), _ROWS):
            write(piece)
            missing += int(np.count_nonzero(piece == _NO_CLUSTER))
    return {"rows": n_rows, "without_cluster": missing}


def _nearest(block: Block, centers: AnyArray) -> AnyArray:
    return nearest_labels(block.points, centers)


def _computed(labels: Any, progress: bool | None) -> Iterator[AnyArray]:
    n_blocks, step = labels.numblocks[0], _BLOCKS * threads_of_a_worker(here=True)
    with count_reads(progress, n_blocks) as advance:
        for start in range(0, n_blocks, step):
            some = labels.blocks[start : start + step]
            yield compute_all(some)[0]
            advance(some.numblocks[0])


def _pieces(blocks: Iterator[AnyArray], rows: int) -> Iterator[AnyArray]:
    """Cut what follows one another into pieces of so many rows; the last one may have fewer."""
    waiting = np.empty(0, dtype=np.int32)
    for block in blocks:
        waiting = np.concatenate([waiting, block])
        while len(waiting) >= rows:
            yield waiting[:rows]
            waiting = waiting[rows:]
    if len(waiting):
        yield waiting


Write = Callable[[AnyArray], object]


@contextmanager
def _parquet(path: Path, n_rows: int) -> Iterator[Write]:
    del n_rows
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(_COLUMN, pa.int32())])
    with pq.ParquetWriter(path, schema) as file:
        yield lambda piece: file.write_table(pa.table({_COLUMN: piece}, schema=schema))


@contextmanager
def _csv(path: Path, n_rows: int) -> Iterator[Write]:
    del n_rows
    with path.open("w", encoding="ascii", newline="") as file:
        file.write(f"{_COLUMN}\n")
        yield lambda piece: file.writelines(f"{label}\n" for label in piece.tolist())


@contextmanager
def _npy(path: Path, n_rows: int) -> Iterator[Write]:
    header = {"descr": "<i4", "fortran_order": False, "shape": (n_rows,)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        yield lambda piece: file.write(piece.astype("<i4").tobytes())


@contextmanager
def _zarr(path: Path, n_rows: int) -> Iterator[Write]:
    import zarr

    array = zarr.create_array(
        path,
        shape=(n_rows,),
        dtype="int32",
        chunks=(min(_ROWS, n_rows),),
        dimension_names=("row",),
        attributes={HEADER: {"kind": KIND}},
        # A chunk of zeros, of rows of the first cluster, is no lost chunk.
        config={"write_empty_chunks": True},
    )
    start = 0

    def write(piece: AnyArray) -> None:
        nonlocal start
        array[start : start + len(piece)] = piece
        start += len(piece)

    yield write


_WRITERS = {".parquet": _parquet, ".csv": _csv, ".npy": _npy, "": _zarr}
