"""Files that the commands write: stores of rows, and labels of all rows."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.cli.options import UsageError
from daskcoreset.core.messages import import_optional
from daskcoreset.core.typing import AnyArray
from daskcoreset.errors import InvalidTypeError, StoreError
from daskcoreset.execution.progress import count_reads, show_progress
from daskcoreset.execution.timeout import compute_all
from daskcoreset.inputs.arrays import RowArray
from daskcoreset.inputs.open import open_all
from daskcoreset.inputs.options import ReadOptions
from daskcoreset.storage.atomic import new_file, new_store
from daskcoreset.storage.group import HEADER, check_free
from daskcoreset.storage.locations import local_path, locate

if TYPE_CHECKING:
    import zarr

# Size of a chunk aimed at: reading is fastest from 8 to 32 MB.
CHUNK_BYTES = 16 * 2**20

_DIMENSIONS = {"X": ("row", "feature"), "y": ("row",), "sample_weight": ("row",)}

# Files of labels; what ends in .zarr is an array of this kind.
_FILES, _LABELS = (".parquet", ".csv", ".npy"), "labels"


def file_to_write(out: str, suffixes: tuple[str, ...], *, overwrite: bool) -> Path:
    """Return the path of a file to write, after a check of its suffix and of existing files."""
    target = local_path("OUT", out)
    if target.suffix not in suffixes:
        raise UsageError(f"OUT is {out!r}; end it with one of {', '.join(suffixes)}.")
    if target.exists() and not overwrite:
        raise StoreError(f"{out} exists", remedy="pass --overwrite, or choose another path")
    return target


def labels_to_write(out: str, source: str, *, overwrite: bool) -> Path:
    """Check, before the work, that labels can be saved, and return their path."""
    place = local_path("OUT", out)
    if place.suffix == ".zarr":
        check_target(out, overwrite=overwrite, kind=_LABELS)
    else:
        file_to_write(out, (*_FILES, ".zarr"), overwrite=overwrite)
        if place.suffix == ".parquet":
            import_optional("pyarrow")
    data = locate("IN", source)
    if data == place or data in place.parents:
        raise StoreError(f"{out} is a part of IN", remedy="choose another path")
    return place


def check_target(out: str, *, overwrite: bool, kind: str = "coreset") -> None:
    """Check, before the work, that a store can be created."""
    path = locate("OUT", out)
    if isinstance(path, str):
        return  # asked when saving: a question to a remote store may cost as much
    if path.suffix in {*_FILES, ".npz", ".h5"}:
        raise UsageError(
            f"OUT is {out!r}, and would be a Zarr store; pass a name that ends in .zarr."
        )
    check_free(path, kind, overwrite=overwrite)


def write_labels(
    labels: Any, path: Path, *, overwrite: bool, progress: bool | None = None
) -> dict[str, int]:
    """Compute labels and write them. The file is complete or absent.

    Parameters
    ----------
    labels : dask.array.Array of shape (n,), int32
        -1 for rows without a cluster.
    path : Path
        A Parquet, CSV or NumPy file, or the folder of a Zarr array.
    overwrite : bool
    progress : bool or None, default=None
        As in `daskcoreset.build`.

    Returns
    -------
    dict of str to int
        Number of rows written, and how many of them have no cluster.
    """
    with show_progress(progress, labels):
        (written,) = compute_all(labels)
    if path.suffix == ".zarr":
        import zarr

        may_replace = partial(check_free, path, _LABELS, overwrite=overwrite)
        with new_store(path, may_replace) as folder:
            header = {"kind": _LABELS, "members": ["c"]}
            named: Any = {"attributes": {HEADER: header}, "dimension_names": ("row",)}
            # A chunk of zeros, of rows of the first cluster, is no missing chunk.
            named["config"] = {"write_empty_chunks": True}
            zarr.create_array(folder, data=written, **named)
    else:
        with new_file(path) as scratch:
            _write_file(written, scratch, path.suffix)
    return {"rows": len(written), "without_cluster": int(np.count_nonzero(written == -1))}


def _write_file(labels: AnyArray, path: Path, suffix: str) -> None:
    if suffix == ".npy":
        with path.open("wb") as file:
            np.save(file, labels)
    elif suffix == ".csv":
        np.savetxt(path, labels, fmt="%d", header="cluster", comments="")
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"cluster": labels}), path)


def write_store(
    X: Any,
    store: str | os.PathLike[str],
    y: Any = None,
    sample_weight: Any = None,
    *,
    rows_per_chunk: int | None = None,
    progress: bool | None = None,
) -> dict[str, tuple[int, ...]]:
    """Write rows, labels and weights as a Zarr version 3 group.

    The group has the array "X". It also has "y" and "sample_weight" if they are passed. Chunks
    hold whole rows. Blocks are written one at a time, so the data may be larger than memory. The
    store is complete or absent, because it is renamed at the end.

    Parameters
    ----------
    X : path, or array-like of shape (n, d) other than a Dask collection
        As in `daskcoreset.build`. Sparse rows are written dense. Nothing is converted or
        cleaned.
    store : str or path-like
        Local path of a new or empty folder.
    y, sample_weight : array-like of shape (n,), or str, optional
        As in `daskcoreset.build`: a string names a member of X.
    rows_per_chunk : int, optional
        By default, chunks of X have 16 MiB.
    progress : bool or None, default=None
        As in `daskcoreset.build`.

    Returns
    -------
    dict of str to tuple of int
        Shape of every array that was written.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If an argument cannot be used. Nothing is written.
    StoreError
        If the path is not empty, or cannot be written to.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> write_store(np.eye(4), f"{folder}/eye.zarr", y=np.arange(4))
    {'X': (4, 4), 'y': (4,)}
    """
    path = _free_path(store)
    source, options = ReadOptions.of(X)
    parts = open_all(source, y, sample_weight, options).parts
    for name, part in parts.items():
        if not isinstance(part, RowArray):
            raise InvalidTypeError(
                f"{name} is a Dask collection", argument=name, remedy="write it with its to_zarr()"
            )
    rows = _rows_per_chunk(parts["X"]) if rows_per_chunk is None else rows_per_chunk
    with new_store(path, may_replace=lambda: _free_path(path) is None) as scratch:
        _fill(scratch, parts, rows, progress)
    return {name: part.shape for name, part in parts.items()}


def _free_path(store: str | os.PathLike[str]) -> Path:
    path = local_path("store", store)
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise StoreError(f"{path} exists", remedy="remove it, or choose another path")
    return path


def _rows_per_chunk(X: Any) -> int:
    row_bytes = X.dtype.itemsize * X.shape[1]
    return max(1, min(int(X.shape[0]), int(CHUNK_BYTES // row_bytes)))


def _fill(path: Path, parts: dict[str, Any], rows: int, progress: bool | None) -> None:
    import zarr

    group = zarr.create_group(path, zarr_format=3)
    sizes = {name: part.block_sizes(rows, len(part)) for name, part in parts.items()}
    with count_reads(progress, sum(map(len, sizes.values()))) as advance:
        for name, part in parts.items():
            array, start = _create(group, name, part, rows), 0
            held = _plain(part[0:0])
            for size in sizes[name]:
                held = np.concatenate([held, _plain(part[start : start + size])])
                start += size
                # What does not fill a chunk waits: a part of one would be read and written again.
                whole = len(held) if start == len(part) else len(held) - start % rows
                if whole > 0:
                    array[start - len(held) : start - len(held) + whole] = held[:whole]
                    held = held[whole:]
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
