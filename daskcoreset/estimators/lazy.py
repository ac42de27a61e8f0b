"""Fitted models on any input: at once in memory, else by Dask, with the labels of the input."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import get_tags
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from daskcoreset.constructions.tree.store import CoresetTree
from daskcoreset.constructions.tree.windows import TreeWindow
from daskcoreset.core.block import Block, BlockSchema, validate_block
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.invalid import InvalidRow, refuse
from daskcoreset.core.portfolio import Portfolio
from daskcoreset.core.typing import AnyArray, FloatArray, Points
from daskcoreset.core.validation import a_type, columns_error
from daskcoreset.errors import InvalidInputError
from daskcoreset.estimators.checks import (
    CheckedParameters,
    InMemoryData,
    check_n_features,
    frame_names,
    is_frame,
    is_in_memory,
    is_polars,
    refuse_as,
    validate_rows,
)
from daskcoreset.estimators.scoring import accuracy, apply_to_block, r_squared, weighted_values
from daskcoreset.execution.engine import map_rows
from daskcoreset.execution.timeout import compute_all
from daskcoreset.inputs.blocks import RowBlocks, row_blocks
from daskcoreset.inputs.cubes import Cube
from daskcoreset.inputs.dataframes import as_frame, partition_to_numpy
from daskcoreset.inputs.open import warn_of_names
from daskcoreset.inputs.options import ReadOptions, Rows as OpenedRows

# What may stand in the place of X where a coreset may.
STAND_FOR_CORESETS = (Coreset, Portfolio, CoresetTree, TreeWindow)


def coreset_for(model: Any, X: Any) -> Any:
    """Return the coreset of a tree or window, the member of a portfolio for a model, or X.

    Raises
    ------
    InvalidInputError
        If several members of a portfolio, or none of several, have the method of the model.
    """
    if isinstance(X, (CoresetTree, TreeWindow)):
        return X.coreset()
    if not isinstance(X, Portfolio):
        return X
    method = getattr(model, "method", None)
    name = method if isinstance(method, str) else getattr(method, "name", None)
    fitting = [key for key, member in X.items() if member.provenance.get("method") == name]
    fitting = fitting or list(X)
    if len(fitting) > 1:
        raise InvalidInputError(
            f"X is a Portfolio, and it is ambiguous which of {', '.join(map(repr, fitting))} "
            f"{type(model).__name__} should use",
            argument="X",
            remedy=f"pass one of them, such as portfolio[{fitting[0]!r}]",
        )
    return X[fitting[0]]


def select_features(X: Any, beside: Sequence[Any] = ()) -> Any:
    """Return `Rows` of a data frame in memory as the columns that were asked for, or X."""
    data, options = ReadOptions.of(X)
    warn_of_names(options.columns, beside)
    is_table = hasattr(type(data), "columns") and type(data).__name__ != "LazyFrame"
    if X is data or not is_table or options.storage_options is not None or options.has_dims:
        return X
    frame = as_frame(data, options.columns, beside)
    return OpenedRows(frame, replace(options, columns=None)) if options.unit_length else frame


def check_metric(model: Any, coreset: Coreset) -> None:
    """Check that a coreset has the metric of a model, by which rows to predict are read."""
    metric = getattr(model, "metric", "euclidean")
    if coreset.metric != metric:
        raise InvalidInputError(
            f"X is a coreset for the metric {coreset.metric!r}, but {type(model).__name__} uses "
            f"{metric!r}",
            argument="X",
            remedy=f"build the coreset of open_rows(X, unit_length={metric == 'cosine'})",
        )


class LazyModel(CheckedParameters, BaseEstimator):  # type: ignore[misc] # scikit-learn has no annotations
    """Base of the estimators, which apply a fitted model to rows of any input.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), object
        If the columns of X have names.
    """

    n_features_in_: int
    feature_names_in_: AnyArray
    on_invalid: Any = None
    # Of the xarray object with dimensions that the model was fitted on.
    _cube: Cube | None = None
    # Why `fit` takes no coreset in place of X, and what to do; None if it does.
    _no_coreset: ClassVar[str | None] = None

    def _ready(self) -> Any:
        """Return the model, after a check that it is fitted."""
        check_is_fitted(self)
        return self

    def _validate_in_memory(
        self, X: Any, y: Any, sample_weight: Any, **checks: Any
    ) -> InMemoryData | None:
        """Check data in memory as scikit-learn does, or a coreset. Return None for other data.

        Parameters
        ----------
        X, y, sample_weight
            Data. A coreset, portfolio, tree or window is passed as X alone.
        **checks
            As in `validate_rows`.
        """
        fits = checks.get("reset", True) or checks.get("fits")
        if fits and self._no_coreset is not None and isinstance(X, STAND_FOR_CORESETS):
            name = type(self).__name__
            raise InvalidInputError(f"X is {a_type(X)}, and {name} {self._no_coreset}")
        X = coreset_for(self, X)
        if isinstance(X, Coreset):
            return self._validate_coreset(X, y, sample_weight, **checks)
        if isinstance(X, OpenedRows) and is_in_memory(X.source):
            X = select_features(X, (y, sample_weight))
        if not is_in_memory(X, y, sample_weight):
            return None
        X = as_frame(X)
        if checks.get("reset", True):
            self._cube = None
        else:
            self._check_names(frame_names(X), selects=True)
        return validate_rows(self, X, y, sample_weight, **checks)

    def _validate_coreset(
        self, coreset: Coreset, y: Any, sample_weight: Any, **checks: Any
    ) -> InMemoryData:
        """Check a coreset that was passed as X, and take its names, labels and weights."""
        if y is not None or sample_weight is not None:
            raise InvalidInputError(
                "X is a coreset, which already has labels and weights",
                argument="X",
                remedy="leave out y and sample_weight",
            )
        check_metric(self, coreset)
        record, reset = coreset.provenance, checks.get("reset", True)
        if not reset:
            self._check_names(record.get("columns"))
        labels = coreset.labels if get_tags(self).target_tags.required else None
        data = validate_rows(
            self, coreset.points, labels, coreset.weights, coreset=coreset, **checks
        )
        if reset:
            cube = Cube.from_json(record.get("cube"), coreset.n_features)
            self._set_features(None, coreset.n_features, record.get("columns"), cube)
        return data

    def _as_fitted(self, X: Any) -> Any:
        """Return a cube with the dimensions that were features in the fit, else X."""
        return X if self._cube is None else self._cube.like_fit(X)

    def _set_features(
        self, X: Any, n_features: int, columns: Sequence[str] | None, cube: Cube | None = None
    ) -> None:
        """Set the attributes of the features of data out of core."""
        self.n_features_in_ = n_features
        self._cube = None if cube is None else cube.without_rows()
        X = ReadOptions.of(X)[0]
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
            one of them. One row is evaluated to find the type of the values.
        in_memory : callable, optional
            Called in place of `function` for data in memory.
        predicts : bool, default=False
            Whether a data frame gives a series with its index and partitions.
        called : (str, str), default=("prediction", "output")
            Names of the values, and of their second dimension, in labeled results.
        classes : ndarray, optional
            Labels of the second dimension, which is then called "class".
        """
        given, X = ReadOptions.of(X)[0], select_features(X)
        data = self._validate_in_memory(X, None, None, reset=False)
        if data is not None:
            values = (in_memory or function)(data.X)
            refuse(values if isinstance(values, InvalidRow) else None)
            series = predicts and is_frame(given)
            return series_in_memory(given, values, called[0]) if series else values
        blocks = self._open(X)
        example = function(self._example().astype(blocks.schema.dtype))
        work = partial(apply_to_block, function, example[:0])
        if predicts and is_frame(X):
            return lazy_series(as_frame(X), blocks, work, example.dtype, called[0])
        columns = example.shape[1] if example.ndim == 2 else None
        result = map_rows(blocks, work, dtype=example.dtype, columns=columns)
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

    def _example(self) -> Any:
        """Return a row, in an array of shape (1, d), that shows what a method returns."""
        coreset = getattr(self, "coreset_", None)
        return np.ones((1, self.n_features_in_)) if coreset is None else coreset.points[:1]

    def _rows_to_xarray(self, attribute: str, dim: str) -> Any:
        """Return rows that were fitted to a cube as a Dataset, with the units of the features."""
        check_is_fitted(self)
        if self._cube is None:
            raise InvalidInputError(
                "the model was fitted on rows without dimensions and units",
                remedy=f"fit it on open_rows(X, sample_dims=...) of xarray, or use {attribute}",
            )
        return self._cube.dataset_of(getattr(self, attribute), dim)

    def _score(self, fitted: Any, X: Any, y: Any, sample_weight: Any) -> float:
        """Accuracy of a classifier, or R2 of a regressor, on all rows in one pass."""
        data = self._validate_in_memory(X, y, sample_weight, reset=False)
        if (y if data is None else data.y) is None:
            raise InvalidInputError("y is missing", argument="y", remedy="pass the true values")
        classifies = is_classifier(self)
        if data is None:
            score = accuracy if classifies else r_squared
            return score(fitted, self._open(X, y, sample_weight))
        measure, predicted = accuracy_score if classifies else r2_score, fitted.predict(data.X)
        with refuse_as("y"):
            return float(measure(data.y, predicted, sample_weight=data.sample_weight))

    def _open(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None
    ) -> RowBlocks:
        """Open data out of core, and check its columns against those of the fit."""
        blocks = row_blocks(self._as_fitted(X), y, sample_weight, groups=groups)
        self._check_names(blocks.columns, selects=blocks.cube is None)
        check_n_features(self, blocks.schema.n_features)
        return blocks.by(getattr(self, "metric", "euclidean"))

    @property
    def _column_names(self) -> list[str] | None:
        """Names of the columns of the fit, or None without names."""
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    def _check_names(self, columns: Sequence[str] | None, *, selects: bool = False) -> None:
        """Check names of columns, if there are any, against those of the fit."""
        fitted = getattr(self, "feature_names_in_", None)
        if fitted is None or columns is None or list(fitted) == [*columns]:
            return
        error = columns_error(columns, fitted, "the fit", selects=selects)
        raise InvalidInputError(
            f"The feature names should match those that were passed during fit: {error.problem}",
            argument="X",
            remedy=error.remedy,
        )

    @staticmethod
    def _refuse_frames(estimator: Any, X: Any) -> None:
        """Raise an error if a lazy result should be a data frame in memory."""
        if is_in_memory(X):
            return
        container = _get_output_config("transform", estimator)["dense"]
        if container != "default":
            raise InvalidInputError(
                f"set_output(transform={container!r}) needs a result in memory, but X is out of "
                "core",
                remedy='call set_output(transform="default") to get a Dask array',
            )


