"""Labelled arrays of several dimensions: what is a row, what is a column, and how they are called.

The cells of the sample dimensions are rows, numbered in C order of the whole array, whatever its
chunks are. Those of the feature dimensions, and the variables of a Dataset, are columns. Blocks
follow the chunks: what is stored together is read together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from daskcoreset.core.block import Box
from daskcoreset.core.coordinates import kept_values
from daskcoreset.core.messages import warn_user
from daskcoreset.core.typing import AnyArray, IndexArray, MissingChunks
from daskcoreset.core.validation import unused_name, without_mask
from daskcoreset.errors import InvalidInputError, InvalidTypeError
from daskcoreset.inputs.arrays import check_kind
from daskcoreset.inputs.cube_blocks import Flattening, cut, flat_rows
from daskcoreset.inputs.dataframes import as_tasks, check_numeric
from daskcoreset.inputs.options import ReadOptions, Rows, check_columns
from daskcoreset.inputs.zarr import warn_of_packing, with_checks, with_checks_in_graph
from daskcoreset.storage.coordinates import loaded_values, stored_values

# The variable of a DataArray without a name.
UNNAMED = "value"


@dataclass(frozen=True, eq=False)
class Cube:
    """The sample dimensions of the rows, and the variables of the columns.

    Attributes
    ----------
    dims : tuple of str
        Sample dimensions, in the order in which rows are numbered.
    features : xarray.Dataset
        Variables with their feature dimensions alone, whose values are numbers of columns.
    order : tuple of str
        Sample dimensions as the input has them: the order of predictions.
    chunks : mapping of str to tuple of int
        Lengths of the blocks along `dims`.
    coords : xarray.Dataset
        Coordinates of the rows, and no data.
    merged : int
        Chunks along the feature dimensions that a task brings together.
    """

    dims: tuple[str, ...]
    features: Any
    order: tuple[str, ...] = ()
    chunks: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    coords: Any = None
    merged: int = 1

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the sample dimensions."""
        return tuple(map(sum, self.chunks.values()))

    def boxes(self) -> list[Box]:
        """Return the blocks, in C order."""
        starts = [np.cumsum([0, *lengths[:-1]]).tolist() for lengths in self.chunks.values()]
        corners, lengths = itertools.product(*starts), itertools.product(*self.chunks.values())
        return [Box(self.dims, *one, self.shape) for one in zip(corners, lengths, strict=True)]

    def numbers(self, rows: IndexArray) -> IndexArray:
        """Return the numbers in the grid of rows that are counted from block to block."""
        boxes = self.boxes()
        starts = np.cumsum([0, *map(len, boxes)])
        blocks = np.searchsorted(starts, rows, side="right") - 1
        numbers = np.empty(len(rows), dtype=np.int64)
        for block in np.unique(blocks).tolist():
            inside = blocks == block
            numbers[inside] = boxes[block].numbers(rows[inside] - starts[block])
        return numbers

    def coordinates(self, numbers: IndexArray) -> dict[str, AnyArray]:
        """Return the coordinates of rows, by name; those that are Dask arrays are left out."""
        import xarray as xr

        places = zip(self.dims, np.unravel_index(numbers, self.shape), strict=True)
        at = {dim: xr.Variable("row", place) for dim, place in places}
        found = {}
        for name, coord in self.coords.variables.items():
            if not coord.dims or coord.chunks is not None:
                continue
            values = coord.isel(at, missing_dims="ignore").to_numpy()
            found[str(name)] = kept_values(values)
            kinds = {type(value).__name__ for value in values.flat} - {"str", "bytes"}
            if values.dtype.kind == "O" and kinds and found[str(name)].dtype.kind != "O":
                warn_user(
                    f"the coordinate {name!r} of X holds {', '.join(sorted(kinds))}, "
                    "which a coreset cannot store. Its rows have their text instead. "
                    "Convert the coordinate to numbers, dates or text."
                )
        return found

    def labelled(self, array: Any, name: str, dim: str, called: AnyArray | None = None) -> Any:
        """Return what was computed for every row, with the labels of the input.

        Parameters
        ----------
        array : dask.array.Array
            With the sample dimensions in the order of the rows, and at most one more.
        name, dim : str
            Names of the result, and of the dimension that it has beside them, with underscores
            added if the input has this name.
        called : ndarray, optional
            Names of the cells along this dimension, such as classes: its coordinate.
        """
        import xarray as xr

        coords = self.coords.coords
        last = (unused_name(dim, {*self.dims, *coords}),) * (array.ndim - len(self.dims))
        if last and called is not None:
            coords = {**coords, last[0]: called}
        made = xr.DataArray(array, coords, (*self.dims, *last), name)
        # Encodings are of the store that was read, and no other format takes its codecs.
        return made.drop_encoding().transpose(*self.order, *last)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the columns. None of a single variable without coordinates."""
        alone, names = len(self.features) == 1, []
        for name, feature in self.features.items():
            if alone and not {*feature.dims} <= {*feature.coords}:
                return None
            labels = [_texts(feature[dim].to_numpy()) for dim in feature.dims]
            for cell in itertools.product(*labels):
                pairs = zip(feature.dims, cell, strict=True)
                named = ", ".join(f"{dim}={one}" for dim, one in pairs)
                if alone and len(cell) == 1:
                    named = cell[0]
                whole = named if alone else f"{name}[{named}]"
                names.append(whole if cell else str(name))
        return tuple(names)

    def dataset_of(self, rows: AnyArray, dim: str) -> Any:
        """Return rows as a Dataset, whose variables have the names and units of the features.

        Parameters
        ----------
        rows : ndarray of shape (k, d)
        dim : str
            Name of the dimension of the rows, with underscores added if a feature or one of their
            dimensions has this name.
        """
        import xarray as xr

        dim = unused_name(dim, {*self.features, *self.features.sizes})
        variables = {
            name: ((dim, *one.dims), rows[:, one.values], one.attrs)
            for name, one in self.features.items()
        }
        return xr.Dataset(variables, {**self.features.coords, dim: np.arange(len(rows))})

    def to_json(self) -> dict[str, Any]:
        """Return what a coreset keeps of the columns, for the models that are fitted on it."""
        coords = {dim: _to_json(one.to_numpy()) for dim, one in self.features.coords.items()}
        return {
            "dims": [*self.dims],
            "coords": {dim: values for dim, values in coords.items() if values is not None},
            "features": [
                {"name": name, "dims": [*one.dims], "shape": [*one.shape], "attrs": {**one.attrs}}
                for name, one in self.features.items()
            ],
        }

    @classmethod
    def from_json(cls, record: Any, n_features: int) -> Cube | None:
        """Return the cube of `to_json`, without rows. None if it does not fit."""
        try:
            parts = {
                one["name"]: (dict(zip(one["dims"], one["shape"], strict=True)), one["attrs"])
                for one in record["features"]
            }
            coords = {dim: loaded_values(*values) for dim, values in record["coords"].items()}
            features = _features(parts, coords)
            cube = cls(tuple(record["dims"]), features)
        except (ImportError, KeyError, TypeError, ValueError, AttributeError):
            return None
        return cube if sum(one.size for one in features.values()) == n_features else None

    def without_rows(self) -> Cube:
        """Return what a model remembers: dimensions and features, and no coordinates of rows."""
        return Cube(self.dims, self.features)

    def like_fit(self, X: Any) -> Any:
        """Return an xarray object in the form that a model fitted on this one opens."""
        data, options = ReadOptions.of(X)
        if not is_xarray(data):
            return X
        data = as_dataset(data)
        if len(self.features) == len(data) == 1:
            (name,), (given,) = self.features, data
            if UNNAMED in (name, given):
                data = data.rename({given: name})
            elif given != name and self.features[name].dims:
                # Its columns are called by their coordinates, which tell it from no other.
                warn_user(
                    f"X is {given!r}, but the model was fitted on {name!r}. Pass that variable, or "
                    f"rename {given!r} to {name!r} if it is the same."
                )
        # By name, for stores hand variables out in any order.
        if options.columns is None and self.features.keys() <= data.keys():
            options = replace(options, columns=tuple(self.features))
        columns = _dims_of([*self.features.values()])
        names = data.keys() & (options.columns or data.keys())
        dims = {dim for name in names for dim in data[name].dims}
        if dims == {*columns}:  # of a single cell
            data = data.expand_dims(unused_name("point", {*data.variables, *data.sizes}))
        if not options.has_dims:
            samples = self.dims if {*self.dims} == dims - {*columns} else None
            options = replace(options, sample_dims=samples, feature_dims=columns)
        return Rows(data, options)


def _features(
    parts: Mapping[str, tuple[Mapping[str, int], Mapping[str, Any]]],
    coords: Mapping[str, AnyArray],
) -> Any:
    """Return a Dataset of the numbers of columns, of lengths and attributes by variable."""
    import xarray as xr

    start, features = 0, {}
    for name, (sizes, attrs) in parts.items():
        numbers = np.arange(start, start + math.prod(sizes.values()))
        features[name] = (tuple(sizes), numbers.reshape(tuple(sizes.values())), attrs)
        start += len(numbers)
    return xr.Dataset(features, coords)


def _to_json(values: AnyArray) -> tuple[list[Any], str] | None:
    """Return values as `loaded_values` takes them. None of those that JSON does not hold."""
    stored, form = stored_values(values)
    fits = stored.dtype.kind != "c" and (stored.dtype.kind != "f" or np.isfinite(stored).all())
    return (stored.tolist(), form) if fits else None


def _texts(values: AnyArray) -> list[str]:
    """Return the names of cells: dates as in ISO 8601, decimals without digits of rounding."""
    if values.dtype.kind == "M":
        return [str(one) for one in np.datetime_as_string(values, unit="auto")]
    plain = values if values.dtype.kind == "m" else values.tolist()  # which are numbers in lists
    return [f"{one:.12g}" if isinstance(one, float) else str(one) for one in plain]


def is_xarray(part: Any) -> bool:
    """Whether a part is a DataArray or a Dataset."""
    return type(part).__module__.split(".")[0] == "xarray" and hasattr(part, "coords")


def refuse_cube(taker: str, X: Any) -> None:
    """Raise an error if X is opened as a cube, and `taker` needs rows that follow one another."""
    if ReadOptions.of(X)[1].has_dims:
        raise InvalidInputError(
            f"{taker} numbers rows in their order and does not accept sample_dims",
            argument="X",
            remedy="pass rows, for example X.stack(row=[...]).transpose('row', ...) of a "
            "DataArray or of X.to_dataarray(), or build a coreset",
        )


def open_cube(
    X: Any, y: Any, sample_weight: Any, options: ReadOptions
) -> tuple[Cube, dict[str, Any]]:
    """Open an xarray object, and labels and weights of its rows. Nothing is read.

    Parameters
    ----------
    X : xarray.DataArray or Dataset
    y, sample_weight : str, xarray.DataArray, array or None
    options : ReadOptions
        With the dimensions.

    Returns
    -------
    Cube
    dict of str to RowArray or dask.array.Array
        ``"X"``, and ``"y"`` and ``"sample_weight"`` if given, with a block for each box.

    Raises
    ------
    InvalidInputError
        Dimensions or variables that are not there, and variables that do not fit together.
    InvalidTypeError
        For variables that hold no real numbers.
    """
    if not is_xarray(X):
        raise InvalidTypeError(
            "sample_dims and feature_dims are for a DataArray or Dataset of xarray, and X is a "
            f"{type(X).__name__}",
            argument="sample_dims",
            remedy="leave them out, or open X with xarray",
        )
    beside = {"y": y, "sample_weight": sample_weight}
    beside = {name: part for name, part in beside.items() if part is not None}
    data = as_dataset(X)
    keys = [part for part in beside.values() if isinstance(part, str)]
    variables = [data[name] for name in _names_of(data, options) if name not in keys]
    present = _dims_of(variables)
    samples, columns = _split(present, options)
    _check(variables, samples, named=options.columns is not None)
    shape = {dim: data.sizes[dim] for dim in samples}
    widths = {dim: data.sizes[dim] for dim in columns}
    parts = {"X": variables}
    parts |= {name: [_beside(part, name, data, shape)] for name, part in beside.items()}
    checked = {
        name: [_checked(one.variable, options.missing_chunks) for one in own]
        for name, own in parts.items()
    }
    chunks, merged = cut(checked["X"], shape)
    features = _features(
        {
            str(one.name): (
                {dim: length for dim, length in widths.items() if dim in one.dims},
                {key: value for key, value in one.attrs.items() if isinstance(value, str)},
            )
            for one in variables
        },
        {dim: kept_values(data.indexes[dim].to_numpy()) for dim in columns if dim in data.indexes},
    )
    others = [name for name, one in data.coords.items() if not {*samples} >= {*one.dims}]
    coords = data.coords.to_dataset().drop_vars(others)
    order = tuple(dim for dim in present if dim in samples)
    cube = Cube(samples, features, order, chunks, coords, merged)
    arrays = {}
    for name, own in checked.items():
        dims = tuple(one.dims for one in own)
        flatten = Flattening(name, dims, samples, widths if name == "X" else {})
        arrays[name] = flat_rows(flatten, own, chunks, cube.boxes())
    for name, own in parts.items():
        warn_of_packing(own, name)
    return cube, arrays


def as_dataset(X: Any) -> Any:
    """Return a DataArray as the variable of a Dataset, and a Dataset unchanged."""
    if hasattr(X, "data_vars"):
        return X
    # A coordinate may have the name of the array itself; it says nothing of the columns.
    alone = X.drop_vars(X.name, errors="ignore")
    return alone.to_dataset(name=UNNAMED if X.name is None else str(X.name))


def _names_of(data: Any, options: ReadOptions) -> list[str]:
    """Return the names of the variables that are features, before y and weights are left out."""
    if strange := [name for name in (*data.sizes, *data) if not isinstance(name, str)]:
        raise InvalidTypeError(
            f"X has dimensions or variables whose names are not text: {strange}",
            argument="X",
            remedy=f"rename them, for example with X.rename({{{strange[0]!r}: 'cell'}})",
        )
    check_columns(options.columns or (), list(data))
    # Variables that coordinates name as the bounds of their cells are no features.
    bounds = {
        coord.attrs.get(key, coord.encoding.get(key))
        for coord in data.coords.values()
        for key in ("bounds", "climatology")
    }
    return [*options.columns] if options.columns else [one for one in data if one not in bounds]


def _dims_of(variables: Sequence[Any]) -> tuple[str, ...]:
    """Return all dimensions, by the variable with most: stores hand variables out in any order."""
    largest_first = sorted(variables, key=lambda one: -one.ndim)
    return tuple(dict.fromkeys(dim for one in largest_first for dim in one.dims))


def _split(
    present: tuple[str, ...], options: ReadOptions
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return sample and feature dimensions. If one is not given, it is all others."""
    samples, features = options.sample_dims, options.feature_dims
    if samples is None:
        samples = [dim for dim in present if dim not in (features or ())]
    if features is None:
        features = [dim for dim in present if dim not in samples]
    if not samples or {*samples} & {*features} or {*samples, *features} != {*present}:
        raise InvalidInputError(
            f"sample_dims={list(samples)} and feature_dims={list(features)} do not share out the "
            f"dimensions {list(present)} of X",
            argument="sample_dims",
            remedy="name each dimension in one of them, and at least one in sample_dims, or select "
            "cells with X.isel(...)",
        )
    return tuple(samples), tuple(features)


