"""Checks of data in memory, of parameters, and of a coreset in the place of X."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import NoneType
from typing import Any, TypeAlias

import numpy as np
from sklearn.utils import assert_all_finite, check_array, check_consistent_length, column_or_1d
from sklearn.utils._param_validation import InvalidParameterError, validate_parameter_constraints
from sklearn.utils.validation import _check_sample_weight, validate_data

from daskcoreset.core.coreset import Coreset
from daskcoreset.core.invalid import (
    find_bad_weight,
    find_inexact,
    find_unusable_row,
    finite_rows,
    no_weight_error,
    refuse,
)
from daskcoreset.core.labels import find_masked_label, find_unusable_label
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.core.validation import shown, without_mask
from daskcoreset.errors import CoresetError, InvalidInputError, InvalidTypeError
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.inputs.cubes import is_xarray
from daskcoreset.inputs.dataframes import FrameRows, check_exact, numpy_frame
from daskcoreset.inputs.open import is_path
from daskcoreset.sensitivities import Sensitivity, resolve_method

FLOATS = [np.float64, np.float32]


def is_in_memory(*parts: Any) -> bool:
    """Whether all parts are in memory, of kinds that scikit-learn itself takes.

    Dask, Zarr, HDF5 and xarray objects, memory maps and paths are not. None counts as in memory.

    Examples
    --------
    >>> is_in_memory([[1.0], [2.0]], None), is_in_memory("data.zarr")
    (True, False)
    """
    return not is_path(parts[0]) and all(_is_in_memory(part) for part in parts)


def _is_in_memory(part: Any) -> bool:
    # A Delayed object claims to have every attribute, so that Dask is asked for first.
    if isinstance(part, np.memmap) or hasattr(part, "__dask_graph__") or is_xarray(part):
        return False
    if part is None or isinstance(part, (np.ndarray, list, tuple, numbers.Number)):
        return True
    if hasattr(type(part), "iloc") or hasattr(part, "tocsr"):
        return True
    # An array of another library, unless its dtype is NumPy's: then it is likely on disk.
    return hasattr(part, "__array__") and not isinstance(getattr(part, "dtype", None), np.dtype)


def is_frame(X: Any) -> bool:
    """Whether X is a data frame of pandas, Dask or polars."""
    # The class is asked, for a Delayed object claims to have every attribute.
    return hasattr(type(X), "columns") and (hasattr(type(X), "iloc") or is_polars(X))


def frame_names(X: Any) -> list[str] | None:
    """Return the names of the columns of a data frame.

    Return None for other data, and if a name is not a string.

    Examples
    --------
    >>> import pandas as pd
    >>> frame_names(pd.DataFrame({"a": [1.0]})), frame_names(pd.DataFrame([[1.0]]))
    (['a'], None)
    """
    if not is_frame(X) or not all(isinstance(name, str) for name in X.columns):
        return None
    return [*X.columns]


def is_polars(X: Any) -> bool:
    """Whether X is of polars."""
    return type(X).__module__.partition(".")[0] == "polars"


@dataclass(frozen=True, eq=False)
class InMemoryData:
    """Data in memory after scikit-learn's checks.

    Attributes
    ----------
    X : ndarray of shape (n, d) or scipy sparse, float32 or float64
    y : ndarray of shape (n,) or None
    sample_weight : ndarray of shape (n,), float64, or None
    numbers : ndarray of shape (n,), int64, or None
        Numbers of the rows in the data as given, if rows were dropped.
    n_given : int
        Number of rows as given, if rows were dropped.
    coreset : Coreset or None
        Coreset that was passed as X. Its rows are the data.
    """

    X: Any
    y: Any
    sample_weight: FloatArray | None
    numbers: IndexArray | None = None
    n_given: int = 0
    coreset: Coreset | None = None

    def numbers_of(self, positions: IndexArray) -> IndexArray:
        """Return the numbers, in the data as given, of the rows at positions."""
        return positions if self.numbers is None else self.numbers[positions]

    @property
    def weights(self) -> FloatArray:
        """Weights of the rows, or ones if no weights were passed."""
        return np.ones(self.X.shape[0]) if self.sample_weight is None else self.sample_weight

    def take(self, positions: IndexArray) -> InMemoryData:
        """Return the rows at increasing positions. The others count as dropped."""
        n_rows = self.X.shape[0]
        if len(positions) == n_rows:
            return self
        labels, weights = (
            None if part is None else part[positions] for part in (self.y, self.sample_weight)
        )
        numbers = self.numbers_of(positions)
        return InMemoryData(self.X[positions], labels, weights, numbers, self.n_given or n_rows)

    def as_given(self, labels: AnyArray) -> AnyArray:
        """Return labels of all rows that were given, -1 for those that were dropped."""
        if self.numbers is None:
            return labels
        spread = np.full(self.n_given, -1, dtype=labels.dtype)
        spread[self.numbers] = labels
        return spread


# What a model is fitted to: rows in memory, or blocks of rows out of core.
Rows: TypeAlias = "InMemoryData | RowBlocks"


def count_features(rows: Rows) -> int:
    """Return the columns of rows, before they are read."""
    return int(rows.X.shape[1]) if isinstance(rows, InMemoryData) else rows.schema.n_features


# What to do about an argument that scikit-learn refuses.
_REMEDIES = {
    "X": "pass numbers, one row per sample and one column per feature",
    "y": "pass one label for every row of X",
    "sample_weight": "pass one number for every row of X, some of them positive",
    "classes": "pass all labels there will be",
}


@contextmanager
def refuse_as(name: str, remedy: str | None = None) -> Iterator[None]:
    """Replace errors of scikit-learn's checks by errors that name the argument."""
    try:
        yield
    except CoresetError:
        raise
    except (TypeError, ValueError) as error:
        kind = InvalidTypeError if isinstance(error, TypeError) else InvalidInputError
        said = " ".join(str(error).split()).rstrip(".")
        raise kind(
            f"{name} cannot be used: {said}", argument=name, remedy=remedy or _REMEDIES[name]
        ) from error


