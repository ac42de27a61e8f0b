r"""Gaussian mixtures: their parameters, samples, and densities a few rows at a time.

The parametrisation is scikit-learn's. ``precisions_cholesky`` holds an upper-triangular U with
:math:`U U^T = \Sigma^{-1}`, so :math:`(x - \mu)^T \Sigma^{-1} (x - \mu) = |(x - \mu) U|^2` needs no
solve.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from daskcoreset.core.linalg import dense, tiles
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.typing import FloatArray, IndexArray, Points
from daskcoreset.core.validation import as_int
from daskcoreset.errors import InvalidInputError

# Least variance of a spike, in units of what is added to all variances, and of the largest one.
_AT_FLOOR, _ROUNDING = 2.0, 1e-14

_LOG_2PI = float(np.log(2.0 * np.pi))

# One matrix for each component, one for all, a diagonal or a single variance for each.
CovarianceType: TypeAlias = Literal["full", "tied", "diag", "spherical"]


@dataclass(frozen=True, eq=False)
class MixtureModel:
    r"""Parameters of :math:`p(x) = \sum_k \pi_k \mathcal N(x; \mu_k, \Sigma_k)`.

    Make one with `mixture_from_covariances`. Immutable, picklable, and small enough to be sent to
    every block.

    Attributes
    ----------
    covariance_type : {"full", "tied", "diag", "spherical"}
    weights : ndarray of shape (k,), float64
        Non-negative, of sum one.
    means : ndarray of shape (k, d), float64
    covariances : ndarray, float64
        The shape is (k, d, d), (d, d), (k, d) or (k,), in the order of the types.
    precisions_cholesky : ndarray, float64
        Upper-triangular factors of the inverse covariances, or inverse standard
        deviations. Of the shape of `covariances`.

    References
    ----------
    Pedregosa et al. (2011), `sklearn.mixture.GaussianMixture`, for the parametrisation.
    """

    covariance_type: CovarianceType
    weights: FloatArray
    means: FloatArray
    covariances: FloatArray
    precisions_cholesky: FloatArray

    @property
    def precisions(self) -> FloatArray:
        """Inverse covariances, of the shape of `covariances`."""
        factor = self.precisions_cholesky
        if self.covariance_type in ("full", "tied"):
            return np.asarray(factor @ factor.swapaxes(-1, -2))
        return np.asarray(factor**2)

    @property
    def n_parameters(self) -> int:
        """Free parameters: those of the covariances, k d means and k - 1 weights."""
        return count_parameters(self.covariance_type, *self.means.shape)

    @property
    def factors(self) -> FloatArray:
        """Factors or inverse standard deviations by component, of shape (k, d, d) or (k, d)."""
        k, d = self.means.shape
        if self.covariance_type == "tied":
            return np.broadcast_to(self.precisions_cholesky, (k, d, d))
        if self.covariance_type == "spherical":
            return np.broadcast_to(self.precisions_cholesky[:, np.newaxis], (k, d))
        return self.precisions_cholesky


def count_parameters(covariance_type: CovarianceType, n_components: int, n_features: int) -> int:
    """Return the free parameters of a mixture.

    Examples
    --------
    >>> [count_parameters(kind, 3, 2) for kind in ("full", "tied", "diag", "spherical")]
    [17, 11, 14, 11]
    """
    k, d = n_components, n_features
    symmetric = d * (d + 1) // 2
    free = {"full": k * symmetric, "tied": symmetric, "diag": k * d, "spherical": k}
    return free[covariance_type] + k * d + k - 1


def count_spikes(mixture: MixtureModel, reg_covar: float) -> int:
    """Count the components whose least variance in any direction is next to `reg_covar`.

    Examples
    --------
    >>> variances = np.array([[1.0, 1e-6], [1.0, 0.5]])
    >>> one = mixture_from_covariances("diag", np.full(2, 0.5), np.zeros((2, 2)), variances)
    >>> count_spikes(one, 1e-6)
    1
    """
    covariances = mixture.covariances
    if mixture.covariance_type in ("full", "tied"):
        spread = np.linalg.eigvalsh(covariances)
    else:
        spread = covariances.reshape(len(mixture.weights), -1)
    rounding = _ROUNDING * spread.max(axis=-1)
    return int(np.count_nonzero(spread.min(axis=-1) <= _AT_FLOOR * reg_covar + rounding))


def mixture_from_covariances(
    covariance_type: CovarianceType, weights: FloatArray, means: FloatArray, covariances: FloatArray
) -> MixtureModel:
    """Mixture with given covariances, whose factors are computed.

    Parameters
    ----------
    covariance_type : {"full", "tied", "diag", "spherical"}
    weights : ndarray of shape (k,), float64
    means : ndarray of shape (k, d), float64
    covariances : ndarray, float64
        Array of the shape that belongs to the type. See `MixtureModel`.

    Returns
    -------
    MixtureModel

    Raises
    ------
    InvalidInputError
        If a covariance is not positive definite in float64.

    Examples
    --------
    >>> mixture = mixture_from_covariances(
    ...     "diag", np.ones(1), np.zeros((1, 2)), np.full((1, 2), 4.0)
    ... )
    >>> mixture.precisions_cholesky, mixture.n_parameters
    (array([[0.5, 0.5]]), 4)
    """
    try:
        if covariance_type == "full":
            factors = np.stack([_inverse_factor(covariance) for covariance in covariances])
        elif covariance_type == "tied":
            factors = _inverse_factor(covariances)
        elif (covariances > 0.0).all():
            factors = 1.0 / np.sqrt(covariances)
        else:
            raise singular_error(covariance_type, covariances)
    except np.linalg.LinAlgError:
        raise singular_error(covariance_type, covariances) from None
    return MixtureModel(covariance_type, weights, means, covariances, factors)


def _inverse_factor(covariance: FloatArray) -> FloatArray:
    from scipy.linalg import solve_triangular

    lower = np.linalg.cholesky(covariance)
    inverse = solve_triangular(lower, np.eye(len(lower)), lower=True, check_finite=False)
    return np.ascontiguousarray(inverse.T)


def variances_of(kind: CovarianceType, covariances: FloatArray) -> FloatArray:
    """Variances of the columns: the diagonals of matrices, or the variances themselves."""
    if kind in ("full", "tied"):
        return np.diagonal(covariances, axis1=-2, axis2=-1)
    return covariances


def singular_error(kind: CovarianceType, covariances: FloatArray) -> InvalidInputError:
    """Error for covariances that cannot be factored, with the remedy."""
    variances = variances_of(kind, covariances)
    return InvalidInputError(
        "Fitting the mixture model failed because some components have ill-defined empirical "
        "covariance (for instance caused by singleton or collapsed samples)",
        remedy="try to decrease the number of components, increase reg_covar, or scale the input "
        f"data. In float64 those of type {kind!r} are not positive definite, with "
        f"variances from {variances.min():.3g} to {variances.max():.3g}. Increase "
        "reg_covar to 1e-6 times the largest, for instance",
    )


def sample(
    mixture: MixtureModel, n_samples: int = 1, random_state: RandomState = None
) -> tuple[FloatArray, IndexArray]:
    """Draw rows from the mixture.

    Parameters
    ----------
    mixture : MixtureModel
    n_samples : int, default=1
        Rows to draw, at least one.
    random_state : int, Generator, RandomState or None, default=None
        An int gives the same rows on every call.

    Returns
    -------
    X : ndarray of shape (n_samples, d), float64
        Ordered by component, as scikit-learn's are.
    labels : ndarray of shape (n_samples,), int64
        Component of every row.

    Examples
    --------
    >>> mixture = mixture_from_covariances("tied", np.full(2, 0.5), np.eye(2), np.eye(2))
    >>> X, labels = sample(mixture, 3, random_state=0)
    >>> X.shape, labels
    ((3, 2), array([0, 0, 1]))
    """
    from sklearn.mixture import GaussianMixture

    count, seed = as_int("n_samples", n_samples), resolve_seed(random_state) % 2**32
    model = GaussianMixture(
        len(mixture.weights), covariance_type=mixture.covariance_type, random_state=seed
    )
    model.weights_ = mixture.weights / mixture.weights.sum()
    model.means_, model.covariances_ = mixture.means, mixture.covariances
    rows, labels = model.sample(count)
    return rows, labels.astype(np.int64)


def whitened(mixture: MixtureModel, tile: FloatArray) -> Iterator[FloatArray]:
    r"""Yield :math:`(x - \mu_k) U_k` of all rows, of shape (rows, d), for one component a time."""
    for mean, factor in zip(mixture.means, mixture.factors, strict=True):
        gaps = tile - mean
        yield gaps @ factor if factor.ndim == 2 else gaps * factor


def squared_lengths(mixture: MixtureModel, tile: FloatArray) -> FloatArray:
    """Return squared lengths of `whitened` rows, of shape (k, rows). Those that overflow are inf.

    Raises
    ------
    InvalidInputError
        If a row has a NaN or an infinity.
    """
    out = np.empty((len(mixture.means), len(tile)))
    with np.errstate(over="ignore", invalid="ignore"):
        for lengths, rows in zip(out, whitened(mixture, tile), strict=True):
            np.einsum("ri,ri->r", rows, rows, out=lengths)
    if not np.isfinite(out.sum()):
        if not np.isfinite(tile).all():
            raise InvalidInputError(
                "X holds a NaN or an infinity", argument="X", remedy="remove or impute such rows"
            )
        out[np.isnan(out)] = np.inf
    return out


def posterior(mixture: MixtureModel, lengths: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log-densities (rows,) and responsibilities (k, rows) of rows by `squared_lengths`.

    If all squares overflow, the density is zero, and the responsibilities are the weights.
    """
    joint = -0.5 * (lengths + mixture.means.shape[1] * _LOG_2PI)
    joint += _log_determinants(mixture)[:, np.newaxis]
    with np.errstate(divide="ignore"):  # a component may have weight zero
        joint += np.log(mixture.weights)[:, np.newaxis]
    # About the largest term, so that the exponentials of a far row do not all vanish.
    top = joint.max(axis=0)
    lost = np.isneginf(top)
    joint -= np.where(lost, 0.0, top)
    np.exp(joint, out=joint)
    joint[:, lost] = mixture.weights[:, np.newaxis]
    total = joint.sum(axis=0)
    joint /= total
    return np.where(lost, -np.inf, top + np.log(total)), joint


