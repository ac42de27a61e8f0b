"""Work on data in the memory of this process, while a client is active."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

from daskcoreset.core.errors import InvalidInputError, warn_user
from daskcoreset.execution.lazy import active_client
from daskcoreset.inputs.blocks import MEMORY_BYTES, RowBlocks

_REMEDY = (
    "to use the workers, store all of it where they can read it, for example with the program "
    '"daskcoreset store", and pass its path.'
)

# Clients whose users were told already.
_told: WeakSet[Any] = WeakSet()


def runs_here(blocks: RowBlocks) -> bool:
    """Whether reads run on threads of this process, past an active client.

    Larger data in memory would travel twice, to the scheduler and to a worker: that takes longer
    than the work of nearly every construction.
    """
    return blocks.are_views and blocks.memory_bytes > MEMORY_BYTES and _client() is not None


def compute_options(blocks: RowBlocks) -> dict[str, Any]:
    """Return the options of a compute, and tell once for every client where it runs and why."""
    held = blocks.memory_bytes
    if not blocks.are_views:  # what else travels was looked at by `check_sent`
        held -= sum(blocks.held.values())
    if held <= MEMORY_BYTES:
        return {}
    client = _client()
    if client is None:
        return {}
    if client not in _told:
        _told.add(client)
        size = f"{held / 2**20:,.0f} MiB of the data are in the memory of this"
        if blocks.are_views:
            warn_user(
                f"{size} process, so its threads do the work, and nothing is sent "
                f"to the workers of the active client; {_REMEDY}"
            )
        else:
            warn_user(
                f"{size} process, and are sent through the scheduler to the workers "
                f"of the active client; {_REMEDY}"
            )
    if not blocks.are_views:
        return {}
    import dask.threaded

    return {"scheduler": dask.threaded.get}


def check_sent(blocks: RowBlocks) -> None:
    """Check that arrays beside lazy ones are not too large to be sent with every read.

    Tasks carry them, so that a worker that dies takes nothing with it: all bytes pass through the
    scheduler, once a read.
    """
    sent = sum(blocks.held.values())
    if not blocks.are_views and sent > MEMORY_BYTES and _client() is not None:
        names = " and ".join(blocks.held)
        raise InvalidInputError(
            f"{names} would be sent through the scheduler in every pass: "
            f"{sent / 2**20:,.0f} MiB that are in the memory of this process",
            remedy="save it with numpy.save where all workers can read it, and pass "
            'numpy.load(path, mmap_mode="r"); to have it sent, set '
            'dask.config.set(scheduler="distributed")',
        )


def _client() -> Any:
    """Return the client that computes would use because it is active, not because it is named."""
    import dask

    chosen = dask.config.get("scheduler", None)  # an active client sets "dask.distributed"
    return active_client() if chosen in (None, "dask.distributed") else None
