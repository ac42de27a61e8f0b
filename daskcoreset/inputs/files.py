"""NumPy files, on a local disk or behind a URL: arrays, or groups of them."""

from __future__ import annotations

import io
import os
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from daskcoreset.core.errors import InvalidInputError, StoreError
from daskcoreset.core.typing import AnyArray, IndexArray
from daskcoreset.inputs.arrays import MemoryRows, RowArray
from daskcoreset.inputs.filesystems import Layout, Place, check_seen, clear_errors, read_clearly
from daskcoreset.inputs.sources import Loader, Source

T = TypeVar("T")

# How often the header of a .npy file is read again; a read fails once in some hundreds where eight
# threads do nothing else.
_READS = 9

# Openings of files whose headers this process has seen: of these none are read again.
_seen: set[str] = set()

# Bytes of a .npy file that hold its header, unless its dtype has thousands of fields.
_HEADER = 4096


def open_numpy(place: Place, name: str, stack: ExitStack, _keys: Sequence[str]) -> Any:
    """Open a .npy or .npz file, passed as the argument `name`."""
    with clear_errors(name, place.url or place.path, "an array of numbers"):
        if not place.is_local and place.suffix == ".npy":
            return _remote_array(place, name)
        file = place.path if place.is_local else stack.enter_context(place.open())
        loaded: Any = read_npy(lambda: np.load(file, mmap_mode="r", allow_pickle=False))
        if not isinstance(loaded, np.lib.npyio.NpzFile):
            return loaded
        stack.enter_context(loaded)
        if "format" not in loaded:
            return loaded
    import scipy.sparse as sp

    return sp.load_npz(place.path if place.is_local else place.open())


def _remote_array(place: Place, name: str) -> Source:
    layout = npy_layout(place.read(0, _HEADER))
    shape, dtype, (by_columns, offset) = layout
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
    needed = offset + dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    if stored is not None and stored < needed:
        raise InvalidInputError(
            f"{name}: {place.name!r} has {stored} bytes, but an array of shape "
            f"{shape} needs {needed}: the file is cut short",
            argument=name,
            remedy="restore it",
        )
    return file_source(place, layout)


def memmap_source(array: np.memmap[Any, Any]) -> RowArray:
    """Return a source whose tasks map the file again, or the array where that is impossible."""
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
    path, first, strides = os.fspath(filename), base.offset + ahead, array.strides
    shape, dtype = array.shape, array.dtype  # the array itself would stay mapped

    header = _npy_header(path, base.offset)
    loader = partial(_mapped_loader, path, header, first, dtype, shape[1:], strides)
    take = partial(_mapped_at, loader, shape[0])
    return Source(shape, dtype, loader, name=path, taken=take)


def _mapped_at(loader: Callable[[int, int], Loader], n_rows: int, rows: IndexArray) -> AnyArray:
    """Map all rows, of which the system reads those that are taken."""
    taken: AnyArray = loader(0, n_rows)()[rows]
    return taken


def _npy_header(path: str, offset: int) -> bytes:
    """Return the header of a .npy file, which says what its bytes are. Nothing of other files."""
    with open(path, "rb") as file:  # noqa: PTH123 - a name that may be of bytes
        header = file.read(offset)
    return header if header.startswith(np.lib.format.MAGIC_PREFIX) else b""


def read_npy(read: Callable[[], T]) -> T:
    """Return what NumPy reads of a .npy file, asked again where Python miscounts.

    NumPy parses headers with `ast.literal_eval`, whose count of depths is shared by all threads
    in Python 3.11: where one parses while another does, `SystemError` is raised, and
    nothing is wrong with the file (https://github.com/python/cpython/issues/106905).

    Parameters
    ----------
    read : callable of no arguments
        Reads from the start of the header whenever it is called.
    """
    for _ in range(_READS):
        with suppress(SystemError):
            return read()
    return read()


def npy_layout(header: bytes) -> Layout:
    """Return what the header of a .npy file says. Its rest are the order and the first byte.

    Raises
    ------
    ValueError
        For other files.
    """

    def parsed() -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
        file = io.BytesIO(header)
        version = np.lib.format.read_magic(file)
        read = {(1, 0): np.lib.format.read_array_header_1_0}.get(
            version, np.lib.format.read_array_header_2_0
        )
        return (*read(file), file.tell())

    shape, fortran, dtype, first = read_npy(parsed)
    # The columns of a longer array lie elsewhere, where it is stored by columns.
    by_columns = shape if fortran and len(shape) > 1 else None
    return Layout(shape, dtype, (by_columns, first))


def _check_header(name: str, opened: Layout, header: bytes) -> None:
    """Check that a .npy file is the one that was opened."""
    try:
        found = npy_layout(header)
    except ValueError:
        found = Layout((), np.dtype(np.void))
    check_seen(name, opened, found)


def _mapped_loader(  # noqa: PLR0917 - all of them are always given
    path: str,
    header: bytes,
    first: int,
    dtype: np.dtype[Any],
    row_shape: tuple[int, ...],
    strides: tuple[int, ...],
    start: int,
    stop: int,
) -> Loader:
    rows = (stop - start, *row_shape)
    return partial(_mapped_rows, path, header, first + start * strides[0], dtype, rows, strides)


def _mapped_rows(  # noqa: PLR0917 - all of them are always given
    path: str,
    header: bytes,
    first: int,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    strides: tuple[int, ...],
) -> AnyArray:
    """Map rows from the byte `first` of a file on. The system reads them as they are used."""
    # A negative stride leads to bytes before the first one.
    reach = [(length - 1) * stride for length, stride in zip(shape, strides, strict=True)]
    low = first + sum(min(0, r) for r in reach)
    high = first + sum(max(0, r) for r in reach) + dtype.itemsize
    what = f"{shape[0]} rows from byte {first} of {path!r}"
    found = read_clearly(lambda: what, lambda: _npy_header(path, len(header)), path)
    if found != header:
        _check_header(path, npy_layout(header), found)
    raw = read_clearly(
        lambda: what,
        lambda: np.memmap(path, np.uint8, "r", low, (high - low,)),
    )
    return np.ndarray(shape, dtype, raw, first - low, strides)


def file_source(place: Place, layout: Layout) -> Source:
    """Return the source of a remote .npy file, whose rows lie one after another."""
    opening = uuid.uuid4().hex
    _seen.add(opening)
    loader = partial(partial, _file_rows, place, layout, opening)
    return Source(
        layout.shape,
        layout.dtype,
        loader,
        name=place.name,
        in_process=place.in_process,
    )


def _file_rows(place: Place, layout: Layout, opening: str, start: int, stop: int) -> AnyArray:
    dtype, shape = layout.dtype, (stop - start, *layout.shape[1:])
    _, offset = layout.rest
    if opening not in _seen:
        header = read_clearly(
            lambda: f"the header of {place.name!r}", lambda: place.read(0, offset), place.url
        )
        _check_header(place.name, layout, header)
        _seen.add(opening)
    row_bytes = dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64))
    first, n_bytes = offset + start * row_bytes, shape[0] * row_bytes
    what = f"rows {start} to {start + shape[0]} of {place.name!r}"
    raw = read_clearly(lambda: what, lambda: place.read(first, first + n_bytes), place.url)
    if len(raw) != n_bytes:
        reason = "the file is cut short" if len(raw) < n_bytes else "the server sends no ranges"
        raise StoreError(
            f"{what} take {n_bytes} bytes, but {len(raw)} were read: {reason}",
            remedy="restore the file, or copy it to a local disk",
        )
    return np.frombuffer(raw, dtype).reshape(shape)