class CheckedParameters:
    """Mixin of the estimators: wrong parameters are errors of ours."""

    def _validate_params(self) -> None:
        for name, value in self.get_params(deep=False).items():  # type: ignore[attr-defined]
            constraints = self._parameter_constraints.get(name, ())  # type: ignore[attr-defined]
            # Scikit-learn compares all numbers of Python's tower, flags and spans of time with
            # bounds.
            is_plain = isinstance(value, (int, float, np.number))
            is_span = isinstance(value, np.timedelta64)
            is_flag = isinstance(value, bool) and constraints and "boolean" not in constraints
            if isinstance(value, numbers.Real) and (is_span or is_flag or not is_plain):
                raise InvalidTypeError(
                    f"{name} is {shown(value)}", argument=name, remedy="pass a plain number"
                )
            if Sensitivity in constraints and not isinstance(value, (str, Sensitivity, NoneType)):
                resolve_method(value)  # says what a method may be
            allowed = {name: constraints} if constraints else {}
            try:
                validate_parameter_constraints(allowed, {name: value}, type(self).__name__)
            except InvalidParameterError as error:
                raise InvalidInputError(
                    str(error).rstrip("."), argument=name, remedy="pass an allowed value"
                ) from error


def require_y(estimator: Any) -> InvalidInputError:
    """Return the error for missing labels, in the words of scikit-learn."""
    return InvalidInputError(
        f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is "
        "None",
        argument="y",
        remedy='pass the labels, or the name of a column or an array of X, such as y="label"',
    )


def validate_rows(
    estimator: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    reset: bool = True,
    fits: bool | None = None,
    finite: bool = True,
    y_numeric: bool = False,
    named: bool = True,
) -> InMemoryData:
    """Check data in memory as scikit-learn does, by the tags of the estimator.

    Parameters
    ----------
    estimator : estimator object
    X, y, sample_weight
        As its ``fit`` has them.
    reset : bool, default=True
        Whether the attributes of the features are set, or compared.
    fits : bool, optional
        Whether rows may be left out, because the estimator is fitted to them. Default: `reset`.
    finite : bool, default=True
        Whether rows with NaN or infinity raise an error, or are dropped by `on_invalid`. If False,
        the code that reads the rows later checks them.
    y_numeric : bool, default=False
        Whether y holds numbers.
    named : bool, default=True
        Whether names of columns are compared with those of the fit.
    """
    tags = estimator.__sklearn_tags__()
    fits = reset if fits is None else fits
    labelled = y is not None or (fits and tags.target_tags.required)
    sparse = "csr" if tags.input_tags.sparse else False
    drops = fits and getattr(estimator, "on_invalid", None) == "drop"
    _check_rows(X)
    if hasattr(X, "__dask_graph__") and hasattr(type(X), "columns"):
        X = X.compute()  # scikit-learn finds no names of features in a frame of Dask
    X = numpy_frame(without_mask(X))
    _check_exact(X)
    if labelled:
        _check_labels(estimator, y)
    if type(X) is np.ndarray and X.dtype == np.float16:  # needs no float64, as out of core
        X = X.astype(np.float32)
    X = _checked_points(estimator if reset or named else None, X, reset=reset, accept_sparse=sparse)
    if X.shape[1] != estimator.n_features_in_:
        raise InvalidInputError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input",
            argument="X",
            remedy="pass the columns it was fitted on",
        )
    if labelled:
        y = _checked_labels(X, y, numeric=y_numeric)
    sample_weight = _checked_weights(sample_weight, X)
    data = InMemoryData(X, y, sample_weight)
    if not finite:
        return data
    if drops:
        data = _without_invalid(data)
    names = getattr(estimator, "feature_names_in_", None)
    told: dict[str, Any] = {"remedy": _remedy_for(estimator, fits=fits), "columns": names}
    refuse(find_unusable_row(data.X, data.weights, **told))
    return data


