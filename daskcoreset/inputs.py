"""Anything array-like, brought to row blocks of ``(X, y, sample_weight)``.

What Dask already holds stays a Dask collection, its chunks merged, split or grouped.
Everything else becomes tasks that read their own rows (`daskcoreset.sources`). Nothing is
computed and no row is read here.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from daskcoreset.blocks import Rules, promoted_dtype
from daskcoreset.errors import InvalidInputError, InvalidTypeError, MissingDependencyError
from daskcoreset.sources import (
    ArraySource,
    FrameSource,
    HDF5Source,
    IndexedSource,
    Loader,
    MemmapSource,
    ParquetSource,
    Source,
)

__all__ = ["BlockSpec", "RowBlocks", "open_part", "row_blocks"]

TARGET_BYTES = 32 * 2**20
"""Block size aimed at: small enough for memory, large enough to hide a task's overhead."""

SMALL_BYTES = 8 * 2**20
"""Chunks below this are grouped when there are many of them."""

HUGE_BYTES = 256 * 2**20
"""Chunks above this are split."""

FEW_BLOCKS = 64
"""So many chunks cost nothing, however small they are."""


@dataclass(frozen=True)
class BlockSpec:
    """The number of a block and the loaders of the parts that are not Dask collections."""

    number: int
    X: Loader | None = None
    y: Loader | None = None
    sample_weight: Loader | None = None


@dataclass(frozen=True, eq=False)
class RowBlocks:
    """The data, cut into blocks of rows.

    Attributes
    ----------
    rules : Rules
        Number of features, promoted dtype, treatment of invalid rows.
    specs : tuple of BlockSpec
        One for every block.
    sizes : tuple of int, or None
        Rows of every block; None where Dask does not know them.
    arrays : dict
        Dask arrays among ``"X"``, ``"y"``, ``"sample_weight"``, with these row chunks.
    has_labels, sparse : bool
    stored_bytes : int or None
        Bytes of all parts once decoded; None when the number of rows is unknown.
    name : str or None
        Where the rows come from.
    columns : tuple of str or None
    """

    rules: Rules
    specs: tuple[BlockSpec, ...]
    sizes: tuple[int, ...] | None
    arrays: dict[str, Any]
    has_labels: bool
    sparse: bool
    stored_bytes: int | None
    name: str | None
    columns: tuple[str, ...] | None
    in_memory: bool

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.specs)

    @property
    def n_rows(self) -> int | None:
        """Number of rows, or None when it is unknown before reading."""
        return None if self.sizes is None else sum(self.sizes)

    def select(self, positions: list[int]) -> RowBlocks:
        """Return some of the blocks; they keep their numbers."""
        return replace(
            self,
            specs=tuple(self.specs[i] for i in positions),
            sizes=None if self.sizes is None else tuple(self.sizes[i] for i in positions),
            arrays={name: array.blocks[positions] for name, array in self.arrays.items()},
        )


def row_blocks(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    chunks: int | Literal["auto"] = "auto",
    on_invalid: Literal["raise", "drop"] = "raise",
) -> RowBlocks:
    """Bring any input to row blocks.

    Parameters
    ----------
    X : array-like of shape (n, d), or path
        See `daskcoreset.build` for what is accepted.
    y, sample_weight : array-like of shape (n,), str or None
        A string names a member of the same Zarr group, data frame, Parquet or .npz file.
    chunks : int or "auto", default="auto"
        Rows per block. "auto" keeps the chunks of a store or Dask array where they are
        reasonable (8 to 256 MiB) and aims at 32 MiB otherwise.
    on_invalid : {"raise", "drop"}, default="raise"
        What becomes of rows with NaN or infinity.

    Returns
    -------
    RowBlocks

    Raises
    ------
    InvalidInputError
        For a wrong number of dimensions, no rows or columns, lengths that differ.
    InvalidTypeError
        For types and dtypes that hold no real numbers.

    Examples
    --------
    >>> blocks = row_blocks(np.zeros((10, 3), dtype=np.int16), chunks=4)
    >>> blocks.sizes, blocks.rules.dtype
    ((4, 4, 2), dtype('float32'))
    """
    _check_options(chunks, on_invalid)
    parts = _open_all(X, y, sample_weight)
    _check_parts(parts)
    rows_wanted = None if chunks == "auto" else int(chunks)
    n_features = int(parts["X"].shape[1])
    dtype = promoted_dtype(parts["X"].dtype)
    parts, sizes = _align(parts, rows_wanted, n_features * dtype.itemsize)
    arrays = {name: part for name, part in parts.items() if _is_dask_array(part)}
    n_blocks = len(sizes) if sizes is not None else parts["X"].numblocks[0]
    source = parts["X"]
    return RowBlocks(
        rules=Rules(n_features, dtype, on_invalid),
        specs=_specs(parts, sizes, n_blocks),
        sizes=sizes,
        arrays=arrays,
        has_labels="y" in parts,
        sparse=_is_sparse(source),
        stored_bytes=_stored_bytes(parts, sizes),
        name=getattr(source, "name", None) if isinstance(source, Source) else _given_name(X),
        columns=getattr(source, "columns", None),
        in_memory=all(isinstance(part, (ArraySource, FrameSource)) for part in parts.values()),
    )


