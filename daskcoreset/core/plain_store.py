"""A Zarr store that reads a folder which is held open, and nothing but plain files in it."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from zarr.core.buffer import default_buffer_prototype
from zarr.storage import LocalStore

from daskcoreset.core.errors import StoreError
from daskcoreset.core.plain_files import PlainFolder
from daskcoreset.core.stored_arrays import MOST_METADATA, check_length
from daskcoreset.core.trust import REMEDY, are_trusted

if TYPE_CHECKING:
    from zarr.core.buffer import Buffer

# Above it, a file is looked at for holes.
_LARGE = 2**20


class PlainStore(LocalStore):
    """The files of a folder, to be read; a link, a pipe or a device is an error.

    All that is read is of the folder that was opened, even if another one is put in its place.

    Parameters
    ----------
    folder : PlainFolder
        Held as long as the store is read.
    """

    def __init__(self, folder: PlainFolder) -> None:
        super().__init__(folder.path, read_only=True)
        self.folder = folder

    async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Buffer | None:
        """Return a file; None where there is none."""
        if byte_range is not None:  # of shards, which are never written
            raise NotImplementedError("parts of files")
        return await self.get_at_most(key, prototype or default_buffer_prototype(), MOST_METADATA)

    async def get_at_most(self, key: str, prototype: Any, most: int) -> Buffer | None:
        """Return a file; None where there is none, and an error where it is longer."""
        data = await asyncio.to_thread(self._read, key, most)
        return None if data is None else prototype.buffer.from_bytes(data)

    async def getsize(self, key: str) -> int:
        """Return the number of bytes of a file."""
        descriptor = self._descriptor_of(key)
        try:
            return os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)

    def _read(self, key: str, most: int) -> bytes | None:
        try:
            descriptor = self._descriptor_of(key)
        except (FileNotFoundError, NotADirectoryError):
            return None
        with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
            size = os.fstat(descriptor).st_size
            check_length(str(self.folder.path / key), size, most)
            # A file of gigabytes may take no room on the disk; no file of ours has holes.
            if size > _LARGE and hasattr(os, "SEEK_HOLE") and not are_trusted():
                if os.lseek(descriptor, 0, os.SEEK_HOLE) < size:
                    raise StoreError(
                        f"{self.folder.path / key} is a file with holes, which is never written; "
                        f"{REMEDY}, or restore it from a copy"
                    )
                os.lseek(descriptor, 0, os.SEEK_SET)
            return file.read(size)

    def _descriptor_of(self, key: str) -> int:
        return self.folder.open_below(key)
