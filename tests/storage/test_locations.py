"""Places that a user names: one folder, or an error, and never a folder called "s3:"."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from daskcoreset import Coreset, CoresetStream, CoresetTree
from daskcoreset.cli.files import write_store
from tests.acceptance.tools.groups import snapshot
from tests.pairs import each

if TYPE_CHECKING:
    from collections.abc import Callable

CORESET = Coreset(np.ones((1, 2)), np.array([5.0]), np.array([3]))

WRITERS: list[Callable[[Any], Any]] = [
    lambda place: CoresetTree.create(place, size=5, random_state=0),
    lambda place: CoresetStream(size=5, random_state=0, store=place),
    lambda place: CoresetStream(size=5, random_state=0).save(place),
    CORESET.to_zarr,
    lambda place: write_store(np.eye(4), place),
]


NAMES = ["tree", "stream", "save", "coreset", "store"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory, and a working directory beside it."""
    for folder in ("home", "work"):
        (tmp_path / folder).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "home"


@each(
    place={
        "text": lambda _: "~/s.zarr",
        "path": lambda _: Path("~/s.zarr"),
        "url": lambda home: f"file://{home}/s.zarr",
        "localhost": lambda home: f"file://localhost{home}/s.zarr",
        "short": lambda home: f"FILE:{home}/s.zarr",
        "path-of-url": lambda home: Path(f"file://{home}/s.zarr"),
    },
    write=dict(zip(NAMES, WRITERS, strict=True)),
)
def test_writers__find_the_folder_that_is_meant(home: Path, place: Any, write: Any) -> None:
    write(place(home))
    assert [path.name for path in home.iterdir()] == ["s.zarr"]
    assert snapshot(Path.cwd()) == {}
