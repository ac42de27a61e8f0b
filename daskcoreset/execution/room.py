"""Whether the workers of a cluster have the memory for the blocks that they are about to read.

A worker that has not pauses, spills what is not its trouble and is ended by its nanny, again and
again: minutes pass before the build fails, and nothing says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import dask

from daskcoreset.core.errors import ClusterError, warn_user
from daskcoreset.execution.agreement import in_worker
from daskcoreset.execution.lazy import active_client
from daskcoreset.execution.waiting import ask
from daskcoreset.inputs.blocks import RowBlocks

# Temporaries of a leaf beside the points: weights, scores, distances, inclusion, float64.
BYTES_PER_ROW = 56

# Blocks that any worker has room for which can import the packages.
_SMALL = 2**24

# What the packages and compiled code of a worker take, beside any block.
_INTERPRETER = 250 * 2**20

# The largest blocks that the workers of a client were looked at for.
_looked: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


def row_bytes(blocks: RowBlocks) -> float | None:
    """Bytes of the points of a row once they are brought to form; None where not known."""
    if not blocks.sparse:
        return blocks.schema.dtype.itemsize * blocks.schema.n_features
    return None if blocks.stored_bytes is None else stored_row_bytes(blocks)


def stored_row_bytes(blocks: RowBlocks) -> float:
    """Bytes of a row once it is decoded."""
    return (blocks.stored_bytes or 0) / (blocks.n_rows or 1)


def leaf_bytes(blocks: RowBlocks, copies: float) -> float | None:
    """Bytes that work on the largest block takes, which holds `copies` of it as it is stored."""
    points = row_bytes(blocks)
    if blocks.sizes is None or points is None:
        return None
    read = 0.0 if blocks.are_views else copies * stored_row_bytes(blocks)
    return max(blocks.sizes, default=0) * (read + points + BYTES_PER_ROW)


def check_room(blocks: RowBlocks) -> None:
    """Look at the memory limits of the active client's workers, once for every size of block.

    What counts is what surely is in memory: a block as it arrives and as points. Chunks of a store
    that do not compress, or the steps of a Dask graph, take once or twice as much beside.

    Warns
    -----
    CoresetWarning
        Where the blocks that the threads of a worker read at a time exceed what it pauses at.

    Raises
    ------
    ClusterError
        Where no worker can hold one block.
    """
    largest = _largest(blocks)
    if blocks.are_views or largest <= _SMALL:
        return
    client = active_client()
    if client is None or client.asynchronous or in_worker() or _looked.get(client, 0) >= largest:
        return
    workers = ask(client, client.scheduler.identity, n_workers=-1)["workers"]
    if workers:
        _looked[client] = largest
        judge(blocks, workers)


def judge(blocks: RowBlocks, workers: Mapping[str, Mapping[str, Any]]) -> None:
    """Compare what blocks take with the memory limits of workers, as their scheduler names them.

    Parameters
    ----------
    blocks : RowBlocks
    workers : mapping
        Threads, memory limit and nanny of every worker, by its address.
    """
    largest = _largest(blocks)
    limits = {name: worker["memory_limit"] for name, worker in workers.items()}
    ended = all(worker["nanny"] for worker in workers.values()) and _share("terminate")
    if ended and all(limits.values()) and largest > max(limits.values()):
        raise ClusterError(
            f"blocks of X take {_mib(largest)}, and workers have a memory limit of "
            f"{_mib(max(limits.values()))} at most, above which they are ended. "
            f"{_remedy(blocks, largest, 0.0)}"
        )
    share = _share("pause") or 1.0
    room = {name: share * limit for name, limit in limits.items() if limit}
    short = {
        name: _room_for(blocks, workers[name], room[name], largest)
        for name in room
        if _need(blocks, workers[name], largest) > room[name]
    }
    if short:
        name = min(short, key=lambda one: short[one])
        warn_user(
            f"{len(short)} of {len(workers)} workers have little memory for X, whose blocks or "
            f"chunks take {_mib(largest)}: {name} has {_at_a_time(blocks, workers[name])} of them "
            f"at a time, needs at least {_mib(_need(blocks, workers[name], largest))} and has a "
            f"memory limit of {_mib(limits[name])}, of which it pauses at {_mib(room[name])}. The "
            f"build may stand still, or its workers may be ended again and again. "
            f"{_remedy(blocks, largest, short[name])}"
        )


def _largest(blocks: RowBlocks) -> int:
    """Bytes of the largest piece that is in memory at once, whatever is done with it."""
    points = row_bytes(blocks)
    rows = max(blocks.sizes or (), default=0)
    if points is None:
        return blocks.cut_bytes
    return max(blocks.cut_bytes, round(rows * max(points, stored_row_bytes(blocks))))


def _need(blocks: RowBlocks, worker: Mapping[str, Any], largest: int) -> float:
    """Bytes that a worker needs at least while all its threads read."""
    return _INTERPRETER + _at_a_time(blocks, worker) * max(leaf_bytes(blocks, 1) or 0.0, largest)


def _at_a_time(blocks: RowBlocks, worker: Mapping[str, Any]) -> int:
    """Return how many blocks, or chunks that are cut into them, are with a worker at once."""
    pieces = blocks.n_blocks
    if blocks.cut_bytes:
        pieces = -(-(blocks.stored_bytes or 0) // blocks.cut_bytes)
    return int(min(worker["nthreads"], max(pieces, 1)))


def _room_for(blocks: RowBlocks, worker: Mapping[str, Any], room: float, largest: int) -> float:
    """Return the share of a block for which there is room."""
    return max(room - _INTERPRETER, 0.0) / (_need(blocks, worker, largest) - _INTERPRETER)


def _remedy(blocks: RowBlocks, largest: int, room: float) -> str:
    smaller = "smaller chunks"
    if room > 0 and blocks.sizes is not None and not blocks.cut_bytes:
        smaller += f", of {max(int(room * max(blocks.sizes)), 1):,} rows or fewer"
    elif room > 0:
        smaller += f", of {_mib(room * largest)} or less"
    return f"Pass X in {smaller}, or give workers fewer threads or more memory."


def _share(name: str) -> float:
    """Return a share of the memory limit, of Dask's settings of this process; none is 0."""
    return float(dask.config.get(f"distributed.worker.memory.{name}", 0.0) or 0.0)


def _mib(count: float) -> str:
    return f"{count / 2**20:,.0f} MiB"
