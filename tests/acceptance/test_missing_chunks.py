"""What is missing or has changed in a store is an error, and never zeros."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr

from tests.acceptance import face

X = np.random.default_rng(0).normal(size=(600, 4)) + 5.0


def written(folder: Path, *, shards: bool = False) -> Any:
    kinds: dict[str, Any] = (
        {"chunks": (50, 4), "shards": (200, 4)} if shards else {"chunks": (50, 4)}
    )
    return zarr.create_array(folder / "X.zarr", data=X, fill_value=0.0, **kinds)


def sources(folder: Path) -> dict[str, Any]:
    array = zarr.open_array(folder / "X.zarr", mode="r")
    return {
        "path": str(folder / "X.zarr"),
        "array": array,
        "from_zarr": da.from_zarr(str(folder / "X.zarr")),
        "from_zarr of chunks": da.from_zarr(str(folder / "X.zarr"), chunks=(150, 4)),
    }


@pytest.mark.parametrize("kind", ["path", "array", "from_zarr", "from_zarr of chunks"])
@pytest.mark.parametrize("draw", [face.Draw(), face.MergeReduce()], ids=str)
def test_build__a_lost_chunk_is_an_error_that_names_it(
    kind: str, draw: Any, tmp_path: Path
) -> None:
    written(tmp_path)
    (tmp_path / "X.zarr" / "c" / "7" / "0").unlink()
    with pytest.raises(face.errors.StoreError, match="7"):
        face.build(sources(tmp_path)[kind], size=20, draw=draw)


@pytest.mark.parametrize("kind", ["path", "from_zarr"])
def test_build__an_inner_chunk_of_a_shard_is_missed(kind: str, tmp_path: Path) -> None:
    """A shard without one of its chunks, as a writer leaves that wrote three of four."""
    written(tmp_path, shards=True)
    whole = face.build(sources(tmp_path)[kind], size=20, random_state=0)
    assert len(whole) == 20
    other = zarr.create_array(
        tmp_path / "part.zarr", shape=X.shape, dtype=X.dtype, chunks=(50, 4), shards=(200, 4),
        fill_value=0.0, config={"write_empty_chunks": False},
    )  # fmt: skip
    part = X.copy()
    part[250:300] = 0.0
    other[:] = part
    shard = (tmp_path / "part.zarr" / "c" / "1" / "0").read_bytes()
    (tmp_path / "X.zarr" / "c" / "1" / "0").write_bytes(shard)
    with pytest.raises(face.CoresetError):
        face.build(sources(tmp_path)[kind], size=20, random_state=0)


def test_build__missing_chunks_may_be_filled(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "X.zarr" / "c" / "7" / "0").unlink()
    rows = face.open_rows(str(tmp_path / "X.zarr"), missing_chunks="fill")
    c = face.build(rows, size=300, random_state=0)
    lost = (c.indices >= 350) & (c.indices < 400)
    assert lost.any()
    assert (c.points[lost] == 0).all()
    assert np.array_equal(c.points[~lost], X[c.indices[~lost]])


@pytest.mark.parametrize("what", ["y", "u"])
def test_build__lost_labels_and_weights_are_errors(what: str, tmp_path: Path) -> None:
    written(tmp_path)
    for name in ("y", "u"):
        zarr.create_array(tmp_path / f"{name}.zarr", data=np.arange(600) % 2 + 1.0, chunks=(100,))
    (tmp_path / f"{what}.zarr" / "c" / "3").unlink()
    with pytest.raises(face.errors.StoreError):
        face.build(
            str(tmp_path / "X.zarr"), str(tmp_path / "y.zarr"), method="logistic", size=30,
            sample_weight=str(tmp_path / "u.zarr"),
        )  # fmt: skip


def test_build__lost_chunk_of_hdf5_by_path(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        data = file.create_dataset("X", shape=X.shape, chunks=(50, 4), dtype="f8")
        data[:350] = X[:350]
        data[400:] = X[400:]
    with pytest.raises(face.errors.StoreError):
        face.build(str(tmp_path / "x.h5"), size=20)


def test_plan__of_a_file_that_changed_before_it_was_read(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    lazy = face.plan(str(tmp_path / "x.npy"), size=20, random_state=0)
    np.save(tmp_path / "x.npy", X[:580])
    with pytest.raises(face.CoresetError):
        lazy.compute()


def test_models__raise_for_lost_chunks_too(tmp_path: Path) -> None:
    written(tmp_path)
    model = face.estimators.CoresetKMeans(3, size=30, random_state=0)
    model.fit(str(tmp_path / "X.zarr"))
    (tmp_path / "X.zarr" / "c" / "2" / "0").unlink()
    rows = da.from_zarr(str(tmp_path / "X.zarr"))
    with pytest.raises(face.errors.StoreError):
        model.score(rows)
    with pytest.raises(face.errors.StoreError):
        face.estimators.MaxMarginClassifier().fit(rows, np.arange(600) % 2)
    with pytest.raises(face.errors.StoreError):
        face.metrics.kmeans_cost(rows, X[:3])
