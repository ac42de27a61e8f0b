"""NumPy files, on a local disk or behind a URL: arrays, or groups of them."""

from __future__ import annotations

import io
import math
import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from daskcoreset.core.typing import AnyArray, IndexArray
from daskcoreset.errors import InvalidInputError, StoreError
from daskcoreset.inputs.arrays import Group, MemoryRows, RowArray, sparse_rows
from daskcoreset.inputs.filesystems import Layout, Place, check_seen, read_clearly
from daskcoreset.inputs.options import ReadOptions

# Bytes of a .npy file that hold its header, unless its dtype has thousands of fields.
_HEADER = 4096


# The arrays of a sparse X in an .npz file, with y beside it.
_CSR = ("data", "indices", "indptr", "shape")


def open_numpy(place: Place, name: str, stack: ExitStack, _options: ReadOptions) -> Any:
    """Open a .npy or .npz file, passed as the argument `name`."""
    if not place.is_local and place.suffix == ".npy":
        return _remote_array(place, name)
    file = place.path if place.is_local else stack.enter_context(place.open())
    loaded: Any = np.load(file, mmap_mode="r", allow_pickle=False)
    if not isinstance(loaded, np.lib.npyio.NpzFile):
        return memmap_source(loaded)
    stack.enter_context(loaded)
    if "format" not in loaded:
        return NpzGroup(loaded, place.name)
    import scipy.sparse as sp

    return sparse_rows(sp.load_npz(place.path if place.is_local else place.open()))


class NpzGroup(Group):
    """The arrays of an open .npz file. One is read at once."""

    def __init__(self, file: Any, name: str) -> None:
        self.file, self.name = file, name

    def names(self) -> list[str]:
        """Return the names of the arrays."""
        names = list(self.file)
        return names if "X" in names or not {*_CSR} <= {*names} else ["X", *names]

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of an array."""
        return self.rows(name).shape

    def rows(self, name: str) -> RowArray:
        """Return the rows of an array."""
        if name not in self.file:
            import scipy.sparse as sp

            data, indices, indptr, shape = map(self._read, _CSR)
            return MemoryRows(sp.csr_array((data, indices, indptr), shape=tuple(shape.tolist())))
        return MemoryRows(self._read(name))

    def _read(self, name: str) -> AnyArray:
        what = f"the array {name!r} of {self.name!r}"
        return read_clearly(lambda: what, lambda: np.asarray(self.file[name]))


def _remote_array(place: Place, name: str) -> RangedRows:
    header = place.read(0, _HEADER)
    shape, dtype, (by_columns, offset) = _layout(header)
    if dtype.hasobject:
        message = "Object arrays cannot be loaded when allow_pickle=False"
        raise ValueError(message)
    if by_columns:
        raise InvalidInputError(
            f"{name}: {place.name!r} is stored column by column, so its rows cannot be read alone",
            argument=name,
            remedy="save it with numpy.ascontiguousarray, or copy it to a local disk",
        )
    stored = place.filesystem.info(place.path).get("size")
    needed = offset + dtype.itemsize * math.prod(shape)
    if stored is not None and stored < needed:
        raise InvalidInputError(
            f"{name}: {place.name!r} has {stored} bytes, but an array of shape "
            f"{shape} needs {needed}: the file is cut short",
            argument=name,
            remedy="restore it",
        )
    return RangedRows(shape, dtype, place, header[:offset], place.name, place.in_process)


@dataclass(frozen=True, eq=False)
class RangedRows(RowArray):
    """Rows of a .npy file behind a URL, which lie one after another."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    place: Place
    header: bytes
    name: str
    in_process: bool

    def __getitem__(self, rows: slice) -> AnyArray:
        place, offset = self.place, len(self.header)
        first, n_bytes = (
            offset + rows.start * self.row_bytes,
            (rows.stop - rows.start) * self.row_bytes,
        )
        what = f"rows {rows.start} to {rows.stop} of {self.name!r}"

        def read() -> bytes:
            _check_header(self.name, self.header, place.read(0, offset)[:offset])
            return place.read(first, first + n_bytes)

        raw = read_clearly(lambda: what, read, place.url)
        if len(raw) != n_bytes:
            reason = "the file is cut short" if len(raw) < n_bytes else "the server sends no ranges"
            raise StoreError(
                f"{what} take {n_bytes} bytes, but {len(raw)} were read: {reason}",
                remedy="restore the file, or copy it to a local disk",
            )
        return np.frombuffer(raw, self.dtype).reshape(-1, *self.shape[1:])


@dataclass(frozen=True, eq=False)
class MappedRows(RowArray):
    """Rows of a file that each task maps. The system reads them as they are used.

    Attributes
    ----------
    header : bytes
        That of a .npy file. Empty for other files.
    first : int
        Position of the first value of the first row in the file.
    strides : tuple of int
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    header: bytes
    first: int
    strides: tuple[int, ...]
    name: str

    def __getitem__(self, rows: slice) -> AnyArray:
        shape = rows.stop - rows.start, *self.shape[1:]
        first = self.first + rows.start * self.strides[0]
        # A negative stride leads to bytes before the first one.
        reach = [(length - 1) * stride for length, stride in zip(shape, self.strides, strict=True)]
        low = first + sum(min(0, r) for r in reach)
        n_bytes = sum(map(abs, reach)) + self.dtype.itemsize

        def mapped() -> AnyArray:
            _check_header(self.name, self.header, _header_of(self.name, len(self.header)))
            return np.memmap(self.name, np.uint8, "r", low, (n_bytes,))

        what = f"{shape[0]} rows from byte {first} of {self.name!r}"
        raw = read_clearly(lambda: what, mapped)
        return np.ndarray(shape, self.dtype, raw, first - low, self.strides)

    def take(self, rows: IndexArray) -> AnyArray:
        """Map all rows, of which the system reads those that are taken."""
        taken: AnyArray = self[0 : len(self)][rows]
        return taken


def memmap_source(array: np.memmap[Any, Any]) -> RowArray:
    """Return rows whose tasks map the file again, or the array where that is impossible."""
    filename: Any = array.filename
    # What was written into a copy-on-write map is in memory only.
    usable = isinstance(filename, (str, os.PathLike)) and array.mode != "c" and array.size > 0
    if not usable or not Path(filename).is_file():
        return MemoryRows(np.asarray(array))
    base: Any = array
    while isinstance(base.base, np.memmap):
        base = base.base
    # A view keeps the offset of the map it was cut from.
    ahead = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    path = os.fspath(filename)
    header = _header_of(path, base.offset)
    # The array itself would stay mapped.
    return MappedRows(array.shape, array.dtype, header, base.offset + ahead, array.strides, path)


def _header_of(path: str, offset: int) -> bytes:
    """Return the header of a .npy file, which tells what its bytes are. Empty for other files."""
    with Path(path).open("rb") as file:
        header = file.read(offset)
    return header if header.startswith(np.lib.format.MAGIC_PREFIX) else b""


def _layout(header: bytes) -> Layout:
    """Return what the header of a .npy file says. Its rest are the order and the first byte."""
    file = io.BytesIO(header)
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0
    shape, fortran, dtype = (read if version == (1, 0) else np.lib.format.read_array_header_2_0)(
        file
    )
    # The columns of a longer array lie elsewhere if it is stored by columns.
    return Layout(shape, dtype, (shape if fortran and len(shape) > 1 else None, file.tell()))


def _check_header(name: str, opened: bytes, found: bytes) -> None:
    """Check that a .npy file is the one that was opened, or has grown."""
    if found != opened:
        check_seen(name, _layout(opened), _layout(found) if found else Layout((), np.dtype("V")))
