"""A Zarr store of an object store that looks at sizes before it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import zarr.storage

from daskcoreset.core.stored_arrays import MOST_METADATA, check_length

if TYPE_CHECKING:
    from zarr.core.buffer import Buffer

    ObjectStore = zarr.storage.ObjectStore[Any]
else:  # older versions of Zarr cannot be asked for the kind of objects
    ObjectStore = zarr.storage.ObjectStore


class BoundedObjects(ObjectStore):
    """The objects of a store; one that is too long is an error, and its body is not asked for."""

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Buffer | None:
        """Return an object, or a part of it; None where there is none."""
        if byte_range is not None:
            return await super().get(key, prototype, byte_range)
        return await self.get_at_most(key, prototype, MOST_METADATA)

    async def get_at_most(self, key: str, prototype: Any, most: int) -> Buffer | None:
        """Return an object; None where there is none, and an error where it is longer."""
        import obstore

        try:
            found = await obstore.get_async(self.store, key)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None
        check_length(key, found.meta["size"], most)
        buffer: Buffer = prototype.buffer.from_bytes(await found.bytes_async())
        return buffer
