"""Labels of rows: in one form, those that cannot be used, and classes."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np

from daskcoreset.core.invalid import InvalidRow, first_failing
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.core.validation import a_type
from daskcoreset.errors import InvalidInputError

# Arguments that hold numbers or text.
LABELS = ("y", "groups")

# Classes at most. More are likely numbers to be regressed on, or names of rows.
MAX_CLASSES = 256

# The same if a class costs no more than a problem of its own.
MAX_LABELS = 10_000

# One look at the types clears the usual case, at a tenth of the time.
_ALWAYS_USABLE = {str, bytes, int, bool}

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


def find_masked_label(labels: Any, name: str = "y") -> InvalidRow | None:
    """Return the first label that is masked, or None."""
    if not np.ma.is_masked(labels):
        return None
    masked = int(np.ma.getmaskarray(labels).argmax())
    remedy = "fill what is masked, or drop such rows"
    return InvalidRow(f"{name} is masked{{row}}", masked, name, remedy)


def find_unusable_label(
    labels: AnyArray, rows: IndexArray | None = None, name: str = "y"
) -> InvalidRow | None:
    """Return the first label that is missing, or neither a number nor text; or None.

    Parameters
    ----------
    labels : ndarray of shape (n,)
    rows : ndarray of shape (n,), int64, or None
        Numbers of the rows. From zero on if there are none.
    name : str, default="y"
        The argument, for errors.

    Examples
    --------
    >>> find_unusable_label(np.array([1.0, np.nan])).row
    1
    """
    if labels.dtype.kind not in "fOT":
        return None
    found = first_failing(labels, np.isfinite if labels.dtype.kind == "f" else _are_usable)
    if found is None:
        return None
    row, _, label = found
    if labels.dtype.kind == "f" or _is_missing(label):
        problem = f"{name} is missing or not finite{{row}}"
        remedy = "drop such rows, or label them (on_invalid is about X)"
    else:
        problem = f"{name} must hold numbers or text, found {a_type(label)}{{row}}"
        remedy = f"convert it, for example with {name}.astype(str)"
    return InvalidRow(problem, row if rows is None else int(rows[row]), name, remedy)


def _are_usable(labels: AnyArray) -> Any:
    listed = labels.tolist()
    if set(map(type, listed)) <= _ALWAYS_USABLE:
        return np.ones(len(listed), dtype=bool)
    return np.array([_is_usable(label) for label in listed], dtype=bool)


def _is_usable(label: Any) -> bool:
    """Whether a label is a number or text. The text of dates depends on the way they come."""
    is_span = isinstance(label, np.timedelta64)  # to NumPy a number
    return isinstance(label, (str, bytes, Number, np.bool_)) and not (is_span or _is_missing(label))


def _is_missing(label: Any) -> bool:
    # pandas' own words for it compare with nothing; pandas need not be installed.
    if label is None or type(label).__name__ in {"NAType", "NaTType"}:
        return True
    return isinstance(label, (Number, np.generic)) and bool(label != label)  # noqa: PLR0124 - NaN


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
