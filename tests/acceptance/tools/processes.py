"""Processes that tests share: those of a scheduler, and those of a cluster."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import Any

from dask.multiprocessing import get_context, initialize_worker_process

_N_WORKERS = 2


@cache
def shared_pool() -> ProcessPoolExecutor:
    """Two processes for Dask's scheduler "processes"; they end with the program.

    Returns
    -------
    ProcessPoolExecutor
        To be given as ``dask.config.set(scheduler="processes", pool=shared_pool())``: without it
        every compute starts processes of its own.
    """
    return ProcessPoolExecutor(
        _N_WORKERS, mp_context=get_context(), initializer=initialize_worker_process
    )


@cache
def shared_cluster() -> Any:
    """Two worker processes of one thread each; they end with the program.

    Connect with ``with Client(shared_cluster()):``. No client stays connected: it would become
    the default scheduler of every other test.

    Returns
    -------
    distributed.LocalCluster
        At any port, for the usual ones may be taken.

    Raises
    ------
    ImportError
        If distributed is not installed.
    """
    import distributed

    return distributed.LocalCluster(
        n_workers=_N_WORKERS, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
