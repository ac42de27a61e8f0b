"""Groups as archives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import zarr

from daskcoreset.core.contents import GroupContents
from daskcoreset.core.errors import StoreError
from daskcoreset.core.packing import pack, unpack
from daskcoreset.core.storage import read_group


def test_pack__is_read_by_zarr_and_the_same_every_time(tmp_path: Path) -> None:
    rows = np.arange(12.0).reshape(4, 3)
    contents = GroupContents({"x": rows}, {"x": ("row", "column")}, {"a": 1}, "demo", 1)
    packed = pack(contents)
    assert packed == pack(contents)
    arrays, attributes = read_group(unpack(packed, "here"), kind="demo", schema_version=1)
    np.testing.assert_array_equal(arrays["x"], rows)
    assert attributes == {"a": 1}
    (tmp_path / "x.zip").write_bytes(packed)
    with zarr.storage.ZipStore(tmp_path / "x.zip", mode="r") as store:
        np.testing.assert_array_equal(zarr.open_group(store, mode="r")["x"][...], rows)  # type: ignore[index]
    for damaged in (b"", packed[:-30], b"x" * 100):
        with pytest.raises(StoreError, match="here: damaged"):
            unpack(damaged, "here")
