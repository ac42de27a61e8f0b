"""Waiting for results, as long as a deadline allows, on a cluster or on this machine."""

from __future__ import annotations

import asyncio
import concurrent.futures
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

from daskcoreset.core.deadline import check_time, deadline, in_time
from daskcoreset.core.errors import ClusterError, CoresetError
from daskcoreset.execution.versions import check_workers

# Seconds that a scheduler has to answer when work is given up.
_LAST_WORD = 2.0

# Modules of the schedulers that take callbacks for one computation.
_DASKS_OWN = ("dask.threaded", "dask.local", "dask.multiprocessing")


def in_worker() -> bool:
    """Whether this is a task of a worker."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return False
    try:
        distributed.get_worker()
    except ValueError:
        return False
    return True


def compute_all(*collections: Any, **options: Any) -> tuple[Any, ...]:
    """Compute Dask collections as ``dask.compute`` does, until the deadline of the call.

    Parameters
    ----------
    *collections
        Dask collections.
    **options
        As ``dask.compute`` takes them.

    Raises
    ------
    OutOfTimeError
        If the deadline has passed, at once; what waits there is cancelled. A block that a worker
        or a thread is reading is read to its end.
    ClusterError
        If the cluster has lost the work, or has not answered for too long.
    """
    import dask

    check_time()
    options = _local(options)
    try:
        schedule = dask.base.get_scheduler(
            scheduler=options.pop("scheduler", None), collections=collections
        )
    except RuntimeError as error:
        if "asynchronous" not in str(error):
            raise
        raise ClusterError(
            "the client is asynchronous, and this call waits for its result",
            remedy="await client.compute(daskcoreset.plan(...)), or create a client "
            "without asynchronous=True",
        ) from None
    client = getattr(schedule, "__self__", None)
    distributed = sys.modules.get("distributed")
    if distributed is not None and isinstance(client, distributed.Client):
        if client.status == "closed":
            raise ClusterError(
                "the client is closed", remedy="create a new client, and build again"
            )
        if not (client.asynchronous or in_worker()):  # who started this task has compared them
            check_workers(client, ask)
        schedule = partial(_get_on_cluster, client)
        return dask.compute(*collections, scheduler=schedule, **options)  # type: ignore[no-any-return]
    if deadline() is None:
        return dask.compute(*collections, scheduler=schedule, **options)  # type: ignore[no-any-return]
    return _computed_in_time(collections, schedule, options)


def _local(options: dict[str, Any]) -> dict[str, Any]:
    """Compute on threads where no client can be."""
    import dask
    import dask.threaded

    chosen = options.get("scheduler") or dask.config.get("scheduler", None)
    if chosen or "distributed" in sys.modules:
        return dict(options)
    # By name, or left to choose, Dask imports distributed to look for a client: half a second.
    return options | {"scheduler": dask.threaded.get}


def _computed_in_time(
    collections: Sequence[Any], schedule: Any, options: dict[str, Any]
) -> tuple[Any, ...]:
    """Compute on this machine, and leave the tasks behind that run when the time has passed."""
    import dask
    import dask.threaded
    from dask.callbacks import Callback
    from dask.system import CPU_COUNT

    done, given_up = "no task was done", threading.Event()

    def pretask(key: Any, graph: Any, state: Any) -> None:
        nonlocal done
        del key
        done = f"{len(state['finished'])} of {len(graph)} tasks were done"
        check_time(done)
        if given_up.is_set():  # interrupted
            raise ClusterError("the work was given up", remedy=f"{done}")

    with ExitStack() as stack:
        if schedule is dask.threaded.get and not (
            options.get("pool") or dask.config.get("pool", 0)
        ):
            # A pool of Dask's own would be waited for by later computes, tasks left behind as well.
            n_threads = options.get("num_workers") or dask.config.get("num_workers", CPU_COUNT)
            pool = ThreadPoolExecutor(n_threads)
            stack.callback(pool.shutdown, wait=False, cancel_futures=True)
            options = options | {"pool": pool}

        def work() -> Any:
            if getattr(schedule, "__module__", None) in _DASKS_OWN:
                # Those of the process are exchanged by every compute: of two in threads at once,
                # each would have that of the other, and one could stay for ever.
                own = (None, None, pretask, None, None)
                callbacks = [own, *Callback.active.copy()]
                return dask.compute(
                    *collections, scheduler=schedule, callbacks=callbacks, **options
                )
            with Callback(pretask=pretask):
                return dask.compute(*collections, scheduler=schedule, **options)

        stack.callback(given_up.set)
        results: tuple[Any, ...] = in_time(work, lambda: done)
        return results


def on_loop(client: Any, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a method of a client without waiting for it.

    Returns
    -------
    concurrent.futures.Future
        Future of the result of ``function(*args, **kwargs)``. Its ``result(timeout)`` waits so
        long.
    """

    async def call() -> Any:
        return await function(*args, **kwargs)  # a coroutine, on the loop of its client

    return asyncio.run_coroutine_threadsafe(call(), client.loop.asyncio_loop)


