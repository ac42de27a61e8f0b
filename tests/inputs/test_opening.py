"""Every kind of input, the same rows in the same chunks: the same coreset, bit for bit."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import xarray as xr
import zarr
from hypothesis import given
from hypothesis import strategies as st

from daskcoreset import Coreset, build
from daskcoreset.core.errors import InvalidTypeError
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.typing import AnyArray
from daskcoreset.execution.engine import read_block
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.testing import shared_pool
from tests.tools.input_kinds import (
    CHUNK,
    EXACT,
    NAMES,
    SIZE,
    WEIGHT,
    D,
    Made,
    N,
    S,
    X,
    Y,
    dask_of_sparse,
    dask_unknown,
    npz_path,
    parquet_file,
    stored,
    table,
)
from tests.tools.strategies import chunks_of


def coreset_of(made: Made, **options: Any) -> Any:
    # A Coreset, or what else the options ask for.
    rows, y, sample_weight, more = made
    options = {"size": SIZE, "random_state": 7, **more, **options}
    return build(rows, y, sample_weight=sample_weight, **options)


def assert_same(found: Coreset, expected: Coreset) -> None:
    for part in ("points", "weights", "indices", "labels"):
        one, other = getattr(found, part), getattr(expected, part)
        if one is not None and not sp.issparse(one):
            assert one.dtype == other.dtype, part
            np.testing.assert_array_equal(one, other, err_msg=part)
    assert WeightedPoints.equals(found, expected)


@pytest.fixture(scope="module")
def reference() -> dict[int, Coreset]:
    given = (X, Y, WEIGHT, EXACT)
    return {passes: coreset_of(given, passes=passes) for passes in (1, 2)}


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


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_build__same_bits_for_every_kind(
    kind: Callable[[Path], Made], tmp_path: Path, reference: dict[int, Coreset]
) -> None:
    made = kind(tmp_path)
    for passes in (1, 2):
        assert_same(coreset_of(made, passes=passes), reference[passes])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_build__nothing_computed_while_defined(
    kind: Callable[[Path], Made], tmp_path: Path
) -> None:
    made = kind(tmp_path)
    calls: list[int] = []

    def counting(graph: Any, keys: Any, **options: Any) -> Any:
        calls.append(1)
        return dask.threaded.get(graph, keys, **options)

    with dask.config.set(scheduler=counting):
        for passes in (1, 2):
            lazy = coreset_of(made, passes=passes, compute=False)
            coreset_of(made, passes=passes, dry_run=True)
            assert not calls
        lazy.compute()
    assert len(calls) == 1


@pytest.mark.distributed
@pytest.mark.parametrize("kind", [hdf5_datasets, zarr_sharded, memmap_file, parquet_file])
def test_build__same_bits_on_processes(
    kind: Callable[[Path], Made], tmp_path: Path, reference: dict[int, Coreset]
) -> None:
    with dask.config.set(scheduler="processes", pool=shared_pool()):
        assert_same(coreset_of(kind(tmp_path)), reference[1])


# --- sparse ------------------------------------------------------------------------------


def sparse_with_duplicates() -> Any:
    row = np.r_[S.tocoo().row, S.tocoo().row]
    column = np.r_[S.tocoo().col, S.tocoo().col]
    return sp.coo_array((np.r_[S.data, S.data] / 2, (row, column)), shape=S.shape)


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        (S, EXACT),
        (sp.csr_matrix(S), EXACT),
        (sp.csc_array(S), EXACT),
        (sp.coo_matrix(S), EXACT),
        (sparse_with_duplicates(), EXACT),
        (dask_of_sparse(sp.csr_array, 30), {}),
        (dask_of_sparse(sp.csr_matrix, 30), {}),
        (dask_of_sparse(sp.csc_array, 30), {}),
        (dask_of_sparse(sp.csr_array, 11), {}),
        (dask_of_sparse(sp.csr_array, 30), {"chunks": CHUNK}),
        (dask_of_sparse(sp.coo_matrix, 30, meta=np.empty((0, 0), np.float32)), {}),
    ],
)
def test_build__sparse_stays_sparse(rows: Any, options: dict[str, Any]) -> None:
    expected = coreset_of((S, Y, WEIGHT, EXACT))
    dense = coreset_of((S.toarray(), Y, WEIGHT, EXACT))
    found = coreset_of((rows, Y, WEIGHT, options))
    points: Any = found.points
    assert isinstance(points, sp.csr_array)
    assert points.dtype == np.float32
    assert_same(found, expected)
    # The sums of dense and sparse rows round differently: the draw need not be the same.
    np.testing.assert_array_equal(points.toarray(), S.toarray()[found.indices])
    assert found.total_weight == pytest.approx(dense.total_weight, rel=0.1)


def test_build__sparse_path(tmp_path: Path) -> None:
    square = S[:30]  # a transposed one would have the same shape
    for form in (sp.csr_array, sp.csc_array, sp.coo_array):
        sp.save_npz(tmp_path / "s.npz", form(square))
        found: Any = build(tmp_path / "s.npz", size=10, random_state=0)
        np.testing.assert_array_equal(found.points.toarray(), square.toarray()[found.indices])


def test_build__input_left_as_it_was() -> None:
    unsorted = sp.csr_array(
        (np.array([1.0, 2.0, 3.0]), np.array([2, 0, 0]), np.array([0, 3])), shape=(1, 3)
    )
    before = [part.copy() for part in (unsorted.data, unsorted.indices, unsorted.indptr)]
    rows = sp.vstack([unsorted, unsorted], format="csr")
    kept = rows.indices.copy()
    assert len(build(rows, size=1)) == 1
    np.testing.assert_array_equal(rows.indices, kept)
    blocks = row_blocks(unsorted)
    block = read_block(blocks.specs[0], {}, blocks.schema).block
    assert block is not None
    points: Any = block.points
    np.testing.assert_array_equal(points.toarray(), [[5.0, 0.0, 1.0]])
    for part, was in zip((unsorted.data, unsorted.indices, unsorted.indptr), before, strict=True):
        np.testing.assert_array_equal(part, was)


# --- frames ------------------------------------------------------------------------------


def test_build__mixed_columns_become_float64() -> None:
    frame = pd.DataFrame(
        {
            "int": np.arange(N),
            "small": X[:, 0],
            "yes": np.arange(N) % 2 == 0,
            "nullable": pd.array([None, *range(N - 1)], dtype="Int16"),
            "arrow": pd.array([1.5] * N, dtype="float[pyarrow]"),
        }
    )
    filled = frame.assign(nullable=frame["nullable"].fillna(0)).astype(np.float64)
    for rows in (frame, dd.from_pandas(frame, npartitions=1)):
        found = build(rows, size=SIZE, random_state=7, on_invalid="drop")
        assert found.points.dtype == np.float64
        assert found.provenance["n_dropped"] == 1
        assert found.provenance["columns"] == tuple(frame.columns)
        assert 0 not in found.indices
        np.testing.assert_array_equal(found.points, filled.to_numpy()[found.indices])


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (pd.Series([1, 2, 3], dtype="Int64"), np.array([1, 2, 3])),
        (pd.Series([1, None, 3], dtype="Int64"), np.array([1, np.nan, 3])),
        (pd.Series(["a", "b", "c"], dtype="category"), np.array(["a", "b", "c"])),
        (pd.Series(["a", "bb", "c"]), np.array(["a", "bb", "c"])),
        (np.array([b"a", "\u00e9".encode(), b"c"]), np.array(["a", "\u00e9", "c"])),
        (np.array([b"a", "b", 3], dtype=object), np.array(["a", "b", "3"])),
        (np.array(["a", "b", "c"], dtype=np.dtypes.StringDType()), np.array(["a", "b", "c"])),
        (np.array([1, 2, 3], dtype=np.longdouble), np.array([1.0, 2.0, 3.0])),
        (np.array([True, False, True]), np.array([True, False, True])),
    ],
)
@pytest.mark.filterwarnings("ignore::daskcoreset.errors.CoresetWarning")
def test_build__labels_of_every_kind(labels: Any, expected: AnyArray) -> None:
    found = build(np.eye(3), labels, size=3).labels
    assert found is not None
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("beside", ["names", "series", "none"])
def test_build__partition_read_once_with_one_pass(beside: str) -> None:
    reads: list[int] = []
    partitions = 6

    def load(number: int) -> pd.DataFrame:
        reads.append(number)
        rng = np.random.default_rng(number)
        frame = pd.DataFrame(rng.normal(size=(30 + number, 4)), columns=list("abyw"))
        return frame.assign(w=1.0 + len(beside))  # Dask takes equal functions for one

    with dask.config.set(scheduler="synchronous"):
        frame = dd.from_map(load, range(partitions), meta=load(0))
        reads.clear()
        named: dict[str, Any] = {} if beside == "none" else {"y": "y", "sample_weight": "w"}
        rows = frame
        if beside == "series":
            rows, named = frame[["a", "b"]], {name: frame[key] for name, key in named.items()}
        lazy = build(rows, size=SIZE, random_state=0, compute=False, **named)
        assert reads == []
        coreset = lazy.compute()
    assert sorted(reads) == list(range(partitions))
    assert coreset.provenance["n"] == sum(30 + number for number in range(partitions))
    assert coreset.provenance["columns"] == (("a", "b") if named else tuple("abyw"))
    assert lazy.n_tasks == partitions + 1, "reading fuses with the work on the partition"


def test_build__parquet_nulls_are_nan(tmp_path: Path) -> None:
    columns = {
        "int": pa.array([1, None, 3, 4]),
        "flag": pa.array([True, False, None, True]),
        "half": pa.array(np.array([1, 2, 3, 4], np.float16)),
        "label": pa.array([1, 2, 3, None]),
        "text": pa.array(["a", "b", "c", "d"]).dictionary_encode(),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=2)
    with pytest.raises(InvalidTypeError, match="no real numbers: 'text'"):
        build(tmp_path / "a.parquet", "label", size=2)
    pq.write_table(pa.table(columns).drop_columns("text"), tmp_path / "b.parquet", row_group_size=2)
    with pytest.warns(match="whole data set"):
        found = build(tmp_path / "b.parquet", "label", size=4, on_invalid="drop")
    np.testing.assert_array_equal(found.indices, [0, 3])
    np.testing.assert_array_equal(found.points, [[1, 1, 1], [4, 1, 4]])
    np.testing.assert_array_equal(found.labels, [1.0, np.nan])
    with pytest.warns(match="whole data set"):
        texts = build(tmp_path / "a.parquet", "text", size=4, on_invalid="drop", method="uniform")
    assert texts.labels is not None
    np.testing.assert_array_equal(texts.labels, ["a"])


# --- blocks ------------------------------------------------------------------------------


@given(data=st.data())
def test_build__rows_in_any_chunks(data: st.DataObject) -> None:
    rows = data.draw(chunks_of(N, max_chunks=8))
    array = da.from_array(X, chunks=(rows, D))
    with dask.config.set(scheduler="synchronous"):
        found = build(
            array, Y, size=SIZE, random_state=3, passes=data.draw(st.sampled_from([1, 2]))
        )
    assert len(found) == SIZE
    np.testing.assert_array_equal(found.points, X[found.indices])
    np.testing.assert_array_equal(found.labels, Y[found.indices])
    assert found.total_weight == pytest.approx(N, rel=0.5)


def test_build__single_row_blocks_and_empty_ones() -> None:
    single = da.from_array(X[:30], chunks=((1, 0) * 30, D))
    for passes in (1, 2):
        found = build(single, size=10, random_state=1, passes=passes)
        assert len(found) == 10
        np.testing.assert_array_equal(found.points, X[found.indices])
    keep = (np.arange(N) // 10 % 2 == 1) & (X[:, 0] > 1e3)  # every other block is empty
    unknown = da.from_array(X, chunks=10)[da.from_array(keep, chunks=10)]
    found = build(unknown, size=10, random_state=1)
    np.testing.assert_array_equal(found.points, X[keep][found.indices])


def test_build__tasks_of_a_block(tmp_path: Path) -> None:
    n_blocks = 100
    array = da.zeros((n_blocks * 10, 8), chunks=(10, 8))
    labels = da.zeros(n_blocks * 10, chunks=10)
    options: dict[str, Any] = {"size": 5, "compute": False, "chunks": 10}
    tree = 7 + 1  # sixteen at a time
    assert build(array, labels, **options).n_tasks == n_blocks + tree
    in_columns = da.zeros((n_blocks * 10, 8), chunks=(10, 4))
    assert build(in_columns, **options).n_tasks <= 4 * n_blocks + tree
    made = stored(tmp_path, "X.zarr", np.zeros((1000, 8), np.float32), chunks=(10, 8))
    assert build(made, **options).n_tasks == n_blocks + tree
