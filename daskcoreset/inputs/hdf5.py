"""HDF5 files: their arrays by name, read again by every task, and what is not stored found."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from daskcoreset.core.messages import import_optional
from daskcoreset.core.typing import AnyArray, MissingChunks
from daskcoreset.errors import InvalidInputError
from daskcoreset.inputs.arrays import Group, RowArray
from daskcoreset.inputs.filesystems import Place, check_seen, is_fill, not_stored, reading
from daskcoreset.inputs.options import ReadOptions

# Attributes that tell how values are coded, or that they are dates.
_CODES = ("scale_factor", "add_offset", "_FillValue", "missing_value", "units")


class Hdf5Group(Group):
    """The arrays of an open HDF5 file, or of a group in it, and of the groups below.

    Parameters
    ----------
    group : h5py.Group
    missing_chunks : {"raise", "fill"}
    place : Place, optional
        From which tasks open the file again.
    """

    def __init__(
        self, group: Any, missing_chunks: MissingChunks, place: Place | None = None
    ) -> None:
        import h5py

        self.group, self.missing_chunks, self.place = group, missing_chunks, place
        self._names: list[str] = []

        def visit(name: str, item: Any) -> None:  # which may be a data type
            if isinstance(item, h5py.Dataset):
                self._names.append(name)

        group.visititems(visit)

    def names(self) -> list[str]:
        """Return the names of the arrays."""
        return self._names

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of an array."""
        return tuple(self.group[name].shape or ())

    def rows(self, name: str) -> Hdf5Rows:
        """Return the rows of an array."""
        return Hdf5Rows(self.group[name], self.missing_chunks, self.place)


def open_hdf5(place: Place, stack: ExitStack, options: ReadOptions) -> Hdf5Group:
    """Open an HDF5 file."""
    return Hdf5Group(stack.enter_context(_file_at(place)), options.missing_chunks, place)


@contextmanager
def _file_at(place: Place) -> Iterator[Any]:
    """Open an HDF5 file."""
    h5py = import_optional("h5py")
    with ExitStack() as stack:
        opened = place.path if place.is_local else stack.enter_context(place.open())
        yield stack.enter_context(h5py.File(opened, "r"))


class Hdf5Rows(RowArray):
    """Rows of an HDF5 data set. Tasks open the file, because handles do not pickle.

    Chunks that were never written are an error, and so are arrays without chunks of which nothing
    was written. Virtual data sets and those whose values lie in other files are read as HDF5 reads
    them.

    Parameters
    ----------
    dataset : h5py.Dataset
    missing_chunks : {"raise", "fill"}
    place : Place, optional
        From which tasks open the file again.
    """

    name: str
    decoder = "h5py"

    def __init__(
        self, dataset: Any, missing_chunks: MissingChunks, place: Place | None = None
    ) -> None:
        if place is None and not (dataset and Path(os.fsdecode(dataset.file.filename)).is_file()):
            raise InvalidInputError(
                "X is an HDF5 data set of a file that is closed or in memory, which tasks cannot "
                "open",
                argument="X",
                remedy="pass the path of a file, or the array, dataset[:]",
            )
        self.place = place or Place.of(os.fsdecode(dataset.file.filename))
        self.shape, self.dtype = tuple(dataset.shape or ()), dataset.dtype
        self.key, self.fills = str(dataset.name), missing_chunks == "fill"
        self.granularity = int(dataset.chunks[0]) if dataset.chunks else 1
        self.name, self.in_process = f"{self.place.name}:{self.key}", self.place.in_process
        self.attrs = {}
        for key in _CODES:
            with suppress(Exception):  # attributes may be of types that h5py does not read
                self.attrs[key] = dataset.attrs[key]

    def __getitem__(self, rows: slice) -> Any:
        return self.ranges([rows])[0]

    def ranges(self, ranges: Sequence[slice]) -> list[Any]:
        """Return ranges of rows of a file that is opened once."""
        rows = f"rows {ranges[0].start} to {ranges[-1].stop}"
        what = f"{rows} of the data set {self.key!r} in {self.place.name!r}"
        with reading(what), _file_at(self.place) as file:
            dataset = file[self.key]
            check_seen(self.name, (self.shape, self.dtype), (dataset.shape, dataset.dtype))
            return [self._read(dataset, one) for one in ranges]

    def _read(self, dataset: Any, rows: slice) -> AnyArray:
        import h5py

        values = np.asarray(dataset[rows])
        if self.fills or dataset.is_virtual or dataset.external or not values.size:
            return values
        plist = dataset.id.get_create_plist()
        has_fill = plist.fill_value_defined() != h5py.h5d.FILL_VALUE_UNDEFINED
        fill = dataset.fillvalue if has_fill else None
        if has_fill and not is_fill(values, fill).any():
            return values
        if dataset.chunks is None:
            if not dataset.id.get_storage_size():
                raise not_stored(self.name, fill)
            return values
        bounds = [(rows.start, rows.stop), *((0, length) for length in self.shape[1:])]
        corners = (
            range(low // chunk * chunk, high, chunk)
            for (low, high), chunk in zip(bounds, dataset.chunks, strict=True)
        )
        for corner in itertools.product(*corners):
            if dataset.id.get_chunk_info_by_coord(corner).byte_offset is None:
                raise not_stored(f"the chunk at {corner} of {self.name}", fill)
        return values
