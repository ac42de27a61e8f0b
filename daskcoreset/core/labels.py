"""Labels of rows: in one form, those that cannot be used, and classes."""

from __future__ import annotations

import math
from decimal import Decimal
from numbers import Number
from typing import Any

import numpy as np

from daskcoreset.core.invalid import InvalidRow
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.core.validation import a_type
from daskcoreset.errors import InvalidInputError

# Classes at most. More are likely numbers to be regressed on, or names of rows.
MAX_CLASSES = 256

# The same if a class costs no more than a problem of its own.
MAX_LABELS = 10_000

# One look at the types clears the usual case, at a tenth of the time.
_NEVER_MISSING = {str, bytes, int, bool}

# Whole numbers of so small a range are looked up in a table, a tenth of the time of sorting.
_TABLE = 2**16


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


def _text(label: Any) -> str:
    # HDF5 and older formats hold text as bytes.
    return label.decode("utf-8", "backslashreplace") if isinstance(label, bytes) else str(label)


def as_label(label: Any, plain: AnyArray) -> Any:
    """Return a label as plain labels have it: as text if they are text."""
    return _text(label) if plain.dtype.kind == "U" else label


def class_factors(labels: AnyArray, class_weight: tuple[tuple[Any, float], ...]) -> FloatArray:
    """Return the factor of every row, by its label. One for labels without a factor."""
    factors, plain = np.ones(len(labels)), plain_labels(labels)
    for label, factor in class_weight:
        factors[plain == as_label(label, plain)] = factor
    return factors


# --- labels that cannot be used -----------------------------------------------------------


def find_masked_label(labels: Any) -> InvalidRow | None:
    """Return the first label that is masked, or None."""
    if not np.ma.is_masked(labels):
        return None
    masked = int(np.ma.getmaskarray(labels).argmax())
    return InvalidRow("y is masked{row}", masked, "y", "fill what is masked, or drop such rows")


def find_unusable_label(labels: AnyArray, rows: IndexArray | None = None) -> InvalidRow | None:
    """Return the first label that is missing, or neither a number nor text; or None.

    Parameters
    ----------
    labels : ndarray of shape (n,)
    rows : ndarray of shape (n,), int64, or None
        Numbers of the rows. From zero on if there are none.

    Examples
    --------
    >>> find_unusable_label(np.array([1.0, np.nan])).row
    1
    """
    missing, other = _missing(labels), None
    if missing.any():
        problem, row = "y is missing or not finite{row}", int(missing.argmax())
        remedy = "drop such rows, or label them (on_invalid is about X)"
    elif labels.dtype == object and (other := _neither_number_nor_text(labels)) is not None:
        problem, row = f"y must hold numbers or text, found {a_type(labels[other])}{{row}}", other
        remedy = "convert it, for example with y.astype(str)"
    else:
        return None
    return InvalidRow(problem, row if rows is None else int(rows[row]), "y", remedy)


def _missing(labels: AnyArray) -> Any:
    if labels.dtype.kind == "f":
        return ~np.isfinite(labels)
    if labels.dtype.kind in "mM":
        return np.isnat(labels)
    listed = labels.tolist() if labels.dtype.kind in "OT" else []
    if set(map(type, listed)) <= _NEVER_MISSING:
        return np.zeros(len(labels), dtype=bool)
    return np.array([_is_missing(label) for label in listed], dtype=bool)


def _is_missing(label: Any) -> bool:
    if isinstance(label, (float, np.floating, Decimal)):
        return math.isnan(label)
    if isinstance(label, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(label))
    # pandas' own words for it, which compare with nothing; pandas need not be installed.
    return label is None or type(label).__name__ in {"NAType", "NaTType"}


def _neither_number_nor_text(labels: AnyArray) -> int | None:
    """Return the first such label. The text of dates depends on the way they come."""
    listed = labels.tolist()
    kinds = {
        kind
        for kind in set(map(type, listed))
        if not issubclass(kind, (str, bytes, Number, np.bool_)) or issubclass(kind, np.timedelta64)
    }
    return next((row for row, label in enumerate(listed) if type(label) in kinds), None)


# --- classes ------------------------------------------------------------------------------


def classes_of(labels: AnyArray) -> tuple[AnyArray, IndexArray]:
    """Return the classes of plain labels, sorted, and the place of every label among them."""
    if labels.dtype.kind in "biu" and len(labels):
        low, high = int(labels.min()), int(labels.max())
        if high - low < _TABLE and abs(low) < 2**62:
            codes = labels.astype(np.int64, copy=False) - low
            used = np.bincount(codes) > 0
            classes = (np.flatnonzero(used) + low).astype(labels.dtype)
            return classes, codes if used.all() else (np.cumsum(used) - 1)[codes]
    classes = np.unique(labels)
    return classes, np.searchsorted(classes, labels).astype(np.int64, copy=False)


def class_order(codes: IndexArray) -> IndexArray:
    """Return the positions of rows class by class, in each as they stand."""
    narrow = np.min_scalar_type(codes.max(initial=0))  # bytes are sorted by counting
    return np.argsort(codes.astype(narrow), kind="stable")


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
