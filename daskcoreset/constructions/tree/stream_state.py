"""The state of a stream: its buckets, its unreduced rows, and its saved form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from daskcoreset.constructions.tree.job import concatenate_parts, weighted_points
from daskcoreset.constructions.tree.persistence import (
    Settings,
    commit,
    folder_of,
    inside,
    newest,
    read_points,
    sweep,
    write_points,
)
from daskcoreset.constructions.tree.schema import RowSchema
from daskcoreset.core.atomic import new_directory
from daskcoreset.core.errors import InvalidInputError, StoreError
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.storage import read_group, write_group
from daskcoreset.core.validation import check_flag
from daskcoreset.execution.engine import read_block, tree_reduce
from daskcoreset.inputs.blocks import RowBlocks, row_blocks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from daskcoreset.constructions.tree.reducer import Reducer
    from daskcoreset.core.blocks import ReadBlock


@dataclass(frozen=True)
class Growth:
    """How buckets grow.

    Attributes
    ----------
    reducer : Reducer
    leaf_size, inner_size : int
    seed : int
    """

    reducer: Reducer
    leaf_size: int
    inner_size: int
    seed: int

    def reduce(self, points: WeightedPoints, level: int, position: int) -> WeightedPoints:
        """Reduce what a node holds; `position` counts the nodes of its level."""
        rng = stream(self.seed, Stage.TREE, position, level)
        return self.reducer.reduce(points, self.inner_size, rng)


@dataclass(frozen=True, eq=False)
class Waiting:
    """Rows that do not fill a leaf yet, in order.

    Parts at least double in size from the last to the first, so that rows which come one by
    one are copied a logarithmic number of times and held in few arrays.

    Attributes
    ----------
    parts : tuple of WeightedPoints
    """

    parts: tuple[WeightedPoints, ...] = ()

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    def add(self, points: WeightedPoints) -> Waiting:
        """Return these rows and further ones."""
        if not len(points):
            return self
        # Copied: a slice would keep all of a large batch, and the user may write into it.
        last, parts = _copied(points), self.parts
        while parts and len(parts[-1]) < 2 * len(last):
            last, parts = concatenate_parts([parts[-1], last]), parts[:-1]
        return Waiting((*parts, last))


def _copied(points: WeightedPoints) -> WeightedPoints:
    labels = None if points.labels is None else points.labels.copy()
    return WeightedPoints(
        points.points.copy(), points.weights.copy(), points.indices.copy(), labels
    )


@dataclass(frozen=True, eq=False)
class Buckets:
    """The state of a stream after some rows; immutable.

    Attributes
    ----------
    levels : tuple of int
        Levels that hold a coreset, the highest, which is the oldest, first.
    held : tuple of WeightedPoints
        Their coresets.
    waiting : Waiting
    n_leaves : int
        Leaves filled so far.
    weight : float
        Total weight of their rows.
    """

    levels: tuple[int, ...] = ()
    held: tuple[WeightedPoints, ...] = ()
    waiting: Waiting = Waiting()
    n_leaves: int = 0
    weight: float = 0.0

    @property
    def n_held(self) -> int:
        """Rows held in all."""
        return sum(len(part) for part in self.held) + len(self.waiting)

    @property
    def total_weight(self) -> float:
        """Total weight of all rows that came."""
        # Of the rows as one array: summed part by part it would tell how they came.
        return self.weight + (self._rows().total_weight if self.waiting.parts else 0.0)

    def add(self, points: WeightedPoints, growth: Growth) -> Buckets:
        """Return the state after further rows."""
        state, start = self, 0
        while len(state.waiting) + len(points) - start >= growth.leaf_size:
            stop = start + growth.leaf_size - len(state.waiting)
            rest = points.take(slice(start, stop))
            leaf = concatenate_parts([*state.waiting.parts, rest])
            state, start = state._filled(leaf, growth), stop
        return replace(state, waiting=state.waiting.add(points.take(slice(start, None))))

    def _filled(self, leaf: WeightedPoints, growth: Growth) -> Buckets:
        levels, held, level, position = self.levels, self.held, 0, self.n_leaves
        carried = growth.reduce(leaf, level, position)
        while levels and levels[-1] == level:
            level, position = level + 1, position // 2
            carried = growth.reduce(concatenate_parts([held[-1], carried]), level, position)
            levels, held = levels[:-1], held[:-1]
        return Buckets(
            (*levels, level),
            (*held, carried),
            n_leaves=self.n_leaves + 1,
            weight=self.weight + leaf.total_weight,
        )

    def _rows(self) -> WeightedPoints:
        return concatenate_parts(self.waiting.parts)

    def parts(self) -> list[WeightedPoints]:
        """Return all that is held, the oldest rows first."""
        return [*self.held, *([self._rows()] if self.waiting.parts else [])]


@dataclass(frozen=True, eq=False)
class StreamState:
    """A stream after some rows; immutable, so that a batch is taken wholly or not at all.

    Attributes
    ----------
    buckets : Buckets
    form : RowSchema or None
        None before the first row.
    n_rows, n_dropped : int
        Rows that came, and those of them that were left out.
    """

    buckets: Buckets = field(default_factory=Buckets)
    form: RowSchema | None = None
    n_rows: int = 0
    n_dropped: int = 0

    @property
    def n_kept(self) -> int:
        """Rows that came and were not left out."""
        return self.n_rows - self.n_dropped

    def agree(self, blocks: RowBlocks, growth: Growth) -> RowSchema:
        """Return the form of the rows to come, or say what is wrong with them."""
        found = RowSchema.of(blocks)
        if growth.reducer.needs_labels and not found.has_labels:
            raise InvalidInputError(f"method {growth.reducer.name!r} needs labels; pass y.")
        d = blocks.schema.n_features
        blocks.refuse(growth.reducer.name, growth.reducer.too_much(growth.leaf_size, d))
        if self.form is None:
            return found
        self.form.check(found)
        return self.form

    def add(self, rows: ReadBlock, start: int, form: RowSchema, growth: Growth) -> StreamState:
        """Return the state after a block of rows; `start` of its batch were before it."""
        problem = rows.problem
        if rows.block is not None and problem is None:
            problem = growth.reducer.problem(rows.block)
        if problem is not None:
            raise problem.error(start)
        assert rows.block is not None  # noqa: S101 - there is one without a problem
        points, form = form.fit(weighted_points(rows.block, self.n_rows))
        return StreamState(
            self.buckets.add(points, growth),
            form,
            self.n_rows + rows.read,
            self.n_dropped + rows.read - len(points),
        )


def open_batch(
    X: Any, y: Any, sample_weight: Any, on_invalid: Literal["raise", "drop"]
) -> RowBlocks:
    """Open a batch; data in memory become one block, which is checked as a whole."""
    blocks = row_blocks(X, y, sample_weight, on_invalid=on_invalid)
    if blocks.are_views and blocks.n_blocks > 1:
        rows = blocks.n_rows or 1
        blocks = row_blocks(X, y, sample_weight, chunks=rows, on_invalid=on_invalid)
    return blocks


def read_ahead(blocks: RowBlocks) -> Iterator[ReadBlock]:
    """Read the blocks in order, one ahead of the one that is used."""
    if blocks.n_blocks == 1:
        yield _read_rows(blocks, 0)
        return
    with ThreadPoolExecutor(1, "coreset-stream") as reader:
        ahead = reader.submit(_read_rows, blocks, 0)
        for i in range(blocks.n_blocks):
            rows = ahead.result()
            if i + 1 < blocks.n_blocks:
                ahead = reader.submit(_read_rows, blocks, i + 1)
            yield rows


def _read_rows(blocks: RowBlocks, i: int) -> ReadBlock:
    if not blocks.arrays:
        return read_block(blocks.specs[i], {}, blocks.schema)
    return tree_reduce(blocks.select([i]), _same, _only).compute()


def _same(rows: ReadBlock, broadcast: object) -> ReadBlock:
    del broadcast
    return rows


def _only(parts: Sequence[ReadBlock]) -> ReadBlock:
    (rows,) = parts
    return rows


SCHEMA_VERSION = 1

"""Version of the layout of a stored stream; one higher whenever an older reader would fail."""

_KIND = "coreset-stream"

_STATE = "coreset-stream-state"


@dataclass(frozen=True)
class SavedStream:
    """Where a stream is kept, and the version of its state that was written or read last.

    Attributes
    ----------
    path : Path
    version : int
    """

    path: Path
    version: int

    @classmethod
    def create(
        cls, path: Path, settings: Settings, state: StreamState, *, overwrite: bool
    ) -> SavedStream:
        """Make the folder, complete or not at all."""

        def may_replace() -> bool:
            if not path.exists() or (path.is_dir() and not any(path.iterdir())):
                return False
            check_flag("overwrite", overwrite)
            if not overwrite:
                msg = f"{path} exists; CoresetStream.load goes on with a stream that is there, or "
                raise StoreError(f"{msg}choose another path, or save with overwrite=True")
            read_group(path, kind=_KIND, schema_version=SCHEMA_VERSION)  # or refuse what it is
            return True

        may_replace()
        try:
            with new_directory(path, may_replace=may_replace) as scratch:
                kinds: Any = {"kind": _KIND, "schema_version": SCHEMA_VERSION}
                write_group(inside(scratch), {}, {}, settings.write(), **kinds)
                commit(scratch / "states", 1, _writer(state))
        except StoreError:
            raise
        except OSError as error:
            msg = f"could not write {path}: {error}; nothing there was changed"
            raise StoreError(msg) from error
        return cls(path, 1)

    @classmethod
    def open(cls, path: Path, method: Any) -> tuple[SavedStream, Settings, StreamState]:
        """Read the newest state, or refuse what is there."""
        _, attributes = read_group(path, kind=_KIND, schema_version=SCHEMA_VERSION)
        settings = Settings.read(str(path), attributes, method)
        version = newest(path / "states")
        if not version:
            raise StoreError(f"{path}: its states are missing; restore it from a copy")
        return cls(path, version), settings, _read(folder_of(path / "states", version))

    def write(self, state: StreamState) -> SavedStream:
        """Write a further state; the one before stays until this one is complete."""
        version = self.version + 1
        commit(self.path / "states", version, _writer(state))
        # One more than is needed, for who is reading it.
        sweep(self.path / "states", lambda number, _: number >= version - 1)
        return SavedStream(self.path, version)


def _writer(state: StreamState) -> Callable[[Path], None]:
    buckets, form = state.buckets, state.form
    waiting = [concatenate_parts(buckets.waiting.parts)] if buckets.waiting.parts else []
    said = {
        "levels": list(buckets.levels),
        "n_leaves": buckets.n_leaves,
        "weight": buckets.weight,
        "n_rows": state.n_rows,
        "n_dropped": state.n_dropped,
        "form": None if form is None else form.write(),
    }

    def fill(path: Path) -> None:
        parts = [*buckets.held, *waiting]
        write_points(path, parts, said, kind=_STATE, schema_version=SCHEMA_VERSION)

    return fill


def _read(path: Path) -> StreamState:
    parts, said = read_points(path, kind=_STATE, schema_version=SCHEMA_VERSION)
    try:
        form = None if said["form"] is None else RowSchema.read(said["form"])
        levels = tuple(int(level) for level in said["levels"])
        if len(parts) - len(levels) not in (0, 1) or sorted(levels, reverse=True) != [*levels]:
            raise ValueError(f"{len(parts)} parts on levels {levels}")  # noqa: TRY301
        waiting = Waiting(tuple(parts[len(levels) :]))
        held = tuple(parts[: len(levels)])
        buckets = Buckets(levels, held, waiting, said["n_leaves"], said["weight"])
        return StreamState(buckets, form, said["n_rows"], said["n_dropped"])
    except (KeyError, TypeError, ValueError) as error:
        msg = f"{path}: not consistent ({error!r}); restore it from a copy"
        raise StoreError(msg) from error
