r"""The two steps of EM for weighted Gaussian mixtures, in one sweep over the rows.

The E step of a tile gives responsibilities :math:`r_{ik}`; what the M step needs of them are
the moments of the tile under the weights :math:`u_i r_{ik}`. Moments of tiles are taken about
the tile's own means and merged as in Chan, Golub and LeVeque (1983): a sum of positive
semi-definite parts throughout, so that no cancellation can make a covariance indefinite,
and no n x k array is kept. The moments are associative: blocks, too, can be merged.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from daskcoreset.core.typing import FloatArray, Points
from daskcoreset.solvers.mixture.model import (
    CovarianceType,
    MixtureModel,
    groups,
    mixture_from_covariances,
    posterior,
    singular_error,
    tiles,
    variances_of,
)

# Share of a component below which its moments are rounding of subnormal numbers.
_NO_WEIGHT = 1e-200

# Relative error that a component's mean may have.
_ROUNDING = 8.0 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class ComponentMoments:
    r"""Moments of rows under the weights :math:`u_i r_{ik}` of each component.

    Attributes
    ----------
    covariance_type : {"full", "tied", "diag", "spherical"}
    log_likelihood : float
        :math:`\sum_i u_i \log p(x_i)` of the mixture that gave the responsibilities.
    weight : ndarray of shape (k,), float64
        :math:`W_k = \sum_i u_i r_{ik}`.
    mean : ndarray of shape (k, d), float64
        :math:`m_k = \sum_i u_i r_{ik} x_i / W_k`. Zeros where the weight is zero.
    scatter : ndarray, float64
        :math:`\sum_i u_i r_{ik} (x_i - m_k)(x_i - m_k)^T` of shape (k, d, d) for "full", its
        sum over k of shape (d, d) for "tied", its diagonals of shape (k, d) otherwise.
    """

    covariance_type: CovarianceType
    log_likelihood: float
    weight: FloatArray
    mean: FloatArray
    scatter: FloatArray


def expectation(mixture: MixtureModel, X: Points, sample_weight: FloatArray) -> ComponentMoments:
    """E step on a block: moments of the components under their responsibilities.

    Parameters
    ----------
    mixture : MixtureModel
        The present parameters.
    X : ndarray of shape (n, d) or scipy.sparse.csr_array
        Finite rows, float32 or float64.
    sample_weight : ndarray of shape (n,), float64
        Non-negative weights u.

    Returns
    -------
    ComponentMoments
        To be merged over blocks by `merge_components`.

    Raises
    ------
    InvalidInputError
        If a row holds a NaN or an infinity.

    Examples
    --------
    >>> from daskcoreset.solvers.mixture.model import mixture_from_covariances
    >>> start = mixture_from_covariances("spherical", np.ones(1), np.zeros((1, 1)), np.ones(1))
    >>> moments = expectation(start, np.array([[0.0], [3.0]]), np.array([2.0, 1.0]))
    >>> moments.weight, moments.mean, moments.scatter
    (array([3.]), array([[1.]]), array([[6.]]))

    References
    ----------
    Dempster, Laird and Rubin (1977). Lucic, Faulkner, Krause and Feldman (2017) for the
    weights.
    """
    kind = mixture.covariance_type

    def of_tile(rows: slice, tile: FloatArray) -> ComponentMoments:
        density, shares = posterior(mixture, tile)
        shares *= sample_weight[rows]
        return moments_of_components(tile, shares, kind, float(sample_weight[rows] @ density))

    return reduce(merge_components, (of_tile(*part) for part in tiles(X, len(mixture.means))))


def moments_of_components(
    tile: FloatArray, shares: FloatArray, kind: CovarianceType, log_likelihood: float = 0.0
) -> ComponentMoments:
    """Moments of a tile under given weights of its rows in each component.

    Parameters
    ----------
    tile : ndarray of shape (n, d), float64
    shares : ndarray of shape (k, n), float64
        Responsibilities times weights, one row for each component.
    kind : {"full", "tied", "diag", "spherical"}
    log_likelihood : float, default=0.0
        Handed through.

    Examples
    --------
    >>> moments_of_components(np.array([[0.0], [2.0]]), np.ones((1, 2)), "diag").scatter
    array([[2.]])
    """
    weight = shares.sum(axis=1)
    mean = (shares @ tile) / np.where(weight > 0.0, weight, 1.0)[:, np.newaxis]
    k, d = mean.shape
    scatter = np.zeros({"full": (k, d, d), "tied": (d, d)}.get(kind, (k, d)))
    for some in groups(k, tile):
        gaps = tile - mean[some, np.newaxis]
        if kind in ("full", "tied"):
            # The root of the weights on either side: a product of a matrix with its own
            # transpose is symmetric to the bit, and costs BLAS half the work.
            gaps *= np.sqrt(shares[some])[:, :, np.newaxis]
            if kind == "full":
                scatter[some] = gaps.swapaxes(1, 2) @ gaps
            else:
                flat = gaps.reshape(-1, d)
                scatter += flat.T @ flat
        else:
            gaps *= gaps
            scatter[some] = (shares[some, np.newaxis] @ gaps)[:, 0]
    return ComponentMoments(kind, log_likelihood, weight, mean, scatter)


def merge_components(first: ComponentMoments, second: ComponentMoments) -> ComponentMoments:
    """Moments of the union of two disjoint sets of rows.

    Associative up to rounding.

    Examples
    --------
    >>> a = moments_of_components(np.array([[0.0]]), np.ones((1, 1)), "full")
    >>> b = moments_of_components(np.array([[2.0]]), np.ones((1, 1)), "full")
    >>> merge_components(a, b).scatter
    array([[[2.]]])

    References
    ----------
    Chan, Golub and LeVeque (1983), equation 2.1.
    """
    weight = first.weight + second.weight
    share = second.weight / np.where(weight > 0.0, weight, 1.0)
    gap = second.mean - first.mean
    between = first.weight * share
    scatter = first.scatter + second.scatter
    if first.covariance_type == "full":
        scatter += between[:, np.newaxis, np.newaxis] * gap[:, :, np.newaxis] * gap[:, np.newaxis]
    elif first.covariance_type == "tied":
        scatter += (between * gap.T) @ gap
    else:
        scatter += between[:, np.newaxis] * gap**2
    mean = first.mean + gap * share[:, np.newaxis]
    log_likelihood = first.log_likelihood + second.log_likelihood
    return ComponentMoments(first.covariance_type, log_likelihood, weight, mean, scatter)


def maximisation(
    moments: ComponentMoments, previous: MixtureModel | None, reg_covar: float | FloatArray
) -> MixtureModel:
    r"""M step: the mixture of the largest expected likelihood.

    Parameters
    ----------
    moments : ComponentMoments
        Moments of all rows.
    previous : MixtureModel or None
        Whose mean and covariance a component keeps when no weight is left in it. Its own
        weight is then zero, so that any would do. None at the start, where every component
        has some.
    reg_covar : float or ndarray of shape (d,)
        Added to all variances, as in scikit-learn, or to those of each column.

    Returns
    -------
    MixtureModel

    Raises
    ------
    InvalidInputError
        If a covariance is singular in float64 (the remedy names `reg_covar`).

    Examples
    --------
    >>> moments = moments_of_components(np.array([[0.0], [2.0]]), np.full((1, 2), 5.0), "diag")
    >>> mixture = maximisation(moments, None, reg_covar=0.5)
    >>> mixture.weights, mixture.means, mixture.covariances
    (array([1.]), array([[1.]]), array([[1.5]]))

    References
    ----------
    Dempster, Laird and Rubin (1977).
    """
    kind, total = moments.covariance_type, moments.weight.sum()
    shares = moments.weight / total
    gone = shares < _NO_WEIGHT
    means = moments.mean
    if kind == "tied":
        covariances = moments.scatter / total
    else:
        expand = (slice(None), *[np.newaxis] * (moments.scatter.ndim - 1))
        covariances = moments.scatter / np.where(gone, 1.0, moments.weight)[expand]
    if kind in ("full", "tied"):
        diagonal = np.arange(means.shape[1])
        covariances[..., diagonal, diagonal] += reg_covar
    else:
        covariances += reg_covar
    if kind == "spherical":
        covariances = covariances.mean(axis=1)
    _refuse_rounding(kind, covariances, np.where(gone[:, np.newaxis], 0.0, means))
    if previous is not None and gone.any():
        means = np.where(gone[:, np.newaxis], previous.means, means)
        if kind != "tied":
            covariances[gone] = previous.covariances[gone]
    return mixture_from_covariances(kind, shares, means, covariances)


def _refuse_rounding(kind: CovarianceType, covariances: FloatArray, means: FloatArray) -> None:
    """Raise an error where a variance is zero up to the rounding of the mean."""
    floor = (_ROUNDING * means) ** 2
    if kind == "tied":
        floor = floor.max(axis=0)
    elif kind == "spherical":
        floor = floor.mean(axis=1)
    if (variances_of(kind, covariances) < floor).any():
        raise singular_error(kind, covariances)
