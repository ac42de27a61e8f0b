"""Zarr stores: opened by URL or as objects, decoded by zarrs, damage found by chunk."""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import numpy as np

from daskcoreset.inputs.places import Place, clear_errors, options_for
from daskcoreset.storage.locations import store_name

# Chunks of a block that are tried one by one to find the damaged one.
_MAX_TRIED = 4096


def is_store(part: Any) -> bool:
    """Whether a part is a Zarr store, or a place in one."""
    zarr = sys.modules.get("zarr")
    if zarr is None:  # then there can be none
        return False
    from zarr.abc.store import Store
    from zarr.storage import StorePath

    return isinstance(part, (Store, StorePath))


def open_store(store: Any, name: str) -> Any:
    """Open the array or group of a store, passed as the argument `name`."""
    import zarr

    shown = store_name(store)
    with clear_errors(name, shown, f"a Zarr store ({type(store).__name__})"):
        return zarr.open(store, mode="r")


def open_zarr(place: Place, options: Mapping[str, Any] | None) -> Any:
    """Open the array or group at a place."""
    import zarr

    url, mark, query = (place.url or place.path).partition("?")
    if mark and url.startswith(("http://", "https://")):
        # Of every file in the store, whose names are put behind the URL.
        params = dict(parse_qsl(query, keep_blank_values=True))
        options = {"params": params} | dict(options or {})
    else:
        url += mark + query
    storage_options = options_for(url, options)
    return zarr.open(
        url, mode="r", storage_options=None if storage_options is None else dict(storage_options)
    )


def is_in_process(array: Any) -> bool:
    """Whether a Zarr array is in the memory of this process, where no other one sees it."""
    store = array.store_path.store
    place = Place("", getattr(store, "fs", None))
    kinds = (type(store), type(getattr(store, "store", None)))
    return place.in_process or any(kind.__name__.endswith("MemoryStore") for kind in kinds)


def name_of_array(array: Any) -> str:
    """Return the name of a Zarr array: its store, and its path there."""
    return store_name(array.store_path)


# --- decoders ----------------------------------------------------------------------------


def with_zarrs(array: Any) -> Any:
    """Return the same Zarr array, whose shards are decoded by zarrs if it is installed and fits.

    Values are the same. The array that was passed and the settings of Zarr stay as they are. If
    these name another pipeline than the default, it is kept.
    """
    fits = array.shards and array.dtype.kind in "biuf" and array.dtype.isnative
    if not fits or decoder_of(array) != "zarr":
        return array
    import zarr

    made = zarr.AsyncArray(metadata=array.metadata, store_path=array.store_path)
    try:
        from zarrs import ZarrsCodecPipeline

        with warnings.catch_warnings():
            warnings.simplefilter("error")  # that an array is not supported
            pipeline = ZarrsCodecPipeline.from_array_metadata_and_store(
                array_metadata=array.metadata, store=array.store_path.store
            )
    except Exception:  # noqa: BLE001 - Zarr reads what zarrs does not
        return array
    # It is chosen when an array is made, by a setting of the whole process, which other threads
    # read at the same time.
    object.__setattr__(made, "codec_pipeline", pipeline)
    return type(array)(made)


def decoder_of(array: Any) -> str:
    """Return what decodes the chunks of a Zarr array, for the plan of a build."""
    inner = getattr(array, "async_array", None) or getattr(array, "_async_array", None)
    name = type(getattr(inner, "codec_pipeline", None)).__name__
    return {"BatchedCodecPipeline": "zarr", "ZarrsCodecPipeline": "zarrs"}.get(name, name)


# --- damage ------------------------------------------------------------------------------


def damaged_chunk(array: Any, start: int, stop: int) -> str:
    """Return the name of the first chunk of some rows that does not read, as part of a message.

    It is empty where chunks cannot be read one by one, or all of them read.
    """
    array = getattr(array, "array", array)
    if not hasattr(array, "store_path") or not array.ndim:
        return ""
    try:
        inner, outer = array.chunks, array.shards or array.chunks
    except NotImplementedError:  # chunks of many lengths
        return ""
    bounds = [(start, stop), *((0, length) for length in array.shape[1:])]
    ranges = [
        range(low // chunk, -(-high // chunk))
        for (low, high), chunk in zip(bounds, inner, strict=True)
    ]
    for number in itertools.islice(itertools.product(*ranges), _MAX_TRIED):
        corner = [i * chunk for i, chunk in zip(number, inner, strict=True)]
        region = tuple(slice(low, low + chunk) for low, chunk in zip(corner, inner, strict=True))
        try:
            np.asarray(array[region])
        except Exception:  # noqa: BLE001 - whatever it is, this chunk does not read
            key = array.metadata.encode_chunk_key(
                tuple(low // chunk for low, chunk in zip(corner, outer, strict=True))
            )
            inside = f" (chunk {'.'.join(map(str, number))})" if array.shards else ""
            rows = f"rows {corner[0]} to {min(corner[0] + inner[0], array.shape[0])}"
            return f"chunk {key!r}{inside}, which holds {rows}, among "
    return ""
