"""A Zarr group as one object: a zip archive of its files, not compressed a second time.

An object store writes one object whole or not at all, but several one by one. Zarr's `ZipStore`
opens what is packed here.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import TYPE_CHECKING

from daskcoreset.core.errors import StoreError
from daskcoreset.storage import group
from daskcoreset.storage.group import GroupContents

if TYPE_CHECKING:
    from zarr.core.buffer import Buffer
    from zarr.storage import MemoryStore

# The earliest time that the format knows: the same contents are the same bytes.
_TIME = (1980, 1, 1, 0, 0, 0)


def files_of(contents: GroupContents) -> dict[str, bytes]:
    """Return the files of a group by name; contents are checked."""
    from zarr.storage import MemoryStore, StorePath

    files: dict[str, Buffer] = {}
    group.fill_group(StorePath(MemoryStore(files)), contents)
    return {name: files[name].to_bytes() for name in sorted(files)}


def store_of(files: Mapping[str, bytes]) -> MemoryStore:
    """Return a Zarr store of files in memory."""
    from zarr.core.buffer.cpu import Buffer
    from zarr.storage import MemoryStore

    return MemoryStore({name: Buffer.from_bytes(data) for name, data in files.items()})


def pack(contents: GroupContents) -> bytes:
    """Return a group as the bytes of an archive. Contents are checked.

    Examples
    --------
    >>> import numpy as np
    >>> ages = {"age": np.array([31, 45])}
    >>> packed = pack(GroupContents(ages, {"age": ("row",)}, {}, "demo", 1))
    >>> group.read_group(unpack(packed, "here"), kind="demo", schema_version=1)
    ({'age': array([31, 45])}, {})
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in files_of(contents).items():
            archive.writestr(zipfile.ZipInfo(name, _TIME), data)
    return buffer.getvalue()


def unpack(data: bytes, name: str) -> MemoryStore:
    """Return the Zarr store of an archive.

    Parameters
    ----------
    data : bytes
    name : str
        Name in errors.

    Raises
    ------
    StoreError
        It is damaged, or no archive that `pack` makes.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            # Compressed, or named many times, they could be larger than what was stored.
            plain = all(member.compress_type == zipfile.ZIP_STORED for member in members)
            size = sum(member.file_size for member in members)
            files = (
                {}
                if not plain or size > len(data)
                else {member.filename: archive.read(member) for member in members}
            )
    # A damaged archive makes the module raise almost anything.
    except Exception as error:
        raise StoreError(
            f"{name}: damaged ({error})", argument=name, remedy="restore it from a copy"
        ) from error
    return store_of(files)
