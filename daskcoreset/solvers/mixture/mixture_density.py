r"""Densities of Gaussian mixtures, one block of rows at a time.

Functions take a block of rows and return one value, or one row, for each of them; what
they hold beside that is a tile of a few MiB. A dask array is scored block by block:
``X.map_blocks(partial(score_samples, mixture), drop_axis=1, dtype="f8")``.

Differences to the means are formed before they are multiplied: no digits are lost to a
common offset, nor to components that are narrow and far apart.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.solvers.mixture.model import Mixture
from daskcoreset.core.typing import FloatArray, IndexArray, Points

__all__ = [
    "assign",
    "groups",
    "log_normalizer",
    "log_prob",
    "posterior",
    "responsibilities",
    "score_samples",
    "tiles",
]

_TILE_NUMBERS = 2**18
"""Numbers of a temporary, 2 MiB: n x k x d differences are never formed at once."""

_LOG_2PI = float(np.log(2.0 * np.pi))


def log_prob(mixture: Mixture, X: Points) -> FloatArray:
    r"""Log-density of every row under every component, :math:`\log \mathcal N(x; \mu_k, \Sigma_k)`.

    Parameters
    ----------
    mixture : Mixture
    X : ndarray of shape (n, d) or scipy.sparse.csr_array
        Finite rows of a block, float32 or float64.

    Returns
    -------
    ndarray of shape (n, k), float64
        Without the component weights.

    Examples
    --------
    >>> from daskcoreset.solvers.mixture.model import mixture_from_covariances
    >>> mixture = mixture_from_covariances("tied", np.full(2, 0.5), np.eye(2), np.eye(2))
    >>> log_prob(mixture, np.eye(2)[:1]).round(6)
    array([[-1.837877, -2.837877]])
    """
    out = np.empty((X.shape[0], len(mixture.means)))
    for rows, tile in tiles(X, len(mixture.means)):
        out[rows] = _component_densities(mixture, tile).T
    return out


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
