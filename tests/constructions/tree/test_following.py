from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.storage import LocalStore, WrapperStore

from daskcoreset import CoresetTree, MergeReduce, open_rows
from daskcoreset.core.points import WeightedPoints
from daskcoreset.errors import InvalidInputError, InvalidTypeError
from tests.acceptance.tools.view_histories import assert_alike
from tests.pairs import few

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


# --- what is read -------------------------------------------------------------------------


@pytest.mark.usefixtures("quick_disk")
def test_follow__arrays_in_coarser_chunks_change_all_leaves_under_them(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "rows", mode="w")
    X = group.create_array("X", shape=(100, 2), chunks=(10, 2), dtype="f4")
    y = group.create_array("y", shape=(100,), chunks=(50,), dtype="i4")
    X[:], y[:] = rows(100), np.arange(100) % 2
    options = {**OPTIONS, "method": "svm", "y": "y"}
    view = CoresetTree.follow(group, tmp_path / "view", **options)
    assert [leaf.rows for leaf in view.leaves] == [10] * 10
    y[99] = 0
    assert view.refresh().read == tuple(f"block-{i}" for i in range(5, 10))
    assert view.refresh().changed == ()
    assert view.coreset().labels is not None


# --- bad input ----------------------------------------------------------------------------


@few("chunk", [5, 70], always=1)
def test_refresh__of_an_array_written_anew_in_other_chunks(tmp_path: Path, chunk: int) -> None:
    view = CoresetTree.follow(make_array(tmp_path / "rows", 100), tmp_path / "view", **OPTIONS)
    shutil.rmtree(tmp_path / "rows")
    made = zarr.create_array(tmp_path / "rows", shape=(100, 2), chunks=(chunk, 2), dtype="f8")
    made[:] = rows(100)
    view.refresh()
    assert_alike(view, CoresetTree.follow(made, tmp_path / "fresh", **OPTIONS))
    made.resize((25, 2))
    if chunk == 5:
        with pytest.raises(InvalidInputError, match=r"shrunk: 15 of the 20 .*'block-5'"):
            view.refresh()


def test_refresh__of_a_folder_where_marks_of_its_writer_are_left(tmp_path: Path) -> None:
    folder = tmp_path / "days"
    folder.mkdir()
    (folder / "_SUCCESS").touch()
    view = CoresetTree.follow(folder, tmp_path / "view", **OPTIONS)  # and no data yet
    assert len(view) == 0
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame(rows(5), columns=["a", "b"]).to_parquet(folder / "1.parquet")
    assert view.refresh().added == ("1.parquet",)
    (folder / "1.parquet").unlink()
    with pytest.raises(InvalidInputError, match=r"shrunk: 1 of the 1 leaves .*'1.parquet'"):
        view.refresh()
    assert view.refresh(allow_shrink=True).n_leaves == 0


def test_follow__refuses_what_it_cannot_follow(tmp_path: Path) -> None:
    source = make_days(tmp_path / "days")
    path = tmp_path / "view"
    cases: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
        (np.ones((5, 2)), {}, InvalidTypeError, "source is an ndarray"),
        (tmp_path / "days", {}, InvalidInputError, "no Parquet files"),
    ]
    for value, options, error, message in cases:
        with pytest.raises(error, match=message):
            CoresetTree.follow(value, path, **{**OPTIONS, **options})
        assert not path.exists()
    view = CoresetTree.follow(source, path, **OPTIONS)
    for options, message in (
        ({"size": 21}, "size is 21, but the view at .* was created with 20"),
        ({"random_state": 1}, "random_state is 1"),
        ({"method": "uniform"}, "method is 'uniform'"),
        ({"on_invalid": "drop"}, "on_invalid is 'drop'"),
        ({"draw": MergeReduce(inner_size=25)}, "inner_size is 25"),
        ({"draw": MergeReduce(sampling="multinomial")}, "sampling"),
        ({"draw": MergeReduce(normalize=True)}, "normalize is True"),
        ({"n_clusters": 3}, "n_clusters is 3"),
        ({"keep": 0}, "keep"),
        ({"sample_weight": "w"}, "sample_weight is 'w', but the view at "),
    ):
        with pytest.raises(InvalidInputError, match=message):
            CoresetTree.follow(source, path, **{**OPTIONS, **options})
    with pytest.raises(InvalidInputError, match="unit_length is True, but the view at "):
        CoresetTree.follow(open_rows(source, unit_length=True), path, **OPTIONS)
    with pytest.raises(InvalidTypeError, match="draw is 'systematic'"):
        CoresetTree.follow(source, path, draw="systematic")  # type: ignore[arg-type]
    again = CoresetTree.follow(source, path)  # the settings of the view
    assert again.coreset().equals(view.coreset())
    for change in (
        lambda: view.append(rows(5)),
        lambda: view.replace("2026-03-01.npy", rows(5)),
        lambda: view.delete("2026-03-01.npy"),
    ):
        with pytest.raises(InvalidInputError, match="change the source and call refresh"):
            change()
    with pytest.raises(InvalidInputError, match="opened without it"):
        CoresetTree.open(path).refresh()
    assert not CoresetTree.open(path).refresh(source).read
    tree = CoresetTree.create(tmp_path / "tree", **OPTIONS)
    with pytest.raises(InvalidInputError, match="follows no source"):
        tree.refresh()
    tree.append(rows(5))
    with pytest.raises(InvalidInputError, match="is a tree that does not follow a source"):
        CoresetTree.follow(source, tmp_path / "tree", **OPTIONS)


