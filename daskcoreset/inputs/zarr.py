"""Zarr arrays that read what is stored: a chunk that is missing or damaged is an error.

Zarr reads a chunk that is not stored as the fill value, and leaves out chunks that would hold
nothing else. A chunk that was lost cannot be told from one that was left out. Users who left some
out pass ``missing_chunks="fill"``.
"""

from __future__ import annotations

import copy
import itertools
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl
from uuid import uuid4

import numpy as np

from daskcoreset.core.messages import warn_user
from daskcoreset.core.typing import AnyArray, MissingChunks
from daskcoreset.core.validation import shown, without_mask
from daskcoreset.errors import InvalidTypeError
from daskcoreset.inputs.arrays import Group, RowArray
from daskcoreset.inputs.cuts import HUGE_BYTES
from daskcoreset.inputs.filesystems import (
    Place,
    check_seen,
    is_fill,
    is_of,
    not_stored,
    opening,
    reading,
)
from daskcoreset.inputs.options import ReadOptions
from daskcoreset.storage.locations import store_name, zarr_store

# Openings of arrays, by their tokens, that this process has compared with what is stored.
_seen: set[str] = set()


# --- stores ------------------------------------------------------------------------------


def is_store(part: Any) -> bool:
    """Whether a part is a Zarr store, or a place in one."""
    zarr = sys.modules.get("zarr")
    if zarr is None:  # then there can be none
        return False
    from zarr.abc.store import Store
    from zarr.storage import StorePath

    return isinstance(part, (Store, StorePath))


def open_store(store: Any, name: str, options: ReadOptions) -> Any:
    """Open the array or group of a store, passed as the argument `name`."""
    import zarr

    shown = store_name(store)
    with opening(name, shown, f"a Zarr store ({type(store).__name__})"):
        return opened_zarr(zarr.open(store, mode="r"), options.missing_chunks)


def open_zarr(place: Place, _stack: ExitStack, options: ReadOptions) -> Any:
    """Open the array or group at a place."""
    import zarr

    target: Any = place.path  # with its links, which may lead elsewhere on a worker
    if not place.is_local:
        url, of_server = place.url, dict(options.storage_options or {})
        if url.startswith(("http://", "https://")):
            # A query is put behind the URL of every file in the store.
            url, _, query = url.partition("?")
            of_server = {"params": dict(parse_qsl(query, keep_blank_values=True))} | of_server
        target = zarr_store(url, of_server)
    return opened_zarr(zarr.open(target, mode="r"), options.missing_chunks)


def opened_zarr(found: Any, missing_chunks: MissingChunks) -> StoredRows | ZarrGroup:
    """Return the rows of a Zarr array, or the arrays of a group."""
    return (zarr_rows if hasattr(found, "shape") else ZarrGroup)(found, missing_chunks)


# --- arrays ------------------------------------------------------------------------------


def checked(array: Any, missing_chunks: MissingChunks = "raise") -> Any:
    """Return the same Zarr array, whose reads raise a `StoreError` for what is not there.

    Its store has an absolute path, and cannot be written: a writable local store makes its folder.
    """
    import zarr
    from zarr.storage import LocalStore, StorePath, ZipStore

    store: Any = array.store_path.store
    if type(store) is LocalStore:
        store = LocalStore(store.root.absolute(), read_only=True)
    elif type(store) is ZipStore and not store.path.is_absolute():
        store = copy.copy(store)
        store.path = store.path.absolute()
    place = StorePath(store, array.store_path.path)
    made = zarr.AsyncArray(metadata=array.metadata, store_path=place)
    # A pipeline is chosen when an array is made, by a setting of the whole process, which other
    # threads read at the same time.
    pipeline = CheckedPipeline(_decoder(made), place, missing_chunks, array.metadata)
    object.__setattr__(made, "codec_pipeline", pipeline)
    return type(array)(made)


