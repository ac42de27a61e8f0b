"""NumPy and HDF5 files: their arrays by name, and damage by file and rows."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from daskcoreset import build
from daskcoreset.core.errors import InvalidInputError, StoreError
from daskcoreset.core.typing import AnyArray
from daskcoreset.inputs import sources
from daskcoreset.inputs.blocks import row_blocks
from tests.tools.servers import FileServer

X = np.random.default_rng(3).normal(size=(400, 3))


def test_hdf5__arrays_in_folders(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["deep/rows"] = X
        file["deep/labels"] = np.arange(400)
    blocks = row_blocks(tmp_path / "a.h5", "deep/labels")
    assert blocks.name == f"{tmp_path}/a.h5:/deep/rows"
    with pytest.raises(InvalidInputError, match=r"y is 'z', but the group X has .*'deep/labels'"):
        row_blocks(tmp_path / "a.h5", "z")


def test_hdf5__damage_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        made = file.create_dataset(
            "X", data=X, chunks=(100, 3), compression="gzip", fletcher32=True
        )
        chunk = made.id.get_chunk_info(2)
    data = bytearray(path.read_bytes())
    data[chunk.byte_offset + chunk.size // 2] ^= 255
    path.write_bytes(bytes(data))
    named = rf"rows 200 to 300 of the data set '/X' in '{path}' cannot be read .*restore it"
    with pytest.raises(StoreError, match=named) as caught:
        build(path, size=10, chunks=100)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_npy__that_python_miscounts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    path = tmp_path / f"a.{suffix}"
    np.save(path, X) if suffix == "npy" else np.savez(path, X=X)
    parse, calls = ast.literal_eval, iter(range(10**6))

    def miscounts(text: str) -> Any:
        if next(calls) % 2 == 0:  # every other header
            message = "AST constructor recursion depth mismatch (before=66, after=62)"
            raise SystemError(message)
        return parse(text)

    monkeypatch.setattr(ast, "literal_eval", miscounts)
    built = build(path, size=10, chunks=100, random_state=0)
    monkeypatch.undo()
    assert next(calls) >= 2
    np.testing.assert_array_equal(
        built.points, build(path, size=10, chunks=100, random_state=0).points
    )


def test_npy__that_is_short(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, X)
    lazy = build(path, size=10, chunks=100, compute=False)
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(StoreError, match=rf"100 rows from byte \d+ of '{path}' cannot be read"):
        lazy.compute()
    with pytest.raises(InvalidInputError, match=rf"as an array of numbers: '{path}'"):
        build(path)


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize(
    "other",
    [
        np.arange(400.0, dtype="f8").reshape(200, 2),
        np.arange(400, dtype="u4").reshape(200, 2),
        np.asfortranarray(np.arange(400, dtype="f4").reshape(200, 2)),
    ],
    ids=["f8", "u4", "fortran"],
)
def test_npy__that_is_another_one_where_it_is_read(
    other: AnyArray, mapped: bool, tmp_path: Path
) -> None:
    path = tmp_path / "rows.npy"
    np.save(path, np.arange(400, dtype="f4").reshape(200, 2))
    X: Any = np.load(path, mmap_mode="r") if mapped else path
    lazy = build(X, size=10, compute=False, random_state=0)
    path.unlink()
    np.save(path, other)
    with pytest.raises(StoreError, match=r"rows\.npy holds another array on host"):
        lazy.compute()


def test_npy__by_url_that_is_another_one_on_a_worker(
    files: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = files.folder / "rows.npy"
    np.save(path, np.arange(400, dtype="f4").reshape(200, 2))

    def defined() -> Any:
        return build(f"{files.url}/rows.npy", size=10, chunks=50, compute=False, random_state=0)

    expected = defined().compute(scheduler="sync")
    lazy = defined()
    monkeypatch.setattr(sources, "_seen", set())  # a process that has not opened it
    files.requests.clear()
    assert np.array_equal(lazy.compute(scheduler="sync").points, expected.points)
    assert sum(request.startswith("GET") for request in files.requests) == 5  # the header once
    np.save(path, np.arange(600, dtype="f4").reshape(300, 2))  # rows were added
    monkeypatch.setattr(sources, "_seen", set())
    assert np.array_equal(lazy.compute(scheduler="sync").points, expected.points)
    for other in (np.arange(400, dtype="u4").reshape(200, 2), np.ones((100, 2), "f4")):
        np.save(path, other)
        monkeypatch.setattr(sources, "_seen", set())
        with pytest.raises(StoreError, match=r"rows\.npy holds another array on host"):
            lazy.compute(scheduler="sync")
