"""Checks of parameters, and of data in memory, by scikit-learn and as rows out of core."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import check_array, column_or_1d
from sklearn.utils._param_validation import InvalidParameterError, validate_parameter_constraints
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from daskcoreset.core.coreset import Coreset
from daskcoreset.core.invalid import find_inexact, no_weight_error, refuse
from daskcoreset.core.labels import find_masked_label, find_unusable_label
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Metric
from daskcoreset.core.validation import is_number, shown, without_mask
from daskcoreset.errors import CoresetError, InvalidInputError, InvalidTypeError
from daskcoreset.execution.engine import read_block
from daskcoreset.inputs.blocks import RowBlocks, row_blocks
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
    metric : {"euclidean", "cosine"}
        By "cosine" the rows were divided by their lengths.
    """

    X: Any
    y: Any
    sample_weight: FloatArray | None
    numbers: IndexArray | None = None
    n_given: int = 0
    coreset: Coreset | None = None
    metric: Metric = "euclidean"

    def numbers_of(self, positions: IndexArray) -> IndexArray:
        """Return the numbers, in the data as given, of the rows at positions."""
        return positions if self.numbers is None else self.numbers[positions]

    @property
    def weights(self) -> FloatArray:
        """Weights of the rows, or ones if no weights were passed."""
        return np.ones(self.X.shape[0]) if self.sample_weight is None else self.sample_weight

    @property
    def blocks(self) -> RowBlocks:
        """The rows as blocks, from which a coreset is built."""
        return row_blocks(self.X, self.y, self.sample_weight).by(self.metric)

    def as_given(self, labels: AnyArray) -> AnyArray:
        """Return labels of all rows that were given, -1 for those that were dropped."""
        if self.numbers is None:
            return labels
        spread = np.full(self.n_given, -1, dtype=labels.dtype)
        spread[self.numbers] = labels
        return spread


# What to do about an argument that scikit-learn refuses.
_REMEDIES = {
    "X": "pass numbers, one row per sample and one column per feature",
    "y": "pass one label for every row of X",
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
        constraints: dict[str, list[Any]] = self._parameter_constraints  # type: ignore[attr-defined]
        for name, allowed in constraints.items():
            value = getattr(self, name)
            # Scikit-learn compares flags and spans of time with bounds.
            if isinstance(value, numbers.Real) and not ("boolean" in allowed or is_number(value)):
                raise InvalidTypeError(
                    f"{name} is {shown(value)}", argument=name, remedy="pass a plain number"
                )
            if Sensitivity in allowed and value is not None and not isinstance(value, str):
                resolve_method(value)  # says what a method may be
            try:
                validate_parameter_constraints({name: allowed}, {name: value}, type(self).__name__)
            except InvalidParameterError as error:
                raise InvalidInputError(
                    str(error).rstrip("."), argument=name, remedy="pass an allowed value"
                ) from error


def require_y(estimator: Any, y: Any) -> None:
    """Check that there are labels, in the words of scikit-learn."""
    if y is None:
        raise InvalidInputError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            "is None",
            argument="y",
            remedy='pass the labels, or the name of a column or an array of X, such as y="label"',
        )


def check_n_features(estimator: Any, n_features: int) -> None:
    """Check that X has as many columns as in the fit."""
    if n_features != estimator.n_features_in_:
        raise InvalidInputError(
            f"X has {n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input",
            argument="X",
            remedy="pass the columns it was fitted on",
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
    coreset: Coreset | None = None,
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
    coreset : Coreset, optional
        The coreset that X, y and sample_weight belong to. Its names of columns were compared.
    """
    tags = estimator.__sklearn_tags__()
    fits = reset if fits is None else fits
    labelled = y is not None or (fits and tags.target_tags.required)
    if labelled:
        require_y(estimator, y)
    X = numpy_frame(without_mask(X))
    _check_numbers(X)
    checks = {
        "dtype": FLOATS,
        "ensure_all_finite": False,
        "accept_sparse": "csr" if tags.input_tags.sparse else False,
    }
    with refuse_as("X"):
        try:
            if coreset is None or reset:
                X = validate_data(estimator, X, reset=reset, **checks)
            else:
                X = check_array(X, **checks)
        except (TypeError, ValueError):
            if _is_pandas(X):
                FrameRows.of(X)  # names the columns without numbers
            raise
    check_n_features(estimator, X.shape[1])
    if labelled:
        y = _checked_labels(estimator, y)
    return _read(estimator, InMemoryData(X, y, sample_weight, coreset=coreset), fits, finite)


def _read(estimator: Any, given: InMemoryData, fits: bool, finite: bool) -> InMemoryData:
    """Read data in memory like data out of core, with the same errors for the same rows."""
    names = getattr(estimator, "feature_names_in_", None)
    drops = fits and getattr(estimator, "on_invalid", None) == "drop"
    metric: Metric = getattr(estimator, "metric", "euclidean")
    n_rows, X = given.X.shape[0], given.X if finite else np.zeros((given.X.shape[0], 1))
    blocks = row_blocks(
        X, given.y, given.sample_weight, chunks=n_rows, on_invalid="drop" if drops else "raise"
    )
    columns = None if names is None else tuple(names)
    found = read_block(blocks[0], {}, replace(blocks.schema, columns=columns, metric=metric))
    refuse(found.problem)
    block = found.valid_block
    if not block.weights.any():
        raise no_weight_error()
    return replace(
        given,
        X=block.points if finite else given.X,
        y=given.y if given.y is None or block.rows is None else given.y[block.rows],
        sample_weight=None if given.sample_weight is None else block.weights,
        numbers=block.rows,
        n_given=n_rows,
        metric=metric,
    )


def _check_numbers(X: Any) -> None:
    """Refuse what scikit-learn would convert to other numbers: dates, and integers of many bits."""
    if isinstance(X, (list, tuple)):
        with suppress(ValueError):  # of rows of different lengths, which scikit-learn refuses
            X = np.asarray(X)
    if _is_pandas(X):
        check_exact(X)
    elif hasattr(X, "tocsr") or isinstance(X, np.ndarray):
        if X.dtype.kind in "mM":
            raise InvalidTypeError(
                f"X must hold real numbers, found dtype {X.dtype}",
                argument="X",
                remedy="convert it, for example with X.astype('float64')",
            )
        refuse(find_inexact("X", X))


def _is_pandas(X: Any) -> bool:
    return getattr(X, "ndim", 0) == 2 and hasattr(X, "dtypes") and hasattr(X, "iloc")


def _checked_labels(estimator: Any, y: Any) -> AnyArray:
    """Return y after scikit-learn's checks: numbers for a regressor, classes for a classifier."""
    refuse(find_masked_label(y))
    with refuse_as("y"):
        labels: AnyArray = column_or_1d(y, warn=True)
    refuse(find_unusable_label(labels))
    if is_regressor(estimator):
        refuse(find_inexact("y", labels))
        with refuse_as("y"):
            labels = labels.astype(np.float64)
    if is_classifier(estimator):
        with refuse_as("y"):
            check_classification_targets(labels)
    return labels


class SparseInput:
    """Mixin of the estimators that take sparse rows."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc] # of the base estimator
        tags.input_tags.sparse = True
        return tags
