r"""Gaussian mixtures: their parameters, samples, and densities block by block.

The parametrisation is scikit-learn's: ``precisions_cholesky`` holds an upper-triangular U
with :math:`U U^T = \Sigma^{-1}`, so that :math:`(x - \mu)^T \Sigma^{-1} (x - \mu) =
|(x - \mu) U|^2` needs no solve.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

import numpy as np

from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.typing import FloatArray, IndexArray, Points
from daskcoreset.errors import InvalidInputError

# Numbers of a temporary, 2 MiB: n x k x d differences are never formed at once.
_TILE_NUMBERS = 2**18

# Least variance of a spike, in units of what is added to all variances, and of the largest one.
_AT_FLOOR, _ROUNDING = 2.0, 1e-14

_LOG_2PI = float(np.log(2.0 * np.pi))

# One matrix for each component, one for all, a diagonal or a single variance for each.
CovarianceType: TypeAlias = Literal["full", "tied", "diag", "spherical"]


@dataclass(frozen=True, eq=False)
class MixtureModel:
    r"""Parameters of :math:`p(x) = \sum_k \pi_k \mathcal N(x; \mu_k, \Sigma_k)`.

    Make one with `mixture_from_covariances` or `mixture_from_precisions`, which check the
    matrices. Immutable, picklable, and small enough to be sent to every block.

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
        deviations; of the shape of `covariances`.

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


