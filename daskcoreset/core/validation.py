"""Checks of parameters: integers, numbers, choices, sizes."""

from __future__ import annotations

import numbers
from collections.abc import Container, Iterable, Mapping, Sequence
from difflib import get_close_matches
from types import NoneType
from typing import Any, TypeGuard

import numpy as np

from daskcoreset.core.typing import FloatArray
from daskcoreset.errors import InvalidInputError, InvalidTypeError

# Names that a remedy lists at most.
_MAX_NAMES = 50


def without_mask(array: Any) -> Any:
    """Return an array of NumPy, or a list of such rows, without masks: what is masked is NaN.

    Examples
    --------
    >>> without_mask(np.ma.masked_array([1, 2], [False, True]))
    array([ 1., nan])
    """
    if isinstance(array, (list, tuple)) and any(
        isinstance(row, np.ma.MaskedArray) for row in array
    ):
        array = np.ma.array(array)
    if not isinstance(array, np.ma.MaskedArray):
        return array
    plain: Any = array
    if np.ma.is_masked(array) and array.dtype.kind in "biufO":
        if array.dtype.kind != "O":
            plain = plain.astype(np.result_type(array.dtype, np.float16))
        plain = plain.filled(np.nan)
    return np.asarray(plain)


def shown(value: Any) -> str:
    """Describe a value that an error names, in one short line, whatever it is.

    Examples
    --------
    >>> shown("x" * 1000)[-12:], shown([1, 2])
    ('xxxxxxxxx...', '[1, 2]')
    """
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - of an object that does not print
        return a_type(value)
    text = " ".join(text.split())
    return text if len(text) <= 100 else f"{text[:97]}..."


def check_type(name: str, value: Any, kinds: Any, remedy: str) -> None:
    """Check that a value is an instance of a type, or of one of several.

    Examples
    --------
    >>> check_type("draw", 3, str, "pass text")
    Traceback (most recent call last):
    ...
    daskcoreset.errors.InvalidTypeError: draw is 3; pass text.
    """
    if not isinstance(value, kinds):
        raise InvalidTypeError(f"{name} is {shown(value)}", argument=name, remedy=remedy)


def columns_error(
    found: Sequence[str], expected: Sequence[str], owner: str, *, selects: bool = False
) -> InvalidInputError:
    """Return the error of other columns in X than the owner has.

    `selects` tells whether `open_rows` selects columns of X.

    Examples
    --------
    >>> print(columns_error(["b", "a"], ["a", "b"], "the fit", selects=True))
    X has the columns of the fit in another order; pass open_rows(X, columns=['a', 'b']).
    >>> print(columns_error(["a", "c"], ["a"], "the fit", selects=True))
    X has columns that the fit has not: ['c']; pass open_rows(X, columns=['a']).
    """
    more, names = [name for name in found if name not in {*expected}], [*expected]
    if not selects or not {*expected} <= {*found}:
        problem = f"X has the columns {shown([*found])}, and {owner} has {shown(names)}"
        return InvalidInputError(problem, argument="X", remedy="select these, in this order")
    problem = f"X has the columns of {owner} in another order"
    if more:
        problem = f"X has columns that {owner} has not: {shown(more)}"
    remedy = f"pass open_rows(X, columns={names if len(names) <= _MAX_NAMES else 'names'})"
    return InvalidInputError(problem, argument="X", remedy=remedy)


def unused_name(name: str, taken: Container[Any]) -> str:
    """Return a name, with underscores added until it is free.

    Examples
    --------
    >>> unused_name("weight", {"weight", "weight_"})
    'weight__'
    """
    while name in taken:
        name += "_"
    return name


def column_shown(column: int, names: Sequence[str] | None) -> str:
    """Return a column for a message: by its number, and its name where it has one.

    Examples
    --------
    >>> column_shown(1, ["age", "size"]), column_shown(1, None), column_shown(1, ["0", "1"])
    ("column 1 ('size')", 'column 1', 'column 1')
    """
    name = None if names is None else names[column]
    return f"column {column}" if name in (None, str(column)) else f"column {column} ({name!r})"


def a_type(value: Any) -> str:
    """Name the type of a value, with an article.

    Examples
    --------
    >>> a_type([]), a_type(1), a_type(np.ones(2))
    ('a list', 'an int', 'an ndarray')
    """
    name = type(value).__name__
    return f"{'an' if name.startswith((*'aeioAEIO', 'nd')) else 'a'} {name}"


def n_dims(name: str, value: Any) -> int:
    """Return the dimensions of an array-like, which lists of different lengths have not."""
    try:
        return int(np.ndim(value))
    except (TypeError, ValueError) as error:
        raise InvalidTypeError(
            f"{name} is {shown(value)}, which is no array ({error})",
            argument=name,
            remedy="pass an array",
        ) from error


