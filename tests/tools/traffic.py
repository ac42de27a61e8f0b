"""Bytes between the processes of a cluster."""

from __future__ import annotations

from collections import Counter
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Self

# Of the message that is being read, in a list of one number.
_reading: ContextVar[list[int] | None] = ContextVar("_reading", default=None)

# Bytes read and written by this process, by the address at the other end.
_bytes: Counter[tuple[str, str]] = Counter()

# What was replaced.
_originals: dict[str, Any] = {}


class Traffic:
    """Count the bytes that pass through a scheduler, and those between its workers.

    Parameters
    ----------
    client : distributed.Client
        Of a `distributed.LocalCluster` of this process, with workers in others, by TCP.

    Attributes
    ----------
    scheduler : int
        Bytes that the scheduler read and wrote, pickled and compressed as they are sent.
    workers : int
        Bytes that workers fetched from one another.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._workers = list(client.scheduler_info(n_workers=-1)["workers"])
        self.scheduler = self.workers = 0

    def __enter__(self) -> Self:
        count_bytes()
        self._client.run(count_bytes)
        self._before = self._counted()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        after = self._counted()
        self.scheduler, self.workers = (
            now - before for now, before in zip(after, self._before, strict=True)
        )

    def _counted(self) -> tuple[int, int]:
        fetched = self._client.run(_read_from, self._workers)
        # The client is in the same process: its end of the same connections does not count.
        address = self._client.scheduler.address
        here = sum(count for (_, peer), count in _bytes.items() if peer != address)
        return here, sum(fetched.values())


def _read_from(peers: list[str]) -> int:
    return sum(_bytes["read", peer] for peer in peers)


def count_bytes() -> None:
    """Begin to count in this process; once and for all."""
    from distributed.comm import tcp

    if _originals:
        return
    _originals.update(part=tcp.read_bytes_rw, read=tcp.TCP.read, write=tcp.TCP.write)
    for owner, name, replacement in (
        (tcp, "read_bytes_rw", _part),
        (tcp.TCP, "read", _read),
        (tcp.TCP, "write", _write),
    ):
        setattr(owner, name, replacement)


async def _part(stream: Any, count: int) -> Any:
    message = _reading.get()
    if message is not None:
        message[0] += count
    return await _originals["part"](stream, count)


async def _read(comm: Any, deserializers: Any = None) -> Any:
    count = [0]
    token = _reading.set(count)
    try:
        return await _originals["read"](comm, deserializers)
    finally:
        _reading.reset(token)
        _bytes["read", comm.peer_address] += count[0]


async def _write(comm: Any, message: Any, *args: Any, **options: Any) -> Any:
    count = await _originals["write"](comm, message, *args, **options)
    _bytes["written", comm.peer_address] += count
    return count
