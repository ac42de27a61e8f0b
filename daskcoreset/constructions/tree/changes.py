"""A change of a stored tree: the nodes that are new in it, and the version that is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from daskcoreset.constructions.tree.job import Settings, concatenate_parts
from daskcoreset.constructions.tree.leaf_table import LeafTable
from daskcoreset.constructions.tree.manifest import Manifest
from daskcoreset.constructions.tree.places import Members
from daskcoreset.constructions.tree.shape import Part, respaced
from daskcoreset.core.points import WeightedPoints

# What versions need that are kept beside the newest one, by their numbers.
Needed: TypeAlias = Mapping[int, frozenset[tuple[int, str]]]


def write_version(
    settings: Settings,
    before: Manifest,
    changed: Manifest,
    made: dict[str, WeightedPoints],
    known: Needed,
    *,
    commit: Callable[[Manifest, Members], None],
) -> Needed:
    """Make the nodes that are not there yet, write the next version, and sweep what none needs.

    Parameters
    ----------
    settings : Settings
    before : Manifest
        The tree as it is.
    changed : Manifest
        The leaves as they are to be; its version and nodes are still those before.
    made : dict of str to WeightedPoints
        Leaves that are new, by the names of their nodes; the nodes above them are added.
    known : Needed
        As far as it was read already.
    commit : callable
        ``commit(after, members)`` writes the version after `before`, and goes on from it: what
        comes after that only removes, and may be interrupted.

    Returns
    -------
    Needed
        Of the versions that are kept.

    Raises
    ------
    StoreError
        If another process has changed the tree, or the disk refused. It is as it was.
    """
    before.check_current()
    place, version = before.place, before.version + 1
    after = replace(changed, version=version)
    if changed.source is None:
        slots = respaced([leaf.slot for leaf in changed.leaves])
        spaced = zip(changed.leaves, slots, strict=True)
        after = replace(after, leaves=LeafTable(replace(leaf, slot=i) for leaf, i in spaced))
    there = _make_nodes(settings, before, after, made)
    new = {name: (version, index) for index, name in enumerate(made, place.first_index)}
    after = replace(after, nodes=there | new)
    after, members = after.to_write(after.groups(made))
    commit(after, members)
    # Who has the tree open as it was may go on reading.
    known = {**known, before.version: before.needed}
    kept = {old: known.get(old) or before.needed_by(old) for old in _kept(after)}
    readable = {old: members for old, members in kept.items() if members is not None}
    needed = after.needed.union(*readable.values())
    # What an unreadable version needs is not known: nothing is removed then.
    everything = len(readable) < len(kept)
    place.sweep(
        lambda made_in, member: everything or (made_in, member) in needed or made_in > version
    )
    return readable


def _make_nodes(
    settings: Settings, before: Manifest, after: Manifest, made: dict[str, WeightedPoints]
) -> dict[str, tuple[int, int]]:
    """Add the nodes that are new to `made`, those below first; return where the others are."""
    there: dict[str, tuple[int, int]] = {}
    for part in after.top or ():
        if part.name in before.nodes:
            there[part.name] = before.nodes[part.name]
        elif part.below:
            names = [below.name for below in part.below]
            points = [made[name] if name in made else before.read_node(name) for name in names]
            made[part.name] = _reduced(settings, part, points)
    return there


def _reduced(settings: Settings, part: Part, below: list[WeightedPoints]) -> WeightedPoints:
    # By the name, which stands for the leaves below: the same leaves give the same bits.
    return settings.reduce(concatenate_parts(below), int(part.name, 16))


def _kept(after: Manifest) -> range:
    """Return the versions that stay beside the one that is made."""
    first = 1 if after.keep is None else max(1, after.version - after.keep + 1)
    return range(first, after.version)
