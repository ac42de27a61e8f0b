"""Bases of the estimators: they fit on a coreset, and predict lazily for all rows."""

from __future__ import annotations

import numbers
import re
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial, wraps
from inspect import isfunction
from numbers import Integral
from types import NoneType
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.metrics import accuracy_score
from sklearn.utils import get_tags
from sklearn.utils._param_validation import Interval, InvalidParameterError, StrOptions
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    has_fit_parameter,
    validate_data,
)

from daskcoreset.build import build
from daskcoreset.constructions.tree.store import CoresetTree
from daskcoreset.constructions.tree.windows import TreeWindow
from daskcoreset.core.blocks import (
    Block,
    InvalidRow,
    find_bad_weight,
    find_date,
    find_inexact,
    find_inexact_value,
    find_masked_label,
    find_missing_label,
    find_unusable_row,
    finite_rows,
    no_weight_error,
)
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import (
    CoresetError,
    CoresetWarning,
    InvalidInputError,
    InvalidTypeError,
    warn_user,
)
from daskcoreset.core.linalg import in_single
from daskcoreset.core.portfolio import Portfolio
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points
from daskcoreset.core.validation import (
    a_type,
    how_to_select,
    names_apart,
    shown,
    without_mask,
)
from daskcoreset.estimators.labelled import frame_names, is_frame, lazy_series, series_in_memory
from daskcoreset.estimators.scoring import accuracy
from daskcoreset.execution.engine import map_rows
from daskcoreset.execution.waiting import compute_all
from daskcoreset.inputs.blocks import RowBlocks, row_blocks, selection_of
from daskcoreset.inputs.cubes import Cube, dataset_of, is_xarray
from daskcoreset.inputs.dataframes import check_exact, frame_source, without_index
from daskcoreset.inputs.known_columns import known_blocks
from daskcoreset.inputs.options import ReadOptions, is_path, select_features
from daskcoreset.inputs.options import Rows as OpenedRows
from daskcoreset.inputs.parquet import check_exact_table, with_vectors
from daskcoreset.objectives import Objective, QuantizationError
from daskcoreset.sensitivities import Sensitivity, resolve_method, takes_parts

FLOATS = [np.float64, np.float32]

# Spawn key of the solver's numbers; those of a build have two, a stage and a block.
_SOLVER = 2**31


def solver_seed(seed: int) -> int:
    """Return the seed of the solver that belongs to the seed of a fit.

    Parameters
    ----------
    seed : int
        Seed of the coreset; as in `daskcoreset.core.random.resolve_seed`.

    Returns
    -------
    int
        Below 2**32, the most that scikit-learn takes; independent of the draws of rows.
    """
    return int(np.random.SeedSequence(seed, spawn_key=(_SOLVER,)).generate_state(1)[0])


