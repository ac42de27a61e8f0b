"""The same rows as inputs of every kind."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
import xarray as xr
import zarr

from tests.acceptance.face import build

N, D, CHUNK, SIZE = 200, 3, 50, 40


RNG = np.random.default_rng(20180829)
X = RNG.normal(1e3, 1.0, size=(N, D)).astype(np.float32)
Y = RNG.integers(0, 5, size=N)
WEIGHT = RNG.uniform(0.5, 2.0, size=N)
S = sp.random_array((N, 30), density=0.1, format="csr", dtype=np.float32, rng=RNG)


NAMES = [f"f{j}" for j in range(D)]


Made = tuple[Any, Any, Any, dict[str, Any]]
"""X, y and sample_weight as given to build, and further arguments."""


EXACT: dict[str, Any] = {"chunks": CHUNK}


def dask_unknown(_: Path) -> Made:
    keep = da.ones(N, dtype=bool, chunks=CHUNK)
    rows, y, weight = [da.from_array(a, chunks=CHUNK)[keep] for a in (X, Y, WEIGHT)]
    assert np.isnan(rows.shape[0])
    return rows, y, weight, {}


def npz_path(folder: Path) -> Made:
    np.savez(folder / "data.npz", X=X, target=Y, w=WEIGHT)
    return folder / "data.npz", "target", "w", EXACT


def parquet_file(folder: Path) -> Made:
    pq.write_table(table(0, N), folder / "a.parquet", row_group_size=CHUNK)
    return folder / "a.parquet", "y", "w", EXACT


def stored(folder: Path, name: str, array: Any, **options: Any) -> Any:
    made = zarr.create_array(folder / name, shape=array.shape, dtype=array.dtype, **options)
    made[:] = array
    return made


def table(start: int, stop: int) -> Any:
    columns = {name: X[start:stop, j] for j, name in enumerate(NAMES)}
    return pa.table({**columns, "y": Y[start:stop], "w": WEIGHT[start:stop]})


def dask_of_sparse(form: Any, columns: int, **options: Any) -> Any:
    return da.from_array(S.toarray(), chunks=(CHUNK, columns)).map_blocks(form, **options)


def all_rows(X: Any, y: Any = None, **options: Any) -> Any:
    """Return a coreset of all rows, in their order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return build(X, y, size=10**6, method="uniform", random_state=0, **options)


# --- every kind --------------------------------------------------------------------------


def dask_known(_: Path) -> Made:
    rows, y, weight = (da.from_array(a, chunks=CHUNK) for a in (X, Y, WEIGHT))
    return rows, y, weight, {}


def dask_columns_in_chunks(_: Path) -> Made:
    return da.from_array(X, chunks=(CHUNK, 2)), Y, WEIGHT, {}


def dask_other_chunks(_: Path) -> Made:
    return da.from_array(X, chunks=(33, 1)), da.from_array(Y, chunks=7), WEIGHT, EXACT


def dask_unknown_columns_in_chunks(_: Path) -> Made:
    keep = da.ones(N, dtype=bool, chunks=CHUNK)
    rows, y, weight = [da.from_array(a, chunks=(CHUNK, 2)[: a.ndim])[keep] for a in (X, Y, WEIGHT)]
    return rows, y, weight, {}


def numpy_fortran(_: Path) -> Made:
    return np.asfortranarray(X), Y[::-1].copy()[::-1], WEIGHT, EXACT


def numpy_big_endian(_: Path) -> Made:
    return X.astype(">f4"), Y.astype(">i8"), WEIGHT.astype(">f8"), EXACT


def numpy_read_only(_: Path) -> Made:
    rows, y, weight = X.copy(), Y.copy(), WEIGHT.copy()
    for array in (rows, y, weight):
        array.flags.writeable = False
    return rows, y, weight, EXACT


def numpy_masked(_: Path) -> Made:
    return (
        np.ma.masked_array(X, np.zeros(X.shape, bool)),
        np.ma.array(Y),
        np.ma.array(WEIGHT),
        EXACT,
    )


def numpy_y_dask(_: Path) -> Made:
    return X, da.from_array(Y, chunks=31), da.from_array(WEIGHT, chunks=N), EXACT


def nested_lists(_: Path) -> Made:
    # X is float32, and a list of Python floats would be float64.
    return X, Y.tolist(), tuple(WEIGHT.tolist()), EXACT


def memmap_file(folder: Path) -> Made:
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r"), Y, WEIGHT, EXACT


def npy_paths(folder: Path) -> Made:
    for name, array in (("X", X), ("y", Y), ("w", WEIGHT)):
        np.save(folder / f"{name}.npy", array)
    return folder / "X.npy", folder / "y.npy", str(folder / "w.npy"), EXACT


def zarr_array(folder: Path) -> Made:
    return stored(folder, "X.zarr", X, chunks=(CHUNK, D)), Y, WEIGHT, EXACT


def zarr_tiny_chunks(folder: Path) -> Made:
    return stored(folder, "X.zarr", X, chunks=(7, 2)), Y, WEIGHT, EXACT


def zarr_sharded(folder: Path) -> Made:
    array = stored(folder, "X.zarr", X, chunks=(5, D), shards=(CHUNK, D))
    return array, stored(folder, "y.zarr", Y, chunks=(20,)), WEIGHT, EXACT


def zarr_group(folder: Path) -> Made:
    return zarr.open_group(a_group(folder), mode="r"), "y", "sample_weight", EXACT


def zarr_path(folder: Path) -> Made:
    return a_group(folder), "y", "sample_weight", EXACT


