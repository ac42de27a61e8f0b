"""Places of stored trees, streams and coresets: folders, and objects in memory or on a server."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.acceptance.face import (
    Coreset,
    CoresetStream,
    CoresetTree,
    create_tree,
    stream as make_stream,
)
from tests.acceptance.tools.object_stores import Objects
from tests.acceptance.tools.trees import day


@dataclass(frozen=True)
class Folder:
    """The files below a path, by their names."""

    path: Path

    def names(self) -> list[str]:
        """Return the names of all of them, those of locks excepted."""
        files = (path for path in self.path.rglob("*") if path.is_file())
        return sorted(str(path.relative_to(self.path)) for path in files if path.name != ".lock")

    def read(self, name: str) -> bytes:
        """Return what one holds."""
        return (self.path / name).read_bytes()

    def write(self, name: str, content: bytes) -> None:
        """Write one."""
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).write_bytes(content)

    def remove(self, *names: str) -> None:
        """Remove some."""
        for name in names:
            (self.path / name).unlink()


@dataclass(frozen=True)
class Place:
    """Where something is stored.

    Attributes
    ----------
    location : path, URL or store
    kept : Folder or Objects
        What lies there.
    options : mapping
        Credentials.
    """

    location: Any
    kept: Folder | Objects
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def storage(self) -> dict[str, Any]:
        """Arguments of whoever writes or reads there."""
        return {"storage_options": self.options} if self.options else {}

    def snapshot(self) -> dict[str, bytes]:
        """Return all that lies there."""
        return {name: self.kept.read(name) for name in self.kept.names()}

    def clear(self) -> None:
        """Remove all."""
        if isinstance(self.kept, Folder):
            shutil.rmtree(self.kept.path, ignore_errors=True)
        else:
            self.kept.remove(*self.kept.names())


@dataclass(frozen=True)
class Thing:
    """Something that is stored: how it is made, changed and read.

    Attributes
    ----------
    make, opened, change : callable
        `change` takes what the others return, and a number.
    read : callable
        Of a place: a coreset, after every check that there is.
    """

    make: Callable[[Place], Any]
    opened: Callable[[Place], Any]
    change: Callable[[Any, int], Any]
    read: Callable[[Place], Coreset]


def labels_of(rows: Any) -> Any:
    return np.where(rows[:, 0] > 0, "yes", "no")


def _tree(place: Place) -> CoresetTree:
    tree = create_tree(place.location, size=10, random_state=1, **place.storage)
    return _appended(_appended(tree, 0), 1)


def _appended(tree: CoresetTree, number: int) -> CoresetTree:
    rows = day(number)
    tree.append(rows, labels_of(rows), name=f"day {number}")
    return tree


def _open_tree(place: Place) -> CoresetTree:
    return CoresetTree.open(place.location, **place.storage)


def _read_tree(place: Place) -> Coreset:
    tree = _open_tree(place)
    tree.verify()
    return tree.coreset()


def _stream(place: Place) -> CoresetStream:
    stream = make_stream(size=10, random_state=1, store=place.location, **place.storage)
    return _fed(_fed(stream, 0), 1)


def _fed(stream: CoresetStream, number: int) -> CoresetStream:
    rows = day(number)
    return stream.partial_fit(rows, labels_of(rows))


def _open_stream(place: Place) -> CoresetStream:
    return CoresetStream.load(place.location, **place.storage)


def _made_coreset(number: int) -> Coreset:
    rows = day(number)
    return Coreset(rows, np.ones(len(rows)), np.arange(len(rows)), labels_of(rows))


def _coreset(place: Place) -> Place:
    _made_coreset(1).to_zarr(place.location, **place.storage)
    return place


def _overwritten(place: Place, number: int) -> Place:
    _made_coreset(number).to_zarr(place.location, overwrite=True, **place.storage)
    return place


THINGS = {
    "tree": Thing(_tree, _open_tree, _appended, _read_tree),
    "stream": Thing(
        _stream,
        _open_stream,
        _fed,
        lambda place: _open_stream(place).coreset(),
    ),
    "coreset": Thing(
        _coreset,
        lambda place: place,
        _overwritten,
        lambda place: Coreset.from_zarr(place.location, **place.storage),
    ),
}
