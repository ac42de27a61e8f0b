"""`CoresetTree`: coresets of data that change, kept in a Zarr store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from daskcoreset.constructions.sampling.job import DataFacts
from daskcoreset.constructions.tree import persistence
from daskcoreset.constructions.tree.job import Settings, TreeJob, concatenate_parts
from daskcoreset.constructions.tree.manifest import ROW_BITS, Leaf, LeafTable, Manifest
from daskcoreset.constructions.tree.persistence import RowSchema
from daskcoreset.constructions.tree.places import Layout
from daskcoreset.constructions.tree.plot import plot_tree
from daskcoreset.constructions.tree.reducer import Reducer
from daskcoreset.constructions.tree.remote import place_at
from daskcoreset.constructions.tree.shape import Part, cover, digest_of, respaced
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.deadline import time_limit
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.inside import refuse_inside
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.random import RandomState, Stage, stream
from daskcoreset.core.tables import short_seed
from daskcoreset.core.typing import IndexArray, Sampling
from daskcoreset.core.zarr_places import Location
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.inputs.options import ReadKeywords, takes_reading
from daskcoreset.sensitivities import Sensitivity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Coresets of blocks united at a time where a leaf's data are out of core.
_SPLIT_EVERY = 16

_LAYOUT = Layout("coreset-tree", "versions", flat=False)


def _reduced(settings: Settings, part: Part, below: list[WeightedPoints]) -> WeightedPoints:
    # By the name, which stands for the leaves below: the same leaves give the same bits.
    return settings.reduce(concatenate_parts(below), int(part.name, 16))


class CoresetTree:
    r"""Coresets of data that come in named leaves, such as days, and change.

    Every leaf is read once and kept as a coreset; coresets of neighbours are united and
    reduced, up to one of everything. Appending, replacing or deleting a leaf makes only the
    :math:`O(\log n)` nodes above it anew, and a window of neighbouring leaves is answered from
    :math:`O(\log n)` nodes. Made by `create`, opened by `open`.

    Every change is one atomic step, on a disk as on an object store; an object that has not seen
    the change of another process cannot change the tree any more, and says so. The random numbers
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

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
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

    def __init__(self, settings: Settings, manifest: Manifest) -> None:
        self._settings = settings
        self._manifest = manifest

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
        storage_options: Mapping[str, Any] | None = None,
    ) -> CoresetTree:
        """Make an empty tree.

        Parameters
        ----------
        path : path, URL or zarr.storage.ObjectStore
            A folder that does not exist yet, on a local disk or of an object store:
            ``s3://bucket/folder``, ``gs://...`` or ``az://...``.
        method, random_state, sampling, on_invalid, n_clusters
            As in `daskcoreset.build`; a `Reducer` of one's own and constructions of several
            folds as well.
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
            method, size, inner_size, n_clusters, random_state, sampling, on_invalid
        )
        place = place_at("path", path, _LAYOUT, storage_options)
        refuse_inside(path, storage_options)
        remedy = "CoresetTree.open opens a tree that is there, or choose another path"
        contents = persistence.settings_contents(settings, _LAYOUT.kind)
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
        place = place_at("path", path, _LAYOUT, storage_options)
        settings, origin = persistence.settings_from(place.settings(), place.name, method)
        return cls(settings, Manifest.newest(place, origin, settings.most_rows))

    def __repr__(self) -> str:
        settings = self._settings
        return (
            f"{type(self).__name__}({settings.reducer.name}: {len(self.leaves):,} leaves, size "
            f"{settings.size:,}, seed {short_seed(settings.seed)}, version {self.version})"
        )

    def __len__(self) -> int:
        return len(self.leaves)

    def __bool__(self) -> bool:
        return True

    def __contains__(self, name: object) -> bool:
        return name in self.leaves.names

    @property
    def path(self) -> Path | str:
        """Where it is: a path, or a URL without secrets."""
        return self._manifest.place.path

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
        return self._manifest.top.depth if self._manifest.top else 0

    # --- changes -------------------------------------------------------------------------

    @takes_reading
    def append(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        name: str | None = None,
        time: Any = None,
        progress: bool | None = False,
        timeout: float | None = None,
        **_reading: Unpack[ReadKeywords],
    ) -> Leaf:
        """Add a leaf after the others.

        Parameters
        ----------
        X, y, sample_weight
            As in `daskcoreset.build`, in memory or out of core; read once.
        name : str or None, default=None
            Name of the leaf; None takes `time`, if that is given, or "leaf-" and a number.
        time : str, date, datetime or number, optional
            Kept with it, as text.
        progress : bool or None, default=False
            As in `daskcoreset.build`.
        storage_options, columns, missing_chunks, sample_dims, feature_dims
            As in `daskcoreset.build`.
        timeout : float or None, default=None
            As in `daskcoreset.build`; the tree is as it was where it has passed.

        Returns
        -------
        Leaf
            Its line in the table.

        Raises
        ------
        InvalidInputError, InvalidTypeError
            If the rows cannot be used or do not fit those of the other leaves, or the name is
            taken. The tree is as it was.
        StoreError
            If another process has changed the tree, or the disk refused.
        """
        leaf = self._manifest.next_leaf(name, time)
        with time_limit(timeout):
            return self._put(leaf, (X, y, sample_weight), progress)

    @takes_reading
    def replace(
        self,
        leaf: str,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        time: Any = None,
        progress: bool | None = False,
        timeout: float | None = None,
        **_reading: Unpack[ReadKeywords],
    ) -> Leaf:
        """Put other rows in the place of a leaf's.

        Parameters
        ----------
        leaf : str
            Its name, which it keeps.
        X, y, sample_weight, progress, timeout
            As in `append`.
        time : str, date, datetime or number, optional
            The new time; None keeps the old one.
        storage_options, columns, missing_chunks, sample_dims, feature_dims
            As in `daskcoreset.build`.

        Returns
        -------
        Leaf

        Raises
        ------
        InvalidInputError, InvalidTypeError
            As in `append`; also if there is no such leaf.
        """
        old = self.leaves[self.leaves.position(leaf)]
        with time_limit(timeout):
            return self._put(old.revised(time), (X, y, sample_weight), progress)

    def _put(self, leaf: Leaf, data: tuple[Any, Any, Any], progress: bool | None) -> Leaf:
        """Read the rows of a leaf once, and put it where it belongs."""
        manifest, settings = self._manifest, self._settings
        manifest.check_current()  # before the data are read
        blocks = row_blocks(*data, on_invalid=settings.on_invalid)
        blocks.refuse_cube("a stored tree")
        schema = RowSchema.of(blocks, manifest.schema)
        # Another seed for every leaf, and every time it is replaced.
        rng = stream(settings.seed, Stage.TREE_LEAVES, leaf.uid, leaf.revision)
        leaf_settings = replace(settings, size=settings.inner_size, seed=int(rng.integers(2**63)))
        results = TreeJob(blocks, leaf_settings, _SPLIT_EVERY, part=True).root(progress)
        node = results.value
        if node.read >> ROW_BITS or leaf.uid >> (63 - ROW_BITS):
            raise InvalidInputError(
                f"leaf {leaf.uid} with {node.read} rows is more than a tree can number; make "
                f"several leaves of it, or begin another tree."
            )
        points, schema = schema.fit(node.points)
        points = replace(points, indices=points.indices + (leaf.uid << ROW_BITS))
        dropped = results.n_rows - results.n_kept
        leaf = replace(leaf, rows=node.read, weight=node.weight, n_dropped=dropped)
        leaves = LeafTable(({old.uid: old for old in self.leaves} | {leaf.uid: leaf}).values())
        uid = max(manifest.next_uid, leaf.uid + 1)
        changed = replace(manifest, leaves=leaves, next_uid=uid, schema=schema)
        self._commit(changed, {leaf.node: points})
        return leaf

    def _commit(self, changed: Manifest, made: dict[str, WeightedPoints]) -> None:
        """Make the nodes that are not there yet, and write the next version.

        Parameters
        ----------
        changed : Manifest
            The leaves as they are to be; its version and nodes are still those before.
        made : dict of str to WeightedPoints
            Leaves that are new, by the names of their nodes; the nodes above them are added.

        Raises
        ------
        StoreError
            If another process has changed the tree, or the disk refused. It is as it was.
        """
        before, version = self._manifest, self.version + 1
        before.check_current()
        slots = respaced([leaf.slot for leaf in changed.leaves])
        spaced = zip(changed.leaves, slots, strict=True)
        leaves = LeafTable(replace(leaf, slot=slot) for leaf, slot in spaced)
        after = replace(changed, version=version, leaves=leaves)
        kept: dict[str, tuple[int, int]] = {}
        for part in after.top or ():
            if part.name in before.nodes:
                kept[part.name] = before.nodes[part.name]
            elif part.below:
                names = [below.name for below in part.below]
                points = [made[name] if name in made else before.read_node(name) for name in names]
                made[part.name] = _reduced(self._settings, part, points)
        place = before.place
        new = {name: (version, index) for index, name in enumerate(made, place.first_index)}
        after = replace(after, nodes=kept | new)
        after = after.commit(after.groups(made))
        needed = before.needed | after.needed  # who has the tree open as it was may go on reading
        place.sweep(lambda made_in, member: (made_in, member) in needed or made_in > version)
        self._manifest = after

    def delete(self, leaf: str | Sequence[str] | slice) -> None:
        """Remove a leaf, or several in one step.

        Parameters
        ----------
        leaf : str, sequence of str, or slice of str
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
        deleted = self.leaves.select(leaf)
        remaining = LeafTable(x for x, flag in zip(self.leaves, deleted, strict=True) if not flag)
        self._commit(replace(self._manifest, leaves=remaining), {})

    # --- questions -----------------------------------------------------------------------

    def coreset(
        self, leaves: str | Sequence[str] | slice | None = None, *, normalize: bool = False
    ) -> Coreset:
        """Return a coreset of all leaves or of some.

        Parameters
        ----------
        leaves : str, sequence of str, slice of str, or None, default=None
            Names; a slice from one name to another, both included, in the order of the table;
            None for all.
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
        manifest, settings = self._manifest, self._settings
        if manifest.top is None:
            raise InvalidInputError("the tree has no leaves; append some first.")
        flags = self.leaves.select(leaves)
        parts = cover(manifest.top, flags)
        # By the names of the parts, which stand for the leaves below them.
        points, described = settings.last_reduction(
            [manifest.read_node(part.name) for part in parts], int(digest_of(parts), 16)
        )
        points = replace(points, indices=self._count_rows(points.indices))
        all_leaves = zip(self.leaves, self.leaves.offsets, flags, strict=True)
        chosen = [(leaf, offset) for leaf, offset, flag in all_leaves if flag]
        facts = {
            **described,
            "strategy": "store",
            "version": self.version,
            "levels": self.depth,
            "leaves": [{"name": x.name, "offset": start, "rows": x.rows} for x, start in chosen],
        }
        n_dropped = sum(leaf.n_dropped for leaf, _ in chosen)
        n = sum(leaf.rows for leaf, _ in chosen) - n_dropped
        weight = float(sum(leaf.weight for leaf, _ in chosen))
        columns = None if manifest.schema is None else manifest.schema.columns
        data = DataFacts(n, n_dropped, weight, str(self.path), columns)
        return settings.make_coreset(points, data, facts, normalize=normalize)

    def _count_rows(self, stored: IndexArray) -> IndexArray:
        """Turn row numbers as they are kept into those that count through all leaves."""
        uids = np.array([leaf.uid for leaf in self.leaves])
        offsets = np.array(self.leaves.offsets)
        starts: IndexArray = offsets[np.searchsorted(uids, stored >> ROW_BITS)]
        return starts + (stored & ((1 << ROW_BITS) - 1))

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

    def plot(
        self, leaves: str | Sequence[str] | slice | None = None, ax: Axes | None = None
    ) -> Axes:
        """Draw the leaves with their rows, the nodes above them, and how old each node is.

        A change makes only the nodes above a leaf anew: the others keep their age. No node is
        read.

        Parameters
        ----------
        leaves : str, sequence of str, slice of str, or None, default=None
            A window, as in `coreset`: the nodes that answer for it are hatched.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None draws into a new figure of pyplot.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        InvalidInputError
            If there are no leaves, or none of such a name.
        MissingDependencyError
            matplotlib is not installed; the extra is "plot".
        """
        manifest = self._manifest
        if manifest.top is None:
            raise InvalidInputError("the tree has no leaves; append some first.")
        window = () if leaves is None else cover(manifest.top, self.leaves.select(leaves))
        ages = {name: self.version - made_in for name, (made_in, _) in manifest.nodes.items()}
        return plot_tree(manifest.top, self.leaves, ages, window, ax)

    def verify(self) -> None:
        """Read every node, and check its digest and the chain of versions.

        Raises
        ------
        StoreError
            If a node is damaged, missing or of another tree: names it. If the version before this
            one is.
        """
        self._manifest.verify()
