"""Zarr arrays whose reads find out what is not there.

Zarr reads a chunk that is not stored as the fill value, be it that it was never written, that it
was lost, or that this machine does not see the store at all. A `StoredArray` reads the same values
and makes sure that they are stored:

- Once in every process it reads the metadata of the array, which must be what was seen when the
  array was opened.
- A part of a chunk that holds nothing but the fill value is read once more, under another fill
  value: what changes is not stored. All others cost a comparison of their first value. This
  holds for shards and the chunks inside them, for every store and every codec pipeline.

Nothing in a store tells a chunk that was lost from one that was left out, for Zarr leaves out
chunks that would hold nothing but the fill value, and says nowhere that it did. Who knows that
they were left out says so: ``missing_chunks="fill"``.
"""

from __future__ import annotations

import copy
import hashlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from daskcoreset.core.errors import StoreError
from daskcoreset.core.typing import AnyArray
from daskcoreset.inputs.options import MissingChunks
from daskcoreset.inputs.places import Layout, check_seen, here
from daskcoreset.inputs.zarr_stores import decoder_of, is_in_process, name_of_array

# Openings whose metadata this process has seen: of these none are read again.
_seen: set[str] = set()


@dataclass(frozen=True, eq=False)
class StoredArray:
    """A Zarr array that reads what is stored, or raises a `StoreError`.

    Attributes
    ----------
    array : zarr.Array
        An array of a store that every process finds by the same, absolute path.
    missing_chunks : {"raise", "fill"}
        How to treat a chunk that is not stored: an error, or the fill value. For an array without a
        fill value (null, in format 2) it is always an error. So is a store that is not there.
    metadata : str or None
        Digest of the metadata that were seen when the array was opened. None where Zarr finds
        none beside the chunks, but consolidated ones elsewhere.
    opening : str
        Name of the opening.
    """

    array: Any
    missing_chunks: MissingChunks
    metadata: str | None
    opening: str

    @classmethod
    def of(cls, array: Any, missing_chunks: MissingChunks = "raise") -> StoredArray:
        """Return a Zarr array with reads that are checked."""
        array, opening = _found_from_anywhere(array), uuid.uuid4().hex
        try:
            now = _reopened(array)
        except Exception:  # noqa: BLE001 - every kind of store has errors of its own
            if missing_chunks == "fill":
                cls(array, missing_chunks, "", opening).check_store()  # the error that says why
            return cls(array, missing_chunks, None, opening)
        _seen.add(opening)
        check_seen(name_of_array(array), _layout(array), _layout(now))
        return cls(array, missing_chunks, _digest(now), opening)

    def __reduce__(self) -> Any:
        # Without what is cached.
        return StoredArray, (self.array, self.missing_chunks, self.metadata, self.opening)

    def __dask_tokenize__(self) -> Any:
        return (self.missing_chunks, self.metadata, self.opening)

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows, and columns."""
        return tuple(self.array.shape)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return int(self.array.ndim)

    @property
    def dtype(self) -> np.dtype[Any]:
        """As stored."""
        dtype: np.dtype[Any] = np.dtype(self.array.dtype)
        return dtype

    @property
    def in_process(self) -> bool:
        """Whether the store is in the memory of this process, so that no worker reads it."""
        return is_in_process(self.array)

    @property
    def decoder(self) -> str:
        """What decodes the chunks."""
        return decoder_of(self.array)

    @property
    def oindex(self) -> _Indexed:
        """Reads by positions along each dimension, as of Zarr."""
        return _Indexed(self, lambda array, key: array.oindex[key])

    @property
    def vindex(self) -> _Indexed:
        """Reads by positions of single values, as of Zarr."""
        return _Indexed(self, lambda array, key: array.vindex[key])

    def __getitem__(self, key: Any) -> AnyArray:
        self.check_store()
        values = np.asarray(self.array[key])
        bounds = _bounds(key, self.shape)
        if bounds is None:
            return self.checked(values, lambda array: array[key])
        filled = list(filled_regions(values, bounds, self._chunk_lengths, self._fill))
        if filled:
            self.check_store(again=True)
        if not self._may_be_filled:
            for region in filled:
                if not is_fill(self._twin[region], self._fill).all():
                    raise self._missing(tuple(part.start for part in region))
        return values

    def checked(self, values: AnyArray, read: Callable[[Any], Any]) -> AnyArray:
        """Return values that ``read(array)`` gave, if every chunk behind them is stored."""
        filled = is_fill(values, self._fill)
        if filled.any():
            self.check_store(again=True)
            if not self._may_be_filled and (filled != is_fill(read(self._twin), self._fill)).any():
                raise self._missing(None)
        return values

    def check_store(self, *, again: bool = False) -> None:
        """Raise an error unless this process sees the array that was opened."""
        if self.metadata is None or (self.opening in _seen and not again):
            return
        now, reason = None, ""
        try:
            now = _reopened(self.array)
        except Exception as error:  # noqa: BLE001 - every kind of store has errors of its own
            reason = type(error).__name__
        if now is None:  # raised here, for errors of stores as causes do not pickle
            raise StoreError(
                f"{name_of_array(self.array)} cannot be read on {here()} ({reason})",
                remedy="make the store visible to every worker, by the same path",
            )
        opened = Layout(self.shape, _native(self.dtype), self.metadata)
        check_seen(name_of_array(self.array), opened, _layout(now))
        _seen.add(self.opening)

    @property
    def _may_be_filled(self) -> bool:
        return self.missing_chunks == "fill" and self.array.fill_value is not None

    @cached_property
    def _chunk_lengths(self) -> tuple[int, ...]:
        try:
            return tuple(map(int, self.array.chunks))
        except (NotImplementedError, TypeError):
            # Of many lengths: then all that is read is one region.
            return self.shape

    @cached_property
    def _fill(self) -> Any:
        fill = self.array.fill_value
        return np.zeros((), self.dtype)[()] if fill is None else fill

    @cached_property
    def _twin(self) -> Any:
        """The same array with another fill value."""
        first, second = (np.array(value).astype(self.dtype) for value in ("0", "1"))
        other = second if is_fill(first, self._fill).all() else first
        metadata = copy.copy(self.array.metadata)
        object.__setattr__(metadata, "fill_value", other[()])
        return _rebuilt(self.array, self.array.store_path, metadata)

    def _missing(self, position: tuple[int, ...] | None) -> StoreError:
        chunk, row = "a chunk", ""
        if position is not None:
            outer = self.array.shards or self._chunk_lengths
            chunk = f"chunk {self.array.metadata.encode_chunk_key(_number(position, outer))!r}"
            row = f" (row {position[0]} of the array)"
            if self.array.shards:
                inner = ".".join(map(str, _number(position, self._chunk_lengths)))
                chunk = f"chunk {inner} in the shard{chunk.removeprefix('chunk')}"
        fill, remedy = self.array.fill_value, "restore it"
        if fill is not None:
            remedy += f', or pass open_rows(X, missing_chunks="fill") if rows of {fill!s} are meant'
        return StoreError(
            f"{chunk} of {name_of_array(self.array)} is not stored{row}, as seen on {here()}",
            remedy=remedy,
        )


@dataclass(frozen=True, eq=False)
class _Indexed:
    """Reads of a `StoredArray` by other means than slices."""

    stored: StoredArray
    read: Callable[[Any, Any], Any]

    def __getitem__(self, key: Any) -> AnyArray:
        self.stored.check_store()
        values = np.asarray(self.read(self.stored.array, key))
        return self.stored.checked(values, lambda array: self.read(array, key))


# --- where arrays are held ---------------------------------------------------------------


def with_stored(value: Any, missing_chunks: MissingChunks) -> Any:
    """Return a Zarr array, or xarray's wrapper of one, with reads that are checked.

    Anything else comes back unchanged.
    """
    module = type(value).__module__.partition(".")[0]
    if module == "zarr" and all(hasattr(value, name) for name in ("store_path", "shape")):
        return StoredArray.of(value, missing_chunks)
    # Of an adapter, and of the wrapper of a Zarr array.
    for name in ("array", "_array") if module == "xarray" else ():
        held = getattr(value, name, None)
        checked = with_stored(held, missing_chunks)
        if checked is not held:
            value = copy.copy(value)
            setattr(value, name, checked)
            return value
    return value


def find_stored(value: Any) -> StoredArray | None:
    """Return the checked Zarr array inside of xarray's wrappers, or None."""
    while type(value).__module__.startswith("xarray."):
        value = getattr(value, "array", getattr(value, "_array", None))
    return value if isinstance(value, StoredArray) else None


