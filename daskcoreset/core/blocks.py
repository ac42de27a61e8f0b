"""Blocks of rows, the first invalid row of a block, and labels of blocks."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from functools import cache, cached_property
from threading import Lock
from typing import Any, Literal, TypeVar

import numpy as np

from daskcoreset.core.boxes import Box
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.linalg import (
    first_nonfinite_row,
    row_sums,
    rows_at,
    unit_rows,
)
from daskcoreset.core.tables import counted
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Metric, Points
from daskcoreset.core.validation import a_type, column_shown, is_real, without_mask

T = TypeVar("T")

# What weighted squared distances of one block may add up to: a hundred million blocks, and four
# times as much about a far center, still have a sum that float64 holds.
_LARGEST_SUM = 1e300

# Below it weights are to blame where a sum is too large, above it the value.
_LARGEST_VALUE = 1e140


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
    """

    points: Points
    weights: FloatArray
    labels: AnyArray | None = None
    rows: IndexArray | None = None

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
        return labels, *_classes_of(labels)

    @cached_property
    def class_totals(self) -> tuple[IndexArray, FloatArray]:
        """Rows of positive weight of every class of `coded`, and their weight."""
        _, classes, codes = self.coded
        masses = np.bincount(codes, self.weights, len(classes)).astype(np.float64)
        counts = np.bincount(codes, self.weights > 0.0, len(classes)).astype(np.int64)
        return counts, masses

    @property
    def class_order(self) -> IndexArray:
        """Positions of the rows class by class, in each as they stand."""
        _, classes, codes = self.coded
        # Bytes are sorted by counting.
        narrow = np.min_scalar_type(len(classes))
        return self.once("class order", lambda: np.argsort(codes.astype(narrow), kind="stable"))

    def once(self, key: Hashable, find: Callable[[], T]) -> T:
        """Return what `find` finds out about the rows: once, for all constructions at work on them.

        Parameters
        ----------
        key : hashable
            The finding, and all that it depends on beside the rows.
        find : callable
            Who asks meanwhile waits.

        Examples
        --------
        >>> block = Block(np.zeros((2, 1)), np.ones(2))
        >>> block.once("weight", block.weights.sum), block.once("weight", lambda: 0.0)
        (np.float64(2.0), np.float64(2.0))
        """
        found: dict[Hashable, T] = self.__dict__.setdefault("_found", {})
        locks: dict[Hashable, Lock] = self.__dict__.setdefault("_locks", {})
        with locks.setdefault(key, Lock()):
            if key not in found:
                found[key] = find()
            return found[key]

    def number_of(self, position: int) -> int:
        """Return the number of a row in the block that the rows came from."""
        return int(position if self.rows is None else self.rows[position])

    def take(self, positions: IndexArray) -> Block:
        """Return the rows at `positions`, numbered as in the block they came from."""
        return Block(
            rows_at(self.points, positions),
            self.weights[positions],
            None if self.labels is None else plain_labels(self.labels[positions]),
            positions if self.rows is None else self.rows[positions],
        )

    def part(self, rows: slice) -> Block:
        """Return neighbouring rows, as views of dense ones."""
        return Block(
            self.points[rows],
            self.weights[rows],
            None if self.labels is None else self.labels[rows],
            None if self.rows is None else self.rows[rows],
        )

    def all_rows(self) -> Block:
        """Return the block with its rows numbered, in new memory."""
        return self if self.rows is not None else self.take(np.arange(len(self)))

    def numbered(self) -> Block:
        """Return the block with its rows numbered, as views."""
        if self.rows is not None:
            return self
        labels = None if self.labels is None else plain_labels(self.labels)
        return Block(self.points, self.weights, labels, np.arange(len(self)))


def concatenate(blocks: Sequence[Block]) -> Block:
    """Put blocks, whose rows are numbered, after one another."""
    if len(blocks) == 1:
        return blocks[0]
    parts = [block.points for block in blocks]
    points: Any
    if all(isinstance(part, np.ndarray) for part in parts):
        points = np.concatenate(parts)
    else:
        import scipy.sparse as sp

        # Dask does not always know that blocks are sparse, and some may be dense.
        points = sp.csr_array(sp.vstack([sp.csr_array(part) for part in parts], format="csr"))
    return Block(
        points,
        np.concatenate([block.weights for block in blocks]),
        _joined([block.labels for block in blocks]),
        _joined([block.rows for block in blocks]),
    )


