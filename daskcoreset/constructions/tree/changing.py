"""Changes of a stored tree: a leaf made of rows, and the nodes above it in a new version."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daskcoreset.core.errors import InvalidInputError, StoreError
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.random import Stage, stream
from daskcoreset.constructions.tree.batch import TreeJob
from daskcoreset.constructions.tree.schema import Form
from daskcoreset.constructions.tree.manifest import Manifest, read_node, write_version
from daskcoreset.constructions.tree.nodes import unite
from daskcoreset.constructions.tree.shape import Part, respaced
from daskcoreset.constructions.tree.table import ROW_BITS, Entry
from daskcoreset.constructions.tree.versions import commit, newest, sweep

if TYPE_CHECKING:
    from daskcoreset.constructions.tree.saved import Settings

__all__ = ["Change", "advance", "make_leaf", "see_whether_current"]

_SPLIT_EVERY = 16
"""Coresets of blocks united at a time where a leaf's data are out of core."""


@dataclass(frozen=True, eq=False)
class Change:
    """What a change wants.

    Attributes
    ----------
    manifest : Manifest
        The leaves as they are to be; its version and nodes are still those before.
    made : dict of str to WeightedPoints
        Leaves that are new, by the names of their nodes.
    """

    manifest: Manifest
    made: dict[str, WeightedPoints]


def make_leaf(
    settings: Settings,
    manifest: Manifest,
    entry: Entry,
    data: tuple[Any, Any, Any],
    progress: bool | None,
) -> tuple[Entry, Change]:
    """Read the rows of a leaf once, and return the change that puts it in its place.

    Parameters
    ----------
    settings : Settings
    manifest : Manifest
        The tree as it is.
    entry : Entry
        The leaf, without what only its rows tell.
    data : tuple
        X, y and sample_weight.
    progress : bool or None

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If the rows cannot be used, or do not fit those of the other leaves.
    """
    form, inner = manifest.form, settings.inner_size
    blocks = row_blocks(*data, on_invalid=settings.on_invalid)
    if form is None:
        form = Form.of(blocks)
    form.check(Form.of(blocks))
    # Another seed for every leaf, and every time it is replaced.
    own = stream(settings.seed, Stage.TREE_LEAVES, entry.uid, entry.revision)
    seed = int(own.integers(2**63))
    job = TreeJob(blocks, settings.reducer, inner, inner, seed, _SPLIT_EVERY, part=True)
    node = job.root(progress)
    if node.read >> ROW_BITS or entry.uid >> (63 - ROW_BITS):
        raise InvalidInputError(
            f"leaf {entry.uid} with {node.read} rows is more than a tree can number; make "
            f"several leaves of it, or begin another tree."
        )
    assert node.points is not None  # noqa: S101 - the root of the leaf was checked
    points, form = form.fit(node.points)
    indices = points.indices + (entry.uid << ROW_BITS)
    points = WeightedPoints(points.points, points.weights, indices, points.labels)
    dropped = node.read - node.kept
    leaf = replace(entry.leaf, rows=node.read, weight=node.weight, n_dropped=dropped)
    entry = replace(entry, leaf=leaf)
    entries = {old.uid: old for old in manifest.entries} | {entry.uid: entry}
    uid = max(manifest.next_uid, entry.uid + 1)
    changed = replace(manifest, entries=tuple(entries.values()), next_uid=uid, form=form)
    return entry, Change(changed, {entry.node: points})


def advance(root: Path, settings: Settings, before: Manifest, change: Change) -> Manifest:
    """Make the nodes that are not there yet, and write the next version.

    Raises
    ------
    StoreError
        If another process has changed the tree, or the disk refused. It is as it was.
    """
    see_whether_current(root, before)
    made, version = dict(change.made), before.version + 1
    entries = change.manifest.entries
    slots = respaced([entry.slot for entry in entries])
    entries = tuple(replace(e, slot=slot) for e, slot in zip(entries, slots, strict=True))
    after = replace(change.manifest, version=version, entries=entries)
    kept: dict[str, tuple[int, int]] = {}
    for part in after.top or ():
        if part.name in before.nodes:
            kept[part.name] = before.nodes[part.name]
        elif part.below:
            held = [
                made[below.name] if below.name in made else read_node(root, before, below.name)
                for below in part.below
            ]
            made[part.name] = _reduced(settings, part, held)
    fresh = {name: (version, number) for number, name in enumerate(made)}
    after = replace(after, nodes=kept | fresh)
    commit(root, version, lambda scratch: write_version(scratch, after, made))
    needed = before.needed | after.needed  # who has the tree open as it was may go on reading
    sweep(root, lambda number, member: (number, member) in needed or number > version)
    return after


def _reduced(settings: Settings, part: Part, held: list[WeightedPoints]) -> WeightedPoints:
    rng = stream(settings.seed, Stage.TREE, int(part.name, 16))
    return settings.reducer.reduce(unite(held), settings.inner_size, rng)


def see_whether_current(root: Path, manifest: Manifest) -> None:
    """Refuse to change a tree that another process has changed.

    Raises
    ------
    StoreError
        If it has.
    """
    there = newest(root)
    if there != manifest.version:
        raise StoreError(
            f"{root.parent}: another writer has changed it since it was opened (version "
            f"{manifest.version}, now {there}); nothing was written; open it again and repeat "
            f"the change"
        )
