from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from tests.acceptance.face import CoresetTree, create_tree, errors, follow
from tests.acceptance.tools.view_histories import assert_alike

pytestmark = pytest.mark.usefixtures("quick_disk")

OPTIONS: dict[str, Any] = {"size": 20, "random_state": 0}


def rows(n: int, seed: int = 0, d: int = 2) -> Any:
    return np.random.default_rng(seed).normal(seed % 5, 1.0, size=(n, d))


def make_array(path: Path, n: int = 100, chunk: int = 10) -> Any:
    array = zarr.create_array(path, shape=(n, 2), chunks=(chunk, 2), dtype="f8")
    array[:] = rows(n)
    return array


def make_days(folder: Path, days: range = range(1, 6)) -> str:
    folder.mkdir(exist_ok=True)
    for day in days:
        np.save(folder / f"2026-03-{day:02d}.npy", rows(60, day))
    return str(folder / "*.npy")


def grow(array: Any, n: int, value: float = 1.5) -> None:
    before = array.shape[0]
    array.resize((before + n, 2))
    array[before:] = value


def test_follow__relative_paths_stay_where_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("here", "there"):
        make_days(tmp_path / folder, range(1, 3))
    monkeypatch.chdir(tmp_path / "here")
    days = ["2026-03-01.npy", "2026-03-02.npy"]
    views = [
        follow(source, tmp_path / str(i), **OPTIONS)
        for i, source in enumerate((days, "*.npy", Path(days[0])))
    ]
    np.save(days[0], rows(30))
    monkeypatch.chdir(tmp_path / "there")
    for view in views:
        done = view.refresh()
        assert (len(done.changed), len(done.added), done.rows) == (1, 0, 30)


# --- what is read -------------------------------------------------------------------------


@pytest.mark.usefixtures("quick_disk")
def test_refresh__reports_what_was_read_and_what_that_changed(tmp_path: Path) -> None:
    source = make_days(tmp_path / "days")
    view = follow(source, tmp_path / "view", **OPTIONS)
    assert view.last_refresh is not None
    assert len(view.last_refresh.added) == 5
    assert view.leaves["2026-03-02.npy"].time == "2026-03-02"
    folder = tmp_path / "days"
    (folder / "2026-03-01.npy").unlink()
    np.save(folder / "2026-02-27.npy", rows(30, 9))
    np.save(folder / "2026-03-03.npy", rows(60, 8))
    content = (folder / "2026-03-05.npy").read_bytes()
    (folder / "2026-03-05.npy").write_bytes(content)  # written anew with what was there
    done = view.refresh()
    assert done.added == ("2026-02-27.npy",)
    assert done.changed == ("2026-03-03.npy",)
    assert done.removed == ("2026-03-01.npy",)
    assert set(done.read) == {"2026-02-27.npy", "2026-03-03.npy", "2026-03-05.npy"}
    assert done.rows == 150
    assert "3 of 5 leaves read, 150 rows" in repr(done)
    assert done
    assert_alike(view, follow(source, tmp_path / "fresh", **OPTIONS))
    version = view.version
    assert not view.refresh()
    assert view.version == version


@pytest.mark.usefixtures("quick_disk")
def test_refresh__of_an_array_that_is_resized_in_the_middle_of_a_chunk(tmp_path: Path) -> None:
    array = make_array(tmp_path / "rows", 95)
    view = follow(array, tmp_path / "view", **OPTIONS)
    grow(array, 20)
    assert view.refresh().read == ("block-9", "block-10", "block-11")
    array.resize((113, 2))
    assert view.refresh().changed == ("block-11",)
    array[3] = 7.0
    assert view.refresh().changed == ("block-0",)
    assert_alike(view, follow(array, tmp_path / "fresh", **OPTIONS))


# --- versions and windows -----------------------------------------------------------------


