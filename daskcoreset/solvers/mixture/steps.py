r"""The two steps of EM for weighted Gaussian mixtures.

The E step of a tile gives responsibilities :math:`r_{ik}`. The M step needs the moments of the rows
under the weights :math:`u_i r_{ik}`. Moments of a tile are taken about its own means, and merged as
in Chan, Golub and LeVeque (1983): a sum of positive semi-definite parts, so that no cancellation
can make a covariance indefinite.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import NamedTuple

import numpy as np

from daskcoreset.core.linalg import tiles
from daskcoreset.core.typing import FloatArray
from daskcoreset.solvers.mixture.model import (
    CovarianceType,
    MixtureModel,
    mixture_from_covariances,
    posterior,
    singular_error,
    squared_lengths,
    variances_of,
)

# Share of a component below which its moments are rounding of subnormal numbers.
_NO_WEIGHT = 1e-200

# Relative error that a component's mean may have.
_ROUNDING = 8.0 * float(np.finfo(np.float64).eps)


class ComponentMoments(NamedTuple):
    r"""Moments of rows under the weights :math:`u_i r_{ik}` of each component.

    Attributes
    ----------
    log_likelihood : float
        :math:`\sum_i u_i \log p(x_i)` of the mixture that gave the responsibilities.
    weight : ndarray of shape (k,), float64
        :math:`W_k = \sum_i u_i r_{ik}`.
    mean : ndarray of shape (k, d), float64
        :math:`m_k = \sum_i u_i r_{ik} x_i / W_k`. Zeros if the weight is zero.
    scatter : ndarray, float64
        :math:`\sum_i u_i r_{ik} (x_i - m_k)(x_i - m_k)^T` of shape (k, d, d) for "full" and "tied".
        Its diagonals of shape (k, d) otherwise.
    """

    log_likelihood: float
    weight: FloatArray
    mean: FloatArray
    scatter: FloatArray


def expectation(
    mixture: MixtureModel, X: FloatArray, sample_weight: FloatArray
) -> ComponentMoments:
    """E step: moments of the components under their responsibilities.

    Parameters
    ----------
    mixture : MixtureModel
        The present parameters.
    X : ndarray of shape (n, d), float64
        At least one row.
    sample_weight : ndarray of shape (n,), float64
        Non-negative weights u.

    Examples
    --------
    >>> start = mixture_from_covariances("spherical", np.ones(1), np.zeros((1, 1)), np.ones(1))
    >>> moments = expectation(start, np.array([[0.0], [3.0]]), np.array([2.0, 1.0]))
    >>> moments.weight, moments.mean, moments.scatter
    (array([3.]), array([[1.]]), array([[6.]]))

    References
    ----------
    Dempster, Laird and Rubin (1977). Lucic, Faulkner, Krause and Feldman (2017) for the weights.
    """

    def shares_of(rows: slice) -> tuple[FloatArray, float]:
        density, shares = posterior(mixture, squared_lengths(mixture, X[rows]))
        shares *= sample_weight[rows]
        return shares, float(sample_weight[rows] @ density)

    return moments_by(shares_of, X, len(mixture.means), mixture.covariance_type)


def moments_by(
    shares_of: Callable[[slice], tuple[FloatArray, float]],
    X: FloatArray,
    n_components: int,
    kind: CovarianceType,
) -> ComponentMoments:
    """Moments of the components by the shares of some rows, and their log-likelihood."""
    parts = tiles(len(X), max(n_components, X.shape[1]))
    moments = (moments_of_components(X[rows], *shares_of(rows), kind) for rows in parts)
    return reduce(_merge, moments)


def moments_of_components(
    tile: FloatArray, shares: FloatArray, log_likelihood: float, kind: CovarianceType
) -> ComponentMoments:
    """Moments of a tile under given weights of its rows in each component.

    Parameters
    ----------
    tile : ndarray of shape (n, d), float64
    shares : ndarray of shape (k, n), float64
        Responsibilities times weights, one row for each component.
    log_likelihood : float
        Handed through.
    kind : {"full", "tied", "diag", "spherical"}

    Examples
    --------
    >>> moments_of_components(np.array([[0.0], [2.0]]), np.ones((1, 2)), 0.0, "diag").scatter
    array([[2.]])
    """
    weight = shares.sum(axis=1)
    mean = (shares @ tile) / np.where(weight > 0.0, weight, 1.0)[:, np.newaxis]
    scatters = []
    for center, share in zip(mean, shares, strict=True):
        gaps = tile - center
        if kind in ("full", "tied"):
            # With the roots of the weights on either side the product is symmetric to the bit.
            gaps *= np.sqrt(share)[:, np.newaxis]
            scatters.append(gaps.T @ gaps)
        else:
            scatters.append(share @ np.square(gaps))
    return ComponentMoments(log_likelihood, weight, mean, np.stack(scatters))


def _merge(first: ComponentMoments, second: ComponentMoments) -> ComponentMoments:
    """Moments of the union of two disjoint sets of rows."""
    weight = first.weight + second.weight
    share = (second.weight / np.where(weight > 0.0, weight, 1.0))[:, np.newaxis]
    gap = second.mean - first.mean
    between = first.weight[:, np.newaxis] * share * gap
    is_full = first.scatter.ndim == 3
    between = between[:, :, np.newaxis] * gap[:, np.newaxis] if is_full else between * gap
    scatter = first.scatter + second.scatter + between
    likelihood = first.log_likelihood + second.log_likelihood
    return ComponentMoments(likelihood, weight, first.mean + gap * share, scatter)


def maximisation(
    moments: ComponentMoments,
    kind: CovarianceType,
    previous: MixtureModel | None,
    reg_covar: float,
) -> MixtureModel:
    r"""M step: the mixture of the largest expected likelihood.

    Parameters
    ----------
    moments : ComponentMoments
        Moments of all rows.
    kind : {"full", "tied", "diag", "spherical"}
    previous : MixtureModel or None
        Whose mean and covariance a component keeps if no weight is left in it. Its own weight is
        then zero. None at the start, where every component has some.
    reg_covar : float
        Added to all variances.

    Raises
    ------
    InvalidInputError
        If a covariance is singular in float64. The remedy names `reg_covar`.

    Examples
    --------
    >>> moments = moments_of_components(np.array([[0.0], [2.0]]), np.full((1, 2), 5.0), 0.0, "diag")
    >>> mixture = maximisation(moments, "diag", None, reg_covar=0.5)
    >>> mixture.weights, mixture.means, mixture.covariances
    (array([1.]), array([[1.]]), array([[1.5]]))
    """
    total = moments.weight.sum()
    shares = moments.weight / total
    gone = shares < _NO_WEIGHT
    # What the rounding of its mean alone leaves of the variance of a component on one point.
    floor = np.square(_ROUNDING * np.where(gone[:, np.newaxis], 0.0, moments.mean))
    if kind == "tied":
        covariances, floor = moments.scatter.sum(axis=0) / total, floor.max(axis=0)
    else:
        divisors = np.where(gone, 1.0, moments.weight)
        covariances = (moments.scatter.T / divisors).T
    if kind == "spherical":
        covariances, floor = covariances.mean(axis=1), floor.mean(axis=1)
    if kind in ("full", "tied"):
        covariances = covariances + reg_covar * np.eye(covariances.shape[-1])
    else:
        covariances = covariances + reg_covar
    if (variances_of(kind, covariances) < floor).any():
        raise singular_error(kind, covariances)
    means = moments.mean
    if previous is not None and gone.any():
        means = np.where(gone[:, np.newaxis], previous.means, means)
        if kind != "tied":
            covariances[gone] = previous.covariances[gone]
    return mixture_from_covariances(kind, shares, means, covariances)