def _joined(parts: Sequence[AnyArray | None]) -> AnyArray | None:
    present = [part for part in parts if part is not None]
    return np.concatenate(present) if len(present) == len(parts) else None


@dataclass(frozen=True)
class InvalidRow:
    """The first invalid row of a block, and what is wrong with it.

    Attributes
    ----------
    problem : str
        ``{row}`` in it is replaced by the place of the row.
    row : int or None
    argument : str
        The argument that it is about.
    remedy : str or None
    """

    problem: str
    row: int | None = None
    argument: str = "X"
    remedy: str | None = None

    def error(self, offset: int) -> InvalidInputError:
        """Return the error, with the row counted from the start of the data."""
        return self.error_at("" if self.row is None else f" at row {self.row + offset}")

    def error_at(self, where: str) -> InvalidInputError:
        """Return the error, with words for where the row is."""
        problem = self.problem.format(row=where)
        return InvalidInputError(problem, argument=self.argument, remedy=self.remedy)

    def within(self, box: Box) -> InvalidRow:
        """Return the same, in words of the dimensions of the block that it is in."""
        if self.row is None:
            return self
        problem = self.problem.format(row=f" at {box.describe(self.row)}")
        return replace(self, problem=problem.replace("{", "{{").replace("}", "}}"), row=None)


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
        if self.box is None or not isinstance(value, InvalidRow):
            return value
        return value.within(self.box)

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


def validate_block(
    X: Any,
    y: Any,
    sample_weight: Any,
    schema: BlockSchema,
    *,
    index: int = 0,
    size: int | None = None,
) -> ReadBlock:
    """Convert the arrays of one block to the form that the constructions expect.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Dense, masked or sparse, any real dtype.
    y, sample_weight : array-like of shape (n,) or None
    schema : BlockSchema
    index : int, default=0
        Which block it is.
    size : int or None, default=None
        Rows that the block was declared to have, where that is known before reading.

    Returns
    -------
    ReadBlock
        Problems are returned, not raised: blocks finish in any order, and the first bad
        row of the whole data set is known only at the root.

    """
    n_rows = int(X.shape[0])
    problem = _misshapen(X, {"y": y, "sample_weight": sample_weight}, schema, index, size)
    if problem is not None:
        return ReadBlock(n_rows, None, problem)
    inexact = first_of(
        find_inexact(X, schema.columns), find_inexact_value("sample_weight", sample_weight)
    )
    # Numbers too large for the dtype become infinite, which is found and reported.
    with np.errstate(over="ignore", invalid="ignore"):
        weights = np.ones(n_rows)
        if sample_weight is not None:
            weights = _plain(sample_weight, np.dtype(np.float64))
        points = _as_points(X, schema.dtype)
        problem = None if sample_weight is None else find_bad_weight(weights)
        if problem is not None and schema.on_invalid == "drop":
            # Rows that are left out need no weight: masks of land are often in the weights, too.
            weights = np.where(_rows_with(points, np.isfinite), weights, 0.0)
            problem = find_bad_weight(weights)
    labels = None if y is None else np.asarray(y)
    if schema.class_weight and labels is not None:
        weights = weights * _of_classes(labels, schema.class_weight)
    lengths = None
    if schema.metric == "cosine":
        points, lengths = unit_rows(points)
    block = Block(points, weights, labels)
    if problem is None:
        block, problem = _usable_rows(block, schema, lengths)
    if problem is None and labels is not None and labels.dtype.kind in "OT":
        kept = labels if block.rows is None else labels[block.rows]
        # As text it would be a class of its own; a missing number stays NaN, which is none.
        problem = find_missing_label(kept, block.rows) or find_date(labels)
    problem = first_of(inexact, problem)
    return ReadBlock(n_rows, None if problem else block, problem)


