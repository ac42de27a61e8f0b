"""Threads of this process: how many there are, and work of several in the order of its items."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from functools import cache
from multiprocessing import parent_process
from typing import TypeVar

from daskcoreset.core.deadline import check_time
from daskcoreset.execution.timeout import in_worker

S = TypeVar("S")
T = TypeVar("T")

# Schedulers of Dask whose processes run one task at a time.
_ONE_THREAD = ("sync", "synchronous", "single-threaded", "processes", "multiprocessing")


def threads_here() -> int:
    """Return the threads on which Dask computes in this process."""
    import dask
    from dask.system import CPU_COUNT

    if dask.config.get("scheduler", None) in _ONE_THREAD:
        return 1
    return int(dask.config.get("num_workers", None) or CPU_COUNT)


def at_once(calls: Sequence[Callable[[], T]]) -> Generator[T]:
    """Yield what calls return, in their order, from as many threads as the process may use.

    All blocks share them: there are never more calls at work than threads, so that memory is
    bounded as if every block made its calls one after another. Workers of a cluster and processes
    of a pool, which are given a number of threads, make the calls so.

    If one raises, or the caller leaves, those that have not begun are not made.

    Examples
    --------
    >>> from functools import partial
    >>> list(at_once([partial(pow, 2, 3), partial(pow, 2, 5)]))
    [8, 32]
    """
    given = len(calls) == 1 or parent_process() is not None or in_worker()
    n_threads = 1 if given else threads_here()
    if n_threads == 1:
        for call in calls:
            yield call()
        return
    pool = _pool(os.getpid(), n_threads)  # threads do not survive a fork
    futures = [pool.submit(copy_context().run, call) for call in calls]
    try:
        for future in futures:
            yield future.result()
    finally:
        wait([future for future in futures if not future.cancel()])


@cache
def _pool(pid: int, n_threads: int) -> ThreadPoolExecutor:
    del pid
    return ThreadPoolExecutor(n_threads, "coreset-member")


def in_threads(work: Callable[[S], T], items: Iterable[S], n_threads: int) -> Iterator[T]:
    """Yield the results of `work` in the order of the items, from threads that work ahead.

    At most `n_threads` results wait to be used. The threads are of this call alone, so that the
    work may wait for other threads.

    Examples
    --------
    >>> list(in_threads(str, range(3), 2))
    ['0', '1', '2']
    """
    ahead: deque[Future[T]] = deque()
    with ThreadPoolExecutor(n_threads, "coreset-ahead") as pool:
        for item in items:
            ahead.append(pool.submit(copy_context().run, work, item))
            if len(ahead) > n_threads:
                yield ahead.popleft().result()
                check_time()
        while ahead:
            yield ahead.popleft().result()
