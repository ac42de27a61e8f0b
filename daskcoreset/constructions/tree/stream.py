"""`CoresetStream`: a coreset of rows as they arrive.

A stream that survives a crash::

    from pathlib import Path

    if Path("stream.zarr").exists():
        stream = CoresetStream.load("stream.zarr")
    else:
        stream = CoresetStream(size=1000, random_state=0, store="stream.zarr")
    for start in range(stream.n_rows, len(X), 10_000):
        stream.partial_fit(X[start : start + 10_000])

When `partial_fit` returns, the batch is on the disk, with the number of rows that were consumed.
If you continue from ``stream.n_rows``, each row counts once. The stream ends with the same bytes as
a stream without a crash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any, Literal

from daskcoreset.constructions.draws import MergeReduce
from daskcoreset.constructions.sampling.job import DataFacts
from daskcoreset.constructions.tree import persistence
from daskcoreset.constructions.tree.job import Settings, concatenate_parts, valid_points
from daskcoreset.constructions.tree.persistence import RowSchema
from daskcoreset.constructions.tree.place import Kept, Place, Root, place_at
from daskcoreset.constructions.tree.reducer import Reducer
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.messages import about_argument, no_array
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.random import RandomState
from daskcoreset.core.tables import short_seed
from daskcoreset.core.validation import check_flag
from daskcoreset.errors import InvalidInputError
from daskcoreset.execution.engine import BlockResults, Engine, Reduction
from daskcoreset.execution.threads import in_threads
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.inputs.options import ReadOptions, Rows
from daskcoreset.sensitivities import Sensitivity
from daskcoreset.storage.locations import Location

_LAYOUT = ("coreset-stream", "states")

_STATE = "coreset-stream-state"

# Leaves of a stream that are reduced each by itself. Each of those after them is so small a part of
# the rows that it is only thinned, and four, then eight, are reduced together, at a third of the
# time: then a group adds to the variance 1/16 or 1/32 of that of independent draws of `size` rows,
# and 1/4 if one leaf has all of its cost. Errors are no larger for it, since rows that are drawn
# fewer times lose less. With groups of sixteen, thinned to half as many, errors were twice as large
# where one leaf had all of the cost.
EARLY_LEAVES = 4

# The highest level on which thinned leaves are reduced.
_LATE_LEVEL = 3


def lowest_level(position: int) -> int:
    """Return the level on which the rows of a leaf are first reduced together with others."""
    return 0 if position < EARLY_LEAVES else min(position.bit_length() - 1, _LATE_LEVEL)


def is_reduced(level: int) -> bool:
    """Whether a node of a level is one coreset. If not, it is both of the level below.

    Four nodes then become one, in half of the time of three reductions of two, and with the error
    of one. Above the fourth leaf, those of groups of eight do, which are on the third level.
    """
    return level in {0, 2} or (level > 1 and level % 2 == 1)


@dataclass(frozen=True, eq=False)
class StreamState:
    """A stream after some rows. It is immutable, so that a batch is taken wholly or not at all.

    Attributes
    ----------
    nodes : tuple of tuple of WeightedPoints
        The coreset of each of `levels`, or candidates of leaves that wait for others, leaf by leaf,
        so that they are put together once.
    waiting : tuple of WeightedPoints
        Rows that do not fill a leaf yet, in parts.
    schema : RowSchema or None
        None before the first row.
    n_leaves : int
        Leaves filled so far.
    weight : float
        Total weight of their rows.
    n_rows, n_dropped : int
        Rows that arrived, and how many of them were left out.
    n_unsaved : int
        Batches since it was saved.
    place, root : Place, Root or None
        Where it is saved.
    """

    nodes: tuple[tuple[WeightedPoints, ...], ...] = ()
    waiting: tuple[WeightedPoints, ...] = ()
    schema: RowSchema | None = None
    n_leaves: int = 0
    weight: float = 0.0
    n_rows: int = 0
    n_dropped: int = 0
    n_unsaved: int = 0
    place: Place | None = None
    root: Root | None = None

    @property
    def levels(self) -> tuple[int, ...]:
        """Levels that hold a coreset, the highest, which is the oldest, first."""
        # Two nodes of a level become one of the next, as digits carry when leaves are counted.
        levels = reversed(range(self.n_leaves.bit_length()))
        return tuple(level for level in levels if self.n_leaves >> level & 1)

    @property
    def parts(self) -> list[WeightedPoints]:
        """All rows in memory, a part for each level, the oldest first."""
        return [concatenate_parts(parts) for parts in (*self.nodes, self.waiting) if parts]

    @property
    def n_held(self) -> int:
        """How many rows are in memory."""
        return sum(map(len, chain(*self.nodes, self.waiting)))

    @property
    def total_weight(self) -> float:
        """Total weight of all rows that came."""
        # Of those that wait as one array: summed part by part it would tell how they came.
        waiting = concatenate_parts(self.waiting).total_weight if self.waiting else 0.0
        return self.weight + waiting

    def add(
        self, points: WeightedPoints, n_rows: int, schema: RowSchema, settings: Settings
    ) -> StreamState:
        """Return the state after a block of `n_rows` rows of a schema.

        `points` are those that were not left out.
        """
        if self.schema is not None:
            schema = replace(schema, labels=self.schema.labels)
        points, schema = schema.fit(points)
        state, start, waiting = self, 0, self.waiting
        # All rows that came wait, but for those that were left out and those of the leaves.
        missing = settings.leaf_size * (self.n_leaves + 1) - (self.n_rows - self.n_dropped)
        while len(points) - start >= missing:
            further = points.take(slice(start, start + missing)).moved(self.n_rows)
            leaf = concatenate_parts((*waiting, further))
            state, start, waiting = state._with_leaf(leaf, settings), start + missing, ()
            missing = settings.leaf_size
        if start < len(points):
            # Copied: a slice would keep all of a large batch, and the user may write into it.
            rest = points.take(slice(start, None)).moved(self.n_rows).copied()
            waiting = (*waiting, rest)
        return replace(
            state,
            waiting=waiting,
            schema=schema,
            n_rows=self.n_rows + n_rows,
            n_dropped=self.n_dropped + n_rows - len(points),
            n_unsaved=self.n_unsaved + 1,
        )

    def _with_leaf(self, leaf: WeightedPoints, settings: Settings) -> StreamState:
        nodes, level, position = self.nodes, 0, self.n_leaves
        lowest = lowest_level(position)
        first = settings.thin(leaf, position) if lowest else settings.reduce(leaf, position)
        # The user may write into rows of a batch, and few rows would keep all of it.
        parts: tuple[WeightedPoints, ...] = (first.copied(),)
        while position % 2:  # the last node of this level has waited for this neighbour
            level, position = level + 1, position // 2
            parts, nodes = (*nodes[-1], *parts), nodes[:-1]
            if level >= lowest and is_reduced(level):
                parts = (settings.reduce(concatenate_parts(parts), position, level),)
        return replace(
            self,
            nodes=(*nodes, parts),
            waiting=(),
            n_leaves=self.n_leaves + 1,
            weight=self.weight + leaf.total_weight,
        )

    @classmethod
    def read(cls, place: Place, root: Root) -> StreamState:
        """Read the newest state of a place."""
        name = root.history[-1]
        values, parts = persistence.read_state(place, name, _STATE)
        schema = values.pop("schema")
        state = cls(**values, schema=schema and RowSchema(**schema), place=place, root=root)
        n = len(state.levels)
        return replace(state, nodes=tuple((part,) for part in parts[:n]), waiting=tuple(parts[n:]))


_COUNTERS = ("n_leaves", "weight", "n_rows", "n_dropped")


def read_blocks(blocks: RowBlocks, method: Any) -> Iterator[BlockResults[WeightedPoints]]:
    """Read the blocks in order, one ahead of the one that is used."""
    reduction: Reduction[WeightedPoints] = Reduction(partial(valid_points, method), itemgetter(0))

    def read(i: int) -> BlockResults[WeightedPoints]:
        # What no Dask array holds is read by this process, and not by a cluster.
        engine = Engine(blocks.select([i]), lazy=bool(blocks.dask_arrays))
        results: BlockResults[WeightedPoints] = engine.compute(engine.read(reduction))
        return results

    if blocks.n_blocks == 1:  # worth no thread, where rows come one by one
        return iter([read(0)])
    return in_threads(read, range(blocks.n_blocks), 1)


class CoresetStream(Kept[StreamState]):
    """A coreset of rows that arrive one by one or in batches, in little memory.

    Rows wait until they fill a leaf, which becomes a coreset. Coresets are merged and reduced, so
    memory grows with the logarithm of the number of rows. The result depends on the order of the
    rows and on the seed, not on the batches. If the first rows come from ``open_rows(...,
    unit_length=True)``, all rows are divided by their lengths. The guide is :doc:`/guides/streams`.

    Parameters
    ----------
    method : str, Sensitivity or Reducer, optional
        As in `daskcoreset.build`. Default: "kmeans" if `n_clusters` is given, else "lightweight".
    size : int, optional
        Rows of a coreset. Default: 1000.
    leaf_size : int, optional
        Rows of a leaf, more than the rows of a node. Default: 32 times `size`. Larger leaves take
        less work per row and more memory, and give a smaller error.
    n_clusters : int, optional
        Number of clusters of the models that you will fit.
    random_state : int, Generator, RandomState or None, default=None
        Seed. With an int, the same rows give the same result.
    on_invalid : {"raise", "drop"}, default="raise"
        Refuse a batch that contains NaN or infinity, or drop and count such rows.
    draw : MergeReduce, default=MergeReduce()
        How nodes are drawn, and the rows that they keep.
    store : path, URL or zarr.storage.ObjectStore, optional
        A folder that does not exist yet. The stream is saved there while it runs, and `load`
        continues it after a crash.
    save_every : int, default=1
        Number of batches between two saves.
    storage_options : mapping, optional
        Options of a URL, as in `daskcoreset.CoresetTree.create`.

    Attributes
    ----------
    n_rows, n_dropped, n_held : int
        Rows that arrived, rows that were dropped, and rows in memory.
    total_weight : float
        Weight of all rows that arrived.
    levels : tuple of int
        Levels that hold a coreset.

    Raises
    ------
    InvalidInputError, InvalidTypeError, StoreError
        If an argument cannot be used, or `store` exists already.

    Examples
    --------
    >>> import numpy as np
    >>> stream = CoresetStream(size=100, random_state=0)
    >>> rng = np.random.default_rng(0)
    >>> for day in range(30):
    ...     _ = stream.partial_fit(rng.normal(day, 1.0, size=(1000, 3)))
    >>> stream.coreset()
    Coreset(lightweight: 100 of 30,000 rows, 3 features, no labels, seed 0)

    References
    ----------
    Tukan, Baykal, Feldman and Rus (2020), Algorithm 2.
    """

    def __init__(
        self,
        method: str | Sensitivity[Any] | Reducer | None = None,
        *,
        size: int | None = None,
        leaf_size: int | None = None,
        n_clusters: int | None = None,
        random_state: RandomState = None,
        on_invalid: Literal["raise", "drop"] = "raise",
        draw: MergeReduce = MergeReduce(),
        store: Location | None = None,
        save_every: int = 1,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        place = None if store is None else place_at("store", store, *_LAYOUT, storage_options)
        settings = Settings.of(method, size, n_clusters, random_state, on_invalid, draw)
        settings = settings.of_stream(leaf_size, save_every)
        if place is None:
            settings = replace(settings, save_every=None)
        super().__init__(settings, StreamState())
        if place is not None:
            self._save_new(place, overwrite=False)

    __array__ = no_array("a CoresetStream", "call coreset = stream.coreset() and ")

    def __repr__(self) -> str:
        settings, state = self._settings, self._last
        return (
            f"{type(self).__name__}({settings.method.name}: {state.n_rows:,} rows seen, "
            f"{state.n_held:,} held, size {settings.size:,}, seed {short_seed(settings.seed)})"
        )

    def __len__(self) -> int:
        return self.n_rows

    @property
    def n_rows(self) -> int:
        """Rows that arrived."""
        return self._now.n_rows

    @property
    def n_dropped(self) -> int:
        """Rows that were dropped."""
        return self._now.n_dropped

    @property
    def n_held(self) -> int:
        """Rows in memory."""
        return self._now.n_held

    @property
    def total_weight(self) -> float:
        """Weight of all rows that arrived."""
        return self._now.total_weight

    @property
    def levels(self) -> tuple[int, ...]:
        """Levels that hold a coreset, the highest first."""
        return self._now.levels

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
    ) -> CoresetStream:
        """Add rows to the stream.

        Parameters
        ----------
        X : array-like of shape (n, d), path, or iterator
            Any X of `daskcoreset.build`, or an iterator of batches. A batch is such an X, or a
            tuple ``(X, y)`` or ``(X, y, sample_weight)``. Paths are read by this process. Blocks of
            a Dask array are computed on the cluster if there is one.
        y : array-like of shape (n,), or str, optional
            Labels, for all rows of the stream or for none.
        sample_weight : array-like of shape (n,), or str, optional
            Weights of the rows. Default: ones.

        Returns
        -------
        CoresetStream
            The stream itself.

        Raises
        ------
        InvalidInputError, InvalidTypeError
            If rows cannot be used, or do not fit the rows before. No row of data in memory is
            added. Data out of core are added block by block, and iterators batch by batch, up to
            the bad block. `n_rows` then has the number of rows that were added.
        StoreError
            If the stream could not be saved. The batch was not added. After an interrupt during the
            save, such as Ctrl-C, `n_rows` shows whether it was added. If the store cannot be read,
            `n_rows` raises this error.
        """
        batches, options = ReadOptions.of(X)
        if isinstance(batches, Iterator):
            if y is not None or sample_weight is not None:
                raise InvalidInputError(
                    "X is an iterator of batches, so y and sample_weight must come with each batch",
                    argument="X",
                    remedy="yield tuples (X, y) or (X, y, sample_weight)",
                )
            for batch in batches:
                rows, *beside = batch if isinstance(batch, tuple) else (batch,)
                self.partial_fit(rows if batches is X else Rows(rows, options), *beside)
            return self
        settings, start, known = self._settings, 0, self._now.schema
        given = "a stream", (X, y, sample_weight), settings, known
        blocks, schema = persistence.opened(*given)
        if blocks.are_views and blocks.n_blocks > 1:  # one block, which is checked as a whole
            blocks, schema = persistence.opened(*given, chunks=blocks.n_rows or 1)
        blocks.check_method(settings.method)
        if known is not None:
            schema = known.followed_by(schema)
        for results in read_blocks(blocks, settings.method):
            if results.invalid is not None:
                _, invalid = results.invalid
                raise invalid.error(start)
            state = self._now.add(results.value, results.n_rows, schema, settings)
            if settings.save_every is None or state.n_unsaved < settings.save_every:
                self._last = state
            else:  # if it cannot be saved, the rows were not taken
                self._save(state)
            start += results.n_rows
        return self

    def _save(self, state: StreamState) -> None:
        assert state.root is not None  # noqa: S101 - it has a place
        values = {name: getattr(state, name) for name in _COUNTERS}
        values["schema"] = state.schema and asdict(state.schema)
        files = persistence.state_files(_STATE, values, state.parts)
        name = state.root.name_for(files)
        # One state more than is needed, for who is reading it.
        self._commit(replace(state, n_unsaved=0), name, 2, {name: files})

    def rows(self) -> WeightedPoints:
        """Return all rows in memory with their weights. A coreset is drawn from them.

        Raises
        ------
        InvalidInputError
            If the stream has no rows.
        """
        if self.n_rows == self.n_dropped:
            raise InvalidInputError("the stream has no rows yet", remedy="call partial_fit first")
        return concatenate_parts([*chain(*self._now.nodes, self._now.waiting)])

    def coreset(self, *, normalize: bool | None = None) -> Coreset:
        """Return a coreset of all rows so far. The stream does not change.

        Parameters
        ----------
        normalize : bool, optional
            Whether to scale the weights to the total weight of the rows. Default: as in `draw`.

        Returns
        -------
        Coreset

        Raises
        ------
        InvalidInputError
            If the stream has no rows of positive weight.
        """
        rows, state, settings = self.rows(), self._now, self._settings
        facts = {
            "strategy": "stream",
            "leaf_size": settings.leaf_size,
            "levels": 1 + max(state.levels, default=-1),
        }
        n, schema = state.n_rows - state.n_dropped, state.schema
        assert schema is not None  # noqa: S101 - rows came
        weight = state.total_weight
        data = DataFacts(n, state.n_dropped, weight, None, schema.columns, schema.metric)
        return settings.coreset_of_parts([rows], state.n_rows, data, facts, normalize)

    @about_argument("path")
    def save(
        self,
        path: Location | None = None,
        *,
        overwrite: bool = False,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Save the state of the stream. The write is complete or not made.

        Parameters
        ----------
        path : path, URL or zarr.storage.ObjectStore, optional
            A folder on a disk or in an object store, which becomes a Zarr group. Default: the place
            of the last save or load. The old state stays there until the new one is complete.
        overwrite : bool, default=False
            Whether to replace another stream at `path`.
        storage_options : mapping, optional
            As in `daskcoreset.CoresetTree.create`.

        Raises
        ------
        StoreError
            If something else is there, another process has saved there since, or the disk or the
            object store refused. The stored state is unchanged.
        InvalidInputError
            If there was no save before, and `path` is missing.
        """
        state = self._now
        place = state.place
        if path is not None:
            place = place_at("path", path, *_LAYOUT, storage_options)
        if place is None:
            raise InvalidInputError(
                "path is missing, and the stream was never saved",
                argument="path",
                remedy="pass a path",
            )
        if state.place is not None and place.folder == state.place.folder:
            self._save(state)
        else:
            self._save_new(place, overwrite=overwrite)

    def _save_new(self, place: Place, *, overwrite: bool) -> None:
        remedy = (
            "CoresetStream.load goes on with a stream that is there, or choose another path, or "
            "save with overwrite=True"
        )
        check_flag("overwrite", overwrite)
        values, state = persistence.settings_values(self._settings), self._now
        root = place.draft(values, remedy, overwrite=overwrite)
        # It goes on being saved where it was first.
        saved = self if state.place is None else copy(self)
        saved._save(replace(state, place=place, root=root))  # noqa: SLF001 - its own class

    @classmethod
    @about_argument("path")
    def load(
        cls,
        path: Location,
        method: Any = None,
        *,
        storage_options: Mapping[str, Any] | None = None,
    ) -> CoresetStream:
        """Load a stream. It continues as if it had never stopped.

        Parameters
        ----------
        path : path, URL or zarr.storage.ObjectStore
            The place of the last save. A stream with a `store` keeps saving there.
        method : str, Sensitivity or Reducer, optional
            The method of the stream. Pass it if it is your own reducer, or has parameters that JSON
            cannot hold.
        storage_options : mapping, optional
            As in `daskcoreset.CoresetTree.create`.

        Returns
        -------
        CoresetStream

        Raises
        ------
        StoreError
            If nothing is at `path`, or it is damaged or of another version.
        InvalidInputError
            If `method` is needed or differs.
        """
        place = place_at("path", path, *_LAYOUT, storage_options)
        state = place.newest(partial(StreamState.read, place))
        assert state.root is not None  # noqa: S101 - it was read
        loaded = cls.__new__(cls)
        settings = persistence.settings_from(state.root.settings, place.name, method)
        Kept.__init__(loaded, settings, state)
        return loaded
