"""Stores in one another: a new one is refused in the folder of one of ours."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from daskcoreset.core.contents import HEADER
from daskcoreset.core.errors import StoreError
from daskcoreset.core.locations import locate
from daskcoreset.core.objects import ObjectFolder, RefusedError, connect, is_remote
from daskcoreset.core.secrets import without_secrets
from daskcoreset.core.stored_arrays import MOST_METADATA

# Folders above a remote place that are looked at, by one request each: none of ours is deeper.
_N_ABOVE = 3


def refuse_inside(location: Any, storage_options: Mapping[str, Any] | None = None) -> None:
    """Refuse a new store in the folder of another one of ours, which would not expect it there.

    Parameters
    ----------
    location : path, str or zarr.abc.store.Store
        Of the new store, which is not read itself.
    storage_options : mapping, optional
        As in `write_group`.

    Raises
    ------
    StoreError
        A folder above it is a coreset, a tree, or of their kind.
    """
    for name, data in _groups_above(location, storage_options):
        with suppress(ValueError, TypeError, LookupError, RecursionError):
            kind = json.loads(data)["attributes"][HEADER]["kind"]
            raise StoreError(
                f"the new store would lie in {name}, which is a {kind} of daskcoreset; choose a "
                f"path outside of it"
            )


def _groups_above(
    location: Any, storage_options: Mapping[str, Any] | None
) -> Iterator[tuple[str, bytes]]:
    """Yield the names of folders above a place that are Zarr groups, and their metadata."""
    if is_remote(location):
        scheme, _, rest = location.partition("://")
        bucket, *parts = [part for part in rest.split("/") if part]
        if scheme.lower().startswith("http"):  # where the bucket may be a part of the path
            return
        url = f"{scheme}://{bucket}"
        root = ObjectFolder(connect(url, storage_options), without_secrets(url, url))
        for n in range(len(parts) - 1, max(-1, len(parts) - 1 - _N_ABOVE), -1):
            # Whoever may write in a folder need not be allowed to read those above it.
            with suppress(RefusedError):
                if stored := root.get("/".join([*parts[:n], "zarr.json"]), MOST_METADATA):
                    yield "/".join([root.name, *parts[:n]]), stored.data
    elif isinstance(place := _local(location), Path):
        for above in place.parents:
            file = above / "zarr.json"
            with suppress(OSError):
                if file.is_file() and file.stat().st_size <= MOST_METADATA:
                    yield str(above), file.read_bytes()


def _local(location: Any) -> Path | str | None:
    from zarr.storage import LocalStore

    if isinstance(location, LocalStore):
        location = location.root
    is_path = isinstance(location, str | os.PathLike)
    return locate("store", location) if is_path else None
