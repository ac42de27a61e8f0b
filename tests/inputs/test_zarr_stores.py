"""Zarr stores as objects, damaged chunks by name, and pipelines that decode the same values."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from daskcoreset.inputs.zarr_stores import decoder_of, with_zarrs

N, D, CHUNK = 200, 3, 50
X = np.random.default_rng(2).normal(size=(N, D))


# --- damage ------------------------------------------------------------------------------


def store_of(path: Path, **options: Any) -> Any:
    array = zarr.create_array(path, shape=X.shape, dtype=X.dtype, **options)
    array[:] = X
    return array


# --- pipelines ---------------------------------------------------------------------------


SHARDED: dict[str, Any] = {"chunks": (10, 3), "shards": (50, 3)}


def test_pipelines__give_the_same_bits(tmp_path: Path) -> None:
    pytest.importorskip("zarrs", reason="zarrs is not installed")
    array = store_of(tmp_path / "a.zarr", **SHARDED)
    fast = with_zarrs(array)
    assert (decoder_of(array), decoder_of(fast)) == ("zarr", "zarrs")
    for rows in (slice(0, 50), slice(7, 133), slice(199, 200), slice(0, 200)):
        np.testing.assert_array_equal(fast[rows], array[rows])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fast))[3:9], X[3:9])
    assert decoder_of(pickle.loads(pickle.dumps(fast))) == "zarrs"
    assert zarr.config.get("codec_pipeline.path").endswith("BatchedCodecPipeline")
