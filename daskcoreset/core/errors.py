"""Errors and warnings of the library, the caller that a warning names, and package versions."""

from __future__ import annotations

import os
import platform
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Self

import numpy as np

from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

__all__ = [
    "ClusterError",
    "CoresetError",
    "CoresetWarning",
    "InvalidInputError",
    "InvalidTypeError",
    "MissingDependencyError",
    "MissingPathError",
    "NotSeparableError",
    "OutOfTimeError",
    "StoreError",
    "WorkerMismatchError",
]


class CoresetError(Exception):
    """Base class of all errors that the library raises on purpose.

    See :doc:`/troubleshooting`.

    Parameters
    ----------
    problem : str
        The finding.
    argument : str, optional
        The argument at fault.
    remedy : str, optional
        The remedy, in the imperative. The message is the problem and the remedy.

    Examples
    --------
    >>> import numpy as np, daskcoreset
    >>> try:
    ...     daskcoreset.build(np.ones((9, 2)), method="svn")
    ... except daskcoreset.errors.CoresetError as error:
    ...     print(error.argument)
    method
    """

    def __init__(
        self, problem: str = "", *, argument: str | None = None, remedy: str | None = None
    ) -> None:
        super().__init__(problem if remedy is None else f"{problem}; {remedy}.")
        self.problem = problem
        self.argument = argument
        self.remedy = remedy


class InvalidInputError(CoresetError, ValueError):
    """An argument has a value that cannot be used. It is also a ValueError.

    See :doc:`/troubleshooting`.
    """


class InvalidTypeError(CoresetError, TypeError):
    """An argument has a type that cannot be used. It is also a TypeError.

    See :doc:`/troubleshooting`.
    """


class NotSeparableError(InvalidInputError):
    """The classes cannot be separated by a hyperplane.

    See :doc:`/troubleshooting`.

    Attributes
    ----------
    indices : ndarray of int64
        Rows of the evidence. A convex combination of those of one class equals a convex combination
        of those of the other. Through the origin, a convex combination of rows times labels is
        zero. One of their labels is wrong, or the classes overlap. Empty if no evidence is known.
    coefficients : ndarray of float64
        Positive coefficients of that combination.
    norm : float
        Length of the combination.
    intercept : bool
        Whether the hyperplane may miss the origin.
    duplicates : tuple of int or None
        Numbers of two equal rows with opposite labels, if they exist.
    """

    indices: IndexArray = np.zeros(0, dtype=np.int64)
    coefficients: FloatArray = np.zeros(0)
    norm: float = 0.0
    intercept: bool = False
    duplicates: tuple[int, int] | None = None

    def __init__(
        self,
        problem: str = "",
        *,
        argument: str | None = None,
        remedy: str | None = None,
        **evidence: Any,
    ) -> None:
        super().__init__(problem, argument=argument, remedy=remedy)
        vars(self).update(evidence)


class StoreError(CoresetError, OSError):
    """A store is missing, incomplete, damaged, or of another version. It is also an OSError.

    See :doc:`/troubleshooting`.
    """


class OvertakenError(StoreError):
    """Another writer has changed a tree, view or stream first. Nothing was written.

    See :doc:`/troubleshooting`.
    """


class MissingPathError(InvalidInputError, StoreError, FileNotFoundError):
    """Nothing exists at a path or URL. It is also a FileNotFoundError.

    See :doc:`/troubleshooting`.
    """

    def __new__(cls, *args: object, **_: Any) -> Self:
        """Create it as a FileNotFoundError, because a ValueError has no room for its fields."""
        return FileNotFoundError.__new__(cls, *args)


class MissingDependencyError(CoresetError, ImportError):
    """An optional package is not installed. It is also an ImportError.

    See :doc:`/troubleshooting`.
    """


class WorkerMismatchError(CoresetError, RuntimeError):
    """A worker has another version of this package than the client, or lacks a package.

    See :doc:`/troubleshooting`.
    """


class ClusterError(CoresetError, RuntimeError):
    """A cluster has lost a computation: its scheduler died, or workers died repeatedly.

    See :doc:`/troubleshooting`.
    """


class OutOfTimeError(CoresetError, TimeoutError):
    """A call has exceeded its `daskcoreset.time_limit`. It is also a TimeoutError.

    See :doc:`/troubleshooting`.
    """


class CoresetWarning(UserWarning):
    """The result is correct, but differs from what the arguments suggest.

    See :doc:`/troubleshooting`.
    """


def overflow_error() -> InvalidInputError:
    """Return the error for sums that overflow.

    Examples
    --------
    >>> str(overflow_error()).partition(",")[0]
    'X has values so large that squared distances overflow'
    """
    return InvalidInputError(
        "X has values so large that squared distances overflow, or so small that quotients by "
        "them do",
        argument="X",
        remedy="scale the columns, for example with sklearn.preprocessing.StandardScaler",
    )


