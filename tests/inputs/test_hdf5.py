"""HDF5 files: what was never written, and what is another one where it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from daskcoreset.build import build
from daskcoreset.core.errors import StoreError


def test_hdf5__sources_of_virtual_data_sets(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "part.h5", "w") as file:
        file["rows"] = np.ones((100, 2))
    layout = h5py.VirtualLayout((100, 2), "f8")
    layout[:] = h5py.VirtualSource("part.h5", "rows", (100, 2))
    with h5py.File(tmp_path / "X.h5", "w") as file:
        file.create_virtual_dataset("X", layout)
    assert len(build(tmp_path / "X.h5", size=10, random_state=0)) == 10
    (tmp_path / "part.h5").unlink()
    with pytest.raises(StoreError, match=r"in 'part.h5', which is not there on host"):
        build(tmp_path / "X.h5", size=10)


def refused_unless_filled(path: Path, match: str) -> None:
    with pytest.raises(StoreError, match=match):
        build(path, size=10, chunks=50, random_state=0)
    assert len(build(path, size=10, random_state=0, missing_chunks="fill")) == 10


@pytest.mark.parametrize("kept", [3200, 0])
def test_hdf5__raw_file_cut_short(
    kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = [("a.bin", 16, 1600), ("b.bin", 0, h5py.h5f.UNLIMITED)]
    with h5py.File("X.h5", "w") as file:
        file.create_dataset("X", data=np.ones((400, 2)), external=files)
    assert build("X.h5", size=10, random_state=0).points.min() == 1
    raw = Path("b.bin").read_bytes()
    assert len(raw) == 4800
    Path("b.bin").write_bytes(raw[:kept])
    refused_unless_filled(Path("X.h5"), rf"takes 4800 bytes from byte 0 of 'b.bin'.*has {kept} of")


def virtual(path: Path, *sources: tuple[Any, str, tuple[int, ...]], shape: Any = (400, 2)) -> None:
    layout = h5py.VirtualLayout(shape, "f8")
    for where, name, source_shape in sources:
        layout[where] = h5py.VirtualSource(name, "X", source_shape)
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("X", layout)


def half_written(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("X", (400, 2), "f8", chunks=(100, 2))[:200] = 5.0


def test_hdf5__sources_never_written(tmp_path: Path) -> None:
    path = tmp_path / "X.h5"
    half_written(tmp_path / "part.h5")
    whole = np.s_[:, :]
    virtual(path, (whole, "part.h5", (400, 2)))
    refused_unless_filled(path, r"the chunk at \([23]00, 0\) of .*part.h5:/X was never written")
    virtual(tmp_path / "again.h5", (whole, "X.h5", (400, 2)))
    refused_unless_filled(tmp_path / "again.h5", r"part.h5:/X was never written")
    # Zeros that were written, in files of their own: threads may still read the others.
    with h5py.File(tmp_path / "zeros.h5", "w") as file:
        file.create_dataset("X", data=np.zeros((400, 2)), chunks=(100, 2))
    virtual(tmp_path / "first.h5", (whole, "zeros.h5", (400, 2)))
    virtual(tmp_path / "second.h5", (whole, "first.h5", (400, 2)))
    assert len(build(tmp_path / "second.h5", size=10, chunks=50)) == 10


def test_hdf5__part_of_a_source_that_was_written(tmp_path: Path) -> None:
    half_written(tmp_path / "part.h5")
    with h5py.File(tmp_path / "part.h5", "r+") as file:
        file["X"][:10] = 0.0
    layout = h5py.VirtualLayout((100, 2), "f8")
    layout[:] = h5py.VirtualSource("part.h5", "X", (400, 2))[:100]
    with h5py.File(tmp_path / "X.h5", "w") as file:
        file.create_virtual_dataset("X", layout)
    assert len(build(tmp_path / "X.h5", size=10, random_state=0)) == 10


def test_hdf5__sources_of_single_rows_and_of_the_same_file(tmp_path: Path) -> None:
    layout = h5py.VirtualLayout((6, 4), "f8")
    with h5py.File(tmp_path / "X.h5", "w") as file:
        file["rows/even"] = np.zeros((3, 4))
        for i in (1, 3, 5):
            file[f"rows/{i}"] = np.arange(4.0)
            layout[i] = h5py.VirtualSource(".", f"rows/{i}", (4,))
        layout[::2] = h5py.VirtualSource(".", "rows/even", (3, 4))
        file.create_virtual_dataset("X", layout)
    with h5py.File(tmp_path / "X.h5", "r") as file:
        assert len(build(file["X"], size=5, chunks=2)) == 5
    with h5py.File(tmp_path / "X.h5", "r+") as file:
        del file["rows/even"]
        file.create_dataset("rows/even", (3, 4), "f8", chunks=(1, 4))[:2] = 1.0
    with (
        h5py.File(tmp_path / "X.h5", "r") as file,
        pytest.raises(StoreError, match=r"rows/even was never written"),
    ):
        build(file["X"], size=5, chunks=2)


def test_hdf5__sources_that_are_shorter(tmp_path: Path) -> None:
    virtual(tmp_path / "X.h5", (np.s_[:, :], "part.h5", (400, 2)))
    with h5py.File(tmp_path / "part.h5", "w") as file:
        file.create_dataset("X", data=np.ones((300, 2)), chunks=(100, 2))
    with pytest.raises(StoreError, match="restore it"):  # by HDF5
        build(tmp_path / "X.h5", size=10, chunks=50)
    layout = h5py.VirtualLayout((400, 2), "f8")
    layout[:] = h5py.VirtualSource("part.h5", "X", (500, 2))[50:450]
    with h5py.File(tmp_path / "cut.h5", "w") as file:
        file.create_virtual_dataset("X", layout)
    refused_unless_filled(tmp_path / "cut.h5", r"which is of shape \(300, 2\).*too small")


@pytest.mark.parametrize("where", [np.s_[:200], np.s_[::2], np.s_[:, :1]])
def test_hdf5__rows_that_come_from_no_source(where: Any, tmp_path: Path) -> None:
    shape = np.empty((400, 2))[where].shape
    virtual(tmp_path / "X.h5", (where, "part.h5", shape))
    with h5py.File(tmp_path / "part.h5", "w") as file:
        file["X"] = np.ones(shape)
    refused_unless_filled(tmp_path / "X.h5", r"whose row \d+ comes from no source")