def zarr_file_url(folder: Path) -> Made:
    return f"file://{a_group(folder)}", "y", "sample_weight", EXACT


def zarr_memory_url(folder: Path) -> Made:
    url = f"memory://{folder.name}/group.zarr"
    a_group(folder, url)
    return url, "y", "sample_weight", EXACT


def zarr_array_path_and_dask(folder: Path) -> Made:
    stored(folder, "X.zarr", X, chunks=(CHUNK, D))
    return folder / "X.zarr", da.from_array(Y, chunks=9), WEIGHT, EXACT


def hdf5_chunked(folder: Path) -> Made:
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_dataset("deep/X", data=X, chunks=(20, 2), compression="gzip")
        file["y"], file["w"] = Y, WEIGHT
    return folder / "a.h5", "y", "w", EXACT


def hdf5_datasets(folder: Path) -> Made:
    with h5py.File(folder / "a.h5", "w") as file:
        file["X"], file["y"], file["w"] = X, Y, WEIGHT
    file = h5py.File(folder / "a.h5", "r")
    return file["X"], file["y"], file["w"], EXACT


def hdf5_group(folder: Path) -> Made:
    with h5py.File(folder / "a.h5", "w") as file:
        file["g/X"], file["g/other"], file["g/y"], file["g/w"] = X, X, Y, WEIGHT
    return h5py.File(folder / "a.h5", "r")["g"], "y", "w", EXACT


def xarray_numpy(_: Path) -> Made:
    return xr.DataArray(X, dims=("row", "feature")), xr.DataArray(Y), WEIGHT, EXACT


def xarray_dask(_: Path) -> Made:
    return xr.DataArray(da.from_array(X, chunks=CHUNK)), Y, xr.DataArray(WEIGHT), {}


def xarray_zarr(folder: Path) -> Made:
    xr.Dataset({"X": (("n", "d"), X), "y": ("n", Y)}).to_zarr(folder / "x.zarr", consolidated=False)
    data = xr.open_zarr(folder / "x.zarr", chunks=None, consolidated=False)
    assert not isinstance(data["X"].variable._data, np.ndarray), "opened lazily"
    return data["X"], data["y"], WEIGHT, EXACT


def xarray_netcdf(folder: Path) -> Made:
    xr.Dataset({"X": (("n", "d"), X)}).to_netcdf(folder / "x.nc", engine="scipy")
    data = xr.open_dataset(folder / "x.nc", engine="scipy")
    assert not isinstance(data["X"].variable._data, np.ndarray), "opened lazily"
    return data["X"], Y, WEIGHT, EXACT


def pandas_frame(_: Path) -> Made:
    frame = pd.DataFrame(X, columns=NAMES).assign(y=Y, w=WEIGHT)
    return frame, "y", "w", EXACT


def pandas_and_series(_: Path) -> Made:
    index = np.arange(N)[::-1]
    return pd.DataFrame(X, index), pd.Series(Y, index), pd.Series(WEIGHT), EXACT


def pandas_index_and_nullable(_: Path) -> Made:
    return pd.DataFrame(X).astype("Float32"), pd.Index(Y), pd.array(WEIGHT), EXACT


def dask_frame(_: Path) -> Made:
    frame = pd.DataFrame(X, columns=NAMES).assign(y=Y, w=WEIGHT)
    return dd.from_pandas(frame, npartitions=N // CHUNK, sort=False), "y", "w", {}


def dask_frame_and_series(_: Path) -> Made:
    frame = pd.DataFrame(X, columns=NAMES).assign(y=Y, w=WEIGHT)
    frame = dd.from_pandas(frame, npartitions=N // CHUNK, sort=False)
    return frame[NAMES], frame["y"], frame["w"], {}


def parquet_folder(folder: Path) -> Made:
    # Twelve parts: their natural order is not that of their characters.
    cuts = np.linspace(0, N, 13).astype(int)
    for number, (start, stop) in enumerate(itertools.pairwise(cuts)):
        pq.write_table(table(start, stop), folder / f"part.{number}.parquet", row_group_size=7)
    (folder / "_temporary").mkdir()
    pq.write_table(table(0, 3), folder / "_temporary" / "00.checkpoint.parquet")
    return folder, "y", "w", EXACT


KINDS: list[Callable[[Path], Made]] = [
    dask_known,
    dask_columns_in_chunks,
    dask_other_chunks,
    dask_unknown,
    dask_unknown_columns_in_chunks,
    numpy_fortran,
    numpy_big_endian,
    numpy_read_only,
    numpy_masked,
    numpy_y_dask,
    nested_lists,
    memmap_file,
    npy_paths,
    npz_path,
    zarr_array,
    zarr_tiny_chunks,
    zarr_sharded,
    zarr_group,
    zarr_path,
    zarr_file_url,
    zarr_memory_url,
    zarr_array_path_and_dask,
    hdf5_chunked,
    hdf5_datasets,
    hdf5_group,
    xarray_numpy,
    xarray_dask,
    xarray_zarr,
    xarray_netcdf,
    pandas_frame,
    pandas_and_series,
    pandas_index_and_nullable,
    dask_frame,
    dask_frame_and_series,
    parquet_file,
    parquet_folder,
]


def a_group(folder: Path, url: str | None = None) -> str:
    path = url or str(folder / "group.zarr")
    group = zarr.open_group(path, mode="w")
    for name, array in (("X", X), ("y", Y), ("sample_weight", WEIGHT), ("other", X)):
        group.create_array(name, data=array, chunks=(30, 2)[: array.ndim])
    return path
