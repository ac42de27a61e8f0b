"""Labelled arrays of several dimensions: what is a row, what is a column, and how they are called.

The cells of the sample dimensions are rows, numbered in C order of the whole array, whatever its
chunks are. Those of the feature dimensions, and the variables of a Dataset, are columns. Blocks
follow the chunks: what is stored together is read together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from daskcoreset.core.block import Box
from daskcoreset.core.coordinates import kept_values
from daskcoreset.core.messages import warn_user
from daskcoreset.core.typing import AnyArray, IndexArray, MissingChunks
from daskcoreset.core.validation import unused_name
from daskcoreset.errors import InvalidInputError, InvalidTypeError
from daskcoreset.inputs.cube_blocks import BoxRows, Flattening, cut, dask_rows, in_memory
from daskcoreset.inputs.dataframes import as_tasks, check_numeric
from daskcoreset.inputs.options import ReadOptions, Rows, check_columns
from daskcoreset.inputs.packed import packed_remark
from daskcoreset.inputs.zarr import with_checks, with_checks_in_graph
from daskcoreset.storage.coordinates import loaded_values, stored_values

# The variable of a DataArray without a name.
UNNAMED = "value"

# What of the encoding of a coordinate is about its values. The rest is of the store that it was
# read from, such as codecs, which no other format of Zarr or file takes.
_CODED = ("units", "calendar", "dtype", "_FillValue", "missing_value", "scale_factor", "add_offset")


@dataclass(frozen=True, eq=False)
class Cube:
    """The sample dimensions of the rows, and the variables of the columns.

    Attributes
    ----------
    dims : tuple of str
        Sample dimensions, in the order in which rows are numbered.
    features : dict of str to xarray.DataArray
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
    features: dict[str, Any]
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

        places = dict(zip(self.dims, np.unravel_index(numbers, self.shape), strict=True))
        at = {dim: xr.Variable("row", place) for dim, place in places.items()}
        found = {}
        for name, coord in self.coords.coords.items():
            if coord.dims and coord.chunks is None:
                values = coord.isel({dim: at[dim] for dim in coord.dims}).to_numpy()
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
        for coord in made.coords.values():  # in a copy of the variable, which is not the input's
            coord.encoding = {key: coord.encoding[key] for key in _CODED if key in coord.encoding}
        return made.transpose(*self.order, *last)

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
                names.append(whole if cell else name)
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

        taken = {name for one in self.features.values() for name in (*one.dims, *self.features)}
        dim = unused_name(dim, taken)
        variables = {
            name: xr.DataArray(rows[:, one.values], one.coords, (dim, *one.dims), attrs=one.attrs)
            for name, one in self.features.items()
        }
        return xr.Dataset(variables, {dim: np.arange(len(rows))})

    def to_json(self) -> dict[str, Any]:
        """Return what a coreset keeps of the columns, for the models that are fitted on it."""
        return {
            "dims": list(self.dims),
            "features": [*map(_feature_to_json, self.features.values())],
        }

    @classmethod
    def from_json(cls, record: Any, n_features: int) -> Cube | None:
        """Return the cube of `to_json`, without rows. None if it does not fit."""
        try:
            features = _features(
                (
                    one["name"],
                    dict(zip(one["dims"], one["shape"], strict=True)),
                    {dim: loaded_values(*values) for dim, values in one["coords"].items()},
                    one["attrs"],
                )
                for one in record["features"]
            )
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
        columns = tuple(dict.fromkeys(dim for one in self.features.values() for dim in one.dims))
        if len(self.features) == 1:
            data = self._renamed(data)
        variables = dict(getattr(data, "data_vars", {}))
        # By name, for stores hand variables out in any order.
        if options.columns is None and self.features.keys() <= variables.keys():
            options = replace(options, columns=tuple(self.features))
        names = variables.keys() & (options.columns or variables)
        dims = {dim for one in [variables[name] for name in names] or [data] for dim in one.dims}
        if dims == {*columns}:  # of a single cell
            taken = {*map(str, (*data.coords, *data.sizes, *variables))}
            data = data.expand_dims(unused_name("point", taken))
        if not options.has_dims:
            samples = self.dims if {*self.dims} == dims - {*columns} else None
            options = replace(options, sample_dims=samples, feature_dims=columns)
        return Rows(data, options)

    def _renamed(self, data: Any) -> Any:
        """Return an array with the name of the only feature, if one of them has none."""
        ((name, feature),) = self.features.items()
        is_dataset = hasattr(data, "data_vars")
        if not is_dataset and (data.name is None or name == UNNAMED):
            return data.rename(name)
        # Alone, columns are called by the coordinates of the feature dimensions, and tell no
        # variable from another.
        (given, *others) = data.data_vars if is_dataset else [data.name]
        if feature.dims and not others and name not in (given, UNNAMED):
            warn_user(
                f"X is {given!r}, but the model was fitted on {name!r}. Pass that variable, or "
                f"rename {given!r} to {name!r} if it is the same."
            )
        return data