def _misshapen(
    X: Any, vectors: Mapping[str, Any], schema: BlockSchema, index: int, size: int | None
) -> InvalidRow | None:
    """Return what does not fit together in the shapes and masks of a block; or None."""
    n_rows = int(X.shape[0])
    if X.ndim != 2 or X.shape[1] != schema.n_features:
        shapes = (
            f"X has a block of shape {tuple(X.shape)} where {schema.n_features} columns are "
            f"expected, block {index}"
        )
        return InvalidRow(shapes, remedy="make its chunks agree with its shape")
    if size is not None and n_rows != size:
        return InvalidRow(
            f"X has {counted(n_rows, 'row')} in block {index}, whose chunk declares {size}",
            remedy="make the chunks of X agree with its blocks",
        )
    for name, part in vectors.items():
        if part is not None and part.shape != (n_rows,):
            return _mismatch(name, part.shape, n_rows, index)
    return find_masked_label(vectors["y"])


def find_no_array(parts: Mapping[str, Any], index: int) -> InvalidRow | None:
    """Return the part of a block that is not an array, or has too few dimensions, or None.

    Functions that make the blocks of a Dask array may return anything: lists, None, numbers.

    Parameters
    ----------
    parts : mapping of str to object
        "X", and "y" and "sample_weight" where given.
    index : int
        Which block it is, for the error.

    Examples
    --------
    >>> find_no_array({"X": [[1.0, 2.0]]}, 3).problem
    'X has a list in place of an array in block 3'
    """
    for name, part in parts.items():
        shape = getattr(part, "shape", None)
        if not isinstance(shape, tuple) or (name == "X" and not shape):
            return InvalidRow(
                f"{name} has {a_type(part)} in place of an array in block {index}",
                argument=name,
                remedy="return numpy.asarray of it there",
            )
    return None


def find_undeclared_dtype(
    parts: Mapping[str, Any], schema: BlockSchema, index: int
) -> InvalidRow | None:
    """Return the part of a block whose dtype is not the declared one and changes values, or None.

    That is a part that holds no numbers where numbers were declared, or the reverse for labels;
    and an X that the declared dtype, widened to float32 or float64, does not hold, such as
    float64 where float32 was declared. Other dtypes pass, for no value is changed by them, and
    arrays made of data frames often declare int64 and hold float64.

    Parameters
    ----------
    parts : mapping of str to array-like
        "X", and "y" and "sample_weight" where given.
    schema : BlockSchema
    index : int
        Which block it is, for the error.
    """
    for name, part in parts.items():
        dtype = getattr(part, "dtype", None)
        if not isinstance(dtype, np.dtype):  # of pandas
            dtype = np.asarray(part).dtype
        number = is_real(dtype)
        fits = schema.text_labels in (None, not number) if name == "y" else number
        if name == "X" and number:
            fits = promoted_dtype(dtype).itemsize <= schema.dtype.itemsize
        if not fits:
            return InvalidRow(
                f"{name} has dtype {dtype} in block {index}, which is not the dtype that {name} "
                f"declares, and its values would change",
                argument=name,
                remedy=f"convert its blocks, for example with {name}.map_blocks(lambda block: "
                f"block.astype({name}.dtype))",
            )
    return None


def _of_classes(labels: AnyArray, class_weight: tuple[tuple[Any, float], ...]) -> FloatArray:
    factors, plain = np.ones(len(labels)), plain_labels(labels)
    for label, factor in class_weight:
        factors[plain == as_label(label, plain)] = factor
    return factors


def as_label(label: Any, plain: AnyArray) -> Any:
    """Return a label as plain labels have it: as text if they are text."""
    return _text(label) if plain.dtype.kind == "U" else label


def _mismatch(name: str, shape: tuple[int, ...], n_rows: int, index: int) -> InvalidRow:
    return InvalidRow(
        f"in block {index} {name} has a block of shape {shape} beside a block of X with {n_rows} "
        f"rows",
        argument=name,
        remedy=f"give {name} one entry per row of X, in the same chunks",
    )


def _as_points(X: Any, dtype: np.dtype[Any]) -> Points:
    if hasattr(X, "tocsr"):
        import scipy.sparse as sp

        sparse = sp.csr_array(X.tocsr(), dtype=dtype)
        if not sparse.has_canonical_format:
            sparse = sparse.copy()  # what follows works in place, and the input is the user's
            sparse.sum_duplicates()
        return sparse
    return _plain(X, dtype)


