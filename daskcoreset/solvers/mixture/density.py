"""Densities of Gaussian mixtures, block by block, and BIC and AIC."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.typing import FloatArray, IndexArray, Points
from daskcoreset.solvers.mixture.model import Mixture

_TILE_NUMBERS = 2**18

"""Numbers of a temporary, 2 MiB: n x k x d differences are never formed at once."""

_LOG_2PI = float(np.log(2.0 * np.pi))


def responsibilities(mixture: Mixture, X: Points) -> FloatArray:
    r"""Posterior probabilities of the components, :math:`\pi_k \mathcal N_k(x) / p(x)`.

    Parameters
    ----------
    mixture : Mixture
    X : ndarray of shape (n, d) or scipy.sparse.csr_array
        Finite rows of a block, float32 or float64.

    Returns
    -------
    ndarray of shape (n, k), float64
        Rows of sum one. A row so far out that the square of its distance overflows says
        nothing about its component: it gets the component weights.

    Raises
    ------
    InvalidInputError
        If a row holds a NaN or an infinity.

    Examples
    --------
    >>> from daskcoreset.solvers.mixture.model import mixture_from_covariances
    >>> mixture = mixture_from_covariances("tied", np.full(2, 0.5), np.eye(2), np.eye(2))
    >>> responsibilities(mixture, np.array([[0.0, 0.0]]))
    array([[0.5, 0.5]])
    """
    out = np.empty((X.shape[0], len(mixture.means)))
    for rows, tile in tiles(X, len(mixture.means)):
        out[rows] = posterior(mixture, tile)[1].T
    return out


def score_samples(mixture: Mixture, X: Points) -> FloatArray:
    r"""Log-density of every row under the mixture, :math:`\log p(x)`.

    Parameters
    ----------
    mixture : Mixture
    X : ndarray of shape (n, d) or scipy.sparse.csr_array
        Finite rows of a block, float32 or float64.

    Returns
    -------
    ndarray of shape (n,), float64
        Minus infinity for a row so far out that the square of its distance overflows.

    Raises
    ------
    InvalidInputError
        If a row holds a NaN or an infinity.

    Examples
    --------
    >>> from daskcoreset.solvers.mixture.model import mixture_from_covariances
    >>> mixture = mixture_from_covariances("spherical", np.ones(1), np.zeros((1, 1)), np.ones(1))
    >>> score_samples(mixture, np.array([[0.0], [1.0]])).round(6)
    array([-0.918939, -1.418939])
    """
    out = np.empty(X.shape[0])
    for rows, tile in tiles(X, len(mixture.means)):
        out[rows] = posterior(mixture, tile)[0]
    return out


def assign(mixture: Mixture, X: Points) -> IndexArray:
    """Most probable component of every row, the lowest of those that tie.

    Parameters
    ----------
    mixture : Mixture
    X : ndarray of shape (n, d) or scipy.sparse.csr_array
        Finite rows of a block, float32 or float64.

    Returns
    -------
    ndarray of shape (n,), int64
        No array of n x k numbers is formed.

    Raises
    ------
    InvalidInputError
        If a row holds a NaN or an infinity.

    Examples
    --------
    >>> from daskcoreset.solvers.mixture.model import mixture_from_covariances
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


