"""Sources: any range of rows, read by a loader that pickles and needs nothing else."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import zarr

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
