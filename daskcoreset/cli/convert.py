"""Rows of any file as a Zarr store that `daskcoreset.build` reads fast, block by block."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.atomic import new_store
from daskcoreset.core.errors import (
    InvalidInputError,
    InvalidTypeError,
    MissingDependencyError,
    StoreError,
)
from daskcoreset.core.locations import local_path
from daskcoreset.core.typing import AnyArray
from daskcoreset.core.validation import as_int
from daskcoreset.execution.progress import count_reads
from daskcoreset.inputs.containers import member_names
from daskcoreset.inputs.opening import open_all

if TYPE_CHECKING:
    import zarr

# Size of a chunk aimed at: reading is fastest from 8 to 32 MB.
CHUNK_BYTES = 16 * 2**20

_DIMENSIONS = {"X": ("row", "feature"), "y": ("row",), "sample_weight": ("row",)}


def write_store(
    X: Any,
    store: str | os.PathLike[str],
    y: Any = None,
    sample_weight: Any = None,
    *,
    rows_per_chunk: int | None = None,
    progress: bool | None = None,
) -> dict[str, tuple[int, ...]]:
    """Write rows, and what belongs to them, as a Zarr version 3 group.

    The group has the arrays "X" and, where given, "y" and "sample_weight", in chunks of
    whole rows. Blocks are written one at a time, so the data may be larger than memory. The
    store is whole or absent: it is filled beside its place and then renamed.

    Parameters
    ----------
    X : path, or array-like of shape (n, d) that is no Dask collection
        As in `daskcoreset.build`. Sparse rows are written dense. Nothing is converted or
        cleaned.
    store : str or path-like
        Local path where nothing is yet.
    y, sample_weight : array-like of shape (n,), or str, optional
        As in `daskcoreset.build`: a string names a member of X.
    rows_per_chunk : int, optional
        By default as many as make 16 MiB of X.
    progress : bool or None, default=None
        As in `daskcoreset.build`.

    Returns
    -------
    dict of str to tuple of int
        Shape of every array that was written.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        When an argument cannot be used; nothing was written.
    StoreError
        When something is there already, or the disk refused.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> write_store(np.eye(4), f"{folder}/eye.zarr", y=np.arange(4))
    {'X': (4, 4), 'y': (4,)}
    """
    if rows_per_chunk is not None:
        as_int("rows_per_chunk", rows_per_chunk, remedy="pass more rows")
    path = _free_path(store)
    opened = open_all(X, y, sample_weight)
    for name in opened.arrays:
        raise InvalidTypeError(f"{name} is a Dask collection; write it with its to_zarr().")
    parts = opened.sources
    rows = _rows_per_chunk(parts["X"]) if rows_per_chunk is None else rows_per_chunk
    with new_store(path, may_replace=lambda: _free_path(path) is None) as scratch:
        _fill(scratch, parts, rows, progress)
    return {name: part.shape for name, part in parts.items()}


def find_members(path: Any) -> tuple[str, ...]:
    """Return the names of the arrays of a Zarr group, HDF5 or .npz file; none for other files.

    Parameters
    ----------
    path : str or path-like
        Input of `write_store`. That it can be read is not checked here.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> find_members("missing.parquet")
    ()
    """
    try:
        return member_names(path).arrays
    except (InvalidInputError, MissingDependencyError):
        return ()  # opening it for reading says what is wrong


def _free_path(store: str | os.PathLike[str]) -> Path:
    path = local_path("store", store)
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise StoreError(f"{path} exists; remove it or choose another path")
    return path


def _rows_per_chunk(X: Any) -> int:
    row_bytes = X.dtype.itemsize * X.shape[1]
    return max(1, min(int(X.shape[0]), int(CHUNK_BYTES // row_bytes)))


def _fill(path: Path, parts: dict[str, Any], rows: int, progress: bool | None) -> None:
    import zarr

    group = zarr.create_group(path, zarr_format=3)
    arrays = {name: _create(group, name, part, rows) for name, part in parts.items()}
    sizes = parts["X"].cut(rows)
    start, written = 0, 0
    waiting: dict[str, list[AnyArray]] = {name: [] for name in parts}
    with count_reads(progress, len(sizes)) as advance:
        for size in sizes:
            stop = start + size
            for name, part in parts.items():
                waiting[name].append(_plain(part.loader(start, stop)()))
            start = stop
            # What does not fill a chunk waits, for a part of one would be read and written again.
            until = stop if stop == parts["X"].shape[0] else stop - stop % rows
            if until > written:
                for name, blocks in waiting.items():
                    block = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
                    arrays[name][written:until] = block[: until - written]
                    waiting[name] = [block[until - written :]] if until < stop else []
                written = until
            advance(1)


def _create(group: zarr.Group, name: str, part: Any, rows: int) -> Any:
    from zarr.codecs import BloscCodec

    text = part.dtype.kind in "OUT"  # labels only; open_all lets no other part be text
    return group.create_array(
        name,
        shape=part.shape,
        dtype="string" if text else part.dtype.newbyteorder("<"),
        chunks=(min(rows, part.shape[0]), *part.shape[1:]),
        # Decodes 1.6 times as fast as the default, zstd; reading is bound by that.
        compressors=[BloscCodec(cname="lz4", shuffle="shuffle", typesize=part.dtype.itemsize)],
        dimension_names=_DIMENSIONS[name],
        # A chunk of zeros, such as labels of one class, is no lost chunk.
        config={"write_empty_chunks": True},
    )


def _plain(block: Any) -> AnyArray:
    """Return an array that Zarr can store."""
    if hasattr(block, "toarray"):
        return np.asarray(block.toarray())
    array = np.asarray(block)
    return array.astype(str) if array.dtype.hasobject else array
