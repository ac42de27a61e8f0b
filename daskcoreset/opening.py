"""One argument at a time: anything array-like becomes a Dask array or a `Source`."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

import numpy as np

from daskcoreset.errors import InvalidInputError, InvalidTypeError, MissingDependencyError
from daskcoreset.sources import (
    ArraySource,
    FrameSource,
    HDF5Source,
    IndexedSource,
    MemmapSource,
    ParquetSource,
    Source,
    frame_dtype,
    frame_to_numpy,
    parquet_files,
)

__all__ = ["is_dask_array", "is_sparse", "open_all"]


def open_all(X: Any, y: Any, sample_weight: Any) -> dict[str, Any]:
    """Open X and what belongs to it.

    Parameters
    ----------
    X, y, sample_weight
        As in `daskcoreset.build`; the latter two may be None.

    Returns
    -------
    dict of str to (dask.array.Array or Source)
        "X", and "y" and "sample_weight" where given, of equal length where it is known.

    Raises
    ------
    InvalidInputError
        For a wrong number of dimensions, no rows or columns, lengths that differ.
    InvalidTypeError
        For types and dtypes that hold no real numbers.
    """
    X, beside = _split_members(X, {"y": y, "sample_weight": sample_weight})
    parts = {"X": _open_part(X, "X")}
    for name, part in beside.items():
        if part is not None:
            parts[name] = _open_part(part, name)
    _check_parts(parts)
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
    if not remote and not Path(path).exists():
        raise InvalidInputError(f"X names no file or folder: {path!r}; check the path.")
    lower = path.rstrip("/").lower()
    if lower.endswith((".npy",)):
        return np.load(path, mmap_mode="r", allow_pickle=False)
    if lower.endswith(".npz"):
        return _open_npz(path, beside)
    if lower.endswith((".h5", ".hdf5", ".hdf")):
        return _open_hdf5(path)
    if not remote and parquet_files(path):
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


def _open_part(part: Any, name: str) -> Any:
    """Turn one argument into a Dask array or a `Source`; `name` is what messages call it."""
    return _checked_array(_open_any(part, name), name)


def _open_any(part: Any, name: str) -> Any:
    opened = _open_collection(part, name)
    return _open_memory(part, name) if opened is None else opened


def _open_collection(part: Any, name: str) -> Any:
    """Open what knows chunks, files or labels of its own; None for plain memory."""
    module = type(part).__module__.split(".")[0]
    if isinstance(part, Source) or is_dask_array(part):
        return part
    if module == "xarray":
        return _open_xarray(part, name)
    if hasattr(part, "__dask_graph__"):
        return _open_dask_frame(part, name)
    if module == "h5py":
        return HDF5Source(part)
    if module == "zarr" and hasattr(part, "chunks"):
        return _open_zarr(part)
    return None


def _open_memory(part: Any, name: str) -> Source:
    if hasattr(part, "iloc"):
        return FrameSource(part)
    if hasattr(part, "tocsr"):
        import scipy.sparse as sp  # noqa: PLC0415 - a dense build does not need it

        return ArraySource(sp.csr_array(part.tocsr()))
    if isinstance(part, np.memmap):
        return MemmapSource.of(part)
    if isinstance(part, (np.ndarray, list, tuple)):
        return ArraySource(part if isinstance(part, np.ndarray) else np.asarray(part))
    if all(hasattr(part, attribute) for attribute in ("shape", "dtype", "__getitem__")):
        return IndexedSource(part)
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
    data = part.variable._data  # noqa: SLF001 - `.data` would load a lazily opened file whole
    if isinstance(data, np.ndarray) or hasattr(data, "__dask_graph__"):
        return _open_any(part.data, name)
    return IndexedSource(part, name=None if part.name is None else str(part.name))


def _open_dask_frame(part: Any, name: str) -> Any:
    if not hasattr(part, "to_delayed") or not hasattr(part, "npartitions"):
        raise InvalidTypeError(
            f"{name} is a {type(part).__name__}; pass a Dask array or a Dask DataFrame."
        )
    import dask.array as da  # noqa: PLC0415 - slow to import

    meta = part._meta  # noqa: SLF001 - the one way to know the columns without computing
    dtype = frame_dtype(meta)
    empty = np.empty((0,) * meta.ndim, dtype=dtype)
    # Partitions become array blocks by one task each; their lengths stay unknown.
    converted = part.map_partitions(frame_to_numpy, dtype, meta=empty)
    rows = (np.nan,) * part.npartitions
    chunks = (rows,) if meta.ndim == 1 else (rows, (meta.shape[1],))
    return da.Array(converted.__dask_graph__(), converted.name, chunks, meta=empty)


def _need(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f'X needs the package {module}; install it with: pip install "daskcoreset[{extra}]".'
        ) from error


def is_dask_array(part: Any) -> bool:
    """Whether `part` is a Dask array."""
    return hasattr(part, "__dask_graph__") and hasattr(part, "numblocks")


def is_sparse(part: Any) -> bool:
    """Whether the rows are SciPy sparse."""
    held = getattr(part, "_meta", None) if is_dask_array(part) else getattr(part, "array", None)
    return hasattr(held, "tocsr")


def _checked_array(part: Any, name: str) -> Any:
    if is_dask_array(part) and hasattr(part, "expr"):
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
