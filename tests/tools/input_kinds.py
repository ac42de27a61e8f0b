"""The same rows as inputs of every kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
import zarr

from daskcoreset.core.typing import AnyArray

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


def stored(folder: Path, name: str, array: AnyArray, **options: Any) -> Any:
    made = zarr.create_array(folder / name, shape=array.shape, dtype=array.dtype, **options)
    made[:] = array
    return made


def table(start: int, stop: int) -> Any:
    columns = {name: X[start:stop, j] for j, name in enumerate(NAMES)}
    return pa.table({**columns, "y": Y[start:stop], "w": WEIGHT[start:stop]})


def dask_of_sparse(form: Any, columns: int, **options: Any) -> Any:
    return da.from_array(S.toarray(), chunks=(CHUNK, columns)).map_blocks(form, **options)
