"""The manifest of a stored tree: its leaves, its shape, and where its nodes lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, astuple, dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

from daskcoreset.constructions.tree import persistence
from daskcoreset.constructions.tree.job import Settings, concatenate_parts
from daskcoreset.constructions.tree.leaves import Leaf, LeafTable, time_text
from daskcoreset.constructions.tree.persistence import RowSchema
from daskcoreset.constructions.tree.places import MAIN, Head, Members, Place, link_of
from daskcoreset.constructions.tree.shape import Part, shape_by_keys, shape_of
from daskcoreset.constructions.tree.source import SourceRecord
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError, StoreError
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.validation import a_type

_MANIFEST = "coreset-tree-manifest"

_NODE = "coreset-tree-node"

_REMEDY = "restore the tree from a copy"


@dataclass(frozen=True)
class Manifest:
    """One version of a tree. Its nodes lie in this version and in earlier ones.

    Attributes
    ----------
    place : Place
        The place of the tree.
    head : Head
        The version that it is. For a change that is not written yet, the one before.
    version : int
        0 before the first change.
    leaves : LeafTable
    nodes : dict of str to (int, int)
        Version in which a node was written, and its index there, by its name.
    digests : dict of str to str
        Digest of the contents of each node, by its name.
    next_uid : int
        The next leaf's own number.
    schema : RowSchema or None
        None before the first leaf.
    source : SourceRecord or None
        The source that the tree follows, where it follows one.
    """

    place: Place
    head: Head
    version: int = 0
    leaves: LeafTable = field(default_factory=LeafTable)
    nodes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)
    next_uid: int = 0
    schema: RowSchema | None = None
    source: SourceRecord | None = None

    @cached_property
    def top(self) -> Part | None:
        """The shape; None without leaves."""
        if not self.leaves:
            return None
        nodes = [leaf.node for leaf in self.leaves]
        if self.source is not None:
            return shape_by_keys(self.leaves.names, nodes)
        return shape_of([leaf.uid for leaf in self.leaves], nodes)

    @property
    def depth(self) -> int:
        """Nodes above a leaf at most."""
        return self.top.depth if self.top else 0

    @property
    def keep(self) -> int | None:
        """Versions that stay, this one among them, for readers and for `as_of`. None for all."""
        kept = 2 if self.source is None else self.source.keep
        return None if kept is None else max(kept, 2)

    @cached_property
    def needed(self) -> frozenset[tuple[int, str]]:
        """Members of versions that this one needs."""
        nodes = {(made_in, f"node-{index}") for made_in, index in self.nodes.values()}
        return frozenset(nodes | {(self.version, MAIN)})

    def next_leaf(self, name: Any, time: Any) -> Leaf:
        """Return a new last leaf, without facts about rows yet.

        Raises
        ------
        InvalidInputError, InvalidTypeError
            If the name is not text, empty or taken, or the time cannot be compared with others.
        """
        time = time_text(time, self.leaves)
        if name is not None and not isinstance(name, str):
            raise InvalidTypeError(f"name is {a_type(name)}", argument="name", remedy="pass text")
        title: str = name if name is not None else time or f"leaf-{self.next_uid}"
        if not title:
            raise InvalidInputError(
                "name is empty", argument="name", remedy="pass text, or leave it out"
            )
        if title in self.leaves.names:
            raise InvalidInputError(
                f"there is a leaf {title!r} already", remedy="pass another name, or call replace"
            )
        return Leaf(title, 0, time, 0.0, uid=self.next_uid)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        source = {} if self.source is None else {"source": asdict(self.source)}
        return {
            **source,
            "entries": [list(astuple(leaf)) for leaf in self.leaves],
            "nodes": {name: list(location) for name, location in self.nodes.items()},
            "digests": dict(self.digests),
            "next_uid": self.next_uid,
            "form": None if self.schema is None else self.schema.to_json(),
        }

    @classmethod
    def from_json(cls, place: Place, head: Head, values: Mapping[str, Any]) -> Manifest:
        """Return the manifest of the values of `to_json`."""
        return cls(
            place,
            head,
            head.version,
            LeafTable(Leaf(*entry) for entry in values["entries"]),
            {name: (int(made_in), int(i)) for name, (made_in, i) in values["nodes"].items()},
            dict(values["digests"]),
            int(values["next_uid"]),
            RowSchema.from_json(values["form"]),
            SourceRecord(**values["source"]) if "source" in values else None,
        )

    def to_write(self, made: Mapping[str, WeightedPoints]) -> tuple[Manifest, Members]:
        """Return what is written of this version, which follows the one before, `head`.

        Parameters
        ----------
        made : mapping of str to WeightedPoints
            The nodes that are new in it.

        Returns
        -------
        Manifest
            As it will be there: with the digests of all nodes, and its own head.
        Members
        """
        new = {
            name: persistence.state_contents(_NODE, {"name": name}, [points])
            for name, points in made.items()
        }
        digests = {
            name: new[name].digest if name in new else self.digests[name] for name in self.nodes
        }
        written = replace(self, digests=digests)
        state = persistence.state_contents(_MANIFEST, written.to_json(), link=self.head.link)
        nodes = {self._member_of(name)[1]: contents for name, contents in new.items()}
        return replace(written, head=self.head.followed_by(state.digest)), {**nodes, MAIN: state}

    @classmethod
    def newest(cls, place: Place, settings: str) -> Manifest:
        """Read the newest version of a tree, and check that its nodes are there.

        Raises
        ------
        StoreError
            If it is damaged, is not the newest one that was written, or a node is missing.
        """

        def read(version: int) -> tuple[Manifest, Mapping[str, str], str]:
            manifest, link = cls._read_version(place, settings, version)
            manifest.check_nodes()
            return manifest, link, manifest.head.digest

        manifest, head = place.read_newest(settings, read)
        return manifest or cls(place, head, head.version)

    @classmethod
    def _read_version(
        cls, place: Place, settings: str, version: int
    ) -> tuple[Manifest, Mapping[str, str]]:
        contents = place.read(version, MAIN, _MANIFEST)
        head = Head(settings, version, contents.digest)
        where = place.where(version, MAIN)
        manifest = persistence.state_from(
            contents, where, lambda values, _: cls.from_json(place, head, values)
        )
        return manifest, link_of(contents)

    def as_of(self, version: int) -> Manifest:
        """Return an earlier version that is kept, after a check of the chain up to this one.

        Raises
        ------
        InvalidInputError
            The version does not exist, or is not kept.
        StoreError
            It is damaged, or another one stands in its place.
        """
        if not 0 < version <= self.version:
            raise InvalidInputError(
                f"version is {version}, and the tree has those from 1 to {self.version}",
                argument="version",
                remedy="pass one of them",
            )
        found, link = self, self._read_kept(self.version)[1]
        for number in range(self.version - 1, version - 1, -1):
            if self._is_first(link) or not self._keeps(number):
                raise InvalidInputError(
                    f"version {version} is not kept: the oldest one is {number + 1}",
                    argument="version",
                    remedy="pass a later one (keep=... of CoresetTree.follow sets the number "
                    "of versions of a view; other trees keep one before the newest)",
                )
            found, link_before = self._read_kept(number)
            if link.get("previous") != found.head.digest:
                where = self.place.where(number, MAIN)
                raise StoreError(
                    f"{where}: is not the one that was there", remedy="restore it from a copy"
                )
            link = link_before
        found.check_nodes()
        return found

    def _is_first(self, link: Mapping[str, str]) -> bool:
        """Whether a version follows no other, whatever its number is."""
        return link.get("previous") == self.head.settings

    def _keeps(self, version: int) -> bool:
        return self.place.find_missing([(version, MAIN)]) is None

    def _read_kept(self, version: int) -> tuple[Manifest, Mapping[str, str]]:
        return self._read_version(self.place, self.head.settings, version)

    def needed_by(self, version: int) -> frozenset[tuple[int, str]] | None:
        """Return the members that an earlier version needs. None where it does not read."""
        try:
            return self._read_kept(version)[0].needed if self._keeps(version) else frozenset()
        except StoreError:
            return None

    def check_nodes(self) -> None:
        """Check that the nodes are there."""
        if missing := self.place.find_missing(self.needed):
            where = self.place.where(*missing)
            raise StoreError(f"{where}: a node of the tree is missing", remedy=f"{_REMEDY}")

    def _member_of(self, name: str) -> tuple[int, str]:
        made_in, index = self.nodes[name]
        return made_in, f"node-{index}"

    def read_node(self, name: str) -> WeightedPoints:
        """Read a node. A missing one is an error: the tree has changed or is damaged.

        Raises
        ------
        StoreError
            Either is so.
        """
        where = self.place.where(*self._member_of(name))

        def only_part(_: dict[str, Any], parts: list[WeightedPoints]) -> WeightedPoints:
            if contents.digest != self.digests[name] or len(parts) != 1:
                raise StoreError(f"{where}: holds the node of another tree", remedy=f"{_REMEDY}")
            return parts[0]

        try:
            contents = self.place.read(*self._member_of(name), _NODE)
            return persistence.state_from(contents, where, only_part)
        except StoreError as error:
            if self.place.newest() == self.version:
                raise

            raise StoreError(
                f"{self.place.name}: the tree has changed since it was opened",
                remedy="open it again",
            ) from error

    def verify(self) -> None:
        """Read every node, and check its digest.

        Raises
        ------
        StoreError
            If one is damaged, missing, or belongs to another tree.
        """
        for name in self.nodes:
            self.read_node(name)

    def check_current(self) -> None:
        """Check that no other process has changed the tree.

        Raises
        ------
        StoreError
            If it has.
        """
        self.place.check_current(self.head)


# --- changes ------------------------------------------------------------------------------

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
        The present tree.
    changed : Manifest
        The leaves as they are to be. Its version and nodes are still those before.
    made : dict of str to WeightedPoints
        Leaves that are new, by the names of their nodes. The nodes above them are added.
    known : Needed
        As far as it was read already.
    commit : callable
        ``commit(after, members)`` writes the version after `before`, and goes on from it: what
        comes after that only removes, and may be interrupted.

    Returns
    -------
    Needed
        Needs of the versions that are kept.

    Raises
    ------
    StoreError
        If another process has changed the tree, or the disk refused. It is as it was.
    """
    before.check_current()
    place, version = before.place, before.version + 1
    after = replace(changed, version=version)
    there = _make_nodes(settings, before, after, made)
    new = {name: (version, index) for index, name in enumerate(made, place.first_index)}
    after = replace(after, nodes=there | new)
    for points in made.values():
        if len(points) > settings.most_rows:
            raise InvalidInputError(
                f"method returned {len(points):,} rows for a node, which may have "
                f"{settings.most_rows:,}",
                argument="method",
                remedy="correct its `reduce`, or raise inner_size",
            )
    after, members = after.to_write(made)
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
    """Add the nodes that are new to `made`, those below first. Return where the others are."""
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