def _check_options(chunks: Any, on_invalid: Any) -> None:
    if chunks != "auto" and (isinstance(chunks, bool) or not isinstance(chunks, (int, np.integer))):
        raise InvalidTypeError(
            f'chunks must be a number of rows or "auto", got {chunks!r}; pass an int.'
        )
    if chunks != "auto" and chunks < 1:
        raise InvalidInputError(f"chunks must be at least 1 row, got {chunks}; pass a larger int.")
    if on_invalid not in ("raise", "drop"):
        raise InvalidInputError(
            f'on_invalid must be "raise" or "drop", got {on_invalid!r}; pass one of these.'
        )


# --- opening -----------------------------------------------------------------------------


def _open_all(X: Any, y: Any, sample_weight: Any) -> dict[str, Any]:
    X, beside = _split_members(X, {"y": y, "sample_weight": sample_weight})
    parts = {"X": open_part(X, "X")}
    for name, part in beside.items():
        if part is not None:
            parts[name] = part if isinstance(part, Source) else open_part(part, name)
    return parts


def _split_members(X: Any, beside: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Take y and sample_weight out of a container that holds them with X."""
    if isinstance(X, (str, os.PathLike)):
        X = _open_path(os.fspath(X), beside)
    if isinstance(X, ParquetSource):
        chosen = {name: key for name, key in beside.items() if isinstance(key, str)}
        flat = {name: ParquetSource(X.path, (key,), flat=True) for name, key in chosen.items()}
        rest = tuple(c for c in X.columns or () if c not in chosen.values())
        return ParquetSource(X.path, rest), {**beside, **flat}
    if hasattr(X, "columns") and hasattr(X, "iloc"):
        chosen = {name: key for name, key in beside.items() if isinstance(key, str)}
        for key in chosen.values():
            if key not in X.columns:
                raise InvalidInputError(
                    f"column {key!r} is not in X, which has {list(X.columns)}; name one of these."
                )
        columns = {name: X[key] for name, key in chosen.items()}
        return X.drop(columns=list(chosen.values())) if chosen else X, {**beside, **columns}
    if _is_group(X):
        return _group_members(X, beside)
    return X, beside


def _open_path(path: str, beside: dict[str, Any]) -> Any:
    remote = "://" in path
    if not remote and not os.path.exists(path):
        raise InvalidInputError(f"X names no file or folder: {path!r}; check the path.")
    lower = path.rstrip("/").lower()
    if lower.endswith((".npy",)):
        return np.load(path, mmap_mode="r", allow_pickle=False)
    if lower.endswith(".npz"):
        return _open_npz(path, beside)
    if lower.endswith((".h5", ".hdf5", ".hdf")):
        return _open_hdf5(path)
    if lower.endswith((".parquet", ".parq", ".pq")) or _holds_parquet(path):
        _need("pyarrow", "dataframe")
        return ParquetSource(path)
    import zarr  # noqa: PLC0415 - a build from memory does not need it

    try:
        return zarr.open(path, mode="r")
    except Exception as error:
        raise InvalidInputError(
            f"X cannot be opened as a Zarr store: {path!r} ({error}); give a Zarr, Parquet, "
            f".npy, .npz or HDF5 path, or an array."
        ) from error


def _holds_parquet(path: str) -> bool:
    if not os.path.isdir(path):
        return False
    return any(file.endswith((".parquet", ".parq", ".pq")) for file in os.listdir(path))


def _open_npz(path: str, beside: dict[str, Any]) -> Any:
    with np.load(path, allow_pickle=False) as file:
        if "X" in file:
            X: Any = file["X"]
        elif {"data", "indices", "indptr", "shape"} <= set(file.files):
            import scipy.sparse as sp  # noqa: PLC0415

            csr = (file["data"], file["indices"], file["indptr"])
            X = sp.csr_array(csr, shape=tuple(file["shape"]))
        else:
            raise InvalidInputError(
                f"X: {path!r} holds {file.files}, but no array 'X'; rename the array or load it."
            )
        for name, key in list(beside.items()):
            if isinstance(key, str):
                if key not in file:
                    raise InvalidInputError(
                        f"{name}: {path!r} holds {file.files}, but no {key!r}; name one of these."
                    )
                beside[name] = file[key]
    return X


def _open_hdf5(path: str) -> Any:
    h5py = _need("h5py", "hdf5")
    found: list[str] = []
    with h5py.File(path, "r") as file:
        file.visititems(
            lambda name, item: found.append(name) if getattr(item, "ndim", 0) == 2 else None
        )
        if len(found) != 1:
            raise InvalidInputError(
                f"X: {path!r} holds the two-dimensional data sets {found}; pass the h5py data "
                f"set that is meant."
            )
        return HDF5Source(file[found[0]])


def _is_group(X: Any) -> bool:
    return type(X).__module__.split(".")[0] == "zarr" and hasattr(X, "array_keys")


def _group_members(group: Any, beside: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    names = sorted(group.array_keys())
    tables = [name for name in names if group[name].ndim == 2]
    name = "X" if "X" in names else tables[0] if len(tables) == 1 else None
    if name is None:
        raise InvalidInputError(
            f"X is a Zarr group with the arrays {names}; name one of them 'X' or pass the array."
        )
    members = dict(beside)
    for part, key in beside.items():
        if isinstance(key, str):
            if key not in names:
                raise InvalidInputError(
                    f"{part}: the Zarr group has the arrays {names}, but no {key!r}; name one "
                    f"of these."
                )
            members[part] = group[key]
    return group[name], members


def open_part(part: Any, name: str) -> Any:
    """Turn one argument into a Dask array or a `Source`.

    Parameters
    ----------
    part : array-like
    name : str
        Name of the argument, for messages.

    Returns
    -------
    dask.array.Array or Source

    Raises
    ------
    InvalidTypeError
        If `part` is none of the accepted types.
    """
    if isinstance(part, Source) or _is_dask_array(part):
        return _checked_array(part, name)
    module = type(part).__module__.split(".")[0]
    if module == "xarray":
        return _open_xarray(part, name)
    if hasattr(part, "__dask_graph__"):
        return _checked_array(_open_dask_frame(part, name), name)
    if module == "pandas":
        return _checked_array(FrameSource(part), name)
    if module == "h5py":
        return _checked_array(HDF5Source(part), name)
    if module == "zarr" and hasattr(part, "chunks"):
        return _checked_array(_open_zarr(part), name)
    if hasattr(part, "tocsr"):
        import scipy.sparse as sp  # noqa: PLC0415

        return _checked_array(ArraySource(sp.csr_array(part.tocsr())), name)
    if isinstance(part, np.memmap):
        return _checked_array(MemmapSource.of(part), name)
    if isinstance(part, np.ndarray):
        return _checked_array(ArraySource(part), name)
    if all(hasattr(part, attribute) for attribute in ("shape", "dtype", "__getitem__")):
        return _checked_array(IndexedSource(part), name)
    if isinstance(part, (list, tuple)):
        return _checked_array(ArraySource(np.asarray(part)), name)
    raise InvalidTypeError(
        f"{name} is a {type(part).__name__}; pass a Dask, NumPy, Zarr, HDF5, xarray, SciPy "
        f"sparse or pandas object, or a path."
    )


def _open_zarr(array: Any) -> Source:
    stored_together = array.shards or array.chunks
    name = str(getattr(array, "store_path", "")) or None
    return IndexedSource(array, granularity=int(stored_together[0]), name=name)


def _open_xarray(part: Any, name: str) -> Any:
    if not hasattr(part, "dims") or not hasattr(part, "variable"):
        raise InvalidTypeError(
            f"{name} is an xarray {type(part).__name__}; pass one DataArray, for example "
            f'{name}["variable"].'
        )
    data = part.variable._data  # `.data` would load a lazily opened file whole
    if isinstance(data, np.ndarray) or hasattr(data, "__dask_graph__"):
        return open_part(part.data, name)
    source = IndexedSource(part, name=None if part.name is None else str(part.name))
    return _checked_array(source, name)


def _open_dask_frame(part: Any, name: str) -> Any:
    from daskcoreset.sources import frame_dtype, frame_to_numpy  # noqa: PLC0415

    if not hasattr(part, "map_partitions") or not hasattr(part, "_meta"):
        raise InvalidTypeError(
            f"{name} is a {type(part).__name__}; pass a Dask array or a Dask DataFrame."
        )
    import dask.array as da  # noqa: PLC0415

    meta = part._meta
    dtype = frame_dtype(meta)
    empty = np.empty((0,) * meta.ndim, dtype=dtype)
    delayed = part.map_partitions(frame_to_numpy, dtype, meta=empty)
    array = delayed if isinstance(delayed, da.Array) else part.to_dask_array()
    if meta.ndim == 2:
        shape = (np.nan, meta.shape[1])
        chunks: Any = ((np.nan,) * part.npartitions, (meta.shape[1],))
    else:
        shape, chunks = (np.nan,), ((np.nan,) * part.npartitions,)
    graph, keys = array.__dask_graph__(), array.__dask_keys__()
    del shape, keys
    return da.Array(graph, array.name, chunks, meta=np.empty((0,) * meta.ndim, dtype=dtype))


def _need(module: str, extra: str) -> Any:
    import importlib  # noqa: PLC0415

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f'X needs the package {module}; install it with: pip install "daskcoreset[{extra}]".'
        ) from error


# --- checking ----------------------------------------------------------------------------


def _is_dask_array(part: Any) -> bool:
    return hasattr(part, "__dask_graph__") and hasattr(part, "numblocks")


def _is_sparse(part: Any) -> bool:
    held = getattr(part, "_meta", None) if _is_dask_array(part) else getattr(part, "array", None)
    return hasattr(held, "tocsr")


def _checked_array(part: Any, name: str) -> Any:
    if _is_dask_array(part) and hasattr(part, "expr"):
        raise InvalidTypeError(
            f"{name} is a Dask array of the array query planner, which loses the blocks; set "
            f"DASK_ARRAY__QUERY_PLANNING=False before dask is imported."
        )
    wanted = 2 if name == "X" else 1
    if len(part.shape) != wanted:
        remedy = (
            "pass one row per sample, for example X.reshape(len(X), -1)"
            if name == "X"
            else f"pass a vector, for example {name}.ravel()"
        )
        raise InvalidInputError(
            f"{name} must have {wanted} dimension{'s' * (wanted - 1)}, found shape "
            f"{tuple(part.shape)}; {remedy}."
        )
    kind = np.dtype(part.dtype).kind
    if name != "y" and kind not in "fiub":
        raise InvalidTypeError(
            f"{name} must hold real numbers, found dtype {part.dtype}; convert it, for example "
            f"with {name}.astype('float32'), or drop the columns that are not numbers."
        )
    return part


def _check_parts(parts: dict[str, Any]) -> None:
    X = parts["X"]
    if X.shape[1] == 0:
        raise InvalidInputError("X has no columns; pass at least one feature.")
    if X.shape[0] == 0:
        raise InvalidInputError("X has no rows; pass at least one.")
    for name, part in parts.items():
        lengths = part.shape[0], X.shape[0]
        if not any(np.isnan(lengths)) and lengths[0] != lengths[1]:
            raise InvalidInputError(
                f"{name} has {lengths[0]} entries but X has {lengths[1]} rows; pass one entry "
                f"for every row."
            )


# --- cutting -----------------------------------------------------------------------------


def _align(
    parts: dict[str, Any], rows_wanted: int | None, row_bytes: int
) -> tuple[dict[str, Any], tuple[int, ...] | None]:
    """Give all parts the same row blocks; sizes are None where Dask does not know them."""
    X = parts["X"]
    if not _is_dask_array(X):
        default = max(1, TARGET_BYTES // row_bytes)
        if isinstance(X, (ArraySource, FrameSource)) and X.shape[0] * row_bytes <= HUGE_BYTES:
            default = X.shape[0]  # of moderate size in memory: one block, no scheduler
        sizes = X.cut(rows_wanted or default)
        return _rechunked(parts, sizes), sizes
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    known = not any(np.isnan(X.chunks[0]))
    if known:
        sizes = _row_chunks(X.chunks[0], rows_wanted, row_bytes)
        return _rechunked({**parts, "X": X}, sizes), sizes
    _check_unknown(parts, X.numblocks[0])
    return {**parts, "X": X}, None


def _row_chunks(
    chunks: tuple[int, ...], rows_wanted: int | None, row_bytes: int
) -> tuple[int, ...]:
    if rows_wanted is not None:
        full, rest = divmod(sum(chunks), rows_wanted)
        return (rows_wanted,) * full + ((rest,) if rest else ())
    crowded = len(chunks) > FEW_BLOCKS and sum(chunks) * row_bytes < len(chunks) * SMALL_BYTES
    target = max(1, TARGET_BYTES // row_bytes)
    huge = max(1, HUGE_BYTES // row_bytes)
    sizes: list[int] = []
    for size in chunks:
        if crowded and sizes and sizes[-1] + size <= target:
            sizes[-1] += size
        elif size > huge:
            pieces = -(-size // target)
            sizes += [size // pieces + (i < size % pieces) for i in range(pieces)]
        else:
            sizes.append(size)
    return tuple(sizes)


def _rechunked(parts: dict[str, Any], sizes: tuple[int, ...]) -> dict[str, Any]:
    aligned = {}
    for name, part in parts.items():
        if _is_dask_array(part) and any(np.isnan(part.chunks[0])):
            raise InvalidInputError(
                f"{name} has unknown chunk sizes but X has known ones; call "
                f"{name}.compute_chunk_sizes() first, so that their rows can be paired."
            )
        if _is_dask_array(part) and part.chunks[0] != sizes:
            part = part.rechunk({0: sizes})  # noqa: PLW2901
        aligned[name] = part
    return aligned


def _check_unknown(parts: dict[str, Any], n_blocks: int) -> None:
    for name, part in parts.items():
        if not _is_dask_array(part):
            raise InvalidInputError(
                f"X has unknown chunk sizes, so an in-memory or stored {name} cannot be paired "
                f"with its rows; call X.compute_chunk_sizes() first, or pass {name} as a Dask "
                f"collection with the same partitions."
            )
        if part.numblocks[0] != n_blocks:
            raise InvalidInputError(
                f"{name} has {part.numblocks[0]} blocks but X has {n_blocks}, of unknown sizes; "
                f"give both the same partitions."
            )


def _specs(
    parts: dict[str, Any], sizes: tuple[int, ...] | None, n_blocks: int
) -> tuple[BlockSpec, ...]:
    sources = {name: part for name, part in parts.items() if isinstance(part, Source)}
    if sizes is None or not sources:
        return tuple(BlockSpec(number) for number in range(n_blocks))
    specs, start = [], 0
    for number, size in enumerate(sizes):
        stop = start + size
        loaders = {name: source.loader(start, stop) for name, source in sources.items()}
        specs.append(BlockSpec(number, **loaders))
        start = stop
    return tuple(specs)


def _stored_bytes(parts: dict[str, Any], sizes: tuple[int, ...] | None) -> int | None:
    if sizes is None:
        return None
    total = 0
    for part in parts.values():
        held = getattr(part, "array", None)
        if hasattr(held, "indptr"):
            total += held.data.nbytes + held.indices.nbytes + held.indptr.nbytes
        else:
            itemsize = np.dtype(part.dtype).itemsize
            total += itemsize * int(np.prod(part.shape, dtype=np.int64))
    return total


def _given_name(X: Any) -> str | None:
    name = getattr(X, "name", None)
    return str(name) if isinstance(name, str) and not hasattr(X, "__dask_graph__") else None
