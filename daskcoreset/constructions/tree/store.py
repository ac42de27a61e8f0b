"""`CoresetTree`: coresets of data that change, kept in a Zarr store."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from daskcoreset.constructions.draws import MergeReduce
from daskcoreset.constructions.sampling.job import DataFacts
from daskcoreset.constructions.tree import persistence
from daskcoreset.constructions.tree.following import Plan, Refresh, Refreshing, SourceView
from daskcoreset.constructions.tree.job import Asked, Settings
from daskcoreset.constructions.tree.leaves import ROW_BITS, Leaf, LeafTable, read_leaf
from daskcoreset.constructions.tree.manifest import Manifest, Needed, write_version
from daskcoreset.constructions.tree.places import (
    Head,
    Kept,
    Layout,
    Members,
    OvertakenError,
    Place,
)
from daskcoreset.constructions.tree.reducer import Reducer
from daskcoreset.constructions.tree.remote import place_at
from daskcoreset.constructions.tree.shape import cover, digest_of, finer
from daskcoreset.constructions.tree.windows import TreeWindow, no_leaves
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.random import RandomState
from daskcoreset.core.tables import counted, short_seed
from daskcoreset.core.typing import IndexArray
from daskcoreset.core.validation import as_int, check_choice, check_flag
from daskcoreset.core.zarr_places import Location
from daskcoreset.execution.progress import count_reads
from daskcoreset.sensitivities import Sensitivity

# Leaves by name, by position, or by date.
Window: TypeAlias = "str | Sequence[str] | slice | int | dt.date | None"

# Times that a view is opened again if another process has brought it up to date meanwhile.
_N_TURNS = 3

_LAYOUT = Layout("coreset-tree", "versions")


class Standing(NamedTuple):
    """Where a tree stands; one value, so that no interrupt comes between its parts.

    Attributes
    ----------
    manifest : Manifest
    view : SourceView or None
        The source that it was opened to follow.
    """

    manifest: Manifest
    view: SourceView | None = None


def _opened(place: Place, method: Any) -> tuple[Settings, Manifest]:
    contents = place.settings()
    settings = persistence.settings_from(contents, place.name, method)
    return settings, Manifest.newest(place, contents.digest)


class CoresetTree:
    r"""Coresets of data that come in named leaves, such as days, and change.

    Every leaf is read once and kept as a coreset; coresets of neighbours are united and
    reduced, up to one of everything. Appending, replacing or deleting a leaf makes only the
    :math:`O(\log n)` nodes above it anew, and a window of neighbouring leaves is answered from
    :math:`O(\log n)` nodes. Made by `create`, opened by `open`.

    Every change is one atomic step, on a disk as on an object store; an object that has not seen
    the change of another process cannot change the tree any more, and says so. After an interrupt,
    such as Ctrl-C, `version` says whether the change was made. The random numbers
    of a node are addressed by the leaves below it: the same leaves appended in the same order give
    the same bits, whatever was deleted in between.

    Attributes
    ----------
    path : Path or str
        Where it is: a path, or a URL without secrets.
    leaves : LeafTable
        Name, rows, time and weight of every leaf, in the order in which they were appended.
    version : int
        Number of changes made.
    depth : int
        Nodes above a leaf at most.
    last_refresh : Refresh or None
        What was read last, of a tree that follows a source.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> path = Path(tempfile.mkdtemp()) / "days.zarr"
    >>> tree = CoresetTree.create(path, size=100, random_state=0)
    >>> rng = np.random.default_rng(0)
    >>> for day in range(1, 6):
    ...     leaf = tree.append(rng.normal(day, 1.0, size=(1000, 3)), name=f"2026-03-0{day}")
    >>> tree.replace("2026-03-02", rng.normal(2, 1.0, size=(900, 3))).rows
    900
    >>> tree.delete("2026-03-04")
    >>> CoresetTree.open(path).leaves
    name        rows  time  weight
    2026-03-01  1000  -       1000
    2026-03-02   900  -        900
    2026-03-03  1000  -       1000
    2026-03-05  1000  -       1000
    >>> window = tree.coreset(leaves=slice("2026-03-02", "2026-03-03"))
    >>> window
    Coreset(lightweight: 100 of 1,900 rows, 3 features, no labels, seed 0)
    >>> names, rows = tree.locate(window.indices)
    >>> sorted(set(names))
    ['2026-03-02', '2026-03-03']

    References
    ----------
    Tukan, Baykal, Feldman and Rus (2020), Algorithm 2, on a tree that is kept.
    """

    last_refresh: Refresh | None = None

    def __init__(
        self, settings: Settings, manifest: Manifest, view: SourceView | None = None
    ) -> None:
        self._settings = settings
        self._kept = Kept(Standing(manifest, view))
        # What earlier versions need that are kept, as far as it was read.
        self._needed: Needed = {}

    @classmethod
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
        """Make an empty tree.

        Parameters
        ----------
        path : path, URL or zarr.storage.ObjectStore
            A folder that does not exist yet, on a local disk or of an object store:
            ``s3://bucket/folder``, ``gs://...`` or ``az://...``.
        method : str, Sensitivity or Reducer, optional
            As in `daskcoreset.build`, methods of several passes as well. Default: "kmeans" if
            `n_clusters` is given, else "lightweight".
        size : int, optional
            Rows of a coreset. Default: 1000.
        n_clusters : int, optional
            Clusters that the coresets are for.
        random_state : int, Generator, RandomState or None, default=None
            With an int, the same leaves in the same order give the same bits.
        on_invalid : {"raise", "drop"}, default="raise"
            How to treat rows with NaN or infinity.
        draw : MergeReduce, default=MergeReduce()
            How nodes are drawn, and how many rows they keep.
        storage_options : mapping, optional
            For a URL: keys, endpoint and region, by the names of obstore or of fsspec, such as
            ``{"key": ..., "secret": ..., "endpoint_url": ...}``. Default: what the environment
            says. Nothing of it is kept in the tree.

        Raises
        ------
        StoreError
            If something is there, or the store is out of reach or cannot write on a condition.
        InvalidInputError, InvalidTypeError
            When an argument cannot be used.
        """
        settings = Asked(method, size, n_clusters, random_state, on_invalid, draw).settings()
        place = place_at("path", path, _LAYOUT, storage_options)
        remedy = "CoresetTree.open opens a tree that is there, or choose another path"
        contents = persistence.settings_contents(settings, _LAYOUT.kind)
        return cls(settings, Manifest(place, place.create(contents, remedy)))

    @classmethod
    def open(
        cls,
        path: Location,
        method: Any = None,
        *,
        storage_options: Mapping[str, Any] | None = None,
    ) -> CoresetTree:
        """Open a tree as it is now.

        Kind, version, digest and structure of the newest manifest are checked, and that its
        nodes are there; the digest of a node is checked when it is read, and those of all by
        `verify`.

        Parameters
        ----------
        path : path, URL or zarr.storage.ObjectStore
            As in `create`; a tree at an ``https://`` URL can be read, and not changed.
        method : str, Sensitivity or Reducer, optional
            What the tree was made with; needed for a reducer of one's own, and for constructions
            with parameters that are no plain values.
        storage_options : mapping, optional
            As in `create`.

        Raises
        ------
        StoreError
            If there is none, or it is damaged or of another version.
        InvalidInputError
            If `method` is needed or is another one.
        """
        return cls(*_opened(place_at("path", path, _LAYOUT, storage_options), method))

    def __repr__(self) -> str:
        settings, manifest = self._settings, self._kept.last_known.manifest
        leaves = counted(len(manifest.leaves), "leaf", "leaves")
        return (
            f"{type(self).__name__}({settings.reducer.name}: {leaves}, "
            f"size {settings.size:,}, seed {short_seed(settings.seed)}, version {manifest.version})"
        )

    def _repr_html_(self) -> str:
        return self._kept.last_known.manifest.leaves.to_html(repr(self))

    def __len__(self) -> int:
        return len(self.leaves)

    def __bool__(self) -> bool:
        return True

    def __contains__(self, name: object) -> bool:
        return name in self.leaves.names

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_kept": copy(self._kept)}  # a copy goes on by itself

    @property
    def _manifest(self) -> Manifest:
        return self._kept.value.manifest

    @property
    def path(self) -> Path | str:
        """Where it is: a path, or a URL without secrets."""
        return self._kept.last_known.manifest.place.path

    @property
    def leaves(self) -> LeafTable:
        """The leaves, in the order in which they were appended."""
        return self._manifest.leaves

    @property
    def version(self) -> int:
        """Number of changes made."""
        return self._manifest.version

    @property
    def depth(self) -> int:
        """Nodes above a leaf at most."""
        return self._manifest.depth

    # --- sources that are followed -------------------------------------------------------

    @classmethod
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
        """Open the view of a source that changes, or make it, and bring it up to date.

        A view is a tree with a leaf for every chunk of a Zarr array along its rows, or for every
        file. `refresh` reads what is new or changed. The bits are those of a view that is made
        from the source as it is.

        Parameters
        ----------
        source : path, URL, glob, list of paths, Zarr array, group or store, Icechunk repository,
            function that returns one of these, or Rows
            A Zarr array, a folder of Parquet files, a glob, a list of files, or the branch "main"
            of a repository. A function is called whenever the source is looked at. Use
            `open_rows` for columns, unit length, and options of a URL.
        path : path, URL or zarr.storage.ObjectStore
            Of the view, outside of the source. It is made if nothing is there.
        y, sample_weight : str, optional
            Names of columns, or of arrays of the group.
        method, size, n_clusters, random_state, on_invalid, draw, storage_options
            As in `create`. An existing view needs the same values. None takes those of the view.
        keep : int or None, default=10
            Versions of the view that `as_of` can return; None keeps all.

        Returns
        -------
        CoresetTree
            Up to date. `last_refresh` says what was read for that.

        Raises
        ------
        InvalidInputError, InvalidTypeError
            If an argument cannot be used, the view follows another source, parts of the source
            differ in width or dtype, or it has shrunk (see `refresh`). The view is as it was.
        StoreError
            If the source does not read, the view is damaged or out of reach, or other processes
            bring it up to date again and again.

        Warns
        -----
        CoresetWarning
            If a glob matches no file, and the view is empty.

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
        asked = Asked(method, size, n_clusters, random_state, on_invalid, draw)
        place = place_at("path", path, _LAYOUT, storage_options)
        for turn in range(_N_TURNS):
            if place.is_free():
                view.refuse_among_data(place)
                tree = cls._begun(asked, place, view)
            else:
                tree = cls._reopened(asked, place, view, may_replace=not turn)
            try:
                tree.refresh()
                break
            except OvertakenError:  # what the other one has read is there now
                if turn + 1 == _N_TURNS:
                    raise
        if not len(tree):
            view.warn_of_no_match()
        return tree

    @classmethod
    def _begun(
        cls, asked: Asked, place: Place, view: SourceView, replaced: Head | None = None
    ) -> CoresetTree:
        """Return an empty view, which its first version makes."""
        settings = asked.settings()
        remedy = "CoresetTree.follow opens a view that is there, or choose another path"
        contents = persistence.settings_contents(settings, _LAYOUT.kind)
        head = place.begin(contents, remedy, overwrite=replaced is not None, replaced=replaced)
        return cls(settings, Manifest(place, head, head.version), view)

    @classmethod
    def _reopened(
        cls, asked: Asked, place: Place, view: SourceView, *, may_replace: bool
    ) -> CoresetTree:
        """Open a view that is there. One that never had a leaf takes other settings."""
        try:
            settings, manifest = _opened(place, asked.method)
            asked.check(settings, place.name)
        except InvalidInputError:
            manifest = Manifest.newest(place, place.settings().digest)
            if not may_replace or manifest.source is None or manifest.next_uid:
                raise
            return cls._begun(asked, place, view, manifest.head)
        return cls(settings, manifest, view)

    def refresh(
        self,
        source: Any = None,
        *,
        allow_shrink: bool = False,
        progress: bool | None = False,
    ) -> Refresh:
        """Bring a view up to date with its source: read only what is new or changed.

        What is seen of the source and the leaves change in one version of the tree: a refresh that
        is killed is as if it had not begun, or is done, or, where it was one of very many leaves,
        some of them are there and the next refresh goes on with the others.

        Parameters
        ----------
        source : object, optional
            The source, opened again, such as a longer list of files. A view that `open` opened
            needs it. Default: the one that was passed to `follow`.
        allow_shrink : bool, default=False
            Whether a Zarr array may end before a leaf of the view, and whether all files may be
            gone. Single files that are gone are deleted leaves.
        progress : bool or None, default=False
            As in `daskcoreset.build`.

        Returns
        -------
        Refresh
            What was read, and which leaves came, changed and went.

        Raises
        ------
        InvalidInputError
            If it is no view, the source is another one or has shrunk, or a part of it has another
            width or dtype. The view is as it was.
        StoreError
            If the source does not read, or another process has changed the view.
        """
        check_flag("allow_shrink", allow_shrink)
        manifest, view = self._kept.value
        if source is not None and view is not None:
            view = view.at(source)
        elif source is not None and manifest.source is not None:
            view = SourceView.again(source, manifest.source)
        if view is None:
            what = (
                "follows no source" if manifest.source is None else "was opened without its source"
            )
            raise InvalidInputError(
                f"the tree {what}; CoresetTree.follow(source, path) opens a view."
            )
        manifest.check_current()
        state, record = view.look(manifest)
        plan = Plan.of(manifest, state, record, allow_shrink=allow_shrink)
        if plan.is_done(manifest):
            done = Refresh(self.version, n_leaves=len(self.leaves))
        else:
            commit = partial(self._commit, view=view)
            work = Refreshing(self._settings, manifest, plan, commit)
            with count_reads(progress, len(plan.to_read), unit="leaf") as advance:
                done = work.run(advance)
        self._kept.value = self._kept.value._replace(view=view)
        self.last_refresh = done
        return done

    def as_of(self, version: int) -> CoresetTree:
        """Return the tree as it was at an earlier version that is kept; it can only be read.

        Parameters
        ----------
        version : int
            A tree keeps the version before the newest; a view as many as `follow` was told.

        Raises
        ------
        InvalidInputError
            If there is no such version, or it is not kept.
        StoreError
            If it is damaged.
        """
        version = as_int("version", version, remedy="pass one of those that were made")
        return type(self)(self._settings, self._manifest.as_of(version))

    def __getitem__(self, window: Window) -> TreeWindow:
        """Return a window of leaves, which estimators take in place of X."""
        flags = self.leaves.select(window)
        names = [leaf.name for leaf, flag in zip(self.leaves, flags, strict=True) if flag]
        if not names:
            raise no_leaves()
        return TreeWindow(self, names)

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
            As in `daskcoreset.build`, in memory or out of core; read once.
        name : str or None, default=None
            Name of the leaf; None takes `time`, if that is given, or "leaf-" and a number.
        time : str, date, datetime or number, optional
            Kept with it, as text, for windows by date. Text is a date or time of ISO 8601, a
            month, or a number; the times of a tree are all dates or all numbers.
        on_invalid : {"raise", "drop"} or None, default=None
            What becomes of rows with NaN or infinity in this leaf; None does as the tree was told
            when it was made. Rows left out are counted in the table, and in the provenance of
            coresets.
        progress : bool or None, default=False
            As in `daskcoreset.build`.

        Returns
        -------
        Leaf
            Its line in the table.

        Raises
        ------
        InvalidInputError, InvalidTypeError
            If the rows cannot be used or do not fit those of the other leaves, the name is taken,
            or the time is none or not of the kind of the others. The tree is as it was.
        StoreError
            If another process has changed the tree, or the disk refused.
        """
        leaf = self._manifest.next_leaf(name, time)
        return self._put(leaf, (X, y, sample_weight), progress, on_invalid)

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
    ) -> CoresetTree:
        """Add a batch as a leaf with a name of its own, as a `CoresetStream` takes it.

        Parameters
        ----------
        X, y, sample_weight
            As in `append`.

        Returns
        -------
        CoresetTree
            Itself.

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
        """Put other rows in the place of a leaf's.

        Parameters
        ----------
        leaf : str
            Its name, which it keeps.
        X, y, sample_weight, on_invalid, progress
            As in `append`.
        time : str, date, datetime or number, optional
            The new time; None keeps the old one.

        Returns
        -------
        Leaf

        Raises
        ------
        InvalidInputError, InvalidTypeError
            As in `append`; also if there is no such leaf.
        """
        old = self.leaves[self.leaves.position(leaf)]
        return self._put(
            old.revised(time, self.leaves), (X, y, sample_weight), progress, on_invalid
        )

    def _put(
        self,
        leaf: Leaf,
        data: tuple[Any, Any, Any],
        progress: bool | None,
        on_invalid: Literal["raise", "drop"] | None,
    ) -> Leaf:
        """Read the rows of a leaf once, and put it where it belongs."""
        manifest, settings = self._manifest, self._settings
        if on_invalid is not None:
            check_choice("on_invalid", on_invalid, "raise", "drop")
            settings = replace(settings, on_invalid=on_invalid)
        self._refuse_followed()
        manifest.check_current()  # before the data are read
        check = (lambda _: None) if manifest.schema is None else manifest.schema.check
        # Another seed for every leaf, and every time it is replaced.
        read = read_leaf(
            data,
            settings,
            (leaf.uid, leaf.revision),
            check,
            unit_length=manifest.schema is not None and manifest.schema.unit_length,
            progress=progress,
        )
        if read.rows >> ROW_BITS or leaf.uid >> (63 - ROW_BITS):
            raise InvalidInputError(
                f"leaf {leaf.uid} with {read.rows} rows is more than a tree can number",
                argument="leaf",
                remedy="make several leaves of it, or begin another tree",
            )
        known = manifest.schema and manifest.schema.followed_by(read.schema)
        points, schema = (known or read.schema).fit(read.points)
        points = replace(points, indices=points.indices + (leaf.uid << ROW_BITS))
        leaf = replace(leaf, rows=read.rows, weight=read.weight, n_dropped=read.n_dropped)
        leaves = LeafTable(({old.uid: old for old in self.leaves} | {leaf.uid: leaf}).values())
        uid = max(manifest.next_uid, leaf.uid + 1)
        changed = replace(manifest, leaves=leaves, next_uid=uid, schema=schema)
        self._commit(changed, {leaf.node: points})
        return leaf

    def _refuse_followed(self) -> None:
        if self._manifest.source is not None:
            raise InvalidInputError(
                f"the tree follows {self._manifest.source.name!r}, and has the leaves of that",
                remedy="change the source, and call refresh, or make another tree",
            )

    def _commit(
        self,
        changed: Manifest,
        made: dict[str, WeightedPoints],
        view: SourceView | None = None,
    ) -> Manifest:
        before = self._manifest

        def commit(after: Manifest, members: Members) -> None:
            standing = Standing(after, view)
            self._kept.commit(before.place, before.head, members, standing, after.keep)

        self._needed = write_version(
            self._settings, before, changed, made, self._needed, commit=commit
        )
        return self._manifest

    def delete(self, leaf: Window) -> None:
        """Remove a leaf, or several in one step.

        Parameters
        ----------
        leaf : str, sequence of str, slice, int or date
            As `leaves` of `coreset`.

        Raises
        ------
        InvalidInputError, InvalidTypeError
            If there is no such leaf, or no name of one is passed.
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
        deleted = self.leaves.select(leaf)
        remaining = LeafTable(x for x, flag in zip(self.leaves, deleted, strict=True) if not flag)
        self._commit(replace(self._manifest, leaves=remaining), {})

    # --- questions -----------------------------------------------------------------------

    def coreset(self, leaves: Window = None, *, normalize: bool | None = None) -> Coreset:
        """Return a coreset of all leaves or of some.

        Parameters
        ----------
        leaves : str, sequence of str, slice, int, date, or None, default=None
            Names; a slice from one name to another, both included, in the order of the table; a
            date, or a slice from one to another, both included, of leaves with a time; a position
            or a slice of positions, as Python counts them, such as ``slice(-7, None)``; None for
            all.
        normalize : bool, optional
            Whether to scale the weights to the total weight of the data. Default: as `draw` says.

        Returns
        -------
        Coreset
            Its row numbers count through all leaves of the table; `locate` says which leaf,
            and which row of it. ``provenance["leaves"]`` lists name, offset and rows of those
            that were asked for.

        Raises
        ------
        InvalidInputError
            If there are no leaves, or none of such a name.
        StoreError
            If the tree has changed since it was opened and the nodes are gone, or it is damaged.
        """
        return _coreset_of(self._settings, self._manifest, leaves, normalize=normalize)

    def locate(self, indices: IndexArray) -> tuple[list[str], IndexArray]:
        """Return the leaf, and the row number in it, of rows of a coreset of this tree.

        Parameters
        ----------
        indices : ndarray of shape (m,), int64
            Row numbers of a coreset of the tree as it is now: replacing or deleting a leaf moves
            those of the leaves after it.

        Returns
        -------
        names : list of str
            The leaf of each.
        rows : ndarray of shape (m,), int64
            Its number in the data of that leaf.

        Raises
        ------
        InvalidInputError
            If there is no such row.
        """
        return self.leaves.locate(indices)

    def verify(self) -> None:
        """Read every node, and check its digest and the chain of versions.

        Raises
        ------
        StoreError
            If a node is damaged, missing or of another tree: names it. If the version before this
            one is.
        """
        self._manifest.verify()


def _coreset_of(
    settings: Settings, manifest: Manifest, window: Any, *, normalize: bool | None
) -> Coreset:
    """Return a coreset of the leaves of a window, see `CoresetTree.coreset`.

    Raises
    ------
    InvalidInputError
        There are no leaves, or none of such a name, or they have no rows.
    StoreError
        A node is gone or damaged.
    """
    leaves = manifest.leaves
    flags = leaves.select(window)
    if manifest.top is None:
        raise no_leaves()
    parts = cover(manifest.top, flags)
    if not any(leaf.rows for leaf, flag in zip(leaves, flags, strict=True) if flag):
        raise InvalidInputError(
            "leaves has no rows", argument="leaves", remedy="pass a window with some"
        )
    if manifest.source is not None:  # whose nodes near the root have few or many leaves
        parts = finer(parts)
    # By the names of the parts, which stand for the leaves below them.
    points, described = settings.last_reduction(
        [manifest.read_node(part.name) for part in parts], int(digest_of(parts), 16)
    )
    points = replace(points, indices=_count_rows(leaves, points.indices))
    all_leaves = zip(leaves, leaves.offsets, flags, strict=True)
    chosen = [(leaf, offset) for leaf, offset, flag in all_leaves if flag]
    facts = {
        **described,
        "strategy": "store",
        "version": manifest.version,
        "levels": manifest.depth,
        "leaves": [{"name": x.name, "offset": start, "rows": x.rows} for x, start in chosen],
    }
    n_dropped = sum(leaf.n_dropped for leaf, _ in chosen)
    n = sum(leaf.rows for leaf, _ in chosen) - n_dropped
    weight = float(sum(leaf.weight for leaf, _ in chosen))
    schema = manifest.schema
    assert schema is not None  # noqa: S101 - there are rows
    place = str(manifest.place.path)
    data = DataFacts(n, n_dropped, weight, place, schema.columns, schema.metric, schema.keys)
    return settings.make_coreset(points, data, facts, normalize=normalize)


def _count_rows(leaves: LeafTable, stored: IndexArray) -> IndexArray:
    """Turn row numbers as they are kept into those that count through all leaves."""
    uids = np.array([leaf.uid for leaf in leaves])
    order = np.argsort(uids)
    positions = order[np.searchsorted(uids, stored >> ROW_BITS, sorter=order)]
    starts: IndexArray = np.array(leaves.offsets)[positions]
    return starts + (stored & ((1 << ROW_BITS) - 1))
