"""What an estimator with centers answers: nearest centers, distances, and their cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from daskcoreset.estimators.base import CoresetModel, is_held
from daskcoreset.solvers.nearest import Distances, Labels, nearest, weighted_cost
from daskcoreset.metrics.metrics import kmeans_cost

if TYPE_CHECKING:
    from daskcoreset.core.typing import AnyArray, FloatArray, Points

__all__ = ["CentersModel"]


class CentersModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, CoresetModel):  # type: ignore[misc] # scikit-learn has no annotations
    """Answers by the centers that `fit` of a subclass has found.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (k, d), float64
    """

    cluster_centers_: FloatArray
    _labels: AnyArray | None
    _inertia: float | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def labels_(self) -> AnyArray:
        """Cluster of every row, of data in memory."""
        check_is_fitted(self)
        if self._labels is None:
            raise AttributeError(
                "labels_ is there only for data in memory; call predict(X), which is lazy out of "
                "core."
            )
        return self._labels

    @property
    def inertia_(self) -> float:
        """Cost of the centers over all rows."""
        check_is_fitted(self)
        if self._inertia is None:
            raise AttributeError(
                "inertia_ needs one more read of data out of core; set compute_inertia=True, call "
                "-score(X), or take the coreset's estimate, coreset_inertia_."
            )
        return self._inertia

    def predict(self, X: Any) -> Any:
        """Return the number of the nearest center of every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,), int32
            Lazy where X is out of core.
        """
        check_is_fitted(self)
        labels = Labels(self.cluster_centers_)
        return self._map(
            X, labels, lambda rows: labels.of(rows, threads=True), lambda _: (np.int32, None)
        )

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and return the cluster of every row; lazily where X is out of core."""
        self.fit(X, y, sample_weight)
        return self.predict(X) if self._labels is None else self._labels

    def transform(self, X: Any) -> Any:
        """Distances of every row to all centers.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n, k), of the dtype of X
            Euclidean, not squared. Lazy where X is out of core.
        """
        check_is_fitted(self)
        distances = Distances(self.cluster_centers_)
        if not is_held(X):
            self._refuse_frames(self)
        columns = self._n_features_out
        return self._map(
            X,
            distances,
            lambda rows: distances.of(rows, threads=True),
            lambda dtype: (dtype, columns),
        )

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the weighted sum of squared distances of all rows to their centers.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            Read once where it is out of core.
        y : object
            Ignored.
        sample_weight : array-like of shape (n,), or str, optional

        Returns
        -------
        float
        """
        del y
        check_is_fitted(self)
        held = self._hold(X, None, sample_weight, reset=False)
        if held is not None:
            return -self._cost(held.X, held.sample_weight)
        self._open(X, None, sample_weight)  # for its checks
        return -float(kmeans_cost(X, self.cluster_centers_, sample_weight))

    def _cost(self, points: Points, weights: FloatArray | None) -> float:
        distances = nearest(points, self.cluster_centers_, threads=True)[1]
        return weighted_cost(distances, weights)

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)
