"""Zarr arrays with checked reads: any selection, and pipelines that decode the same values."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from daskcoreset.errors import StoreError
from daskcoreset.inputs.zarr import checked

X = np.random.default_rng(2).normal(5.0, 1.0, size=(400, 3))
SHARDED: dict[str, Any] = {"chunks": (10, 3), "shards": (100, 3)}


def stored(path: Path, **layout: Any) -> Any:
    return zarr.create_array(path, data=X, **({"chunks": (100, 3)} | layout))


@pytest.mark.parametrize("layout", [{}, {"chunks": (100, 2)}, {"zarr_format": 2}, SHARDED])
def test_checked__any_selection(layout: dict[str, Any], tmp_path: Path) -> None:
    array = stored(tmp_path / "X.zarr", **layout)
    found = pickle.loads(pickle.dumps(checked(array)))
    keys: list[Any] = [
        slice(None), slice(-150, None), slice(150, 90), slice(None, None, 2), 3,
        (slice(5, 250), 1), (slice(50, 350), slice(0, 1)), np.array([1, 399]), ...,
    ]  # fmt: skip
    for key in keys:
        np.testing.assert_array_equal(found[key], array[key])
    picked = ([1, 399], [0])
    np.testing.assert_array_equal(found.oindex[picked], array.oindex[picked])
    np.testing.assert_array_equal(found.vindex[picked], array.vindex[picked])
    files = sorted(file for file in (tmp_path / "X.zarr").rglob("*") if file.is_file())
    [file for file in files if file.name[0] not in ".z"][1].unlink()
    for key in (slice(None, None, 2), (slice(5, 250), 1), np.array([1, 120]), 120):
        with pytest.raises(StoreError, match="is not stored"):
            found[key] if layout != {"chunks": (100, 2)} else found[:]
    np.testing.assert_array_equal(found[200:], array[200:])


def test_checked__arrays_in_the_order_of_fortran(tmp_path: Path) -> None:
    array = stored(tmp_path / "X.zarr", zarr_format=2, order="F")
    np.testing.assert_array_equal(checked(array)[:], X)
    stored(tmp_path / "Y.zarr")
    with zarr.config.set({"array.order": "F"}):
        found = checked(zarr.open_array(tmp_path / "Y.zarr"))
        np.testing.assert_array_equal(found[:], X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(found))[:], X)


@pytest.mark.parametrize("layout", [{}, {"compressors": None}, {"zarr_format": 2}, SHARDED])
def test_decoders__give_the_same_bits(layout: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("zarrs", reason="zarrs is not installed")
    array = stored(tmp_path / "a.zarr", **layout)
    fast = pickle.loads(pickle.dumps(checked(array)))
    assert type(fast.async_array.codec_pipeline.decoder).__name__ == "ZarrsCodecPipeline"
    for rows in (slice(0, 50), slice(7, 133), slice(199, 200), slice(0, 200)):
        np.testing.assert_array_equal(fast[rows], array[rows])
    assert zarr.config.get("codec_pipeline.path").endswith("BatchedCodecPipeline")
