"""NumPy and HDF5 files, on a local disk or behind a URL: arrays, or groups of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.inputs.places import Place, clear_errors
from daskcoreset.inputs.sources import Source, file_source, hdf5_source, import_reader, open_hdf5

# Bytes of a .npy file that hold its header, unless its dtype has thousands of fields.
_HEADER = 4096


class Hdf5File:
    """The arrays of an open HDF5 file, by name.

    Parameters
    ----------
    file : h5py.File
    place : Place
        From which tasks open it again.
    """

    def __init__(self, file: Any, place: Place) -> None:
        self._file = file
        self._place = place

    def __getitem__(self, name: str) -> Source:
        return hdf5_source(self._file[name], self._place)

    def array_keys(self) -> list[str]:
        """Return the names of all arrays, in folders as well."""
        names: list[str] = []
        # The visitor goes on for as long as it gets None.
        with clear_errors("X", self._place.url or self._place.path, "an HDF5 file"):
            self._file.visititems(
                lambda name, item: names.append(name) if hasattr(item, "dtype") else None
            )
        return names


def open_hdf5_file(place: Place, name: str, stack: ExitStack, _keys: Sequence[str]) -> Any:
    """Open an HDF5 file, passed as the argument `name`."""
    import_reader("h5py", "hdf5", name)
    with clear_errors(name, place.url or place.path, "an HDF5 file"):
        return Hdf5File(stack.enter_context(open_hdf5(place)), place)


def open_numpy(place: Place, name: str, stack: ExitStack, _keys: Sequence[str]) -> Any:
    """Open a .npy or .npz file, passed as the argument `name`."""
    with clear_errors(name, place.url or place.path, "an array of numbers"):
        if place.filesystem is not None and place.suffix == ".npy":
            return _remote_array(place, name)
        file = place.path if place.filesystem is None else stack.enter_context(place.open())
        loaded: Any = np.load(file, mmap_mode="r", allow_pickle=False)
        if not isinstance(loaded, np.lib.npyio.NpzFile):
            return loaded
        stack.enter_context(loaded)
        if "format" not in loaded:
            return loaded
    import scipy.sparse as sp

    return sp.load_npz(place.path if place.filesystem is None else place.open())


def _remote_array(place: Place, name: str) -> Source:
    import io

    header = io.BytesIO(place.read(0, _HEADER))
    version = np.lib.format.read_magic(header)
    read = {(1, 0): np.lib.format.read_array_header_1_0}.get(
        version, np.lib.format.read_array_header_2_0
    )
    shape, fortran, dtype = read(header)
    if dtype.hasobject:
        message = "Object arrays cannot be loaded when allow_pickle=False"
        raise ValueError(message)
    if fortran and len(shape) > 1:
        raise InvalidInputError(
            f"{name}: {place.name!r} is stored column by column, so that its rows cannot be read "
            f"alone; save it with numpy.ascontiguousarray, or copy it to a local disk."
        )
    stored = place.filesystem.info(place.path).get("size")
    needed = header.tell() + dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    if stored is not None and stored < needed:
        raise InvalidInputError(
            f"{name}: {place.name!r} has {stored} bytes, and an array of shape {shape} takes "
            f"{needed}; the file is cut short, restore it."
        )
    return file_source(place, shape, dtype, header.tell())
