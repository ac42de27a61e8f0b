"""Files that are not read are told what they are, and what reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pytest
import zarr

from tests.acceptance.face import build, errors


@pytest.mark.parametrize(
    ("ending", "remedy"),
    [
        (".feather", "pyarrow.feather"),
        (".arrow", r"pyarrow.ipc"),
        (".orc", r"pyarrow.orc.read_table"),
        (".h5ad", r"HDF5 of AnnData.*anndata"),
        (".he5", r"HDF5 of HDF-EOS5.*h5py"),
        (".zarr.zip", r"zarr.storage.ZipStore"),
    ],
)
def test_build__endings_of_other_formats(tmp_path: Path, ending: str, remedy: str) -> None:
    path, table = tmp_path / f"x{ending}", pa.table({"a": [1.0, 2.0, 3.0]})
    if ending == ".orc":
        pyarrow.orc.write_table(table, path)
    elif ending.startswith(".h"):
        with h5py.File(path, "w") as file:
            file["X"] = np.ones((4, 2))
    elif ending == ".zarr.zip":
        write_zip(path)
    else:
        pyarrow.feather.write_feather(table, path)
    with pytest.raises(errors.InvalidInputError, match=remedy):
        build(path, size=2)


def write_zip(path: Path) -> None:
    store = zarr.storage.ZipStore(path, mode="w")
    zarr.create_array(store, data=np.arange(20.0).reshape(10, 2), chunks=(5, 2))
    store.close()


def test_build__the_folder_of_an_icechunk_repository(tmp_path: Path) -> None:
    for part in ("snapshots", "manifests", "refs", "transactions", "chunks"):
        (tmp_path / part).mkdir()
    with pytest.raises(errors.InvalidInputError, match=r"Icechunk.*readonly_session"):
        build(tmp_path, size=2)


@pytest.mark.parametrize(
    ("codec", "package"),
    [("imagecodecs_jpegxl", "imagecodecs"), ("pcodec", r"numcodecs\[pcodec\]"), ("abc", "has it")],
)
def test_build__a_missing_codec_of_zarr(tmp_path: Path, codec: str, package: str) -> None:
    zarr.create_array(tmp_path / "x", data=np.ones((4, 2)), chunks=(2, 2), zarr_format=2)
    metadata = json.loads((tmp_path / "x/.zarray").read_text())
    metadata["compressor"] = {"id": codec}
    (tmp_path / "x/.zarray").write_text(json.dumps(metadata))
    with pytest.raises(
        errors.InvalidInputError, match=rf"'{codec}' is missing: install.*{package}"
    ):
        build(tmp_path / "x", size=2)


def test_build__a_missing_filter_of_hdf5(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        chunked = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        chunked.set_chunk((5, 2))
        chunked.set_filter(32015, h5py.h5z.FLAG_OPTIONAL)
        space = h5py.h5s.create_simple((10, 2))
        made: Any = h5py.h5d.create(file.id, b"X", h5py.h5t.NATIVE_DOUBLE, space, chunked)
        for row in (0, 5):
            made.write_direct_chunk((row, 0), bytes(40), 0)
    with pytest.raises(errors.StoreError, match="install the package hdf5plugin") as caught:
        build(tmp_path / "x.h5", size=2)
    assert "restore" not in str(caught.value)


def test_build__the_reason_is_shown_if_the_path_is_long(tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 200) / ("e" * 200)
    folder.mkdir(parents=True)
    (folder / "x.parquet").write_bytes(b"PAR1 garbage")
    with pytest.raises(errors.InvalidInputError, match="magic bytes not found"):
        build(folder / "x.parquet", size=2)
