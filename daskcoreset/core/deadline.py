"""Time limits: one deadline for everything that a call waits for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import TypeVar

from daskcoreset.core.validation import as_float
from daskcoreset.errors import OutOfTimeError

T = TypeVar("T")

# Remedies beside a longer limit.
MORE_WORKERS = "give the work more workers"
NO_ANSWER = "see that the server answers, and that the network and the endpoint are right"

# Seconds; clocks and locks take no more than some centuries.
_LONGEST = 1e9


@dataclass(frozen=True)
class Deadline:
    """When a call must be done: `at`, by `time.monotonic`, after a limit of `seconds`."""

    seconds: float
    at: float

    @property
    def left(self) -> float:
        """Seconds that are left; zero once it has passed."""
        return max(0.0, self.at - time.monotonic())

    def error(self, standing: str, remedy: str = MORE_WORKERS) -> OutOfTimeError:
        """Return the error that says where the work stood, and what to do but wait longer."""
        return OutOfTimeError(
            f"the time limit of {self.seconds:g} seconds has passed; {standing}. What had not "
            "begun was cancelled",
            remedy=f"pass more seconds to time_limit, or {remedy}",
        )


_DEADLINE: ContextVar[Deadline | None] = ContextVar("daskcoreset-deadline", default=None)


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Limit the time of all calls of this library in a ``with`` block.

    See :doc:`/guides/machines`.

    The limit holds for builds and other computations. It also holds for opening, reading and
    writing coresets, trees and streams on object stores and behind URLs. It does not hold for a
    lazy array that `predict` or `transform` returned, because Dask computes that.

    Parameters
    ----------
    seconds : float or None
        Seconds for the whole block, positive. None sets no limit. If limits are nested, the one
        that ends first counts. A thread that you start in the block needs a copy of the context
        (`contextvars.copy_context`).

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If `seconds` is not a positive number.
    OutOfTimeError
        In the block, when the time has passed. A write is then complete or was not made. Reads
        that wait for a server end later, in their own threads.

    Examples
    --------
    >>> import numpy as np, daskcoreset
    >>> with daskcoreset.time_limit(60):
    ...     coreset = daskcoreset.build(np.ones((1000, 2)), size=10, random_state=0)
    >>> len(coreset)
    10
    """
    if seconds is None:
        yield
        return
    seconds = as_float("seconds", seconds, "60", maximum=_LONGEST)
    new, outer = Deadline(seconds, time.monotonic() + seconds), deadline()
    token = _DEADLINE.set(new if outer is None or new.at < outer.at else outer)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def deadline() -> Deadline | None:
    """Return the deadline of the call that is being made, or None."""
    return _DEADLINE.get()


def check_time(standing: str = "a read was about to begin", remedy: str = MORE_WORKERS) -> None:
    """Raise an error if the deadline has passed."""
    limit = deadline()
    if limit is not None and not limit.left:
        raise limit.error(standing, remedy)


def in_time(work: Callable[[], T], standing: Callable[[], str], remedy: str = MORE_WORKERS) -> T:
    """Return what `work` returns, or raise an error as soon as the deadline has passed.

    With a deadline the work runs in a thread, in a copy of the context. A thread cannot be ended:
    after the error the work goes on, and must change nothing but what may be done or not.
    """
    limit = deadline()
    if limit is None:
        return work()
    check_time(standing(), remedy)
    done: Future[T] = Future()
    context = copy_context()

    def run() -> None:
        try:
            done.set_result(context.run(work))
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            done.set_exception(error)

    threading.Thread(target=run, daemon=True, name="daskcoreset-in-time").start()
    if not wait([done], limit.left).done:
        raise limit.error(standing(), remedy)
    return done.result()


def pause(seconds: float) -> None:
    """Sleep, but not past the deadline."""
    limit = deadline()
    time.sleep(seconds if limit is None else min(seconds, limit.left))
