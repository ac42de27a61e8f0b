"""The manifest of a stored tree: its leaves, its shape, and where its nodes lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from daskcoreset.constructions.tree import persistence
from daskcoreset.constructions.tree.chain import Head
from daskcoreset.constructions.tree.leaf_table import Leaf, LeafTable, time_text
from daskcoreset.constructions.tree.persistence import Origin, RowSchema
from daskcoreset.constructions.tree.places import MAIN, Members, Place
from daskcoreset.constructions.tree.shape import Part, shape_by_keys, shape_of
from daskcoreset.constructions.tree.source_record import SourceRecord
from daskcoreset.core.contents import GroupContents
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError, StoreError
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.validation import a_type

_MANIFEST = "coreset-tree-manifest"

_NODE = "coreset-tree-node"


@dataclass(frozen=True)
class Manifest:
    """One version of a tree; its nodes lie in this version and in earlier ones.

    Attributes
    ----------
    place : Place
        Where the tree is kept.
    head : Head
        The version that it is; for a change that is not written yet, the one before.
    version : int
        0 before the first change.
    leaves : LeafTable
    nodes : dict of str to (int, int)
        Version in which a node was written, and its index there, by its name.
    digests : dict of str to str
        What tells the contents of a node from any others, by its name.
    next_uid : int
        The next leaf's own number.
    schema : RowSchema or None
        None before the first leaf.
    most_rows : int or None
        Rows of a node at most; None where it is not known.
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
    most_rows: int | None = None
    source: SourceRecord | None = None

    @cached_property
    def top(self) -> Part | None:
        """The shape; None without leaves."""
        if not self.leaves:
            return None
        nodes = [leaf.node for leaf in self.leaves]
        if self.source is not None:
            return shape_by_keys(self.leaves.names, nodes)
        return shape_of([leaf.slot for leaf in self.leaves], nodes)

    @property
    def depth(self) -> int:
        """Nodes above a leaf at most."""
        return self.top.depth if self.top else 0

    @property
    def keep(self) -> int | None:
        """Versions that stay, this one among them, for readers and for `as_of`; None for all."""
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
            If the name is no text, empty or taken, or the time cannot be compared with others.
        """
        time = time_text(time, self.leaves)
        if name is not None and not isinstance(name, str):
            raise InvalidTypeError(f"name is {a_type(name)}; pass text.")
        title: str = name if name is not None else time or f"leaf-{self.next_uid}"
        if not title:
            raise InvalidInputError("name is empty; pass text, or leave it out.")
        if title in self.leaves.names:
            raise InvalidInputError(
                f"there is a leaf {title!r} already; pass another name, or call replace."
            )
        slot = 1 + self.leaves[-1].slot if self.leaves else 0
        return Leaf(title, 0, time, 0.0, uid=self.next_uid, slot=slot)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        source = {} if self.source is None else {"source": self.source.to_json()}
        return {
            **source,
            "entries": [leaf.entry for leaf in self.leaves],
            "nodes": {name: list(location) for name, location in self.nodes.items()},
            "digests": dict(self.digests),
            "next_uid": self.next_uid,
            "form": None if self.schema is None else self.schema.to_json(),
        }

    @classmethod
    def from_json(
        cls, place: Place, head: Head, values: Mapping[str, Any], most_rows: int | None
    ) -> Manifest:
        """Return the manifest of the values of `to_json`, after a check of their consistency.

        Raises
        ------
        KeyError, TypeError, ValueError
            It is not.
        """
        manifest = cls(
            place,
            head,
            head.version,
            LeafTable(Leaf(*entry) for entry in values["entries"]),
            {name: (int(made_in), int(i)) for name, (made_in, i) in values["nodes"].items()},
            dict(values.get("digests", {})),  # which earlier versions did not write
            int(values["next_uid"]),
            RowSchema.from_json(values["form"]),
            most_rows,
            SourceRecord.from_json(values.get("source")),
        )
        leaves = manifest.leaves
        slots, uids = [leaf.slot for leaf in leaves], [leaf.uid for leaf in leaves]
        # Leaves of a source come anywhere, and are numbered as they come.
        for numbers in (slots, uids if manifest.source is None else sorted(uids)):
            if sorted(set(numbers)) != numbers:
                raise ValueError("leaves are not in their order")
        if len(set(leaves.names)) < len(leaves):
            raise ValueError("two leaves have the same name")
        if {part.name for part in manifest.top or ()} != set(manifest.nodes):
            raise ValueError("its nodes are not those above its leaves")
        if manifest.digests and set(manifest.digests) != set(manifest.nodes):
            raise ValueError("its digests are not those of its nodes")
        return manifest

    def groups(self, made: Mapping[str, WeightedPoints]) -> dict[str, GroupContents]:
        """Return what is written of nodes, by their names.

        Raises
        ------
        InvalidInputError
            A node has far more rows than were asked for.
        """
        most = self.most_rows
        for points in made.values():
            if most is not None and len(points) > most:
                raise InvalidInputError(
                    f"method gave {len(points):,} rows for a node, which may have {most:,}; "
                    f"correct `reduce`, or raise inner_size."
                )
        return {
            name: persistence.state_contents(_NODE, {"name": name}, [points])
            for name, points in made.items()
        }

    def to_write(self, groups: Mapping[str, GroupContents]) -> tuple[Manifest, Members]:
        """Return what is written of this version, which follows the one before, `head`.

        Parameters
        ----------
        groups : mapping
            The nodes that are new in it.

        Returns
        -------
        Manifest
            As it will be there: with the digests of all nodes, and its own head.
        Members
        """
        new = {name: contents.digest for name, contents in groups.items()}
        digests = {name: new.get(name) or self._digest_of(name) for name in self.nodes}
        written = replace(self, digests=digests)
        state = persistence.state_contents(_MANIFEST, written.to_json(), link=self.head.link)
        nodes = {f"node-{self.nodes[name][1]}": new for name, new in groups.items()}
        return replace(written, head=self.head.followed_by(state.digest)), {**nodes, MAIN: state}

    def _digest_of(self, name: str) -> str:
        """Return the digest of a node that is there; earlier versions did not write it."""
        return self.digests.get(name) or self._read_group(name).digest

    @classmethod
    def newest(cls, place: Place, origin: Origin, most_rows: int | None) -> Manifest:
        """Read the newest version, and check that its nodes are there.

        Raises
        ------
        StoreError
            It is damaged, or it is not the newest one that was written, or a node is missing.
        """

        def read(version: int) -> tuple[Manifest, Mapping[str, str] | None, str]:
            manifest, link = cls._read_version(place, origin.digest, version, most_rows)
            manifest.check_nodes()
            return manifest, link, manifest.head.digest

        manifest, head = place.read_newest(origin, read)
        return manifest or cls(place, head, head.version, most_rows=most_rows)

    @classmethod
    def _read_version(
        cls, place: Place, settings: str, version: int, most_rows: int | None
    ) -> tuple[Manifest, Mapping[str, str] | None]:
        contents = place.read(version, MAIN, _MANIFEST)
        head = Head(settings, version, contents.digest)
        manifest = persistence.state_from(
            contents,
            place.where(version, MAIN),
            lambda values, _: cls.from_json(place, head, values, most_rows),
        )
        return manifest, persistence.link_of(contents)

    def as_of(self, version: int) -> Manifest:
        """Return an earlier version that is kept, after a check of the chain up to this one.

        Raises
        ------
        InvalidInputError
            There is no such version, or it is not kept.
        StoreError
            It is damaged, or another one stands in its place.
        """
        if not 0 < version <= self.version:
            raise InvalidInputError(
                f"version is {version}, and the tree has those from 1 to {self.version}; pass one "
                f"of them."
            )
        found, link = self, self._read_kept(self.version)[1]
        for number in range(self.version - 1, version - 1, -1):
            if self._is_first(link) or not self._keeps(number):
                raise InvalidInputError(
                    f"version {version} is not kept: the oldest one there is {number + 1}; pass a "
                    f"later one (views keep as many as keep=... of CoresetTree.follow says, other "
                    f"trees the one before the newest)."
                )
            found, link_before = self._read_kept(number)
            if link is not None and link.get("previous") != found.head.digest:
                where = self.place.where(number, MAIN)
                raise StoreError(f"{where}: is not the one that was there; restore it from a copy")
            link = link_before
        found.check_nodes()
        return found

    def _is_first(self, link: Mapping[str, str] | None) -> bool:
        """Whether a version follows no other; its number goes on where it replaced a place."""
        return link is not None and link.get("previous") == self.head.settings

    def _keeps(self, version: int) -> bool:
        return self.place.find_missing([(version, MAIN)]) is None

    def _read_kept(self, version: int) -> tuple[Manifest, Mapping[str, str] | None]:
        return self._read_version(self.place, self.head.settings, version, self.most_rows)

    def needed_by(self, version: int) -> frozenset[tuple[int, str]] | None:
        """Return the members that an earlier version needs; None where it does not read."""
        try:
            return self._read_kept(version)[0].needed if self._keeps(version) else frozenset()
        except StoreError:
            return None

    def check_nodes(self) -> None:
        """Check that the nodes are there."""
        if missing := self.place.find_missing(self.needed):
            where = self.place.where(*missing)
            raise StoreError(
                f"{where}: a node of the tree is missing; restore the tree from a copy"
            )

    def _member_of(self, name: str) -> tuple[int, str]:
        made_in, index = self.nodes[name]
        return made_in, f"node-{index}"

    def _read_group(self, name: str) -> GroupContents:
        find_problem = partial(self._find_problem, name)
        return self.place.read(*self._member_of(name), _NODE, find_problem)

    def _find_problem(self, name: str, header: Mapping[str, Any]) -> str | None:
        """Return what is wrong with the header of a node, or None."""
        if self.digests.get(name, header["digest"]) != header["digest"]:
            return "holds the node of another tree"
        n_rows = header["arrays"]["weights"]["shape"][0]
        shape = header["arrays"].get("points", {}).get("shape")
        if self.schema is not None and shape not in (None, [n_rows, self.schema.n_features]):
            return f"is declared to hold points of shape {shape}, which the tree does not have"
        return None

    def read_node(self, name: str) -> WeightedPoints:
        """Read a node; a missing one is an error: the tree has changed or is damaged.

        Raises
        ------
        StoreError
            Either is so.
        """
        where = self.place.where(*self._member_of(name))

        def only_part(values: dict[str, Any], parts: list[WeightedPoints]) -> WeightedPoints:
            if values.get("name") != name or len(parts) != 1:
                raise StoreError(f"{where}: holds another node; restore the tree from a copy")
            return parts[0]

        try:
            return persistence.state_from(self._read_group(name), where, only_part)
        except StoreError as error:
            if self.place.newest() == self.version:
                raise
            msg = f"{self.place.name}: the tree has changed since it was opened; open it again"
            raise StoreError(msg) from error

    def verify(self) -> None:
        """Read every node, and the version before this one, and check the chain.

        Raises
        ------
        StoreError
            Something is damaged, missing, or belongs to another tree.
        """
        for name in self.nodes:
            self.read_node(name)
        try:
            self._check_link()
        except StoreError:
            if self.place.newest() == self.version:  # else it may have been swept away
                raise

    def _check_link(self) -> None:
        """Check that the version before this one is there."""
        if not self.version:
            return
        place = self.place
        contents = place.read(self.version, MAIN, _MANIFEST)
        link = persistence.link_of(contents)
        if contents.digest != self.head.digest:
            where = place.where(self.version, MAIN)
            raise StoreError(f"{where}: replaced since it was opened; restore it from a copy")
        if link is not None and self.version > 1 and not self._is_first(link):
            before = place.read(self.version - 1, MAIN, _MANIFEST)
            if before.digest != link.get("previous"):
                where = place.where(self.version - 1, MAIN)
                raise StoreError(f"{where}: is not the one that was there; restore it from a copy")

    def check_current(self) -> None:
        """Check that no other process has changed the tree.

        Raises
        ------
        StoreError
            If it has.
        """
        self.place.check_current(self.head)
