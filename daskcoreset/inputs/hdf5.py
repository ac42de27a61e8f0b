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
from daskcoreset.core.typing import AnyArray
from daskcoreset.inputs.options import MissingChunks
from daskcoreset.inputs.places import Place, clear_errors, read_clearly
from daskcoreset.inputs.seen import Layout, check_seen, here
from daskcoreset.inputs.sources import Source, import_reader
from daskcoreset.inputs.stored import filled_regions


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
        return Hdf5Array(self._file[name], self._place)

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


@contextmanager
def open_hdf5(place: Place) -> Iterator[Any]:
    """Open an HDF5 file."""
    import h5py

    with ExitStack() as stack:
        remote = place.filesystem is not None
        opened = stack.enter_context(place.open()) if remote else place.path
        yield stack.enter_context(h5py.File(opened, "r"))


def hdf5_source(array: Any, missing_chunks: MissingChunks = "raise") -> Source:
    """Return the source of an HDF5 data set; tasks open the file, for handles do not pickle.

    Parameters
    ----------
    array : h5py.Dataset or Hdf5Array
    missing_chunks : {"raise", "fill"}, default="raise"
        What becomes of chunks that were never written, as of Zarr arrays. So it is of arrays
        without chunks of which nothing was written, and of the sources of virtual data sets.
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
                f"the HDF5 data set {key!r} is in memory, where workers cannot read it; "
                f"save its file to disk, or pass the array, dataset[:]."
            )

    opened = Layout(tuple(dataset.shape or ()), dataset.dtype)
    loader = partial(partial, _hdf5_rows, place, key, opened, missing_chunks)
    granularity = int(dataset.chunks[0]) if dataset.chunks else 1
    name = f"{place.name}:{key}"
    return Source(
        opened.shape, opened.dtype, loader, granularity, name=name, in_process=place.in_process
    )


def _hdf5_rows(  # noqa: PLR0917 - all of them are always given
    place: Place, key: str, opened: Layout, missing_chunks: MissingChunks, start: int, stop: int
) -> Any:
    def read() -> Any:
        with open_hdf5(place) as file:
            dataset = file[key]
            check_seen(f"{place.name}:{key}", opened, Layout(dataset.shape, dataset.dtype))
            values = dataset[start:stop]
            if missing_chunks == "raise":
                _check_stored(dataset, place, values, start)
            return values

    what = f"rows {start} to {stop} of the data set {key!r} in {place.name!r}"
    return read_clearly(lambda: what, read, place.url)


# --- what is not stored ------------------------------------------------------------------


def _check_stored(dataset: Any, place: Place, values: AnyArray, start: int) -> None:
    """Raise an error if some rows are fill values because they are not stored."""
    stop = start + len(values)
    if dataset.is_virtual:
        _check_sources(dataset, place, start, stop)
        return
    if dataset.external or not len(values):  # a file that is not there is an error of HDF5
        return
    bounds = [(start, stop), *((0, length) for length in dataset.shape[1:])]
    chunks = dataset.chunks or dataset.shape
    for region in filled_regions(np.asarray(values), bounds, chunks, dataset.fillvalue):
        row = region[0].start
        if dataset.chunks is None:
            is_stored, what = dataset.id.get_storage_size() > 0, "the array"
        else:
            corner = tuple(
                part.start // chunk * chunk for part, chunk in zip(region, chunks, strict=True)
            )
            is_stored = dataset.id.get_chunk_info_by_coord(corner).byte_offset is not None
            what = f"the chunk at {corner}"
        if not is_stored:
            raise StoreError(
                f"{what} of {place.name}:{dataset.name} was never written (row {row} of the "
                f"array), as seen on {here()}; restore it, or pass "
                f'missing_chunks="fill" if rows of {dataset.fillvalue!s} are meant.'
            )


def _check_sources(dataset: Any, place: Place, start: int, stop: int) -> None:
    """Raise an error if an array that some rows of a virtual data set come from is not there."""
    import h5py

    for part in dataset.virtual_sources():
        first, last = part.vspace.get_select_bounds()
        if first[0] >= stop or last[0] < start or part.file_name == ".":
            continue
        # HDF5 looks beside the file, and where the process runs.
        beside = Path(place.path).parent / part.file_name
        paths = [] if place.filesystem is not None else [beside, Path(part.file_name)]
        path = next((one for one in paths if one.is_file()), None)
        found = False
        if path is not None:
            with h5py.File(path, "r") as source:
                found = part.dset_name in source
        if not found:
            raise StoreError(
                f"{place.name}:{dataset.name} is a virtual data set, whose rows {first[0]} to "
                f"{last[0] + 1} are those of {part.dset_name!r} in {part.file_name!r}, which is "
                f"not there on {here()}; let every worker see it beside the file, or pass "
                f'missing_chunks="fill" if rows of {dataset.fillvalue!s} are meant.'
            )