def _log_determinants(mixture: MixtureModel) -> FloatArray:
    r"""Return the logarithms of :math:`|\Sigma_k|^{-1/2}`, of shape (k,)."""
    diagonals = variances_of("full" if mixture.factors.ndim == 3 else "diag", mixture.factors)
    return np.asarray(np.log(diagonals).sum(axis=1))


def log_peaks(mixture: MixtureModel) -> FloatArray:
    r"""Logarithms of the densities of the components at their means.

    :math:`\ln (w_j |2 \pi \Sigma_j|^{-1/2})`, of shape (k,).

    Examples
    --------
    >>> mixture = mixture_from_covariances("spherical", np.ones(1), np.zeros((1, 1)), np.ones(1))
    >>> log_peaks(mixture).round(6)
    array([-0.918939])
    """
    at_means = _log_determinants(mixture) - 0.5 * mixture.means.shape[1] * _LOG_2PI
    with np.errstate(divide="ignore"):
        return np.asarray(at_means + np.log(mixture.weights))


def _posteriors(mixture: MixtureModel, X: Points) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Yield slices of rows, their log-densities and their responsibilities."""
    for rows in tiles(X.shape[0], max(mixture.means.shape)):
        yield rows, *posterior(mixture, squared_lengths(mixture, dense(X[rows])))


def responsibilities(mixture: MixtureModel, X: Points) -> FloatArray:
    r"""Posterior probabilities of the components, :math:`\pi_k \mathcal N_k(x) / p(x)`.

    The result has shape (n, k), and its rows add up to one. A row whose squared distances overflow
    gets the component weights. A NaN or an infinity is an `InvalidInputError`.

    Examples
    --------
    >>> mixture = mixture_from_covariances("tied", np.full(2, 0.5), np.eye(2), np.eye(2))
    >>> responsibilities(mixture, np.array([[0.0, 0.0]]))
    array([[0.5, 0.5]])
    """
    out = np.empty((X.shape[0], len(mixture.means)))
    for rows, _, shares in _posteriors(mixture, X):
        out[rows] = shares.T
    return out


def score_samples(mixture: MixtureModel, X: Points) -> FloatArray:
    r"""Log-density of every row under the mixture, :math:`\log p(x)`.

    The result has shape (n,). It is minus infinity for a row whose squared distances overflow. A
    NaN or an infinity is an `InvalidInputError`.

    Examples
    --------
    >>> mixture = mixture_from_covariances("spherical", np.ones(1), np.zeros((1, 1)), np.ones(1))
    >>> score_samples(mixture, np.array([[0.0], [1.0]])).round(6)
    array([-0.918939, -1.418939])
    """
    out = np.empty(X.shape[0])
    for rows, densities, _ in _posteriors(mixture, X):
        out[rows] = densities
    return out


def assign(mixture: MixtureModel, X: Points) -> IndexArray:
    """Most probable component of every row, the lowest of those that tie.

    The result has shape (n,), int64. A NaN or an infinity is an `InvalidInputError`.

    Examples
    --------
    >>> mixture = mixture_from_covariances("tied", np.full(2, 0.5), np.eye(2), np.eye(2))
    >>> assign(mixture, np.array([[0.0, 2.0], [2.0, 0.0]]))
    array([1, 0])
    """
    out = np.empty(X.shape[0], dtype=np.int64)
    for rows, _, shares in _posteriors(mixture, X):
        out[rows] = shares.argmax(axis=0)
    return out
