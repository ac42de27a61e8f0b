"""NumPy and HDF5 files: their arrays by name, and damage by file and rows."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.acceptance.face import build, errors, plan
from tests.acceptance.tools.input_kinds import all_rows
from tests.pairs import each

X = np.random.default_rng(3).normal(size=(400, 3))


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
    with pytest.raises(errors.StoreError, match=named) as caught:
        build(path, size=10, chunks=100)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@each(
    mapped=[True, False],
    other={
        "f8": np.arange(400.0, dtype="f8").reshape(200, 2),
        "u4": np.arange(400, dtype="u4").reshape(200, 2),
    },
)
def test_npy__that_is_another_one_where_it_is_read(
    other: Any, mapped: bool, tmp_path: Path
) -> None:
    path = tmp_path / "rows.npy"
    np.save(path, np.arange(400, dtype="f4").reshape(200, 2))
    X: Any = np.load(path, mmap_mode="r") if mapped else path
    lazy = plan(X, size=10, random_state=0)
    path.unlink()
    np.save(path, other)
    with pytest.raises(errors.StoreError, match=r"rows\.npy on host .* differs from the array"):
        lazy.compute()


@pytest.mark.parametrize("order", ["C", "F"])
def test_memmap__views_and_files_of_raw_numbers(order: Any, tmp_path: Path) -> None:
    table = np.arange(123, dtype=np.float32).reshape(41, 3)
    content = [np.full(100, 255, np.uint8), table.ravel(order).view(np.uint8)]
    np.concatenate(content).tofile(tmp_path / "raw")
    whole = np.memmap(tmp_path / "raw", np.float32, "r", 100, table.shape, order)
    np.save(tmp_path / "X.npy", np.asarray(table, order=order))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for array in (whole, mapped, mapped[5:][3:], mapped[::-2, ::-1], mapped[:3].T):
        np.testing.assert_array_equal(all_rows(array, chunks=3).points, np.array(array))


def test_memmap__what_the_file_does_not_hold_comes_from_memory(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", X)
    changed = np.load(tmp_path / "X.npy", mmap_mode="c")
    changed[0] = -1  # in memory only
    gone = np.memmap(tmp_path / "gone", np.float64, "w+", shape=X.shape)
    gone[:] = X  # not flushed
    np.testing.assert_array_equal(all_rows(gone, chunks=100).points, X)
    (tmp_path / "gone").unlink()
    for array in (changed, gone):
        np.testing.assert_array_equal(all_rows(array, chunks=100).points, np.array(array))
