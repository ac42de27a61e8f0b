"""HDF5 files: their arrays by name, read again by every task, and what is not stored found."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from daskcoreset.core.errors import InvalidInputError, StoreError
from daskcoreset.core.typing import AnyArray, IndexArray, MissingChunks
from daskcoreset.inputs.arrays import near, stacked
from daskcoreset.inputs.filesystems import (
    Layout,
    Place,
    check_seen,
    clear_errors,
    here,
    read_clearly,
)
from daskcoreset.inputs.sources import Source, import_reader
from daskcoreset.inputs.zarr import filled_regions


class Hdf5Array(NamedTuple):
    """An array of an open HDF5 file.

    Attributes
    ----------
    dataset : h5py.Dataset
    place : Place
        From which tasks open the file again.
    """

    dataset: Any
    place: Place

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows, and columns."""
        return tuple(self.dataset.shape or ())


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

    def __getitem__(self, name: str) -> Hdf5Array:
        if name in (links := self._links()):
            raise InvalidInputError(
                f"the array {name!r} of {self._place.name!r} is a link to "
                f"{links[name]!r}, and links to other files are not followed",
                remedy="pass that file",
            )
        return Hdf5Array(self._file[name], self._place)

    def _links(self) -> dict[str, str]:
        """Return the links to other files, and these."""
        import h5py

        found = {name: self._file.get(name, getlink=True) for name in self._file}
        return {name: x.filename for name, x in found.items() if isinstance(x, h5py.ExternalLink)}

    def array_keys(self) -> list[str]:
        """Return the names of all arrays, in folders as well."""
        with clear_errors("X", self._place.url or self._place.path, "an HDF5 file"):
            names = dataset_names(self._file)
            # So that asking for one of them says what it is; others are no candidates.
            links = self._links()
        return names + [name for name in links if not names or name == "X"]


def dataset_names(group: Any) -> list[str]:
    """Return the names of all arrays in a group, and in those below it."""
    import h5py

    names: list[str] = []
    # The visitor goes on for as long as it gets None. Data types that are stored are no arrays.
    group.visititems(
        lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None
    )
    return names


def open_hdf5_file(place: Place, name: str, stack: ExitStack, _keys: Sequence[str]) -> Any:
    """Open an HDF5 file, passed as the argument `name`."""
    import_reader("h5py", "hdf5", name)
    with clear_errors(name, place.url or place.path, "an HDF5 file"):
        return Hdf5File(stack.enter_context(open_hdf5(place)), place)


@contextmanager
def open_hdf5(place: Place) -> Iterator[Any]:
    """Open an HDF5 file."""
    import h5py

    with ExitStack() as stack:
        opened = place.path if place.is_local else stack.enter_context(place.open())
        yield stack.enter_context(h5py.File(opened, "r"))


def hdf5_source(array: Any, missing_chunks: MissingChunks = "raise") -> Source:
    """Return the source of an HDF5 data set. Tasks open the file, for handles do not pickle.

    Parameters
    ----------
    array : h5py.Dataset or Hdf5Array
    missing_chunks : {"raise", "fill"}, default="raise"
        How to treat chunks that were never written, as for Zarr arrays. So it is of arrays
        without chunks of which nothing was written. Virtual data sets and those whose values lie
        in other files are read as HDF5 reads them.
    """
    place = None
    dataset = array
    if isinstance(array, Hdf5Array):
        dataset, place = array
    key = str(dataset.name)
    if place is None:
        path = os.path.abspath(os.fsdecode(dataset.file.filename))  # noqa: PTH100 - no links
        place = Place(path)
        if not Path(path).is_file():
            raise InvalidInputError(
                f"the HDF5 data set {key!r} is in memory, where workers cannot read it",
                remedy="save its file to disk, or pass the array, dataset[:]",
            )

    opened = Layout(tuple(dataset.shape or ()), dataset.dtype)
    known = (place, key, opened, missing_chunks)
    loader = partial(partial, _hdf5_rows, *known)
    granularity = int(dataset.chunks[0]) if dataset.chunks else 1
    name = f"{place.name}:{key}"
    return Source(
        opened.shape,
        opened.dtype,
        loader,
        granularity,
        name=name,
        in_process=place.in_process,
        taken=partial(_hdf5_rows_at, *known),
    )


