"""Labelled arrays of several dimensions: what is a row, what is a column, and how they are called.

The cells of the sample dimensions are rows, numbered in C order of the whole array, whatever its
chunks are; those of the feature dimensions, and the variables of a Dataset, are columns. Blocks
follow the chunks: what is stored together is read together, and flattened in the task.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daskcoreset.core.boxes import Box
from daskcoreset.core.coordinates import kept_values
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError, warn_user
from daskcoreset.core.typing import AnyArray, IndexArray
from daskcoreset.core.validation import unused_name
from daskcoreset.inputs.dataframes import check_numeric
from daskcoreset.inputs.options import ReadOptions, Rows, check_columns
from daskcoreset.storage.coordinates import loaded_values, stored_values

# The variable of a DataArray without a name.
UNNAMED = "value"

# What of the encoding of a coordinate is about its values. The rest is of the store that it was
# read from, such as codecs, which no other format of Zarr or file takes.
_CODED = ("units", "calendar", "dtype", "_FillValue", "missing_value", "scale_factor", "add_offset")


@dataclass(frozen=True, eq=False)
class Feature:
    """A variable whose cells along the feature dimensions are columns.

    Attributes
    ----------
    name : str
    dims : tuple of str
        Feature dimensions that it has.
    shape : tuple of int
        Its lengths along them.
    coords : dict of str to ndarray
        Coordinates along them.
    attrs : dict
        Units, for example.
    """

    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    coords: dict[str, AnyArray]
    attrs: dict[str, Any]

    @property
    def width(self) -> int:
        """Columns."""
        return math.prod(self.shape)

    def to_json(self) -> dict[str, Any]:
        """Return what a coreset keeps. Attributes and coordinates that JSON has no word for go."""
        coords = {dim: _coordinate_to_json(values) for dim, values in self.coords.items()}
        plain = {name: _plain(value) for name, value in self.attrs.items()}
        return {
            "name": self.name,
            "dims": list(self.dims),
            "shape": list(self.shape),
            "coords": {dim: one for dim, one in coords.items() if one is not None},
            "attrs": {str(name): value for name, value in plain.items() if value is not None},
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Feature:
        """Return the feature of `to_json`."""
        coords = {
            dim: loaded_values(one["values"], one["dtype"]) for dim, one in record["coords"].items()
        }
        shape = tuple(map(int, record["shape"]))
        dims = tuple(record["dims"])
        return cls(str(record["name"]), dims, shape, coords, dict(record["attrs"]))

    def columns(self, *, alone: bool) -> list[str]:
        """Return the names of the columns. `alone` where there is no other variable."""
        values = [
            _texts(self.coords.get(dim, np.arange(length)))
            for dim, length in zip(self.dims, self.shape, strict=True)
        ]
        if not self.dims:
            return [self.name]
        if alone and len(self.dims) == 1:
            return values[0]
        names = []
        for cell in itertools.product(*values):
            named = ", ".join(f"{dim}={one}" for dim, one in zip(self.dims, cell, strict=True))
            names.append(named if alone else f"{self.name}[{named}]")
        return names


def _plain(value: Any) -> Any:
    """Return text, or a number that JSON can say, else None."""
    value = value.item() if isinstance(value, np.generic) else value
    fits = isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
    return value if fits else None


def _coordinate_to_json(values: AnyArray) -> dict[str, Any] | None:
    kept = kept_values(values.astype(str) if values.dtype.kind == "c" else values)
    stored, form = stored_values(kept)
    if stored.dtype.kind == "f" and not np.isfinite(stored).all():
        return None
    return {"dtype": form, "values": stored.tolist()}


def _texts(values: AnyArray) -> list[str]:
    """Return the names of cells: dates as in ISO 8601, decimals without digits of rounding."""
    if values.dtype.kind == "M":
        return [str(one) for one in np.datetime_as_string(values, unit="auto")]
    plain = values if values.dtype.kind == "m" else values.tolist()  # which are numbers in lists
    return [f"{one:.12g}" if isinstance(one, float) else str(one) for one in plain]


@dataclass(frozen=True, eq=False)
class Cube:
    """The sample dimensions of the rows, and the variables of the columns.

    Attributes
    ----------
    dims : tuple of str
        Sample dimensions, in the order in which rows are numbered.
    order : tuple of str
        The same, as the input has them: the order of predictions.
    chunks : tuple of tuple of int
        Lengths of the blocks along `dims`.
    coords : xarray.Dataset
        Coordinates of the rows, and no data.
    features : tuple of Feature
    merged : int
        Chunks along the feature dimensions that a task brings together.
    """

    dims: tuple[str, ...]
    order: tuple[str, ...]
    chunks: tuple[tuple[int, ...], ...]
    coords: Any
    features: tuple[Feature, ...]
    merged: int = 1

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the sample dimensions."""
        return tuple(sum(chunks) for chunks in self.chunks)

    @property
    def grid(self) -> tuple[int, ...]:
        """Blocks along every sample dimension."""
        return tuple(len(chunks) for chunks in self.chunks)

    def boxes(self) -> list[Box]:
        """Return the blocks, in C order."""
        shape = self.shape
        starts = [np.cumsum([0, *chunks]).tolist() for chunks in self.chunks]
        return [
            Box(
                self.dims,
                tuple(starts[axis][i] for axis, i in enumerate(place)),
                tuple(self.chunks[axis][i] for axis, i in enumerate(place)),
                shape,
            )
            for place in np.ndindex(*self.grid)
        ]

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

    @property
    def feature_dims(self) -> tuple[str, ...]:
        """Dimensions of the columns."""
        return tuple(dict.fromkeys(dim for feature in self.features for dim in feature.dims))

    def to_json(self) -> dict[str, Any]:
        """Return what a coreset keeps for the models that are fitted on it."""
        return {"dims": list(self.dims), "features": [one.to_json() for one in self.features]}

    @classmethod
    def from_json(cls, record: Any, n_features: int) -> Cube | None:
        """Return the cube of `to_json`, without rows. None if the columns differ in number."""
        try:
            dims = tuple(map(str, record["dims"]))
            features = tuple(map(Feature.from_json, record["features"]))
        except (KeyError, TypeError, ValueError, AttributeError):
            return None
        fits = sum(feature.width for feature in features) == n_features
        return cls(dims, dims, (), None, features) if fits else None

    def without_rows(self) -> Cube:
        """Return what a model remembers: dimensions and features, and no coordinates of rows."""
        return replace(self, coords=None, chunks=())

    def asked(self, X: Any) -> Any:
        """Return an xarray object in the form that a model fitted on this one opens."""
        data, options = ReadOptions.of(X)
        if not is_xarray(data) or not hasattr(data, "coords"):
            return X
        names = [feature.name for feature in self.features]
        data = self._with_rows(self._named(data))
        if options.columns is None and set(names) <= {*map(str, getattr(data, "data_vars", ()))}:
            # By name, for stores hand variables out in any order.
            options = replace(options, columns=tuple(names))
        if not options.has_dims:
            present = dict.fromkeys(map(str, data.dims))
            same = set(self.dims) == present.keys() - set(self.feature_dims)
            samples = self.dims if same else None
            options = replace(options, sample_dims=samples, feature_dims=self.feature_dims)
        return Rows(data, options)

    def _named(self, data: Any) -> Any:
        """Return an array with the name of the only feature, where one of them has none."""
        if len(self.features) != 1:
            return data
        feature = self.features[0]
        names = [*getattr(data, "data_vars", [getattr(data, "name", None)])]
        if not hasattr(data, "data_vars") and (names == [None] or feature.name == UNNAMED):
            return data.rename(feature.name)
        # Alone, columns are called by the coordinates of the feature dimensions, and tell no
        # variable from another.
        known = not feature.dims or UNNAMED in (feature.name, *names) or feature.name in names
        if len(names) == 1 and not known:
            warn_user(
                f"X is {names[0]!r}, but the model was fitted on {feature.name!r}. "
                f"Pass that variable, or rename {names[0]!r} to {feature.name!r} if "
                "it is the same."
            )
        return data

    def _with_rows(self, data: Any) -> Any:
        """Return a selection with at least one dimension for rows in every feature.

        Where a cell was selected it has none, and where a place was, what lies there does not
        change along the others.
        """
        columns, names = set(self.feature_dims), {feature.name for feature in self.features}
        every = getattr(data, "data_vars", {None: data})
        # Bounds of times, for one, are no features and have dimensions of their own.
        features = {name: one for name, one in every.items() if name in names} or every
        rows = {
            dim: length
            for one in features.values()
            for dim, length in one.sizes.items()
            if dim not in columns
        }
        if not rows and columns.issubset(data.dims):  # without them an error names those there are
            taken = {*map(str, (*data.coords, *data.sizes, *every)), *columns}
            return data.expand_dims(unused_name("point", taken))
        if not rows:
            return data
        dim = next(iter(rows))
        still = {
            name: one.expand_dims({dim: rows[dim]})
            for name, one in features.items()
            if columns.issuperset(one.dims)
        }
        return data.assign(still) if still else data

    def labelled(self, array: Any, name: str, dim: str, called: AnyArray | None = None) -> Any:
        """Return what was computed for every row, with the labels of the input.

        Parameters
        ----------
        array : dask.array.Array
            With the sample dimensions in the order of the rows, and at most one more.
        name, dim : str
            Names of the result, and of the dimension that it has beside them, with underscores
            added where the input has this name.
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


def dataset_of(features: Sequence[Feature], rows: AnyArray, dim: str) -> Any:
    """Return rows as a Dataset, whose variables have the names and units of the features.

    Parameters
    ----------
    features : sequence of Feature
    rows : ndarray of shape (k, d)
    dim : str
        Name of the dimension of the rows, with underscores added where a feature, or one of their
        dimensions or coordinates, has this name.
    """
    import xarray as xr

    taken = {
        name for feature in features for name in (feature.name, *feature.dims, *feature.coords)
    }
    dim = unused_name(dim, taken)
    variables, start = {}, 0
    for feature in features:
        values = rows[:, start : start + feature.width].reshape(len(rows), *feature.shape)
        start += feature.width
        coords = feature.coords
        variables[feature.name] = xr.DataArray(
            values, coords, (dim, *feature.dims), attrs=feature.attrs
        )
    return xr.Dataset(variables, {dim: np.arange(len(rows))})


@dataclass(frozen=True, eq=False)
class Layout:
    """Variables of an xarray object, told apart into rows and columns.

    Attributes
    ----------
    sample_dims, feature_dims : tuple of str
    variables : dict of str to xarray.DataArray
        Variables of the features.
    data : xarray.Dataset
        The whole object.
    order : tuple of str
        Sample dimensions, as the object has them.
    """

    sample_dims: tuple[str, ...]
    feature_dims: tuple[str, ...]
    variables: dict[str, Any]
    data: Any
    order: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the sample dimensions."""
        return tuple(int(self.data.sizes[dim]) for dim in self.sample_dims)

    def features(self) -> tuple[Feature, ...]:
        """Return what is known of the columns."""
        found = []
        for name, variable in self.variables.items():
            dims = tuple(dim for dim in self.feature_dims if dim in variable.dims)
            coords = {dim: variable.indexes[dim] for dim in dims if dim in variable.indexes}
            shape = tuple(int(variable.sizes[dim]) for dim in dims)
            arrays = {dim: index.to_numpy() for dim, index in coords.items()}
            found.append(Feature(name, dims, shape, arrays, dict(variable.attrs)))
        return tuple(found)

    def coords(self) -> Any:
        """Return the coordinates of the rows."""
        coords = self.data.coords.to_dataset()
        rows = set(self.sample_dims)
        return coords.drop_vars(
            [name for name, coord in coords.coords.items() if not rows.issuperset(coord.dims)]
        )


