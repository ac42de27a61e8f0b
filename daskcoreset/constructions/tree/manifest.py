"""The manifest of a stored tree: its leaves, its shape, and where its nodes lie."""

from __future__ import annotations

import datetime as dt
import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from daskcoreset.constructions.tree.persistence import (
    folder_of,
    inside,
    newest,
    read_points,
    write_points,
)
from daskcoreset.constructions.tree.schema import RowSchema
from daskcoreset.constructions.tree.shape import Part, shape_of
from daskcoreset.core.errors import (
    InvalidInputError,
    InvalidTypeError,
    MissingDependencyError,
    StoreError,
)
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.storage import read_group, write_group
from daskcoreset.core.tables import html_table, text_table

if TYPE_CHECKING:
    import pandas as pd

    from daskcoreset.core.typing import IndexArray

ROW_BITS = 40

"""Bits of a stored row number that count rows of the leaf; the rest say which leaf."""


@dataclass(frozen=True)
class Leaf:
    """A row of the table of leaves.

    Attributes
    ----------
    name : str
    rows : int
        Rows of its data, those left out included.
    time : str or None
        As given to `CoresetTree.append`; ISO 8601 where a date or time was given.
    weight : float
        Total weight of its data.
    n_dropped : int
        Rows with NaN or infinity that were left out.
    """

    name: str
    rows: int
    time: str | None
    weight: float
    n_dropped: int = 0


@dataclass(frozen=True)
class StoredLeaf:
    """A leaf as the tree keeps it.

    Attributes
    ----------
    leaf : Leaf
    uid : int
        Its own number: leaves are counted as they are appended, and keep it when replaced.
    slot : int
        Its place in the shape.
    revision : int
        How often it was replaced.
    """

    leaf: Leaf
    uid: int
    slot: int
    revision: int = 0

    @property
    def node(self) -> str:
        """Name of its node."""
        return f"leaf-{self.uid}-{self.revision}"

    def write(self) -> list[Any]:
        """Return plain JSON values."""
        return [*asdict(self.leaf).values(), self.uid, self.slot, self.revision]

    @classmethod
    def read(cls, values: list[Any]) -> StoredLeaf:
        """Return what `write` wrote."""
        *leaf, uid, slot, revision = values
        return cls(Leaf(*leaf), int(uid), int(slot), int(revision))


class LeafTable(Sequence[Leaf]):
    """The leaves of a tree, in their order: a list that shows itself as a table.

    Examples
    --------
    >>> table = LeafTable([Leaf("monday", 10, None, 10.0), Leaf("tuesday", 5, None, 5.0)])
    >>> table.names, table["tuesday"].rows, len(table)
    (['monday', 'tuesday'], 5, 2)
    >>> print(table)
    name     rows  time  weight
    monday     10  -         10
    tuesday     5  -          5
    """

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        self._leaves = tuple(leaves)
        self._places = {leaf.name: place for place, leaf in enumerate(self._leaves)}

    @overload
    def __getitem__(self, index: int | str) -> Leaf: ...

    @overload
    def __getitem__(self, index: slice) -> LeafTable: ...

    def __getitem__(self, index: int | str | slice) -> Leaf | LeafTable:
        if isinstance(index, slice):
            return LeafTable(self._leaves[index])
        return self._leaves[self.place(index) if isinstance(index, str) else index]

    def __len__(self) -> int:
        return len(self._leaves)

    def __iter__(self) -> Iterator[Leaf]:
        return iter(self._leaves)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LeafTable) and self._leaves == other._leaves

    def __hash__(self) -> int:
        return hash(self._leaves)

    def __repr__(self) -> str:
        rows = [(x.name, f"{x.rows}", x.time or "-", f"{x.weight:.6g}") for x in self._leaves]
        return "\n".join(text_table([_HEADS, *rows], left=(0, 2)))

    def _repr_html_(self) -> str:
        rows = [(x.name, f"{x.rows:,}", x.time or "", f"{x.weight:.6g}") for x in self._leaves]
        return html_table(rows, _HEADS)

    @property
    def names(self) -> list[str]:
        """Names of the leaves."""
        return [leaf.name for leaf in self._leaves]

    @property
    def offsets(self) -> list[int]:
        """Number of the first row of every leaf, counted over all leaves before it."""
        return list(accumulate((leaf.rows for leaf in self._leaves), initial=0))[:-1]

    def place(self, name: str) -> int:
        """Return the place of a leaf, or say which names there are.

        Raises
        ------
        InvalidInputError
            If there is none of this name.
        """
        if name not in self._places:
            known = ", ".join(map(repr, self.names[-5:])) or "none"
            raise InvalidInputError(
                f"there is no leaf {name!r}; pass one of those in tree.leaves, such as {known}."
            )
        return self._places[name]

    def to_dataframe(self) -> pd.DataFrame:
        """Return the table as a DataFrame.

        Raises
        ------
        MissingDependencyError
            pandas is not installed.
        """
        try:
            pandas = importlib.import_module("pandas")
        except ImportError as error:
            msg = 'pandas is not installed; pip install "daskcoreset[dataframe]" brings it'
            raise MissingDependencyError(msg) from error
        columns = list(Leaf.__dataclass_fields__)
        frame: pd.DataFrame = pandas.DataFrame(
            [asdict(leaf) for leaf in self._leaves], None, columns
        )
        return frame

    def locate(self, indices: IndexArray) -> tuple[list[str], IndexArray]:
        """Return the name of the leaf of every row number, and the row's number in it.

        Raises
        ------
        InvalidInputError, InvalidTypeError
            If a number is beyond the rows of all leaves, or is no row number.
        """
        numbers = np.asarray(indices)
        if numbers.ndim != 1 or (len(numbers) and numbers.dtype.kind not in "iu"):
            raise InvalidTypeError(
                f"indices is {type(indices).__name__} of dtype {numbers.dtype} and shape "
                f"{numbers.shape}; pass a vector of row numbers, such as coreset.indices."
            )
        numbers = numbers.astype(np.int64)
        total = sum(leaf.rows for leaf in self._leaves)
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < total:
            raise InvalidInputError(
                f"indices reach from {numbers.min()} to {numbers.max()}, and the leaves have "
                f"{total} rows; pass the indices of a coreset of this tree as it is now."
            )
        offsets = np.array(self.offsets, dtype=np.int64)
        places = np.searchsorted(offsets, numbers, side="right") - 1
        names = self.names
        return [names[place] for place in places.tolist()], numbers - offsets[places]


