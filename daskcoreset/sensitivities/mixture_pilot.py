"""A pilot mixture of candidates: leverages of rows, and derivatives of their likelihood."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daskcoreset.core.block import Block
from daskcoreset.core.linalg import dense, dense_rows, rows_at
from daskcoreset.core.moments import moments_of
from daskcoreset.core.typing import FloatArray, IndexArray
from daskcoreset.errors import InvalidInputError
from daskcoreset.solvers.kmeans import Clusters, assign
from daskcoreset.solvers.mixture.em import expectation, maximisation
from daskcoreset.solvers.mixture.model import (
    CovarianceType,
    MixtureModel,
    posterior,
    squared_lengths,
    whitened,
)

# Candidates that the pilot is fitted to: gains are the same with all 20,000 of them.
_PILOT_ROWS = 3000

# The same for every number in the parameters of the pilot. A pilot with covariances in full that
# has about as many rows as parameters fits the noise of these rows, and leverages follow it.
_ROWS_PER_NUMBER = 4

# Numbers in them at most, 32 MiB.
PILOT_NUMBERS = 2**22

# Steps of EM: gains are the same with ten.
_PILOT_STEPS = 5

# Candidates below which a pilot is rougher, as in nodes of trees, which are drawn from once more:
# of 1,500 rows where its kind needs no more, in two steps, in 3/4 of the time of a stream. Mixtures
# on the rows were as good on six sets; errors of likelihoods fell on four and rose on two. Without
# a pilot in nodes they were up to twice as large.
FEW_CANDIDATES = 10_000
_PILOT_ROWS_OF_FEW = 1500
_PILOT_STEPS_OF_FEW = 2

# Added to the variances of the pilot, in those of the columns.
_PILOT_REGULARISATION = 1e-3

# Where standardised gaps are cut: the fourth powers are added up.
_LARGEST_GAP = 1e50


def leverages(mixture: MixtureModel, tile: FloatArray) -> FloatArray:
    r"""Squared lengths of the derivatives of the log-density, in the information of the mixture.

    Parameters
    ----------
    mixture : MixtureModel
        Its type is "full" or "diag".
    tile : ndarray of shape (n, d), float64

    Returns
    -------
    ndarray of shape (n,), float64
        With responsibilities :math:`r_k` and :math:`z_k = (x - \mu_k) U_k`

        .. math:: \ell(x) = \sum_k \frac{r_k^2}{\pi_k}
                  \Bigl(1 + |z_k|^2 + \tfrac12 |z_k z_k^T - I|_F^2\Bigr),

        in the information of rows whose components are known, which is the sum of those of the
        weights, the means and the covariances. For "diag" the last norm is of the diagonal.

    Examples
    --------
    >>> from daskcoreset.solvers.mixture.model import mixture_from_covariances
    >>> standard = mixture_from_covariances(
    ...     "full", np.ones(1), np.zeros((1, 1)), np.ones((1, 1, 1))
    ... )
    >>> leverages(standard, np.array([[0.0], [1.0], [3.0]]))
    array([ 1.5,  2. , 42. ])
    """
    d = mixture.means.shape[1]
    lengths = squared_lengths(mixture, tile)
    spread = np.empty_like(lengths)
    if mixture.covariance_type == "diag":
        with np.errstate(over="ignore", invalid="ignore"):
            for out, gaps in zip(spread, whitened(mixture, tile), strict=True):
                squares = np.square(np.clip(gaps, -_LARGEST_GAP, _LARGEST_GAP))
                squares -= 1.0
                np.einsum("ri,ri->r", squares, squares, out=out)
    shares = posterior(mixture, lengths)[1]
    np.square(shares, out=shares)
    shares /= np.maximum(mixture.weights, np.finfo(np.float64).tiny)[:, np.newaxis]
    np.minimum(lengths, d * _LARGEST_GAP**2, out=lengths)
    if mixture.covariance_type == "full":
        spread = lengths * lengths - 2.0 * lengths + d
    found: FloatArray = np.einsum("kr,kr->r", shares, 1.0 + lengths + 0.5 * spread)
    return found


def count_derivatives(kind: CovarianceType, n_components: int, n_features: int) -> int:
    """Return the length of the `derivatives` of a row.

    Examples
    --------
    >>> count_derivatives("full", 1, 3), count_derivatives("diag", 2, 3)
    (10, 14)
    """
    d = n_features
    return n_components * (1 + d + (d * (d + 1) // 2 if kind == "full" else d))


def derivatives(mixture: MixtureModel, tile: FloatArray) -> FloatArray:
    r"""Return derivatives of the log-density of rows, in units in which the information is one.

    Parameters
    ----------
    mixture : MixtureModel
        Its type is "full" or "diag".
    tile : ndarray of shape (n, d), float64

    Returns
    -------
    ndarray of shape (n, c), float64
        For every component :math:`r_k / \sqrt{\pi_k}` times one, :math:`z_k`,
        :math:`(z_k^2 - 1) / \sqrt 2` and, for "full", the products of different :math:`z_k`. The
        sums of their squares are the `leverages`.

    Examples
    --------
    >>> from daskcoreset.solvers.mixture.model import mixture_from_covariances
    >>> standard = mixture_from_covariances("diag", np.ones(1), np.zeros((1, 1)), np.ones((1, 1)))
    >>> derivatives(standard, np.array([[1.0], [3.0]])).round(3)
    array([[1.   , 1.   , 0.   ],
           [1.   , 3.   , 5.657]])
    """
    k, d = mixture.means.shape
    pairs = np.triu_indices(d, 1)
    of_one = count_derivatives(mixture.covariance_type, 1, d)
    found = np.empty((len(tile), k, of_one))
    shares = posterior(mixture, squared_lengths(mixture, tile))[1]
    shares /= np.sqrt(np.maximum(mixture.weights, np.finfo(np.float64).tiny))[:, np.newaxis]
    for j, gaps in enumerate(whitened(mixture, tile)):
        found[:, j, 0] = 1.0
        found[:, j, 1 : d + 1] = gaps
        found[:, j, d + 1 : 2 * d + 1] = (gaps**2 - 1.0) / np.sqrt(2.0)
        if mixture.covariance_type == "full":
            found[:, j, 2 * d + 1 :] = gaps[:, pairs[0]] * gaps[:, pairs[1]]
    found *= shares.T[:, :, np.newaxis]
    return found.reshape(len(tile), -1)


class StandardisedPilot(NamedTuple):
    """A rough mixture of rows in columns of mean zero and variance one.

    Attributes
    ----------
    mixture : MixtureModel
    mean, scale : ndarray of shape (d,), float64
        Mean and scale of the columns.
    """

    mixture: MixtureModel
    mean: FloatArray
    scale: FloatArray

    def standardised(self, rows: Block, part: slice | IndexArray) -> FloatArray:
        """Return some rows, dense, in these columns."""
        points: Any = rows.points
        standardised: FloatArray = (dense(points[part]) - self.mean) / self.scale
        return standardised


def plan_pilot(n_candidates: int, k: int, d: int) -> tuple[CovarianceType, int] | None:
    """Return the kind of the pilot, and to how many rows it is fitted. None if rows are too few.

    Examples
    --------
    >>> plan_pilot(20_000, 8, 10), plan_pilot(20_000, 10, 20), plan_pilot(100, 10, 20)
    (('full', 3000), ('diag', 3000), None)
    """
    n_numbers = k * d * (d + 3) // 2
    wanted = _PILOT_ROWS
    if n_candidates < FEW_CANDIDATES:
        in_full = _ROWS_PER_NUMBER * n_numbers
        wanted = max(_PILOT_ROWS_OF_FEW, in_full if in_full <= _PILOT_ROWS else 0)
    n_pilot = min(n_candidates, max(wanted, _ROWS_PER_NUMBER * k * d), PILOT_NUMBERS // d)
    if 2 * k * d > n_pilot:
        return None
    return ("full" if _ROWS_PER_NUMBER * n_numbers <= n_pilot else "diag"), n_pilot


def pilot_of(rows: Block, first: FloatArray, summary: Clusters) -> StandardisedPilot | None:
    """Fit a mixture roughly to some candidates. None where they are too few, or it is singular."""
    plan = plan_pilot(len(rows), *summary.centers.shape)
    if plan is None:
        return None
    kind, n_pilot = plan
    few = len(rows) < FEW_CANDIDATES
    weights = rows.weights / first
    moments = moments_of(rows.points, weights)
    scale = np.sqrt(moments.m2 / moments.weight)
    scale[scale == 0.0] = 1.0
    # Their order may be periodic, and their number is all that is known of them here.
    positions = np.sort(np.random.default_rng(0).permutation(len(rows))[:n_pilot])
    some = dense_rows(rows_at(rows.points, positions))
    labels = assign(some, summary.centers)[0]
    centred = (some - moments.mean) / scale
    try:
        n_steps = _PILOT_STEPS_OF_FEW if few else _PILOT_STEPS
        mixture = _pilot(centred, weights[positions], labels, kind, n_steps)
    except InvalidInputError:  # it is singular to rounding
        return None
    return StandardisedPilot(mixture, moments.mean, scale)


def _pilot(
    points: FloatArray,
    weights: FloatArray,
    labels: IndexArray,
    kind: CovarianceType,
    n_steps: int,
) -> MixtureModel:
    """Fit a mixture roughly, from the clusters in which rows lie."""
    _, codes = np.unique(labels, return_inverse=True)
    shares = np.zeros((codes.max() + 1, len(points)))
    shares[codes, np.arange(len(points))] = weights
    mixture = maximisation(points, shares, kind, None, _PILOT_REGULARISATION)
    for _ in range(n_steps):
        shares = expectation(mixture, points, weights)[1]
        mixture = maximisation(points, shares, kind, mixture, _PILOT_REGULARISATION)
    return mixture