def _plain(array: Any, dtype: np.dtype[Any]) -> AnyArray:
    """Return numbers in plain memory. Masked ones become NaN, which is found and reported."""
    if (
        type(array) is np.ndarray
        and array.dtype == dtype
        and array.flags.c_contiguous
        and array.flags.aligned
    ):
        return array
    array = without_mask(array)
    # asarray turns pandas blocks, subclasses and foreign byte orders into plain memory.
    plain = np.asarray(array)
    return np.require(plain, dtype, ["C", "A"])


# float64 holds every whole number up to it.
EXACT = 2**53


def find_inexact(X: Any, columns: Sequence[str] | None = None) -> InvalidRow | None:
    """Return the first integer of rows that float64 does not hold, or None.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Dense or sparse, of any dtype.
    columns : sequence of str or None, default=None
        Names of the columns.

    Examples
    --------
    >>> find_inexact(np.array([[1], [2**53 + 1]]), ["id"]).row
    1
    """
    if hasattr(X, "tocsr"):
        if X.dtype.kind not in "iu":
            return None
        part = X.tocsr()
        first = _first_inexact(part.data)
        if first is None:
            return None
        row = int(np.searchsorted(part.indptr, first, "right")) - 1
        name = f"X in {column_shown(int(part.indices[first]), columns)}"
        return inexact_error(name, part.data[first], row)
    values = np.ma.filled(X, 0) if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
    place = _first_inexact(values)
    if place is None:
        return None
    row, column = divmod(place, values.shape[1])
    return inexact_error(f"X in {column_shown(column, columns)}", values[row, column], row)


def find_inexact_value(name: str, values: Any) -> InvalidRow | None:
    """Return the first integer of a vector that float64 does not hold, or None.

    Parameters
    ----------
    name : str
        The argument, or the column that they are.
    values : array-like of shape (n,) or None

    Examples
    --------
    >>> find_inexact_value("y", np.array([2**53, 2**53 + 1])).row
    1
    """
    if values is None:
        return None
    plain = np.ma.filled(values, 0) if isinstance(values, np.ma.MaskedArray) else values
    plain = np.asarray(plain)
    place = _first_inexact(plain)
    return None if place is None else inexact_error(name, plain[place], place)


def _first_inexact(values: AnyArray) -> int | None:
    """Return the place, in C order, of the first integer that float64 does not hold."""
    if values.dtype == object:  # estimators make numbers of objects, as scikit-learn does
        return next((place for place, each in enumerate(values.flat) if _is_inexact(each)), None)
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or not values.size:
        return None
    # The extremes clear the usual case.
    if values.min() >= -EXACT and values.max() <= EXACT:
        return None
    values = values.ravel()
    sizes = np.where(values < 0, -values, values).astype(np.uint64)
    last_bits = sizes & (~sizes + np.uint64(1))
    inexact = sizes // np.maximum(last_bits, np.uint64(1)) >= np.uint64(EXACT)
    return int(inexact.argmax()) if inexact.any() else None


def _is_inexact(value: Any) -> bool:
    """Whether an object is an integer of more bits than float64 holds."""
    if not isinstance(value, (int, np.integer)):
        return False
    size = abs(int(value))
    return size // max(size & -size, 1) >= EXACT


def inexact_error(name: str, value: Any, row: int | None = None) -> InvalidRow:
    """Return the error of an integer that float64 does not hold.

    Parameters
    ----------
    name : str
        The argument, or the column.
    value : int
    row : int or None, default=None
    """
    shown_name = name.replace("{", "{{").replace("}", "}}")
    return InvalidRow(
        f"{shown_name} is {value}{{row}}, an integer that float64 cannot hold exactly",
        row,
        name,
        "subtract an offset, such as the smallest value, or leave out what only identifies rows",
    )


def plain_labels(labels: AnyArray) -> AnyArray:
    """Bring labels to NumPy's numbers or text, the form in which a coreset keeps them.

    Examples
    --------
    >>> plain_labels(np.array([b"no", "yes"], dtype=object))
    array(['no', 'yes'], dtype='<U3')
    """
    if labels.dtype.kind in "OST":
        return np.array([_text(label) for label in labels.tolist()], dtype=str)
    if labels.dtype.kind == "f" and labels.dtype.itemsize > 8:
        return labels.astype(np.float64)
    return labels


