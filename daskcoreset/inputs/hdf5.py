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
from daskcoreset.core.typing import AnyArray, IndexArray
from daskcoreset.inputs.options import MissingChunks
from daskcoreset.inputs.places import Place, clear_errors, read_clearly
from daskcoreset.inputs.seen import Layout, check_seen, here
from daskcoreset.inputs.sources import Source, import_reader, near, stacked
from daskcoreset.inputs.stored import filled_regions, is_fill


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
                f"the array {name!r} of {self._place.name!r} is a link to {links[name]!r}; links "
                f"to other files are not followed: pass that file."
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
        take=partial(_hdf5_rows_at, *known),
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
    if missing_chunks == "raise":
        bounds = [(start, stop), *((0, length) for length in dataset.shape[1:])]
        _check_stored(dataset, place, np.asarray(values), bounds)
    return values


# --- what is not stored ------------------------------------------------------------------


# Where values are in an array: first position and end in every dimension.
Bounds = list[tuple[int, int]]


def _check_stored(dataset: Any, place: Place, values: AnyArray, bounds: Bounds) -> None:
    """Raise an error if some values are fill values because they are not stored.

    Parameters
    ----------
    dataset : h5py.Dataset
    place : Place
        Of its file.
    values : ndarray
        What was read.
    bounds : list of (int, int)
        From where.
    """
    if not values.size:
        return
    if dataset.is_virtual:
        _check_sources(dataset, place, values, bounds)
    elif dataset.external:
        _check_raw_files(dataset, place)
    else:
        _check_chunks(dataset, place, values, bounds)


def _check_chunks(dataset: Any, place: Place, values: AnyArray, bounds: Bounds) -> None:
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
            raise StoreError(
                f"{what} of {place.name}:{dataset.name} was never written (row {row} of the "
                f"array), as seen on {here()}; restore it, or {_meant(dataset)}."
            )


def _fill_of(dataset: Any) -> Any:
    """Return the fill value of an array; None if it has none, so that it may be any value."""
    import h5py

    defined = dataset.id.get_create_plist().fill_value_defined()
    return None if defined == h5py.h5d.FILL_VALUE_UNDEFINED else dataset.fillvalue


def _meant(dataset: Any) -> str:
    fill = _fill_of(dataset)
    rows = "rows of any values" if fill is None else f"rows of {fill!s}"
    return f'pass missing_chunks="fill" if {rows} are meant'


def _check_raw_files(dataset: Any, place: Place) -> None:
    """Raise an error if the files outside, which hold an array's bytes, are too short for them."""
    prefix = os.environ.get("HDF5_EXTFILE_PREFIX") or os.fsdecode(
        dataset.id.get_access_plist().get_efile_prefix()
    )
    folder = prefix.replace("${ORIGIN}", str(Path(place.path).parent))
    left = dataset.size * dataset.dtype.itemsize
    for name, offset, length in dataset.external:
        needed, path = min(left, length), Path(folder) / name
        stored = path.stat().st_size - offset if path.is_file() else 0
        left -= needed
        if stored < needed:
            raise StoreError(
                f"{place.name}:{dataset.name} takes {needed} bytes from byte {offset} of {name!r} "
                f"on, which has {max(stored, 0)} of them on {here()}; restore that file, or "
                f"{_meant(dataset)}."
            )


