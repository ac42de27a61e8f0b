"""How this process computes: with which scheduler, and on how many threads."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

from daskcoreset.core.messages import warn_user
from daskcoreset.execution.threads import threads_here
from daskcoreset.execution.timeout import active_client
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.inputs.cuts import MEMORY_BYTES

# Clients whose users were warned.
_warned: WeakSet[Any] = WeakSet()


def compute_options(blocks: RowBlocks) -> dict[str, Any]:
    """Return the options of a compute.

    Threads of this process read what is in its memory. Sending it to the scheduler and to a worker
    would take longer than nearly every construction. Without a client, they read stored rows, too.
    """
    import dask
    import dask.threaded

    threads = reading_threads(blocks)
    if threads > threads_here() and active_client() is None:
        return {"num_workers": threads}
    if not blocks.are_views or (blocks.stored_bytes or 0) <= MEMORY_BYTES:
        return {}
    client = active_client()
    if client is None or dask.config.get("scheduler", None) == "distributed":  # asked for by name
        return {}
    if client not in _warned:
        _warned.add(client)
        warn_user(
            f"{(blocks.stored_bytes or 0) / 2**20:,.0f} MiB of the data are in the memory of this "
            "process, so its threads do the work, and nothing is sent to the workers of the active "
            "client; to use the workers, store the data where they can read it, for example with "
            'the program "daskcoreset store", and pass its path.'
        )
    return {"scheduler": dask.threaded.get}


def reading_threads(blocks: RowBlocks) -> int:
    """Return the threads of this process on which Dask reads blocks.

    If they are stored, there is one more than processors. Tasks that wait for their bytes leave the
    processors to the others. It saves a tenth of the time of a build from a local Zarr store.
    """
    import dask

    threads = threads_here()
    chosen = dask.config.get("num_workers", None) or dask.config.get("pool", None)
    return threads if threads == 1 or chosen or blocks.are_views else threads + 1
