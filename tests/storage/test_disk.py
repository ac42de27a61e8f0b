"""Folders on a disk: what is removed, and what lies behind links."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from daskcoreset.storage.disk import DiskFolder

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX systems")
def test_remove__follows_no_links(tmp_path: Path) -> None:
    (tmp_path / "home" / "photos").mkdir(parents=True)
    folder = DiskFolder(tmp_path / "t")
    folder.put("part/a", {"zarr.json": b"{}"})
    (tmp_path / "t" / "part" / "b").symlink_to(tmp_path / "home")
    (tmp_path / "t" / "linked").symlink_to(tmp_path / "home")
    assert sorted(folder.keys()) == ["linked", "part/a", "part/b"]
    folder.remove(["part/b", "linked"])
    assert (tmp_path / "home" / "photos").is_dir()


def test_begun__leaves_nothing_of_what_failed(tmp_path: Path) -> None:
    folder = DiskFolder(tmp_path / "t")

    def fails() -> None:
        with folder.begun() as new:
            new.put("part/a", {"zarr.json": b"{}"})
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert not list(tmp_path.iterdir())
