"""Reads of cubes: what lies in several dimensions, flattened to rows and columns in the task."""

from __future__ import annotations

import math
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any
from uuid import uuid4

import numpy as np

from daskcoreset.core.boxes import Box
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.typing import AnyArray
from daskcoreset.core.validation import without_mask
from daskcoreset.inputs.filesystems import read_clearly
from daskcoreset.inputs.sources import Loader


@dataclass(frozen=True)
class Plane:
    """How one variable becomes columns.

    Attributes
    ----------
    dims : tuple of str
        As it lies.
    sample_dims, feature_dims : tuple of str
        Dimensions of the rows, all of them, and of its columns.
    """

    dims: tuple[str, ...]
    sample_dims: tuple[str, ...]
    feature_dims: tuple[str, ...]

    def columns(self, values: AnyArray, lengths: Sequence[int]) -> AnyArray:
        """Return the cells of a block as rows and columns. A view where they lie so."""
        samples = [dim for dim in self.sample_dims if dim in self.dims]
        values = values.transpose([self.dims.index(dim) for dim in (*samples, *self.feature_dims)])
        width = values.shape[len(samples) :]
        if len(samples) < len(self.sample_dims):
            cells = iter(values.shape)
            kept = [next(cells) if dim in self.dims else 1 for dim in self.sample_dims]
            values = np.broadcast_to(values.reshape(*kept, *width), (*lengths, *width))
        return values.reshape(math.prod(lengths), math.prod(width))


def flattened(
    planes: Sequence[Plane], parts: Sequence[Any], lengths: Sequence[int], *, flat: bool
) -> AnyArray:
    """Return the rows of a block.

    Parameters
    ----------
    planes : sequence of Plane
    parts : sequence of array-like
        The cells of every variable in the block.
    lengths : sequence of int
        Lengths of the block along the sample dimensions.
    flat : bool
        Whether there is one column, and a vector is wanted.
    """
    pieces = zip(planes, parts, strict=True)
    columns = [plane.columns(np.asarray(without_mask(part)), lengths) for plane, part in pieces]
    rows = columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)
    return rows[:, 0] if flat else rows


# --- variables that tasks read themselves --------------------------------------------------


def box_loader(
    variables: Sequence[Any], planes: Sequence[Plane], box: Box, *, flat: bool
) -> Loader:
    """Return the loader of the rows of a box. Variables are of xarray, lazily opened or not."""
    slices = box.slices
    parts = [
        variable[{dim: part for dim, part in slices.items() if dim in variable.dims}]
        for variable in variables
    ]
    return partial(_read_box, tuple(planes), parts, box, flat)


def _read_box(planes: Sequence[Plane], parts: Sequence[Any], box: Box, flat: bool) -> AnyArray:
    def what() -> str:
        where = ", ".join(f"{dim} {one.start} to {one.stop}" for dim, one in box.slices.items())
        return f"the block of X at {where}"

    def read() -> AnyArray:
        # Of a copy, for xarray keeps what it has loaded from a lazily opened variable.
        return flattened(planes, [part[...].to_numpy() for part in parts], box.lengths, flat=flat)

    return read_clearly(what, read)


# --- variables of which some are Dask arrays ------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Stored:
    """A variable outside of Dask, in a form that Dask does not copy."""

    variable: Any
    shape: tuple[int, ...]
    dtype: Any
    ndim: int

    def __getitem__(self, index: Any) -> AnyArray:
        return np.asarray(self.variable[index].to_numpy())


def dask_chunks(
    variables: Sequence[Any], sample_dims: Sequence[str]
) -> tuple[tuple[int, ...], ...]:
    """Return the chunks along the sample dimensions: where any variable is cut, all are."""
    found = []
    for dim in sample_dims:
        cuts = {
            chunks
            for variable in variables
            if variable.chunks is not None and dim in variable.dims
            for chunks in [variable.chunks[variable.dims.index(dim)]]
        }
        if any(np.isnan(length) for chunks in cuts for length in chunks):
            raise InvalidInputError(
                f"X has chunks of unknown size along {dim!r}",
                argument="X",
                remedy="call compute_chunk_sizes() first",
            )
        size = next(one.sizes[dim] for one in variables if dim in one.dims)
        ends = sorted({0, size, *(end for chunks in cuts for end in np.cumsum(chunks).tolist())})
        found.append(tuple(int(stop - start) for start, stop in pairwise(ends)))
    return tuple(found)