def as_covariance_type(name: str) -> CovarianceType:
    """Return `name`, checked.

    Examples
    --------
    >>> as_covariance_type("diag")
    'diag'
    """
    if name not in get_args(CovarianceType):
        raise InvalidInputError(
            f"covariance_type is {name!r}",
            argument="covariance_type",
            remedy=f"pass one of {', '.join(get_args(CovarianceType))}",
        )
    return cast("CovarianceType", name)


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
        If a covariance is not positive definite, or so nearly singular that its Cholesky
        factorisation fails in float64.

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
        else:
            if not (covariances > 0.0).all():
                raise np.linalg.LinAlgError  # noqa: TRY301  # one message for all types
            factors = 1.0 / np.sqrt(covariances)
    except np.linalg.LinAlgError:
        raise singular_error(covariance_type, covariances) from None
    return MixtureModel(covariance_type, weights, means, covariances, factors)


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

    Raises
    ------
    InvalidInputError
        If `n_samples` is less than one.

    Examples
    --------
    >>> mixture = mixture_from_covariances("tied", np.full(2, 0.5), np.eye(2), np.eye(2))
    >>> X, labels = sample(mixture, 3, random_state=0)
    >>> X.shape, labels
    ((3, 2), array([0, 0, 1]))
    """
    import scipy.linalg

    if n_samples < 1:
        raise InvalidInputError(
            f"n_samples must be at least 1, got {n_samples}",
            argument="n_samples",
            remedy="pass a positive int",
        )
    rng = np.random.default_rng(resolve_seed(random_state))
    # Normalised again: the generator refuses sums that exceed one by rounding.
    counts = rng.multinomial(n_samples, mixture.weights / mixture.weights.sum())
    labels = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    normal = rng.standard_normal((n_samples, mixture.means.shape[1]))
    factor = mixture.precisions_cholesky
    if mixture.covariance_type == "diag":
        normal /= factor[labels]
    elif mixture.covariance_type == "spherical":
        normal /= factor[labels, np.newaxis]
    else:
        # Rows z U^{-1} of standard normal z have the covariance U^{-T} U^{-1}.
        for component in range(len(counts)):
            rows = labels == component
            upper = factor[component] if mixture.covariance_type == "full" else factor
            drawn = scipy.linalg.solve_triangular(upper, normal[rows].T, trans="T")
            normal[rows] = drawn.T
    return normal + mixture.means[labels], labels


def _inverse_factor(covariance: FloatArray) -> FloatArray:
    from scipy.linalg.lapack import dtrtrs

    lower = np.linalg.cholesky(covariance)
    # What solve_triangular calls, and half of its time: matrices are small, and many.
    inverse, _ = dtrtrs(lower.T, np.eye(len(covariance)), lower=0, trans=1)
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


def responsibilities(mixture: MixtureModel, X: Points) -> FloatArray:
    r"""Posterior probabilities of the components, :math:`\pi_k \mathcal N_k(x) / p(x)`.

    Rows are of a block, and those of the answer, of shape (n, k), add up to one. A row so far out
    that the square of its distance overflows has no defined component: it gets the
    component weights. A NaN or an infinity is an `InvalidInputError`.

    Examples
    --------
    >>> mixture = mixture_from_covariances("tied", np.full(2, 0.5), np.eye(2), np.eye(2))
    >>> responsibilities(mixture, np.array([[0.0, 0.0]]))
    array([[0.5, 0.5]])
    """
    out = np.empty((X.shape[0], len(mixture.means)))
    for rows, tile in tiles(X, len(mixture.means)):
        out[rows] = posterior(mixture, tile)[1].T
    return out


def score_samples(mixture: MixtureModel, X: Points) -> FloatArray:
    r"""Log-density of every row under the mixture, :math:`\log p(x)`.

    The result has shape (n,). It is minus infinity for a row whose squared distance overflows. A
    NaN or an infinity is an `InvalidInputError`.

    Examples
    --------
    >>> mixture = mixture_from_covariances("spherical", np.ones(1), np.zeros((1, 1)), np.ones(1))
    >>> score_samples(mixture, np.array([[0.0], [1.0]])).round(6)
    array([-0.918939, -1.418939])
    """
    out = np.empty(X.shape[0])
    for rows, tile in tiles(X, len(mixture.means)):
        out[rows] = posterior(mixture, tile)[0]
    return out


def assign(mixture: MixtureModel, X: Points) -> IndexArray:
    """Most probable component of every row, the lowest of those that tie.

    The result has shape (n,), int64. No array of n x k numbers is formed. A NaN or an infinity is
    an `InvalidInputError`.

    Examples
    --------
    >>> mixture = mixture_from_covariances("tied", np.full(2, 0.5), np.eye(2), np.eye(2))
    >>> assign(mixture, np.array([[0.0, 2.0], [2.0, 0.0]]))
    array([1, 0])
    """
    out = np.empty(X.shape[0], dtype=np.int64)
    for rows, tile in tiles(X, len(mixture.means)):
        out[rows] = posterior(mixture, tile)[1].argmax(axis=0)
    return out


def tiles(X: Points, n_components: int) -> Iterator[tuple[slice, FloatArray]]:
    """Slices of rows with the rows themselves, dense and float64, a few MiB at a time."""
    size = max(256, _TILE_NUMBERS // max(n_components, X.shape[1]))
    for start in range(0, max(1, X.shape[0]), size):  # at least one tile, be it empty
        rows = slice(start, min(start + size, X.shape[0]))
        tile = X[rows]
        dense = tile if isinstance(tile, np.ndarray) else tile.toarray()
        yield rows, dense.astype(np.float64, copy=False)


def groups(n_components: int, tile: FloatArray) -> Iterator[slice]:
    """Slices of components whose differences to a tile make one temporary."""
    size = max(1, _TILE_NUMBERS // max(1, tile.size))
    for start in range(0, n_components, size):
        yield slice(start, start + size)


def whitened(mixture: MixtureModel, tile: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    r"""Slices of components with :math:`(x - \mu_k) U_k`, of shape (some, rows, d), of a tile."""
    kind, factor = mixture.covariance_type, mixture.precisions_cholesky
    for some in groups(len(mixture.means), tile):
        gaps = tile - mixture.means[some, np.newaxis]
        some_factors = factor if kind == "tied" else factor[some]
        if kind in ("full", "tied"):
            gaps = gaps @ some_factors
        else:
            gaps *= some_factors.reshape(len(some_factors), 1, -1)
        yield some, gaps


def squared_lengths(mixture: MixtureModel, tile: FloatArray) -> FloatArray:
    """Squared lengths of `whitened` rows (k, rows), which may overflow."""
    out = np.empty((len(mixture.means), len(tile)))
    with np.errstate(over="ignore", invalid="ignore"):
        for some, gaps in whitened(mixture, tile):
            np.einsum("kri,kri->kr", gaps, gaps, out=out[some])
    return out


def posterior(
    mixture: MixtureModel, tile: FloatArray, lengths: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Log-densities (rows,) of a tile and responsibilities (k, rows), one row a component.

    With its `squared_lengths`, where these are known.
    """
    lengths = squared_lengths(mixture, tile) if lengths is None else lengths.copy()
    joint = _densities(mixture, tile, lengths)
    with np.errstate(divide="ignore"):  # a component may have weight zero
        joint += np.log(mixture.weights)[:, np.newaxis]
    # About the largest term, so that the exponentials of a far row do not all vanish.
    top = joint.max(axis=0)
    lost = np.isneginf(top)
    if lost.any():
        joint[:, lost] = 0.0
        top[lost] = 0.0
    joint -= top
    np.exp(joint, out=joint)
    total = joint.sum(axis=0)
    joint /= total
    density = top + np.log(total)
    if lost.any():
        joint[:, lost] = mixture.weights[:, np.newaxis]
        density[lost] = -np.inf
    return density, joint


