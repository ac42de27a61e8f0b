"""Zarr arrays inside of Dask graphs and xarray's wrappers: their reads are checked as well."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from daskcoreset.inputs.options import MissingChunks
from daskcoreset.inputs.stored import StoredArray


def with_stored(value: Any, missing_chunks: MissingChunks) -> Any:
    """Return a copy of `value` whose Zarr arrays are checked: xarray's wrappers, or an array.

    Anything else comes back as it is.
    """
    return _within(value, partial(StoredArray.of, missing_chunks=missing_chunks))


def find_stored(value: Any) -> StoredArray | None:
    """Return the checked Zarr array inside of xarray's wrappers, or None."""
    while type(value).__module__.startswith("xarray."):
        value = getattr(value, "array", getattr(value, "_array", None))
    return value if isinstance(value, StoredArray) else None


def with_stored_in_graph(array: Any, missing_chunks: MissingChunks) -> Any:
    """Return a Dask array whose graph reads the Zarr arrays that it holds with checks.

    Found are the arrays that ``da.from_zarr``, ``da.from_array`` and xarray put into a graph, and
    those that its functions are called with: by position or name, in lists, tuples, dictionaries
    and partial functions, and the arrays whose bound methods they are. What functions open for
    themselves is not found, and neither are groups, nor arrays in other objects or in closures.
    """
    from dask.blockwise import Blockwise
    from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

    graph = array.__dask_graph__()
    if not isinstance(graph, HighLevelGraph):
        return array
    made: dict[int, Any] = {}

    def checked(found: Any) -> Any:
        if id(found) not in made:  # many tasks have the same array
            plain = found.stored.array if isinstance(found, _checked_class()) else found
            made[id(found)] = _checked_array(StoredArray.of(plain, missing_chunks))
        return made[id(found)]

    layers: dict[str, Any] = {}
    for name, layer in graph.layers.items():
        if isinstance(layer, Blockwise):
            pairs = [(_within(value, checked), axes) for value, axes in layer.indices]
            task = _within(layer.task, checked)
            same = all(new is old for (new, _), (old, _) in zip(pairs, layer.indices, strict=True))
            if not same or task is not layer.task:
                layers[name] = copy.copy(layer)
                layers[name].indices, layers[name].task = tuple(pairs), task
        elif isinstance(layer, MaterializedLayer):
            nodes = {key: _within(node, checked) for key, node in layer.items()}
            if any(nodes[key] is not node for key, node in layer.items()):
                layers[name] = MaterializedLayer(nodes)
    if not layers:
        return array
    rebuild, extra = array.__dask_postpersist__()
    return rebuild(HighLevelGraph({**graph.layers, **layers}, graph.dependencies), *extra)


# --- values ------------------------------------------------------------------------------


def _within(value: Any, checked: Callable[[Any], Any]) -> Any:
    """Return a copy of `value` with other arrays, or itself where it holds none."""
    if type(value) in {list, tuple}:
        parts = [_within(part, checked) for part in value]
        same = all(new is old for new, old in zip(parts, value, strict=True))
        return value if same else type(value)(parts)
    if type(value) is dict:
        entries = {key: _within(part, checked) for key, part in value.items()}
        return value if all(entries[key] is value[key] for key in value) else entries
    if type(value) is partial:
        parts = [_within(part, checked) for part in (value.func, value.args, value.keywords)]
        same = parts[0] is value.func and parts[1] is value.args and parts[2] is value.keywords
        return value if same else partial(parts[0], *parts[1], **parts[2])
    if (owner := getattr(value, "__self__", None)) is not None and _is_zarr(owner):
        return getattr(checked(owner), value.__name__)
    module = type(value).__module__.partition(".")[0]
    if module == "zarr" and _is_zarr(value):
        return checked(value)
    names: tuple[str, ...] = ()
    if module == "xarray":
        names = "array", "_array"  # of an adapter; of the wrapper of a Zarr array
    elif module == "dask":  # of tasks; of nodes that hold data
        # The class is asked, for a Delayed object claims to have every attribute.
        names = tuple(n for n in ("func", "args", "kwargs", "value") if hasattr(type(value), n))
    return _with_fields(value, names, checked)


def _with_fields(value: Any, names: tuple[str, ...], checked: Callable[[Any], Any]) -> Any:
    changed = {}
    for name in names:
        if (held := getattr(value, name, None)) is not None:
            new = _within(held, checked)
            if new is not held:
                changed[name] = new
    if not changed:
        return value
    value = copy.copy(value)
    for name, new in changed.items():
        setattr(value, name, new)
    return value


def _is_zarr(value: Any) -> bool:
    of_zarr = type(value).__module__.partition(".")[0] == "zarr"
    return of_zarr and all(hasattr(value, n) for n in ("store_path", "shape", "__getitem__"))


@cache
def _checked_class() -> Any:
    """Return a class of Zarr arrays whose reads are those of a `StoredArray`.

    Functions of users may ask for all that Zarr arrays have, and for their class.
    """
    import zarr

    class CheckedArray(zarr.Array):  # type: ignore[type-arg] # of its own kind
        def __init__(self, stored: StoredArray) -> None:
            array = stored.array
            super().__init__(zarr.AsyncArray(metadata=array.metadata, store_path=array.store_path))
            self.stored = stored

        def __reduce__(self) -> Any:
            return _checked_array, (self.stored,)

        def __dask_tokenize__(self) -> Any:
            return self.stored.__dask_tokenize__()

        def __getitem__(self, key: Any) -> Any:
            return self.stored[key]

    def reader(name: str) -> Any:
        def read(self: Any, *args: Any, **options: Any) -> Any:
            def plain(array: Any) -> Any:
                return getattr(array, name)(*args, **options)

            self.stored.check_store()
            values = plain(self.stored.array)
            self.stored.checked(np.asarray(values), plain)
            return values

        return read

    for kind in ("basic", "orthogonal", "mask", "coordinate", "block"):
        name = f"get_{kind}_selection"
        setattr(CheckedArray, name, reader(name))
    return CheckedArray


def _checked_array(stored: StoredArray) -> Any:
    return _checked_class()(stored)
