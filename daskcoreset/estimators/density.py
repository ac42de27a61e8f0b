"""What a fitted mixture answers: densities, responsibilities, criteria and samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from daskcoreset.estimators.base import CoresetModel
from daskcoreset.estimators.sums import weighted_sum
from daskcoreset.solvers.mixture.mixture_criteria import log_likelihood
from daskcoreset.solvers.mixture.mixture_density import assign, responsibilities, score_samples
from daskcoreset.solvers.mixture.model import sample

if TYPE_CHECKING:
    from daskcoreset.core.blocks import Block
    from daskcoreset.core.random import RandomState
    from daskcoreset.solvers.mixture.model import Mixture
    from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

__all__ = ["MixtureModel"]


@dataclass(frozen=True, eq=False)
class _Ask:
    """Asks a mixture about the rows of a block."""

    mixture: Mixture
    function: Callable[[Mixture, Any], AnyArray]

    def __call__(self, block: Block) -> AnyArray:
        return self.function(self.mixture, block.points)


class MixtureModel(DensityMixin, CoresetModel):  # type: ignore[misc] # scikit-learn has no annotations
    """Answers by the mixture that `fit` of a subclass has found."""

    random_state: RandomState
    _mixture: Mixture

    @property
    def _fitted(self) -> Mixture:
        if not hasattr(self, "_mixture"):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet; call fit first.")
        return self._mixture

    def _ask(self, X: Any, function: Any, dtype: Any, columns: int | None = None) -> Any:
        check_is_fitted(self)
        mixture = self._fitted
        return self._map(
            X,
            _Ask(mixture, function),
            lambda rows: function(mixture, rows),
            lambda _: (dtype, columns),
        )

    def predict(self, X: Any) -> Any:
        """Return the number of the most probable component of every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,), int64
            Lazy where X is out of core.
        """
        return self._ask(X, assign, np.int64)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and return the component of every row; lazily where X is out of core."""
        return self.fit(X, y, sample_weight).predict(X)

    def predict_proba(self, X: Any) -> Any:
        """Probability of every component, for every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n, k), float64
            Lazy where X is out of core.
        """
        check_is_fitted(self)
        return self._ask(X, responsibilities, np.float64, len(self._fitted.weights))

    def score_samples(self, X: Any) -> Any:
        """Log-density of every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,), float64
            Lazy where X is out of core.
        """
        return self._ask(X, score_samples, np.float64)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Weighted mean log-density of all rows; one read where X is out of core.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
        y : object
            Ignored.
        sample_weight : array-like of shape (n,), or str, optional

        Returns
        -------
        float
        """
        del y
        weight, total = self._likelihood(X, sample_weight)
        return total / weight

    def bic(self, X: Any, sample_weight: Any = None) -> float:
        """Bayesian information criterion over all rows; one read where X is out of core.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
        sample_weight : array-like of shape (n,), or str, optional
            The total weight stands where the number of rows stands without weights.

        Returns
        -------
        float
            The lower, the better.
        """
        weight, total = self._likelihood(X, sample_weight)
        return float(-2.0 * total + self._fitted.n_parameters * np.log(weight))

    def aic(self, X: Any, sample_weight: Any = None) -> float:
        """Akaike's information criterion over all rows; one read where X is out of core.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
        sample_weight : array-like of shape (n,), or str, optional

        Returns
        -------
        float
            The lower, the better.
        """
        _, total = self._likelihood(X, sample_weight)
        return -2.0 * total + 2.0 * self._fitted.n_parameters

    def sample(self, n_samples: int = 1) -> tuple[FloatArray, IndexArray]:
        """Draw rows from the mixture, seeded by `random_state`.

        Parameters
        ----------
        n_samples : int, default=1

        Returns
        -------
        X : ndarray of shape (n_samples, d), float64
            Ordered by component.
        labels : ndarray of shape (n_samples,), int64
        """
        check_is_fitted(self)
        return sample(self._fitted, n_samples, self.random_state)

    def _likelihood(self, X: Any, sample_weight: Any) -> tuple[float, float]:
        """Total weight and weighted log-likelihood of all rows."""
        check_is_fitted(self)
        held = self._hold(X, None, sample_weight, reset=False)
        if held is None:
            blocks = self._open(X, None, sample_weight)
            return weighted_sum(blocks, _Ask(self._fitted, score_samples))
        total = log_likelihood(self._fitted, held.X, held.sample_weight)
        u = held.sample_weight
        return float(held.X.shape[0] if u is None else u.sum()), total
