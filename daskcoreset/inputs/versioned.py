"""Branches of Icechunk, which know their own versions."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from daskcoreset.core.errors import StoreError
from daskcoreset.inputs.places import clear_errors, said

# The branch that is followed.
_BRANCH = "main"


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
    snapshot : str
    changes : object or None
        Icechunk's diff. None where all is to be taken for changed.
    before : icechunk.Session or None
        Session of the snapshot that the diff begins with.
    """

    store: Any
    snapshot: str
    changes: Any
    before: Any = None

    def name(self, path: str) -> str:
        """Return what the array is told from others by. A repository has no name."""
        return f"Icechunk branch {_BRANCH!r}/{path}"

    def changed_rows(self, path: str) -> frozenset[int] | None:
        """Return the rows of chunks that were written. None where all are to be taken for it."""
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


def opened_commit(repository: Any, since: str | None) -> Commit:
    """Open the newest snapshot of the branch "main", and look what has changed since another one.

    Raises
    ------
    InvalidInputError
        The branch does not exist.
    StoreError
        The repository does not know the snapshot of before.
    """
    with clear_errors("source", "the repository", f"the branch {_BRANCH!r} of Icechunk"):
        session = repository.readonly_session(branch=_BRANCH)
    snapshot, changes, before = str(session.snapshot_id), None, None
    if since is not None and since != snapshot:
        changes = _changes(repository, since, snapshot)
        before = None if changes is None else repository.readonly_session(snapshot_id=since)
    elif since is not None:
        changes = _Nothing(frozenset(), frozenset(), frozenset(), {})
    return Commit(session.store, snapshot, changes, before)


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
    """Return the diff. None where the branch was set back to a snapshot before `since`."""
    try:
        return repository.diff(from_snapshot_id=since, to_snapshot_id=snapshot)
    except Exception as error:  # noqa: BLE001 - Icechunk has one error for all
        reason = said(error)
    try:
        repository.lookup_snapshot(since)
    except Exception:  # noqa: BLE001 - likewise
        raise StoreError(
            f"source has no snapshot {since}, from which the view was made "
            f"({reason}): it is another repository, or the snapshot has expired",
            argument="source",
            remedy="follow the source from another path",
        ) from None
    return None