class RowAttributes(LazyModel):
    """Base of the estimators with `labels_` and `inertia_` of all rows."""

    # X and weights of the last fit, out of core, for attributes that read it when asked.
    _source: tuple[Any, Any] | None = None
    _labels: Any
    _inertia: Any
    # Name of a series of labels.
    _called: ClassVar[str] = "cluster"
    coreset_: Coreset

    def _evaluate(self, data: InMemoryData | None, given: tuple[Any, Any]) -> None:
        """Find the attributes of rows in memory, or remember where the others are."""
        self._source, self._labels, self._inertia = given, None, None
        if data is not None:
            self._source = None
            labels, self._inertia = self._labels_and_cost(data)
            self._labels = None if labels is None else data.as_given(labels)

    @abstractmethod
    def _labels_and_cost(self, data: InMemoryData) -> tuple[AnyArray | None, float | None]:
        """Cluster of every row, and their cost. None if the model has no clusters or no cost."""

    @abstractmethod
    def _row_costs(self) -> Callable[[Points], FloatArray | InvalidRow]:
        """Return the cost of rows as a function of points, as `weighted_sum` takes it."""

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and return the cluster of every row. The result is lazy if X is out of core."""
        self.fit(X, y, sample_weight)
        if self._labels is None:
            return self.predict(X)
        return series_in_memory(X, self._labels, self._called) if is_frame(X) else self._labels

    @property
    def labels_(self) -> Any:
        """Cluster of every row. It is lazy if X was out of core."""
        check_is_fitted(self)
        if self._labels is not None:
            return self._labels
        X, _, sample_weight = self._rows_of_fit("labels_", "predict(X)")
        if isinstance(sample_weight, str):  # perhaps a column of X, which is no feature
            data, options = ReadOptions.of(X)
            columns = options.columns or self._column_names
            X = OpenedRows(data, replace(options, columns=columns))
        return self.predict(X)

    @property
    def inertia_(self) -> Any:
        """Cost of the clustering over all rows. It is lazy if X was out of core."""
        check_is_fitted(self)
        if self._inertia is not None:
            return self._inertia
        costs = self._row_costs()
        blocks = self._open(*self._rows_of_fit("inertia_", "-score(X)"))
        return map_rows(blocks, partial(weighted_values, costs), dtype=np.float64).sum()

    def _rows_of_fit(self, name: str, remedy: str) -> tuple[Any, None, Any]:
        """Return X and weights of `fit`, out of core, for an attribute that is lazy."""
        if self._source is None:
            reason = "was fitted out of core in another process"
        elif self.coreset_.provenance["n_dropped"]:
            reason = "left out rows with NaN or infinity, which have no cluster"
            # Of a cube these cells are masked, and there is no need to leave them out.
            remedy += "" if self._cube is not None else " on the other rows"
        else:
            return self._source[0], None, self._source[1]
        raise AttributeError(f"{name} is not available: the model {reason}; call {remedy}.")

    def __getstate__(self) -> Any:
        # Data and graphs stay where they are: a saved model is as small as its centers and coreset.
        return {**super().__getstate__(), "_source": None}


def series_in_memory(frame: Any, values: Any, name: str) -> Any:
    """Return a value for every row of a data frame in memory as a series, with its index.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [1.0, 2.0]}, index=[5, 7])
    >>> series_in_memory(frame, np.array([0, 1]), "cluster").index.tolist()
    [5, 7]
    """
    if is_polars(frame):
        import polars as pl

        return pl.Series(name, values)
    import pandas as pd

    return pd.Series(values, index=frame.index, name=name)


def lazy_series(
    frame: Any, blocks: RowBlocks, function: Callable[[Block], Any], dtype: Any, name: str
) -> Any:
    """Define a value for every row of a Dask data frame as a series that is a column of it.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    blocks : RowBlocks
        Opened from `frame`.
    function : callable
        As `daskcoreset.execution.engine.map_rows` has it.
    dtype : dtype
    name : str

    Returns
    -------
    dask.dataframe.Series
        It has the partitions of `frame`, even if their divisions are unknown. Dask aligns two
        frames by partitions only if one is derived from the other.
    """
    from dask.dataframe.dispatch import make_meta

    meta = make_meta(frame)
    work = partial(_of_partition, schema=blocks.schema, declared=meta, function=function, name=name)
    meta = series_in_memory(meta, np.empty(0, dtype), name)
    return frame.map_partitions(work, meta=meta)


def _of_partition(
    frame: Any,
    schema: BlockSchema,
    declared: Any,
    function: Callable[[Block], Any],
    name: str,
) -> Any:
    rows = validate_block({"X": partition_to_numpy(frame, declared)}, schema)
    values = rows.problem or function(rows.valid_block)
    if isinstance(values, InvalidRow):
        where = "" if values.row is None else f" at the index {frame.index[values.row]}"
        raise values.error_at(where)
    return series_in_memory(frame, values, name)