def _densities(mixture: MixtureModel, tile: FloatArray, out: FloatArray) -> FloatArray:
    """Return logarithms of densities, in place of squared lengths."""
    # The square of a distance may overflow: its density is zero, its logarithm -inf or NaN.
    with np.errstate(over="ignore", invalid="ignore"):
        out += mixture.means.shape[1] * _LOG_2PI
        out *= -0.5
        total = out.sum()
    if not np.isfinite(total):
        if not np.isfinite(tile).all():
            raise InvalidInputError(
                "X holds a NaN or an infinity", argument="X", remedy="remove or impute such rows"
            )
        out[np.isnan(out)] = -np.inf
    out += _log_determinants(mixture)
    return out


def log_normalizer(mixture: MixtureModel) -> float:
    r"""Logarithm of the largest value that the density could have, were all means one.

    :math:`\ln Z` with :math:`Z = \sum_j w_j |2 \pi \Sigma_j|^{-1/2}`.

    Examples
    --------
    >>> mixture = mixture_from_covariances("spherical", np.ones(1), np.zeros((1, 1)), np.ones(1))
    >>> round(log_normalizer(mixture), 6)
    -0.918939
    """
    k, d = mixture.means.shape
    logs = np.broadcast_to(_log_determinants(mixture)[:, 0] - 0.5 * d * _LOG_2PI, (k,))
    with np.errstate(divide="ignore"):
        return float(np.logaddexp.reduce(logs + np.log(mixture.weights)))


def _log_determinants(mixture: MixtureModel) -> FloatArray:
    r"""Logarithm of :math:`|\Sigma_k|^{-1/2}`, of shape (k, 1) or (1, 1)."""
    logs = np.log(variances_of(mixture.covariance_type, mixture.precisions_cholesky))
    if mixture.covariance_type == "spherical":
        logs = logs[:, np.newaxis] * np.ones(mixture.means.shape[1])
    return np.asarray(logs.sum(axis=-1)).reshape(-1, 1)


def log_likelihood(
    mixture: MixtureModel, X: Points, sample_weight: FloatArray | None = None
) -> float:
    r"""Weighted log-likelihood of a block, :math:`\sum_i u_i \log p(x_i)`.

    Parameters
    ----------
    mixture : MixtureModel
    X : ndarray of shape (n, d) or scipy.sparse.csr_array
        Rows, finite where their weight is not zero.
    sample_weight : ndarray of shape (n,), float64, optional
        Weights u, ones by default. Rows of weight zero do not count, whatever they hold.

    Returns
    -------
    float
        Additive over blocks.

    Examples
    --------
    >>> mixture = mixture_from_covariances("spherical", np.ones(1), np.zeros((1, 1)), np.ones(1))
    >>> round(log_likelihood(mixture, np.array([[0.0], [1.0]]), np.array([2.0, 0.0])), 6)
    -1.837877
    """
    if sample_weight is None:
        return float(score_samples(mixture, X).sum())
    counted = sample_weight > 0.0
    if not counted.all():
        X, sample_weight = X[counted], sample_weight[counted]
    return float(sample_weight @ score_samples(mixture, X))