def _features(parts: Iterable[tuple[str, Mapping[str, int], Any, Any]]) -> dict[str, Any]:
    """Return variables of the numbers of columns, by names, lengths, coordinates and attributes."""
    import xarray as xr

    start, features = 0, {}
    for name, sizes, coords, attrs in parts:
        numbers = np.arange(start, start + math.prod(sizes.values()))
        shaped = numbers.reshape(tuple(sizes.values()))
        features[name] = xr.DataArray(shaped, coords, tuple(sizes), name, dict(attrs))
        start += len(numbers)
    return features


def _feature_to_json(feature: Any) -> dict[str, Any]:
    """Return what a coreset keeps. Attributes and coordinates that JSON has no word for go."""
    known = {
        "coords": {dim: _values_to_json(values.values) for dim, values in feature.coords.items()},
        "attrs": {str(name): _plain(value) for name, value in feature.attrs.items()},
    }
    return {"name": feature.name, "dims": [*feature.dims], "shape": [*feature.shape]} | {
        key: {name: value for name, value in values.items() if value is not None}
        for key, values in known.items()
    }


def _values_to_json(values: AnyArray) -> tuple[list[Any], str] | None:
    stored, form = stored_values(kept_values(values))
    if stored.dtype.kind in "fc" and not (stored.dtype.kind == "f" and np.isfinite(stored).all()):
        return None
    return stored.tolist(), form


def _plain(value: Any) -> Any:
    """Return text, or a number that JSON can say, else None."""
    value = value.item() if isinstance(value, np.generic) else value
    fits = isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
    return value if fits else None


def _texts(values: AnyArray) -> list[str]:
    """Return the names of cells: dates as in ISO 8601, decimals without digits of rounding."""
    if values.dtype.kind == "M":
        return [str(one) for one in np.datetime_as_string(values, unit="auto")]
    plain = values if values.dtype.kind == "m" else values.tolist()  # which are numbers in lists
    return [f"{one:.12g}" if isinstance(one, float) else str(one) for one in plain]


def is_xarray(part: Any) -> bool:
    """Whether a part is a DataArray or a Dataset."""
    return type(part).__module__.split(".")[0] == "xarray" and hasattr(part, "coords")


def dims_of_cube(data: Any, options: ReadOptions) -> tuple[list[str], list[str]] | None:
    """Return the dimensions of rows and of columns of a cube, and None for other data.

    A Dataset without options has a row per cell. The columns of an array without options are its
    last dimension.
    """
    if not is_xarray(data):
        return None
    is_dataset = hasattr(data, "data_vars")
    if not (is_dataset or options.has_dims or data.ndim > 2):
        return None
    dims = tuple(data.dims)
    if not options.has_dims:
        options = replace(options, sample_dims=dims if is_dataset else dims[:-1])
    samples, features = _dims(dims, options)
    return list(samples), list(features)


def refuse_cube(taker: str, X: Any) -> None:
    """Raise an error where rows must follow one another, and X is a cube, opened as one or not.

    Parameters
    ----------
    taker : str
        The function that takes no cube, for the error.
    X : object
        As a caller passed it; what is no xarray object of several dimensions passes.
    """
    data, options = ReadOptions.of(X)
    found = dims_of_cube(data, options)
    if found is None:
        return
    dims, is_dataset = tuple(data.dims), hasattr(data, "data_vars")
    samples, features = found
    rows = "X"
    if is_dataset or not features:
        column = unused_name("variable", dims)
        rows += f".{'to_dataarray' if is_dataset else 'expand_dims'}({column!r})"
        features = [column, *features]
    columns = f", column={features}" if len(features) > 1 else ""
    raise InvalidInputError(
        f"{taker} numbers rows in their order and does not accept sample_dims",
        remedy=f"pass rows, for example {rows}.stack(row={samples}{columns}).transpose('row', "
        "...), or build a coreset",
    )


