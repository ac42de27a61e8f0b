"""Blocks of labelled arrays: how cells are cut, flattened to rows, and brought back."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np

from daskcoreset.core.block import Box
from daskcoreset.core.typing import AnyArray
from daskcoreset.core.validation import without_mask
from daskcoreset.errors import InvalidInputError
from daskcoreset.inputs.arrays import RowArray
from daskcoreset.inputs.cuts import MEMORY_BYTES, TARGET_BYTES


@dataclass(frozen=True)
class Flattening:
    """How cells of variables become rows, in C order of the sample dimensions.

    Attributes
    ----------
    name : str
        The argument. All but "X" are vectors.
    dims : tuple of tuple of str
        Dimensions of each variable, as it lies.
    samples : tuple of str
        Sample dimensions.
    features : mapping of str to int
        Lengths of the feature dimensions.
    """

    name: str
    dims: tuple[tuple[str, ...], ...]
    samples: tuple[str, ...]
    features: Mapping[str, int]

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Shape of a row."""
        widths = [[self.features.get(dim, 1) for dim in dims] for dims in self.dims]
        return (sum(map(math.prod, widths)),) if self.name == "X" else ()

    def __call__(self, where: tuple[slice, ...], *parts: Any) -> AnyArray:
        """Return the rows of a block, from its cells in each variable. A view if they lie so."""
        lengths = [one.stop - one.start for one in where]
        sizes = {**dict(zip(self.samples, lengths, strict=True)), **self.features}
        columns = []
        for dims, part in zip(self.dims, parts, strict=True):
            cells = np.asarray(without_mask(part))
            declared = tuple(sizes[dim] for dim in dims)
            if cells.shape != declared:
                raise InvalidInputError(
                    f"{self.name} has shape {cells.shape} in a block whose chunks declare "
                    f"{declared}",
                    argument=self.name,
                    remedy=f"make the chunks of {self.name} agree with its blocks",
                )
            cells = cells.transpose([dims.index(dim) for dim in sizes if dim in dims])
            cells = cells.reshape(*(sizes[d] if d in dims else 1 for d in self.samples), -1)
            cells = np.broadcast_to(cells, (*lengths, cells.shape[-1]))
            columns.append(cells.reshape(math.prod(lengths), -1))
        rows = columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)
        return rows if self.name == "X" else rows[:, 0]


class BoxRows(RowArray):
    """Rows of variables in memory, which are flattened when a block is read."""

    in_memory = True

    def __init__(self, flatten: Flattening, variables: Sequence[Any], boxes: Sequence[Box]) -> None:
        self.flatten, self.variables, self.boxes = flatten, variables, boxes
        self.starts = np.cumsum([0, *map(len, boxes)])
        self.shape = (int(self.starts[-1]), *flatten.row_shape)
        self.dtype = np.result_type(*(one.dtype for one in variables))

    def cut(self, start: int, stop: int) -> RowArray:
        """Return the rows of a block, whose cells are views."""
        del stop
        box = self.boxes[int(np.searchsorted(self.starts, start, side="right")) - 1]
        cells = [one.isel(box.slices, missing_dims="ignore") for one in self.variables]
        return BoxRows(self.flatten, cells, [box])

    def __getitem__(self, rows: slice) -> AnyArray:
        (box,) = self.boxes
        cells = [one.values for one in self.variables]
        return self.flatten(tuple(box.slices.values()), *cells)[rows]


