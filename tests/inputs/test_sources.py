"""Sources: any range of rows, read by a loader that pickles and needs nothing else."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.inputs.dataframes import frame_source
from daskcoreset.inputs.hdf5 import hdf5_source
from daskcoreset.inputs.parquet import ParquetFiles
from daskcoreset.inputs.sources import (
    Source,
    array_source,
    indexed_source,
    memmap_source,
    sparse_source,
)
from tests.tools.sources import read

N = 41
X = np.arange(N * 3, dtype=np.float32).reshape(N, 3)


def in_memory(_: Path) -> Source:
    return array_source(X)


def sparse(_: Path) -> Source:
    return sparse_source(sp.coo_matrix(X))


def mapped(folder: Path) -> Source:
    np.save(folder / "X.npy", X)
    return memmap_source(np.load(folder / "X.npy", mmap_mode="r"))


def in_zarr(folder: Path) -> Source:
    return indexed_source(zarr.create_array(folder / "X.zarr", data=X, chunks=(4, 2)))


def in_hdf5(folder: Path) -> Source:
    with h5py.File(folder / "X.h5", "w") as file:
        return hdf5_source(file.create_dataset("a/X", data=X, chunks=(7, 1)))


def in_frame(_: Path) -> Source:
    return frame_source(pd.DataFrame(X))


def in_parquet(folder: Path) -> Source:
    columns = {f"f{j}": X[:, j] for j in range(3)}
    (folder / "p").mkdir()
    for number, rows in enumerate((slice(0, 10), slice(10, 10), slice(10, N))):
        table = pa.table({name: column[rows] for name, column in columns.items()})
        pq.write_table(table, folder / "p" / f"{number}.parquet", row_group_size=9)
    files = ParquetFiles(str(folder / "p"))
    return files.table(files.names)


MAKERS = [in_memory, sparse, mapped, in_zarr, in_hdf5, in_frame, in_parquet]


@pytest.fixture(scope="module", params=MAKERS, ids=lambda maker: maker.__name__)
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Source:
    made: Callable[[Path], Source] = request.param
    return made(tmp_path_factory.mktemp("source"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(ends=st.tuples(st.integers(0, N), st.integers(0, N)).map(sorted))
def test_loader__any_rows(source: Source, ends: list[int]) -> None:
    start, stop = ends
    if start == stop:
        return  # no block is empty
    np.testing.assert_array_equal(read(source, start, stop), X[start:stop])


def test_source__shape_dtype_bytes(source: Source) -> None:
    assert source.shape == (N, 3)
    assert source.dtype == np.float32
    if source.sparse_bytes is not None:
        assert source.stored_bytes > (N * 3 - 1) * 8
    else:
        assert source.stored_bytes == X.nbytes


def test_loader__pickles_its_own_rows_alone() -> None:
    big = np.zeros((100_000, 10))
    for made in (
        array_source(big),
        sparse_source(sp.csr_array(big + 1)),
        frame_source(pd.DataFrame(big)),
    ):
        assert len(pickle.dumps(made.loader(50, 60))) < 10_000


def test_cut__whole_multiples_of_what_is_stored_together() -> None:
    source = indexed_source(X, granularity=4)
    assert source.cut(10) == (8, 8, 8, 8, 8, 1)
    assert source.cut(3) == (4,) * 10 + (1,)
    assert indexed_source(X).cut(100) == (N,)


def test_sparse__loaders_hold_views() -> None:
    matrix = sp.csr_array(np.eye(50))
    loader: Any = sparse_source(matrix).loader(10, 20)
    data, _, indptr, _ = loader.args
    assert np.shares_memory(data, matrix.data)
    assert np.shares_memory(indptr, matrix.indptr)
    np.testing.assert_array_equal(loader().toarray(), np.eye(50)[10:20])


# --- memmap ------------------------------------------------------------------------------


VIEWS: dict[str, Callable[[Any], Any]] = {
    "all": lambda m: m,
    "tail": lambda m: m[5:],
    "of a view": lambda m: m[5:][3:][:20],
    "columns": lambda m: m[:, 1:],
    "every other row": lambda m: m[3::2],
    "backwards": lambda m: m[::-1],
    "both backwards": lambda m: m[::-2, ::-1],
    "transposed": lambda m: m[:3].T,
    "reshaped": lambda m: m.reshape(-1, 1)[7:],
    "other dtype": lambda m: m.view(np.int32)[4:],
    "vector": lambda m: m[2:, 1],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
@pytest.mark.parametrize("offset", [0, 100, 4096 + 12])
@pytest.mark.parametrize("order", ["C", "F"])
def test_memmap__views_are_read_from_the_right_place(
    view: Callable[[Any], Any], offset: int, order: Any, tmp_path: Path
) -> None:
    np.concatenate([np.full(offset, 255, np.uint8), X.ravel(order).view(np.uint8)]).tofile(
        tmp_path / "raw"
    )
    whole = np.memmap(tmp_path / "raw", np.float32, "r", offset, X.shape, order)
    array = view(whole)
    # NumPy copies what it cannot view.
    source = memmap_source(array) if isinstance(array, np.memmap) else array_source(array)
    expected = np.array(array)
    np.testing.assert_array_equal(read(source, 0, len(expected)), expected)
    np.testing.assert_array_equal(read(source, 1, 3), expected[1:3])
    if np.shares_memory(array, whole):
        assert source.name == str(tmp_path / "raw")
        assert len(pickle.dumps(source.loader(0, len(expected)))) < 500


def test_memmap__what_the_file_does_not_hold_comes_from_memory(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", X)
    changed = np.load(tmp_path / "X.npy", mmap_mode="c")
    changed[0] = -1  # in memory only
    gone = np.memmap(tmp_path / "gone", np.float32, "w+", shape=X.shape)
    gone[:] = X
    (tmp_path / "gone").unlink()
    empty = np.load(tmp_path / "X.npy", mmap_mode="r")[:0]
    with (tmp_path / "X.npy").open("rb") as file:
        copied = np.load(file.name, mmap_mode="r") + 0
    for array in (changed, gone, empty, np.asarray(copied)):
        rows = memmap_source(array) if isinstance(array, np.memmap) else array_source(array)
        assert rows.in_memory
        np.testing.assert_array_equal(read(rows, 0, len(array)), np.array(array))


def test_memmap__written_file_is_seen(tmp_path: Path) -> None:
    made = np.memmap(tmp_path / "X", np.float32, "w+", shape=X.shape)
    source = memmap_source(made)
    made[:] = X  # not flushed
    np.testing.assert_array_equal(read(source, 0, N), X)


# --- HDF5 --------------------------------------------------------------------------------


def test_hdf5__in_memory_is_refused() -> None:
    with (
        h5py.File("nowhere.h5", "w", driver="core", backing_store=False) as file,
        pytest.raises(InvalidInputError, match=r"'/X' is in memory.*dataset\[:\]"),
    ):
        hdf5_source(file.create_dataset("X", data=X))


def test_hdf5__contiguous_has_no_granularity(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "X.h5", "w") as file:
        assert hdf5_source(file.create_dataset("a", data=X)).granularity == 1
        assert hdf5_source(file.create_dataset("b", data=X, chunks=(6, 3))).granularity == 6
