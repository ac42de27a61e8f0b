"""A Zarr store whose requests end at the deadline of the call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import TYPE_CHECKING, Any, TypeVar

from zarr.storage import LocalStore, MemoryStore, StorePath, WrapperStore, ZipStore

from daskcoreset.core.deadline import NO_ANSWER, Deadline, deadline
from daskcoreset.core.stored_arrays import get_at_most

if TYPE_CHECKING:
    from zarr.abc.store import Store

T = TypeVar("T")


class TimedStore(WrapperStore[Any]):
    """Another store, whose requests are given up when the time has passed.

    What is given up is cancelled, and its connection closed: nothing is written any more.

    Parameters
    ----------
    store : zarr.abc.store.Store
        As `timed` afterwards.
    limit : Deadline
    name : str
        What errors call it.
    """

    def __init__(self, store: Store, limit: Deadline, name: str) -> None:
        super().__init__(store)
        self.timed = store
        self.limit = limit
        self.name = name

    def _with_store(self, store: Store) -> TimedStore:
        return TimedStore(store, self.limit, self.name)

    def with_read_only(self, read_only: bool = False) -> TimedStore:
        """Return a store of the same objects that cannot write, or can again."""
        return self._with_store(self.timed.with_read_only(read_only))

    def __str__(self) -> str:
        return str(self.timed)

    async def _in_time(self, answer: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(max(self.limit.left, 0.0)) as timer:
                return await answer
        except TimeoutError:
            if not timer.expired():  # it is the store's own
                raise
        raise self.limit.error(f"{self.name} has not answered", NO_ANSWER)

    async def get(self, *args: Any, **options: Any) -> Any:
        """Return an object, or None."""
        return await self._in_time(self.timed.get(*args, **options))

    async def get_at_most(self, key: str, prototype: Any, most: int) -> Any:
        """Return an object, or None; an error where it is longer than `most` bytes."""
        return await self._in_time(get_at_most(self.timed, key, prototype, most))

    async def get_partial_values(self, *args: Any, **options: Any) -> Any:
        """Return parts of objects."""
        return await self._in_time(self.timed.get_partial_values(*args, **options))

    async def getsize(self, key: str) -> int:
        """Return the number of bytes of an object."""
        return await self._in_time(self.timed.getsize(key))

    async def exists(self, key: str) -> bool:
        """Return whether there is an object."""
        return await self._in_time(self.timed.exists(key))

    async def is_empty(self, prefix: str) -> bool:
        """Return whether there are no objects below a prefix."""
        return await self._in_time(self.timed.is_empty(prefix))

    async def set(self, *args: Any, **options: Any) -> None:
        """Write an object."""
        await self._in_time(self.timed.set(*args, **options))

    async def set_if_not_exists(self, *args: Any, **options: Any) -> None:
        """Write an object where there is none."""
        await self._in_time(self.timed.set_if_not_exists(*args, **options))

    async def delete(self, key: str) -> None:
        """Delete an object."""
        await self._in_time(self.timed.delete(key))

    async def delete_dir(self, prefix: str) -> None:
        """Delete all objects below a prefix."""
        await self._in_time(self.timed.delete_dir(prefix))

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Yield the names right below a prefix."""
        entries = self.timed.list_dir(prefix)
        while True:
            try:
                yield await self._in_time(anext(entries))
            except StopAsyncIteration:
                return


def timed(place: StorePath, name: str) -> StorePath:
    """Return a place whose requests end at the deadline of the call, if it has one.

    Files, and what is in memory, are as fast as they are.
    """
    limit = deadline()
    if limit is None or isinstance(place.store, (LocalStore, MemoryStore, ZipStore)):
        return place
    return StorePath(TimedStore(place.store, limit, name), place.path)
