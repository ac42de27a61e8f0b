"""NumPy files, on a local disk or behind a URL: arrays, or groups of them."""

from __future__ import annotations

import io
import os
from contextlib import ExitStack, suppress
from mmap import mmap
from typing import Any

import numpy as np
from numpy.lib import format as npy

from daskcoreset.core.typing import AnyArray, IndexArray
from daskcoreset.errors import InvalidInputError
from daskcoreset.inputs.arrays import Group, MemoryRows, RowArray, sparse_rows
from daskcoreset.inputs.filesystems import Place, check_seen, reading
from daskcoreset.inputs.options import ReadOptions

# Bytes of a .npy file that hold its header, unless its dtype has thousands of fields.
_HEADER = 4096


def open_numpy(place: Place, stack: ExitStack, _options: ReadOptions) -> Any:
    """Open a .npy or .npz file."""
    if place.suffix == ".npy":
        return MappedRows(npy.open_memmap(place.path, "r")) if place.is_local else RangedRows(place)
    loaded = stack.enter_context(np.load(stack.enter_context(place.open())))
    if "format" not in loaded:
        return NpzGroup(loaded, place.name)
    import scipy.sparse as sp

    return sparse_rows(sp.load_npz(stack.enter_context(place.open())))


class NpzGroup(Group):
    """The arrays of an open .npz file. One is read at once."""

    def __init__(self, file: Any, name: str) -> None:
        self.file, self.name = file, name

    def names(self) -> list[str]:
        """Return the names of the arrays."""
        return list(self.file)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of an array."""
        return self.rows(name).shape

    def rows(self, name: str) -> RowArray:
        """Return the rows of an array."""
        with reading(f"the array {name!r} of {self.name!r}"):
            return MemoryRows(np.asarray(self.file[name]))


class RangedRows(RowArray):
    """Rows of a .npy file behind a URL, which lie one after another."""

    name: str

    def __init__(self, place: Place) -> None:
        self.place, self.name, self.in_process = place, place.name, place.in_process
        self.shape, self.dtype, self.offset = self._header()

    def _header(self) -> tuple[tuple[int, ...], np.dtype[Any], int]:
        """Return shape and dtype, and the position of the first row."""
        file = io.BytesIO(self.place.read(0, _HEADER))
        is_first = npy.read_magic(file) == (1, 0)
        read = npy.read_array_header_1_0 if is_first else npy.read_array_header_2_0
        shape, by_columns, dtype = read(file)
        if dtype.hasobject or (by_columns and len(shape) > 1):
            raise InvalidInputError(
                f"{self.name!r} holds objects or is stored column by column, so that its rows "
                "cannot be read alone",
                remedy="save it with numpy.ascontiguousarray, or copy it to a local disk",
            )
        return shape, dtype, file.tell()

    def __getitem__(self, rows: slice) -> AnyArray:
        with reading(f"rows {rows.start} to {rows.stop} of {self.name!r}"):
            check_seen(self.name, (self.shape, self.dtype, self.offset), self._header())
            first, last = (self.offset + row * self.row_bytes for row in (rows.start, rows.stop))
            values = np.frombuffer(self.place.read(first, last), self.dtype)
            # An error if bytes are missing, or the server sends more than it was asked for.
            return values.reshape(rows.stop - rows.start, *self.shape[1:])


class MappedRows(RowArray):
    """Rows of a .npy file that each task maps. The system reads them as they are used."""

    name: str

    def __init__(self, array: np.memmap[Any, Any]) -> None:
        self.shape, self.dtype = array.shape, array.dtype
        self.name = os.fspath(array.filename or "")

    def __getitem__(self, rows: Any) -> AnyArray:
        with reading(f"rows of {self.name!r}"):
            mapped = npy.open_memmap(self.name, "r")
            check_seen(self.name, (self.shape, self.dtype), (mapped.shape, mapped.dtype))
            taken: AnyArray = np.asarray(mapped)[rows]
            return taken

    def take(self, rows: IndexArray) -> AnyArray:
        """Return rows by number, of which the system reads no others."""
        return self[rows]


def memmap_source(array: np.memmap[Any, Any]) -> RowArray:
    """Return the rows of a whole .npy file, which tasks map again. Other maps are in memory."""
    base: Any = array.base  # of a view another array
    if isinstance(base, mmap) and array.mode != "c" and array.filename is not None:
        with suppress(OSError, ValueError):  # the file is gone, or has another format
            found = npy.open_memmap(array.filename, "r")
            known = found.shape, found.dtype, found.offset
            if known == (array.shape, array.dtype, array.offset):
                return MappedRows(found)
    return MemoryRows(np.asarray(array))
