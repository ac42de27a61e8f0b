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

from tests.acceptance.face import build, errors, open_rows, source_rows

X = np.arange(4000.0).reshape(1000, 4)


def test_pick_rows__reads_one_chunk_of_a_store(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "x", data=X, chunks=(100, 4))
    coreset = build(str(tmp_path / "x"), size=50, random_state=0)
    for chunk in range(10):
        if chunk != 3:  # whoever asks for another one finds nothing
            (tmp_path / "x" / "c" / str(chunk) / "0").unlink()
    inside = np.flatnonzero(coreset.indices // 100 == 3)
    np.testing.assert_array_equal(coreset.source_rows(inside), coreset.points[inside])


def test_source_rows__of_tables_have_all_columns(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=list("abcd")).assign(name=[f"n{i}" for i in range(1000)])
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    path = str(tmp_path / "rows.parquet")
    coreset = build(open_rows(path, columns=["a", "c"]), size=20, random_state=0)
    found = coreset.source_rows([2, 0])
    assert list(found.columns) == ["a", "b", "c", "d", "name"]
    assert found["name"].tolist() == [f"n{i}" for i in coreset.indices[[2, 0]]]
    some = source_rows(coreset, open_rows(path, columns=["d"]), slice(3))
    assert some["d"].tolist() == [4 * i + 3.0 for i in coreset.indices[:3]]
    for same in (frame, pl.from_pandas(frame)):
        assert coreset.source_rows(1, same)["name"].tolist() == [f"n{coreset.indices[1]}"]


def test_source_rows__of_files_of_which_one_has_a_column_more(tmp_path: Path) -> None:
    frame = pd.DataFrame(X[:500], columns=list("abcd"))
    frame.to_parquet(tmp_path / "1.parquet")
    frame.assign(e=1.0, name="n").to_parquet(tmp_path / "2.parquet")
    coreset = build(open_rows(tmp_path, columns=["a", "b"]), size=50, random_state=0)
    found = coreset.source_rows()
    late = coreset.indices >= 500
    assert 0 < late.sum() < 50
    assert list(found.columns) == ["a", "b", "c", "d", "e", "name"]
    assert found["e"].dtype == np.float64
    np.testing.assert_array_equal(found["e"].notna(), late)
    assert found["name"].dropna().tolist() == ["n"] * late.sum()
    rows = open_rows(tmp_path, columns=["e", "a"])
    early = source_rows(coreset, rows, np.flatnonzero(~late))
    assert list(early.columns) == ["e", "a"] and early["e"].isna().all()  # noqa: PT018
    with pytest.raises(errors.InvalidInputError, match="nope"):
        source_rows(coreset, open_rows(tmp_path, columns=["nope"]), 0)


def test_source_rows__says_what_is_missing() -> None:
    coreset = build(X, size=20, random_state=0)
    with pytest.raises(errors.InvalidInputError, match="does not remember where its data are"):
        coreset.source_rows(0)
    with pytest.raises(
        errors.InvalidInputError, match="numbers of rows of the coreset, from 0 to 19"
    ):
        coreset.source_rows(20, X)
    with pytest.raises(errors.InvalidInputError, match="numbers of rows"):
        coreset.source_rows("a", X)
    for short in (X[:5], da.from_array(X[:5]), pd.DataFrame(X[:5])):
        with pytest.raises(errors.InvalidInputError, match="X has 5 rows, and the coreset has row"):
            coreset.source_rows(None, short)
    with pytest.raises(errors.InvalidInputError, match="unknown chunk sizes"):
        coreset.source_rows(0, da.from_array(X)[da.from_array(X)[:, 0] > 5])
    with pytest.raises(errors.InvalidInputError, match=r"X\.sel"):
        source_rows(coreset, open_rows(xr.DataArray(X), sample_dims="dim_0"), 0)
    assert len(coreset.source_rows([], X)) == 0


def test_source_rows__reads_every_kind_of_array(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["X"] = X
    zarr.create_group(tmp_path / "x.zarr").create_array("X", data=X)
    coreset = build(X, size=20, random_state=0)
    kinds: list[Any] = [X, da.from_array(X, 100), xr.DataArray(X), X.tolist()]
    kinds += [str(tmp_path / name) for name in ("x.npy", "x.h5", "x.zarr")]
    for kind in kinds:
        np.testing.assert_array_equal(coreset.source_rows(None, kind), coreset.points)
    sparse = coreset.source_rows([3, 1], sp.csr_array(X))
    np.testing.assert_array_equal(sparse.toarray(), coreset.points[[3, 1]])
