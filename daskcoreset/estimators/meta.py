"""Any estimator of scikit-learn on a coreset."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from sklearn.base import clone, is_classifier, is_clusterer, is_regressor
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    _check_feature_names_in,  # what get_feature_names_out of scikit-learn itself rests on
    check_is_fitted,
)

from daskcoreset.core.coreset import Coreset
from daskcoreset.core.invalid import refuse
from daskcoreset.core.labels import find_unusable_label
from daskcoreset.core.messages import warn_user
from daskcoreset.core.points import deduplicate
from daskcoreset.core.random import RandomState
from daskcoreset.core.typing import AnyArray
from daskcoreset.core.validation import a_type, is_int
from daskcoreset.errors import InvalidTypeError
from daskcoreset.estimators.base import (
    BUILD_CONSTRAINTS,
    Problem,
    SolvedModel,
    is_for_any_k,
    require_weighted_fit,
    resolve_for,
)
from daskcoreset.estimators.checks import InMemoryData
from daskcoreset.estimators.class_weight import weights_for
from daskcoreset.estimators.kmeans import squared_distances
from daskcoreset.estimators.lazy import LazyModel, RowAttributes
from daskcoreset.estimators.scoring import weighted_sum
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.objectives import (
    LeastSquaresCost,
    LinearCost,
    Objective,
)
from daskcoreset.sensitivities import Sensitivity
from daskcoreset.solvers.kmeans import nearest

# Up to which an inertia is the cost of its centers: solvers add up float32.
_SAME_COST = 1e-3

F = TypeVar("F", bound=Callable[..., Any])


def _where_inner_has(*names: str) -> Callable[[F], F]:
    """Make a method available if the inner estimator, fitted or not, has all of `names`."""

    def check(model: Any) -> bool:
        for name in names:
            getattr(model._inner(), name)  # noqa: SLF001 - its own error says why it has not
        return True

    return available_if(check)  # type: ignore[no-any-return]


def _of_inner(name: str, doc: str) -> Any:
    """Return an attribute of the fitted inner estimator, if that has it."""

    def get(model: Any) -> Any:
        return getattr(model._ready().estimator_, name)  # noqa: SLF001 - of an estimator of ours

    return property(get, doc=doc)


class InnerModel(LazyModel):
    """Base of the models that apply an inner estimator: they have its methods and attributes.

    Attributes
    ----------
    estimator_ : estimator object
        The inner estimator, fitted.
    """

    estimator: Any
    estimator_: Any

    def _inner(self) -> Any:
        """Return the inner estimator, fitted or not."""
        return getattr(self, "estimator_", self.estimator)

    def _delegate(
        self, X: Any, method: str, name: str = "prediction", *, by_class: bool = False
    ) -> Any:
        """Apply a method of the inner estimator, which is fitted on the coreset, to every row."""
        model = self._ready()
        function = getattr(model.estimator_, method)
        called, predicts = (name, "output"), method == "predict"
        classes = getattr(model, "classes_", None) if by_class else None
        return model._apply(X, function, predicts=predicts, called=called, classes=classes)  # noqa: SLF001

    def _fitted_inner(self, inner: Any, coreset: Coreset, labels: Any, least: int = 0) -> Any:
        """Fit an estimator on the distinct rows of a coreset, or on all if those are too few."""
        points, weights, kept = deduplicate(coreset.points, coreset.weights, labels)
        if len(weights) < least:
            points, weights, kept = coreset.points, coreset.weights, labels
        weights = weights_for(inner, coreset, kept, weights)
        return inner.fit(points, kept, sample_weight=weights)

    coef_ = _of_inner("coef_", "Coefficients of the inner estimator.")
    intercept_ = _of_inner("intercept_", "Its intercept.")

    @_where_inner_has("predict")
    def predict(self, X: Any) -> Any:
        """Predict for every row, as `estimator` does.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,)
            Lazy if X is out of core.
        """
        return self._delegate(X, "predict")


class InnerClassifier(InnerModel):
    """Base of the models whose inner estimator may be a classifier."""

    classes_ = _of_inner("classes_", "Classes that a classifier found in the coreset.")

    @_where_inner_has("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """Probability of every class, for every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n, n_classes)
            Lazy if X is out of core.
        """
        return self._delegate(X, "predict_proba", "probability", by_class=True)

    @_where_inner_has("predict_log_proba")
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithm of the probability of every class, for every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n, n_classes)
            Lazy if X is out of core.
        """
        return self._delegate(X, "predict_log_proba", "log_probability", by_class=True)

    @_where_inner_has("decision_function")
    def decision_function(self, X: Any) -> Any:
        """Signed distance of every row from the decision boundary.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,) or (n, n_classes)
            Lazy if X is out of core.
        """
        return self._delegate(X, "decision_function", "decision", by_class=True)


