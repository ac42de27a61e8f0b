"""Scores of clusterings of weighted rows, by which a number of clusters is chosen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from daskcoreset.core.linalg import dense
from daskcoreset.core.typing import FloatArray, IndexArray, Points

# Rows whose distances to all rows are formed at a time: 20 MB for a coreset of 10,000.
_TILE = 256


def silhouettes(points: Points, weights: FloatArray, labels: Sequence[IndexArray]) -> list[float]:
    r"""Weighted mean silhouette of several clusterings of the same rows.

    A row stands for rows near it, not for copies of itself: its mean distance to its own cluster
    is that to the other rows of it, by weight. A cluster of one row counts as zero.

    Parameters
    ----------
    points : ndarray of shape (m, d) or csr_array
    weights : ndarray of shape (m,), float64
    labels : sequence of ndarray of shape (m,), int
        Of every clustering, from 0.

    Examples
    --------
    >>> rows = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> round(silhouettes(rows, np.ones(4), [np.array([0, 0, 1, 1])])[0], 3)
    0.9

    References
    ----------
    Rousseeuw (1987).
    """
    from sklearn.metrics import pairwise_distances

    sizes = [int(each.max()) + 1 for each in labels]
    starts = np.cumsum([0, *sizes])
    m = len(weights)
    belongs = np.zeros((m, int(starts[-1])))
    for start, each in zip(starts, labels, strict=False):
        belongs[np.arange(m), start + each] = weights
    totals = belongs.sum(axis=0)
    sums = np.zeros(len(labels))
    for first in range(0, m, _TILE):
        rows = np.arange(first, min(first + _TILE, m))
        distances = pairwise_distances(points[rows], points) @ belongs
        for i, each in enumerate(labels):
            part = slice(starts[i], starts[i + 1])
            own = each[rows], np.arange(len(rows))
            to_all, total = distances[:, part].T, totals[part, np.newaxis]
            others = totals[part][own[0]] - weights[rows]
            with np.errstate(divide="ignore", invalid="ignore"):
                means = to_all / total
                inside = to_all[own] / others
            means[own] = np.inf
            means[np.isnan(means)] = np.inf
            outside = means.min(axis=0)
            with np.errstate(divide="ignore", invalid="ignore"):
                values = (outside - inside) / np.maximum(inside, outside)
            alone = ~(others > 1e-12 * totals[part][own[0]]) | ~np.isfinite(values)
            sums[i] += weights[rows] @ np.where(alone, 0.0, values)
    return [float(each) for each in sums / weights.sum()]


def agreement(first: IndexArray, second: IndexArray, weights: FloatArray) -> float:
    """Return the adjusted Rand index of two clusterings of rows that stand for many each.

    Examples
    --------
    >>> agreement(np.array([0, 0, 1]), np.array([1, 1, 0]), np.ones(3))
    1.0

    References
    ----------
    Hubert and Arabie (1985), for pairs of rows drawn with replacement.
    """
    table = np.zeros((int(first.max()) + 1, int(second.max()) + 1))
    np.add.at(table, (first, second), weights)
    table /= weights.sum()
    both = float((table**2).sum())
    rows, columns = float((table.sum(axis=1) ** 2).sum()), float((table.sum(axis=0) ** 2).sum())
    chance, most = rows * columns, (rows + columns) / 2
    return 1.0 if most == chance else (both - chance) / (most - chance)


def bic(likelihood: float, n_parameters: int, weights: FloatArray) -> float:
    r"""Bayesian information criterion of rows that stand for more; lower is better.

    .. math::

        -2 L m / W + p \log m, \qquad m = \Big(\sum_i u_i\Big)^2 / \sum_i u_i^2

    That is the criterion of as many rows as the weighted ones are worth. With the total weight W in
    the place of m, a fit would be credited W / m times for what it gains by fitting the chance of
    the draw: of 800 rows for 20,000, a sixth of five components was chosen.

    Parameters
    ----------
    likelihood : float
        Weighted sum of log-densities, L.
    n_parameters : int
        p.
    weights : ndarray of shape (m,), float64

    Examples
    --------
    >>> round(bic(-100.0, 3, np.ones(50)), 3)  # 200 + 3 log 50
    211.736

    References
    ----------
    Schwarz (1978); the number of rows of Kish (1965).
    """
    total = float(weights.sum())
    rows = total**2 / float(weights @ weights)
    return float(-2.0 * likelihood * rows / total + n_parameters * np.log(rows))


def spherical_likelihood(
    points: Points, weights: FloatArray, centers: FloatArray, labels: IndexArray
) -> tuple[float, int]:
    r"""Weighted sum of log-densities of k-means as a mixture of equal spheres, and its parameters.

    References
    ----------
    Pelleg and Moore (2000), with :math:`k (d + 1)` parameters.
    """
    k, d = centers.shape
    total = float(weights.sum())
    gaps = dense(points) - centers[labels]
    spread = float(weights @ np.einsum("ij,ij->i", gaps, gaps)) / (total * d)
    shares = np.bincount(labels, weights, k) / total
    shares = shares[shares > 0]
    likelihood = total * float(shares @ np.log(shares))
    tiny = np.finfo(np.float64).tiny
    likelihood -= 0.5 * total * d * (1.0 + float(np.log(2.0 * np.pi * max(spread, tiny))))
    return likelihood, k * (d + 1)
