"""Leaves of a stored tree: their table, and rows that are read once and reduced."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex, overload

import numpy as np

from daskcoreset.constructions.sampling.messages import check_report
from daskcoreset.constructions.tree.job import Settings, TreeJob
from daskcoreset.constructions.tree.persistence import Data, RowSchema, opened
from daskcoreset.constructions.tree.shape import Part, digest_of, level_of, shape_of
from daskcoreset.constructions.tree.windows import kind_of_time
from daskcoreset.core.linalg import one_thread
from daskcoreset.core.messages import import_optional
from daskcoreset.core.points import WeightedPoints, to_arrays
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.tables import text_table
from daskcoreset.core.typing import IndexArray
from daskcoreset.core.validation import n_dims, shown
from daskcoreset.errors import InvalidInputError
from daskcoreset.execution.engine import Engine

if TYPE_CHECKING:
    import pandas as pd

# Bits of a stored row number that count rows of the leaf; the rest count the leaves of the node.
ROW_BITS = 40

_COLUMNS = ("name", "rows", "time", "weight")


@dataclass(frozen=True)
class Leaf:
    """A line of the table of leaves.

    Attributes
    ----------
    name : str
    rows : int
        Rows of its data, dropped rows included.
    time : str or None
        The time passed to `CoresetTree.append`, in ISO 8601 for dates and times.
    weight : float
        Total weight of its data.
    n_dropped : int
        Rows with NaN or infinity that were dropped.
    node : str
        Name of its node, by a digest of its name and coreset.
    fingerprint : str or None
        Fingerprint of the part of a source that it has the rows of. Without one it is always read.
    """

    name: str
    rows: int
    time: str | None
    weight: float
    n_dropped: int = 0
    node: str = field(default="", repr=False, compare=False)
    fingerprint: str | None = field(default=None, repr=False, compare=False)


class LeafTable(tuple[Leaf, ...]):  # noqa: SLOT001 - positions of names are kept
    """The leaves of a tree, in their order, printed as a table.

    Examples
    --------
    >>> table = LeafTable([Leaf("monday", 10, None, 10.0), Leaf("tuesday", 5, None, 5.0)])
    >>> table.names, table["tuesday"].rows, len(table)
    (['monday', 'tuesday'], 5, 2)
    >>> "tuesday" in table
    True
    >>> print(table)
    name     rows  time  weight
    monday     10  -         10
    tuesday     5  -          5
    """

    @overload
    def __getitem__(self, index: SupportsIndex | str) -> Leaf: ...

    @overload
    def __getitem__(self, index: slice) -> LeafTable: ...

    def __getitem__(self, index: SupportsIndex | str | slice) -> Leaf | LeafTable:
        if isinstance(index, slice):
            return LeafTable(super().__getitem__(index))
        return super().__getitem__(self.position(index) if isinstance(index, str) else index)

    def __contains__(self, leaf: object) -> bool:
        return leaf in self._positions if isinstance(leaf, str) else super().__contains__(leaf)

    def __repr__(self) -> str:
        rows = [(x.name, f"{x.rows}", x.time or "-", f"{x.weight:.6g}") for x in self]
        return "\n".join(text_table([_COLUMNS, *rows], left_columns=(0, 2)))

    @property
    def names(self) -> list[str]:
        """Names of the leaves."""
        return [leaf.name for leaf in self]

    @property
    def offsets(self) -> list[int]:
        """Number of the first row of every leaf, counted over all leaves before it."""
        return list(accumulate((leaf.rows for leaf in self), initial=0))[:-1]

    def position(self, name: object) -> int:
        """Return the position of a leaf. An error names leaves that exist.

        Raises
        ------
        InvalidInputError
            If there is none of this name.
        """
        if not isinstance(name, str) or name not in self._positions:
            names = ", ".join(map(repr, self.names[-5:])) or "none"
            raise InvalidInputError(
                f"there is no leaf {shown(name)}",
                argument="leaf",
                remedy=f"pass one of those in tree.leaves, such as {names}",
            )
        return self._positions[name]

    @cached_property
    def shape(self) -> Part | None:
        """The nodes above the leaves. None without leaves."""
        if not self:
            return None
        return shape_of(self.levels, [leaf.node for leaf in self])

    @property
    def levels(self) -> list[int]:
        """Levels at which the leaves begin groups."""
        return [level_of(leaf.name) for leaf in self]

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {leaf.name: position for position, leaf in enumerate(self)}

    def to_dataframe(self) -> pd.DataFrame:
        """Return the table as a DataFrame.

        Raises
        ------
        MissingDependencyError
            pandas is not installed.
        """
        columns = [column.name for column in fields(Leaf) if column.compare]
        rows = [asdict(leaf) for leaf in self]
        frame: pd.DataFrame = import_optional("pandas").DataFrame(rows, None, columns)
        return frame

    def locate(self, indices: IndexArray) -> tuple[list[str], IndexArray]:
        """Return the name of the leaf of every row number, and the row's number in it.

        Raises
        ------
        InvalidInputError
            If a number is beyond the rows of all leaves, or is not a row number.
        """
        is_vector, numbers = n_dims("indices", indices) == 1, np.asarray(indices)
        offsets, total = np.array(self.offsets, dtype=np.int64), sum(leaf.rows for leaf in self)
        if not is_vector or (
            len(numbers)
            and not (numbers.dtype.kind in "iu" and 0 <= numbers.min() <= numbers.max() < total)
        ):
            raise InvalidInputError(
                f"indices is {shown(indices)}, and the leaves have {total} rows",
                argument="indices",
                remedy="pass row numbers, such as the indices of a coreset of this version",
            )
        numbers = numbers.astype(np.int64)
        positions = np.searchsorted(offsets, numbers, side="right") - 1
        names = self.names
        return [names[position] for position in positions.tolist()], numbers - offsets[positions]


def time_text(time: Any, leaves: Iterable[Leaf] = ()) -> str | None:
    """Return the time of a leaf as text.

    Parameters
    ----------
    time : str, date, datetime, number, array of one of these, or None
    leaves : iterable of Leaf, optional
        The others, whose times are of the same kind, so that they can be compared.

    Examples
    --------
    >>> time_text(dt.date(2026, 3, 1)), time_text(np.datetime64("2026-03-01T12"))
    ('2026-03-01', '2026-03-01T12')
    """
    if time is None:
        return None
    text = time.isoformat() if isinstance(time, dt.date) else str(time)  # a datetime is a date
    kind = kind_of_time(text)
    if kind is None:
        raise InvalidInputError(
            f"time is {shown(time)}, which is neither a date nor a number",
            argument="time",
            remedy='pass a date or time of ISO 8601, such as "2026-03-02", or a number',
        )
    for leaf in leaves:
        if leaf.time is not None and (other := kind_of_time(leaf.time)) != kind:
            raise InvalidInputError(
                f"time is {text!r}, a {kind}, and that of leaf {leaf.name!r} is {leaf.time!r}, a "
                f"{other}",
                argument="time",
                remedy="pass times of one kind, so that they can be compared",
            )
    return text


# --- reading ------------------------------------------------------------------------------


class LeafRows(NamedTuple):
    """The data of a leaf that were read.

    Attributes
    ----------
    leaf : Leaf
        Without its node yet.
    points : WeightedPoints
        Its coreset, row numbers counted from its first row.
    schema : RowSchema
        Schema of the rows as they came.
    nbytes : int
        Bytes of the rows once decoded.
    """

    leaf: Leaf
    points: WeightedPoints
    schema: RowSchema
    nbytes: int

    def fit(self, known: RowSchema | None) -> tuple[Leaf, WeightedPoints, RowSchema]:
        """Return the leaf, its node, and the schema of a tree that has it as well.

        Raises
        ------
        InvalidInputError
            The rows do not fit the others.
        """
        schema = self.schema if known is None else known.followed_by(self.schema)
        points, schema = schema.fit(self.points)
        leaf = replace(self.leaf, node=f"leaf-{content_digest(self.leaf.name, points)}")
        return leaf, points, schema


def read_leaf(
    leaf: Leaf,
    data: Data,
    settings: Settings,
    known: RowSchema | None,
    progress: bool | None = False,
) -> LeafRows:
    """Read rows once, and reduce them.

    Parameters
    ----------
    leaf : Leaf
        Its name addresses the random numbers.
    data : tuple
        X, y and sample_weight.
    settings : Settings
        Settings of the tree.
    known : RowSchema or None
        Schema of the leaves before. Rows of another one are refused before they are read.
    progress : bool or None, default=False
    """
    blocks, schema = opened("a stored tree", data, settings, known)
    if known is not None:
        known.check(schema)
    rng = stream(settings.seed, Stage.TREE_LEAVES, int(digest_of(leaf.name), 16), 0)
    settings = replace(settings, seed=int(rng.integers(2**63)))
    job = TreeJob(blocks, settings)
    engine = Engine.immediate(blocks, job.split_every)
    results = engine.compute(job.read(engine), progress)
    if results.invalid is not None or results.value.weight:  # a leaf may have no usable rows
        check_report(results)
    node = results.value
    leaf = replace(
        leaf, rows=node.read, weight=node.weight, n_dropped=results.n_rows - results.n_kept
    )
    with one_thread():
        points = settings.reducer.finish(node.points, settings.inner_size, settings.rng_of(node))
    return LeafRows(leaf, points, schema, blocks.stored_bytes or 0)


def content_digest(name: str, points: WeightedPoints) -> str:
    """Return 32 hexadecimal digits that identify a leaf's name and coreset, bit by bit.

    Examples
    --------
    >>> points = WeightedPoints(np.eye(2), np.ones(2), np.arange(2))
    >>> content_digest("a", points) == content_digest("b", points)
    False
    """
    arrays, _, layout = to_arrays(points)
    digest = hashlib.blake2b(repr((name, layout)).encode(), digest_size=16)
    for key in sorted(arrays):
        array = np.ascontiguousarray(arrays[key])
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        digest.update(repr((key, little.dtype.str, little.shape)).encode())
        digest.update(little.tobytes())
    return digest.hexdigest()
