"""HDF5 files: what was never written, and what is another one where it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from daskcoreset import build, open_rows
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
    assert len(build(open_rows(path, missing_chunks="fill"), size=10, random_state=0)) == 10


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
