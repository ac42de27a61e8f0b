"""HDF5 files: what is an array in them, and what is stored of it."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.acceptance.face import WeightedPoints, build, errors, open_rows, plan

h5py = pytest.importorskip("h5py")

X = np.random.default_rng(3).exponential(size=(50, 3))


def without_fill(file: Any, name: str, values: Any, chunks: tuple[int, ...] | None) -> Any:
    """Make an array of which HDF5 knows no fill value, as C programs can."""
    made, of_float = h5py.h5p.create(h5py.h5p.DATASET_CREATE), h5py.h5t.NATIVE_DOUBLE
    if chunks is not None:
        made.set_chunk(chunks)
    set_fill = ctypes.CDLL(h5py.h5p.__file__).H5Pset_fill_value
    set_fill.argtypes = [ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    assert set_fill(made.id, of_float.id, None) >= 0
    space = h5py.h5s.create_simple(values.shape)
    return h5py.Dataset(h5py.h5d.create(file.id, name.encode(), of_float, space, made))


def test_build__of_a_file_with_committed_types(tmp_path: Path) -> None:
    path, labels = tmp_path / "x.h5", np.arange(50, dtype=np.int8) % 2
    with h5py.File(path, "w") as file:
        file["X"] = np.dtype([("lat", "f8"), ("name", "S4")])  # a name does not make it an array
        file["sky"] = h5py.enum_dtype({"clear": 0, "cloudy": 1}, basetype="i1")
        file["rows/values"] = X
        file["rows/sky"] = h5py.enum_dtype({"dark": 0}, basetype="i2")
        file.create_dataset("label", data=labels, dtype=file["sky"])
    options: dict[str, Any] = {"size": 9, "method": "uniform", "random_state": 0}
    plain = build(X, labels, **options)
    assert WeightedPoints.equals(build(path, "label", **options), plain)
    with h5py.File(path) as file:
        assert WeightedPoints.equals(build(file, "label", **options), plain)
    with pytest.raises(ValueError, match="y is 'sky', but the group X has the arrays"):
        build(path, "sky", size=9)


@pytest.mark.parametrize("chunks", [None, (10, 3), (7, 2)])
def test_build__of_an_array_without_fill_value(
    chunks: tuple[int, ...] | None, tmp_path: Path
) -> None:
    values = np.where(np.arange(50)[:, None] < 10, 0.0, X)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        without_fill(file, "X", values, chunks)[:] = values
    options: dict[str, Any] = {"size": 9, "chunks": 20, "random_state": 0}
    assert WeightedPoints.equals(build(tmp_path / "x.h5", **options), build(values, **options))


@pytest.mark.parametrize(
    ("chunks", "what"), [(None, "cannot be read"), ((10, 3), r"chunk at \(40, 0\) .*not stored")]
)
def test_build__finds_what_was_never_written_without_fill_value(
    chunks: tuple[int, ...] | None, what: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        array = without_fill(file, "X", X, chunks)
        if chunks is not None:
            array[:40] = X[:40]
    with pytest.raises(OSError, match=what):
        build(path, size=9)
    if chunks is not None:
        rows = open_rows(path, missing_chunks="fill")
        assert len(build(rows, size=9, random_state=0)) == 9


@pytest.mark.parametrize("chunks", [(100, 2), None])
def test_hdf5__never_written(chunks: Any, tmp_path: Path) -> None:
    path = tmp_path / "X.h5"
    with h5py.File(path, "w") as file:
        array = file.create_dataset("X", (400, 2), "f8", chunks=chunks)
        if chunks:
            array[:200] = array[300:] = 5.0
            array[300:] = 5.0
    with pytest.raises(errors.StoreError, match=r'is not stored.*missing_chunks="fill"'):
        build(path, size=10, random_state=0)
    assert len(build(open_rows(path, missing_chunks="fill"), size=10, random_state=0)) == 10


def test_hdf5__another_one_or_a_longer_one(tmp_path: Path) -> None:
    path = tmp_path / "X.h5"
    for rows, dtype, fits in ((500, "f8", True), (400, "i8", False), (300, "f8", False)):
        with h5py.File(path, "w") as file:
            file["X"] = np.ones((400, 2))
        lazy = plan(path, size=10, random_state=0)
        with h5py.File(path, "w") as file:
            file["X"] = np.ones((rows, 2), dtype)
        if fits:
            assert lazy.compute().weights.sum() == pytest.approx(400)
        else:
            with pytest.raises(errors.StoreError, match=r"on host .* differs from the array"):
                lazy.compute()