def merged_chunks(variables: Sequence[Any], planes: Sequence[Plane]) -> int:
    """Return how many chunks of one variable a task brings together along feature dimensions."""
    return max(
        math.prod(len(variable.chunks[variable.dims.index(dim)]) for dim in plane.feature_dims)
        if variable.chunks is not None
        else 1
        for variable, plane in zip(variables, planes, strict=True)
    )


def dask_rows(
    variables: Sequence[Any],
    planes: Sequence[Plane],
    chunks: tuple[tuple[int, ...], ...],
    *,
    name: str,
    dtype: Any,
) -> Any:
    """Define the rows of variables, of which some are Dask arrays, as one Dask array.

    Reads and flattening are one task a block, where no chunk cuts the features. No cell is brought
    to another chunk: the blocks of the grid follow one another in its C order.

    Parameters
    ----------
    variables : sequence of xarray.Variable
    planes : sequence of Plane
    chunks : tuple of tuple of int
        Chunks of the blocks, along the sample dimensions.
    name : str
        The argument. All but "X" are vectors.
    dtype : dtype
    """
    import dask.array as da
    from dask.highlevelgraph import HighLevelGraph
    from dask.layers import ArraySliceDep

    sample_dims = planes[0].sample_dims
    names = dict.fromkeys((*sample_dims, *(dim for plane in planes for dim in plane.feature_dims)))
    letters = dict(zip(names, string.ascii_letters, strict=False))
    cut = dict(zip(sample_dims, chunks, strict=True))
    arrays = [_as_dask(variable, cut) for variable in variables]
    arrays = _alike(arrays, planes, sample_dims)
    n_chunks = {
        dim: max(
            len(array.chunks[plane.dims.index(dim)])
            for array, plane in zip(arrays, planes, strict=True)
            if dim in plane.dims
        )
        for dim in names
        if dim not in sample_dims
    }
    # What is one chunk stays an axis of the result: a contracted index would not fuse.
    kept = [*sample_dims, *(dim for dim, count in n_chunks.items() if count == 1)]
    operands: list[Any] = []
    for array, plane in zip(arrays, planes, strict=True):
        operands += [array, "".join(letters[dim] for dim in plane.dims)]
    merging = tuple(
        tuple(dim for dim in plane.dims if n_chunks.get(dim, 1) > 1) for plane in planes
    )
    layer, flat = f"cube-{uuid4().hex}", name != "X"
    widths = {dim: one.sizes[dim] for one in variables for dim in one.dims}
    grid = da.blockwise(
        partial(_flatten_block, name, tuple(planes), merging, widths),
        "".join(letters[dim] for dim in kept),
        ArraySliceDep(chunks),
        "".join(letters[dim] for dim in sample_dims),
        *operands,
        name=f"{layer}-blocks",
        adjust_chunks={letters[dim]: 1 for dim in kept},
        align_arrays=False,
        concatenate=False,
        meta=np.empty((0,) * len(kept), dtype=object),
    )
    tail = (0,) * (len(kept) - len(sample_dims))
    end = () if flat else (0,)
    places = np.ndindex(*(len(one) for one in chunks))
    graph: dict[Any, Any] = {
        (layer, block, *end): (grid.name, *place, *tail) for block, place in enumerate(places)
    }
    sizes = tuple(
        math.prod(one[i] for one, i in zip(chunks, place, strict=True))
        for place in np.ndindex(*(len(one) for one in chunks))
    )
    width = sum(
        math.prod(variable.sizes[dim] for dim in plane.feature_dims)
        for variable, plane in zip(variables, planes, strict=True)
    )
    return da.Array(
        HighLevelGraph.from_collections(layer, graph, dependencies=[grid]),
        layer,
        (sizes,) if flat else (sizes, (width,)),
        meta=np.empty((0,) if flat else (0, 0), dtype),
    )


