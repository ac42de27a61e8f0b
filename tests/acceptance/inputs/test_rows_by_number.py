"""Rows of the data that a coreset has, read again by their numbers with few openings."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import scipy.sparse as sp

from tests.acceptance.face import Coreset, build, source_rows

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


def test_source_rows__of_many_npy_files_are_mapped_once_each(
    coreset: Coreset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(4):
        np.save(tmp_path / f"counted-{i}.npy", X[5_000 * i : 5_000 * (i + 1)])
    opens = Calls(builtins.open, "counted")
    monkeypatch.setattr(builtins, "open", opens)
    source_rows(coreset, tmp_path / "*.npy")
    assert 0 < opens.n < 40
    check(coreset, tmp_path / "*.npy")


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


def test_source_rows__of_wide_arrays_leave_out_what_is_between() -> None:
    class Counted:
        shape, dtype, ndim, n = (1000, 3000), np.dtype("f8"), 2, 0

        def __getitem__(self, index: Any) -> Any:
            rows = np.arange(1000.0)[index]
            self.n += len(rows)
            return rows[:, np.newaxis] + np.zeros(3000)

    weights = np.zeros(1000)
    weights[[3, 4, 600, 998]] = 1.0
    counted = Counted()
    coreset = build(
        np.arange(1000.0)[:, np.newaxis], sample_weight=weights, size=4, method="uniform",
        random_state=0,
    )  # fmt: skip
    assert (source_rows(coreset, counted)[:, 0] == coreset.indices).all()
    assert counted.n < 20


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
