"""The time that a call may take: one deadline for all reads that it does."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from daskcoreset.core.errors import InvalidInputError, InvalidTypeError, OutOfTimeError
from daskcoreset.core.validation import is_number


@dataclass(frozen=True)
class Deadline:
    """When a call must be done.

    Attributes
    ----------
    seconds : float
        The `timeout` that was asked for.
    at : float
        By the clock `time.monotonic`.
    """

    seconds: float
    at: float

    @property
    def left(self) -> float:
        """Seconds that are left; negative once it has passed."""
        return self.at - time.monotonic()

    def error(self, standing: str) -> OutOfTimeError:
        """Return the error that says where the work stood."""
        return OutOfTimeError(
            f"timeout={self.seconds:g} seconds have passed; {standing}. What had not begun was "
            f"cancelled. Pass a larger timeout, or give the work more workers."
        )


_DEADLINE: ContextVar[Deadline | None] = ContextVar("daskcoreset-deadline", default=None)


@contextmanager
def time_limit(timeout: float | None) -> Iterator[None]:
    """Let the reads in the body end after so many seconds in all.

    Parameters
    ----------
    timeout : float or None
        None sets no limit; of several around one another the earliest counts. A thread that the
        body starts has it only in a copy of the context (`contextvars.copy_context`).

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If `timeout` is no positive number.

    Examples
    --------
    >>> with time_limit(60.0):
    ...     deadline().left > 50.0
    True
    >>> deadline() is None
    True
    """
    if timeout is None:
        yield
        return
    new, outer = Deadline(float(check_timeout(timeout)), time.monotonic() + timeout), deadline()
    token = _DEADLINE.set(new if outer is None or new.at < outer.at else outer)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def check_timeout(timeout: Any) -> Any:
    """Check that a timeout is None or a positive number, and return it.

    Examples
    --------
    >>> check_timeout(None), check_timeout(0.5)
    (None, 0.5)
    """
    if timeout is None:
        return None
    if not is_number(timeout):
        raise InvalidTypeError(
            f"timeout must be a number of seconds or None, got {timeout!r}; pass a float."
        )
    if not 0.0 < timeout < math.inf:
        raise InvalidInputError(
            f"timeout must be positive and finite, got {timeout!r}; pass seconds, or None for none."
        )
    return timeout


def deadline() -> Deadline | None:
    """Return the deadline of the call that is being made, or None."""
    return _DEADLINE.get()


def check_time(standing: str = "a read was about to begin") -> None:
    """Raise an error if the deadline has passed."""
    limit = deadline()
    if limit is not None and limit.left <= 0.0:
        raise limit.error(standing)