def is_xarray(part: Any) -> bool:
    """Whether a part is a DataArray or a Dataset."""
    return type(part).__module__.split(".")[0] == "xarray" and hasattr(part, "dims")


def dims_of_cube(data: Any, options: ReadOptions) -> tuple[list[str], list[str]] | None:
    """Return the dimensions of rows and of columns of a cube, and None for other data.

    A Dataset without options has a row per cell. The columns of an array without options are its
    last dimension.
    """
    if not is_xarray(data) or not hasattr(data, "coords"):
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


def layout_of(X: Any, options: ReadOptions, keys: Mapping[str, str]) -> Layout:
    """Tell rows and columns of an xarray object apart.

    Parameters
    ----------
    X : xarray.DataArray or Dataset
    options : ReadOptions
    keys : mapping of str to str
        Variables that are labels or weights, by the name of the argument.

    Raises
    ------
    InvalidInputError
        Dimensions or variables that are not there, and variables that do not fit together.
    InvalidTypeError
        For variables that hold no real numbers.
    """
    if not is_xarray(X) or not hasattr(X, "coords"):
        raise InvalidTypeError(
            "sample_dims and feature_dims are for a DataArray or Dataset of xarray, and X is a "
            f"{type(X).__name__}",
            argument="sample_dims",
            remedy="leave them out, or open X with xarray",
        )
    if hasattr(X, "data_vars"):
        data, bounds = X, _bounds(X)
        names = [name for name in X.data_vars if name not in bounds]
        if unnamed := [name for name in names if not isinstance(name, str)]:
            raise InvalidTypeError(
                f"X has variables whose names are not text: {unnamed}",
                argument="X",
                remedy=f"rename them, for example with X.rename({{{unnamed[0]!r}: "
                f"'x{unnamed[0]}'}})",
            )
    else:
        if options.columns is not None:
            raise InvalidInputError(
                "columns names variables of a Dataset, and X is a DataArray",
                argument="columns",
                remedy="leave columns out, and pass X.sel(...)",
            )
        name = UNNAMED if X.name is None else str(X.name)
        # A coordinate may have the name of the array itself; it says nothing of the columns.
        data, names = X.drop_vars(X.name, errors="ignore").to_dataset(name=name), [name]
    _check_keys(data, keys)
    check_columns(options.columns or (), list(data.data_vars))
    chosen = [one for one in options.columns or names if one not in keys.values()]
    if not chosen:
        raise InvalidInputError(
            "X has no variables that are features", argument="X", remedy="pass at least one"
        )
    variables = {one: data[one] for one in chosen}
    # By the variable with most dimensions, since stores hand variables out in any order.
    largest_first = sorted(variables.values(), key=lambda variable: -variable.ndim)
    order = tuple(dict.fromkeys(dim for one in largest_first for dim in one.dims))
    sample_dims, feature_dims = _dims(order, options)
    _check_variables(variables, sample_dims, feature_dims)
    samples = tuple(dim for dim in order if dim in sample_dims)
    return Layout(sample_dims, feature_dims, variables, data, samples)


