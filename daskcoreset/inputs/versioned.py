"""Sources that know their own versions: branches of Icechunk, and Delta tables."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import unquote

from daskcoreset.core.errors import InvalidInputError, StoreError
from daskcoreset.core.optional import import_optional
from daskcoreset.inputs.places import Place, clear_errors, said

# --- Icechunk ----------------------------------------------------------------------------


def is_repository(source: Any) -> bool:
    """Whether a source is a repository of Icechunk."""
    icechunk = sys.modules.get("icechunk")
    return icechunk is not None and isinstance(source, icechunk.Repository)


@dataclass(frozen=True, eq=False)
class Commit:
    """The newest snapshot of a branch, and what has changed in it since another one.

    Attributes
    ----------
    store : zarr.abc.store.Store
    branch, snapshot : str
    changes : object or None
        Icechunk's diff; None where all is to be taken for changed.
    before : icechunk.Session or None
        Of the snapshot that the diff begins with.
    """

    store: Any
    branch: str
    snapshot: str
    changes: Any
    before: Any = None

    def name(self, path: str) -> str:
        """Return what the array is told from others by; a repository has no name of its own."""
        return f"Icechunk branch {self.branch!r}/{path}"

    def changed_rows(self, path: str) -> frozenset[int] | None:
        """Return the rows of chunks that were written; None where all are to be taken for it."""
        if self.changes is None:
            return None
        path = f"/{path.strip('/')}"
        if path in self.changes.new_arrays | self.changes.deleted_arrays:
            return None
        rows = {int(number[0]) for number in self.changes.updated_chunks.get(path, ())}
        if path in self.changes.updated_arrays:
            # What was cut off by one commit and is empty since the next is not in the diff.
            stored = _chunk_numbers(self.store.session, path)
            rows.update(number[0] for number in _chunk_numbers(self.before, path) - stored)
        return frozenset(rows)


def opened_commit(repository: Any, branch: str, since: str | None) -> Commit:
    """Open the newest snapshot of a branch, and look what has changed since another one.

    Raises
    ------
    InvalidInputError
        There is no such branch.
    StoreError
        The repository does not know the snapshot of before.
    """
    with clear_errors("source", "the repository", f"the branch {branch!r} of Icechunk"):
        session = repository.readonly_session(branch=branch)
    snapshot, changes, before = str(session.snapshot_id), None, None
    if since is not None and since != snapshot:
        changes = _changes(repository, since, snapshot)
        before = None if changes is None else repository.readonly_session(snapshot_id=since)
    elif since is not None:
        changes = _Nothing(frozenset(), frozenset(), frozenset(), {})
    return Commit(session.store, branch, snapshot, changes, before)


def _chunk_numbers(session: Any, path: str) -> set[tuple[int, ...]]:
    from zarr.core.sync import sync

    async def listed() -> set[tuple[int, ...]]:
        return {tuple(number) async for number in session.chunk_coordinates(path)}

    return sync(listed())


class _Nothing(NamedTuple):
    new_arrays: frozenset[str]
    deleted_arrays: frozenset[str]
    updated_arrays: frozenset[str]
    updated_chunks: Mapping[str, Any]


def _changes(repository: Any, since: str, snapshot: str) -> Any:
    """Return the diff; None where the branch was set back to a snapshot before `since`."""
    try:
        return repository.diff(from_snapshot_id=since, to_snapshot_id=snapshot)
    except Exception as error:  # noqa: BLE001 - Icechunk has one error for all
        reason = said(error)
    try:
        repository.lookup_snapshot(since)
    except Exception:  # noqa: BLE001 - likewise
        raise StoreError(
            f"source does not know snapshot {since}, of which the view was made ({reason}): it is "
            f"another repository, or the snapshot has expired; follow the source from another path."
        ) from None
    return None


# --- Delta -------------------------------------------------------------------------------


class DeltaFile(NamedTuple):
    """A file of a Delta table, which is never written again."""

    name: str
    stamp: str
    place: Place


def is_delta(source: Any) -> bool:
    """Whether a source is a Delta table that is open."""
    deltalake = sys.modules.get("deltalake")
    return deltalake is not None and isinstance(source, deltalake.DeltaTable)


def delta_name(base: Place) -> str:
    """Return what a table is told from others by."""
    return base.name.rstrip("/")


def delta_files(
    source: Any, storage_options: Mapping[str, Any] | None
) -> tuple[Place, list[DeltaFile], str]:
    """Return the folder of a Delta table, its files in the newest version, and the version.

    Parameters
    ----------
    source : deltalake.DeltaTable or Place
        A table that is open, at whatever version, names the table and says how it is reached.
    storage_options : mapping, optional
        For a URL, as deltalake has them where it is a `Place`.

    Raises
    ------
    InvalidInputError
        The table has deleted rows in files that are kept, or other features that are not read.
    MissingDependencyError
        deltalake is not installed.
    """
    remedy = 'source is a Delta table; pip install "daskcoreset[delta]" brings what reads it.'
    deltalake = import_optional("deltalake", remedy)
    import pyarrow as pa
    from dask.utils import natural_sort_key

    if isinstance(source, Place):
        url = source.url or source.path
        options = (
            None if storage_options is None else {k: str(v) for k, v in storage_options.items()}
        )
        with clear_errors("source", url, "a Delta table"):
            table = deltalake.DeltaTable(url, storage_options=options)
        base = source
    else:
        url, options = str(source.table_uri), getattr(source, "_storage_options", None)
        if "://" not in url:  # a quoted path, by deltalake 1.0
            url = unquote(url)
        with clear_errors("source", url, "a Delta table"):
            # One of our own: the table of the user stays at its version.
            table = deltalake.DeltaTable(url, storage_options=options)
            base = Place.of(url, storage_options)
    features = set(table.protocol().reader_features or ())
    if unread := sorted(features & {"deletionVectors", "columnMapping"}):
        raise InvalidInputError(
            f"source is a Delta table with {unread}, which its files alone do not show; write it "
            f"without, or follow a copy of its rows."
        )
    actions = pa.table(table.get_add_actions(flatten=True)).to_pydict()
    root = base.path.rstrip("/")
    files = [
        DeltaFile(path, f"size={size} time={time}", base.at(f"{root}/{unquote(path)}"))
        for path, size, time in zip(
            actions["path"], actions["size_bytes"], actions["modification_time"], strict=True
        )
    ]
    files.sort(key=lambda file: natural_sort_key(file.name))
    return base, files, str(table.version())