def with_stored_in_graph(array: Any, missing_chunks: MissingChunks) -> Any:
    """Return a Dask array with checked reads of the Zarr arrays that its layers hold.

    These are the arrays that ``da.from_zarr``, ``da.from_array`` and xarray put into a graph.
    """
    from dask.blockwise import Blockwise
    from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

    graph = array.__dask_graph__()
    if not isinstance(graph, HighLevelGraph):
        return array
    layers: dict[str, Any] = {}
    for name, layer in graph.layers.items():
        if isinstance(layer, Blockwise):
            pairs = [(with_stored(value, missing_chunks), axes) for value, axes in layer.indices]
            if any(new is not old for (new, _), (old, _) in zip(pairs, layer.indices, strict=True)):
                layers[name] = copy.copy(layer)
                layers[name].indices = tuple(pairs)
        elif isinstance(layer, MaterializedLayer):
            nodes = {key: with_stored(node, missing_chunks) for key, node in layer.items()}
            if any(nodes[key] is not node for key, node in layer.items()):
                layers[name] = MaterializedLayer(nodes)
    if not layers:
        return array
    rebuild, extra = array.__dask_postpersist__()
    return rebuild(HighLevelGraph({**graph.layers, **layers}, graph.dependencies), *extra)


# --- stores ------------------------------------------------------------------------------