def _check(variables: Sequence[Any], samples: tuple[str, ...], *, named: bool) -> None:
    """Check dtypes and lengths. Variables that were named may be the same in all rows."""
    dtypes = {one.name: one.dtype for one in variables}
    check_numeric({key: one for key, one in dtypes.items() if one.kind not in "biuf"})
    for one in variables:
        if not named and not {*samples} & {*one.dims}:
            raise InvalidInputError(
                f"the variable {one.name!r} of X has the dimensions {list(one.dims)}, none of "
                f"which is in sample_dims={samples}",
                argument="X",
                remedy="drop it, or choose others with open_rows(X, columns=[...])",
            )
        if empty := [dim for dim, length in one.sizes.items() if not length > 0]:
            raise InvalidInputError(
                f"X has no cells along {empty[0]!r}, or chunks of unknown size",
                argument="X",
                remedy="pass at least one cell, or call compute_chunk_sizes() first",
            )


def _beside(part: Any, name: str, data: Any, shape: Mapping[str, int]) -> Any:
    """Return labels or weights as a DataArray with some of the sample dimensions.

    Parameters
    ----------
    part : str, xarray.DataArray or array
        The name of a variable or coordinate of X, or an array.
    name : str
        The argument that it was passed as.
    data : xarray.Dataset
    shape : mapping of str to int
        Lengths of the sample dimensions.
    """
    import xarray as xr

    try:
        if isinstance(part, str):
            part = data[part]
        elif not is_xarray(part):
            array = part if hasattr(part, "__dask_graph__") else np.asarray(without_mask(part))
            array = array.reshape(tuple(shape.values())) if array.ndim == 1 else array
            part = xr.DataArray(array, dims=tuple(shape))
        xr.align(part, data, join="exact", copy=False)
        part.transpose(*shape, missing_dims="ignore")  # raises for dimensions of no row
        dtype = part.dtype
    except (AttributeError, KeyError, ValueError) as error:  # a Dataset has no dtype
        raise InvalidInputError(
            f"{name} does not fit X ({error})",
            argument=name,
            remedy="pass a variable of X, a DataArray with the coordinates of X and no other "
            f"dimensions than {[*shape]}, or an array of the shape {tuple(shape.values())}",
        ) from None
    check_kind(name, dtype)
    return part


def _checked(variable: Any, missing_chunks: MissingChunks) -> Any:
    """Return a variable whose Zarr arrays are checked when they are read."""
    if variable._in_memory:  # noqa: SLF001 - `.data` would load a lazily opened file whole
        return variable
    data = variable._data  # noqa: SLF001 - as above
    made = variable.copy(deep=False)
    made._data = (  # noqa: SLF001 - as above
        with_checks_in_graph(as_tasks(data), missing_chunks)
        if hasattr(data, "__dask_graph__")
        else with_checks(data, missing_chunks)
    )
    return made