def open_cube(
    X: Any, y: Any, sample_weight: Any, options: ReadOptions, *, target: int, memory: int
) -> tuple[Cube, dict[str, Any]]:
    """Open an xarray object, and labels and weights of its rows. Nothing is read.

    Parameters
    ----------
    X : xarray.DataArray or Dataset
    y, sample_weight : str, xarray.DataArray, array or None
    options : ReadOptions
        With the dimensions.
    target, memory : int
        Bytes of a block of stored chunks, and bytes in memory that are one block.

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
    if options.storage_options is not None:
        raise InvalidInputError(
            "storage_options are for URLs, and X is an xarray object",
            argument="storage_options",
            remedy="leave them out, or pass them to the function of xarray that opens X",
        )
    beside = {"y": y, "sample_weight": sample_weight}
    given = {name: part for name, part in beside.items() if part is not None}
    data, names = _variables_of(X, options.columns)
    keys = [part for part in given.values() if isinstance(part, str)]
    variables = {name: data[name] for name in names if name not in keys}
    if not variables:
        raise InvalidInputError(
            "X has no variables that are features", argument="X", remedy="pass at least one"
        )
    # By the variable with most dimensions, since stores hand variables out in any order.
    largest_first = sorted(variables.values(), key=lambda variable: -variable.ndim)
    present = tuple(dict.fromkeys(dim for one in largest_first for dim in one.dims))
    samples, columns = _dims(present, options)
    _check_variables(variables, samples, columns, named=options.columns is not None)
    shape = {dim: data.sizes[dim] for dim in samples}
    vectors = {name: [_beside(part, name, data, shape)] for name, part in given.items()}
    parts = {"X": [*variables.values()], **vectors}
    remarks = [packed_remark(one, f"the variable {one.name!r} of X") for one in parts["X"]]
    remarks += [packed_remark(parts[name][0], name) for name in given]
    if remark := next(filter(None, remarks), None):
        warn_user(remark)
    checked = {
        name: [_checked(one.variable, options.missing_chunks) for one in own]
        for name, own in parts.items()
    }
    chunks, merged = cut(checked["X"], shape, target=target, memory=memory)
    features = _features(
        (
            name,
            {dim: one.sizes[dim] for dim in columns if dim in one.dims},
            {
                dim: kept_values(index.to_numpy())
                for dim, index in one.indexes.items()
                if dim in columns
            },
            one.attrs,
        )
        for name, one in variables.items()
    )
    others = [name for name, one in data.coords.items() if not {*samples} >= {*one.dims}]
    coords = data.coords.to_dataset().drop_vars(others)
    order = tuple(dim for dim in present if dim in samples)
    cube = Cube(samples, features, order, chunks, coords, merged)
    arrays = {}
    for name, own in checked.items():
        widths = {dim: data.sizes[dim] for dim in columns} if name == "X" else {}
        flatten = Flattening(name, tuple(one.dims for one in own), samples, widths)
        if in_memory(own):
            arrays[name] = BoxRows(flatten, own, cube.boxes())
        else:
            arrays[name] = dask_rows(flatten, own, chunks)
    return cube, arrays


def _variables_of(X: Any, columns: Sequence[str] | None) -> tuple[Any, list[Any]]:
    """Return a Dataset, and the names of its variables that may be features."""
    if not hasattr(X, "data_vars"):
        if columns is not None:
            raise InvalidInputError(
                "columns names variables of a Dataset, and X is a DataArray",
                argument="columns",
                remedy="leave columns out, and pass X.sel(...)",
            )
        name = UNNAMED if X.name is None else str(X.name)
        # A coordinate may have the name of the array itself; it says nothing of the columns.
        return X.drop_vars(X.name, errors="ignore").to_dataset(name=name), [name]
    if unnamed := [name for name in X.data_vars if not isinstance(name, str)]:
        raise InvalidTypeError(
            f"X has variables whose names are not text: {unnamed}",
            argument="X",
            remedy=f"rename them, for example with X.rename({{{unnamed[0]!r}: 'x{unnamed[0]}'}})",
        )
    check_columns(columns or (), list(X.data_vars))
    # Variables that coordinates name as the bounds of their cells are no features.
    bounds = {
        coord.attrs.get(key, coord.encoding.get(key))
        for coord in X.coords.values()
        for key in ("bounds", "climatology")
    }
    return X, [*columns] if columns else [name for name in X.data_vars if name not in bounds]


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


def _beside(part: Any, name: str, data: Any, shape: Mapping[str, int]) -> Any:
    """Return labels or weights with some of the sample dimensions.

    Parameters
    ----------
    part : str, xarray.DataArray or array
        The name of a variable or coordinate of X, or an array.
    name : str
        The argument that it was passed as.
    data : xarray.Dataset
    shape : mapping of str to int
        Lengths of the sample dimensions.

    Returns
    -------
    xarray.DataArray
    """
    import xarray as xr

    samples = tuple(shape)
    if isinstance(part, str):
        if part not in data.variables:
            raise InvalidInputError(
                f"{name} is {part!r}, but X has the variables {[*map(str, data.variables)]}",
                argument=name,
                remedy="name one of these, or pass a DataArray",
            )
        part = data[part]
    elif not is_xarray(part):
        array = part if hasattr(part, "__dask_graph__") else np.asarray(part)
        if array.shape == (math.prod(shape.values()),):
            array = array.reshape(tuple(shape.values()))
        if array.shape != tuple(shape.values()):
            raise InvalidInputError(
                f"{name} has the shape {array.shape}, and the rows of X lie along {samples} in "
                f"the shape {tuple(shape.values())}",
                argument=name,
                remedy="pass a DataArray, or an array of this shape",
            )
        part = xr.DataArray(array, dims=samples)
    if hasattr(part, "data_vars"):
        raise InvalidInputError(
            f"{name} is a Dataset", argument=name, remedy="pass one of its variables"
        )
    if strange := [dim for dim in part.dims if dim not in shape]:
        raise InvalidInputError(
            f"{name} has the dimensions {strange}, which are not in sample_dims={samples}",
            argument=name,
            remedy="select or sum along them first",
        )
    try:
        xr.align(part, data, join="exact", copy=False)
    except ValueError as error:
        raise InvalidInputError(
            f"{name} has other coordinates than X ({error})",
            argument=name,
            remedy=f"align them, for example with {name}.reindex_like(X)",
        ) from None
    if part.dtype.kind not in ("biuf" if name == "sample_weight" else "biufUSOT"):
        wanted = "numbers" if name == "sample_weight" else "numbers or text"
        raise InvalidTypeError(
            f"{name} must hold {wanted}, found dtype {part.dtype}",
            argument=name,
            remedy="convert it with astype",
        )
    return part


def _dims(
    present: tuple[Any, ...], options: ReadOptions
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return sample and feature dimensions. If one is not given, it is all others."""
    if strange := [dim for dim in present if not isinstance(dim, str)]:
        raise InvalidTypeError(
            f"X has the dimension {strange[0]!r}, and names of dimensions must be text",
            argument="X",
            remedy=f"rename it, for example with X.rename({{{strange[0]!r}: 'cell'}})",
        )
    samples, features = options.sample_dims, options.feature_dims
    for name, dims in (("sample_dims", samples), ("feature_dims", features)):
        if unknown := [dim for dim in dims or () if dim not in present]:
            raise InvalidInputError(
                f"{name} has {unknown}, but X has the dimensions {list(present)}",
                argument=name,
                remedy="name some of these",
            )
    if samples is None:
        samples = tuple(dim for dim in present if dim not in (features or ()))
    if features is None:
        features = tuple(dim for dim in present if dim not in samples)
    if both := [dim for dim in samples if dim in features]:
        raise InvalidInputError(
            f"sample_dims and feature_dims both have {both}",
            argument="sample_dims",
            remedy="name each dimension in one of them",
        )
    if left := [dim for dim in present if dim not in (*samples, *features)]:
        raise InvalidInputError(
            f"X has the dimensions {left}, which are neither in sample_dims nor in feature_dims",
            argument="X",
            remedy=f"add them to one of these, or select with X.isel({left[0]}=0)",
        )
    if not samples:
        remedy = f"name some of {list(present)}" if present else "pass more than a single cell"
        raise InvalidInputError(
            "sample_dims is empty, so that X has no rows",
            argument="sample_dims",
            remedy=remedy,
        )
    return tuple(samples), tuple(features)


