"""A stored tree at one version: its leaves, its shape, and where its nodes lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from daskcoreset.core.errors import InvalidInputError, InvalidTypeError, StoreError
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.storage import read_group, write_group
from daskcoreset.constructions.tree.schema import Form
from daskcoreset.constructions.tree.saved import inside, read_points, write_points
from daskcoreset.constructions.tree.shape import Part, shape_of
from daskcoreset.constructions.tree.table import Entry, Leaf, LeafTable
from daskcoreset.constructions.tree.versions import folder_of, newest

__all__ = ["SCHEMA_VERSION", "Manifest", "read_manifest", "read_node", "write_version"]

SCHEMA_VERSION = 1
"""Version of the layout of a stored tree; one higher whenever an older reader would fail."""

_KIND = "coreset-tree-manifest"
_NODE = "coreset-tree-node"


@dataclass(frozen=True)
class Manifest:
    """All that one version of a tree says; the nodes lie in this version and in earlier ones.

    Attributes
    ----------
    version : int
        0 before the first change.
    entries : tuple of Entry
        The leaves in their order.
    nodes : dict of str to tuple of (int, int)
        Version in which a node was written, and its number there, by its name.
    next_uid : int
        The next leaf's own number.
    form : Form or None
        None before the first leaf.
    """

    version: int = 0
    entries: tuple[Entry, ...] = ()
    nodes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    next_uid: int = 0
    form: Form | None = None

    @cached_property
    def table(self) -> LeafTable:
        """The leaves as their user sees them."""
        return LeafTable([entry.leaf for entry in self.entries])

    @cached_property
    def top(self) -> Part | None:
        """The shape; None without leaves."""
        if not self.entries:
            return None
        entries = self.entries
        return shape_of([entry.slot for entry in entries], [entry.node for entry in entries])

    @cached_property
    def needed(self) -> frozenset[tuple[int, str]]:
        """Members of versions that this one needs."""
        return frozenset(
            {(self.version, "manifest")}
            | {(version, f"node-{number}") for version, number in self.nodes.values()}
        )

    def next_entry(self, name: Any, time: str | None) -> Entry:
        """Return a leaf that stands after the others, without what only its rows tell.

        Raises
        ------
        InvalidInputError, InvalidTypeError
            If the name is no text, empty or taken.
        """
        if name is not None and not isinstance(name, str):
            raise InvalidTypeError(f"name is a {type(name).__name__}; pass text.")
        title: str = name if name is not None else time or f"leaf-{self.next_uid}"
        if not title:
            raise InvalidInputError("name is empty; pass text, or leave it out.")
        if title in self.table.names:
            raise InvalidInputError(
                f"there is a leaf {title!r} already; pass another name, or call replace."
            )
        slot = 1 + self.entries[-1].slot if self.entries else 0
        return Entry(Leaf(title, 0, time, 0.0), self.next_uid, slot)

    def write(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "entries": [entry.write() for entry in self.entries],
            "nodes": {name: list(place) for name, place in self.nodes.items()},
            "next_uid": self.next_uid,
            "form": None if self.form is None else self.form.write(),
        }

    @classmethod
    def read(cls, version: int, said: Mapping[str, Any]) -> Manifest:
        """Return what `write` wrote, after a look at whether it is consistent.

        Raises
        ------
        KeyError, TypeError, ValueError
            It is not.
        """
        found = cls(
            version,
            tuple(Entry.read(list(values)) for values in said["entries"]),
            {str(name): (int(v), int(k)) for name, (v, k) in said["nodes"].items()},
            int(said["next_uid"]),
            None if said["form"] is None else Form.read(dict(said["form"])),
        )
        for numbers in ([entry.slot for entry in found.entries], [e.uid for e in found.entries]):
            if sorted(set(numbers)) != numbers:
                raise ValueError("leaves are not in their order")
        if len(set(found.table.names)) < len(found.entries):
            raise ValueError("two leaves have the same name")
        if {part.name for part in found.top or ()} != set(found.nodes):
            raise ValueError("its nodes are not those above its leaves")
        return found


def write_version(path: Path, manifest: Manifest, made: Mapping[str, WeightedPoints]) -> None:
    """Write a manifest and the nodes that are new in it into a directory, which is made."""
    path.mkdir()
    for name, points in made.items():
        version, number = manifest.nodes[name]
        assert version == manifest.version  # noqa: S101 - what is made is new
        write_points(
            path / f"node-{number}",
            [points],
            {"name": name},
            kind=_NODE,
            schema_version=SCHEMA_VERSION,
        )
    kinds: Any = {"kind": _KIND, "schema_version": SCHEMA_VERSION}
    write_group(inside(path / "manifest"), {}, {}, {"state": manifest.write()}, **kinds)


def read_manifest(root: Path) -> Manifest:
    """Read the newest version, and see whether its nodes are there.

    Raises
    ------
    StoreError
        It is damaged, or a node is missing.
    """
    while True:
        version = newest(root)
        if not version:
            return Manifest()
        try:
            return _read(root, version)
        except StoreError:
            # Two changes may have been made in the meantime, and this version swept away.
            if newest(root) == version:
                raise


def _read(root: Path, version: int) -> Manifest:
    path = folder_of(root, version) / "manifest"
    _, attributes = read_group(path, kind=_KIND, schema_version=SCHEMA_VERSION)
    try:
        manifest = Manifest.read(version, attributes["state"])
    except (KeyError, TypeError, ValueError) as error:
        msg = f"{path}: not consistent ({error}); restore the tree from a copy"
        raise StoreError(msg) from error
    for made_in, member in sorted(manifest.needed):
        if not (folder_of(root, made_in) / member / "zarr.json").is_file():
            msg = f"{folder_of(root, made_in) / member}: a node of the tree is missing"
            raise StoreError(f"{msg}; restore the tree from a copy")
    return manifest


def read_node(root: Path, manifest: Manifest, name: str) -> WeightedPoints:
    """Read a node, or say that the tree has changed or is damaged.

    Raises
    ------
    StoreError
        Either is so.
    """
    version, number = manifest.nodes[name]
    path = folder_of(root, version) / f"node-{number}"
    try:
        parts, said = read_points(path, kind=_NODE, schema_version=SCHEMA_VERSION)
        if said.get("name") != name or len(parts) != 1:
            msg = f"{path}: holds another node; restore the tree from a copy"
            raise StoreError(msg)  # noqa: TRY301 - unless the tree has changed, as below
    except StoreError as error:
        if newest(root) != manifest.version:
            msg = f"{root.parent}: the tree has changed since it was opened; open it again"
            raise StoreError(msg) from error
        raise
    return parts[0]
