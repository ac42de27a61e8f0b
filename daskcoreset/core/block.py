"""Blocks of rows, and how what was read becomes one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from typing import Any, Literal

import numpy as np

from daskcoreset.core.invalid import (
    InvalidRow,
    find_bad_weight,
    find_inexact,
    find_unusable_row,
    find_zero_row,
    finite_rows,
    first_of,
)
from daskcoreset.core.labels import (
    LABELS,
    MAX_CLASSES,
    class_factors,
    classes_of,
    find_masked_label,
    find_unusable_label,
    plain_labels,
)
from daskcoreset.core.linalg import rows_at, unit_rows
from daskcoreset.core.points import joined, joined_points
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Metric, Points
from daskcoreset.core.validation import a_type, without_mask


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of one block.

    Attributes
    ----------
    points : ndarray of shape (n, d) or csr_array
        Finite float32 or float64, C order.
    weights : ndarray of shape (n,), float64
        Input weights u, ones where none were given.
    labels : ndarray of shape (n,) or None
        As read. Rows that are taken have theirs in NumPy's numbers or text.
    rows : ndarray of shape (n,), int64, or None
        Numbers of the rows within the block as it was read. None for all in order.
    groups : ndarray of shape (n,) or None
        Numbers or text. Neighboring rows of one group are an example of several rows.
    """

    points: Points
    weights: FloatArray
    labels: AnyArray | None = None
    rows: IndexArray | None = None
    groups: AnyArray | None = None

    def __len__(self) -> int:
        return int(self.points.shape[0])

    def __getstate__(self) -> dict[str, Any]:
        """Return the rows alone, without what was found out about them."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def coded(self) -> tuple[AnyArray, AnyArray, IndexArray]:
        """Labels in NumPy's numbers or text, their classes, sorted, and the class of every row.

        Found once, for all constructions that work on the block.
        """
        labels = labels_of(self)
        return labels, *classes_of(labels)

    @cached_property
    def class_totals(self) -> tuple[IndexArray, FloatArray]:
        """Rows of positive weight of every class of `coded`, and their weight."""
        _, classes, codes = self.coded
        masses = np.bincount(codes, self.weights, len(classes)).astype(np.float64)
        counts = np.bincount(codes, self.weights > 0.0, len(classes)).astype(np.int64)
        return counts, masses

    def number_of(self, position: int) -> int:
        """Return the number of a row in the block that the rows came from."""
        return int(position if self.rows is None else self.rows[position])

    def take(self, positions: IndexArray | slice) -> Block:
        """Return the rows at `positions`, numbered as in the block they came from."""
        rows: Any = positions if self.rows is None else self.rows[positions]
        if isinstance(rows, slice):
            rows = np.arange(len(self))[rows]
        return Block(
            rows_at(self.points, positions),
            self.weights[positions],
            None if self.labels is None else plain_labels(self.labels[positions]),
            rows,
            None if self.groups is None else self.groups[positions],
        )

    def numbered(self) -> Block:
        """Return the block with its rows numbered, as views."""
        if self.rows is not None:
            return self
        labels = None if self.labels is None else plain_labels(self.labels)
        return Block(self.points, self.weights, labels, np.arange(len(self)), self.groups)


def concatenate(blocks: Sequence[Block]) -> Block:
    """Put blocks, whose rows are numbered, after one another."""
    # An empty block may have labels of another kind, which would make text of numbers.
    blocks = [block for block in blocks if len(block)] or blocks[:1]
    if len(blocks) == 1:
        return blocks[0]
    return Block(
        joined_points([block.points for block in blocks]),
        np.concatenate([block.weights for block in blocks]),
        joined([block.labels for block in blocks]),
        joined([block.rows for block in blocks]),
        joined([block.groups for block in blocks]),
    )


def labels_of(block: Block) -> AnyArray:
    """Return the labels of a block in the form in which a coreset keeps them: numbers or text.

    Examples
    --------
    >>> labels = np.array([b"no", b"yes"], dtype=object)
    >>> labels_of(Block(np.zeros((2, 1)), np.ones(2), labels)).tolist()
    ['no', 'yes']
    """
    assert block.labels is not None  # noqa: S101 - `build` requires them
    return plain_labels(block.labels)


def find_bad_label(block: Block) -> InvalidRow | None:
    """Return the first label that cannot be a class, or None.

    Examples
    --------
    >>> find_bad_label(Block(np.zeros((2, 1)), np.ones(2), np.array([1.0, np.nan]))).row
    1
    """
    if block.labels is None:
        return InvalidRow(
            "y is missing", argument="y", remedy="pass the labels of the rows, one for each"
        )
    invalid = find_unusable_label(block.labels, block.rows)
    if invalid is None and len(block.coded[1]) > MAX_CLASSES:
        problem = f"y holds more than {MAX_CLASSES} different labels"
        return InvalidRow(problem, argument="y", remedy="pass classes, not numbers")
    return invalid


def find_bad_target(block: Block) -> InvalidRow | None:
    """Return the first label that is missing, or a number to be regressed on; or None.

    Examples
    --------
    >>> find_bad_target(Block(np.zeros((2, 1)), np.ones(2), np.array([1.0, 2.5]))).row
    1
    """
    invalid = find_bad_label(block)
    if invalid is not None:
        return invalid
    labels, classes, _ = block.coded
    if labels.dtype.kind != "f" or (classes == np.floor(classes)).all():
        return None
    row = int((labels != np.floor(labels)).argmax())
    return InvalidRow(
        f"y is {labels[row]}{{row}}, a number and no class: a regression target has no labels",
        block.number_of(row),
        "y",
        "pass classes, for example y > y.mean(), or a method without labels",
    )


def class_codes(block: Block, classes: AnyArray) -> IndexArray:
    """Return the position of every label among the sorted classes.

    Examples
    --------
    >>> block = Block(np.zeros((3, 1)), np.ones(3), np.array([5, 2, 5]))
    >>> class_codes(block, np.array([2, 5]))
    array([1, 0, 1])
    """
    _, found, codes = block.coded
    if np.array_equal(found, classes):
        return codes
    # A class whose rows are all without weight is not among the classes: its place is no matter.
    places = np.minimum(np.searchsorted(classes, found), len(classes) - 1)
    return places.astype(np.int64, copy=False)[codes]


@dataclass(frozen=True, slots=True)  # slots pickle without the names of the fields
class Box:
    """A block of an array of several dimensions, each cell of which is a row.

    Rows lie within the block in C order, and are numbered in the C order of the whole array.

    Attributes
    ----------
    dims : tuple of str
        Names of the dimensions.
    starts, lengths : tuple of int
        Start and length of the block along each dimension.
    shape : tuple of int
        Shape of the whole array.
    """

    dims: tuple[str, ...]
    starts: tuple[int, ...]
    lengths: tuple[int, ...]
    shape: tuple[int, ...]

    def __len__(self) -> int:
        return math.prod(self.lengths)

    @property
    def slices(self) -> dict[str, slice]:
        """The block, as xarray selects it by positions."""
        parts = zip(self.dims, self.starts, self.lengths, strict=True)
        return {dim: slice(start, start + length) for dim, start, length in parts}

    def numbers(self, positions: Any) -> IndexArray:
        """Return the numbers, in the whole array, of rows at positions of the block.

        Examples
        --------
        >>> Box(("y", "x"), (1, 2), (2, 2), (4, 5)).numbers([0, 1, 2])
        array([ 7,  8, 12])
        """
        places = np.unravel_index(np.asarray(positions, dtype=np.int64), self.lengths)
        moved = tuple(place + start for place, start in zip(places, self.starts, strict=True))
        return np.asarray(np.ravel_multi_index(moved, self.shape), dtype=np.int64)

    def describe(self, position: int) -> str:
        """Return where a row is, for errors.

        Examples
        --------
        >>> Box(("y", "x"), (1, 2), (2, 2), (4, 5)).describe(3)
        'row 13 (y 2, x 3)'
        """
        number = int(self.numbers(position))
        places = zip(self.dims, np.unravel_index(number, self.shape), strict=True)
        return f"row {number} ({', '.join(f'{dim} {int(place)}' for dim, place in places)})"


@dataclass(frozen=True, eq=False)
class ReadBlock:
    """A block after reading: its usable rows, or its first invalid row.

    Attributes
    ----------
    read : int
        Rows as read, before invalid ones were dropped.
    block : Block or None
    problem : InvalidRow or None
    index : int
        Which block of the data it is.
    start : int or None
        Number of its first row in the data. None where that is not known before reading.
    box : Box or None
        Its position in an array of several dimensions.
    """

    read: int
    block: Block | None
    problem: InvalidRow | None = None
    index: int = 0
    start: int | None = None
    box: Box | None = None

    def located(self, value: Any) -> Any:
        """Return a value of the block. An `InvalidRow` says where in the dimensions it is."""
        if self.box is None or not isinstance(value, InvalidRow) or value.row is None:
            return value
        return value.at(self.box.describe(value.row))

    @property
    def valid_block(self) -> Block:
        """The block, for code that runs only without a problem."""
        assert self.block is not None  # noqa: S101 - the engine has seen to it
        return self.block


# Columns that messages know by name.
_MAX_NAMED = 100


@dataclass(frozen=True, slots=True)  # slots pickle without the names of the fields
class BlockSchema:
    """Columns, dtype and treatment of invalid rows that all blocks share.

    Attributes
    ----------
    n_features : int
    dtype : numpy.dtype
        Dtype of the rows as stored. It becomes float32 or float64, see `promoted_dtype`.
    on_invalid : {"raise", "drop"}
        How to treat rows with NaN or infinity.
    class_weight : tuple of (label, float)
        Factors of the weights of rows, by their labels. One for all others.
    text_labels : bool or None
        Whether labels are declared as text or objects, or as numbers. None where nothing is known.
    metric : {"euclidean", "cosine"}
        By "cosine" rows are divided by their lengths when they are read, and those of zeros, which
        have no direction, are invalid.
    columns : tuple of str or None
        Names for messages, where there are some and not too many to go with every task.
    """

    n_features: int
    dtype: np.dtype[Any]
    on_invalid: Literal["raise", "drop"] = "raise"
    class_weight: tuple[tuple[Any, float], ...] = ()
    text_labels: bool | None = None
    metric: Metric = "euclidean"
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.columns is not None and len(self.columns) > _MAX_NAMED:
            object.__setattr__(self, "columns", None)
        object.__setattr__(self, "dtype", promoted_dtype(self.dtype))


@cache
def promoted_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return float32 where it holds every value of `dtype`, else float64.

    Examples
    --------
    >>> [promoted_dtype(np.dtype(t)).name for t in ("f2", "i2", "i8", "f4", ">f8", "?")]
    ['float32', 'float32', 'float64', 'float32', 'float64', 'float32']
    """
    wide = np.result_type(dtype, np.float32)
    return np.dtype(np.float32) if wide.itemsize == 4 else np.dtype(np.float64)


