"""New directories appear whole, or yield to what is there."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from daskcoreset.core import atomic
from daskcoreset.core.atomic import new_directory, new_file, new_store
from daskcoreset.core.errors import StoreError
from tests.acceptance.tools.groups import a_home, names, snapshot


def test_new_directory__yields_to_a_directory_that_appears_last(tmp_path: Path) -> None:
    def may_replace() -> bool:
        a_home(tmp_path / "s")
        return False

    with (
        pytest.raises(OSError, match="not empty"),
        new_directory(tmp_path / "s", may_replace=may_replace),
    ):
        pass
    assert snapshot(tmp_path / "s") == {"photos": None, "photos/cat.jpg": b"cat"}
    assert names(tmp_path) == {"s"}


def test_new_directory__takes_long_names(tmp_path: Path) -> None:
    target = tmp_path / ("n" * 250)
    for _ in range(2):
        with new_directory(target, may_replace=target.exists) as scratch:
            (scratch / "data").touch()
    assert target.is_dir()


def test_new_directory__flushes_the_parents_that_it_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a cut of power takes them, and with them what was put there for good."""
    flushed: list[Path] = []
    monkeypatch.setattr(atomic, "_flush_entry", flushed.append)
    with new_directory(tmp_path / "a" / "b" / "c", may_replace=lambda: False) as scratch:
        (scratch / "data").touch()
    assert {tmp_path, tmp_path / "a", tmp_path / "a" / "b"} <= set(flushed)


def test_new_file__in_what_is_no_folder_names_the_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    path = tmp_path / "file" / "rows.csv"
    problem = f"^{path} cannot be written: Not a directory; choose another path"
    with pytest.raises(StoreError, match=problem), new_file(path) as scratch:
        scratch.write_text("half")
    # Some name the file that they were given, which is none that the user knows.
    problem = f"^{tmp_path}/x cannot be written: no place for {tmp_path}/x; choose another path"
    with pytest.raises(StoreError, match=problem), new_file(tmp_path / "x") as scratch:
        raise OSError(f"no place for {scratch}")
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(3))
def test_new_directory__that_is_interrupted_between_renames_loses_nothing(
    at: int, after: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, renames, rename = tmp_path / "s", 0, os.rename
    target.mkdir()
    (target / "data").write_text("old")

    def interrupted(*args: Any, **kwargs: Any) -> None:
        nonlocal renames
        renames += 1
        if renames == at + 1 and not after:
            raise KeyboardInterrupt
        rename(*args, **kwargs)
        if renames == at + 1 and after:
            raise KeyboardInterrupt

    def write(text: str) -> None:
        with new_directory(target, may_replace=lambda: True) as scratch:
            (scratch / "data").write_text(text)

    monkeypatch.setattr(os, "rename", interrupted)
    if at < 2:
        with pytest.raises(KeyboardInterrupt):
            write("new")
    else:
        write("new")
        assert renames == 2
    assert (target / "data").read_text() == (
        "new" if at == 2 or (at, after) == (1, True) else "old"
    )
    monkeypatch.undo()
    write("newer")
    assert [path.name for path in tmp_path.iterdir()] == ["s"]
    assert (target / "data").read_text() == "newer"


def test_new_store__an_interrupt_while_it_clears_up_stays_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`shutil.rmtree` then closes a descriptor twice, and says that it is a bad one."""

    def interrupted(*args: Any, **kwargs: Any) -> None:
        del args, kwargs
        try:
            raise KeyboardInterrupt
        finally:
            raise OSError(errno.EBADF, "Bad file descriptor")

    (tmp_path / "s").mkdir()
    monkeypatch.setattr(shutil, "rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt), new_store(tmp_path / "s", lambda: True) as scratch:
        (scratch / "data").touch()
    monkeypatch.undo()
    with pytest.raises(StoreError, match="No space left"), new_store(tmp_path / "s", lambda: True):
        raise OSError(errno.ENOSPC, "No space left")
