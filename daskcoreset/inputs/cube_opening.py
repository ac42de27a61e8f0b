"""xarray objects of several dimensions, opened as blocks of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from daskcoreset.core.boxes import Box
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError, warn_user
from daskcoreset.core.typing import IndexArray, MissingChunks
from daskcoreset.inputs.arrays import RowArray
from daskcoreset.inputs.cube_arrays import Plane, box_loader, dask_chunks, dask_rows, merged_chunks
from daskcoreset.inputs.cubes import Cube, Layout, is_xarray, layout_of
from daskcoreset.inputs.dataframes import as_tasks
from daskcoreset.inputs.options import ReadOptions
from daskcoreset.inputs.packed import packed_remark
from daskcoreset.inputs.sources import Loader
from daskcoreset.inputs.zarr import find_zarr, is_in_process, with_checks, with_checks_in_graph
from daskcoreset.storage.locations import clean_url


class Stacked(NamedTuple):
    """Variables of one argument, one beside the other.

    Attributes
    ----------
    variables : list of xarray.Variable
    planes : list of Plane
    """

    variables: list[Any]
    planes: list[Plane]

    @property
    def in_dask(self) -> bool:
        """Whether any of them is a Dask array."""
        return any(variable.chunks is not None for variable in self.variables)

    @property
    def in_memory(self) -> bool:
        """Whether all of them are."""
        # `.data` would load a lazily opened file whole.
        return all(isinstance(variable._data, np.ndarray) for variable in self.variables)  # noqa: SLF001

    @property
    def memory_bytes(self) -> int:
        """Bytes of those that are in memory."""
        return sum(one.nbytes for one in self.variables if isinstance(one._data, np.ndarray))  # noqa: SLF001 - as above

    @property
    def in_process(self) -> bool:
        """Whether any of them is in a store that no other process sees."""
        stored = (find_zarr(variable._data) for variable in self.variables)  # noqa: SLF001 - as above
        return any(one is not None and is_in_process(one) for one in stored)

    @property
    def nbytes(self) -> int:
        """Bytes once decoded."""
        return sum(math.prod(one.shape) * one.dtype.itemsize for one in self.variables)


class OpenedCube(NamedTuple):
    """What `open_cube` found.

    Attributes
    ----------
    cube : Cube
    boxes : list of Box
    arrays : dict of str to dask.array.Array
        Parts that are Dask arrays, with a block for every box.
    stacks : dict of str to Stacked
        All others, which tasks read themselves.
    n_features : int
    dtype : numpy.dtype
    stored_bytes, memory_bytes : int
        Bytes of all parts, and of those in the memory of this process.
    text_labels : bool or None
        As of `daskcoreset.inputs.open.OpenedData`.
    columns : tuple of str or None
    name : str or None
    """

    cube: Cube
    boxes: list[Box]
    arrays: dict[str, Any]
    stacks: dict[str, Stacked]
    n_features: int
    dtype: np.dtype[Any]
    stored_bytes: int
    memory_bytes: int
    text_labels: bool | None
    columns: tuple[str, ...] | None
    name: str | None

    def row_arrays(self) -> dict[str, RowArray]:
        """Return the parts that tasks read themselves."""
        return {
            name: BoxRows(stack, self.boxes, flat=name != "X")
            for name, stack in self.stacks.items()
        }


class BoxRows(RowArray):
    """Rows of variables, read block by block."""

    def __init__(self, stack: Stacked, boxes: Sequence[Box], *, flat: bool) -> None:
        self.stack, self.boxes, self.flat = stack, boxes, flat
        self.starts = np.cumsum([0, *map(len, boxes)])
        width = sum(
            math.prod(one.sizes[dim] for dim in plane.feature_dims)
            for one, plane in zip(stack.variables, stack.planes, strict=True)
        )
        n_rows = int(self.starts[-1])
        self.shape = (n_rows,) if flat else (n_rows, width)
        self.dtype = stack.variables[0].dtype
        self.in_memory, self.in_process = stack.in_memory, stack.in_process

    def cut(self, start: int, stop: int) -> RowArray:
        """Return the rows of a block."""
        box = self.boxes[int(np.searchsorted(self.starts, start, side="right")) - 1]
        load = box_loader(self.stack.variables, self.stack.planes, box, flat=self.flat)
        return _BoxRows(self, load, stop - start)

    def __getitem__(self, rows: slice) -> Any:
        return self.cut(rows.start, rows.stop)[0 : rows.stop - rows.start]


class _BoxRows(RowArray):
    """Rows of one block."""

    def __init__(self, rows: BoxRows, load: Loader, size: int) -> None:
        self.load, self.in_memory = load, rows.in_memory
        self.shape, self.dtype = (size, *rows.shape[1:]), rows.dtype

    def __getitem__(self, rows: slice) -> Any:
        return self.load()


def open_cube(
    X: Any, y: Any, sample_weight: Any, options: ReadOptions, *, target: int, memory: int, huge: int
) -> OpenedCube:
    """Open an xarray object, and labels and weights of its rows. Nothing is read.

    Parameters
    ----------
    X : xarray.DataArray or Dataset
    y, sample_weight : str, xarray.DataArray, array or None
    options : ReadOptions
        With the dimensions.
    target : int
        Bytes of a block, where no chunks of Dask say what it is.
    memory : int
        Bytes that are one block where all is in memory.
    huge : int
        Bytes above which chunks of several variables are not read together.
    """
    beside = {"y": y, "sample_weight": sample_weight}
    given = {name: part for name, part in beside.items() if part is not None}
    keys = {name: part for name, part in given.items() if isinstance(part, str)}
    if options.storage_options is not None:
        raise InvalidInputError(
            "storage_options are for URLs, and X is an xarray object",
            argument="storage_options",
            remedy="leave them out, or pass them to the function of xarray that opens X",
        )
    layout = layout_of(X, options, keys)
    features = layout.features()
    missing = options.missing_chunks
    variables = [_checked(array.variable, missing) for array in layout.variables.values()]
    stacks = {"X": _stacked(layout, variables)}
    remarks = [
        packed_remark([array], f"the variable {one!r} of X")
        for one, array in layout.variables.items()
    ]
    for name, part in given.items():
        variable = _checked(_variable_of(part, name, layout), missing)
        remarks.append(packed_remark([variable], name))
        _check_dtype(variable.dtype, name)
        plane = Plane(tuple(variable.dims), layout.sample_dims, ())
        stacks[name] = Stacked([variable], [plane])
    if remark := next(filter(None, remarks), None):
        warn_user(remark)
    rows = stacks["X"]
    chunks = _chunks(layout, rows, target, memory, huge)
    names = [one for feature in features for one in feature.columns(alone=len(features) == 1)]
    alone = features[0]
    unnamed = len(features) == 1 and not set(alone.dims) <= set(alone.coords)
    cube = Cube(
        layout.sample_dims,
        layout.order,
        chunks,
        layout.coords(),
        features,
        merged_chunks(rows.variables, rows.planes),
    )
    arrays = {
        name: dask_rows(
            stack.variables,
            stack.planes,
            chunks,
            name=name,
            dtype=stack.variables[0].dtype,
        )
        for name, stack in stacks.items()
        if stack.in_dask
    }
    source = X.encoding.get("source")
    return OpenedCube(
        cube,
        cube.boxes(),
        arrays,
        {name: stack for name, stack in stacks.items() if name not in arrays},
        sum(feature.width for feature in features),
        rows.variables[0].dtype,
        sum(stack.nbytes for stack in stacks.values()),
        sum(stack.memory_bytes for stack in stacks.values()),
        None if y is None else stacks["y"].variables[0].dtype.kind not in "biuf",
        None if unnamed else tuple(names),
        clean_url(source) if isinstance(source, str) else None,
    )


def _checked(variable: Any, missing_chunks: MissingChunks) -> Any:
    """Return a variable whose Zarr arrays are checked when they are read."""
    data = variable._data  # noqa: SLF001 - `.data` would load a lazily opened file whole
    if isinstance(data, np.ndarray):
        return variable
    if hasattr(data, "__dask_graph__"):
        checked = with_checks_in_graph(as_tasks(data), missing_chunks)
    else:
        checked = with_checks(data, missing_chunks)
    made = variable.copy(deep=False)
    made._data = checked  # noqa: SLF001 - as above
    return made


def _stacked(layout: Layout, variables: list[Any]) -> Stacked:
    planes = []
    for variable in variables:
        dims = tuple(variable.dims)
        along = tuple(dim for dim in layout.feature_dims if dim in dims)
        planes.append(Plane(dims, layout.sample_dims, along))
    return Stacked(variables, planes)


def _check_dtype(dtype: np.dtype[Any], name: str) -> None:
    kinds = "biuf" if name == "sample_weight" else "biufUSOT"
    if dtype.kind not in kinds:
        raise InvalidTypeError(
            f"{name} must hold numbers{'' if name == 'sample_weight' else ' or text'}, found "
            f"dtype {dtype}",
            argument=name,
            remedy="convert it with astype",
        )


def _variable_of(part: Any, name: str, layout: Layout) -> Any:
    """Return labels or weights as a variable with some of the sample dimensions.

    Parameters
    ----------
    part : str, xarray.DataArray or array
        The name of a variable or coordinate of X, or an array.
    name : str
        The argument that it was passed as.
    layout : Layout

    Returns
    -------
    xarray.Variable
    """
    if isinstance(part, str):
        found = layout.data[part]
    elif is_xarray(part):
        found = part
    else:
        return _of_array(part, name, layout)
    if hasattr(found, "data_vars"):
        raise InvalidInputError(
            f"{name} is a Dataset", argument=name, remedy="pass one of its variables"
        )
    if strange := [dim for dim in found.dims if dim not in layout.sample_dims]:
        raise InvalidInputError(
            f"{name} has the dimensions {strange}, which are not in "
            f"sample_dims={layout.sample_dims}",
            argument=name,
            remedy="select or sum along them first",
        )
    for dim in found.dims:
        expected = layout.data.sizes[dim]
        if found.sizes[dim] != expected:
            raise InvalidInputError(
                f"{name} has {found.sizes[dim]} cells along {dim!r}, and X has {expected}",
                argument=name,
                remedy="pass one for each",
            )
        indexes = [one.indexes[dim] for one in (found, layout.data) if dim in one.indexes]
        if len(indexes) == 2 and not indexes[0].equals(indexes[1]):
            raise InvalidInputError(
                f"{name} has other coordinates along {dim!r} than X",
                argument=name,
                remedy=f"align them, for example with {name}.reindex_like(X)",
            )
    return found.variable


def _of_array(part: Any, name: str, layout: Layout) -> Any:
    import xarray as xr

    array = part if hasattr(part, "__dask_graph__") else np.asarray(part)
    if array.shape == (np.prod(layout.shape, dtype=np.int64),) and isinstance(array, np.ndarray):
        array = array.reshape(layout.shape)
    if array.shape != layout.shape:
        raise InvalidInputError(
            f"{name} has the shape {array.shape}, and the rows of X lie along "
            f"{layout.sample_dims} in the shape {layout.shape}",
            argument=name,
            remedy="pass a DataArray, or an array of this shape",
        )
    return xr.Variable(layout.sample_dims, array)


def placed(coreset: Coreset, cube: Cube | None) -> Coreset:
    """Return a coreset with the row numbers and coordinates of a cube, in the order of its rows.

    Parameters
    ----------
    coreset : Coreset
        Rows counted from block to block.
    cube : Cube or None
        None returns the coreset unchanged.
    """
    if cube is None:
        return coreset
    boxes = cube.boxes()
    starts = np.cumsum([0, *map(len, boxes)])

    def numbers_of(rows: IndexArray) -> IndexArray:
        blocks = np.searchsorted(starts, rows, side="right") - 1
        numbers = np.empty(len(rows), dtype=np.int64)
        for block in np.unique(blocks).tolist():
            inside = blocks == block
            numbers[inside] = boxes[block].numbers(rows[inside] - starts[block])
        return numbers

    coreset = coreset.renumbered(numbers_of)
    order = np.argsort(coreset.indices, kind="stable")
    rows = coreset.take(order)
    where = {
        "sample_dims": list(cube.dims),
        "sample_shape": list(cube.shape),
        "cube": cube.to_json(),
    }
    return Coreset(
        rows.points,
        rows.weights,
        rows.indices,
        rows.labels,
        {**coreset.provenance, **where},
        cube.coordinates(rows.indices),
    )


# --- blocks of what no Dask array has cut --------------------------------------------------


def _chunks(
    layout: Layout, rows: Stacked, target: int, memory: int, huge: int
) -> tuple[tuple[int, ...], ...]:
    """Return the lengths of the blocks: the chunks of Dask, or whole stored chunks."""
    if rows.in_dask:
        return dask_chunks(rows.variables, layout.sample_dims)
    if rows.in_memory and rows.nbytes <= memory:
        return tuple((length,) for length in layout.shape)
    row_bytes = rows.nbytes / math.prod(layout.shape)
    stored = [_stored_lengths(rows.variables, dim) for dim in layout.sample_dims]
    together = [min(math.lcm(*one), whole) for one, whole in zip(stored, layout.shape, strict=True)]
    # Variables that are stored in other chunks than one another: too much to read at a time is
    # worse than to read some chunks twice.
    if math.prod(together) * row_bytes > huge:
        together = [max(one) for one in stored]
    lengths = grown(together, layout.shape, target / row_bytes)
    return tuple(
        tuple(min(length, whole - start) for start in range(0, whole, length))
        for whole, length in zip(layout.shape, lengths, strict=True)
    )


def grown(stored: Sequence[int], shape: Sequence[int], cells: float) -> list[int]:
    """Return how long blocks are of whole stored chunks, with about this number of cells.

    Examples
    --------
    >>> grown([1, 10, 10], [1000, 20, 20], 4000)
    [10, 20, 20]
    """
    lengths = [min(one, whole) for one, whole in zip(stored, shape, strict=True)]
    # From the last dimension on: cells that lie beside one another are read together.
    for axis in reversed(range(len(shape))):
        fit = max(1, int(cells // math.prod(lengths)))
        lengths[axis] = min(lengths[axis] * fit, shape[axis])
        if lengths[axis] < shape[axis]:
            break
    return lengths


def _stored_lengths(variables: Sequence[Any], dim: str) -> list[int]:
    """Return how many cells along a dimension the variables store together."""
    lengths = [1]
    for variable in variables:
        encoding, dims = variable.encoding, variable.dims
        stored = encoding.get("shards") or encoding.get("chunks") or encoding.get("chunksizes")
        if dim in dims and stored and len(stored) == len(dims):
            lengths.append(int(stored[dims.index(dim)]))
    return lengths