def _check_variables(
    variables: Mapping[str, Any],
    sample_dims: tuple[str, ...],
    feature_dims: tuple[str, ...],
    *,
    named: bool,
) -> None:
    """Check dtypes and lengths. Variables that were named may be the same in all rows."""
    dtypes = {name: variable.dtype for name, variable in variables.items()}
    others = {name: dtype for name, dtype in dtypes.items() if dtype.kind not in "biuf"}
    check_numeric(others, dtypes)
    if len({dtype.newbyteorder("=") for dtype in dtypes.values()}) > 1:
        listed = ", ".join(f"{name!r} ({dtype})" for name, dtype in dtypes.items())
        raise InvalidTypeError(
            f"X has features of different dtypes: {listed}",
            argument="X",
            remedy="bring them to one, for example with X.astype('float32'), or choose some with "
            "open_rows(X, columns=[...])",
        )
    for name, variable in variables.items():
        if not named and not set(sample_dims) & set(variable.dims):
            raise InvalidInputError(
                f"the variable {name!r} of X has the dimensions {list(variable.dims)}, none of "
                f"which is in sample_dims={sample_dims}",
                remedy="drop it, or choose others with open_rows(X, columns=[...])",
            )
    sizes = {dim: length for one in variables.values() for dim, length in one.sizes.items()}
    for dim in (*sample_dims, *feature_dims):
        if np.isnan(sizes[dim]):
            raise InvalidInputError(
                f"X has chunks of unknown size along {dim!r}",
                argument="X",
                remedy="call compute_chunk_sizes() first",
            )
        if not sizes[dim]:
            raise InvalidInputError(
                f"X has no cells along {dim!r}", argument="X", remedy="pass at least one"
            )