def posterior(mixture: Mixture, tile: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log-densities (rows,) of a tile and responsibilities (k, rows), one row a component."""
    joint = _component_densities(mixture, tile)
    with np.errstate(divide="ignore"):  # a component may have weight zero
        joint += np.log(mixture.weights)[:, np.newaxis]
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


def _component_densities(mixture: Mixture, tile: FloatArray) -> FloatArray:
    k, d = mixture.means.shape
    kind, factor = mixture.covariance_type, mixture.precisions_cholesky
    out = np.empty((k, len(tile)))
    # The square of a distance may overflow: its density is zero, its logarithm -inf or NaN.
    with np.errstate(over="ignore", invalid="ignore"):
        for some in groups(k, tile):
            gaps = tile - mixture.means[some, np.newaxis]
            if kind == "full":
                gaps = gaps @ factor[some]
            elif kind == "tied":
                gaps = gaps @ factor
            elif kind == "diag":
                gaps *= factor[some, np.newaxis]
            else:
                gaps *= factor[some, np.newaxis, np.newaxis]
            np.einsum("kri,kri->kr", gaps, gaps, out=out[some])
        out += d * _LOG_2PI
        out *= -0.5
        total = out.sum()
    if not np.isfinite(total):
        _refuse_nonfinite(tile)
        out[np.isnan(out)] = -np.inf
    out += _log_determinants(mixture)
    return out


def log_normalizer(mixture: Mixture) -> float:
    r"""Logarithm of the largest value that the density could have, were all means one.

    :math:`\ln Z` with :math:`Z = \sum_j w_j |2 \pi \Sigma_j|^{-1/2}`.

    Examples
    --------
    >>> from daskcoreset.solvers.mixture.model import mixture_from_covariances
    >>> mixture = mixture_from_covariances("spherical", np.ones(1), np.zeros((1, 1)), np.ones(1))
    >>> round(log_normalizer(mixture), 6)
    -0.918939
    """
    k, d = mixture.means.shape
    logs = np.broadcast_to(_log_determinants(mixture)[:, 0] - 0.5 * d * _LOG_2PI, (k,))
    with np.errstate(divide="ignore"):
        return float(np.logaddexp.reduce(logs + np.log(mixture.weights)))


def _log_determinants(mixture: Mixture) -> FloatArray:
    r"""Logarithm of :math:`|\Sigma_k|^{-1/2}`, of shape (k, 1) or (1, 1)."""
    kind, factor = mixture.covariance_type, mixture.precisions_cholesky
    if kind in ("full", "tied"):
        factor = np.diagonal(factor, axis1=-2, axis2=-1)
    logs = np.log(factor)
    if kind == "spherical":
        logs = logs[:, np.newaxis] * np.ones(mixture.means.shape[1])
    return np.asarray(logs.sum(axis=-1)).reshape(-1, 1)


def _refuse_nonfinite(rows: FloatArray) -> None:
    if not np.isfinite(rows).all():
        raise InvalidInputError("X holds a NaN or an infinity; remove or impute such rows.")


def log_likelihood(mixture: Mixture, X: Points, sample_weight: FloatArray | None = None) -> float:
    r"""Weighted log-likelihood of a block, :math:`\sum_i u_i \log p(x_i)`.

    Parameters
    ----------
    mixture : Mixture
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
    >>> from daskcoreset.solvers.mixture.model import mixture_from_covariances
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


def bic(mixture: Mixture, X: Points, sample_weight: FloatArray | None = None) -> float:
    r"""Bayesian information criterion, :math:`-2 \sum_i u_i \log p(x_i) + f \log \sum_i u_i`.

    f is the number of free parameters. The total weight stands where n stands without
    weights: the weights of a coreset sum to the number of rows of the data, so its BIC
    estimates that of the data. It follows that the scale of the weights matters here.

    Parameters
    ----------
    mixture : Mixture
    X : ndarray of shape (n, d) or scipy.sparse.csr_array
    sample_weight : ndarray of shape (n,), float64, optional
        Weights u, ones by default.

    Returns
    -------
    float
        The lower, the better.

    Examples
    --------
    >>> from daskcoreset.solvers.mixture.model import mixture_from_covariances
    >>> mixture = mixture_from_covariances("spherical", np.ones(1), np.zeros((1, 1)), np.ones(1))
    >>> round(bic(mixture, np.zeros((4, 1))), 6)
    10.124097

    References
    ----------
    Schwarz (1978), Estimating the Dimension of a Model.
    """
    total = X.shape[0] if sample_weight is None else float(sample_weight.sum())
    fit = -2.0 * log_likelihood(mixture, X, sample_weight)
    return float(fit + mixture.n_parameters * np.log(total))


def aic(mixture: Mixture, X: Points, sample_weight: FloatArray | None = None) -> float:
    r"""Akaike's information criterion, :math:`-2 \sum_i u_i \log p(x_i) + 2 f`.

    Parameters
    ----------
    mixture : Mixture
    X : ndarray of shape (n, d) or scipy.sparse.csr_array
    sample_weight : ndarray of shape (n,), float64, optional
        Weights u, ones by default; as in `bic`, their scale matters.

    Returns
    -------
    float
        The lower, the better.

    Examples
    --------
    >>> from daskcoreset.solvers.mixture.model import mixture_from_covariances
    >>> mixture = mixture_from_covariances("spherical", np.ones(1), np.zeros((1, 1)), np.ones(1))
    >>> round(aic(mixture, np.zeros((4, 1))), 6)
    11.351508

    References
    ----------
    Akaike (1974), A New Look at the Statistical Model Identification.
    """
    return -2.0 * log_likelihood(mixture, X, sample_weight) + 2.0 * mixture.n_parameters
