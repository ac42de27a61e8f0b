"""A Dask cluster for one job: a running one, or local processes."""

from __future__ import annotations

import gc
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from daskcoreset.core.deadline import check_time, deadline
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.optional import import_optional

# More processes than that for each processor only take memory.
_WORKERS_PER_PROCESSOR = 16


@contextmanager
def cluster_for(scheduler: str | None, workers: int | None) -> Iterator[None]:
    """Run the body on a cluster, if one is asked for, and close it afterwards.

    Parameters
    ----------
    scheduler : str or None
        Address of a scheduler to connect to.
    workers : int or None
        Number of processes to start here, and to end afterwards.

    Raises
    ------
    InvalidInputError
        If no scheduler answers, or the number of workers is above 16 per processor.
    MissingDependencyError
        If a cluster is asked for and distributed is not installed.
    """
    if scheduler is None and workers is None:
        yield
        return
    distributed = import_optional(
        "distributed",
        "--scheduler and --workers need distributed; "
        'pip install "daskcoreset[distributed]" brings it.',
    )
    if scheduler is not None:
        client = _connected(distributed.Client, scheduler)
        with _without_unread_ends(), client:
            yield
        return
    processors = os.cpu_count() or 1
    if workers is not None and workers > _WORKERS_PER_PROCESSOR * processors:
        raise InvalidInputError(
            f"--workers is {workers}, and this machine has {processors} processors",
            remedy=f"pass {processors}, or at most {_WORKERS_PER_PROCESSOR * processors}",
        )
    with _deaf_to_interrupts():
        cluster = distributed.LocalCluster(
            n_workers=workers,
            processes=True,
            # Any port: the usual one may be taken, which would be a warning on every start.
            dashboard_address="127.0.0.1:0",
            # What fails in a task comes back as its error; the rest is of processes that end.
            silence_logs=logging.CRITICAL,
        )
    with _without_unread_ends(), cluster, distributed.Client(cluster):
        yield


def _connected(client: Callable[..., Any], scheduler: str) -> Any:
    """Return a client of a running scheduler."""
    try:
        limit = deadline()
        if limit is None:
            return client(scheduler)
        return client(scheduler, timeout=max(limit.left, 0.0))
    except (OSError, ValueError, AssertionError) as error:  # the last one of addresses like [1
        reason = str(error)
    # A half-made client stops its loop when it is collected: while another one starts, that waits
    # for ever. So it is collected here, where no error holds it any more.
    gc.collect()
    check_time(f"no scheduler had answered at {scheduler!r}", "check the address")
    raise InvalidInputError(
        f"no scheduler answers at {scheduler!r} ({reason})", remedy="check the address"
    )


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Let processes that the body starts ignore Ctrl-C, which a terminal sends to all of them.

    This process handles Ctrl-C and ends them. Otherwise each would print a traceback.
    """
    # Python allows signals to be set in the main thread only, and delivers them there.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _without_unread_ends() -> Iterator[None]:
    """Suppress the report of asyncio about the task of an interrupted wait."""

    def is_read(record: logging.LogRecord) -> bool:
        kind = record.exc_info[0] if record.exc_info else None
        return kind is None or kind.__name__ != "AllExit"

    logger = logging.getLogger("asyncio")
    logger.addFilter(is_read)
    try:
        yield
    finally:
        logger.removeFilter(is_read)
