"""Methods of an inner estimator, applied to rows in memory or out of core."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from sklearn.base import is_classifier, is_regressor
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    _check_feature_names_in,  # what get_feature_names_out of scikit-learn itself rests on
    check_is_fitted,
)

from daskcoreset.core.errors import InvalidTypeError
from daskcoreset.estimators.base import CoresetModel, is_in_memory
from daskcoreset.estimators.scoring import accuracy, r_squared

if TYPE_CHECKING:
    import numpy as np

    from daskcoreset.core.blocks import Block
    from daskcoreset.core.typing import AnyArray

__all__ = ["Ask", "DelegatingModel"]


@dataclass(frozen=True, eq=False)
class Ask:
    """Asks a fitted estimator about the rows of a block."""

    estimator: Any
    method: str

    def __call__(self, block: Block) -> Any:
        """Return what the method says of the rows."""
        return getattr(self.estimator, self.method)(block.points)


F = TypeVar("F", bound=Callable[..., Any])


def _where_inner_has(*names: str) -> Callable[[F], F]:
    """Make a method available where the estimator, fitted where it is, has all of `names`."""

    def check(model: Any) -> bool:
        inner = getattr(model, "estimator_", model.estimator)
        for name in names:
            getattr(inner, name)  # its own error says why it has not
        return True

    return available_if(check)  # type: ignore[no-any-return]


class DelegatingModel(CoresetModel):
    """What `estimator_` can do, for every input; `fit` of a subclass makes it.

    Attributes
    ----------
    estimator_ : estimator object
        Fitted on the coreset.
    """

    estimator: Any
    estimator_: Any
    _labels: AnyArray | None

    @property
    def classes_(self) -> AnyArray:
        """Classes that a classifier found in the coreset."""
        check_is_fitted(self)
        return self.estimator_.classes_  # type: ignore[no-any-return]

    @property
    def labels_(self) -> AnyArray:
        """Cluster of every row, of a clusterer and data in memory."""
        check_is_fitted(self)
        if self._labels is None:
            raise AttributeError(
                "labels_ is there only for a clusterer with predict, and data in memory; call "
                "predict(X), which is lazy out of core, or see estimator_."
            )
        return self._labels

    def _ask(self, X: Any, method: str) -> Any:
        check_is_fitted(self)
        ask = getattr(self.estimator_, method)

        def shape(dtype: np.dtype[Any]) -> tuple[Any, int | None]:
            # One row of the coreset shows what the answers look like.
            answer = ask(self.coreset_.points[:1].astype(dtype))
            return answer.dtype, answer.shape[1] if answer.ndim == 2 else None

        return self._map(X, Ask(self.estimator_, method), ask, shape)

    @_where_inner_has("predict")
    def predict(self, X: Any) -> Any:
        """Predict for every row, as `estimator` does.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,)
            Lazy where X is out of core.
        """
        return self._ask(X, "predict")

    @_where_inner_has("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """Probability of every class, for every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n, n_classes), float64
            Lazy where X is out of core.
        """
        return self._ask(X, "predict_proba")

    @_where_inner_has("predict_log_proba")
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithm of the probability of every class, for every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n, n_classes), float64
            Lazy where X is out of core.
        """
        return self._ask(X, "predict_log_proba")

    @_where_inner_has("decision_function")
    def decision_function(self, X: Any) -> Any:
        """Signed distance of every row from the decision boundary.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,) or (n, n_classes), float64
            Lazy where X is out of core.
        """
        return self._ask(X, "decision_function")

    @_where_inner_has("score_samples")
    def score_samples(self, X: Any) -> Any:
        """Score of every row, such as its log-likelihood.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,), float64
            Lazy where X is out of core.
        """
        return self._ask(X, "score_samples")

    @_where_inner_has("transform")
    def transform(self, X: Any) -> Any:
        """Every row as `estimator` transforms it.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray, sparse matrix, data frame or dask.array.Array of shape (n, n_features_out)
            Lazy where X is out of core; a frame after `set_output`.
        """
        check_is_fitted(self)
        if not is_in_memory(X):
            self._refuse_frames(self.estimator_)
        found = self._ask(X, "transform")
        if hasattr(found, "columns"):  # `estimator_` saw neither names nor index
            found.columns = list(self.get_feature_names_out())
            if hasattr(type(found), "iloc") and hasattr(type(X), "iloc"):
                found.index = X.index
        return found

    @_where_inner_has("transform")
    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and transform the same rows; lazily where X is out of core."""
        return self.fit(X, y, sample_weight).transform(X)

    @_where_inner_has("fit_predict", "predict")
    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and predict for the same rows; lazily where X is out of core."""
        self.fit(X, y, sample_weight)
        return self.predict(X) if self._labels is None else self._labels

    @_where_inner_has("score")
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Score of the predictions for all rows, in one read.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
        y : array-like of shape (n,), or str, optional
            The truth, of a classifier or regressor.
        sample_weight : array-like of shape (n,), or str, optional

        Returns
        -------
        float
            As ``score`` of `estimator` in memory. Out of core, the accuracy of a classifier
            and the coefficient of determination of a regressor.

        Raises
        ------
        InvalidTypeError
            If X is out of core and `estimator` is neither: other scores do not add up.
        """
        check_is_fitted(self)
        if is_in_memory(X, y, sample_weight):
            held = self._hold(X, y, sample_weight, reset=False)
            assert held is not None  # noqa: S101 - it is in memory
            weights = {} if sample_weight is None else {"sample_weight": held.sample_weight}
            return float(self.estimator_.score(held.X, held.y, **weights))
        if is_classifier(self):
            return accuracy(self.estimator_, self._open(X, y, sample_weight))
        if is_regressor(self):
            return r_squared(self.estimator_, self._open(X, y, sample_weight))
        raise InvalidTypeError(
            f"X is out of core, where the score of a {type(self.estimator_).__name__} is not "
            f"known; pass rows in memory."
        )

    @_where_inner_has("get_feature_names_out")
    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Names of the columns that `transform` returns.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of the columns of X, where they had none in `fit`.

        Returns
        -------
        ndarray of shape (n_features_out,), object
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        return self.estimator_.get_feature_names_out(names)  # type: ignore[no-any-return]

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