def _checked_points(estimator: Any, X: Any, *, reset: bool, accept_sparse: Any) -> Any:
    """Return X after scikit-learn's checks. Rows that are not finite are checked later.

    Without an estimator, features are not set or compared.
    """
    checks = {"dtype": FLOATS, "ensure_all_finite": False, "accept_sparse": accept_sparse}
    with refuse_as("X"):
        try:
            if estimator is None:
                return check_array(X, **checks)
            return validate_data(estimator, X, reset=reset, **checks)
        except (TypeError, ValueError):
            _check_columns(X)
            raise


def _checked_labels(X: Any, y: Any, *, numeric: bool) -> AnyArray:
    """Return y after scikit-learn's checks against X."""
    with refuse_as("y"):
        labels: AnyArray = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        if numeric and labels.dtype.kind == "O":
            labels = labels.astype(np.float64)
        check_consistent_length(X, labels)
    return labels


def _check_rows(X: Any) -> None:
    """Refuse data that scikit-learn would convert to unintended numbers."""
    if X is None or isinstance(X, (numbers.Number, np.generic)):
        raise InvalidTypeError(
            f"X is {shown(X)}: Expected 2D array",
            argument="X",
            remedy="pass an array, a data frame, or the path of a file or store",
        )
    if getattr(getattr(X, "dtype", None), "kind", None) in {"m", "M"}:
        raise InvalidTypeError(
            f"X must hold real numbers, found dtype {X.dtype}",
            argument="X",
            remedy="convert it, for example with X.astype('float64')",
        )
    shape = getattr(X, "shape", None)
    if isinstance(shape, tuple) and len(shape) != 2:
        raise InvalidInputError(
            f"X is of shape {shape}: Expected 2D array, one row per sample. Reshape your data: "
            "pass X.reshape(1, -1) for one row, or X.reshape(len(X), -1) for several."
        )


def _check_exact(X: Any) -> None:
    """Raise an error for the first integer that float64 does not hold."""
    if isinstance(X, (list, tuple)):
        with suppress(ValueError):  # of rows of different lengths, which scikit-learn refuses
            X = np.asarray(X)
    if hasattr(X, "tocsr") or (isinstance(X, np.ndarray) and X.ndim == 2):
        refuse(find_inexact("X", X))
    elif getattr(X, "ndim", 0) == 2 and hasattr(X, "dtypes") and hasattr(X, "iloc"):
        check_exact(X)


def _check_columns(X: Any) -> None:
    """Raise an error that names the columns of a data frame without numbers, as out of core."""
    if getattr(X, "ndim", 0) == 2 and hasattr(X, "dtypes") and hasattr(X, "iloc"):
        FrameRows.of(X)


def _check_labels(estimator: Any, y: Any) -> None:
    """Check labels before scikit-learn, whose errors do not name a row."""
    if y is None:
        raise require_y(estimator)
    refuse(find_masked_label(y))
    with refuse_as("y"):
        labels = np.asarray(y)
    if labels.dtype.kind == "c":
        raise InvalidInputError(
            f"y must hold numbers or text, found dtype {labels.dtype} (Complex data not supported)",
            argument="y",
            remedy="convert it, for example with y.real",
        )
    if labels.dtype.kind in "mM":
        raise InvalidTypeError(
            f"y must hold numbers or text, found dtype {labels.dtype}",
            argument="y",
            remedy="convert it, for example with y.astype(str)",
        )
    if labels.ndim == 1:
        # Before scikit-learn looks, which names no row: those missing in pandas' way compare with
        # nothing.
        refuse(find_unusable_label(labels))


def _checked_weights(sample_weight: Any, X: Any) -> FloatArray | None:
    if sample_weight is None:
        return None
    with refuse_as("sample_weight"):
        refuse(find_inexact("sample_weight", sample_weight))
        sample_weight = without_mask(sample_weight)
        given = np.asarray(sample_weight, dtype=np.float64)
        if given.shape == (X.shape[0],):
            refuse(find_bad_weight(given))
        checked: FloatArray = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True
        )
    if not checked.any():  # which older versions of scikit-learn let pass
        raise no_weight_error()
    return checked


def _remedy_for(estimator: Any, *, fits: bool) -> str:
    """Return the remedy for rows that are not finite, in a fit or for a result."""
    if not fits:
        return "clean the data, because every row of X gets a result"
    if "on_invalid" not in estimator.get_params(deep=False):
        return "clean the data"
    name = type(estimator).__name__
    return f'clean the data, or pass on_invalid="drop" to {name}, which leaves such rows out'


def _without_invalid(data: InMemoryData) -> InMemoryData:
    """Leave out rows with NaN or infinity."""
    numbers = finite_rows(data.X)
    if not len(numbers):
        raise InvalidInputError(
            "every row of X has NaN or infinity", argument="X", remedy="clean the data"
        )
    return data.take(numbers)


class SparseInput:
    """Mixin of the estimators that take sparse rows."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc] # of the base estimator
        tags.input_tags.sparse = True
        return tags