def _get_on_cluster(client: Any, graph: Any, keys: Any, **options: Any) -> Any:
    """Compute keys of a graph on a cluster, as ``client.get`` does."""
    direct = options.pop("direct", None)
    futures = client.get(graph, keys, sync=False, **options)
    try:
        with _clear_errors():
            return _wait(client, on_loop(client, _gathered, client, futures, direct))
    finally:
        # Cancels what nobody else waits for.
        for future in futures:
            future.release()


def ask(client: Any, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a method of a client, and wait for it as for results.

    The method by itself would wait for ever for a scheduler that is cut off.
    """
    with _clear_errors():
        try:
            return _wait(client, on_loop(client, method, *args, **kwargs))
        except OSError as error:
            if isinstance(error, CoresetError):
                raise
            raise _explained(error) or ClusterError(
                f"the scheduler cannot be reached ({type(error).__name__})",
                remedy="check that its process runs, and build again",
            ) from error


@contextmanager
def _clear_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        explained = _explained(error)
        if explained is None:
            raise
        raise explained from error


async def _gathered(client: Any, futures: Sequence[Any], direct: bool | None) -> Any:
    from distributed.client import _wait as wait_for_all

    # Left to `gather`, the wait would report an unread error whenever it is given up.
    await wait_for_all(futures)
    return await client.gather(futures, direct=direct)


def _scheduler_ttl() -> float:
    """Seconds without an answer after which a scheduler counts as lost."""
    import dask

    setting = dask.config.get("daskcoreset.scheduler-ttl", "5 minutes")
    return float(dask.utils.parse_timedelta(setting))


def _wait(client: Any, results: Any) -> Any:
    """Wait for results, while the scheduler answers and time is left."""
    limit, ttl, heard = deadline(), _scheduler_ttl(), time.monotonic()
    interval = min(ttl / 6, 10.0)
    answer: Any = None
    try:
        while True:
            timeout = interval if limit is None else min(interval, limit.left)
            if concurrent.futures.wait([results], max(timeout, 0.0)).done:
                return results.result()
            out_of_time = limit is not None and limit.left <= 0.0
            if answer is None:
                answer = on_loop(client, client.scheduler.identity, n_workers=0)
            answered = False
            if out_of_time or answer.done():
                with suppress(Exception):  # silence is counted
                    answer.result(_LAST_WORD)
                    heard, answered = time.monotonic(), True
                answer = None
            silence = time.monotonic() - heard
            standing = f"the scheduler has not answered for {silence:.0f} s"
            if limit is not None and out_of_time:
                raise limit.error("the cluster was at work" if answered else standing)
            if silence > ttl:
                raise ClusterError(
                    f"the scheduler is lost: {standing}",
                    remedy="check that its process runs and can be reached, and build again",
                )
    finally:
        results.cancel()
        if answer is not None:
            answer.cancel()


def _explained(error: BaseException) -> ClusterError | None:
    """Return what an error of a cluster means, or None for an error of a task."""
    from distributed.comm.core import CommClosedError
    from distributed.scheduler import KilledWorker, NoValidWorkerError, NoWorkerError

    if isinstance(error, KilledWorker):
        return ClusterError(
            f"{error.allowed_failures + 1} workers died while they ran one task "
            f"of the build, {error.task!r}, the last one "
            f"{error.last_worker.address}: most likely, memory ran out",
            remedy="pass smaller chunks, give workers more memory or fewer threads, "
            "and look at their logs",
        )
    if isinstance(error, (NoValidWorkerError, NoWorkerError)):
        return ClusterError(f"no worker took a task of the build: {error}", remedy="start workers")
    lost = (asyncio.CancelledError, concurrent.futures.CancelledError, CommClosedError)
    if isinstance(error, lost):
        return ClusterError(
            f"the cluster has lost the build ({type(error).__name__}): its "
            "scheduler ended, restarted or cannot be reached, or the build was "
            "canceled there",
            remedy="check that it runs, and build again",
        )
    return None
