"""Commits: a number that was swept away is not free."""

from __future__ import annotations

from pathlib import Path

import pytest

from daskcoreset.constructions.tree.persistence import commit, newest, sweep
from daskcoreset.core.errors import StoreError


def test_commit__a_number_that_was_swept_away_is_not_free(tmp_path: Path) -> None:
    def fill(path: Path) -> None:
        path.mkdir()
        (path / "x").touch()

    for version in (1, 2, 3):
        commit(tmp_path, version, fill)
        sweep(tmp_path, lambda number, _, v=version: number >= v - 1)  # type: ignore[misc]
    assert not (tmp_path / f"{1:012d}").exists()
    with pytest.raises(StoreError, match="another writer"):
        commit(tmp_path, 1, fill)

    def overtaken(path: Path) -> None:
        fill(path)
        commit(tmp_path, 4, fill)

    with pytest.raises(StoreError, match="another writer"):
        commit(tmp_path, 4, overtaken)
    assert newest(tmp_path) == 4

    def full(_: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(StoreError, match="No space left"):
        commit(tmp_path, 5, full)
    assert not list(tmp_path.glob(".0*"))
