"""Initial parameters of EM: from k-means, seeds, random responsibilities, or given.

With unit weights and the same ``random_state`` these are scikit-learn's own starting points
for "kmeans", "random" and "k-means++": random numbers are drawn in the same order. There is
one exception: from "k-means++" seeds scikit-learn starts a tied covariance as the scatter of
all rows about the origin divided by k, whereas here it is `reg_covar` as for the other types.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Literal, TypeAlias

import numpy as np

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.typing import FloatArray, IndexArray
from daskcoreset.core.validation import as_numbers
from daskcoreset.solvers.mixture.model import (
    CovarianceType,
    MixtureModel,
    covariance_shape,
    mixture_from_precisions,
    tiles,
)
from daskcoreset.solvers.mixture.steps import (
    ComponentMoments,
    maximisation,
    merge_components,
    moments_of_components,
)

# How the first responsibilities are found.
InitParams: TypeAlias = Literal["kmeans", "k-means++", "random", "random_from_data"]


@dataclass(frozen=True, eq=False)
class InitialParameters:
    """Initial parameters of the caller, checked; None for those to be estimated.

    Attributes
    ----------
    weights : ndarray of shape (k,), float64, or None
    means : ndarray of shape (k, d), float64, or None
    precisions : ndarray, float64, or None
        Of the shape that belongs to the covariance type.
    """

    weights: FloatArray | None
    means: FloatArray | None
    precisions: FloatArray | None

    @property
    def complete(self) -> bool:
        """Whether all parameters are given."""
        return not any(
            parameter is None for parameter in (self.weights, self.means, self.precisions)
        )


def check_initial(
    kind: CovarianceType, k: int, d: int, *, weights: Any, means: Any, precisions: Any
) -> InitialParameters:
    """Check ``weights_init``, ``means_init`` and ``precisions_init``.

    Raises
    ------
    InvalidInputError
        If one has another shape than the model, or is no distribution, not finite or not
        symmetric. Whether precisions are positive definite is seen when they are factored.

    Examples
    --------
    >>> check_initial("tied", 2, 1, weights=[0.5, 0.5], means=None, precisions=None).complete
    False
    """
    weights = _as_shape("weights_init", weights, (k,))
    if weights is not None:
        if (weights < 0.0).any() or abs(weights.sum() - 1.0) > 1e-6:
            raise InvalidInputError(
                f"weights_init must be non-negative with sum one, got minimum "
                f"{weights.min():.3g} and sum {weights.sum():.6g}; divide it by its sum."
            )
        weights /= weights.sum()
    means = _as_shape("means_init", means, (k, d))
    precisions = _as_shape("precisions_init", precisions, covariance_shape(kind, k, d))
    if precisions is not None and kind in ("full", "tied"):
        transposed = precisions.swapaxes(-1, -2)
        if not np.allclose(precisions, transposed, rtol=1e-5, atol=1e-8 * abs(precisions).max()):
            raise InvalidInputError("precisions_init must be symmetric; pass inverse covariances.")
        precisions = (precisions + transposed) / 2.0
    return InitialParameters(weights, means, precisions)


def start_mixture(
    X: FloatArray,
    sample_weight: FloatArray,
    n_components: int,
    covariance_type: CovarianceType,
    *,
    init_params: InitParams,
    initial: InitialParameters,
    reg_covar: float,
    rng: np.random.RandomState,
) -> MixtureModel:
    """Parameters that EM starts from.

    Parameters
    ----------
    X : ndarray of shape (n, d), float64
        Finite rows with at least k distinct ones, about their mean.
    sample_weight : ndarray of shape (n,), float64
        Positive weights.
    n_components : int
        k.
    covariance_type : {"full", "tied", "diag", "spherical"}
    init_params : {"kmeans", "k-means++", "random", "random_from_data"}
        ``"kmeans"``: clusters of weighted k-means, one M step. ``"k-means++"`` and
        ``"random_from_data"``: k rows, taken by weighted k-means++ or by weight from the
        distinct rows, each with variance `reg_covar` and weight 1/k; the first E step then
        gives the other rows to the nearest. ``"random"``: random responsibilities.
    initial : InitialParameters
        Take the place of what was found, one by one, as in scikit-learn.
    reg_covar : float
    rng : numpy.random.RandomState

    Returns
    -------
    MixtureModel

    Raises
    ------
    InvalidInputError
        If fewer than k clusters can be told apart, or a covariance is singular.

    References
    ----------
    Arthur and Vassilvitskii (2007) for k-means++.
    """
    if initial.weights is not None and initial.means is not None and initial.precisions is not None:
        return mixture_from_precisions(
            covariance_type, initial.weights, initial.means, initial.precisions
        )
    moments = _first_moments(
        X, sample_weight, n_components, covariance_type, init_params=init_params, rng=rng
    )
    n_distinct = int((moments.weight > 0.0).sum())
    if n_distinct < n_components:
        raise InvalidInputError(
            f"n_components={n_components}, but only {n_distinct} clusters of X can be told apart; "
            f"pass a smaller n_components."
        )
    weights = moments.weight / moments.weight.sum() if initial.weights is None else initial.weights
    means = moments.mean if initial.means is None else initial.means
    if initial.precisions is not None:
        return mixture_from_precisions(covariance_type, weights, means, initial.precisions)
    return replace(maximisation(moments, None, reg_covar), weights=weights, means=means)


def legacy_random_state(random_state: RandomState) -> np.random.RandomState:
    """Return the generator that scikit-learn's k-means takes.

    Small integers, None and a RandomState mean what they mean in scikit-learn.

    Examples
    --------
    >>> legacy_random_state(0).randint(10), legacy_random_state(2**100).randint(10)
    (5, 7)
    """
    from sklearn.utils import check_random_state

    small = isinstance(random_state, (int, np.integer)) and 0 <= random_state < 2**32
    if random_state is None or small or isinstance(random_state, np.random.RandomState):
        return check_random_state(random_state)  # type: ignore[no-any-return]
    return np.random.RandomState(np.random.MT19937(resolve_seed(random_state)))


def _first_moments(
    X: FloatArray,
    u: FloatArray,
    k: int,
    kind: CovarianceType,
    *,
    init_params: InitParams,
    rng: np.random.RandomState,
) -> ComponentMoments:
    from sklearn.cluster import KMeans, kmeans_plusplus

    if init_params == "k-means++":
        _, rows = kmeans_plusplus(X, k, sample_weight=u, random_state=rng)
        return moments_of_components(X[rows], np.eye(k), kind)
    if init_params == "random_from_data":
        return moments_of_components(X[_distinct_rows(X, u, k, rng)], np.eye(k), kind)
    if init_params == "kmeans":
        labels = KMeans(k, n_init=1, random_state=rng).fit(X, sample_weight=u).labels_

    def of_tile(rows: slice, tile: FloatArray) -> ComponentMoments:
        if init_params == "kmeans":
            shares = np.zeros((k, len(tile)))
            shares[labels[rows], np.arange(len(tile))] = u[rows]
        else:
            shares = rng.uniform(size=(len(tile), k)).T
            shares *= u[rows] / shares.sum(axis=0)
        return moments_of_components(tile, shares, kind)

    return reduce(merge_components, (of_tile(*part) for part in tiles(X, k)))


def _distinct_rows(X: FloatArray, u: FloatArray, k: int, rng: np.random.RandomState) -> IndexArray:
    # Equal rows would start two components that stay equal for ever.
    _, first, inverse = np.unique(X, axis=0, return_index=True, return_inverse=True)
    totals = np.bincount(inverse.ravel(), weights=u)
    chosen = rng.choice(len(first), size=k, replace=False, p=totals / totals.sum())
    return np.asarray(first[chosen], dtype=np.int64)


def _as_shape(name: str, value: Any, shape: tuple[int, ...]) -> FloatArray | None:
    if value is None:
        return None
    array = as_numbers(name, value).copy()
    if array.shape != shape:
        raise InvalidInputError(f"{name} must have shape {shape}, got {array.shape}.")
    if not np.isfinite(array).all():
        raise InvalidInputError(f"{name} must be finite; replace its NaN or infinities.")
    return array