def _found_from_anywhere(array: Any) -> Any:
    """Return the array of a store with an absolute path, which cannot be written.

    A writable local store makes its folder where there is none.
    """
    from zarr.storage import LocalStore, StorePath, ZipStore

    store: Any = array.store_path.store
    if type(store) is LocalStore:
        found: Any = LocalStore(store.root.absolute(), read_only=True)
    elif type(store) is ZipStore and not store.path.is_absolute():
        found = copy.copy(store)
        found.path = store.path.absolute()
    else:
        return array
    return _rebuilt(array, StorePath(found, array.store_path.path), array.metadata)


def _rebuilt(array: Any, store_path: Any, metadata: Any) -> Any:
    import zarr

    return type(array)(zarr.AsyncArray(metadata=metadata, store_path=store_path))


def _reopened(array: Any) -> Any:
    import zarr

    return zarr.open_array(array.store_path, mode="r", zarr_format=array.metadata.zarr_format)


def with_own_metadata(array: Any) -> Any:
    """Return an array as its own metadata say it is, and not those that a group has of it.

    The metadata of the group are older if rows were appended to the array alone. The array is
    returned as it is if it has no others.
    """
    try:
        return _reopened(array)
    except Exception:  # noqa: BLE001 - every kind of store has errors of its own
        return array


def _layout(array: Any) -> Layout:
    return Layout(tuple(array.shape), _native(array.dtype), _digest(array))


def _native(dtype: Any) -> np.dtype[Any]:
    """Return a dtype without its byte order, which is one of the codecs in the digest."""
    plain: np.dtype[Any] = np.dtype(dtype)
    return plain if plain.isnative else plain.newbyteorder("=")


def _digest(array: Any) -> str:
    """Return a digest of what decides how chunks are read. Rows may be added meanwhile."""
    metadata = array.metadata.to_dict()
    for name in ("attributes", "shape", "consolidated_metadata"):
        metadata.pop(name, None)
    text = repr((sorted(metadata.items(), key=lambda item: item[0]), array.shape[1:]))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


# --- chunks ------------------------------------------------------------------------------


def _number(position: tuple[int, ...], lengths: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(start // length for start, length in zip(position, lengths, strict=True))


def _bounds(key: Any, shape: tuple[int, ...]) -> list[tuple[int, int]] | None:
    """Return first and last position of plain slices in every dimension. None of other keys."""
    parts = key if isinstance(key, tuple) else (key,)
    if len(parts) > len(shape) or not all(isinstance(part, slice) for part in parts):
        return None
    bounds = []
    padded = (*parts, *(slice(None),) * (len(shape) - len(parts)))
    for length, part in zip(shape, padded, strict=True):
        start, stop, step = part.indices(length)
        if step != 1:
            return None
        bounds.append((start, max(start, stop)))
    return bounds


def filled_regions(
    values: AnyArray, bounds: list[tuple[int, int]], chunks: tuple[int, ...], fill: Any
) -> Iterator[tuple[slice, ...]]:
    """Yield the parts of chunks that hold nothing but the fill value, by where they are stored.

    Parameters
    ----------
    values : ndarray
    bounds : list of (int, int)
        Position of the values in the array.
    chunks : tuple of int
        Lengths of chunks.
    fill : object
        None if any value may be one.
    """
    if not values.size:
        return
    edges = [
        [start, *range((start // chunk + 1) * chunk, stop, chunk), stop]
        for (start, stop), chunk in zip(bounds, chunks, strict=True)
    ]
    offsets = [start for start, _ in bounds]
    firsts = values[
        np.ix_(*([e - o for e in cut[:-1]] for cut, o in zip(edges, offsets, strict=True)))
    ]
    for found in np.argwhere(is_fill(firsts, fill)):
        region = tuple(slice(cut[i], cut[i + 1]) for cut, i in zip(edges, found, strict=True))
        part = values[
            tuple(slice(r.start - o, r.stop - o) for r, o in zip(region, offsets, strict=True))
        ]
        # One row clears the usual case.
        if is_fill(part[:1], fill).all() and is_fill(part, fill).all():
            yield region


def is_fill(values: AnyArray, fill: Any) -> AnyArray:
    """Return which values are the fill value. All of them if it is None."""
    array = np.asarray(values)
    if fill is None:
        return np.ones(array.shape, bool)
    if array.dtype.kind == "f" and np.isnan(fill):
        array, fill = np.isnan(array), True
    filled: AnyArray = np.asarray(array == fill)
    return filled
