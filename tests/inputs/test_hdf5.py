"""HDF5 files: what was never written, and what is another one where it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from daskcoreset.build import build
from daskcoreset.core.errors import StoreError


@pytest.mark.parametrize("chunks", [(100, 2), None])
def test_hdf5__never_written(chunks: Any, tmp_path: Path) -> None:
    path = tmp_path / "X.h5"
    with h5py.File(path, "w") as file:
        array = file.create_dataset("X", (400, 2), "f8", chunks=chunks)
        if chunks:
            array[:200] = array[300:] = 5.0
            array[300:] = 5.0
    with pytest.raises(StoreError, match=r'was never written.*missing_chunks="fill"'):
        build(path, size=10, random_state=0)
    assert len(build(path, size=10, random_state=0, missing_chunks="fill")) == 10


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


def test_hdf5__another_one_or_a_longer_one(tmp_path: Path) -> None:
    path = tmp_path / "X.h5"
    for rows, dtype, fits in ((500, "f8", True), (400, "i8", False), (300, "f8", False)):
        with h5py.File(path, "w") as file:
            file["X"] = np.ones((400, 2))
        lazy = build(path, size=10, compute=False, random_state=0)
        with h5py.File(path, "w") as file:
            file["X"] = np.ones((rows, 2), dtype)
        if fits:
            assert lazy.compute().weights.sum() == pytest.approx(400)
        else:
            with pytest.raises(StoreError, match="holds another array on host"):
                lazy.compute()