def as_numbers(name: str, value: Any, remedy: str = "pass an array of numbers") -> FloatArray:
    """Return a new array of float64 numbers of any shape. What is masked is NaN.

    Examples
    --------
    >>> as_numbers("start", ["a"])
    Traceback (most recent call last):
    ...
    daskcoreset.errors.InvalidTypeError: start is ['a'], which holds no numbers (...
    """
    try:
        array = np.asarray(without_mask(value))
        return array.astype(np.float64, casting="unsafe" if array.dtype == object else "same_kind")
    except Exception as error:  # whatever an object raises that says it is an array
        raise InvalidTypeError(
            f"{name} is {shown(value)}, which holds no numbers ({error})",
            argument=name,
            remedy=remedy,
        ) from error


def is_int(value: Any) -> TypeGuard[int]:
    """Whether a value is an integer.

    Neither a flag is one nor a span of time, which NumPy counts among its integers.

    Examples
    --------
    >>> is_int(np.int8(3)), is_int(True), is_int(np.timedelta64(3, "s"))
    (True, False, False)
    """
    return isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.timedelta64))


def is_number(value: Any) -> bool:
    """Whether a value is a real number; booleans are not."""
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.timedelta64))


def check_options(storage_options: Any) -> None:
    """Check that the options of a file system are a mapping or None. Their values are not shown."""
    if not isinstance(storage_options, (Mapping, NoneType)):
        raise InvalidTypeError(
            f"storage_options is {a_type(storage_options)}",
            argument="storage_options",
            remedy="pass a dict of the names and values that the file system takes, such as "
            '{"anon": True}',
        )


def is_choice(value: Any, choices: Iterable[str]) -> bool:
    """Whether a value is one of some strings; arrays are not."""
    return isinstance(value, str) and value in choices


def as_int(
    name: str,
    value: Any,
    minimum: int = 1,
    remedy: str = "pass more",
    *,
    maximum: int | None = None,
) -> int:
    """Return an integer of at least `minimum` and at most `maximum`.

    Examples
    --------
    >>> as_int("bins", 0)
    Traceback (most recent call last):
    ...
    daskcoreset.errors.InvalidInputError: bins must be at least 1, got 0; pass more.
    """
    if not is_int(value):
        raise InvalidTypeError(
            f"{name} must be an integer, got {shown(value)}", argument=name, remedy="pass an int"
        )
    if value < minimum:
        raise InvalidInputError(
            f"{name} must be at least {minimum}, got {value}", argument=name, remedy=remedy
        )
    if maximum is not None and value > maximum:
        raise InvalidInputError(
            f"{name} must be at most {maximum:,}, got {value}", argument=name, remedy="pass less"
        )
    return int(value)


def as_float(
    name: str,
    value: Any,
    example: str = "0.1",
    *,
    minimum: float = 0.0,
    maximum: float = 1.0,
    closed: bool = False,
) -> float:
    """Return a finite number above `minimum` and below `maximum`, or one of them if `closed`."""
    if not is_number(value):
        raise InvalidTypeError(
            f"{name} must be a number, got {shown(value)}", argument=name, remedy="pass a float"
        )
    number = float(value)
    at_end = number in (minimum, maximum) and not closed
    if at_end or not (minimum <= number <= maximum and np.isfinite(number)):
        raise InvalidInputError(
            f"{name} must lie between {minimum:g} and {maximum:g}, got {value}",
            argument=name,
            remedy=f"pass for example {example}",
        )
    return number


def suggestion(value: Any, choices: Iterable[str]) -> str:
    """Return a question that names the most similar choice, or nothing.

    Examples
    --------
    >>> suggestion("k-means", ["kmeans", "uniform"]), suggestion("svd", ["kmeans"])
    (' (did you mean "kmeans"?)', '')
    """
    plain = {choice.replace("_", ""): choice for choice in choices}
    written = str(value).lower().replace("-", "").replace("_", "").replace(" ", "")
    similar = get_close_matches(written, plain, 1) if isinstance(value, str) else []
    return f' (did you mean "{plain[similar[0]]}"?)' if similar else ""


def check_choice(name: str, value: Any, *choices: str) -> None:
    """Check that a value is one of some strings.

    Examples
    --------
    >>> check_choice("on", "drops", "drop", "keep")
    Traceback (most recent call last):
    ...
    daskcoreset.errors.InvalidInputError: on is 'drops' (did you mean "drop"?); pass ...
    """
    if not is_choice(value, choices):
        *others, last = (f'"{choice}"' for choice in choices)
        raise InvalidInputError(
            f"{name} is {shown(value)}{suggestion(value, choices)}",
            argument=name,
            remedy=f"pass {', '.join(others)} or {last}" if others else f"pass {last}",
        )


def check_flag(name: str, value: Any) -> None:
    """Check that a value is a bool: text and numbers would pass for one.

    Examples
    --------
    >>> check_flag("compute", "no")
    Traceback (most recent call last):
    ...
    daskcoreset.errors.InvalidTypeError: compute is 'no'; pass True or False.
    """
    check_type(name, value, (bool, np.bool_), "pass True or False")
