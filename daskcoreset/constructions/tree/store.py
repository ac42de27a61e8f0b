"""`CoresetTree`: coresets of data that change, kept in a Zarr store."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from daskcoreset.constructions.tree import persistence
from daskcoreset.constructions.tree.answers import coreset_of
from daskcoreset.constructions.tree.chain import Head, OvertakenError
from daskcoreset.constructions.tree.changes import Needed, write_version
from daskcoreset.constructions.tree.following import Plan, Refresh, Refreshing
from daskcoreset.constructions.tree.job import Settings
from daskcoreset.constructions.tree.kept import Kept
from daskcoreset.constructions.tree.leaf_table import ROW_BITS, Leaf, LeafTable
from daskcoreset.constructions.tree.leaves import read_leaf
from daskcoreset.constructions.tree.manifest import Manifest
from daskcoreset.constructions.tree.places import Layout, Members, NewPlace, Place
from daskcoreset.constructions.tree.reducer import Reducer
from daskcoreset.constructions.tree.remote import place_at
from daskcoreset.constructions.tree.unmade import UnmadePlace
from daskcoreset.constructions.tree.view import SourceView
from daskcoreset.constructions.tree.windows import TreeWindow, no_leaves
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.random import RandomState
from daskcoreset.core.tables import counted, short_seed
from daskcoreset.core.typing import IndexArray, Metric, Sampling
from daskcoreset.core.validation import as_int, check_choice, check_flag
from daskcoreset.core.zarr_places import Location
from daskcoreset.execution.progress import count_reads
from daskcoreset.inputs.followed import FollowOptions
from daskcoreset.inputs.options import ReadOptions
from daskcoreset.sensitivities import Sensitivity

# Leaves by name, by position, or by date.
Window: TypeAlias = "str | Sequence[str] | slice | int | dt.date | None"

# Times that a view is opened anew where another process has brought it up to date meanwhile: one
# that reads very many leaves writes several versions.
_N_TURNS = 3

_LAYOUT = Layout("coreset-tree", "versions", flat=False)


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


def _unmade(place: NewPlace, settings: Settings, replaced: Head | None = None) -> Manifest:
    """Return an empty view, which its first version makes."""
    contents = persistence.settings_contents(settings, _LAYOUT.kind, follows=True)
    remedy = "CoresetTree.follow opens a view that is there, or choose another path"
    unmade = UnmadePlace(place, contents, remedy, replaced)
    head = unmade.first_head
    return Manifest(unmade, head, head.version, most_rows=settings.most_rows)


def _opened(place: Place, method: Any) -> tuple[Settings, Manifest]:
    settings, origin = persistence.settings_from(place.settings(), place.name, method)
    return settings, Manifest.newest(place, origin, settings.most_rows)


def _find_unused(place: Place) -> Head | None:
    """Return the newest version of a view that has never had a leaf; None of any other."""
    contents = place.settings()
    manifest = Manifest.newest(place, persistence.origin_of(contents), None)
    is_view = manifest.source is not None or persistence.is_view(contents)
    return manifest.head if is_view and not manifest.next_uid else None


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
    Coreset(lightweight: 100 of 1,900 rows, 3 features, float64, total weight ..., seed 0)
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
        method: str | Sensitivity[Any] | Reducer = "lightweight",
        size: int = 1000,
        *,
        inner_size: int | None = None,
        random_state: RandomState = None,
        sampling: Sampling = "systematic",
        on_invalid: Literal["raise", "drop"] = "raise",
        n_clusters: int | None = None,
        metric: Metric = "euclidean",
        storage_options: Mapping[str, Any] | None = None,
    ) -> CoresetTree:
        """Make an empty tree.

        Parameters
        ----------
        path : path, URL or zarr.storage.ObjectStore
            A folder that does not exist yet, on a local disk or of an object store:
            ``s3://bucket/folder``, ``gs://...`` or ``az://...``.
        method, random_state, sampling, on_invalid, n_clusters, metric
            As in `daskcoreset.build`; a `Reducer` of one's own and constructions of several
            folds as well. By ``metric="cosine"`` the rows of all leaves are divided by their
            lengths.
        size : int, default=1000
            Rows of a coreset that is asked for.
        inner_size : int or None, default=None
            Rows of a node, leaves among them; None takes twice `size`, for the reasons in
            `daskcoreset.constructions.tree.job`.
        storage_options : mapping, optional
            For a URL: keys, endpoint and region, by the names of obstore or of fsspec, such as
            ``{"key": ..., "secret": ..., "endpoint_url": ...}``. What is left out comes from the
            environment; nothing of it is kept in the tree.

        Raises
        ------
        StoreError
            If something is there, or the store is out of reach or cannot write on a condition.
        InvalidInputError, InvalidTypeError
            When an argument cannot be used.
        """
        settings = Settings.checked(
            method, size, inner_size, n_clusters, random_state, sampling, on_invalid, metric
        )
        place = place_at("path", path, _LAYOUT, storage_options)
        contents = persistence.settings_contents(settings, _LAYOUT.kind)
        remedy = "CoresetTree.open opens a tree that is there, or choose another path"
        head = place.create(contents, None, remedy, overwrite=False)
        return cls(settings, Manifest(place, head, most_rows=settings.most_rows))

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
        method: str | Sensitivity[Any] | Reducer = "lightweight",
        size: int = 1000,
        *,
        y: str | None = None,
        sample_weight: str | None = None,
        inner_size: int | None = None,
        random_state: RandomState = None,
        sampling: Sampling = "systematic",
        on_invalid: Literal["raise", "drop"] = "raise",
        n_clusters: int | None = None,
        metric: Metric = "euclidean",
        chunks: int | Literal["auto"] = "auto",
        detect: Literal["stat", "content"] = "stat",
        branch: str = "main",
        keep: int | None = 10,
        allow_shrink: bool = False,
        columns: Sequence[str] | None = None,
        missing_chunks: Literal["raise", "fill"] = "raise",
        source_options: Mapping[str, Any] | None = None,
        storage_options: Mapping[str, Any] | None = None,
        progress: bool | None = False,
    ) -> CoresetTree:
        """Open the view of a source that changes, or make it, and bring it up to date.

        A view is a tree with a leaf for every row block of a Zarr array, or for every file. It
        remembers what it has seen of each, so that `refresh` reads only what is new or changed;
        what it holds then has the bits of a view that is made from the source as it is.

        Parameters
        ----------
        source : path, URL, glob, list of paths, Zarr array, group or store, Icechunk repository,
            or function
            A Zarr array, a folder of Parquet files, a glob, a list of files, or the newest
            snapshot of a branch of Icechunk. A function is called whenever the source is looked
            at, and returns one of these.
        path : path, URL or zarr.storage.ObjectStore
            Of the view; made where nothing is there. Not inside the store or folder that is
            followed, with which it would be lost.
        method, size, inner_size, random_state, sampling, on_invalid, n_clusters, metric,
        storage_options
            As in `create`; of a view that is there the same as when it was made, but for a
            `random_state` of None, which takes that of the view.
        y, sample_weight : str, optional
            Names of columns, or of arrays of the group.
        chunks : int or "auto", default="auto"
            Rows of a leaf of a Zarr array; "auto" takes one chunk, or shard. A multiple of these
            makes fewer leaves, of which more is read again.
        detect : {"stat", "content"}, default="stat"
            How a change is known: by size, modification time and entity tag of files, or of the
            chunks of an array; or by a hash of what is stored, for which all of it is read. Of
            Icechunk, "stat" takes the difference of two snapshots. A view keeps to the one that it
            was made with: by the other, all of the source would look new.
        branch : str, default="main"
            Of an Icechunk repository.
        keep : int or None, default=10
            Versions of the view that `as_of` can go back to; None keeps all.
        allow_shrink : bool, default=False
            As in `refresh`.
        source_options : mapping, optional
            ``storage_options`` of the source, where that is a URL.
        progress
            As in `daskcoreset.build`.

        Returns
        -------
        CoresetTree
            Up to date; `last_refresh` says what was read for that.

        Raises
        ------
        InvalidInputError, InvalidTypeError
            If an argument cannot be used, the view follows another source, or parts of the source
            have another width or dtype, or it has shrunk (see `refresh`). The view is as it was.
        StoreError
            If the source does not read, or the view is damaged or out of reach, or another process
            brings it up to date at the same time, again and again. After once this one goes on
            with what the other has read.

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
        >>> for day in ("2026-03-01", "2026-03-02"):
        ...     np.save(folder / f"{day}.npy", rng.normal(size=(1000, 3)))
        >>> view = CoresetTree.follow(f"{folder}/*.npy", folder / "view", size=100, random_state=0)
        >>> np.save(folder / "2026-03-03.npy", rng.normal(size=(1000, 3)))
        >>> view.refresh()
        Refresh(version 2: 1 of 3 leaves read, 1,000 rows, 24,000 bytes; 1 added, ...)
        >>> view[-2:]
        TreeWindow(2 of 3 leaves: '2026-03-02.npy' to '2026-03-03.npy')
        """
        reading = ReadOptions(source_options, columns, missing_chunks)
        options = FollowOptions(y, sample_weight, chunks, detect, branch, reading)
        view = SourceView(source, options, keep)
        wanted = Settings.checked(
            method, size, inner_size, n_clusters, random_state, sampling, on_invalid, metric
        )
        place = place_at("path", path, _LAYOUT, storage_options)
        for turn in range(_N_TURNS):
            if place.is_free():
                view.refuse_among_data(place)
                tree = cls(wanted, _unmade(place, wanted), view)
            else:
                args = (place, view, wanted, method, random_state)
                tree = cls._reopened(*args, may_replace=not turn)
            try:
                tree.refresh(allow_shrink=allow_shrink, progress=progress)
                break
            except OvertakenError:  # what the other one has read is there now
                if turn + 1 == _N_TURNS:
                    raise
        if not len(tree):
            view.warn_of_no_match()
        return tree

    @classmethod
    def _reopened(
        cls,
        place: NewPlace,
        view: SourceView,
        wanted: Settings,
        method: Any,
        random_state: Any,
        *,
        may_replace: bool,
    ) -> CoresetTree:
        """Open a view that is there; one that never had a leaf takes other settings."""
        try:
            settings, manifest = _opened(place, method)
            view.check_settings(place, settings, wanted, random_state)
        except InvalidInputError:
            unused = _find_unused(place) if may_replace else None
            if unused is None:
                raise
            return cls(wanted, _unmade(place, wanted, unused), view)
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
            The source, opened anew, such as a longer list of files; None looks at the one that was
            passed to `follow`, which alone knows how a source is read: not `open`.
        allow_shrink : bool, default=False
            Whether a Zarr array may end before a leaf of the view, and whether all files may be
            gone. Single files that are gone are deleted leaves, without more words.
        progress
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
        if view is None:
            what = "was opened as it is, not to be followed"
            what = what if manifest.source else "follows no source"
            raise InvalidInputError(
                f"the tree {what}; CoresetTree.follow(source, path) opens a view."
            )
        manifest.check_current()
        if source is not None:
            view = replace(view, source=source)
        state, record = view.look(manifest)
        plan = Plan.of(manifest, state, record, allow_shrink=allow_shrink)
        if plan.is_done(manifest):
            done = Refresh(self.version, n_leaves=len(self.leaves))
        else:
            commit = partial(self._commit, view=view)
            work = Refreshing(self._settings, manifest, plan, commit)
            with count_reads(progress, len(plan.to_read), unit="leaf") as advance:
                done = work.run(advance, view.n_threads)
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
        read = read_leaf(data, settings, (leaf.uid, leaf.revision), check, progress)
        if read.rows >> ROW_BITS or leaf.uid >> (63 - ROW_BITS):
            raise InvalidInputError(
                f"leaf {leaf.uid} with {read.rows} rows is more than a tree can number; make "
                f"several leaves of it, or begin another tree."
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
                f"the tree follows {self._manifest.source.name!r}, and has the leaves of that; "
                f"change the source, and call refresh, or make another tree."
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
                "leaf is None; pass the names of leaves, or slice(None) for all."
            )
        self._refuse_followed()
        deleted = self.leaves.select(leaf)
        remaining = LeafTable(x for x, flag in zip(self.leaves, deleted, strict=True) if not flag)
        self._commit(replace(self._manifest, leaves=remaining), {})

    # --- questions -----------------------------------------------------------------------

    def coreset(self, leaves: Window = None, *, normalize: bool = False) -> Coreset:
        """Return a coreset of all leaves or of some.

        Parameters
        ----------
        leaves : str, sequence of str, slice, int, date, or None, default=None
            Names; a slice from one name to another, both included, in the order of the table; a
            date, or a slice from one to another, both included, of leaves with a time; a position
            or a slice of positions, as Python counts them, such as ``slice(-7, None)``; None for
            all.
        normalize : bool, default=False
            Whether to scale the weights to the total weight of the data, as in
            `daskcoreset.build`.

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
        return coreset_of(self._settings, self._manifest, leaves, normalize=normalize)

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