def find_masked_label(labels: Any) -> InvalidRow | None:
    """Return the first label that is masked, or None."""
    if not np.ma.is_masked(labels):
        return None
    masked = int(np.ma.getmaskarray(labels).argmax())
    return InvalidRow("y is masked{row}", masked, "y", "fill what is masked, or drop such rows")


def find_missing_label(labels: AnyArray, rows: IndexArray | None = None) -> InvalidRow | None:
    """Return the first label that is None, NaN or infinite. None without such a label.

    Parameters
    ----------
    labels : ndarray of shape (n,)
    rows : ndarray of shape (n,), int64, or None
        Numbers of the rows. From zero on where there are none.

    Examples
    --------
    >>> find_missing_label(np.array([1.0, np.nan])).row
    1
    """
    bad = _missing(labels)
    if not bad.any():
        return None
    row = int(bad.argmax())
    number = row if rows is None else int(rows[row])
    remedy = "drop such rows, or label them (on_invalid is about X)"
    return InvalidRow("y is missing or not finite{row}", number, "y", remedy)


def find_date(labels: AnyArray) -> InvalidRow | None:
    """Return the first label of an array of objects that is a date, a time or a span; or None.

    Their text depends on the way they come.

    Examples
    --------
    >>> find_date(np.array(["a", dt.date(2024, 1, 1)], dtype=object)).row
    1
    """
    kinds = {kind for kind in set(map(type, labels.tolist())) if _is_date(kind)}
    for row, label in enumerate(labels.tolist() if kinds else ()):
        if type(label) in kinds:
            return InvalidRow(
                f"y must hold numbers or text, found {a_type(label)}{{row}}",
                row,
                "y",
                "convert it, for example with y.astype(str)",
            )
    return None


_DATES = (
    dt.date,
    dt.time,
    dt.timedelta,
    np.datetime64,
    np.timedelta64,
)


def _is_date(kind: type) -> bool:
    if kind.__name__ == "NaTType":  # missing
        return False
    module = kind.__module__.partition(".")[0]
    return issubclass(kind, _DATES) or kind.__name__ == "Period" or module == "cftime"


# One look at the types clears the usual case, at a tenth of the time.
_NEVER_MISSING = {str, bytes, int, bool}


def _missing(labels: AnyArray) -> Any:
    if labels.dtype.kind == "f":
        return ~np.isfinite(labels)
    if labels.dtype.kind in "OT":
        listed = labels.tolist()
        if set(map(type, listed)) <= _NEVER_MISSING:
            return np.zeros(len(listed), dtype=bool)
        return np.array([_is_missing(label) for label in listed], dtype=bool)
    if labels.dtype.kind in "mM":
        return np.isnat(labels)
    return np.zeros(len(labels), dtype=bool)


def _is_missing(label: Any) -> bool:
    if isinstance(label, (float, np.floating, Decimal)):
        return math.isnan(label)
    if isinstance(label, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(label))
    # pandas' own words for it, which compare with nothing; pandas need not be installed.
    return label is None or type(label).__name__ in {"NAType", "NaTType"}


def _text(label: Any) -> str:
    # HDF5 and older formats hold text as bytes.
    return label.decode("utf-8", "backslashreplace") if isinstance(label, bytes) else str(label)


def find_bad_weight(weights: FloatArray) -> InvalidRow | None:
    """Return the first weight that is negative or no number, or None."""
    # One sum clears the usual case; NaN fails every comparison.
    if not len(weights) or (np.isfinite(weights.sum()) and weights.min() >= 0):
        return None
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if not len(bad):
        return InvalidRow(
            "sample_weight sums to infinity", argument="sample_weight", remedy="scale it down"
        )
    problem = f"sample_weight is {weights[bad[0]]}{{row}}"
    remedy = "pass weights that are finite and not negative"
    return InvalidRow(problem, int(bad[0]), "sample_weight", remedy)


def no_weight_error() -> InvalidInputError:
    """Say that no row has a weight."""
    return InvalidInputError(
        "sample_weight is zero on every row",
        argument="sample_weight",
        remedy="give at least one row a positive weight",
    )


