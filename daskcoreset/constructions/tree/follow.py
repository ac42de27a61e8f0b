"""Refreshes of a view, a tree that follows a source: an edit of leaves, written as one commit.

A leaf of such a tree is named after its part, and so are its random numbers. Its node is named
after its coreset, bit by bit, and the shape is one of the names of all leaves. So nothing depends
on when a part came, or on what was there before it: after any history the tree has the bits of one
that is made from the present source.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias

from daskcoreset.constructions.tree.job import Settings
from daskcoreset.constructions.tree.leaves import Leaf, LeafRows, LeafTable, read_leaf
from daskcoreset.constructions.tree.manifest import Manifest
from daskcoreset.constructions.tree.persistence import RowSchema
from daskcoreset.constructions.tree.source import (
    Look,
    Part,
    SourceRecord,
    SourceView,
    check_same,
    time_in_name,
)
from daskcoreset.core.points import WeightedPoints, to_arrays
from daskcoreset.errors import CoresetError, InvalidInputError
from daskcoreset.execution.progress import count_reads
from daskcoreset.execution.threads import in_threads

# Leaves that are read at a time: each holds a block, and on a cluster waits for its workers.
_MAX_THREADS = 8

# Bytes of coresets of leaves after which they are committed, while others are still to be read: so
# many are held in memory, and no more is read again after a crash.
BATCH_BYTES = 256 * 2**20

Commit: TypeAlias = Callable[[Manifest, dict[str, WeightedPoints]], Manifest]


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


def refresh(
    settings: Settings,
    manifest: Manifest,
    view: SourceView,
    commit: Commit,
    *,
    allow_shrink: bool,
    progress: bool | None,
) -> Refresh:
    """Read the parts of a source that are new or changed, and commit them.

    Parameters
    ----------
    settings : Settings
    manifest : Manifest
        The present tree.
    view : SourceView
    commit : callable
        ``commit(changed, made)`` writes a version, and returns it.
    allow_shrink : bool
    progress : bool or None

    Raises
    ------
    InvalidInputError
        The source is not the one that the tree follows, has shrunk, or a part does not fit.
    """
    where, before = manifest.place.name, manifest.source
    known = {leaf.name: leaf for leaf in manifest.leaves}
    look = view.look(before, {name: leaf.fingerprint for name, leaf in known.items()})
    if before is not None:
        then, now = ({"source": one.name, **one.options} for one in (before, look.record))
        check_same(where, then, now)
    elif manifest.schema is not None:
        raise InvalidInputError(
            f"{where} is a tree that does not follow a source",
            argument="path",
            remedy="choose another path",
        )
    names = dict.fromkeys(part.name for part in look.parts)
    removed = tuple(name for name in known if name not in names)
    if removed and not allow_shrink:
        _refuse_shrunk(manifest, look, removed)
    to_read = [
        part
        for part in look.parts
        if part.fingerprint is None
        or part.name not in known
        or known[part.name].fingerprint != part.fingerprint
    ]
    leaves, made = dict(known), dict[str, WeightedPoints]()
    rows = nbytes = held = 0

    def written(record: SourceRecord, names: Iterable[str]) -> Manifest:
        """Write a version with the leaves of these names, unless it is that which is there."""
        table = LeafTable(leaves[name] for name in names if name in leaves)
        if not table and manifest.source is None:  # it may be begun otherwise
            return manifest
        if record == manifest.source and [*map(vars, table)] == [*map(vars, manifest.leaves)]:
            return manifest
        return commit(replace(manifest, leaves=table, source=record), made)

    with count_reads(progress, len(to_read), unit="leaf") as advance:
        for part, read in _read(to_read, settings, manifest.schema):
            with _naming(part.name):
                leaf, points, schema = _fitted(read, manifest.schema)
            manifest = replace(manifest, schema=schema)
            leaves[leaf.name] = leaf
            if leaf.node not in manifest.nodes:
                made[leaf.node] = points
                held += sum(array.nbytes for array in to_arrays(points)[0].values())
            rows, nbytes = rows + leaf.rows, nbytes + read.nbytes
            advance(1)
            if held > BATCH_BYTES:
                # The leaves that go are still there, and so is the snapshot that was seen.
                mark = None if before is None else before.mark
                manifest = written(replace(look.record, mark=mark), [*names, *removed])
                made, held = {}, 0
    manifest = written(look.record, names)
    return Refresh(
        manifest.version,
        tuple(part.name for part in to_read),
        tuple(leaf.name for leaf in manifest.leaves if leaf.name not in known),
        tuple(x.name for x in manifest.leaves if known.get(x.name, x).node != x.node),
        removed,
        len(manifest.leaves),
        rows,
        nbytes,
    )


def _refuse_shrunk(manifest: Manifest, look: Look, removed: Sequence[str]) -> None:
    leaves, gone = manifest.leaves, removed
    if look.n_rows is not None:  # rows of larger chunks are in fewer leaves, and none is gone
        offsets = dict(zip(leaves.names, leaves.offsets, strict=True))
        gone = [name for name in removed if offsets[name] >= look.n_rows]
    if gone and (look.n_rows is not None or len(gone) == len(leaves)):
        raise InvalidInputError(
            f"source {look.record.name!r} has shrunk: {len(gone)} of the {len(leaves)} leaves of "
            f"{manifest.place.name} are gone, such as {gone[0]!r}",
            argument="source",
            remedy="check that its disk is there. If it is meant, pass allow_shrink=True. The view "
            "is as it was",
        )


def _fitted(read: LeafRows, known: RowSchema | None) -> tuple[Leaf, WeightedPoints, RowSchema]:
    """Return what `LeafRows.fit` does. The dtype of a view is that of every part."""
    if known is not None and read.schema.dtype != known.dtype:
        raise InvalidInputError(
            f"X is {read.schema.dtype}, and the rows before it are {known.dtype} (float16 and "
            "whole numbers that float32 holds count as float32, others as float64)",
            argument="X",
            remedy="write all parts of a source with one dtype, or follow it from another path",
        )
    return read.fit(known)


def _read(
    parts: Sequence[Part], settings: Settings, known: RowSchema | None
) -> Iterator[tuple[Part, LeafRows]]:
    """Read parts, some at a time, and yield them in their order."""

    def read(part: Part) -> LeafRows:
        leaf = Leaf(part.name, 0, time_in_name(part.name), 0.0, fingerprint=part.fingerprint)
        with _naming(part.name):
            return read_leaf(leaf, part.data(), settings, known)

    n_threads = min(_MAX_THREADS, os.cpu_count() or 1)
    return zip(parts, in_threads(read, parts, n_threads), strict=True)


@contextmanager
def _naming(part: str) -> Iterator[None]:
    """Let errors name the part whose rows they are about."""
    try:
        yield
    except CoresetError as error:
        told = {"argument": error.argument, "remedy": error.remedy}
        raise type(error)(f"{part}: {error.problem}", **told) from error