def _bounds(data: Any) -> set[Any]:
    """Return the variables that coordinates name as the bounds of their cells."""
    keys = ("bounds", "climatology")
    coords = data.coords.values()
    return {coord.attrs.get(key, coord.encoding.get(key)) for coord in coords for key in keys}


def _check_keys(data: Any, keys: Mapping[str, str]) -> None:
    for name, key in keys.items():
        if key not in data.variables:
            raise InvalidInputError(
                f"{name} is {key!r}, but X has the variables {[*map(str, data.variables)]}",
                argument=name,
                remedy="name one of these, or pass a DataArray",
            )


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
    given = {"sample_dims": options.sample_dims, "feature_dims": options.feature_dims}
    for name, dims in given.items():
        if unknown := [dim for dim in dims or () if dim not in present]:
            raise InvalidInputError(
                f"{name} has {unknown}, but X has the dimensions {list(present)}",
                argument=name,
                remedy="name some of these",
            )
    samples, features = (None if dims is None else tuple(dims) for dims in given.values())
    if samples is None:
        samples = tuple(dim for dim in present if dim not in (features or ()))
    elif features is None:
        features = tuple(dim for dim in present if dim not in samples)
    features = features or ()
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
    return samples, features


def _check_variables(
    variables: Mapping[str, Any], sample_dims: tuple[str, ...], feature_dims: tuple[str, ...]
) -> None:
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
        if not set(sample_dims) & set(variable.dims):
            raise InvalidInputError(
                f"the variable {name!r} of X has the dimensions {list(variable.dims)}, none of "
                f"which is in sample_dims={sample_dims}",
                remedy="drop it, or choose others with open_rows(X, columns=[...])",
            )
    sizes = {dim: length for one in variables.values() for dim, length in one.sizes.items()}
    for dim in (*sample_dims, *feature_dims):
        if not sizes[dim]:
            raise InvalidInputError(
                f"X has no cells along {dim!r}", argument="X", remedy="pass at least one"
            )