def test_empty_batches__are_ordinary(tmp_path: Path) -> None:
    tree = create_tree(tmp_path / "t", **OPTIONS)
    assert tree.append(np.empty((0, 2)), name="none").rows == 0
    with pytest.raises(errors.InvalidInputError, match="leaves has no rows"):
        tree.coreset()
    tree.append(rows(50), name="some")
    assert tree.coreset().provenance["n"] == 50
    assert tree.replace("some", np.empty((0, 2))).weight == 0.0
    tree.verify()
    source = make_days(tmp_path / "days", range(0))
    for pattern in (source + "x", [source + "x"]):
        with pytest.warns(
            errors.CoresetWarning, match=r"source matches no file: '.*\.npyx'.*pattern"
        ):
            view = follow(pattern, tmp_path / type(pattern).__name__, **OPTIONS)
        assert len(view) == 0
    (tmp_path / "parts").mkdir()
    empty = follow(tmp_path / "parts", tmp_path / "empty", **OPTIONS)
    assert not empty.refresh()
    array = make_array(tmp_path / "rows", 0)
    view = follow(array, tmp_path / "rows-view", **OPTIONS)
    assert len(view) == 0
    grow(array, 5)
    assert view.refresh().added == ("block-0",)


# --- bad input ----------------------------------------------------------------------------


def test_refresh__bad_sources_leave_the_view_as_it_was(tmp_path: Path) -> None:
    array = make_array(tmp_path / "rows")
    view = follow(array, tmp_path / "view", **OPTIONS)
    before = view.coreset()
    other = make_array(tmp_path / "other")

    def replaced(width: int, dtype: str) -> None:
        shutil.rmtree(tmp_path / "rows")
        made = zarr.create_array(
            tmp_path / "rows", shape=(100, width), chunks=(10, width), dtype=dtype
        )
        made[:] = 1.0

    array.resize((45, 2))
    with pytest.raises(errors.InvalidInputError, match=r"shrunk: 5 of the 10 .*'block-5'"):
        view.refresh()
    for width, dtype, message in (
        (3, "f8", "block-0: X has 3 features instead of 2"),
        (2, "f4", "block-0: X is float32, and the rows before it are float64"),
    ):
        replaced(width, dtype)
        with pytest.raises(errors.InvalidInputError, match=message):
            view.refresh()
    with pytest.raises(
        errors.InvalidInputError, match=r"source is '.*other/?', .* created with '.*rows/?'"
    ):
        follow(other, tmp_path / "view", **OPTIONS)
    shutil.rmtree(tmp_path / "rows")
    with pytest.raises((errors.InvalidInputError, errors.StoreError)):
        view.refresh()
    assert view.version == 1
    assert view.coreset().equals(before)
    assert CoresetTree.open(tmp_path / "view").coreset().equals(before)
    array = make_array(tmp_path / "rows", 45)
    assert len(view.refresh(allow_shrink=True).removed) == 5
    assert_alike(view, follow(array, tmp_path / "fresh", **OPTIONS))


@pytest.mark.parametrize("pattern", ["*", "v*", "days/../*"])
def test_follow__into_what_the_source_lists_is_refused(pattern: str, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", rows(20))
    (tmp_path / "days").mkdir()
    source = f"{tmp_path}/{pattern}"
    with pytest.raises(errors.InvalidInputError, match=r"is inside source .*, or matches it"):
        follow([source], tmp_path / "view", **OPTIONS)
    assert not (tmp_path / "view").exists()
    view = follow(f"{tmp_path}/*.npy", tmp_path / "view", **OPTIONS)
    assert not view.refresh()


def test_refresh__of_a_list_that_grows(tmp_path: Path) -> None:
    make_days(tmp_path / "days")
    files = sorted(str(file) for file in (tmp_path / "days").iterdir())
    view = follow(files[:3], tmp_path / "view", **OPTIONS)
    done = view.refresh([files[2], files[4], files[0]])
    assert (done.added, done.removed) == ((files[4],), (files[1],))
    again = [files[2], files[4], files[0]]
    assert_alike(view, follow(lambda: again, tmp_path / "fresh", **OPTIONS))
    with pytest.raises(errors.InvalidInputError, match=r"has shrunk: 3 of the 3"):
        view.refresh([files[3]])
