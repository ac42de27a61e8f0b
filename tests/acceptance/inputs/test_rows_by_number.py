"""Rows of the data that a coreset has, read again by their numbers with few openings."""

from __future__ import annotations

import builtins
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

from tests.acceptance.face import Coreset, build, errors, open_rows, source_rows
from tests.acceptance.tools.counting import CountingArray

X = np.random.default_rng(2).gamma(1.0, size=(20_000, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def coreset() -> Coreset:
    """A coreset with many rows, which are spread over all of the data."""
    return build(X, size=3_000, random_state=0)


def check(coreset: Coreset, source: Any) -> None:
    for rows in (None, [7], slice(2_000, 0, -3), []):
        picked = slice(None) if rows is None else rows
        found = source_rows(coreset, source, rows)
        np.testing.assert_array_equal(found, X[coreset.indices[picked]])


class Calls:
    """Counts calls of a function with some text in its first argument."""

    def __init__(self, function: Any, text: str) -> None:
        self.function, self.text, self.n = function, text, 0

    def __call__(self, *args: Any, **options: Any) -> Any:
        self.n += self.text in str(args[0])
        return self.function(*args, **options)


def test_source_rows__of_wide_arrays_leave_out_what_is_between() -> None:
    weights = np.zeros(1_000)
    weights[[3, 4, 600, 998]] = 1.0
    wide = CountingArray(np.arange(3e6).reshape(1_000, 3_000))
    few = build(np.ones((1_000, 1)), sample_weight=weights, size=4, method="uniform")
    np.testing.assert_array_equal(source_rows(few, wide), wide.array[few.indices])
    assert wide.reads.sum() < 20


@pytest.mark.parametrize("order", ["C", "F"])
def test_source_rows__of_npy_files_are_mapped_once(
    order: Any, coreset: Coreset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "counted.npy", np.asarray(X, order=order))
    opens = Calls(builtins.open, "counted")
    monkeypatch.setattr(builtins, "open", opens)
    source_rows(coreset, tmp_path / "counted.npy")
    assert 0 < opens.n < 10
    check(coreset, tmp_path / "counted.npy")
    check(coreset, np.load(tmp_path / "counted.npy", mmap_mode="r"))


@pytest.mark.parametrize("chunks", [None, (300, 4), (1, 4)])
def test_source_rows__of_hdf5_files_are_opened_once(
    chunks: tuple[int, int] | None,
    coreset: Coreset,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with h5py.File(tmp_path / "counted.h5", "w") as file:
        file.create_dataset("X", data=X, chunks=chunks)
    opens = Calls(h5py.File, "counted")
    monkeypatch.setattr(h5py, "File", opens)
    source_rows(coreset, tmp_path / "counted.h5")
    assert 0 < opens.n < 10
    monkeypatch.undo()
    check(coreset, tmp_path / "counted.h5")


@pytest.mark.parametrize("name", ["x.npy", "x.h5"])
def test_source_rows__of_remote_files_take_few_requests(
    name: str, coreset: Coreset, files: Any
) -> None:
    pytest.importorskip("aiohttp")
    if name == "x.npy":
        np.save(files.folder / name, X)
    else:
        with h5py.File(files.folder / name, "w") as file:
            file["X"] = X
    source_rows(coreset, f"{files.url}/{name}")
    assert 0 < len(files.requests) < 30
    check(coreset, f"{files.url}/{name}")


def test_source_rows__that_lie_far_apart_are_not_read_with_what_is_between(files: Any) -> None:
    pytest.importorskip("aiohttp")
    far = np.zeros((300_000, 4))
    far[[0, 1, 150_000, 299_999]] = np.arange(16.0).reshape(4, 4) + 1
    np.save(files.folder / "far.npy", far)
    weights = far.any(axis=1).astype(float)
    coreset = build(far, sample_weight=weights, size=3, method="uniform", random_state=0)
    found = source_rows(coreset, f"{files.url}/far.npy")
    np.testing.assert_array_equal(found, far[coreset.indices])
    assert 2 < len(files.requests) < 12


def test_source_rows__of_other_arrays(coreset: Coreset) -> None:
    class Counted:
        shape, dtype, ndim, n = X.shape, X.dtype, 2, 0

        def __getitem__(self, index: Any) -> Any:
            self.n += 1
            return X[index]

    counted = Counted()
    check(coreset, counted)
    assert counted.n < 30
    found = source_rows(coreset, sp.csr_array(X))
    np.testing.assert_array_equal(found.toarray(), X[coreset.indices])


ROWS = np.arange(4000.0).reshape(1000, 4)


def test_pick_rows__reads_one_chunk_of_a_store(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "x", data=ROWS, chunks=(100, 4))
    coreset = build(str(tmp_path / "x"), size=50, random_state=0)
    for chunk in range(10):
        if chunk != 3:  # whoever asks for another one finds nothing
            (tmp_path / "x" / "c" / str(chunk) / "0").unlink()
    inside = np.flatnonzero(coreset.indices // 100 == 3)
    np.testing.assert_array_equal(coreset.source_rows(inside), coreset.points[inside])


def test_source_rows__may_be_none_of_several_files(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("a.npy", "b.npy")]
    for path, rows in zip(paths, np.split(ROWS, 2), strict=True):
        np.save(path, rows)
    coreset = build(paths, size=50, random_state=0)
    assert coreset.source_rows(np.array([], dtype=np.int64), paths).shape == (0, 4)


def test_source_rows__of_tables_have_all_columns(tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS, columns=list("abcd")).assign(name=[f"n{i}" for i in range(1000)])
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
    frame = pd.DataFrame(ROWS[:500], columns=list("abcd"))
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
    coreset = build(ROWS, size=20, random_state=0)
    with pytest.raises(errors.InvalidInputError, match="the provenance has no path of the data"):
        coreset.source_rows(0)
    with pytest.raises(
        errors.InvalidInputError, match="numbers of rows of the coreset, from 0 to 19"
    ):
        coreset.source_rows(20, ROWS)
    with pytest.raises(errors.InvalidInputError, match="numbers of rows"):
        coreset.source_rows("a", ROWS)
    for short in (ROWS[:5], da.from_array(ROWS[:5]), pd.DataFrame(ROWS[:5])):
        with pytest.raises(errors.InvalidInputError, match="X has 5 rows, but the coreset has row"):
            coreset.source_rows(None, short)
    with pytest.raises(errors.InvalidInputError, match="unknown chunk sizes"):
        coreset.source_rows(0, da.from_array(ROWS)[da.from_array(ROWS)[:, 0] > 5])
    with pytest.raises(errors.InvalidInputError, match=r"X\.i?sel"):
        source_rows(coreset, open_rows(xr.DataArray(ROWS), sample_dims="dim_0"), 0)
    assert len(coreset.source_rows([], ROWS)) == 0