def _check_sources(dataset: Any, place: Place, values: AnyArray, bounds: Bounds) -> None:
    """Raise an error if some rows of a virtual data set come from what is not there."""
    mapped = np.zeros(values.shape, bool)
    for part in dataset.virtual_sources():
        first, last = part.vspace.get_select_bounds()
        if any(
            low > end or high <= begin
            for begin, end, (low, high) in zip(first, last, bounds, strict=True)
        ):
            continue
        mapped[_selected(part.vspace, bounds)] = True
        what = (
            f"{place.name}:{dataset.name} is a virtual data set, whose rows {first[0]} to "
            f"{last[0] + 1} are those of {part.dset_name!r} in {part.file_name!r}, which is"
        )
        with ExitStack() as stack:
            found = _open_source(dataset, place, part, stack)
            if found is None:
                raise StoreError(
                    f"{what} not there on {here()}; let every worker see it beside the file, or "
                    f"{_meant(dataset)}."
                )
            source, its_place = found
            box = _mapped_box(part, source, bounds[0])
            if box is None:
                raise StoreError(
                    f"{what} of shape {source.shape} on {here()}, too small for them; restore it, "
                    f"or {_meant(dataset)}."
                )
            may_be_filled = source.is_virtual or is_fill(values, _fill_of(source)).any()
            if source.external or may_be_filled:
                _check_box(source, its_place, box, len(values))
    if not mapped.all():
        row = bounds[0][0] + int(np.argwhere(~mapped)[0, 0])
        raise StoreError(
            f"{place.name}:{dataset.name} is a virtual data set, whose row {row} comes from no "
            f"source, or not all of it; write it anew, or {_meant(dataset)}."
        )


def _open_source(dataset: Any, place: Place, part: Any, stack: ExitStack) -> Any:
    """Return an array that a virtual data set has rows of, and its place; None if none is there."""
    import h5py

    if part.file_name == ".":
        file, where = dataset.file, place
    else:
        # HDF5 looks beside the file, and where the process runs.
        beside = Path(place.path).parent / part.file_name
        paths = [] if place.filesystem is not None else [beside, Path(part.file_name)]
        path = next((one for one in paths if one.is_file()), None)
        if path is None:
            return None
        file, where = stack.enter_context(h5py.File(path, "r")), Place(str(path))
    return (file[part.dset_name], where) if part.dset_name in file else None


def _selected(space: Any, bounds: Bounds) -> Any:
    """Return the index, among the values within bounds, of those that are selected."""
    import h5py

    first, last = space.get_select_bounds()
    pattern = (
        first,
        (1,) * len(first),
        [end - begin + 1 for begin, end in zip(first, last, strict=True)],
        (1,) * len(first),
    )
    if space.get_select_type() == h5py.h5s.SEL_HYPERSLABS and space.is_regular_hyperslab():
        pattern = space.get_regular_hyperslab()
    chosen = []
    for start, stride, count, block, (low, high) in zip(*pattern, bounds, strict=True):
        at = np.arange(low, high) - start
        step = stride if count > 1 else block  # of one block, the stride says nothing
        chosen.append((at >= 0) & (at < step * count) & (at % step < block))
    return np.ix_(*chosen)


def _mapped_box(part: Any, source: Any, rows: tuple[int, int]) -> Bounds | None:
    """Return from where in a source some rows come, at most; None if it is too small for them."""
    import h5py

    n_mapped = part.vspace.get_select_npoints()
    if part.src_space.get_select_type() == h5py.h5s.SEL_ALL:
        if source.size < n_mapped:
            return None
        box = [(0, length) for length in source.shape]
    else:
        box = [(a, b + 1) for a, b in zip(*part.src_space.get_select_bounds(), strict=True)]
        if any(high > length for (_, high), length in zip(box, source.shape, strict=True)):
            return None
    first, last = part.vspace.get_select_bounds()
    is_dense = n_mapped == np.prod([b - a + 1 for a, b in zip(first, last, strict=True)])
    is_dense &= n_mapped == np.prod([high - low for low, high in box])
    if box and is_dense and box[0][1] - box[0][0] == last[0] - first[0] + 1:
        # One row of it is one row of the virtual data set.
        shift = box[0][0] - first[0]
        box[0] = max(rows[0], first[0]) + shift, min(rows[1], last[0] + 1) + shift
    return box


def _check_box(source: Any, place: Place, box: Bounds, n_rows: int) -> None:
    """Check what is in a box, some rows at a time."""
    if not box:
        return
    (low, high), rest = box[0], box[1:]
    for start in range(low, high, n_rows):
        bounds = [(start, min(start + n_rows, high)), *rest]
        values = source[tuple(slice(*one) for one in bounds)]
        _check_stored(source, place, np.asarray(values), bounds)