def _usable_rows(
    block: Block, schema: BlockSchema, lengths: FloatArray | None
) -> tuple[Block, InvalidRow | None]:
    invalid = find_unusable_row(block.points, block.weights, columns=schema.columns)
    if lengths is not None:
        invalid = first_of(invalid, find_zero_row(lengths, block.weights))
    if invalid is None or schema.on_invalid == "raise":
        return block, invalid
    kept = finite_rows(block.points)
    if lengths is not None:
        kept = kept[lengths[kept] > 0.0]
    if len(kept) == len(block):
        return block, invalid
    block = block.take(kept)
    invalid = find_unusable_row(block.points, block.weights, columns=schema.columns)
    # Of the rows that are left: numbered as in the block that was read.
    return block, None if invalid is None else replace(invalid, row=int(kept[invalid.row or 0]))


def find_zero_row(lengths: FloatArray, weights: FloatArray) -> InvalidRow | None:
    """Return the first row of positive weight that has no direction, or None.

    Parameters
    ----------
    lengths : ndarray of shape (n,), float64
        As `daskcoreset.core.linalg.unit_rows` returns them.
    weights : ndarray of shape (n,), float64

    Examples
    --------
    >>> find_zero_row(np.array([1.0, 0.0]), np.ones(2)).row
    1
    """
    zeros = np.flatnonzero((lengths == 0.0) & (weights > 0.0))
    if not len(zeros):
        return None
    problem = "X is zero in all columns{row}, which has no direction by the metric cosine"
    return InvalidRow(problem, int(zeros[0]), remedy=_REMEDY)


def first_of(one: InvalidRow | None, other: InvalidRow | None) -> InvalidRow | None:
    """Return the one of two problems whose row comes first."""
    if one is None or other is None:
        return one or other
    return min(one, other, key=lambda problem: problem.row or 0)


# What to do with rows that are not finite, for callers of every kind: a task knows none of them.
_REMEDY = (
    'clean the data, or pass on_invalid="drop" to build, to the estimator, or to the tree or '
    "stream when you create it (predictions need finite rows)"
)


def largest_value(weight: float, n_features: int) -> np.float64:
    """Return the largest value that rows of a weight in total may have. See `find_unusable_row`."""
    # Of NumPy's kind, since a float32 that is compared with a plain number would cast it.
    return np.float64(math.sqrt(_LARGEST_SUM / n_features / weight))


def _limit(weights: FloatArray, n_features: int) -> np.float64:
    return largest_value(max(1.0, float(weights.sum())), n_features)


def find_unusable_row(
    points: Points,
    weights: FloatArray,
    *,
    remedy: str = _REMEDY,
    columns: Sequence[str] | None = None,
    name: str = "X",
) -> InvalidRow | None:
    r"""Return the first row whose squared distances overflow or are not numbers, or None.

    That is a row with NaN or infinity; or one of positive weight with a value x such that
    :math:`U d x^2` is beyond float64, U the weight of all the rows or one, if that is more.
    For ordinary weights that is some :math:`10^{146}`.

    Parameters
    ----------
    points : ndarray of shape (n, d) or csr_array
    weights : ndarray of shape (n,), float64
    remedy : str
        Remedy for a row that is not finite, if the caller is known.
    columns : sequence of str or None, default=None
        Names of the columns.
    name : str, default="X"
        The argument that holds the rows.

    Examples
    --------
    >>> find_unusable_row(np.array([[1e100], [1e200]]), np.ones(2)).row
    1
    """
    values: Any = points if isinstance(points, np.ndarray) else points.data
    limit = _limit(weights, points.shape[1])
    # One look clears the usual case; a row without weight may hold any number.
    if first_nonfinite_row(values if values.ndim == 2 else values[:, np.newaxis], limit) < 0:
        return None
    usable = _rows_with(points, lambda x: abs(x) <= limit)
    usable |= (weights == 0.0) & _rows_with(points, np.isfinite)
    if usable.all():
        return None
    first = int(usable.argmin())
    part: Any = points[[first]]
    row = (part if isinstance(part, np.ndarray) else part.toarray())[0].astype(np.float64)
    column = int((~(abs(row) <= limit)).argmax())
    # The message is a format: what is in the name stands for itself.
    where = column_shown(column, columns).replace("{", "{{").replace("}", "}}")
    where = "" if name == "y" else f" in {where}"
    problem = f"{name} is {row[column]}{where}{{row}}"
    if not np.isfinite(row[column]):
        # The words of scikit-learn, which others look for.
        found = "NaN" if np.isnan(row[column]) else f"infinity ({row[column]})"
        problem = f"Input {name} contains {found}{where}{{row}}"
    elif abs(row[column]) > _LARGEST_VALUE:
        problem += ", and of values so large squared distances overflow"
        remedy = (
            "scale the columns, for example with sklearn.preprocessing.MaxAbsScaler, or clean the "
            "data"
        )
    else:
        problem += (
            f", where sample_weight sums to {weights.sum():g}, and weighted squared distances "
            f"overflow"
        )
        remedy = "scale sample_weight down"
    return InvalidRow(problem, first, name, remedy)