# Numbers too large for the dtype become infinite, which is found and reported.
@np.errstate(over="ignore", invalid="ignore")
def validate_block(
    parts: Mapping[str, Any], schema: BlockSchema, *, index: int = 0, size: int | None = None
) -> ReadBlock:
    """Convert the arrays of one block to the form that the constructions expect.

    Parameters
    ----------
    parts : mapping of str to object
        "X", dense, masked or sparse, and others of `RowBlocks.arrays`. A Dask array may be
        made of anything: lists, None, numbers, arrays of other shapes and dtypes.
    schema : BlockSchema
    index : int, default=0
        Which block it is.
    size : int or None, default=None
        Rows that the block was declared to have. None if that is not known before reading.

    Returns
    -------
    ReadBlock
        Problems are returned, not raised: blocks finish in any order, and the first bad
        row of the whole data set is known only at the root.
    """
    y, sample_weight = parts.get("y"), parts.get("sample_weight")
    problem = _find_misfit(parts, schema, index, size)
    if problem is not None:
        return ReadBlock(size or 0, None, problem)
    points, lengths = _as_points(parts["X"], schema.dtype), None
    n_rows = int(points.shape[0])
    labels = None if y is None else np.asarray(y)
    weights = np.ones(n_rows) if sample_weight is None else _plain(sample_weight, np.float64)
    if schema.metric == "cosine":
        points, lengths = unit_rows(points)
    groups = parts.get("groups")
    groups = None if groups is None else np.asarray(groups)
    block = Block(points, weights, labels, groups=groups)
    if schema.on_invalid == "drop":
        kept = finite_rows(points) if lengths is None else np.flatnonzero(lengths > 0.0)
        if len(kept) < n_rows:
            labels = None if labels is None else labels[kept]
            block, lengths = block.take(kept), None
    problem = None if sample_weight is None else find_bad_weight(block.weights)
    if problem is None:
        if schema.class_weight and labels is not None:
            factors = class_factors(labels, schema.class_weight)
            block = replace(block, weights=block.weights * factors)
        problem = _find_invalid(block, labels, lengths, schema)
    if problem is not None and problem.row is not None:
        problem = replace(problem, row=block.number_of(problem.row))
    return ReadBlock(n_rows, None if problem else block, problem)


