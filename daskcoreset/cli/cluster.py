"""A Dask cluster for one job: a running one, or local processes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from daskcoreset.core.deadline import check_time, deadline
from daskcoreset.core.messages import import_optional
from daskcoreset.errors import InvalidInputError


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
        If no scheduler answers.
    MissingDependencyError
        If a cluster is asked for and distributed is not installed.
    """
    if scheduler is None and workers is None:
        yield
        return
    distributed = import_optional("distributed", "scheduler")
    if scheduler is not None:
        with _connected(distributed, scheduler):
            yield
        return
    # Any port: the usual one may be taken, which would be a warning on every start. What fails in
    # a task comes back as its error; the log would be of processes that end.
    options = {"dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}
    with (
        distributed.LocalCluster(n_workers=workers, **options) as cluster,
        distributed.Client(cluster),
    ):
        yield


def _connected(distributed: Any, scheduler: str) -> Any:
    """Return a client of a running scheduler."""
    limit = deadline()
    try:
        return distributed.Client(scheduler, **({} if limit is None else {"timeout": limit.left}))
    except (OSError, ValueError, AssertionError) as error:  # the last one of addresses like [1
        check_time(f"no scheduler had answered at {scheduler!r}", "check the address")
        raise InvalidInputError(
            f"no scheduler answers at {scheduler!r} ({error})", remedy="check the address"
        ) from None