def cut(
    variables: Sequence[Any], shape: Mapping[str, int]
) -> tuple[dict[str, tuple[int, ...]], int]:
    """Return the lengths of the blocks along each sample dimension.

    They are the chunks of Dask. Without any, blocks are of whole stored chunks.

    Parameters
    ----------
    variables : sequence of xarray.Variable
        The features.
    shape : mapping of str to int
        Lengths of the sample dimensions.

    Returns
    -------
    dict of str to tuple of int
    int
        Chunks along the feature dimensions that a task brings together.
    """
    import dask.array as da

    lazy = [one for one in variables if one.chunks is not None]
    if lazy:
        pairs = itertools.chain.from_iterable((one.data, one.dims) for one in lazy)
        found, _ = da.core.unify_chunks(*pairs, warn=False)
        merged = math.prod(len(found[dim]) for dim in found.keys() - shape.keys())
        return {dim: found.get(dim, (length,)) for dim, length in shape.items()}, merged
    nbytes = sum(one.nbytes for one in variables)
    if _in_memory(variables) and nbytes <= MEMORY_BYTES:
        return {dim: (length,) for dim, length in shape.items()}, 1
    stored = [one.encoding.get("preferred_chunks", {}) for one in variables]
    together = [int(max(np.max(one.get(dim, 1)) for one in stored)) for dim in shape]
    row_bytes = -(-nbytes // math.prod(shape.values()))
    lengths = da.core.normalize_chunks(
        "auto",
        tuple(shape.values()),
        limit=max(TARGET_BYTES, row_bytes * math.prod(together)),  # or a stored chunk would be cut
        dtype=f"V{row_bytes}",
        previous_chunks=together if any(stored) else None,
    )
    return dict(zip(shape, lengths, strict=True)), 1


def flat_rows(
    flatten: Flattening,
    variables: Sequence[Any],
    chunks: Mapping[str, tuple[int, ...]],
    boxes: Sequence[Box],
) -> Any:
    """Return the rows of variables, block after block: in memory if all are, else a Dask array.

    The blocks follow one another in C order of their grid. Reads and flattening are one task a
    block if no chunk cuts the features.

    Parameters
    ----------
    flatten : Flattening
    variables : sequence of xarray.Variable
    chunks : mapping of str to tuple of int
        Lengths of the blocks along each sample dimension.
    boxes : sequence of Box
        The blocks.
    """
    import dask
    import dask.array as da
    from dask.layers import ArraySliceDep

    if _in_memory(variables):
        return BoxRows(flatten, variables, boxes)
    name = f"cube-{uuid4().hex}"
    operands: list[Any] = []
    with dask.config.set({"array.rechunk.method": "tasks"}):  # those of clusters write to disk
        for position, one in enumerate(variables):
            lengths = {dim: chunks.get(dim, -1) for dim in one.dims}
            stored = one.chunk(lengths, name=f"{name}-{position}", inline_array=True)
            operands += [stored.data, one.dims]
    # A feature dimension is one block, and an axis of the result: otherwise tasks do not fuse.
    axes = (*chunks, *flatten.features)
    grid = da.blockwise(
        flatten,
        axes,
        ArraySliceDep(tuple(chunks.values())),
        tuple(chunks),
        *operands,
        name=f"{name}-blocks",
        adjust_chunks=dict.fromkeys(axes, 1),
        align_arrays=False,
        concatenate=False,
        meta=np.empty((0,) * len(axes), dtype=object),
    )
    shape = flatten.row_shape
    end, tail = (0,) * len(shape), (0,) * len(flatten.features)
    places = np.ndindex(*map(len, chunks.values()))
    graph = {(name, i, *end): (grid.name, *place, *tail) for i, place in enumerate(places)}
    sizes = tuple(map(len, boxes))
    dtype = np.result_type(*(one.dtype for one in variables))
    return _array(name, graph, grid, (sizes, *((n,) for n in shape)), dtype)


def _in_memory(variables: Sequence[Any]) -> bool:
    """Whether all variables are arrays in memory."""
    return all(one._in_memory for one in variables)  # noqa: SLF001 - `.data` would load a file


def unflattened(array: Any, chunks: Mapping[str, tuple[int, ...]]) -> Any:
    """Return what was computed for the rows as a Dask array of the sample dimensions.

    Parameters
    ----------
    array : dask.array.Array of shape (n,) or (n, k)
        With a block for every block of the cube.
    chunks : mapping of str to tuple of int
    """
    name, last = f"cube-cells-{uuid4().hex}", array.shape[1:]
    end = (0,) * len(last)
    lengths = itertools.product(*chunks.values())
    places = np.ndindex(*map(len, chunks.values()))
    graph: dict[Any, Any] = {
        (name, *place, *end): (np.reshape, (array.name, i, *end), (*size, *last))
        for i, (place, size) in enumerate(zip(places, lengths, strict=True))
    }
    return _array(name, graph, array, (*chunks.values(), *((n,) for n in last)), array.dtype)


def _array(name: str, graph: dict[Any, Any], below: Any, chunks: Any, dtype: Any) -> Any:
    import dask.array as da
    from dask.highlevelgraph import HighLevelGraph

    layers = HighLevelGraph.from_collections(name, graph, dependencies=[below])
    return da.Array(layers, name, chunks, meta=np.empty((0,) * len(chunks), dtype))