class CheckedPipeline:
    """A codec pipeline of Zarr that raises a `StoreError` for chunks that are not stored.

    Parameters
    ----------
    decoder : CodecPipeline
    place : StorePath
        Of the array.
    missing_chunks : {"raise", "fill"}
        How to treat a chunk that is not stored: an error, or the fill value. Without a fill value
        (null, in format 2) it is always an error. So is a store that is not there.
    metadata : ArrayMetadata
        As the array was opened.
    """

    def __init__(
        self, decoder: Any, place: Any, missing_chunks: MissingChunks, metadata: Any
    ) -> None:
        self.decoder, self.place, self.metadata = decoder, place, metadata
        self.may_fill = missing_chunks == "fill" and metadata.fill_value is not None
        self.opening = uuid4().hex  # a store that is rewritten after it is another one
        self.name = store_name(place)

    @cached_property
    def form(self) -> tuple[Any, ...]:
        """What must be the same when the array is read."""
        return _form(self.metadata)

    async def read(self, batch: Iterable[Any], out: Any, drop_axes: tuple[int, ...] = ()) -> None:
        """Decode chunks, and check those of which nothing was read but the fill value."""
        batch = list(batch)
        if self.opening not in _seen:
            await self._is_there()
        try:
            await self.decoder.read(batch, out, drop_axes)
        except Exception:
            for one in batch:  # to name the chunk
                with reading(f"{self._key(one[0])} of {self.name}"):
                    await self.decoder.read([one], out, drop_axes)
            raise
        values = out.as_ndarray_like()
        for chunk, spec, selection, place, *_ in batch:
            missing = await self._missing(chunk, spec, selection, np.atleast_1d(values[place]))
            if missing is None:
                continue
            what = f"{missing} of {self.name}"
            if not await self._is_there():
                with reading(what):
                    raise FileNotFoundError("no array is there")
            if self.may_fill:
                return
            raise not_stored(what, self.metadata.fill_value)

    async def _is_there(self) -> bool:
        """Whether this process sees the array. Another one than was opened is an error."""
        from zarr.api.asynchronous import open_array

        version = self.metadata.zarr_format
        try:
            found = await open_array(store=self.place, mode="r", zarr_format=version)
        except Exception:  # noqa: BLE001 - every kind of store has errors of its own
            return False  # or a group has its metadata
        check_seen(self.name, self.form, _form(found.metadata))
        _seen.add(self.opening)
        return True

    def _key(self, chunk: Any) -> str:
        return f"chunk {chunk.path.removeprefix(self.place.path + '/')!r}"

    async def _missing(self, chunk: Any, spec: Any, selection: Any, values: AnyArray) -> str | None:
        """Name a chunk that is not stored, or one inside of a shard. None if all are."""
        from zarr.codecs import ShardingCodec

        codec = next(iter(getattr(self.metadata, "codecs", ())), None)
        # Without a fill value the buffer holds zeros.
        fill = np.zeros((), values.dtype)[()] if spec.fill_value is None else spec.fill_value
        # Only chunks that may be missing are looked for: that takes a request of an object store.
        if not isinstance(codec, ShardingCodec):
            filled = is_fill(values[:1], fill).all() and is_fill(values, fill).all()
            return self._key(chunk) if filled and not await chunk.exists() else None
        sizes = list(zip(spec.shape, codec.chunk_shape, strict=True))
        suspects = list(_inner_chunks(selection, sizes, values, fill))
        if not suspects:
            return None
        grid = tuple(length // size for length, size in sizes)
        index = await codec._load_shard_index_maybe(chunk, grid)  # noqa: SLF001
        if index is None:
            return self._key(chunk)
        for number in suspects:
            if index.get_chunk_slice(number) is None:
                return f"chunk {'.'.join(map(str, number))} in the shard, {self._key(chunk)},"
        return None


def _inner_chunks(
    selection: Sequence[Any], sizes: Sequence[tuple[int, int]], values: AnyArray, fill: Any
) -> Iterable[tuple[int, ...]]:
    """Return the chunks in a shard that are read and may be missing.

    If slices are read, these are the chunks whose first value is the fill value.

    Parameters
    ----------
    selection : sequence of slice or index array
    sizes : sequence of (int, int)
        Length of the shard, and of the chunks in it, along every axis.
    values : ndarray
        What was read.
    fill : object
    """
    if not all(isinstance(part, slice) and part.step in {None, 1} for part in selection):
        parts = zip(selection, sizes, strict=True)
        read = [np.unique(np.arange(length)[part] // size) for part, (length, size) in parts]
        return itertools.product(*read)
    numbers, firsts = [], []
    for part, (length, size) in zip(selection, sizes, strict=True):
        start, stop, _ = part.indices(length)
        numbers.append(np.arange(start // size, -(-stop // size)))
        firsts.append(np.maximum(numbers[-1] * size - start, 0))
    filled = np.argwhere(is_fill(values[np.ix_(*firsts)], fill))
    return [tuple(axis[i] for axis, i in zip(numbers, at, strict=True)) for at in filled]


def _form(metadata: Any) -> tuple[Any, ...]:
    """Return the shape of an array, and what else decides how its chunks are read."""
    known = metadata.to_dict()
    for name in ("attributes", "shape", "consolidated_metadata"):
        known.pop(name, None)
    return tuple(metadata.shape), repr(sorted(known.items()))


# --- rows ----------------------------------------------------------------------------------


class StoredRows(RowArray):
    """Rows of an array with shape, dtype and slices: Zarr, xarray, or a class of the user's."""

    def __init__(self, array: Any, granularity: int = 1, name: str | None = None) -> None:
        self.array = array
        self.shape = tuple(int(length) for length in array.shape)
        self.dtype = np.dtype(array.dtype)
        if type(array).__module__.startswith("netCDF4"):  # which says how values are packed
            self.dtype = array[:0].dtype
        self.granularity, self.name = max(1, granularity), name

    @property
    def attrs(self) -> Mapping[str, Any]:  # type: ignore[override]
        """Attributes that are stored with the array."""
        return getattr(self.array, "attrs", {})

    def __getitem__(self, rows: slice) -> AnyArray:
        of = "" if self.name is None else f" of {self.name!r}"
        with reading(f"rows {rows.start} to {rows.stop}{of}"):
            return decode(self.array, rows)


def zarr_rows(array: Any, missing_chunks: MissingChunks) -> StoredRows:
    """Return the rows of a Zarr array, kept together as chunks or shards are."""
    granularity = 1
    if array.ndim:
        inner, outer = array.chunks, array.shards or array.chunks
        whole = int(np.prod(outer, dtype=np.int64)) * array.dtype.itemsize <= HUGE_BYTES
        granularity = int((outer if whole else inner)[0])
    rows = StoredRows(checked(array, missing_chunks), granularity, store_name(array.store_path))
    # Users can set the pipeline of another package.
    pipeline = rows.array.async_array.codec_pipeline.decoder
    rows.decoder = type(pipeline).__module__.partition(".")[0]
    store = array.store_path.store
    kinds = type(store).__name__, type(getattr(store, "store", None)).__name__
    rows.in_process = is_of(getattr(store, "fs", None), "memory") or any(
        kind.endswith("MemoryStore") for kind in kinds
    )
    return rows


class ZarrGroup(Group):
    """The arrays of a Zarr group."""

    def __init__(self, group: Any, missing_chunks: MissingChunks) -> None:
        self.group, self.missing_chunks = group, missing_chunks
        self.attrs = group.attrs

    def names(self) -> list[str]:
        """Return the names of the arrays."""
        with warnings.catch_warnings():
            # Of other files, which hold no data: stores of this library have some.
            warnings.filterwarnings("ignore", message=".* not recognized as a component")
            return sorted(self.group.array_keys())

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of an array."""
        return tuple(self.group[name].shape)

    def rows(self, name: str) -> StoredRows:
        """Return the rows of an array."""
        import zarr

        array = self.group[name]
        if self.group.metadata.consolidated_metadata is not None:
            # They are older than those of the array if rows were appended to it alone.
            with suppress(Exception):  # it may have no others
                form = self.group.metadata.zarr_format
                array = zarr.open_array(array.store_path, mode="r", zarr_format=form)
        return zarr_rows(array, self.missing_chunks)

    @property
    def is_cube(self) -> bool:  # type: ignore[override]
        """Whether arrays of more than two dimensions with names are stored."""
        arrays = [array for array in map(self.group.get, self.names()) if array.ndim > 2]
        # Formats 3 and 2 have them in different places.
        return any(
            getattr(array.metadata, "dimension_names", None) or "_ARRAY_DIMENSIONS" in array.attrs
            for array in arrays
        )


# --- values that are coded -------------------------------------------------------------------

# Attributes of the conventions CF, with the values that change nothing. The long one is NaN, as
# xarray writes it in format 3.
_NEUTRAL = {
    "scale_factor": ("1", "1.0"),
    "add_offset": ("0", "0.0"),
    "_FillValue": ("nan", "None", "AAAAAAAA+H8="),
    "missing_value": ("nan", "None"),
}


def warn_of_packing(parts: Sequence[Any], name: str) -> None:
    """Warn if the attributes of one of the arrays of an argument say that its values are coded."""
    for part in parts:
        attrs = dict(getattr(part, "attrs", {}))
        if not attrs or part.dtype.kind not in "iuf":
            continue
        if name == "y" and " since " in (units := str(attrs.get("units"))):
            raise InvalidTypeError(
                f"y must hold numbers or text, found dates, stored as {shown(units)}",
                argument="y",
                remedy="name another column or array, or convert it where it is stored",
            )
        metadata: Any = getattr(getattr(part, "array", None), "metadata", None)
        if getattr(metadata, "zarr_format", None) == 2 and "_ARRAY_DIMENSIONS" in attrs:
            attrs["_FillValue"] = metadata.fill_value  # xarray keeps it there in this format
        values = {key: next(iter(np.ravel(attrs[key])), None) for key in _NEUTRAL if key in attrs}
        coded = [f"{key}={v}" for key, v in values.items() if str(v) not in _NEUTRAL[key]]
        if coded:
            warn_user(
                f"{name} is stored with {' and '.join(coded)}, and is read as it is stored; pass "
                "what xarray.open_dataset opens, which decodes values and leaves out those that "
                "are missing."
            )
            return


# --- arrays inside of Dask and xarray ------------------------------------------------------


def with_checks(value: Any, missing_chunks: MissingChunks) -> Any:
    """Return a Zarr array, or xarray's wrapper of one, with reads that are checked.

    Anything else comes back unchanged.
    """
    module = type(value).__module__.partition(".")[0]
    if module == "zarr" and hasattr(value, "shape"):
        return checked(value, missing_chunks)
    name = "array" if hasattr(value, "array") else "_array"
    if module == "xarray" and hasattr(value, name):
        value = copy.copy(value)
        setattr(value, name, with_checks(getattr(value, name), missing_chunks))
    return value


def with_checks_in_graph(array: Any, missing_chunks: MissingChunks) -> Any:
    """Return a Dask array with checked reads of the Zarr arrays that its layers hold.

    ``da.from_zarr``, ``da.from_array`` and xarray put these arrays into a graph.
    """
    from dask.blockwise import Blockwise
    from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

    graph = array.__dask_graph__()
    if not isinstance(graph, HighLevelGraph):
        return array
    layers: dict[str, Any] = dict(graph.layers)
    for name, layer in graph.layers.items():
        if isinstance(layer, Blockwise):
            layers[name] = made = copy.copy(layer)
            made.indices = tuple(
                (with_checks(x, missing_chunks), axes) for x, axes in layer.indices
            )
            vars(made).pop("_cached_dict", None)  # its tasks, if they were made before
        elif isinstance(layer, MaterializedLayer):
            nodes = {key: with_checks(node, missing_chunks) for key, node in layer.items()}
            layers[name] = MaterializedLayer(nodes, layer.annotations)
    rebuild, extra = array.__dask_postpersist__()
    return rebuild(HighLevelGraph(layers, graph.dependencies), *extra)


# --- decoding ------------------------------------------------------------------------------


def decode(array: Any, region: Any) -> AnyArray:
    """Return the values of a region, as the pipeline of the array decodes its chunks."""
    return np.asarray(without_mask(array[region]))


def _decoder(array: Any) -> Any:
    """Return the pipeline of an array, or that of zarrs if it is installed and fits the array.

    Values are the same. If the settings of Zarr name another pipeline than the default, it is kept.
    zarrs reads files itself, so it would pass by what a store of another class does.
    """
    from zarr.storage import LocalStore

    default: Any = array.codec_pipeline
    numbers = array.dtype.kind in "biuf" and array.dtype.isnative
    fits = numbers and array.order == "C" and type(array.store_path.store) is LocalStore
    if not fits or type(default).__name__ != "BatchedCodecPipeline":
        return default
    try:
        from zarrs import ZarrsCodecPipeline

        with warnings.catch_warnings():
            warnings.simplefilter("error")  # that an array is not supported
            return ZarrsCodecPipeline.from_array_metadata_and_store(
                array_metadata=array.metadata, store=array.store_path.store
            )
    except Exception:  # noqa: BLE001 - Zarr reads what zarrs does not
        return default
