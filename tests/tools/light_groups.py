"""Groups of arrays that take one small file, for histories of thousands of changes.

What is written is a key to contents in memory: folders, renames, flushes and sweeps are those of
real groups, whose reading and writing, a hundred times as long, other tests are about.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

from daskcoreset.core.errors import StoreError
from daskcoreset.storage import group
from daskcoreset.storage.atomic import is_leftover
from daskcoreset.storage.group import GroupContents

if TYPE_CHECKING:
    from zarr.storage import StorePath

_FILE = "zarr.json"  # which trees look for


@contextmanager
def light_groups() -> Iterator[None]:
    """Write groups as keys to contents in memory, as long as the block lasts.

    Those of object stores are real.
    """
    held: dict[bytes, GroupContents] = {}
    fill_group = group.fill_group

    def fill(path: Path | StorePath, contents: GroupContents) -> None:
        if not isinstance(path, Path):
            fill_group(path, contents)
            return
        path.mkdir(exist_ok=True)
        key = secrets.token_bytes(12)
        held[key] = contents
        (path / _FILE).write_bytes(key)

    def read(path: Path, kind: str, schema_version: int) -> GroupContents:
        if is_leftover(path):
            raise StoreError(f"{path} is left over from an interrupted write")
        try:
            contents = held[(path / _FILE).read_bytes()]
        except (OSError, KeyError) as error:
            raise StoreError(f"{path}: not there, or damaged ({error!r})") from error
        if (contents.kind, contents.schema_version) != (kind, schema_version):
            raise StoreError(f"{path}: holds a {contents.kind}")
        arrays = {name: array.copy() for name, array in contents.arrays.items()}
        return replace(contents, arrays=arrays)

    with mock.patch.multiple(group, fill_group=fill, read_folder=read):
        yield