def select_leaves(table: LeafTable, leaves: Any) -> list[bool]:
    """Say of every leaf whether it is meant.

    Parameters
    ----------
    table : LeafTable
    leaves : str, sequence of str, slice of str, or None
        Names; a slice from one name to another, both included; None for all.

    Examples
    --------
    >>> table = LeafTable([Leaf(name, 1, None, 1.0) for name in "abcd"])
    >>> select_leaves(table, slice("b", "c")), select_leaves(table, ["a", "d"])
    ([False, True, True, False], [True, False, False, True])
    """
    if leaves is None:
        return [True] * len(table)
    if not isinstance(leaves, (str, slice)) and not hasattr(leaves, "__iter__"):
        raise InvalidTypeError(f"leaves is {leaves!r}; pass names, which are text.")
    if isinstance(leaves, slice):
        if leaves.step is not None:
            raise InvalidInputError(
                f"leaves is a slice with step {leaves.step!r}; pass a list of names."
            )
        start = 0 if leaves.start is None else table.place(leaves.start)
        stop = len(table) - 1 if leaves.stop is None else table.place(leaves.stop)
        if start > stop:
            raise InvalidInputError(
                f"leaves goes from {leaves.start!r} back to {leaves.stop!r}; swap them."
            )
        return [start <= place <= stop for place in range(len(table))]
    names = [leaves] if isinstance(leaves, str) else list(leaves)
    if not names:
        raise InvalidInputError("leaves is empty; pass at least one name, or leave it out.")
    if wrong := [name for name in names if not isinstance(name, str)]:
        raise InvalidTypeError(f"leaves holds {wrong[0]!r}; pass names, which are text.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInputError(f"leaves names {twice!r} twice; name every leaf once.")
    places = {table.place(name) for name in names}
    return [place in places for place in range(len(table))]


def time_text(time: Any) -> str | None:
    """Bring a time to text.

    Examples
    --------
    >>> time_text(dt.date(2026, 3, 1)), time_text(np.datetime64("2026-03-01T12"))
    ('2026-03-01', '2026-03-01T12')
    """
    if time is None or isinstance(time, str):
        return time
    if isinstance(time, dt.date):  # a datetime is one too
        return time.isoformat()
    if isinstance(time, (np.datetime64, int, float)) and not isinstance(time, bool):
        return str(time)
    raise InvalidTypeError(
        f"time is a {type(time).__name__}; pass text, a date, a datetime or a number."
    )


SCHEMA_VERSION = 1

"""Version of the layout of a stored tree; one higher whenever an older reader would fail."""

_HEADS = ("name", "rows", "time", "weight")

_KIND = "coreset-tree-manifest"

_NODE = "coreset-tree-node"


@dataclass(frozen=True)
class Manifest:
    """All that one version of a tree says; the nodes lie in this version and in earlier ones.

    Attributes
    ----------
    version : int
        0 before the first change.
    entries : tuple of StoredLeaf
        The leaves in their order.
    nodes : dict of str to tuple of (int, int)
        Version in which a node was written, and its number there, by its name.
    next_uid : int
        The next leaf's own number.
    form : RowSchema or None
        None before the first leaf.
    """

    version: int = 0
    entries: tuple[StoredLeaf, ...] = ()
    nodes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    next_uid: int = 0
    form: RowSchema | None = None

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

    def next_entry(self, name: Any, time: str | None) -> StoredLeaf:
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
        return StoredLeaf(Leaf(title, 0, time, 0.0), self.next_uid, slot)

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
            tuple(StoredLeaf.read(list(values)) for values in said["entries"]),
            {str(name): (int(v), int(k)) for name, (v, k) in said["nodes"].items()},
            int(said["next_uid"]),
            None if said["form"] is None else RowSchema.read(dict(said["form"])),
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
