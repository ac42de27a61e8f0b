"""`CoresetTree`: coresets of data that change, kept in a Zarr store."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress
from operator import not_
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from daskcoreset.constructions.draws import MergeReduce
from daskcoreset.constructions.sampling.job import DataFacts
from daskcoreset.constructions.tree import persistence
from daskcoreset.constructions.tree.follow import Refresh, refresh
from daskcoreset.constructions.tree.job import Settings
from daskcoreset.constructions.tree.leaves import (
    ROW_BITS,
    Leaf,
    LeafTable,
    read_leaf,
    time_text,
)
from daskcoreset.constructions.tree.manifest import Manifest
from daskcoreset.constructions.tree.place import Kept, Place, place_at, version_of
from daskcoreset.constructions.tree.reducer import Reducer
from daskcoreset.constructions.tree.shape import cover, digest_of, finer
from daskcoreset.constructions.tree.source import SourceView, check_same
from daskcoreset.constructions.tree.windows import TreeWindow, select
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.messages import about_argument, no_array
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.random import RandomState
from daskcoreset.core.tables import counted, short_seed
from daskcoreset.core.typing import IndexArray
from daskcoreset.core.validation import as_int, check_flag
from daskcoreset.errors import InvalidInputError, InvalidTypeError, OvertakenError
from daskcoreset.sensitivities import Sensitivity
from daskcoreset.storage.locations import Location

# Leaves by name, by position, or by date.
Window: TypeAlias = "str | Sequence[str] | slice | int | dt.date | None"

_LAYOUT = ("coreset-tree", "objects")


def _opened(place: Place, method: Any) -> tuple[Settings, Manifest]:
    manifest = place.newest(partial(Manifest.of, place))
    return persistence.settings_from(manifest.root.settings, place.name, method), manifest


class CoresetTree(Kept[Manifest]):
    r"""Coresets of data that arrive in named leaves, such as days, and may change later.

    `create` makes a tree, `open` opens one, and `follow` keeps one up to date with a source. Each
    leaf is read once and stored as a coreset. Nodes above merge and reduce the coresets of their
    leaves, up to one coreset of everything. A change of a leaf recomputes :math:`O(\log n)` nodes,
    and a window of neighboring leaves needs :math:`O(\log n)` nodes. The guide is
    :doc:`/guides/views`.

    A change is complete or not made, on a disk and in an object store. If another process has
    changed the tree, your object raises a `StoreError` at its next change. Open the tree again
    then. After an interrupt, such as Ctrl-C, `version` shows whether the change was made. The same
    leaves appended in the same order give the same result, whatever was deleted in between.

    Attributes
    ----------
    path : Path or str
        A path, or a URL without secrets.
    leaves : LeafTable
        Name, rows, time and weight of each leaf, in the order in which they were appended.
    version : int
        Number of changes.
    depth : int
        Largest number of nodes above a leaf.
    last_refresh : Refresh or None
        Result of the last refresh, for a tree that follows a source.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> path = Path(tempfile.mkdtemp()) / "days.zarr"
    >>> tree = CoresetTree.create(path, size=100, random_state=0)
    >>> rng = np.random.default_rng(0)
    >>> for day in range(1, 4):
    ...     leaf = tree.append(rng.normal(day, 1.0, size=(1000, 3)), name=f"2026-03-0{day}")
    >>> tree.replace("2026-03-02", rng.normal(2, 1.0, size=(900, 3))).rows
    900
    >>> CoresetTree.open(path).leaves
    name        rows  time  weight
    2026-03-01  1000  -       1000
    2026-03-02   900  -        900
    2026-03-03  1000  -       1000
    >>> tree.coreset(leaves=slice("2026-03-01", "2026-03-02"))
    Coreset(lightweight: 100 of 1,900 rows, 3 features, no labels, seed 0)

    References
    ----------
    Tukan, Baykal, Feldman and Rus (2020), Algorithm 2, on a tree that is kept.
    """

    last_refresh: Refresh | None = None

    _view: SourceView | None = None
    # What versions need that are kept, by the names of the objects that describe them.
    _used: Mapping[str, set[str]] = {}

    def __init__(self, settings: Any, manifest: Manifest | None = None) -> None:
        if manifest is None:
            raise InvalidTypeError(
                "CoresetTree is called with a path",
                remedy="call CoresetTree.create(path), CoresetTree.open(path) or "
                "CoresetTree.follow(source, path)",
            )
        super().__init__(settings, manifest)

    @classmethod
    @about_argument("path")
    def create(
        cls,
        path: Location,
        *,
        method: str | Sensitivity[Any] | Reducer | None = None,
        size: int | None = None,
        n_clusters: int | None = None,
        random_state: RandomState = None,
        on_invalid: Literal["raise", "drop"] = "raise",
        draw: MergeReduce = MergeReduce(),
        storage_options: Mapping[str, Any] | None = None,
    ) -> CoresetTree:
        """Create an empty tree.

        Parameters
        ----------
        path : path, URL or zarr.storage.ObjectStore
            A folder that does not exist yet, on a local disk or in an object store:
            ``s3://bucket/folder``, ``gs://...`` or ``az://...``.
        method : str, Sensitivity or Reducer, optional
            As in `daskcoreset.build`. Default: "kmeans" if `n_clusters` is given, else
            "lightweight".
        size : int, optional
            Rows of a coreset. Default: 1000.
        n_clusters : int, optional
            Number of clusters of the models that you will fit.
        random_state : int, Generator, RandomState or None, default=None
            Seed. With an int, the same leaves in the same order give the same result.
        on_invalid : {"raise", "drop"}, default="raise"
            Raise an error for the first row with NaN or infinity, or drop and count such rows.
        draw : MergeReduce, default=MergeReduce()
            How nodes are drawn, and the rows that they keep.
        storage_options : mapping, optional
            Keys, endpoint and region of a URL, by the names of obstore or of fsspec, such as
            ``{"key": ..., "secret": ..., "endpoint_url": ...}``. Default: from the environment.
            They are never stored.

        Returns
        -------
        CoresetTree

        Raises
        ------
        StoreError
            If something is at `path`, or the store is out of reach or has no conditional writes.
        InvalidInputError, InvalidTypeError
            If an argument cannot be used.

        Examples
        --------
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "tree"
        >>> len(CoresetTree.create(path, size=100, random_state=0).leaves)
        0
        """
        settings = Settings.of(method, size, n_clusters, random_state, on_invalid, draw)
        place = place_at("path", path, *_LAYOUT, storage_options)
        remedy = "CoresetTree.open opens a tree that is there, or choose another path"
        draft = place.draft(persistence.settings_values(settings), remedy)
        root = place.commit(draft, draft.followed_by(None, None), {})
        return cls(settings, Manifest(place, root))

    @classmethod
    @about_argument("path")
    def open(
        cls,
        path: Location,
        method: Any = None,
        *,
        storage_options: Mapping[str, Any] | None = None,
    ) -> CoresetTree:
        """Open a tree.

        The table of leaves is read and checked. A node is checked when it is read. `verify` checks
        all of them.

        Parameters
        ----------
        path : path, URL or zarr.storage.ObjectStore
            As in `create`. A tree at an ``https://`` URL is read-only.
        method : str, Sensitivity or Reducer, optional
            The method of the tree. Pass it if it is a method or reducer of your own, or has
            parameters that JSON cannot hold.
        storage_options : mapping, optional
            As in `create`.

        Returns
        -------
        CoresetTree

        Raises
        ------
        StoreError
            If nothing is at `path`, or it is damaged or of another version.
        InvalidInputError
            If `method` is needed or differs.
        """
        return cls(*_opened(place_at("path", path, *_LAYOUT, storage_options), method))

    __array__ = no_array("a CoresetTree", "call coreset = tree.coreset() and ")

    def __repr__(self) -> str:
        settings, manifest = self._settings, self._last
        leaves = counted(len(manifest.leaves), "leaf", "leaves")
        return (
            f"{type(self).__name__}({settings.method.name}: {leaves}, "
            f"size {settings.size:,}, seed {short_seed(settings.seed)}, version {manifest.version})"
        )

    def __len__(self) -> int:
        return len(self.leaves)

    def __contains__(self, name: object) -> bool:
        return name in self.leaves.names

    @property
    def path(self) -> Path | str:
        """A path, or a URL without secrets."""
        return self._last.place.path

    @property
    def leaves(self) -> LeafTable:
        """The leaves, in the order in which they were appended."""
        return self._now.leaves

    @property
    def version(self) -> int:
        """Number of changes."""
        return self._now.version

    @property
    def depth(self) -> int:
        """Largest number of nodes above a leaf."""
        return self._now.depth

    # --- sources that are followed -------------------------------------------------------

    @classmethod
    @about_argument("path")
    def follow(
        cls,
        source: Any,
        path: Location,
        *,
        y: str | None = None,
        sample_weight: str | None = None,
        method: str | Sensitivity[Any] | Reducer | None = None,
        size: int | None = None,
        n_clusters: int | None = None,
        random_state: RandomState = None,
        on_invalid: Literal["raise", "drop"] = "raise",
        draw: MergeReduce = MergeReduce(),
        keep: int | None = 10,
        storage_options: Mapping[str, Any] | None = None,
    ) -> CoresetTree:
        """Create or open a view: a tree that follows a source that changes. Bring it up to date.

        A view has one leaf per chunk of a Zarr array along its rows, or per file. `refresh` reads
        the chunks and files that are new or changed. The result is identical to a view made from
        the source today. The guide is :doc:`/guides/views`.

        Parameters
        ----------
        source : path, URL, glob, list of paths, Zarr array or group, repository, callable, or Rows
            A Zarr array, a folder of Parquet files, a glob, a list of files, or the branch "main"
            of an Icechunk repository. A callable returns one of these, and is called at each
            refresh. Use `open_rows` for columns, unit length, and options of a URL.
        path : path, URL or zarr.storage.ObjectStore
            The place of the view, outside of the source. It is created with the first leaf.
        y, sample_weight : str, optional
            Names of columns, or of arrays of the group.
        method, size, n_clusters, random_state, on_invalid, draw, storage_options
            As in `create`. An existing view needs the same values. None takes the values of the
            view.
        keep : int or None, default=10
            Number of versions that `as_of` can return, at least two. None keeps all.

        Returns
        -------
        CoresetTree
            Up to date. `last_refresh` lists what was read.

        Raises
        ------
        InvalidInputError, InvalidTypeError
            If an argument cannot be used, the view follows another source, parts of the source
            differ in width or dtype, or the source has shrunk (see `refresh`). The view does not
            change.
        StoreError
            If the source cannot be read, the view is damaged or out of reach, or other processes
            keep refreshing it.

        Warns
        -----
        CoresetWarning
            If a glob matches no file.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> folder = Path(tempfile.mkdtemp())
        >>> rng = np.random.default_rng(0)
        >>> np.save(folder / "2026-03-01.npy", rng.normal(size=(1000, 3)))
        >>> view = CoresetTree.follow(f"{folder}/*.npy", folder / "view", size=100, random_state=0)
        >>> np.save(folder / "2026-03-02.npy", rng.normal(size=(1000, 3)))
        >>> view.refresh()
        Refresh(version 2: 1 of 2 leaves read, 1,000 rows, 24,000 bytes; 1 added, ...)
        """
        view = SourceView.of(source, y, sample_weight, keep)
        place = place_at("path", path, *_LAYOUT, storage_options)
        ask = partial(Settings.of, method, size, n_clusters, random_state, on_invalid, draw)
        tree = cls._followed(place, view, method, ask)
        try:
            tree.refresh()
        except OvertakenError:  # what the other one has read is there now
            tree = cls._followed(place, view, method, ask)
            tree.refresh()
        return tree

    @classmethod
    def _followed(
        cls, place: Place, view: SourceView, method: Any, ask: Callable[..., Settings]
    ) -> CoresetTree:
        """Open a view, or begin one, which its first leaf makes."""
        if not place.find().exists:
            settings = ask()
            view.refuse_inside(place.path, place.name)
            remedy = "CoresetTree.follow opens a view that is there, or choose another path"
            draft = place.draft(persistence.settings_values(settings), remedy)
            manifest = Manifest(place, draft)
        else:
            settings, manifest = _opened(place, method)
        check_same(place.name, settings.values, ask(known=settings).values)
        tree = cls(settings, manifest)
        tree._view = view
        return tree

    def refresh(
        self,
        source: Any = None,
        *,
        allow_shrink: bool = False,
        progress: bool | None = False,
    ) -> Refresh:
        """Bring a view up to date with its source by reading what is new or changed.

        All changes become one version of the tree. If the process is killed, the view is as before
        or up to date. A refresh of very many leaves may be left partly done, and the next one
        continues it.

        Parameters
        ----------
        source : object, optional
            The source, opened again, such as a longer list of files. A view that `open` opened
            needs it. Default: the source that was passed to `follow`.
        allow_shrink : bool, default=False
            Whether a Zarr array may end before a leaf of the view, and whether all files may be
            gone. If single files are gone, their leaves are deleted in any case.
        progress : bool or None, default=False
            As in `daskcoreset.build`.

        Returns
        -------
        Refresh
            Leaves that were read, added, changed and removed.

        Raises
        ------
        InvalidInputError
            If the tree follows no source, the source is another one or has shrunk, or a part of it
            has another width or dtype. The view does not change.
        StoreError
            If the source cannot be read, or another process has changed the view.
        """
        check_flag("allow_shrink", allow_shrink)
        manifest, view = self._now, self._view
        if source is not None and manifest.source is not None:
            view = SourceView.again(source, manifest.source, view)
        if view is None:
            raise InvalidInputError(
                "the tree follows no source, or was opened without it",
                remedy="open the view with CoresetTree.follow(source, path)",
            )
        manifest.place.check(manifest.root)
        done = refresh(
            self._settings,
            manifest,
            view,
            self._change,
            allow_shrink=allow_shrink,
            progress=progress,
        )
        self._view, self.last_refresh = view, done
        return done

    def as_of(self, version: int) -> CoresetTree:
        """Return a read-only tree of an earlier version.

        Parameters
        ----------
        version : int
            A tree keeps one version before the newest. A view keeps the number passed as `keep` to
            `follow`.

        Returns
        -------
        CoresetTree

        Raises
        ------
        InvalidInputError
            If the version does not exist or was not kept.
        StoreError
            If it is damaged.
        """
        version = as_int("version", version, remedy="pass one of those that were made")
        return type(self)(self._settings, self._now.as_of(version))

    def __getitem__(self, window: Window) -> TreeWindow:
        """Return a window of leaves, which estimators take in place of X."""
        leaves = self.leaves
        return TreeWindow(self, compress(leaves.names, select(leaves, window)))

    def __iter__(self) -> Iterator[str]:
        """Go through the names of the leaves, not through windows of one."""
        return iter(self.leaves.names)

    # --- changes -------------------------------------------------------------------------

    def append(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        name: str | None = None,
        time: Any = None,
        on_invalid: Literal["raise", "drop"] | None = None,
        progress: bool | None = False,
    ) -> Leaf:
        """Add a leaf after the others.

        Parameters
        ----------
        X, y, sample_weight
            As in `daskcoreset.build`, in memory or out of core. They are read once.
        name : str, optional
            Name of the leaf. Default: `time`, or "leaf-" and a number.
        time : str, date, datetime or number, optional
            Time of the leaf, for windows by date. Text is a number, or a date or time of ISO 8601.
            The times of a tree are all dates or all numbers.
        on_invalid : {"raise", "drop"}, optional
            How to treat rows with NaN or infinity. Default: as the tree was created. Dropped rows
            are counted in the table, and in the provenance of coresets.
        progress : bool or None, default=False
            As in `daskcoreset.build`.

        Returns
        -------
        Leaf
            Its line in the table of leaves.

        Raises
        ------
        InvalidInputError, InvalidTypeError
            If the rows cannot be used or do not fit the other leaves, the name exists already, or
            the time has a wrong kind. The tree does not change.
        StoreError
            If another process has changed the tree, or the disk refused.
        """
        leaf = self._now.next_leaf(name, time)
        return self._put(leaf, (X, y, sample_weight), progress, on_invalid)

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
    ) -> CoresetTree:
        """Add a batch as a leaf with a numbered name, as `CoresetStream.partial_fit` does.

        Parameters
        ----------
        X, y, sample_weight
            As in `append`.

        Returns
        -------
        CoresetTree
            The tree itself.

        Raises
        ------
        InvalidInputError, InvalidTypeError, StoreError
            As in `append`.
        """
        self.append(X, y, sample_weight)
        return self

    def replace(
        self,
        leaf: str,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        time: Any = None,
        on_invalid: Literal["raise", "drop"] | None = None,
        progress: bool | None = False,
    ) -> Leaf:
        """Replace the rows of a leaf.

        Parameters
        ----------
        leaf : str
            Name of the leaf. It stays the same.
        X, y, sample_weight, on_invalid, progress
            As in `append`.
        time : str, date, datetime or number, optional
            The new time. Default: the old one.

        Returns
        -------
        Leaf

        Raises
        ------
        InvalidInputError, InvalidTypeError, StoreError
            As in `append`. Also if the leaf does not exist.
        """
        old = self.leaves[self.leaves.position(leaf)]
        others = (other for other in self.leaves if other is not old)
        new = old if time is None else replace(old, time=time_text(time, others))
        return self._put(new, (X, y, sample_weight), progress, on_invalid)

    def _put(
        self,
        leaf: Leaf,
        data: tuple[Any, Any, Any],
        progress: bool | None,
        on_invalid: Literal["raise", "drop"] | None,
    ) -> Leaf:
        """Read the rows of a leaf once, and put it where it belongs."""
        manifest, settings = self._now, self._settings
        if on_invalid is not None:
            settings = replace(settings, on_invalid=on_invalid)
        self._refuse_followed()
        manifest.place.check(manifest.root)  # before the data are read
        read = read_leaf(leaf, data, settings, manifest.schema, progress)
        leaf, points, schema = read.fit(manifest.schema)
        leaves = LeafTable(({old.name: old for old in self.leaves} | {leaf.name: leaf}).values())
        n_added = manifest.n_added + (leaf.name not in self.leaves.names)
        changed = replace(manifest, leaves=leaves, n_added=n_added, schema=schema)
        self._change(changed, {leaf.node: points})
        return leaf

    def _refuse_followed(self) -> None:
        if self._now.source is not None:
            raise InvalidInputError(
                f"the tree follows {self._now.source.name!r}, so its leaves "
                "cannot be changed directly",
                remedy="change the source and call refresh, or create another tree",
            )

    def _change(self, changed: Manifest, made: Mapping[str, WeightedPoints]) -> Manifest:
        after, objects = self._now.followed_by(self._settings, changed, made)
        self._used = {**self._used, after.main: after.needed}
        self._commit(after, after.main, after.keep, objects)
        return self._now

    def _needed(self) -> set[str]:
        manifest = self._now
        self._used = {
            name: self._used.get(name) or manifest.as_of(version_of(name)).needed
            for name in manifest.root.history
        }
        return set().union(*self._used.values())

    def delete(self, leaf: Window) -> None:
        """Delete one or more leaves in one change.

        Parameters
        ----------
        leaf : str, sequence of str, slice, int or date
            As `leaves` of `coreset`.

        Raises
        ------
        InvalidInputError, InvalidTypeError
            If a leaf does not exist, or the selection is empty.
        StoreError
            If another process has changed the tree, or the disk refused.
        """
        if leaf is None:
            raise InvalidTypeError(
                "leaf is None",
                argument="leaf",
                remedy="pass the names of leaves, or slice(None) for all",
            )
        self._refuse_followed()
        manifest = self._now
        deleted = select(manifest.leaves, leaf)
        remaining = LeafTable(compress(manifest.leaves, map(not_, deleted)))
        self._change(replace(manifest, leaves=remaining), {})

    # --- questions -----------------------------------------------------------------------

    def coreset(self, leaves: Window = None, *, normalize: bool | None = None) -> Coreset:
        """Return a coreset of all leaves or of some.

        Parameters
        ----------
        leaves : str, sequence of str, slice, int, date, optional
            Names, or a slice of names in the order of the table, both ends included. A date, or a
            slice of dates, both ends included, if leaves have times. A position, or a slice of
            positions as in Python, such as ``slice(-7, None)``. Default: all.
        normalize : bool, optional
            Whether to scale the weights to the total weight of the data. Default: as in `draw`.

        Returns
        -------
        Coreset
            Its row numbers count through all leaves of the table. `locate` converts them to a leaf
            and a row of that leaf. ``provenance["leaves"]`` lists name, offset and rows of the
            selected leaves.

        Raises
        ------
        InvalidInputError
            If the tree is empty, or the selection is.
        StoreError
            If the tree has changed since it was opened and nodes are gone, or if it is damaged.
        """
        settings, manifest = self._settings, self._now
        table, flags = manifest.leaves, select(manifest.leaves, leaves)
        assert table.shape is not None  # noqa: S101 - it has leaves
        assert manifest.schema is not None  # noqa: S101 - it has leaves
        chosen = [*compress(zip(table, table.offsets, strict=True), flags)]
        if not any(leaf.rows for leaf, _ in chosen):
            raise InvalidInputError(
                "leaves has no rows", argument="leaves", remedy="pass a window with rows"
            )
        # Nodes near the root have few or many leaves.
        parts = finer(cover(table.shape, flags))
        facts = {
            "strategy": "store",
            "version": manifest.version,
            "levels": manifest.depth,
            "leaves": [{"name": x.name, "offset": start, "rows": x.rows} for x, start in chosen],
        }
        n_dropped = sum(leaf.n_dropped for leaf, _ in chosen)
        n = sum(leaf.rows for leaf, _ in chosen) - n_dropped
        weight = float(sum(leaf.weight for leaf, _ in chosen))
        place, schema = str(manifest.place.path), manifest.schema
        data = DataFacts(n, n_dropped, weight, place, schema.columns, schema.metric, schema.keys)
        nodes = [manifest.read_node(part.name).moved(start << ROW_BITS) for part, start in parts]
        # By the names of the parts, which stand for the leaves below them.
        address = int(digest_of(*(part.name for part, _ in parts)), 16)
        coreset = settings.coreset_of_parts(nodes, address, data, facts, normalize)
        return replace(coreset, indices=_count_rows(table, coreset.indices))

    def locate(self, indices: IndexArray) -> tuple[list[str], IndexArray]:
        """Return leaf and row number of rows of a coreset of this tree.

        Parameters
        ----------
        indices : ndarray of shape (m,), int64
            ``coreset.indices`` of a coreset of the tree in its present version. After a leaf was
            replaced or deleted, the rows of later leaves have other numbers.

        Returns
        -------
        names : list of str
            The leaf of each row.
        rows : ndarray of shape (m,), int64
            Its number in the data of that leaf.

        Raises
        ------
        InvalidInputError
            If a row does not exist.
        """
        return self.leaves.locate(indices)

    def verify(self) -> None:
        """Read all nodes, and check their digests.

        Raises
        ------
        StoreError
            If a node is damaged, missing or of another tree, with its name.
        """
        manifest = self._now
        for name in manifest.nodes:
            manifest.read_node(name)


def _count_rows(leaves: LeafTable, stored: IndexArray) -> IndexArray:
    """Turn row numbers as they are kept into those that count through all leaves."""
    starts: IndexArray = np.array(leaves.offsets)[stored >> ROW_BITS]
    return starts + (stored & ((1 << ROW_BITS) - 1))
