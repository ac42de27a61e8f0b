"""What a Bregman clustering answers: nearest centers, divergences, responsibilities, costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from daskcoreset.core.blocks import Block, Problem
from daskcoreset.solvers.divergences import Divergence, domain_problem, resolve_divergence
from daskcoreset.core.tiles import (tiles)
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.estimators.base import CoresetModel, Held, is_held
from daskcoreset.estimators.sums import weighted_sum
from daskcoreset.solvers.bregman_soft import SoftClustering

if TYPE_CHECKING:
    from daskcoreset.solvers.bregman import HardClustering
    from daskcoreset.core.typing import AnyArray, FloatArray, Points

__all__ = ["Answer", "DivergenceModel", "outside"]


def outside(divergence: Divergence, points: Points) -> None:
    """Raise where a row in memory lies outside the domain.

    Raises
    ------
    InvalidInputError
        For the first such row.
    """
    problem = divergence.problem(points)
    if problem is not None:
        raise problem.error(0)


@dataclass(frozen=True, eq=False)
class Answer:
    """Answers of a clustering for the rows of a block.

    Attributes
    ----------
    solution : HardClustering or SoftClustering
    what : {"labels", "divergences", "responsibilities", "costs"}
    """

    solution: HardClustering | SoftClustering
    what: Literal["labels", "divergences", "responsibilities", "costs"]

    def __call__(self, block: Block) -> AnyArray:
        """Return them for a block out of core, whose place in the data is not known here."""
        problem = self.solution.divergence.problem(block.points)
        if problem is not None:
            raise Problem(problem.message).error(0)
        return self.of(block.points)

    def of(self, points: Points) -> AnyArray:
        """Return them for rows inside the domain."""
        if self.what == "labels":
            return self.solution.labels(points).astype(np.int32)
        if self.what == "divergences":
            return self._divergences(points)
        return getattr(self.solution, self.what)(points)  # type: ignore[no-any-return]

    def _divergences(self, points: Points) -> AnyArray:
        centers = self.solution.centers
        found = np.empty((points.shape[0], len(centers)), dtype=points.dtype)
        for rows in tiles(points.shape[0], max(centers.shape)):
            found[rows] = self.solution.divergence.divergence(points[rows], centers)
        return found


@dataclass(frozen=True, eq=False)
class _Check:
    divergence: Divergence

    def __call__(self, block: Block) -> Problem | None:
        return domain_problem(self.divergence, block)


def _is_soft(model: Any) -> bool:
    if not model.soft:
        raise AttributeError("predict_proba is there only with soft=True; set it, or use predict.")
    return True


class DivergenceModel(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc] # scikit-learn has no annotations
    TransformerMixin,  # type: ignore[misc]
    ClusterMixin,  # type: ignore[misc]
    CoresetModel,
):
    """Answers by the centers that `fit` of a subclass has found.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (k, d), float64
    divergence_ : Divergence
    """

    divergence: Any
    soft: bool
    cluster_centers_: FloatArray
    divergence_: Divergence
    _solution: HardClustering | SoftClustering
    _labels: AnyArray | None
    _inertia: float | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        try:
            divergence = resolve_divergence(self.divergence)
        except (InvalidInputError, InvalidTypeError):  # which fit reports
            return tags
        negative, zero = divergence.valid(np.array([-1.0, 0.0]))
        tags.input_tags.positive_only = not negative
        # With predict_proba scikit-learn's check of sparse input takes a model for a classifier.
        tags.input_tags.sparse = bool(zero) and not self.soft
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
        """Cost of the clustering over all rows."""
        check_is_fitted(self)
        if self._inertia is None:
            raise AttributeError(
                "inertia_ needs one more read of data out of core; set compute_inertia=True, call "
                "-score(X), or take the coreset's estimate, coreset_inertia_."
            )
        return self._inertia

    @property
    def weights_(self) -> FloatArray:
        """Weights of the components, of a soft clustering."""
        check_is_fitted(self)
        if isinstance(self._solution, SoftClustering):
            return self._solution.mixing
        raise AttributeError("weights_ is there only with soft=True; set it before fit.")

    def _ask(
        self,
        X: Any,
        what: Literal["labels", "divergences", "responsibilities"],
        dtype: Any = None,
    ) -> Any:
        answer = Answer(self._solution, what)

        def here(points: Points) -> AnyArray:
            outside(self.divergence_, points)
            return answer.of(points)

        columns = None if what == "labels" else len(self.cluster_centers_)
        return self._map(
            X, answer, here, lambda found: (found if dtype is None else dtype, columns)
        )

    def predict(self, X: Any) -> Any:
        """Return the number of the nearest center of every row, or of its likeliest component.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,), int32
            Lazy where X is out of core.

        Raises
        ------
        InvalidInputError
            If a row lies outside the domain of the divergence.
        """
        check_is_fitted(self)
        return self._ask(X, "labels", np.int32)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and return the cluster of every row; lazily where X is out of core."""
        self.fit(X, y, sample_weight)
        return self.predict(X) if self._labels is None else self._labels

    @available_if(_is_soft)  # type: ignore[untyped-decorator] # of scikit-learn
    def predict_proba(self, X: Any) -> Any:
        """Probability of every component for every row, with ``soft=True``.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n, k), float64
            Lazy where X is out of core.
        """
        check_is_fitted(self)
        return self._ask(X, "responsibilities", np.float64)

    def transform(self, X: Any) -> Any:
        """Divergences of every row to all centers.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n, k), of the dtype of X
            Lazy where X is out of core.
        """
        check_is_fitted(self)
        if not is_held(X):
            self._refuse_frames(self)
        return self._ask(X, "divergences")

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        r"""Minus the weighted cost of all rows, as `inertia_` defines it.

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
        return -(self._read_cost(X, sample_weight) if held is None else self._cost(held))

    def _cost(self, held: Held) -> float:
        """Cost of rows in memory."""
        points, u = held.X, held.sample_weight
        u = np.ones(points.shape[0]) if u is None else u
        problem = domain_problem(self.divergence_, Block(points, u))
        if problem is not None:
            raise problem.error(0)
        counted = np.flatnonzero(u > 0)
        return float(u[counted] @ self._solution.costs(points[counted]))

    def _read_cost(self, X: Any, sample_weight: Any) -> float:
        """Cost of rows out of core."""
        blocks = self._open(X, None, sample_weight)
        answer, check = Answer(self._solution, "costs"), _Check(self.divergence_)
        return weighted_sum(blocks, answer, check)[1]

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)
