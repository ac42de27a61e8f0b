"""Rows by their numbers, and that nothing else is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import h5py
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import xarray as xr
import zarr

import daskcoreset
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.inputs.picking import pick_rows

X = np.arange(4000.0).reshape(1000, 4)
ROWS = np.array([999, 3, 500, 3])


def test_pick_rows__reads_every_kind_of_array(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["X"] = X
    zarr.create_group(tmp_path / "x.zarr").create_array("X", data=X)
    kinds: list[Any] = [X, da.from_array(X, 100), xr.DataArray(X), X.tolist()]
    kinds += [str(tmp_path / name) for name in ("x.npy", "x.h5", "x.zarr")]
    for kind in kinds:
        np.testing.assert_array_equal(pick_rows(kind, ROWS), X[ROWS])
    sparse = pick_rows(sp.csr_array(X), ROWS)
    np.testing.assert_array_equal(sparse.toarray(), X[ROWS])


def test_pick_rows__reads_one_chunk_of_a_store(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "x", data=X, chunks=(100, 4))
    coreset = daskcoreset.build(str(tmp_path / "x"), size=50, random_state=0)
    for chunk in range(10):
        if chunk != 3:  # whoever asks for another one finds nothing
            (tmp_path / "x" / "c" / str(chunk) / "0").unlink()
    inside = np.flatnonzero(coreset.indices // 100 == 3)
    np.testing.assert_array_equal(coreset.source_rows(inside), coreset.points[inside])


def test_source_rows__of_tables_have_all_columns(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=list("abcd")).assign(name=[f"n{i}" for i in range(1000)])
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    path = str(tmp_path / "rows.parquet")
    coreset = daskcoreset.build(path, columns=["a", "c"], size=20, random_state=0)
    found = coreset.source_rows([2, 0])
    assert list(found.columns) == ["a", "b", "c", "d", "name"]
    assert found["name"].tolist() == [f"n{i}" for i in coreset.indices[[2, 0]]]
    assert coreset.source_rows(slice(3), columns=["d"])["d"].tolist() == [
        4 * i + 3.0 for i in coreset.indices[:3]
    ]
    for same in (frame, pl.from_pandas(frame)):
        assert coreset.source_rows(1, same)["name"].tolist() == [f"n{coreset.indices[1]}"]


def test_source_rows__of_files_of_which_one_has_a_column_more(tmp_path: Path) -> None:
    frame = pd.DataFrame(X[:500], columns=list("abcd"))
    frame.to_parquet(tmp_path / "1.parquet")
    frame.assign(e=1.0, name="n").to_parquet(tmp_path / "2.parquet")
    coreset = daskcoreset.build(tmp_path, columns=["a", "b"], size=50, random_state=0)
    found = coreset.source_rows()
    late = coreset.indices >= 500
    assert 0 < late.sum() < 50
    assert list(found.columns) == ["a", "b", "c", "d", "e", "name"]
    assert found["e"].dtype == np.float64
    np.testing.assert_array_equal(found["e"].notna(), late)
    assert found["name"].dropna().tolist() == ["n"] * late.sum()
    early = coreset.source_rows(np.flatnonzero(~late), columns=["e", "a"])
    assert list(early.columns) == ["e", "a"] and early["e"].isna().all()  # noqa: PT018
    with pytest.raises(InvalidInputError, match="nope"):
        coreset.source_rows(0, columns=["nope"])


def test_source_rows__says_what_is_missing() -> None:
    coreset = daskcoreset.build(X, size=20, random_state=0)
    with pytest.raises(InvalidInputError, match="does not remember where its data are"):
        coreset.source_rows(0)
    with pytest.raises(InvalidInputError, match="numbers of rows of the coreset, from 0 to 19"):
        coreset.source_rows(20, X)
    with pytest.raises(InvalidInputError, match="numbers of rows"):
        coreset.source_rows("a", X)
    for short in (X[:5], da.from_array(X[:5]), pd.DataFrame(X[:5])):
        with pytest.raises(InvalidInputError, match="X has 5 rows, and the coreset has row"):
            coreset.source_rows(None, short)
    with pytest.raises(InvalidInputError, match="unknown chunk sizes"):
        coreset.source_rows(0, da.from_array(X)[da.from_array(X)[:, 0] > 5])
    with pytest.raises(InvalidInputError, match=r"X\.sel"):
        coreset.source_rows(0, xr.DataArray(X), sample_dims="dim_0")
    assert len(coreset.source_rows([], X)) == 0
