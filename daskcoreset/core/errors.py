"""Errors and warnings of the library.

Every error derives from the builtin a caller would expect, so ``except ValueError``
keeps working, and from `CoresetError`, so one clause catches them all. A message
names the argument, says what was found, and ends with what to do about it.
"""

from __future__ import annotations
import numpy as np

__all__ = ["quiet", 
    "CoresetError",
    "CoresetWarning",
    "DataUnavailableError",
    "InvalidInputError",
    "InvalidTypeError",
    "MissingDependencyError",
    "StoreError",
    "out_of_range",
]


class CoresetError(Exception):
    """Base class of every error raised on purpose by the library."""


class InvalidInputError(CoresetError, ValueError):
    """An argument has a value that no coreset can be built from."""


class InvalidTypeError(CoresetError, TypeError):
    """An argument has a type that the library cannot read."""


class StoreError(CoresetError, OSError):
    """A store is missing, incomplete, damaged, or of another schema version."""


class DataUnavailableError(CoresetError, FileNotFoundError):
    """A data set was asked for that is not on this machine."""


class MissingDependencyError(CoresetError, ImportError):
    """An optional package is needed for what was asked."""


class CoresetWarning(UserWarning):
    """The result is correct but differs from what the arguments suggest."""


def out_of_range() -> InvalidInputError:
    """Return the error of sums that are no numbers, though all values are.

    Examples
    --------
    >>> str(out_of_range()).partition(",")[0]
    'X has values so large that squared distances overflow'
    """
    return InvalidInputError(
        "X has values so large that squared distances overflow, or so small that quotients by them "
        "do; scale the columns, for example with sklearn.preprocessing.StandardScaler."
    )


def quiet() -> np.errstate:
    """Silence overflow while scores are computed."""
    # An overflow shows in the summary, where the root turns it into an error.
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")
