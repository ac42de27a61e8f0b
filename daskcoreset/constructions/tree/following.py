"""Views: trees that follow a source. How it is looked at, what is read, how the leaves change.

A leaf of such a tree is named after its part, and so are its random numbers. Its node is named
after its coreset, bit by bit, and the shape is one of the names of all leaves. So nothing depends
on when a part came, or on what was there before it: after any history the tree has the bits of one
that is made from the present source.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from daskcoreset.constructions.tree.job import Settings
from daskcoreset.constructions.tree.leaves import (
    ROW_BITS,
    Leaf,
    LeafRows,
    LeafTable,
    content_digest,
    number_of,
    read_leaf,
)
from daskcoreset.constructions.tree.manifest import Manifest, SourceRecord
from daskcoreset.constructions.tree.persistence import RowSchema
from daskcoreset.constructions.tree.places import Place
from daskcoreset.core.deadline import check_time
from daskcoreset.core.errors import CoresetError, InvalidInputError, warn_user
from daskcoreset.core.points import WeightedPoints, to_arrays
from daskcoreset.core.validation import as_int
from daskcoreset.inputs.followed import FollowOptions, SourcePart, SourceState, look
from daskcoreset.inputs.options import DEFAULTS, ReadOptions, is_path
from daskcoreset.inputs.places import from_root, is_glob
from daskcoreset.storage.locations import locate

# Leaves that are read at a time: each holds a block, and on a cluster waits for its workers.
_MAX_THREADS = 8


@dataclass(frozen=True, eq=False)
class SourceView:
    """A source, and how it is followed.

    Attributes
    ----------
    source : object
        As `CoresetTree.follow` takes it, without the options of `open_rows`.
    options : FollowOptions
    keep : int or None
    """

    source: Any
    options: FollowOptions
    keep: int | None

    def __post_init__(self) -> None:
        if self.keep is not None:
            as_int("keep", self.keep, remedy="pass a larger int, or None to keep all versions")
        object.__setattr__(self, "source", _from_here(self.source))

    @classmethod
    def of(cls, source: Any, y: Any, sample_weight: Any, keep: int | None) -> SourceView:
        """Return the view of a source that may be `Rows`."""
        source, reading = ReadOptions.of(source)
        return cls(source, FollowOptions(y, sample_weight, reading), keep)

    @classmethod
    def again(cls, source: Any, record: SourceRecord) -> SourceView:
        """Return the view of a source that was followed before."""
        source, reading = ReadOptions.of(source)
        return cls(source, FollowOptions.of_record(record.options, reading), record.keep)

    def at(self, source: Any) -> SourceView:
        """Return the view of the source, opened again. `Rows` set again how it is read."""
        source, reading = ReadOptions.of(source)
        options = self.options if reading is DEFAULTS else replace(self.options, reading=reading)
        return replace(self, source=source, options=options)

    def look(self, manifest: Manifest) -> tuple[SourceState, SourceRecord]:
        """Return the present source, and the record of how it is read.

        Raises
        ------
        InvalidInputError
            It is not the one that the tree follows.
        """
        before = manifest.source
        mark, stamps = (None, None) if before is None else (before.mark, before.stamps)
        state = look(self.source, self.options, mark, stamps)
        if before is not None:
            before.check(manifest.place.name, state, self.options)
        elif manifest.next_uid:
            raise InvalidInputError(
                f"{manifest.place.name} is a tree that does not follow a source",
                argument="path",
                remedy="choose another path",
            )
        keep = None if self.keep is None else int(self.keep)
        options = SourceRecord.options_of(state, self.options)
        return state, SourceRecord(state.kind, state.name, options, keep)

    def refuse_among_data(self, place: Place) -> None:
        """Refuse a place among the data, where the view would be read, or be lost with them.

        Raises
        ------
        InvalidInputError
            A glob matches it, or it is inside the store or folder that is followed.
        """
        sources = self.source if isinstance(self.source, (list, tuple)) else [self.source]
        if not isinstance(place.path, Path):
            return
        path = Path(os.path.realpath(place.path))
        for source in (one for one in sources if isinstance(one, (str, os.PathLike))):
            given = locate("source", source)
            if not isinstance(given, Path):  # a URL
                continue
            if is_glob(source) and path.match(str(given)):
                raise InvalidInputError(
                    f"path {place.name!r} matches source {os.fspath(source)!r}, which would list "
                    "the view as a file",
                    argument="path",
                    remedy='choose a path outside of it, or a narrower glob, such as "*.npy"',
                )
            if path.is_relative_to(given):
                raise InvalidInputError(
                    f"path {place.name!r} is inside source {os.fspath(source)!r}, and "
                    "would be lost if the source is rewritten",
                    argument="path",
                    remedy="choose a path outside of it",
                )

    def warn_of_no_match(self) -> None:
        """Warn that patterns match no file, of a view without leaves."""
        sources = self.source if isinstance(self.source, (list, tuple)) else [self.source]
        if patterns := [os.fspath(source) for source in sources if is_glob(source)]:
            named = " and ".join(map(repr, patterns))
            warn_user(
                f"source matches no file: {named}; the view is empty until refresh() finds some. "
                f"Check the pattern."
            )


def _from_here(source: Any) -> Any:
    """Return a source whose relative paths mean the same when the process goes elsewhere."""
    if not is_path(source):
        return source
    if isinstance(source, (list, tuple)):
        return [_from_here(one) for one in source]
    text = os.fspath(source)
    return source if "://" in text else from_root(text)


# Bytes of coresets of leaves after which they are written, while others are still to be read: so
# many are held in memory, and no more is read again after a crash.
BATCH_BYTES = 256 * 2**20


@dataclass(frozen=True)
class Refresh:
    """The result of `CoresetTree.refresh`.

    Attributes
    ----------
    version : int
        Version of the tree. Unchanged if nothing was new.
    read : tuple of str
        Leaves whose parts were read.
    added, changed, removed : tuple of str
        Leaves that are new, that hold other rows, and that are gone. A part that was written again
        with the same rows is read, and its leaf is not changed.
    n_leaves : int
        Number of leaves of the tree.
    rows, nbytes : int
        Rows that were read, and their decoded bytes.
    """

    version: int
    read: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    n_leaves: int = 0
    rows: int = 0
    nbytes: int = 0

    def __repr__(self) -> str:
        counts = ", ".join(
            f"{len(getattr(self, name)):,} {name}" for name in ("added", "changed", "removed")
        )
        return (
            f"Refresh(version {self.version}: {len(self.read):,} of {self.n_leaves:,} leaves read, "
            f"{self.rows:,} rows, {self.nbytes:,} bytes; {counts})"
        )

    def __bool__(self) -> bool:
        """Whether any leaf came, changed or went."""
        return bool(self.added or self.changed or self.removed)


@dataclass(frozen=True, eq=False)
class Plan:
    """The work that brings a tree to a state of its source.

    Attributes
    ----------
    state : SourceState
    record : SourceRecord
        Record of the source when all is done.
    to_read : list of SourcePart
    removed : tuple of str
        Leaves without a part.
    """

    state: SourceState
    record: SourceRecord
    to_read: list[SourcePart] = field(default_factory=list)
    removed: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, manifest: Manifest, state: SourceState, record: SourceRecord, *, allow_shrink: bool
    ) -> Plan:
        """Compare a state with what the tree holds.

        Raises
        ------
        InvalidInputError
            The source has shrunk, and that is not allowed.
        """
        known = {} if manifest.source is None else manifest.source.stamps
        names = {part.name for part in state.parts}
        removed = tuple(leaf.name for leaf in manifest.leaves if leaf.name not in names)
        if removed and not allow_shrink:
            _refuse_shrunk(state, manifest, removed)
        to_read = [part for part in state.parts if known.get(part.name) != part.stamp]
        stamps = {part.name: part.stamp for part in state.parts}
        return cls(state, replace(record, mark=state.mark, stamps=stamps), to_read, removed)

    def is_done(self, manifest: Manifest) -> bool:
        """Whether the tree is in this state already."""
        order = [part.name for part in self.state.parts]
        return manifest.source == self.record and manifest.leaves.names == order


def _refuse_shrunk(state: SourceState, manifest: Manifest, removed: Sequence[str]) -> None:
    remedy = "the view is as it was. If that is meant, pass allow_shrink=True"
    if state.n_rows is not None:
        leaves = manifest.leaves
        starts = {name: leaves.offsets[leaves.position(name)] for name in removed}
        # Rows of larger chunks are in fewer leaves, and none is gone.
        below = [name for name, start in starts.items() if start >= state.n_rows]
        if not below:
            return
        leaf = leaves[below[0]]
        raise InvalidInputError(
            f"source {state.name!r} ends before row {starts[leaf.name]:,}, where leaf "
            f"{leaf.name!r} of {leaf.rows:,} rows begins: it has shrunk below {len(below)} of "
            f"the {len(leaves)} leaves",
            argument="source",
            remedy=remedy,
        )
    if not state.parts:
        raise InvalidInputError(
            f"source {state.name!r} holds none of the {len(removed)} files any more, such as "
            f"{removed[0]!r}",
            argument="source",
            remedy=f"{remedy}, and otherwise look whether its disk is there",
        )


class Refreshing:
    """One refresh of a tree.

    Parameters
    ----------
    settings : Settings
    manifest : Manifest
        The present tree.
    plan : Plan
    commit : callable
        ``commit(changed, made)`` writes a version, and returns it.
    """

    def __init__(
        self,
        settings: Settings,
        manifest: Manifest,
        plan: Plan,
        commit: Callable[[Manifest, dict[str, WeightedPoints]], Manifest],
    ) -> None:
        self._settings = settings
        self._manifest = manifest
        self._plan = plan
        self._commit = commit
        before = manifest.leaves
        self._leaves = {leaf.name: leaf for leaf in before}
        self._stamps = {} if manifest.source is None else dict(manifest.source.stamps)
        self._before = {leaf.name: leaf.node for leaf in before}
        self._schema = manifest.schema
        self._next_uid = manifest.next_uid
        self._made: dict[str, WeightedPoints] = {}
        self._held = 0

    def run(self, advance: Callable[[int], None]) -> Refresh:
        """Read, reduce and write; what was written stays where a later part fails."""
        plan, rows, nbytes = self._plan, 0, 0
        for part, leaf in self._read():
            with naming(part.name):
                self._take(part, leaf)
            rows, nbytes = rows + leaf.rows, nbytes + leaf.nbytes
            advance(1)
            if self._held > BATCH_BYTES:
                self._write(done=False)
        self._write(done=True)
        now = {leaf.name: leaf.node for leaf in self._manifest.leaves}
        known = self._before
        return Refresh(
            self._manifest.version,
            tuple(part.name for part in plan.to_read),
            tuple(name for name in now if name not in known),
            tuple(name for name in now if known.get(name, now[name]) != now[name]),
            plan.removed,
            len(now),
            rows,
            nbytes,
        )

    def _read(self) -> Iterator[tuple[SourcePart, LeafRows]]:
        """Read parts, some at a time, and yield them in their order."""
        parts, n_threads = self._plan.to_read, max(1, min(_MAX_THREADS, os.cpu_count() or 1))
        with ThreadPoolExecutor(n_threads, "coreset-view") as pool:
            ahead: dict[int, Future[LeafRows]] = {}
            try:
                for i, part in enumerate(parts):
                    # The threads have the deadline of this call in copies of its context.
                    for j in range(i + len(ahead), min(i + n_threads, len(parts))):
                        ahead[j] = pool.submit(copy_context().run, self._read_part, parts[j])
                    yield part, ahead.pop(i).result()
                    check_time()
            finally:
                for future in ahead.values():
                    future.cancel()

    def _read_part(self, part: SourcePart) -> LeafRows:
        with naming(part.name):
            check = partial(self._check, self._manifest.schema)
            return read_leaf(part.data(), self._settings, (number_of(part.name), 0), check)

    def _check(self, known: RowSchema | None, schema: RowSchema) -> None:
        if known is None:
            return
        known.check(schema)
        if schema.dtype != known.dtype:
            raise InvalidInputError(
                f"X is {schema.dtype}, and the rows before it are {known.dtype} (float16 and "
                "whole numbers that float32 holds count as float32, others as float64)",
                argument="X",
                remedy="write all parts of a source with one dtype, or follow it from another path",
            )

    def _take(self, part: SourcePart, read: LeafRows) -> None:
        self._check(self._schema, read.schema)
        known = self._schema and self._schema.followed_by(read.schema)
        points, self._schema = (known or read.schema).fit(read.points)
        old = self._leaves.get(part.name)
        uid = self._next_uid if old is None else old.uid
        self._next_uid += old is None
        if read.rows >> ROW_BITS or uid >> (63 - ROW_BITS):
            raise InvalidInputError(
                f"a leaf with number {uid} and {read.rows} rows is more than a tree can number",
                argument="source",
                remedy="start another tree",
            )
        content = content_digest(part.name, points)
        leaf = Leaf(
            part.name,
            read.rows,
            part.time,
            read.weight,
            read.n_dropped,
            uid=uid,
            content=content,
        )
        self._leaves[part.name] = leaf
        self._stamps[part.name] = part.stamp
        if leaf.node not in self._manifest.nodes:
            self._made[leaf.node] = replace(points, indices=points.indices + (uid << ROW_BITS))
            self._held += sum(array.nbytes for array in to_arrays(points)[0].values())

    def _write(self, *, done: bool) -> None:
        """Write a version: the last one, or one of leaves that were read so far."""
        plan, manifest = self._plan, self._manifest
        order = [part.name for part in plan.state.parts]
        # While parts are still to be read, the leaves that go stay, and so does the mark: the next
        # refresh compares with what was seen before this one.
        gone = () if done else plan.removed
        names = [name for name in (*order, *gone) if name in self._leaves]
        record = plan.record
        if not done:
            mark = None if manifest.source is None else manifest.source.mark
            stamps = {name: self._stamps[name] for name in names}
            record = replace(record, mark=mark, stamps=stamps)
        leaves = LeafTable(self._leaves[name] for name in names)
        changed = replace(
            manifest,
            leaves=leaves,
            next_uid=self._next_uid,
            schema=self._schema,
            source=record,
        )
        self._manifest = self._commit(changed, self._made)
        self._made, self._held = {}, 0


@contextmanager
def naming(part: str) -> Iterator[None]:
    """Let errors name the part whose rows they are about."""
    try:
        yield
    except CoresetError as error:
        if error.problem.startswith(f"{part}: "):
            raise
        told = {"argument": error.argument, "remedy": error.remedy}
        raise type(error)(f"{part}: {error.problem}", **told) from error
