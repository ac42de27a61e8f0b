"""Files of every kind become stores with the same rows, whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zarr

from daskcoreset import Coreset
from daskcoreset.cli import files
from daskcoreset.errors import StoreError
from tests.tools.command_line import Capture, call_main, facts_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from daskcoreset.core.typing import AnyArray


ROWS = 600


def _write(kind: str, folder: Path, arrays: Mapping[str, Any]) -> tuple[Path, bool]:
    """Write the arrays as a file of some kind; also say whether it names its members."""
    path = folder / f"data.{kind}"
    if kind == "npz":
        np.savez(path, **arrays)
    elif kind == "npy":
        np.save(path, arrays["X"])
        return path, False
    elif kind == "h5":
        h5py = pytest.importorskip("h5py")
        with h5py.File(path, "w") as file:
            for name, array in arrays.items():
                file[name] = array
    elif kind == "parquet":
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        pandas.DataFrame(arrays["X"], columns=["a", "b", "c"]).to_parquet(path)
        return path, False
    else:
        group = zarr.create_group(path)
        for name, array in arrays.items():
            group[name] = array
    return path, True


@pytest.mark.parametrize("kind", ["npz", "npy", "h5", "parquet", "zarr"])
def test_store__holds_the_rows_of_every_kind_of_file(
    tmp_path: Path, out: Path, arrays: Mapping[str, Any], capsys: Capture, kind: str
) -> None:
    path, named = _write(kind, tmp_path, arrays)
    assert call_main("store", path, out, "--chunks", 250) == 0
    group: Any = zarr.open_group(out, mode="r")
    expected = ["X", "sample_weight", "y"] if named else ["X"]
    assert sorted(group.array_keys()) == expected
    for name in expected:
        np.testing.assert_array_equal(group[name][:], arrays[name])
        assert group[name].dtype == arrays[name].dtype
        assert group[name].chunks[0] == 250
    assert group["X"].chunks == (250, 3)
    facts = facts_of(capsys.readouterr().out)
    assert (facts["store"], facts["X"]) == (str(out), f"{ROWS} x 3")


def test_store__names_members_when_told_to(
    tmp_path: Path, out: Path, arrays: Mapping[str, Any]
) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, X=arrays["X"], kind=arrays["y"], mass=arrays["sample_weight"])
    assert call_main("store", path, out, "--y", "kind", "--sample-weight", "mass") == 0
    group: Any = zarr.open_group(out, mode="r")
    np.testing.assert_array_equal(group["y"][:], arrays["y"])
    np.testing.assert_array_equal(group["sample_weight"][:], arrays["sample_weight"])


class Watched:
    """Rows that are only made when they are read; some of them cannot be."""

    shape = (1000, 2)
    dtype = np.dtype(np.float64)

    def __init__(self, broken: int = 2000) -> None:
        self.broken = broken
        self.read: list[tuple[int, int]] = []

    def __getitem__(self, rows: slice) -> AnyArray:
        self.read.append((rows.start, rows.stop))
        if rows.stop > self.broken:
            raise OSError("bad sector")
        return np.repeat(np.arange(rows.start, rows.stop, dtype=np.float64)[:, None], 2, axis=1)


def test_write_store__leaves_nothing_of_a_failure(out: Path) -> None:
    with pytest.raises(StoreError, match="bad sector"):
        files.write_store(Watched(broken=700), out, rows_per_chunk=300)
    assert list(out.parent.iterdir()) == []


@pytest.mark.parametrize("kind", ["U", "O"])
def test_write_store__keeps_labels_that_are_text(
    tmp_path: Path, out: Path, arrays: Mapping[str, Any], kind: str
) -> None:
    names = np.array(["red", "green", "blue"])[arrays["y"] % 3].astype(kind)
    store = tmp_path / "text.zarr"
    files.write_store(arrays["X"], store, y=names)
    assert call_main("build", store, out, "--size", 50, "--y", "y") == 0
    coreset = Coreset.from_zarr(out)
    assert coreset.labels is not None
    assert coreset.labels.tolist() == names[coreset.indices].tolist()
