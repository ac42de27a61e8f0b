"""What is missing or has changed in a store is an error, and never zeros."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr

from tests.acceptance import face
from tests.pairs import pairs

X = np.random.default_rng(0).normal(size=(600, 4)) + 5.0


LAYOUTS: dict[str, dict[str, Any]] = {
    "chunks": {"chunks": (50, 4)},
    "chunks of columns": {"chunks": (50, 2)},
    "format 2": {"chunks": (50, 4), "zarr_format": 2},
    "shards": {"chunks": (50, 4), "shards": (100, 4)},
}


def written(folder: Path, **layout: Any) -> Any:
    options = {"fill_value": 0.0, **LAYOUTS["chunks"], **layout}
    return zarr.create_array(folder / "X.zarr", data=X, **options)


def lose(folder: Path) -> str:
    """Remove a file of chunks, and return its key."""
    files = [file for file in folder.rglob("*") if file.is_file() and "zarr" not in file.name]
    file = max(file for file in files if not file.name.startswith("."))
    file.unlink()
    return str(file.relative_to(folder))


def looked_at(path: str) -> Any:
    """Return an array whose graph keeps the tasks that were made to look at them."""
    array = da.from_zarr(zarr.open_array(path), inline_array=True)
    assert dict(array.dask)
    return array


KINDS: dict[str, Callable[[str], Any]] = {
    "path": str,
    "array": lambda path: zarr.open_array(path, mode="r"),
    "from_zarr": da.from_zarr,
    "from_zarr looked at": looked_at,
    "from_zarr of chunks": lambda path: da.from_zarr(path, chunks=(150, 4)) + 1.0,
    "from_zarr inline": lambda path: da.from_zarr(zarr.open_array(path), inline_array=True)[10:],
}


@pairs(kind=KINDS, layout=LAYOUTS, draw=[face.Draw(), face.MergeReduce()])
def test_build__a_lost_chunk_is_an_error_that_names_it(
    kind: Callable[[str], Any], layout: dict[str, Any], draw: Any, tmp_path: Path
) -> None:
    written(tmp_path, **layout)
    path = str(tmp_path / "X.zarr")
    assert len(face.build(kind(path), size=20, draw=draw)) == 20
    key = lose(tmp_path / "X.zarr")
    with pytest.raises(face.errors.StoreError, match=r"not stored.*missing_chunks") as caught:
        face.build(kind(path), size=20, draw=draw)
    assert repr(key) in str(caught.value)
    assert "X.zarr" in str(caught.value)


@pytest.mark.parametrize("kind", ["path", "from_zarr"])
def test_build__an_inner_chunk_of_a_shard_is_missed(kind: str, tmp_path: Path) -> None:
    """A shard without one of its chunks, as a writer leaves that wrote three of four."""
    written(tmp_path, shards=(200, 4))
    whole = face.build(KINDS[kind](str(tmp_path / "X.zarr")), size=20, random_state=0)
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
        face.build(KINDS[kind](str(tmp_path / "X.zarr")), size=20, random_state=0)


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


def test_build__missing_chunks_that_nothing_fills(tmp_path: Path) -> None:
    layouts: list[tuple[dict[str, Any], Any, str]] = [
        ({"fill_value": np.nan}, face.errors.InvalidInputError, "NaN in column 0 at row 450"),
        ({"zarr_format": 2, "fill_value": None}, face.errors.StoreError, r"'9.0' .*; restore it"),
    ]
    for number, (layout, error, said) in enumerate(layouts):
        written(tmp_path / str(number), **layout)
        path = tmp_path / str(number) / "X.zarr"
        lose(path)
        with pytest.raises(error, match=said):
            face.build(face.open_rows(path, missing_chunks="fill"), size=50)


def test_build__a_lost_chunk_of_an_array_whose_group_alone_describes_it(tmp_path: Path) -> None:
    zarr.create_group(tmp_path, zarr_format=2)
    written(tmp_path, zarr_format=2)
    zarr.consolidate_metadata(tmp_path)
    (tmp_path / "X.zarr" / ".zarray").unlink()
    assert len(face.build(tmp_path, size=50)) == 50
    key = lose(tmp_path / "X.zarr")
    with pytest.raises(face.errors.StoreError, match=f"chunk '{key}'"):
        face.build(tmp_path, size=50)


@pytest.mark.parametrize("chunks", [None, {}])
def test_build__a_lost_chunk_of_xarray(chunks: Any, tmp_path: Path) -> None:
    cube, encoding = xr.Dataset({"X": (("row", "column"), X)}), {"X": {"chunks": (50, 4)}}
    cube.to_zarr(tmp_path, encoding=encoding, consolidated=False)
    shifted = xr.open_zarr(tmp_path, chunks=chunks, consolidated=False)["X"][20:]
    assert len(face.build(shifted, size=50)) == 50
    key = lose(tmp_path / "X")
    with pytest.raises(face.errors.StoreError, match=f"chunk '{key}'"):
        face.build(shifted, size=50)


def test_calls__miss_a_chunk_or_fill_it(tmp_path: Path) -> None:
    """Trees, streams, models and audits do as builds do."""
    written(tmp_path)
    path = tmp_path / "X.zarr"
    model = face.estimators.CoresetKMeans(2, size=50, random_state=0)
    coreset = face.build(X, size=100, random_state=0)
    lost = pytest.raises(face.errors.StoreError, match=f"chunk '{lose(path)}'")
    filled = face.open_rows(path, missing_chunks="fill")
    calls: list[Callable[..., Any]] = [
        face.create_tree(tmp_path / "tree", size=50).append,
        face.stream(method="lightweight", size=50).partial_fit,
        model.fit,
        lambda rows: model.predict(rows).compute(),
        lambda rows: coreset.audit(rows, n_clusters=2),
    ]
    for method in calls:
        with lost:
            method(path)
        assert method(filled) is not None
