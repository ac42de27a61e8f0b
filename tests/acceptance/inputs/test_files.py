"""Paths and URLs of files: what they mean, and errors for what is not there or may not be read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from obstore.store import MemoryStore
from zarr.storage import ObjectStore

from tests.acceptance.face import (
    Coreset,
    CoresetStream,
    CoresetTree,
    build,
    call,
    create_tree,
    errors,
    estimators,
)

X = np.random.default_rng(5).gamma(0.3, size=(60, 3))


def written_npy(path: Path) -> Path:
    np.save(path, X)
    return path


def written_zarr(path: Path) -> Path:
    zarr = pytest.importorskip("zarr")
    zarr.save(path, X)
    return path


def written_parquet(path: Path) -> Path:
    pd = pytest.importorskip("pandas")
    pd.DataFrame(X, columns=list("abc")).to_parquet(path)
    return path


# --- file URLs -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "write", "url"),
    [
        ("x.zarr", written_zarr, lambda path: f"file://localhost{path}"),
        ("all days & 100% näh.npy", written_npy, Path.as_uri),
        ("a#b?c.parquet", written_parquet, Path.as_uri),
        ("day%201.zarr", written_zarr, lambda path: f"file://{path}"),
        ("day%201.npy", written_npy, lambda path: f"FILE://localhost{path.as_uri()[7:]}"),
    ],
    ids=["localhost", "percent", "signs", "as-it-stands", "capitals"],
)
def test_build__takes_urls_of_files(
    name: str, write: Callable[[Path], Path], url: Callable[[Path], str], tmp_path: Path
) -> None:
    path = write(tmp_path / name)
    coreset = build(url(path), size=9, random_state=1)
    assert coreset.equals(build(path, size=9, random_state=1))


def test_follow__takes_urls_with_percent_signs(tmp_path: Path) -> None:
    folder = tmp_path / "all days"
    folder.mkdir()
    written_npy(folder / "1.npy")
    source, place = f"{folder.as_uri()}/*.npy", (tmp_path / "the view").as_uri()
    CoresetTree.follow(source, place, size=9, random_state=1)
    assert len(CoresetTree.open(tmp_path / "the view")) == 1


@pytest.mark.parametrize("url", ["file://data/x.zarr", "file://elsewhere/x.npy"])
def test_build__refuses_urls_of_other_machines(url: str) -> None:
    with pytest.raises(ValueError, match="file URL of another machine"):
        build(url, size=9)


# --- what is not there ---------------------------------------------------------------------


USES: dict[str, Callable[[str], Any]] = {
    "build": build,
    "labels": lambda path: build(X, y=f"{path}.npy"),
    "list": lambda path: build([written_npy(Path("there.npy")), f"{path}.npy"]),
    "memory": lambda path: build(f"memory://{path}.zarr"),
    "memory-npy": lambda path: build(f"memory://{path}.npy"),
    "fit": lambda path: call(estimators.CoresetKMeans(2).fit, f"{path}.h5"),
    "follow": lambda path: CoresetTree.follow(path, "view"),
    "follow-parquet": lambda path: CoresetTree.follow(f"{path}.parquet", "view"),
    "open": CoresetTree.open,
    "load": CoresetStream.load,
    "from_zarr": Coreset.from_zarr,
    "from_zarr-memory": lambda path: Coreset.from_zarr(f"memory://{path}"),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_missing_path__is_a_file_that_is_not_found(
    use: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="nix") as caught:
        use(f"{tmp_path}/nix")
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("pattern", ["*.npy", "nix-?.parquet"])
def test_missing_path__of_a_pattern(pattern: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="matches no file"):
        build(tmp_path / pattern)


def test_missing_path__of_an_object_store() -> None:
    for use in (CoresetTree.open, CoresetStream.load, Coreset.from_zarr):
        with pytest.raises(FileNotFoundError):
            use(ObjectStore(MemoryStore()))


# --- what may not be read ------------------------------------------------------------------


@contextmanager
def forbidden(path: Path) -> Iterator[None]:
    """Take the right to read a file from this process, which may be that of the superuser."""
    user, mode = os.geteuid(), path.stat().st_mode
    path.chmod(0)
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        if user == 0:
            os.seteuid(0)
        path.chmod(mode)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no such permissions")
@pytest.mark.parametrize(
    ("name", "write"),
    [("x.npy", written_npy), ("x.zarr", written_zarr), ("x.pq", written_parquet)],
    ids=["npy", "zarr", "parquet"],
)
def test_build__of_a_file_that_may_not_be_read_says_so(
    name: str, write: Callable[[Path], Path], tmp_path: Path
) -> None:
    path = write(tmp_path / name)
    for source in (path, path.as_uri()):
        build(source, size=9)  # what is imported on the way is so by then
        with forbidden(path), pytest.raises(ValueError, match="Permission denied") as caught:
            build(source, size=9)
        assert "storage_options" not in str(caught.value)
        assert "AWS" not in str(caught.value)
    with forbidden(path), pytest.raises(ValueError, match=r"source .* Permission denied"):
        CoresetTree.follow(path, ObjectStore(MemoryStore()), size=9)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no such permissions")
def test_results__in_a_folder_that_may_not_be_entered_say_so(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    coreset = build(X, size=9, random_state=0)
    coreset.to_zarr(folder / "c")
    create_tree(folder / "t", size=9).append(X)
    calls: list[Callable[[], Any]] = [
        lambda: Coreset.from_zarr(folder / "c"),
        lambda: coreset.to_zarr(folder / "d"),
        lambda: CoresetTree.open(folder / "t"),
        lambda: create_tree(folder / "u", size=9),
        lambda: CoresetStream.load(folder / "s"),
        lambda: CoresetTree.follow(X, folder / "v", size=9),
    ]
    with forbidden(folder):
        for call in calls:
            with pytest.raises(errors.StoreError, match=r"(?i)denied"):
                call()
    CoresetTree.open(folder / "t").verify()


def test_build__of_rows_that_may_not_be_read_says_so() -> None:
    class Denied:
        shape, dtype, ndim = X.shape, X.dtype, 2

        def __getitem__(self, index: Any) -> Any:
            raise PermissionError(13, "Permission denied", "/data/rows.bin")

    with pytest.raises(OSError, match="rows") as caught:
        build(Denied(), size=9)
    assert "AWS" not in str(caught.value)