def _rows_with(points: Any, holds: Callable[[Any], Any]) -> Any:
    """Rows all of whose values pass a test that zero passes."""
    if isinstance(points, np.ndarray):
        return holds(points).all(axis=1)
    return row_sums(points, ~holds(points.data)) == 0


# Classes at most. More are likely numbers to be regressed on, or names of rows.
MAX_CLASSES = 256

# The same where a class costs no more than a problem of its own.
MAX_LABELS = 10_000


def finite_rows(points: Any) -> IndexArray:
    """Return the numbers of the rows without NaN or infinity.

    Examples
    --------
    >>> finite_rows(np.array([[1.0], [np.nan], [2.0]]))
    array([0, 2])
    """
    return np.flatnonzero(_rows_with(points, np.isfinite))


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


# Whole numbers of so small a range are looked up in a table, a tenth of the time of sorting.
_TABLE = 2**16


def _classes_of(labels: AnyArray) -> tuple[AnyArray, IndexArray]:
    """Sorted classes, and the place of every label among them."""
    if labels.dtype.kind in "biuf" and len(labels):
        low, high = labels.min().item(), labels.max().item()
        # What float64 holds as a whole number; NaN is in no range.
        if abs(low) < 2**53 and high - low < _TABLE:
            whole = labels.astype(np.int64, copy=False)
            if labels.dtype.kind != "f" or (whole == labels).all():
                codes = whole - int(low)
                used = np.bincount(codes) > 0
                classes = (np.flatnonzero(used) + int(low)).astype(labels.dtype)
                return classes, codes if used.all() else (np.cumsum(used) - 1)[codes]
    classes = np.unique(labels)
    return classes, np.searchsorted(classes, labels).astype(np.int64, copy=False)


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
    missing = find_missing_label(block.labels, block.rows)
    if missing is not None:
        return missing
    if len(block.coded[1]) > MAX_CLASSES:
        return InvalidRow(
            f"y holds more than {MAX_CLASSES} different labels",
            argument="y",
            remedy="pass classes, not numbers",
        )
    return None


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
    broken = np.flatnonzero(labels != np.floor(labels))
    if not len(broken):
        return None
    row = int(broken[0])
    return InvalidRow(
        f"y is {labels[row]}{{row}}, a number and no class: a regression target has no labels",
        block.number_of(row),
        "y",
        "pass classes, for example y > y.mean(), or a method without labels",
    )


def check_classes(classes: AnyArray, n_rows: int) -> None:
    """Check that there are at least two classes, and that most have more than one row.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        Labels of the rows with a positive weight.
    n_rows : int
        Such rows.

    Raises
    ------
    InvalidInputError
        If there is one class, or more than 16, and fewer than two rows to each.
    """
    if len(classes) < 2:
        raise InvalidInputError(
            f"y holds one class only, {classes[:1].tolist()}, among the rows with a positive "
            "weight, and a classifier needs two",
            argument="y",
            remedy="pass rows of both, whose sample_weight and class_weight are not zero",
        )
    if len(classes) > 16 and 2 * len(classes) > n_rows:
        raise InvalidInputError(
            f"y holds {len(classes)} different labels for {n_rows} rows: these are names of "
            "rows, or numbers to be regressed on",
            argument="y",
            remedy="pass classes of several rows",
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