def _alike(arrays: Sequence[Any], planes: Sequence[Plane], sample_dims: Sequence[str]) -> list[Any]:
    """Make feature dimensions that arrays cut in different ways one chunk in all of them.

    Tasks would get a whole chunk of one array for every chunk of another.
    """
    cuts: dict[str, set[tuple[int, ...]]] = {}
    for array, plane in zip(arrays, planes, strict=True):
        for dim, chunks in zip(plane.dims, array.chunks, strict=True):
            cuts.setdefault(dim, set()).add(chunks)
    differing = {dim for dim, kinds in cuts.items() if len(kinds) > 1} - set(sample_dims)
    found = []
    for array, plane in zip(arrays, planes, strict=True):
        whole = {axis: -1 for axis, dim in enumerate(plane.dims) if dim in differing}
        cut = any(len(array.chunks[axis]) > 1 for axis in whole)
        found.append(array.rechunk(whole, method="tasks") if cut else array)
    return found


def _as_dask(variable: Any, cut: dict[str, tuple[int, ...]]) -> Any:
    """Return a variable as a Dask array, cut as all are along the sample dimensions."""
    import dask.array as da

    if variable.chunks is None:
        stored = _Stored(variable, variable.shape, variable.dtype, variable.ndim)
        chunks = tuple(cut.get(dim, (variable.sizes[dim],)) for dim in variable.dims)
        return da.from_array(stored, chunks=chunks, name=f"cube-stored-{uuid4().hex}")
    array = variable.data
    wanted = tuple(
        cut.get(dim, chunks) for dim, chunks in zip(variable.dims, array.chunks, strict=True)
    )
    if array.chunks == wanted:
        return array
    return array.rechunk(wanted, method="tasks")


def _flatten_block(
    name: str,
    planes: Sequence[Plane],
    merging: Sequence[Sequence[str]],
    widths: Mapping[str, int],
    box: tuple[slice, ...],
    *parts: Any,
) -> AnyArray:
    lengths = [one.stop - one.start for one in box]
    whole = [
        _merged(part, [plane.dims.index(dim) for dim in along]) if along else part
        for part, plane, along in zip(parts, planes, merging, strict=True)
    ]
    sizes = {**widths, **dict(zip(planes[0].sample_dims, lengths, strict=True))}
    for plane, part in zip(planes, whole, strict=True):
        declared = tuple(sizes[dim] for dim in plane.dims)
        if np.shape(part) != declared:
            where = ", ".join(
                f"{dim} {one.start} to {one.stop}"
                for dim, one in zip(plane.sample_dims, box, strict=True)
            )
            raise InvalidInputError(
                f"{name} has shape {np.shape(part)} in its block at {where}, whose chunks "
                f"declare {declared}",
                argument=name,
                remedy=f"make the chunks of {name} agree with its blocks",
            )
    return flattened(planes, whole, lengths, flat=name != "X")


def _merged(part: Any, axes: Sequence[int]) -> AnyArray:
    """Put the chunks along some axes together: a list for each of them, one within the other."""
    if not axes:
        return np.asarray(without_mask(part))
    return np.concatenate([_merged(one, axes[1:]) for one in part], axis=axes[0])


def unflattened(array: Any, chunks: tuple[tuple[int, ...], ...]) -> Any:
    """Return what was computed for the rows as a Dask array of the sample dimensions.

    Parameters
    ----------
    array : dask.array.Array of shape (n,) or (n, k)
        With a block for every block of the cube.
    chunks : tuple of tuple of int
    """
    import dask.array as da
    from dask.highlevelgraph import HighLevelGraph

    name = f"cube-cells-{uuid4().hex}"
    last = array.shape[1:]
    end = (0,) * len(last)
    graph: dict[Any, Any] = {}
    for block, place in enumerate(np.ndindex(*(len(one) for one in chunks))):
        lengths = tuple(one[i] for one, i in zip(chunks, place, strict=True))
        graph[(name, *place, *end)] = (np.reshape, (array.name, block, *end), (*lengths, *last))
    return da.Array(
        HighLevelGraph.from_collections(name, graph, dependencies=[array]),
        name,
        (*chunks, *((length,) for length in last)),
        meta=np.empty((0,) * (len(chunks) + len(last)), array.dtype),
    )