def check_total_scores(total: float, method: str) -> None:
    """Check that the sum of the scores is finite and positive."""
    if not np.isfinite(total):
        raise overflow_error()
    if not total > 0.0:
        raise InvalidInputError(
            f"method {method!r} gives a score of zero to every row of positive weight, so no row "
            "can be drawn",
            argument="method",
            remedy="scale sample_weight, or correct the method",
        )


def scores_error() -> InvalidInputError:
    """Return the error for scores that overflow, or become zero, when they are divided."""
    return InvalidInputError(
        "scores are not finite: X, sample_weight, or a parameter such as "
        "lam or C is too large or too small",
        remedy="scale it",
    )


def ignore_overflow() -> np.errstate:
    """Silence overflow while scores are computed."""
    # An overflow shows in the summary, where the root turns it into an error.
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


@cache
def package_versions() -> dict[str, str]:
    """Return the versions of packages that determine results, and the processor.

    Examples
    --------
    >>> {"numpy", "processor"} <= package_versions().keys()
    True
    """
    import llvmlite.binding

    # Loops are compiled for it, by the name that LLVM has for it.
    processor = os.environ.get("NUMBA_CPU_NAME") or str(llvmlite.binding.get_host_cpu_name())
    versions = {"python": platform.python_version(), "processor": processor}
    for package in ("daskcoreset", "numpy", "dask", "numba"):
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions


def caller_level() -> int:
    """Return the stack level of the first caller outside this package."""
    package = __name__.partition(".")[0]
    inside = (package, "contextlib")  # which calls what its managers decorate
    level, frame = 1, sys._getframe(1)  # noqa: SLF001 - warnings know files to skip from 3.12 on
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(inside):
        level, frame = level + 1, frame.f_back
    return level


@contextmanager
def about_argument(name: str) -> Iterator[None]:
    """Name the argument that an error about a store belongs to, if the error names none.

    Examples
    --------
    >>> try:
    ...     with about_argument("path"):
    ...         raise StoreError("days.zarr exists", remedy="choose another path")
    ... except StoreError as error:
    ...     print(error.argument)
    path
    """
    try:
        yield
    except StoreError as error:
        error.argument = error.argument or name
        raise


def no_array(kind: str, before: str = "") -> Callable[..., AnyArray]:
    """Return the method `__array__` of an object with a coreset, which is not an array of rows.

    Examples
    --------
    >>> no_array("a CoresetTree", "call coreset = tree.coreset() and ")()
    Traceback (most recent call last):
    ...
    daskcoreset.errors.InvalidTypeError: X is a CoresetTree, not an array of rows; call ...
    """

    def refuse(*_: Any, **__: Any) -> AnyArray:
        raise InvalidTypeError(
            f"X is {kind}, not an array of rows",
            argument="X",
            remedy=f"{before}pass X=coreset.points with sample_weight=coreset.weights (and "
            "y=coreset.labels)",
        )

    return refuse


# Of several coresets the one that is being made.
_member: ContextVar[str | None] = ContextVar("_member", default=None)


@contextmanager
def about_member(name: str | None) -> Iterator[None]:
    """Begin our errors and warnings with the member of a portfolio that they are about.

    Examples
    --------
    >>> with about_member("svm"):
    ...     raise InvalidInputError("y is missing.")
    Traceback (most recent call last):
    ...
    daskcoreset.errors.InvalidInputError: member 'svm': y is missing.
    """
    if name is None or _member.get() is not None:  # or said by who called
        yield
        return
    token = _member.set(name)
    try:
        yield
    except CoresetError as error:
        told = {"argument": error.argument, "remedy": error.remedy}
        raise type(error)(f"member {name!r}: {error.problem}", **told) from error
    finally:
        _member.reset(token)


def warn_user(message: str) -> None:
    """Issue a `CoresetWarning` that points at the first caller outside this package."""
    if name := _member.get():
        message = f"member {name!r}: {message}"
    warnings.warn(message, CoresetWarning, stacklevel=caller_level())


def warn_complete(size: int, rows: int) -> None:
    """Warn that all rows come back, because `size` is at least the number of rows."""
    warn_user(
        f"nothing was reduced: size={size} is not below the number of rows, {rows}. All rows come "
        "back with their own weights. Pass a smaller size to reduce them."
    )


def warn_few(size: int, rows: int) -> None:
    """Warn that fewer than `size` rows come back."""
    warn_user(
        f"size={size}, but the coreset has {rows} rows: all other rows have "
        "a score of zero, or one too small to be drawn. Check "
        "sample_weight and the scale of the columns. If a few rows have "
        "nearly all of the cost, these are enough."
    )


# What users import, and what tracebacks say.
_OF_USERS = (CoresetError, *CoresetError.__subclasses__(), MissingPathError, NotSeparableError)
for _public in (*_OF_USERS, CoresetWarning):
    _public.__module__ = "daskcoreset.errors"