class _OnArrays:
    """A fitted model with column names that is called with arrays without names."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __getattr__(self, name: str) -> Any:
        if name == "model" or name.startswith("__"):  # while it is unpickled
            raise AttributeError(name)
        value = getattr(self.model, name)
        return partial(self._call, name) if name in _ON_ROWS else value

    def _call(self, name: str, points: Any, *more: Any, **options: Any) -> Any:
        import pandas as pd

        rows = pd.DataFrame(points, columns=self.model.feature_names_in_)
        return getattr(self.model, name)(rows, *more, **options)


_ON_ROWS = {
    "predict", "predict_proba", "predict_log_proba", "decision_function", "score_samples", "score",
    "transform",
}  # fmt: skip


class CoresetEstimator(RowAttributes, InnerClassifier, SolvedModel):
    """Fit any estimator that takes weights on a coreset, and apply it to all rows.

    Methods of `estimator`, such as ``predict``, ``predict_proba`` and ``transform``, are there if
    it has them. They return Dask arrays for data out of core. See :doc:`/guides/labels`.

    Parameters
    ----------
    estimator : estimator object
        A classifier, regressor, clusterer or transformer whose ``fit`` takes ``sample_weight``. In
        a pipeline, put `CoresetEstimator` around the last step. If it is a
        ``sklearn.frozen.FrozenEstimator``, the model in it is applied without `fit`.
    size : int, default=10_000
        Rows of the coreset.
    method : str or Sensitivity, default="lightweight"
        Method of the coreset, as in `daskcoreset.build`. "lightweight" keeps rows far from
        the mean, which solvers that square distances need. "uniform" serves most others.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the coreset, and of every ``random_state`` of `estimator` that is None.
    on_invalid : {"raise", "drop"} or None, default=None
        How to treat rows with NaN or infinity in `fit`: raise an error, or drop them. None raises.
        Dropped rows in memory get the label -1.

    Attributes
    ----------
    estimator_ : estimator object
        The clone of `estimator` that was fitted on the coreset.
    coreset_ : Coreset
        The coreset that it was fitted on, with the labels of its rows.
    labels_ : ndarray or dask.array.Array of shape (n,)
        Cluster of every row, if `estimator` is a clusterer with ``predict``. It is lazy if X was
        out of core, and a pickle leaves it out.
    inertia_ : float, or dask.array.Array of shape ()
        Sum of the weighted squared distances of all rows to the nearest center, if the score of
        `estimator_` is minus this sum. It is lazy if X was out of core.
    classes_, coef_, intercept_, n_iter_, cluster_centers_, components_, feature_importances_
        As in `estimator_`, if it has them.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), object
        If the columns of X have names.

    Warns
    -----
    CoresetWarning
        If no row of a class in memory is in the coreset.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = da.random.default_rng(0).normal(size=(50_000, 3), chunks=(25_000, 3))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = CoresetEstimator(LogisticRegression(), size=1000, random_state=0).fit(X, y)
    >>> model.predict(X)  # nothing is read yet
    dask.array<..., shape=(50000,), dtype=int64, chunksize=(25000,), chunktype=numpy.ndarray>
    >>> model.score(X, y) > 0.95
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods("fit")],
        **BUILD_CONSTRAINTS,
    }
    _called = "prediction"

    def __init__(
        self,
        estimator: Any,
        *,
        size: int = 10_000,
        method: str | Sensitivity[Any] = "lightweight",
        random_state: RandomState = None,
        on_invalid: Literal["raise", "drop"] | None = None,
    ) -> None:
        self.estimator = estimator
        self.size = size
        self.method = method
        self.random_state = random_state
        self.on_invalid = on_invalid

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), deepcopy(get_tags(self.estimator))
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "transformer_tags"):
            setattr(tags, name, getattr(inner, name))
        # A coreset keeps one label for a row, and no distances between rows.
        tags.target_tags = replace(inner.target_tags, multi_output=False, single_output=True)
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_label = False
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.positive_only = inner.input_tags.positive_only
        tags.non_deterministic = inner.non_deterministic
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_") or isinstance(self.estimator, FrozenEstimator)

    def _ready(self) -> CoresetEstimator:
        """Return the model after `fit`, or one of a model that was fitted before."""
        if hasattr(self, "estimator_") or not isinstance(self.estimator, FrozenEstimator):
            check_is_fitted(self)
            return self
        check_is_fitted(self.estimator)
        model, inner = copy(self), self.estimator.estimator
        model.n_features_in_ = inner.n_features_in_
        names = getattr(inner, "feature_names_in_", None)
        if names is not None:
            model.feature_names_in_ = names
        model.estimator_ = inner if names is None else _OnArrays(inner)
        return model

    def _judged_by(self) -> Objective[Any] | None:
        if not is_for_any_k(self.coreset_) or self.coreset_.labels is None:
            return None
        return LinearCost("logistic") if is_classifier(self) else LeastSquaresCost()

    def _check(self) -> None:
        super()._check()
        require_weighted_fit(
            self.estimator,
            "pass one that does, in a pipeline its last step, in a search what is searched",
        )

    def _construction(self, blocks: RowBlocks) -> tuple[Sensitivity[Any], int, int | None]:
        del blocks
        n_clusters = self._n_clusters()
        return resolve_for(self.method, n_clusters), self.size, n_clusters

    def _n_clusters(self) -> int | None:
        """Clusters that the inner estimator looks for."""
        parameters = self.estimator.get_params(deep=False) if is_clusterer(self) else {}
        n_clusters = parameters.get("n_clusters")
        return n_clusters if is_int(n_clusters) and n_clusters > 0 else None

    def _solve(self, problem: Problem) -> None:
        coreset = problem.coreset
        if coreset.labels is not None:
            refuse(find_unusable_label(coreset.labels, coreset.indices))
        inner = _seeded(clone(self.estimator), problem.seed)
        labels = problem.labels if self._wants_y() else None
        # Clusterers want as many rows as clusters, and count equal ones.
        least = self._n_clusters() or 0
        self.estimator_ = self._fitted_inner(inner, coreset, labels, least)

    def _labels_and_cost(self, data: InMemoryData) -> tuple[AnyArray | None, float | None]:
        inner = self.estimator_
        if not (is_clusterer(self) and hasattr(inner, "predict")):
            return None, None
        cost = None
        if _scores_distances(inner):
            cost = -float(inner.score(data.X, sample_weight=data.sample_weight))
        return inner.predict(data.X), cost

    n_iter_ = _of_inner("n_iter_", "Iterations of its solver.")
    cluster_centers_ = _of_inner("cluster_centers_", "Its centers.")
    components_ = _of_inner("components_", "Its components.")
    feature_importances_ = _of_inner("feature_importances_", "Its importances of the columns.")

    @_where_inner_has("score_samples")
    def score_samples(self, X: Any) -> Any:
        """Score of every row, such as its log-likelihood.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,)
            Lazy if X is out of core.
        """
        return self._delegate(X, "score_samples")

    def _rows_of_fit(self, name: str, remedy: str) -> tuple[Any, None, Any]:
        if not (is_clusterer(self) and hasattr(self.estimator_, "predict")):
            raise AttributeError(
                f"{name} exists only for a clusterer with predict; call predict(X), which is lazy "
                f"out of core, or use estimator_."
            )
        return super()._rows_of_fit(name, remedy)

    def _row_costs(self) -> Any:
        if not _scores_distances(self.estimator_):
            raise AttributeError(
                "inertia_ exists only if the score of estimator_ is minus the sum of the squared "
                "distances from its centers; use estimator_."
            )
        return partial(squared_distances, centers=self.cluster_centers_)

    def audit(self, X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Any:
        """Compare costs on `coreset_` with those on all rows, in one pass over the data.

        With labels, the costs are those of linear models. If `estimator` is not linear, this warns.
        """
        report = super().audit(X, y, sample_weight, **options)
        supervised = is_classifier(self) or is_regressor(self)
        if supervised and not ({"n_clusters", "objective"} & options.keys() or self._is_linear()):
            warn_user(
                f"the audit compares costs of linear models, but {type(self.estimator_).__name__} "
                f"is not linear, so the audit does not measure this model; compare score(X, y) on "
                f"held-out rows with the score of a model fitted to uniform rows."
            )
        return report

    def _is_linear(self) -> bool:
        """Whether the inner estimator has coefficients of the columns."""
        return np.shape(getattr(self.estimator_, "coef_", ()))[-1:] == (self.n_features_in_,)

    @_where_inner_has("transform")
    def transform(self, X: Any) -> Any:
        """Every row as `estimator` transforms it.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray, sparse matrix, data frame or dask.array.Array of shape (n, n_features_out)
            Lazy if X is out of core. A frame after `set_output`.
        """
        self._refuse_frames(self._ready().estimator_, X)
        result = self._delegate(X, "transform")
        if hasattr(result, "columns"):  # `estimator_` saw neither names nor index
            result.columns = list(self.get_feature_names_out())
            if hasattr(type(result), "iloc") and hasattr(type(X), "iloc"):
                result.index = X.index
        return result

    @_where_inner_has("transform")
    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and transform the same rows. The result is lazy if X is out of core."""
        return self.fit(X, y, sample_weight).transform(X)

    @_where_inner_has("fit_predict", "predict")
    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and predict for the same rows. The result is lazy if X is out of core."""
        return super().fit_predict(X, y, sample_weight)

    @_where_inner_has("score")
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the score of the predictions for all rows, in one pass over the data.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
        y : array-like of shape (n,), or str, optional
            True labels, for a classifier or regressor.
        sample_weight : array-like of shape (n,), or str, optional

        Returns
        -------
        float
            As ``score`` of `estimator` in memory. Out of core, the accuracy of a classifier, the
            coefficient of determination of a regressor, or minus the cost of k-means.

        Raises
        ------
        InvalidTypeError
            If X is out of core and `estimator` is of another kind.
        """
        model = self._ready()
        inner = model.estimator_
        data = model._validate_in_memory(X, y, sample_weight, reset=False)  # noqa: SLF001
        if data is not None:
            weights = {} if data.sample_weight is None else {"sample_weight": data.sample_weight}
            return float(inner.score(data.X, data.y, **weights))
        if is_classifier(self) or is_regressor(self):
            return model._score(inner, X, y, sample_weight)  # noqa: SLF001
        if is_clusterer(self) and _scores_distances(inner):
            costs = partial(squared_distances, centers=inner.cluster_centers_)
            return -weighted_sum(model._open(X, None, sample_weight), costs)[1]  # noqa: SLF001
        raise InvalidTypeError(
            f"X is out of core, but the score of {a_type(inner)} needs rows in memory",
            argument="X",
            remedy="pass rows in memory",
        )

    @_where_inner_has("get_feature_names_out")
    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Names of the columns that `transform` returns.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of the columns of X, if they had none in `fit`.

        Returns
        -------
        ndarray of shape (n_features_out,), object
        """
        model = self._ready()
        names = _check_feature_names_in(model, input_features)
        return model.estimator_.get_feature_names_out(names)  # type: ignore[no-any-return]

    @_where_inner_has("set_output")
    def set_output(self, *, transform: Any = None) -> Any:
        """Choose what `transform` returns for rows in memory.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
            None changes nothing.

        Returns
        -------
        CoresetEstimator
            The estimator itself.
        """
        for inner in (self.estimator, getattr(self, "estimator_", None)):
            if inner is not None:
                inner.set_output(transform=transform)
        return self


def _scores_distances(model: Any) -> bool:
    """Whether the score of a fitted clusterer is minus the sum of squared distances."""
    centers: Any = getattr(model, "cluster_centers_", None)
    if np.ndim(centers) != 2 or not hasattr(model, "score"):
        return False
    rows = np.asarray(centers) + 1.0
    return bool(np.isclose(-model.score(rows), nearest(rows, centers)[1].sum(), rtol=_SAME_COST))


def _seeded(estimator: Any, seed: int) -> Any:
    """Set every nested random_state that is None to a seed."""
    names = [
        name
        for name, value in sorted(estimator.get_params(deep=True).items())
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    ]
    seeds = np.random.SeedSequence(seed).generate_state(len(names))
    return estimator.set_params(**dict(zip(names, map(int, seeds), strict=True)))
