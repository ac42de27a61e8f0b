"""Compute until the deadline: on a cluster or on this machine."""

from __future__ import annotations

import concurrent.futures
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

from daskcoreset.core.deadline import check_time, deadline, in_time
from daskcoreset.errors import ClusterError
from daskcoreset.execution.versions import check_workers

# Modules of the schedulers that take callbacks for one computation.
_DASKS_OWN = ("dask.threaded", "dask.local", "dask.multiprocessing")


def active_client() -> Any:
    """Return the client that computes use because it is active, or None."""
    import dask

    # An active client sets "dask.distributed".
    chosen = dask.config.get("scheduler", None)
    return _current("client") if chosen in (None, "distributed", "dask.distributed") else None


def in_worker() -> bool:
    """Whether this is a task of a worker."""
    return _current("worker") is not None


def _current(kind: str) -> Any:
    """Return the current client or worker. None without one, as if distributed was not imported."""
    distributed = sys.modules.get("distributed")
    if distributed is not None:
        with suppress(ValueError):
            return getattr(distributed, f"get_{kind}")()
    return None


def compute_all(*collections: Any, **options: Any) -> tuple[Any, ...]:
    """Compute Dask collections as ``dask.compute`` does, until the deadline of the call.

    Raises
    ------
    OutOfTimeError
        If the deadline has passed. What waits is cancelled. A block that is being read is read to
        its end.
    ClusterError
        If the cluster has lost the work.
    """
    import dask

    check_time()
    schedule = _schedule(collections, options.pop("scheduler", None))
    client = getattr(schedule, "__self__", None)
    distributed = sys.modules.get("distributed")
    if distributed is None or not isinstance(client, distributed.Client):
        return _compute_here(collections, schedule, options)
    if client.status == "closed":
        raise ClusterError("the client is closed", remedy="create a new client, and build again")
    try:
        if not in_worker():
            check_workers(client)
            schedule = partial(_get, client)
        # In a task Dask itself leaves the thread to other tasks while it waits.
        return dask.compute(*collections, scheduler=schedule, **options)  # type: ignore[no-any-return]
    except Exception as error:
        if not type(error).__module__.startswith("distributed."):  # an error of a task
            raise
        raise ClusterError(
            f"the cluster has lost the work: {str(error).rstrip('.')}",
            remedy="see that the scheduler runs and can be reached, and that workers have memory "
            "enough for their threads, and build again",
        ) from error


def _schedule(collections: Sequence[Any], chosen: Any) -> Any:
    """Return the function by which Dask would compute collections."""
    import dask
    import dask.threaded

    chosen = chosen or dask.config.get("scheduler", None)
    if not chosen and "distributed" not in sys.modules:
        # Dask would import distributed to look for a client, which takes half a second.
        return dask.threaded.get
    try:
        return dask.base.get_scheduler(scheduler=chosen, collections=collections)
    except RuntimeError as error:
        if "asynchronous" not in str(error):
            raise
        raise ClusterError(
            "the client is asynchronous, and this call waits for its result",
            remedy="await client.compute(daskcoreset.plan(...)), or create a client "
            "without asynchronous=True",
        ) from None


def _get(client: Any, graph: Any, keys: Any, **options: Any) -> Any:
    """Compute keys of a graph on a cluster, as ``client.get`` does, until the deadline."""
    futures = client.get(graph, keys, sync=False, **options)
    try:
        return in_time(partial(client.gather, futures), lambda: "the cluster was at work")
    finally:
        # Cancels what nobody else waits for.
        for future in futures:
            future.release()


def _compute_here(
    collections: Sequence[Any], schedule: Any, options: dict[str, Any]
) -> tuple[Any, ...]:
    """Compute on this machine, and leave the tasks behind that run when the time has passed."""
    import dask
    import dask.threaded
    from dask.callbacks import Callback
    from dask.system import CPU_COUNT

    work = partial(dask.compute, *collections, scheduler=schedule)
    if deadline() is None:
        return work(**options)  # type: ignore[no-any-return]
    done, given_up = "no task was done", threading.Event()

    def pretask(key: Any, graph: Any, state: Any) -> None:
        nonlocal done
        del key
        done = f"{len(state['finished'])} of {len(graph)} tasks were done"
        if given_up.is_set():
            raise concurrent.futures.CancelledError

    # Later computes would wait for the threads of a pool that Dask makes.
    n_threads = options.get("num_workers") or dask.config.get("num_workers", None) or CPU_COUNT
    pool = ThreadPoolExecutor(n_threads)
    if schedule is dask.threaded.get and not dask.config.get("pool", None):
        options = {"pool": pool} | options
    if getattr(schedule, "__module__", None) in _DASKS_OWN:
        # Given by hand, for computes at once in several threads would exchange those of Dask.
        options = options | {
            "callbacks": [(None, None, pretask, None, None), *Callback.active.copy()]
        }
    try:
        return in_time(partial(work, **options), lambda: done)
    finally:
        given_up.set()
        pool.shutdown(wait=False, cancel_futures=True)
