"""The manifest of a stored tree: its leaves, and the objects that hold its nodes.

It is written in pages, one for each group of the shape. A page lists leaves, or names the pages of
the groups below it. So a change writes the pages above the leaves that changed. The page of the top
describes the version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from typing import Any, TypeAlias

from daskcoreset.constructions.tree import persistence
from daskcoreset.constructions.tree.job import Settings, concatenate_parts
from daskcoreset.constructions.tree.leaves import ROW_BITS, Leaf, LeafTable, time_text
from daskcoreset.constructions.tree.persistence import RowSchema
from daskcoreset.constructions.tree.place import (
    Files,
    Place,
    Root,
    object_name,
    page_files,
    version_of,
)
from daskcoreset.constructions.tree.shape import Part, groups
from daskcoreset.constructions.tree.source import SourceRecord
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.validation import shown
from daskcoreset.errors import InvalidInputError, StoreError
from daskcoreset.storage.locations import clear_errors

_NODE = "coreset-tree-node"

# What a page has of a leaf or of a page below it. First comes the version that made the node which
# joins it to those before it. Then come the values of the leaf and the version that made its node,
# or the name of the page.
_Entry: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class Manifest:
    """One version of a tree.

    Attributes
    ----------
    place : Place
    root : Root
        The root with this version. For a change that is not written yet, the one before.
    main : str
        Name of the object that describes the version.
    leaves : LeafTable
    nodes : dict of str to str
        Names of the objects that hold nodes, by the names of the nodes.
    pages : dict of tuple to str
        Names of the objects that hold pages, by what they list. One holds the schema and the
        source, as text.
    n_added : int
        Leaves that were ever appended.
    schema : RowSchema or None
        None before the first leaf.
    source : SourceRecord or None
        The source that the tree follows, if it follows one.
    """

    place: Place
    root: Root
    main: str = ""
    leaves: LeafTable = field(default_factory=LeafTable)
    nodes: Mapping[str, str] = field(default_factory=dict)
    pages: Mapping[Any, str] = field(default_factory=dict)
    n_added: int = 0
    schema: RowSchema | None = None
    source: SourceRecord | None = None

    @property
    def version(self) -> int:
        """Number of changes."""
        return version_of(self.main) if self.main else self.root.version

    @property
    def depth(self) -> int:
        """Nodes above a leaf at most."""
        return self.leaves.shape.depth if self.leaves.shape else 0

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
        InvalidInputError
            If the name is not text, empty or taken, or the time cannot be compared with others.
        """
        time = time_text(time, self.leaves)
        title: Any = name if name is not None else time or f"leaf-{self.n_added}"
        if not isinstance(title, str) or not title:
            raise InvalidInputError(
                f"name is {shown(name)}", argument="name", remedy="pass text, or leave it out"
            )
        if title in self.leaves.names:
            raise InvalidInputError(
                f"there is a leaf {title!r} already", remedy="pass another name, or call replace"
            )
        return Leaf(title, 0, time, 0.0)

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
            return cls(place, root)
        return cls._read(place, root, root.history[-1])

    @classmethod
    def _read(cls, place: Place, root: Root, main: str) -> Manifest:
        [values] = place.read_pages([main])
        with clear_errors(place.where(main), "read"):
            entries = [*map(tuple, values["leaves"])]
            first = [entry[1] for entry in entries if len(entry) == 2]
            text, *_ = place.read_pages([values["facts"], *first])  # in one round
            pages: dict[Any, str] = {text: values["facts"]}
            facts = json.loads(text)
            while names := [entry[1] for entry in entries if len(entry) == 2]:  # a level at a time
                found = [tuple(map(tuple, page)) for page in place.read_pages(names)]
                pages |= zip(found, names, strict=True)
                below = dict(zip(names, found, strict=True))
                entries = [*chain.from_iterable(_expanded(entry, below) for entry in entries)]
            leaves = LeafTable(Leaf(*entry[1:-1]) for entry in entries)
            versions = [version for entry in entries for version in (entry[0], entry[-1])]
            parts = zip(leaves.shape or (), versions[1:], strict=True)
            schema, source = facts["schema"], facts["source"]
            return cls(
                place,
                root,
                main,
                leaves,
                {part.name: _object_of(root, part, version) for part, version in parts},
                pages,
                values["n_added"],
                schema and RowSchema(**schema),
                source and SourceRecord(**source),
            )

    def as_of(self, version: int) -> Manifest:
        """Return an earlier version that is kept.

        Raises
        ------
        InvalidInputError
            The version does not exist, or is not kept.
        """
        kept = {version_of(name): name for name in self.root.history}
        if version not in kept:
            raise InvalidInputError(
                f"version {version} is not kept: the newest one is {self.version}, and the oldest "
                f"one is {min(kept, default=0)}",
                argument="version",
                remedy="pass one between them (keep=... of CoresetTree.follow sets how many a view "
                "keeps, other trees keep two)",
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
            if not now.exists or self.main in now.history:
                raise
            raise StoreError(
                f"{place.name}: the tree has changed since it was opened", remedy="open it again"
            ) from error
        if state != {"name": key}:
            raise StoreError(
                f"{place.where(key)}: holds the node of another tree",
                remedy="restore the tree from a copy",
            )
        return parts[0]

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
        version, top = self.root.version + 1, changed.leaves.shape
        new = {name: points for name, points in made.items() if name not in self.nodes}
        for part in () if top is None else top.new(self.nodes):
            names = [below.name for below in part.below]
            below = [new[name] if name in new else self.read_node(name) for name in names]
            union = concatenate_parts(below, [0, part.below[0].n_leaves << ROW_BITS])
            # By the name, which stands for the leaves below: the same leaves, the same bits.
            new[part.name] = settings.reduce(union, int(part.name, 16))
        nodes = {
            part.name: self.nodes.get(part.name) or _object_of(self.root, part, version)
            for part in top or ()
        }
        objects = {
            nodes[name]: persistence.state_files(_NODE, {"name": nodes[name]}, [points])
            for name, points in new.items()
        }
        pages: dict[Any, str] = {}

        def write(values: Any) -> str:
            files = page_files(values)
            name = self.root.name_for(files)
            objects[name] = files
            return name

        def kept(values: Any) -> str:
            pages[values] = self.pages.get(values) or write(values)
            return pages[values]

        def paged(entries: Sequence[_Entry]) -> _Entry:
            if len(entries) == 1:
                return entries[0]
            # The page stays as it is where only the node that joins it to others is another one.
            return entries[0][0], kept(((0, *entries[0][1:]), *entries[1:]))

        versions = [0, *(version_of(name) for name in nodes.values())]
        leaves = zip(versions[::2], map(vars, changed.leaves), versions[1::2], strict=False)
        entries: list[_Entry] = [(joined, *leaf.values(), own) for joined, leaf, own in leaves]
        for slices in groups(changed.leaves.levels):
            if len(slices) > 1:
                entries = [paged(entries[members]) for members in slices]
        known = {"schema": changed.schema, "source": changed.source}
        facts = kept(json.dumps({name: one and asdict(one) for name, one in known.items()}))
        main = write({"leaves": entries, "n_added": changed.n_added, "facts": facts})
        return replace(changed, main=main, nodes=nodes, pages=pages), objects


def _object_of(root: Root, part: Part, version: int) -> str:
    """Return the name of the object of a node, by the version that made it and what it holds."""
    return object_name(version, root.digest, part.name)


def _expanded(entry: _Entry, pages: Mapping[str, Sequence[_Entry]]) -> Sequence[_Entry]:
    """Return what the page of an entry lists. That of a leaf is returned as it is."""
    if len(entry) > 2:
        return [entry]
    joined, name = entry
    first, *others = pages[name]
    return [(joined, *first[1:]), *others]
