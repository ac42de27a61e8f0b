"""The manifest of a stored tree: its leaves, its shape, and the objects that hold its nodes.

It is written in pages, one for each group of the shape, which names the pages of the groups below
it. So a change writes the pages above the leaves that changed. The page of the top describes the
version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from operator import attrgetter
from typing import Any

from daskcoreset.constructions.tree import persistence
from daskcoreset.constructions.tree.job import Settings, concatenate_parts
from daskcoreset.constructions.tree.leaves import Leaf, LeafTable, time_text
from daskcoreset.constructions.tree.persistence import RowSchema
from daskcoreset.constructions.tree.place import (
    Files,
    Place,
    Root,
    digest_of,
    object_name,
    page_files,
    version_of,
)
from daskcoreset.constructions.tree.shape import Part
from daskcoreset.constructions.tree.source import SourceRecord
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.validation import a_type
from daskcoreset.errors import InvalidInputError, InvalidTypeError, StoreError
from daskcoreset.storage.group import refuse_inconsistent

_NODE = "coreset-tree-node"

# The page of what seldom changes: the schema, and the source that is followed.
_FACTS = "facts"

# What a page has of a leaf. The version of its node comes after it.
_OF_LEAF = attrgetter(*(field.name for field in fields(Leaf)))


@dataclass(frozen=True)
class Manifest:
    """One version of a tree.

    Attributes
    ----------
    place : Place
    root : Root
        The root with this version. For a change that is not written yet, the one before.
    version : int
        0 before the first change.
    main : str
        Name of the object that describes the version.
    leaves : LeafTable
    nodes, pages : dict of str to str
        Names of the objects that hold a node, or the page of a group, by the name of the part.
    next_uid : int
        The next leaf's own number.
    schema : RowSchema or None
        None before the first leaf.
    source : SourceRecord or None
        The source that the tree follows, if it follows one.
    """

    place: Place
    root: Root
    version: int = 0
    main: str = ""
    leaves: LeafTable = field(default_factory=LeafTable)
    nodes: Mapping[str, str] = field(default_factory=dict)
    pages: Mapping[str, str] = field(default_factory=dict)
    next_uid: int = 0
    schema: RowSchema | None = None
    source: SourceRecord | None = None

    @property
    def top(self) -> Part | None:
        """The shape; None without leaves."""
        return self.leaves.shape

    @property
    def depth(self) -> int:
        """Nodes above a leaf at most."""
        return self.top.depth if self.top else 0

    @property
    def keep(self) -> int | None:
        """Versions that stay, this one among them, for readers and for `as_of`. None for all."""
        kept = 2 if self.source is None else self.source.keep
        return None if kept is None else max(kept, 2)

    @property
    def needed(self) -> set[str]:
        """Names of the objects that the version needs."""
        return {self.main, *self.nodes.values(), *self.pages.values()}

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

    # --- reading -------------------------------------------------------------------------

    @classmethod
    def of(cls, place: Place, root: Root) -> Manifest:
        """Read the newest version of a root.

        Raises
        ------
        StoreError
            If it is damaged, or a page is missing.
        """
        if not root.history:
            return cls(place, root, root.version)
        return cls._read(place, root, root.history[-1])

    @classmethod
    def _read(cls, place: Place, root: Root, main: str) -> Manifest:
        entries: list[Any] = []
        versions: list[int] = []
        pages: list[str] = []

        def collect(page: Any) -> None:
            names = [entry for entry in page["below"] if isinstance(entry, str)]
            below = dict(zip(names, place.read_pages(names), strict=True))
            for entry in page["below"]:
                if isinstance(entry, str):
                    collect(below[entry])
                    pages.append(entry)
                else:
                    entries.append(entry)
            versions.extend(page["nodes"])

        [values] = place.read_pages([main])
        with refuse_inconsistent(f"{place.where(main)}: not consistent"):
            collect(values)
            [facts] = place.read_pages([values["facts"]])
            source = facts["source"]
            manifest = cls(
                place,
                root,
                version_of(main),
                main,
                LeafTable(Leaf(*entry[:-1]) for entry in entries),
                next_uid=values["next_uid"],
                schema=RowSchema.from_json(facts["schema"]),
                source=None if source is None else SourceRecord(**source),
            )
            groups = [] if manifest.top is None else list(manifest.top.groups())
            parts = [part for group in groups for part in group.own_nodes()]
            made_in = {part.name: n for part, n in zip(parts, versions, strict=True)}
            made_in |= {leaf.node: x[-1] for leaf, x in zip(manifest.leaves, entries, strict=True)}
            names = [group.name for group in groups[:-1]]
            return replace(
                manifest,
                nodes=manifest._named({}, made_in),
                pages={_FACTS: values["facts"], **dict(zip(names, pages, strict=True))},
            )

    def _named(self, known: Mapping[str, str], made_in: Mapping[str, int]) -> dict[str, str]:
        """Return the names of the objects of all nodes, given the versions that made the new ones.

        A name identifies the rows that a node stands for, by their leaves, and their numbers.
        """
        names: dict[str, str] = {}
        for part in self.top or ():
            if part.name in known:
                names[part.name] = known[part.name]
                continue
            if part.below:
                digest = digest_of(*(names[below.name][13:] for below in part.below))
            else:
                digest = digest_of(self.root.digest, part.name, str(self.leaves[part.start].uid))
            names[part.name] = object_name(made_in[part.name], digest)
        return names

    def as_of(self, version: int) -> Manifest:
        """Return an earlier version that is kept.

        Raises
        ------
        InvalidInputError
            The version does not exist, or is not kept.
        """
        if not 0 < version <= self.version:
            raise InvalidInputError(
                f"version is {version}, and the tree has those from 1 to {self.version}",
                argument="version",
                remedy="pass one of them",
            )
        kept = {version_of(name): name for name in self.root.history}
        if version not in kept:
            raise InvalidInputError(
                f"version {version} is not kept: the oldest one is {min(kept)}",
                argument="version",
                remedy="pass a later one (keep=... of CoresetTree.follow sets the number "
                "of versions of a view; other trees keep one before the newest)",
            )
        # No change can be based on it.
        return self._read(self.place, replace(self.root, tokens=()), kept[version])

    def read_node(self, name: str) -> WeightedPoints:
        """Read a node. A missing one is an error: the tree has changed or is damaged.

        Raises
        ------
        StoreError
            Either is so.
        """
        key, place = self.nodes[name], self.place
        try:
            state, parts = persistence.read_state(place, key, _NODE)
        except StoreError as error:
            now = place.find()
            if now is None or self.main in now.history:
                raise
            raise StoreError(
                f"{place.name}: the tree has changed since it was opened", remedy="open it again"
            ) from error
        if state != {"name": key} or len(parts) != 1:
            raise StoreError(
                f"{place.where(key)}: holds the node of another tree",
                remedy="restore the tree from a copy",
            )
        return parts[0]

    def verify(self) -> None:
        """Read every node, and check its digest."""
        for name in self.nodes:
            self.read_node(name)

    # --- writing -------------------------------------------------------------------------

    def followed_by(
        self, settings: Settings, changed: Manifest, made: Mapping[str, WeightedPoints]
    ) -> tuple[Manifest, dict[str, Files]]:
        """Return the next version, and the objects that are new in it.

        Parameters
        ----------
        settings : Settings
        changed : Manifest
            This version, with the leaves as they are to be.
        made : mapping of str to WeightedPoints
            Leaves that are new, by the names of their nodes.
        """
        version = self.root.version + 1
        new = {name: points for name, points in made.items() if name not in self.nodes}
        for part in changed.top or ():
            if part.below and part.name not in self.nodes:
                names = [below.name for below in part.below]
                below = [new[x] if x in new else self.read_node(x) for x in names]
                # By the name, which stands for the leaves below: the same leaves, the same bits.
                new[part.name] = settings.reduce(concatenate_parts(below), int(part.name, 16))
        for points in new.values():
            if len(points) > settings.most_rows:
                raise InvalidInputError(
                    f"method returned {len(points):,} rows for a node, which may have "
                    f"{settings.most_rows:,}",
                    argument="method",
                    remedy="correct its `reduce`, or raise inner_size",
                )
        nodes = changed._named(self.nodes, dict.fromkeys(new, version))
        objects: dict[str, Files] = {}
        for name, points in new.items():
            state = {"name": nodes[name]}
            objects[nodes[name]] = persistence.state_files(_NODE, state, [points])
        after = replace(changed, version=version, nodes=nodes, pages={})
        return after._with_pages(self.pages, objects), objects  # noqa: SLF001 - its own class

    def _with_pages(self, before: Mapping[str, str], objects: dict[str, Files]) -> Manifest:
        """Return the version with the names of its pages, and add those that are new."""
        source, top = self.source, self.top
        pages: dict[str, str] = {}

        def described(part: Part) -> dict[str, Any]:
            below: list[Any] = []
            for member in part.members or (part,):
                leaf = self.leaves[member.start]
                made_in = version_of(self.nodes[member.name])
                of_leaf = [*_OF_LEAF(leaf), made_in]
                below.append(pages[member.name] if member.members else of_leaf)
            own = part.own_nodes() if part.members else ()
            return {"below": below, "nodes": [version_of(self.nodes[x.name]) for x in own]}

        def write(values: dict[str, Any], known: str = "") -> str:
            if self.place.has_page(known, values):
                return known
            files = page_files(values)
            name = object_name(self.version, digest_of(*files.values()))
            objects[name] = files
            self.place.keep_page(name, values)
            return name

        for group in () if top is None else top.groups():
            if group is not top:
                pages[group.name] = write(described(group), before.get(group.name, ""))
        record = None if source is None else asdict(source)
        schema = None if self.schema is None else self.schema.to_json()
        facts = json.loads(json.dumps({"schema": schema, "source": record}))
        pages[_FACTS] = write(facts, before.get(_FACTS, ""))
        values = {"below": [], "nodes": []} if top is None else described(top)
        values |= {"next_uid": self.next_uid, "facts": pages[_FACTS]}
        return replace(self, main=write(values), pages=pages)
