"""Errors that several files raise, the caller that a warning names, and other packages."""

from __future__ import annotations

import importlib
import os
import platform
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from daskcoreset.core.typing import AnyArray
from daskcoreset.errors import (
    CoresetError,
    CoresetWarning,
    InvalidInputError,
    InvalidTypeError,
    MissingDependencyError,
    StoreError,
)


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
        "class_weight, lam or C is too large or too small",
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


# --- packages that may be missing ---------------------------------------------------------

# The extra of this package that brings another one.
_EXTRAS = {
    "aiohttp": "remote",
    "distributed": "distributed",
    "h5py": "hdf5",
    "matplotlib": "plot",
    "obstore": "remote",
    "pandas": "dataframe",
    "pyarrow": "dataframe",
    "xarray": "xarray",
}


def import_optional(module: str, argument: str | None = None) -> Any:
    """Import a module of a package that may be missing, which an argument needs."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        target = f'"daskcoreset[{_EXTRAS[package]}]"' if package in _EXTRAS else package
        raise MissingDependencyError(
            f"{package} is not installed", argument=argument, remedy=f"run: pip install {target}"
        ) from error
