"""HDF5 files: their arrays by name, read again by every task, and what is not stored found."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from daskcoreset.core.messages import import_optional
from daskcoreset.core.typing import AnyArray, IndexArray, MissingChunks
from daskcoreset.errors import InvalidInputError
from daskcoreset.inputs.arrays import Group, RowArray, near, stacked
from daskcoreset.inputs.filesystems import (
    Layout,
    Place,
    check_seen,
    clear_errors,
    is_fill,
    not_stored,
    read_clearly,
)
from daskcoreset.inputs.options import ReadOptions

# Attributes that tell how values are coded, or that they are dates.
PACKING = ("scale_factor", "add_offset", "_FillValue", "missing_value", "units")


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
        self.group, self.missing_chunks = group, missing_chunks
        self.place = place or _place_of(group)

    def names(self) -> list[str]:
        """Return the names of the arrays."""
        import h5py

        names: list[str] = []
        with clear_errors("X", self.place.url or self.place.path, "an HDF5 file"):
            # The visitor goes on for as long as it gets None. Data types are no arrays.
            self.group.visititems(
                lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None
            )
            # So that asking for one of them says what it is; others are no candidates.
            links = self._links()
        return names + [name for name in links if not names or name == "X"]

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of an array."""
        return tuple(self._dataset(name).shape or ())

    def rows(self, name: str) -> Hdf5Rows:
        """Return the rows of an array."""
        return hdf5_rows(self._dataset(name), self.missing_chunks, self.place)

    def _dataset(self, name: str) -> Any:
        if name in (links := self._links()):
            raise InvalidInputError(
                f"the array {name!r} of {self.place.name!r} is a link to "
                f"{links[name]!r}, and links to other files are not followed",
                remedy="pass that file",
            )
        return self.group[name]

    def _links(self) -> dict[str, str]:
        """Return the links to other files, and these."""
        import h5py

        found = {name: self.group.get(name, getlink=True) for name in self.group}
        return {name: x.filename for name, x in found.items() if isinstance(x, h5py.ExternalLink)}


def open_hdf5(place: Place, name: str, stack: ExitStack, options: ReadOptions) -> Hdf5Group:
    """Open an HDF5 file, passed as the argument `name`."""
    import_optional("h5py", name)
    return Hdf5Group(stack.enter_context(_file_at(place)), options.missing_chunks, place)


@contextmanager
def _file_at(place: Place) -> Iterator[Any]:
    """Open an HDF5 file."""
    import h5py

    with ExitStack() as stack:
        opened = place.path if place.is_local else stack.enter_context(place.open())
        yield stack.enter_context(h5py.File(opened, "r"))


@dataclass(frozen=True, eq=False)
class Hdf5Rows(RowArray):
    """Rows of an HDF5 data set. Tasks open the file, because handles do not pickle.

    Attributes
    ----------
    place : Place
    key : str
        Name of the data set in its file.
    missing_chunks : {"raise", "fill"}
        How to treat chunks that were never written, and arrays without chunks of which nothing was
        written. Virtual data sets and those whose values lie in other files are read as HDF5 reads
        them.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    place: Place
    key: str
    missing_chunks: MissingChunks
    granularity: int
    name: str
    in_process: bool
    attrs: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, rows: slice) -> Any:
        what = f"rows {rows.start} to {rows.stop} of the data set {self.key!r} in "
        what += repr(self.place.name)
        return read_clearly(lambda: what, lambda: next(self._ranges([rows])), self.place.url)

    def take(self, rows: IndexArray) -> Any:
        """Read rows by increasing numbers from a file that is opened once."""
        chunk = self.granularity if self.granularity > 1 else None
        groups = near(rows, self.row_bytes, chunk) if len(rows) else []
        ranges = [slice(int(own[0]), int(own[-1]) + 1) for own in groups] or [slice(0, 0)]

        def read() -> Any:
            found = zip(groups or [rows], self._ranges(ranges), strict=True)
            return stacked([values[own - own[:1]] for own, values in found])

        what = f"{len(rows)} rows of the data set {self.key!r} in {self.place.name!r}"
        return read_clearly(lambda: what, read, self.place.url)

    def _ranges(self, ranges: Sequence[slice]) -> Iterator[Any]:
        with _file_at(self.place) as file:
            dataset = file[self.key]
            opened = Layout(self.shape, self.dtype)
            check_seen(self.name, opened, Layout(dataset.shape, dataset.dtype))
            own = not (dataset.is_virtual or dataset.external)
            for rows in ranges:
                values = dataset[rows]
                if self.missing_chunks == "raise" and own and values.size:
                    _check_stored(dataset, self.name, np.asarray(values), rows.start)
                yield values


def hdf5_rows(dataset: Any, missing_chunks: MissingChunks, place: Place | None = None) -> Hdf5Rows:
    """Return the rows of an `h5py.Dataset`."""
    place = place or _place_of(dataset)
    if place.is_local and not Path(place.path).is_file():
        raise InvalidInputError(
            f"the HDF5 data set {dataset.name!r} is in memory, where workers cannot read it",
            remedy="save its file to disk, or pass the array, dataset[:]",
        )
    attrs = {}
    for key in PACKING:
        with suppress(Exception):  # attributes may be of types that h5py does not read
            attrs[key] = dataset.attrs[key]
    return Hdf5Rows(
        tuple(dataset.shape or ()),
        dataset.dtype,
        place,
        str(dataset.name),
        missing_chunks,
        int(dataset.chunks[0]) if dataset.chunks else 1,
        f"{place.name}:{dataset.name}",
        place.in_process,
        attrs,
    )


def _place_of(item: Any) -> Place:
    """Return the place of the file of an open group or data set."""
    return Place(os.path.abspath(os.fsdecode(item.file.filename)))  # noqa: PTH100 - no links


# --- what is not stored ------------------------------------------------------------------


def _check_stored(dataset: Any, name: str, values: AnyArray, start: int) -> None:
    """Raise an error if some rows, read from `start` on, are of a chunk that is not stored."""
    import h5py

    defined = dataset.id.get_create_plist().fill_value_defined() != h5py.h5d.FILL_VALUE_UNDEFINED
    fill = dataset.fillvalue if defined else None
    if defined and not is_fill(values, fill).any():
        return
    if dataset.chunks is None:
        if not dataset.id.get_storage_size():
            raise not_stored(name, fill)
        return
    bounds = [(start, start + len(values)), *((0, length) for length in dataset.shape[1:])]
    corners = itertools.product(
        *(
            range(low // chunk * chunk, high, chunk)
            for (low, high), chunk in zip(bounds, dataset.chunks, strict=True)
        )
    )
    for corner in corners:
        if dataset.id.get_chunk_info_by_coord(corner).byte_offset is None:
            raise not_stored(f"the chunk at {corner} of {name}", fill)
