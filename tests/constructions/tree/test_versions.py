"""Commits: a number that was swept away is not free."""

from __future__ import annotations

from pathlib import Path

import pytest

from daskcoreset.constructions.tree import versions
from daskcoreset.constructions.tree.chain import Head
from daskcoreset.constructions.tree.versions import commit, newest, read_head, sweep
from daskcoreset.core.errors import StoreError
from tests.acceptance.tools.trees import day, made


def fill(path: Path) -> str:
    path.mkdir(exist_ok=True)
    (path / "x").touch()
    return f"sha256:{path.name}"


def test_commit__a_number_that_was_swept_away_is_not_free(tmp_path: Path) -> None:
    root = tmp_path / "versions"
    first = head = Head.before_first("sha256:0")
    for version in (1, 2, 3):
        head = commit(root, head, fill)
        assert (head.version, read_head(root)) == (version, head)
        sweep(root, lambda number, _, v=version: number >= v - 1)  # type: ignore[misc]
    assert not (root / f"{1:012d}").exists()
    with pytest.raises(StoreError, match="another writer"):
        commit(root, first, fill)

    def overtaken(path: Path) -> str:
        commit(root, head, fill)
        return fill(path)

    with pytest.raises(StoreError, match="another writer"):
        commit(root, head, overtaken)
    assert newest(root) == 4
    last = read_head(root)
    assert last is not None

    def full(_: Path) -> str:
        raise OSError(28, "No space left on device")

    with pytest.raises(StoreError, match="No space left"):
        commit(root, last, full)
    assert not list(root.glob(".0*"))


def test_locked__one_at_a_time(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    with (
        versions.locked(tmp_path),
        (tmp_path / ".lock").open("r+") as file,
        pytest.raises(BlockingIOError),
    ):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_replace__counts_its_revisions(tmp_path: Path) -> None:
    tree = made(tmp_path / "t", 1)
    for revision in (1, 2):
        assert tree.replace("day 0", day(revision)).revision == revision
        assert tree.leaves["day 0"].node == f"leaf-0-{revision}"