def _hdf5_rows(  # noqa: PLR0917 - all of them are always given
    place: Place, key: str, opened: Layout, missing_chunks: MissingChunks, start: int, stop: int
) -> Any:
    def read() -> Any:
        with _opened_again(place, key, opened) as dataset:
            return _read_range(dataset, place, missing_chunks, start, stop)

    what = f"rows {start} to {stop} of the data set {key!r} in {place.name!r}"
    return read_clearly(lambda: what, read, place.url)


def _hdf5_rows_at(
    place: Place, key: str, opened: Layout, missing_chunks: MissingChunks, rows: IndexArray
) -> Any:
    """Read rows by increasing numbers from a file that is opened once."""

    def read() -> Any:
        with _opened_again(place, key, opened) as dataset:
            row_bytes = dataset.nbytes // len(dataset)
            groups = near(rows, row_bytes, dataset.chunks[0] if dataset.chunks else None)
            found = []
            for own in groups:
                first, last = int(own[0]), int(own[-1])
                values = _read_range(dataset, place, missing_chunks, first, last + 1)
                found.append(values[own - first])
            return stacked(found)

    what = f"{len(rows)} rows of the data set {key!r} in {place.name!r}"
    return read_clearly(lambda: what, read, place.url)


@contextmanager
def _opened_again(place: Place, key: str, opened: Layout) -> Iterator[Any]:
    with open_hdf5(place) as file:
        dataset = file[key]
        check_seen(f"{place.name}:{key}", opened, Layout(dataset.shape, dataset.dtype))
        yield dataset


def _read_range(
    dataset: Any, place: Place, missing_chunks: MissingChunks, start: int, stop: int
) -> Any:
    values = dataset[start:stop]
    # Those of other files are read as HDF5 reads them.
    if missing_chunks == "raise" and values.size and not (dataset.is_virtual or dataset.external):
        _check_stored(dataset, place, np.asarray(values), start)
    return values


# --- what is not stored ------------------------------------------------------------------


def _check_stored(dataset: Any, place: Place, values: AnyArray, start: int) -> None:
    """Raise an error if some rows, read from `start` on, are fill values that are not stored."""
    bounds = [(start, start + len(values)), *((0, length) for length in dataset.shape[1:])]
    chunks = dataset.chunks or dataset.shape
    for region in filled_regions(values, bounds, chunks, _fill_of(dataset)):
        row = region[0].start if region else 0
        if dataset.chunks is None:
            is_stored, what = dataset.id.get_storage_size() > 0, "the array"
        else:
            corner = tuple(
                part.start // chunk * chunk for part, chunk in zip(region, chunks, strict=True)
            )
            is_stored = dataset.id.get_chunk_info_by_coord(corner).byte_offset is not None
            what = f"the chunk at {corner}"
        if not is_stored:
            fill = _fill_of(dataset)
            rows = "rows of any values" if fill is None else f"rows of {fill!s}"
            raise StoreError(
                f"{what} of {place.name}:{dataset.name} was never written (row {row} of the "
                f"array), as seen on {here()}",
                remedy='restore it, or pass open_rows(X, missing_chunks="fill") if '
                f"{rows} are meant",
            )


def _fill_of(dataset: Any) -> Any:
    """Return the fill value of an array. None if it has none, so that it may be any value."""
    import h5py

    defined = dataset.id.get_create_plist().fill_value_defined()
    return None if defined == h5py.h5d.FILL_VALUE_UNDEFINED else dataset.fillvalue