def is_in_memory(*parts: Any) -> bool:
    """Whether all parts are in memory, of kinds that scikit-learn itself takes.

    Dask, Zarr, HDF5 and xarray objects, memory maps and paths are not; None counts as
    in memory.

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


def refuse(problem: InvalidRow | None) -> None:
    """Raise the error of the first invalid row in memory."""
    if problem is not None:
        raise problem.error(0)


def check_size(size: int, n_parts: int, part: str) -> None:
    """Check that a coreset has at least as many rows as there are clusters or components."""
    if size < n_parts:
        raise InvalidInputError(
            f"size={size} is below n_{part}s={n_parts}; raise size, a hundred rows a {part} are a "
            f"good start."
        )


def resolve_for(
    method: str | Sensitivity[Any], n_clusters: int | None, own: Sensitivity[Any] | None = None
) -> Sensitivity[Any]:
    """Resolve the method of an estimator, for so many clusters where it is one for clusters.

    The name of `own` stands for it, with the parameters that the estimator gave it.
    """
    if not isinstance(method, str):
        return resolve_method(method)
    if own is not None and method == own.name:
        return own
    if n_clusters is None:
        try:
            return resolve_method(method)
        except InvalidInputError as error:  # of an estimator that has no such parameter
            text = str(error).replace("pass n_clusters, or an object", "pass an object")
            raise InvalidInputError(text) from None
    try:
        return resolve_method(method, n_clusters)
    except InvalidInputError:  # it has no such parameter, or is unknown
        return resolve_method(method)


def _other_method(estimator: Any) -> str:
    """Name a method whose coresets are for solutions of one size, of the kind that is fitted."""
    if is_classifier(estimator):
        return 'method="svm" or "logistic"'
    if is_regressor(estimator):
        return 'method="least_squares"'
    return "a method with n_clusters, for example StrongKMeans(10)"


def is_for_any_k(coreset: Coreset) -> bool:
    """Whether a coreset is by a construction for any number of clusters, none of a loss."""
    return bool(coreset.provenance.get("objective") == QuantizationError().record())


def require_weighted_fit(estimator: Any, remedy: str) -> None:
    """Check that an estimator can be fitted on rows with weights, such as a coreset."""
    if not has_fit_parameter(estimator, "sample_weight"):
        raise InvalidTypeError(
            f"estimator is {a_type(estimator)}, whose fit takes no sample_weight, so that "
            f"it cannot be fitted on a coreset; {remedy}."
        )


def is_sparse(rows: Rows) -> bool:
    """Whether rows are known to be sparse."""
    return issparse(rows.X) if isinstance(rows, InMemoryData) else rows.sparse


def refuse_centroids(coreset: Coreset, estimator: Any) -> None:
    """Check that a coreset is of rows, where means of them are not enough."""
    if coreset.of_centroids:
        raise InvalidInputError(
            f"the rows of the coreset are centroids, which have lost the spread that a "
            f"{type(estimator).__name__} fits; pass one of rows "
            f'(representatives="rows").'
        )


def coreset_is_all(coreset: Coreset) -> bool:
    """Whether a coreset holds every row of positive weight."""
    return int(coreset.provenance["m"]) >= int(coreset.provenance["n"])


def warn_lost_classes(classes: AnyArray, labels: AnyArray) -> None:
    """Warn where no row of a class is in the coreset, with these labels."""
    lost = np.setdiff1d(classes, labels)
    if len(lost):
        warn_user(
            f"{len(lost)} of the {len(classes)} classes of y have no row in the coreset: "
            f"{', '.join(map(str, lost[:5]))}. They will never be predicted; raise size."
        )


def apply_method(fitted: Any, method: str, points: Points) -> Any:
    """Call a method of a fitted object by name, so that the call can be pickled."""
    return getattr(fitted, method)(points)


def _apply_to_block(function: Callable[[Points], Any], nothing: Any, block: Block) -> Any:
    """Apply a function to the rows of a block; `nothing` is its answer for no rows."""
    return function(block.points) if len(block) else nothing


# Methods of estimators that may read all rows.
_READING = ("fit", "partial_fit", "predict", "score")


def _on_rows_or_coreset(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method take a coreset in place of X, and rows that say how they are read."""

    @wraps(method)
    def resolved(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = args[0] if args else kwargs.get("X")
        beside = [*args[1:], *(kwargs.get(name) for name in ("y", "sample_weight", "groups"))]
        if isinstance(given, OpenedRows):
            given = select_features(given, beside)
            args, kwargs = (given, *args[1:]), {**kwargs}
            if "X" in kwargs:
                args, kwargs["X"] = args[1:], given
        X = given
        fits = method.__name__ in {"fit", "partial_fit"}
        if self._no_coreset is None or not fits:
            X = coreset_for(self, given)
        elif isinstance(given, (Coreset, Portfolio, CoresetTree, TreeWindow)):
            raise InvalidInputError(
                f"X is {a_type(given)}, and {type(self).__name__} {self._no_coreset}"
            )
        if not isinstance(X, Coreset):
            return method(self, *args, **kwargs)
        check_metric(self, X)
        kwargs = rows_of_coreset(method.__name__, X, args[1:], kwargs)
        required = method.__name__ != "predict" and get_tags(self).target_tags.required
        if required and X.labels is None:
            raise InvalidInputError(
                f"X is a coreset without labels, and {type(self).__name__} requires y; build "
                f"it with y."
            )
        token = _GIVEN.set((self, X))
        try:
            return method(self, **kwargs)
        finally:
            _GIVEN.reset(token)

    return resolved


# A model and the coreset that its method was given in place of X, while that runs.
_GIVEN: ContextVar[tuple[Any, Coreset] | None] = ContextVar("daskcoreset-given", default=None)


def coreset_for(model: Any, X: Any) -> Any:
    """Return the coreset that X stands for, where it is a portfolio, a tree or a window of one."""
    if isinstance(X, (CoresetTree, TreeWindow)):
        return X.coreset()
    return member_for(model, X) if isinstance(X, Portfolio) else X


def check_metric(model: Any, coreset: Coreset) -> None:
    """Check that a coreset is by the metric of a model, which rows to be predicted are read by."""
    metric = getattr(model, "metric", "euclidean")
    if coreset.metric != metric:
        raise InvalidInputError(
            f"X is a coreset by the metric {coreset.metric}, and {type(model).__name__} is by "
            f"{metric}; build one by this metric"
            f"{', or pass metric=' + repr(coreset.metric) if hasattr(model, 'metric') else ''}."
        )


def member_for(model: Any, portfolio: Portfolio) -> Coreset:
    """Return the member that a model is made for: by the method that it would build, or the only.

    Raises
    ------
    InvalidInputError
        None, or several, are of this method.
    """
    method = getattr(model, "method", None)
    if method is None and hasattr(model, "_own_method"):
        method = model._method()  # noqa: SLF001 - the construction of a linear model
    name = method if isinstance(method, str) else getattr(method, "name", None)
    fitting = [
        key for key, member in portfolio.items() if member.provenance.get("method") == name
    ] or list(portfolio)
    if len(fitting) > 1:
        builds = "builds none itself" if name is None else f"would build {name!r}"
        raise InvalidInputError(
            f"X is a Portfolio, and which of {', '.join(map(repr, fitting))} is meant is not "
            f"clear: {type(model).__name__} {builds}; pass one of them, such as "
            f"portfolio[{fitting[0]!r}]."
        )
    return portfolio[fitting[0]]


@contextmanager
def of_known_names() -> Iterator[None]:
    """Let rows of a coreset pass as arrays: their names are those of the coreset."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        yield


def rows_for(model: CoresetModel, X: Any) -> Any:
    """Return the rows of a coreset in place of X, to which a model is applied; or X."""
    X = coreset_for(model, X)
    if not isinstance(X, Coreset):
        return X
    model._check_names(X.provenance.get("columns"))  # noqa: SLF001 - of this file
    return X.points


def rows_of_coreset(
    method: str, X: Coreset, more: Sequence[Any], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments that stand for a coreset in place of X."""
    if method == "predict":
        return {**kwargs, "X": X.points}
    given = [*more, kwargs.get("y"), kwargs.get("sample_weight")]
    if any(value is not None for value in given):
        raise InvalidInputError(
            "X is a coreset, which has labels and weights of its own; leave out y and "
            "sample_weight."
        )
    return {**kwargs, "X": X.points, "y": X.labels, "sample_weight": X.weights}


# Constraints of the parameters that `daskcoreset.build` is called with.
BUILD_CONSTRAINTS: dict[str, list[Any]] = {
    "size": [Interval(Integral, 1, None, closed="left")],
    "method": [str, Sensitivity],
    "sampling": [StrOptions({"systematic", "multinomial"})],
    "passes": [Interval(Integral, 1, 2, closed="both")],
    "on_invalid": [StrOptions({"raise", "drop"}), None],
}

# Constraints of a size, or a number of starts, that may be "auto".
AUTO_SIZE = [*BUILD_CONSTRAINTS["size"], StrOptions({"auto"})]


@dataclass(frozen=True, eq=False)
class InMemoryData:
    """Data in memory after scikit-learn's checks.

    Attributes
    ----------
    X : ndarray of shape (n, d) or scipy sparse, float32 or float64
    y : ndarray of shape (n,) or None
    sample_weight : ndarray of shape (n,), float64, or None
    numbers : ndarray of shape (n,), int64, or None
        Numbers of the rows in what was given, where rows were dropped.
    n_given : int
        Rows that were given, then.
    """

    X: Any
    y: Any
    sample_weight: FloatArray | None
    numbers: IndexArray | None = None
    n_given: int = 0

    def numbers_of(self, positions: IndexArray) -> IndexArray:
        """Return the numbers, in what was given, of the rows at positions."""
        return positions if self.numbers is None else self.numbers[positions]

    @property
    def weights(self) -> FloatArray:
        """Weights of the rows, ones where none were passed."""
        return np.ones(self.X.shape[0]) if self.sample_weight is None else self.sample_weight

    def take(self, positions: IndexArray) -> InMemoryData:
        """Return the rows at increasing positions; the others count as dropped."""
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


# What to do about what scikit-learn's checks, and NumPy, say of an argument.
_REMEDIES = {
    "Found array with dim": "pass one row per sample, for example X.reshape(len(X), -1)",
    "Complex data": "pass real numbers, for example the real and the imaginary part as columns",
    "sample(s)": "pass more rows",
    "feature(s)": "pass at least one column",
    "is expecting": "pass the columns it was fitted on",
    "could not convert": "pass numbers, for example of sklearn.preprocessing.OrdinalEncoder",
    "must be a string or a real": "pass numbers only",
    "inhomogeneous": "pass rows of equal length",
    "inconsistent numbers": "pass one entry of y for every row of X",
    "should be a 1d array": "pass a vector, one entry for every row",
    "Sample weights must be 1D": "pass a vector, one weight for every row",
    "expected (": "pass one weight for every row",
    "non-zero": "give some row a positive weight",
    "Unknown label type": "pass classes, for example y > y.mean()",
}


@contextmanager
def refuse_as(name: str) -> Iterator[None]:
    """Turn errors of scikit-learn's checks of an argument into ours, which name it."""
    try:
        yield
    except CoresetError:
        raise
    except (TypeError, ValueError) as error:
        kind = InvalidTypeError if isinstance(error, TypeError) else InvalidInputError
        # Without the array that scikit-learn prints.
        lines = str(error).splitlines()
        said = " ".join(line for line in lines if not line.startswith(("[", " ", "array=")))
        said = said.replace("instead: ", "instead. ").rstrip(".")
        if name == "X or y" and "inconsistent" not in said:
            name = "y" if re.search(r"\by should|\binput y|label", said, re.IGNORECASE) else "X"
        remedies = [remedy for found, remedy in _REMEDIES.items() if found in said]
        remedy = f"; {remedies[0]}." if remedies else "."
        raise kind(f"{name} cannot be used: {said}{remedy}") from error


class CheckedParameters:
    """Mixin of the estimators: wrong parameters are errors of ours."""

    def _validate_params(self) -> None:
        for name, value in self.get_params(deep=False).items():  # type: ignore[attr-defined]
            # Scikit-learn compares all numbers of Python's tower, and spans of time, with bounds.
            is_plain = isinstance(value, (int, float, np.number))
            is_span = isinstance(value, np.timedelta64)
            if isinstance(value, numbers.Real) and (is_span or not is_plain):
                raise InvalidTypeError(f"{name} is {shown(value)}; pass a plain number.")
            constraints = self._parameter_constraints.get(name, ())  # type: ignore[attr-defined]
            if Sensitivity in constraints and not isinstance(value, (str, Sensitivity, NoneType)):
                resolve_method(value)  # says what a method may be
        try:
            super()._validate_params()  # type: ignore[misc] # of the base estimator
        except InvalidParameterError as error:
            # Scikit-learn names classes with the module they lie in.
            message = re.sub(r"'daskcoreset(?:\.\w+)+\.(\w+)'", r"\1", str(error))
            raise InvalidInputError(message) from error


def require_y(estimator: Any) -> InvalidInputError:
    """Return the error of labels that are missing, in the words of scikit-learn."""
    return InvalidInputError(
        f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is "
        f"None; pass the labels, or where X has columns or arrays by name the name of one, such as "
        f'y="label".'
    )


def validate_rows(
    estimator: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    fits: bool | None = None,
    finite: bool = True,
    **checks: Any,
) -> InMemoryData:
    """Check data in memory as scikit-learn does, by the tags of the estimator.

    Parameters
    ----------
    estimator : estimator object
    X, y, sample_weight
        As its ``fit`` has them.
    fits : bool, optional
        Whether rows may be left out, since the estimator is fitted to them; by default where its
        features are set.
    finite : bool, default=True
        Whether rows with NaN or infinity are errors, or left out as `on_invalid` says; without, it
        is for what reads the rows later.
    **checks
        For scikit-learn's ``validate_data``.
    """
    tags = estimator.__sklearn_tags__()
    fits = checks.get("reset", True) if fits is None else fits
    target = {} if y is None and not (fits and tags.target_tags.required) else {"y": y}
    sparse = "csr" if tags.input_tags.sparse else False
    drops = fits and getattr(estimator, "on_invalid", None) == "drop"
    _check_rows(X)
    if hasattr(X, "__dask_graph__") and hasattr(type(X), "columns"):
        X = X.compute()  # scikit-learn finds no names of features in a frame of Dask
    X = without_index(without_mask(X))
    _check_exact(X)
    if target:
        _check_labels(estimator, y)
    if type(X) is np.ndarray and X.dtype == np.float16:  # needs no float64, as out of core
        X = in_single(X)
    with refuse_as("X" if y is None else "X or y"):
        # Rows that are not finite are found below, by their number and column.
        checks = {**checks, "ensure_all_finite": False}
        try:
            checked = validate_data(
                estimator, X, **target, dtype=FLOATS, accept_sparse=sparse, **checks
            )
        except (TypeError, ValueError) as error:
            if re.search(r"convert|cast|argument must be|promoted", str(error)):
                _check_columns(X)
            raise
    X, y = checked if target else (checked, None)
    if X.shape[1] != estimator.n_features_in_:  # an array that is another one than it says
        raise InvalidInputError(
            f"X holds {X.shape[1]} features, where it says that it has "
            f"{estimator.n_features_in_}; pass an array."
        )
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


def _check_rows(X: Any) -> None:
    """Check what scikit-learn turns into numbers that nobody meant."""
    if X is None or isinstance(X, (numbers.Number, np.generic)):
        raise InvalidTypeError(
            f"X is {shown(X)}: Expected 2D array; pass an array, a data frame, or the path of a "
            f"file or store."
        )
    if getattr(getattr(X, "dtype", None), "kind", None) in {"m", "M"}:
        raise InvalidTypeError(
            f"X must hold real numbers, found dtype {X.dtype}; convert it, for example with "
            f"X.astype('float64')."
        )


def _check_exact(X: Any) -> None:
    """Raise an error for the first integer that float64 does not hold."""
    if isinstance(X, (list, tuple)):
        with suppress(ValueError):  # of rows of different lengths, which scikit-learn refuses
            X = np.asarray(X)
    if hasattr(X, "tocsr") or (isinstance(X, np.ndarray) and X.ndim == 2):
        refuse(find_inexact(X))
    elif getattr(X, "ndim", 0) == 2 and hasattr(X, "dtypes") and hasattr(X, "iloc"):
        check_exact(X)
    elif frame_names(X) is not None:
        check_exact_table(X)


def _check_columns(X: Any) -> None:
    """Name the columns of a data frame that are no numbers, as out of core."""
    if getattr(X, "ndim", 0) == 2 and hasattr(X, "dtypes") and hasattr(X, "iloc"):
        frame_source(X)
    elif frame_names(X) is not None:  # of polars and pyarrow
        row_blocks(X)


def _check_labels(estimator: Any, y: Any) -> None:
    """Check labels before scikit-learn does, whose errors name no row."""
    if y is None:
        raise require_y(estimator)
    refuse(find_masked_label(y))
    with refuse_as("y"):
        labels = np.asarray(y)
    if labels.dtype.kind == "c":
        raise InvalidInputError(
            f"y must hold numbers or text, found dtype {labels.dtype} (Complex data not supported "
            f"by scikit-learn either); convert it, for example with y.real."
        )
    if labels.dtype.kind in "mM":
        raise InvalidTypeError(
            f"y must hold numbers or text, found dtype {labels.dtype}; convert it, for example "
            f"with y.astype(str)."
        )
    if labels.ndim == 1 and labels.dtype == object:
        refuse(find_missing_label(labels) or find_date(labels))
    if labels.ndim == 2 and labels.dtype.kind == "f":
        labels = np.where(np.isfinite(labels).all(axis=1), 0.0, np.nan)
    if labels.ndim == 1:
        # Before scikit-learn looks, which names no row: those missing in pandas' way compare with
        # nothing.
        refuse(find_missing_label(labels))


def _checked_weights(sample_weight: Any, X: Any) -> FloatArray | None:
    if sample_weight is None:
        return None
    with refuse_as("sample_weight"):
        refuse(find_inexact_value("sample_weight", sample_weight))
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
    """Say what to do with rows that are not finite, in a fit or for an answer."""
    if not fits:
        return "clean the data, for an answer has a value for every row of X."
    if "on_invalid" not in estimator.get_params(deep=False):
        return "clean the data."
    name = type(estimator).__name__
    return f'clean the data, or pass on_invalid="drop" to {name}, which leaves such rows out.'


def _without_invalid(data: InMemoryData) -> InMemoryData:
    """Leave out rows with NaN or infinity."""
    numbers = finite_rows(data.X)
    if not len(numbers):
        raise InvalidInputError("X has no row without NaN or infinity; clean the data.")
    return data.take(numbers)


class SparseInput:
    """Mixin of the estimators that take sparse rows."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc] # of the base estimator
        tags.input_tags.sparse = True
        return tags


class CoresetModel(CheckedParameters, BaseEstimator):  # type: ignore[misc] # scikit-learn has no annotations
    """Base of the estimators: builds the coreset, and maps what is fitted over any input.

    Data in memory of the kinds that scikit-learn takes pass its own checks, and answers come
    back at once; everything else goes to `daskcoreset.build` and is answered by Dask arrays.
    A subclass has the parameters `size`, `sampling` and `passes` and solves on what
    `_coreset_of` returns.

    Attributes
    ----------
    coreset_ : Coreset
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), object
        Where the columns of X have names.
    """

    coreset_: Coreset
    estimator_: Any
    n_features_in_: int
    feature_names_in_: AnyArray
    sampling: Any
    passes: Any
    on_invalid: Any = None
    # Why `fit` takes no coreset in place of X, and what to do; None where it does.
    _no_coreset: ClassVar[str | None] = None

    @property
    def _given(self) -> Coreset | None:
        """The coreset that the running method was given in place of X."""
        model, coreset = _GIVEN.get() or (None, None)
        return coreset if model is self else None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # As scikit-learn does for `set_output`: no subclass can forget it.
        for name in _READING:
            if isfunction(method := vars(cls).get(name)):
                setattr(cls, name, _on_rows_or_coreset(method))
        super().__init_subclass__(**kwargs)

    # Of the xarray object with dimensions that the model was fitted on.
    _cube: Cube | None = None

    def _validate_in_memory(
        self, X: Any, y: Any, sample_weight: Any, **checks: Any
    ) -> InMemoryData | None:
        """Check data in memory as scikit-learn does; None for everything else."""
        if not is_in_memory(X, y, sample_weight):
            return None
        X = with_vectors(without_index(X))
        if not checks.get("reset", True):
            if self._given is None:
                self._check_names(frame_names(X), selection_of(X))
                return validate_rows(self, X, y, sample_weight, **checks)
            self._check_names(self._given.provenance.get("columns"))
            with of_known_names():
                return validate_rows(self, X, y, sample_weight, **checks)
        self._cube = None
        data = validate_rows(self, X, y, sample_weight, **checks)
        if self._given is not None:
            self._set_features_given(self._given)
        return data

    def _open_rows(self, X: Any, sample_weight: Any, *, fitted: bool = False) -> Rows:
        """Check rows without labels: to be fitted to, or those of a model that is fitted."""
        data = self._validate_in_memory(X, None, sample_weight, reset=not fitted)
        if data is not None:
            return data
        if fitted:
            return self._open(X, None, sample_weight)
        return row_blocks(X, None, sample_weight, on_invalid=self.on_invalid)

    def _require_labels(self, y: Any) -> None:
        """Check that data out of core have labels, as scikit-learn does in memory."""
        if y is None:
            raise require_y(self)

    def _coreset_of(
        self,
        rows: Rows,
        X: Any,
        *,
        size: int | Literal["auto"],
        method: Sensitivity[Any],
        seed: int,
        n_clusters: int | None = None,
    ) -> Coreset:
        """Build the coreset of rows, and set what is known of the features.

        Names of features out of core are those of `X`, from which the rows were opened. The
        coreset remembers `n_clusters` where the construction does not say for how many it is.
        """
        if self._given is not None and isinstance(rows, InMemoryData):
            return self._coreset_given(self._given, rows)
        labelled = rows.y is not None if isinstance(rows, InMemoryData) else rows.has_labels
        if method.needs_labels and not labelled:
            raise InvalidInputError(
                f"method {method.name!r} needs labels, which {type(self).__name__} does not use; "
                f'pass another one, for example "lightweight".'
            )
        if size == "auto" and n_clusters is None and method.objective.n_parts is None:
            raise InvalidInputError(
                f'size="auto" compares costs of solutions, and method {method.name!r} does not say '
                f"of how many centers; pass a number of rows, or {_other_method(self)}."
            )
        if n_clusters is not None and not takes_parts(method, n_clusters):
            n_clusters = None
        blocks = (
            row_blocks(rows.X, rows.y, rows.sample_weight)
            if isinstance(rows, InMemoryData)
            else rows
        )
        with warnings.catch_warnings():
            # To users of an estimator it is no surprise that all of few rows are taken.
            all_rows = r"size=.* is not below"
            warnings.filterwarnings("ignore", all_rows, CoresetWarning)
            # Classifiers say it themselves, by the names of the classes.
            warnings.filterwarnings("ignore", r"the coreset has no row of", CoresetWarning)
            coreset = self._built(
                blocks,
                size=size,
                method=method,
                n_clusters=n_clusters,
                random_state=seed,
                sampling=self.sampling,
                passes=self.passes,
                normalize=True,
            )
        if not isinstance(rows, InMemoryData):
            self._set_features(X, rows.schema.n_features, rows.columns, rows.cube)
        elif self._column_names is not None:  # lost where scikit-learn made an array
            record = {**coreset.provenance, "columns": self._column_names}
            coreset = replace(coreset, provenance=record)
        if isinstance(rows, InMemoryData) and rows.numbers is not None:
            record = {**coreset.provenance, "n_dropped": rows.n_given - len(rows.numbers)}
            coreset = replace(coreset.renumbered(rows.numbers_of), provenance=record)
        return coreset

    def _built(self, blocks: RowBlocks, **options: Any) -> Coreset:
        """Build the coreset; to be overridden by models that take more from the same reads."""
        coreset: Coreset = build(blocks, **options)
        return coreset

    def _coreset_given(self, coreset: Coreset, rows: InMemoryData) -> Coreset:
        """Return a coreset that is fitted on as it is, with labels and weights after checks."""
        record = coreset.provenance
        labels = coreset.labels if rows.y is None else rows.y
        known = {"m": len(coreset), "n": len(coreset), **record}
        if not np.array_equal(rows.weights, coreset.weights):  # the classes got other factors
            known.pop("total_weight", None)
        return replace(coreset, weights=rows.weights, labels=labels, provenance=known)

    def _set_features_given(self, coreset: Coreset) -> None:
        """Set the attributes of the features of a coreset, with what it knows of its cube."""
        record, d = coreset.provenance, coreset.n_features
        self._set_features(None, d, record.get("columns"), Cube.from_json(record.get("cube"), d))

    def audit(self, X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Any:
        """Compare costs on `coreset_` with those on all rows, in one read.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            What the estimator was fitted on.
        y : array-like of shape (n,), or str, optional
            Its labels, where there are any.
        sample_weight : array-like of shape (n,), or str, optional
        **options
            As in `daskcoreset.audit`, which does the work.

        Returns
        -------
        Audit
            Costs, the largest relative difference, and intervals for any other solution.

        Raises
        ------
        InvalidInputError
            As `daskcoreset.audit`.

        Examples
        --------
        >>> from daskcoreset.estimators import CoresetKMeans
        >>> X = np.random.default_rng(0).normal(size=(20_000, 3))
        >>> model = CoresetKMeans(5, size=1000, random_state=0).fit(X)
        >>> model.audit(X, random_state=0).distortion < 0.2
        True
        """
        check_is_fitted(self)
        check_is_fitted(self, "coreset_")
        known: dict[str, Any] = {"on_invalid": self.on_invalid}
        if not {"n_clusters", "objective"} & options.keys():
            known["objective"] = self._judged_by()
        return self.coreset_.audit(
            self._as_fitted(X), y, **{"sample_weight": sample_weight, **known, **options}
        )

    def _judged_by(self) -> Objective[Any] | None:
        """Return the cost that audits compare; None for that of the construction."""
        return None

    def _as_fitted(self, X: Any) -> Any:
        """Return a cube with the dimensions that were features in the fit, else X."""
        return X if self._cube is None else self._cube.asked(X)

    def _set_features(
        self, X: Any, n_features: int, columns: Sequence[str] | None, cube: Cube | None = None
    ) -> None:
        """Set the attributes of the features of data out of core."""
        self.n_features_in_ = n_features
        self._cube = None if cube is None else cube.without_rows()
        # Like scikit-learn: numbers that stand above columns are no names.
        headers = getattr(X, "column_names", getattr(X, "columns", None))  # pyarrow, pandas
        named = headers is None or all(isinstance(name, str) for name in headers)
        if columns is not None and named:
            self.feature_names_in_ = np.array(columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_  # of an earlier fit

    def _apply(
        self,
        X: Any,
        function: Callable[[Points], Any],
        dtype: Any = None,
        columns: int | None = None,
        *,
        in_memory: Callable[[Points], Any] | None = None,
        predicts: bool = False,
        called: tuple[str, str] = ("prediction", "output"),
        classes: AnyArray | None = None,
    ) -> Any:
        """Apply a fitted method to every row: at once in memory and in memory maps, else lazily.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
        function : callable
            ``function(points)``, picklable, gives a value for every row, or the `InvalidRow` of
            one of them.
        dtype : dtype, optional
            Of the values; without it, one row of the coreset shows it and `columns`.
        columns : int or None, default=None
            Of the values; None for a vector.
        in_memory : callable, optional
            What is called in place of `function` for data in memory.
        predicts : bool, default=False
            Whether the answer for a data frame is a series with its index and partitions.
        called : (str, str), default=("prediction", "output")
            Names of the values, and of their second dimension, in answers that have labels.
        classes : ndarray, optional
            What stands in that dimension, which is called "class" then.
        """
        given, X = X, rows_for(self, X)
        if is_in_memory(X):
            with nullcontext() if given is X else of_known_names():
                data = self._validate_in_memory(X, None, None, reset=False)
            values = (in_memory or function)(data.X)  # type: ignore[union-attr] # it is in memory
            refuse(values if isinstance(values, InvalidRow) else None)
            series = predicts and is_frame(X)
            return series_in_memory(X, values, called[0]) if series else values
        blocks = self._open(X)
        if dtype is None:
            example = function(self.coreset_.points[:1].astype(blocks.schema.dtype))
            dtype, columns = example.dtype, example.shape[1] if example.ndim == 2 else None
            nothing = example[:0]
        else:
            nothing = np.empty((0,) if columns is None else (0, columns), dtype)
        work = partial(_apply_to_block, function, nothing)
        if predicts and is_frame(X):
            return lazy_series(with_vectors(X), blocks, work, dtype, called[0])
        result = map_rows(blocks, work, dtype=dtype, columns=columns)
        if blocks.cube is not None:
            called = called if classes is None else (called[0], "class")
            made = blocks.cube.labelled(result, *called, classes)
            # Of a single point, whose row was added.
            added = [dim for dim in blocks.cube.dims if dim not in ReadOptions.of(X)[0].dims]
            return made.isel(dict.fromkeys(added, 0), drop=True)
        if isinstance(X, np.memmap):  # an ndarray, for which an ndarray is expected
            return compute_all(result)[0]
        chunks = getattr(X, "chunks", None) if hasattr(X, "__dask_graph__") else None
        if blocks.sizes is not None and chunks:
            # Chunks that were grouped or split for the work are none of the user's business.
            result = result.rechunk({0: chunks[0]}, method="tasks")
        return result

    def _delegate(
        self, X: Any, method: str, name: str = "prediction", *, by_class: bool = False
    ) -> Any:
        """Apply a method of the inner estimator, which is fitted on the coreset, to every row."""
        check_is_fitted(self, "estimator_")
        function = partial(apply_method, self.estimator_, method)
        called, predicts = (name, "output"), method == "predict"
        classes = getattr(self, "classes_", None) if by_class else None
        return self._apply(X, function, predicts=predicts, called=called, classes=classes)

    def _rows_to_xarray(self, attribute: str, dim: str) -> Any:
        """Return rows that were fitted to a cube as a Dataset, with the units of the features."""
        check_is_fitted(self)
        if self._cube is None:
            raise InvalidInputError(
                f"the model was fitted on rows, whose columns have no units; fit it on an xarray "
                f"object with sample_dims, or take {attribute}."
            )
        return dataset_of(self._cube.features, getattr(self, attribute), dim)

    def _accuracy(self, fitted: Any, X: Any, y: Any, sample_weight: Any) -> float:
        """Weighted share of the rows whose label `fitted` predicts, in one read."""
        if y is None:
            raise InvalidInputError("y is missing; pass the labels that the score compares with.")
        data = self._validate_in_memory(X, y, sample_weight, reset=False)
        if data is None:
            return accuracy(fitted, self._open(X, y, sample_weight))
        predicted = fitted.predict(data.X)
        with refuse_as("y"):
            return float(accuracy_score(data.y, predicted, sample_weight=data.sample_weight))

    def _open(self, X: Any, y: Any = None, sample_weight: Any = None) -> RowBlocks:
        """Open data out of core, and check its columns against those of the fit."""
        return self._checked(self._known_blocks(X, y, sample_weight))

    def _open_more(self, X: Any, y: Any = None, sample_weight: Any = None) -> RowBlocks:
        """Open further data to be fitted to: rows are dropped where `on_invalid` says so."""
        opened = self._known_blocks(X, y, sample_weight, on_invalid=self.on_invalid)
        return self._checked(opened)

    def _known_blocks(self, X: Any, *beside: Any, **options: Any) -> RowBlocks:
        """Open data that are said to have the columns of the fit."""
        known = self._column_names
        return known_blocks(known, "the fit", self._as_fitted(X), *beside, **options)

    @property
    def _column_names(self) -> list[str] | None:
        """Names of the columns of the fit, where they have any."""
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    def _checked(self, blocks: RowBlocks) -> RowBlocks:
        if blocks.cube is None:
            self._check_names(blocks.columns, blocks.selection)
        n_features, expected = blocks.schema.n_features, self.n_features_in_
        name = type(self).__name__
        if n_features != expected:
            raise InvalidInputError(
                f"X has {n_features} features, but {name} is expecting {expected} features as "
                f"input; pass the columns it was fitted on."
            )
        self._check_names(blocks.columns)
        return blocks

    def _check_names(self, columns: Sequence[str] | None, selection: str | None = None) -> None:
        """Check names of columns, where there are any, against those of the fit.

        `selection` is how columns are selected, see `how_to_select`.
        """
        fitted = getattr(self, "feature_names_in_", None)
        if fitted is None or columns is None or list(fitted) == [*columns]:
            return
        problem = how_to_select(columns, fitted, "the fit", selection)
        if problem is None:
            found, expected = names_apart(columns, fitted)
            problem = (
                f"X has the columns {found}, and {type(self).__name__} was fitted on {expected}; "
                f"select these, in this order."
            )
        raise InvalidInputError(
            f"The feature names should match those that were passed during fit: {problem}"
        )

    @staticmethod
    def _refuse_frames(estimator: Any, X: Any) -> None:
        """Raise an error where a lazy result would have to be a data frame in memory."""
        if is_in_memory(X):
            return
        setting = getattr(estimator, "_sklearn_output_config", {}).get("transform")
        container = setting or get_config()["transform_output"]
        if container != "default":
            raise InvalidInputError(
                f"set_output(transform={container!r}) makes a frame in memory, but X is out of "
                f'core; call set_output(transform="default") and get a Dask array.'
            )


class UnlabelledModel(CoresetModel):
    """Base of the estimators without labels: they differ in how they solve on the coreset."""

    random_state: RandomState

    @abstractmethod
    def _construction(self, rows: Rows) -> tuple[Sensitivity[Any], int, int]:
        """Return construction, size and clusters, after the checks that need no coreset."""

    @abstractmethod
    def _solve(self, coreset: Coreset, seed: int) -> None:
        """Solve on the coreset."""

    def _evaluate(self, rows: Rows, given: tuple[Any, Any]) -> None:
        """Set the attributes that need all rows, or what was given: X and weights."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Build the coreset, and solve on it.

        Parameters
        ----------
        X : array-like of shape (n, d), path, Coreset, Portfolio, CoresetTree or TreeWindow
            Any input of `daskcoreset.build`; or a coreset, such as a member of a
            `daskcoreset.Portfolio`, which is fitted on as it is, with its weights. What is said of
            all rows, such as costs and labels, is of the rows of the coreset then. A portfolio
            stands for its only member, or the only one of the estimator's `method`; a
            `CoresetTree`, or a window of one such as ``tree[-7:]``, for its coreset.
        y : object
            Ignored.
        sample_weight : array-like of shape (n,), or str, optional
            Weights of the rows; a string where `daskcoreset.build` takes names.

        Returns
        -------
        estimator
            The estimator itself.

        Raises
        ------
        InvalidInputError, ValueError, TypeError
            If an argument cannot be used, or there are fewer rows than clusters, or fewer distinct
            rows than components.
        """
        del y
        self._validate_params()
        rows = self._open_rows(X, sample_weight)
        method, size, n_clusters = self._construction(rows)
        seed = resolve_seed(self.random_state)
        coreset = self._coreset_of(
            rows, X, size=size, method=method, seed=seed, n_clusters=n_clusters
        )
        self._solve(coreset, solver_seed(seed))
        self.coreset_ = coreset
        self._evaluate(rows, (X, sample_weight))
        return self
