"""NumPy files, on a local disk or behind a URL: arrays, or groups of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.inputs.places import Place, clear_errors
from daskcoreset.inputs.sources import Source, file_source, npy_layout, read_npy

# Bytes of a .npy file that hold its header, unless its dtype has thousands of fields.
_HEADER = 4096


def open_numpy(place: Place, name: str, stack: ExitStack, _keys: Sequence[str]) -> Any:
    """Open a .npy or .npz file, passed as the argument `name`."""
    with clear_errors(name, place.url or place.path, "an array of numbers"):
        if place.filesystem is not None and place.suffix == ".npy":
            return _remote_array(place, name)
        file = place.path if place.filesystem is None else stack.enter_context(place.open())
        loaded: Any = read_npy(lambda: np.load(file, mmap_mode="r", allow_pickle=False))
        if not isinstance(loaded, np.lib.npyio.NpzFile):
            return loaded
        stack.enter_context(loaded)
        if "format" not in loaded:
            return loaded
    import scipy.sparse as sp

    return sp.load_npz(place.path if place.filesystem is None else place.open())


def _remote_array(place: Place, name: str) -> Source:
    layout = npy_layout(place.read(0, _HEADER))
    shape, dtype, (by_columns, offset) = layout
    if dtype.hasobject:
        message = "Object arrays cannot be loaded when allow_pickle=False"
        raise ValueError(message)
    if by_columns:
        raise InvalidInputError(
            f"{name}: {place.name!r} is stored column by column, so that its rows cannot be read "
            f"alone; save it with numpy.ascontiguousarray, or copy it to a local disk."
        )
    stored = place.filesystem.info(place.path).get("size")
    needed = offset + dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    if stored is not None and stored < needed:
        raise InvalidInputError(
            f"{name}: {place.name!r} has {stored} bytes, and an array of shape {shape} takes "
            f"{needed}; the file is cut short, restore it."
        )
    return file_source(place, layout)