def _find_invalid(
    block: Block, labels: AnyArray | None, lengths: FloatArray | None, schema: BlockSchema
) -> InvalidRow | None:
    """Return the first row without use among those that were not dropped, or None.

    The labels are as read, and the lengths there if rows were divided by them.
    """
    problem = find_unusable_row(block.points, block.weights, columns=schema.columns)
    if lengths is not None:
        problem = first_of(problem, find_zero_row(lengths, block.weights))
    if problem is None and labels is not None and labels.dtype.kind in "OT":
        # As text it would be a class of its own; a missing number stays NaN, which is none.
        problem = find_unusable_label(labels)
    if problem is None and block.groups is not None:
        problem = find_unusable_label(block.groups, name="groups")
    return problem


def _find_misfit(
    parts: Mapping[str, Any], schema: BlockSchema, index: int, size: int | None
) -> InvalidRow | None:
    """Return what of a block is not as declared, is masked, or becomes another number; or None."""
    n_rows = (getattr(parts["X"], "shape", None) or (0,))[0] if size is None else size
    problem = None
    for name, part in parts.items():
        shape = getattr(part, "shape", None)
        expected = (n_rows, schema.n_features) if name == "X" else (n_rows,)
        found, declared = None, ""
        if not isinstance(shape, tuple):
            found, declared = a_type(part), "an array"
        elif shape != expected:
            found, declared = f"shape {shape}", str(expected)
        elif not _has_declared_dtype(name, part, schema):
            found, declared = f"dtype {part.dtype}", "the dtype that it declares"
        elif name in LABELS:
            problem = problem or find_masked_label(part, name)
        else:
            problem = problem or find_inexact(name, part, schema.columns)
        if found is not None:
            return InvalidRow(
                f"{name} has {found} in block {index}, in place of {declared}",
                argument=name,
                remedy=f"make the blocks of {name} arrays as it declares, and agree with X",
            )
    return problem


def _has_declared_dtype(name: str, part: Any, schema: BlockSchema) -> bool:
    """Whether no value changes: float64 in place of float32 does, float64 for int64 does not."""
    dtype = part.dtype
    if not isinstance(dtype, np.dtype):  # of pandas
        dtype = np.asarray(part).dtype
    number = dtype.kind in "biuf"
    if name == "groups":
        return True
    if name == "y":
        return schema.text_labels in (None, not number)
    return number and (name != "X" or promoted_dtype(dtype).itemsize <= schema.dtype.itemsize)


def _as_points(X: Any, dtype: np.dtype[Any]) -> Points:
    if hasattr(X, "tocsr"):
        import scipy.sparse as sp

        sparse = sp.csr_array(X.tocsr(), dtype=dtype)
        if not sparse.has_canonical_format:
            sparse = sparse.copy()  # what follows works in place, and the input is the user's
            sparse.sum_duplicates()
        return sparse
    return _plain(X, dtype)


def _plain(array: Any, dtype: Any) -> AnyArray:
    """Return numbers in plain memory. Masked ones become NaN, which is found and reported."""
    # asarray turns pandas blocks, subclasses and foreign byte orders into plain memory.
    return np.require(np.asarray(without_mask(array)), dtype, ["C", "A"])