def test_follow__opens_a_view_by_the_name_of_its_method(tmp_path: Path) -> None:
    source = make_days(tmp_path / "days", range(1, 3))
    options = {**OPTIONS, "method": "kmeans", "n_clusters": 5}
    draw = MergeReduce(normalize=True)
    view = CoresetTree.follow(source, tmp_path / "view", draw=draw, **options)
    again = CoresetTree.follow(source, tmp_path / "view", draw=draw, **options)
    assert again.last_refresh is not None
    assert not again.last_refresh.read
    assert CoresetTree.open(tmp_path / "view", "kmeans").coreset().equals(view.coreset())
    assert view.coreset().total_weight == pytest.approx(120.0)
    assert view.coreset(normalize=False).total_weight != 120.0


@few("way", ["url", "link to the view", "link to the source"], always=2)
def test_follow__into_the_store_by_another_name_is_refused(way: str, tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "X.zarr", data=rows(20))
    (tmp_path / "link").symlink_to(tmp_path / "X.zarr")
    sources = {"url": f"file://{tmp_path}/X.zarr", "link to the source": tmp_path / "link"}
    path = tmp_path / ("link" if way == "link to the view" else "X.zarr") / "view"
    with pytest.raises(InvalidInputError, match="is inside source"):
        CoresetTree.follow(sources.get(way, tmp_path / "X.zarr"), path, **OPTIONS)
    assert not path.exists()


def test_refresh__of_an_array_of_another_dtype_with_the_same_numbers(tmp_path: Path) -> None:
    path = tmp_path / "rows"

    def write(dtype: str) -> None:
        array = zarr.create_array(path, shape=(30, 2), chunks=(10, 2), dtype=dtype, overwrite=True)
        array[:] = np.arange(60).reshape(30, 2)

    write("f8")
    view = CoresetTree.follow(path, tmp_path / "view", **OPTIONS)
    coreset = view.coreset()
    for dtype in (">f8", "i8"):
        write(dtype)
        assert not view.refresh()
        assert WeightedPoints.equals(view.coreset(), coreset)
    write("i2")
    with pytest.raises(InvalidInputError, match="X is float32, and the rows before it are float64"):
        view.refresh(allow_shrink=True)


# --- stores around others -----------------------------------------------------------------


class Counting(WrapperStore[Any]):
    """A store around another one, which counts the chunks that are read."""

    inside, n_chunks = "", 0

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
        Counting.n_chunks += key.startswith("c/")
        return await self._store.get(self.inside + key, prototype, byte_range)


class Renaming(Counting):
    """The same, of an array that has another place in the store inside."""

    inside = "inside/"


@pytest.mark.parametrize("kind", [Counting, Renaming])
def test_refresh__of_a_store_around_another_misses_no_change(tmp_path: Path, kind: Any) -> None:
    """All chunks are read: the list of the store inside may be of other files."""
    inner = LocalStore(tmp_path / "rows")
    array = zarr.create_array(
        inner, name=kind.inside.rstrip("/") or None, shape=(40, 2), chunks=(10, 2), dtype="f8"
    )
    array[:] = rows(40)
    tree = CoresetTree.follow(kind(inner), tmp_path / "tree", size=40, random_state=0)
    array[15] = [-50.0, -60.0]
    Counting.n_chunks = 0
    tree.refresh()
    assert Counting.n_chunks >= 4
    assert tree.coreset().points.min(axis=0).tolist() == [-50.0, -60.0]
