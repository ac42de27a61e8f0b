"""Errors and warnings of the library."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

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

    indices: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
    coefficients: npt.NDArray[np.float64] = np.zeros(0)
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
