"""Files of other formats, and codecs that are missing: errors that say what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import zarr

from tests.acceptance.face import build, errors


def test_build__a_missing_codec_of_zarr_is_named(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "x", data=np.ones((4, 2)), chunks=(2, 2), zarr_format=2)
    metadata = json.loads((tmp_path / "x/.zarray").read_text())
    metadata["compressor"] = {"id": "imagecodecs_jpegxl"}
    (tmp_path / "x/.zarray").write_text(json.dumps(metadata))
    with pytest.raises(errors.InvalidInputError, match="'imagecodecs_jpegxl'"):
        build(tmp_path / "x", size=2)


def test_build__a_missing_filter_of_hdf5_is_no_rows(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        chunked = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        chunked.set_chunk((5, 2))
        chunked.set_filter(32015, h5py.h5z.FLAG_OPTIONAL)
        space = h5py.h5s.create_simple((10, 2))
        made: Any = h5py.h5d.create(file.id, b"X", h5py.h5t.NATIVE_DOUBLE, space, chunked)
        for row in (0, 5):
            made.write_direct_chunk((row, 0), bytes(40), 0)
    with pytest.raises(errors.StoreError, match="install the codecs"):
        build(tmp_path / "x.h5", size=2)


def test_build__the_reason_is_shown_if_the_path_is_long(tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 200) / ("e" * 200)
    folder.mkdir(parents=True)
    (folder / "x.parquet").write_bytes(b"PAR1 garbage")
    with pytest.raises(errors.InvalidInputError, match="magic bytes not found"):
        build(folder / "x.parquet", size=2)
