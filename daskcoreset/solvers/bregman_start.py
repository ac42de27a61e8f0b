"""What Bregman clustering starts from: checked rows and seeds."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskcoreset.solvers.divergences import Divergence, resolve_divergence
from daskcoreset.core.tiles import (dense, tiles)
from daskcoreset.core.errors import CoresetWarning, InvalidInputError, InvalidTypeError
from daskcoreset.core.sampling import draw_with_replacement
from daskcoreset.core.typing import FloatArray, Points

__all__ = ["Rows", "bregman_seeds", "check_count", "check_tolerance", "prepare"]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to be clustered.

    Attributes
    ----------
    points : ndarray of shape (n, d), float64
        Inside the domain; less `origin`.
    weights : ndarray of shape (n,), float64
        Positive.
    origin : ndarray of shape (d,), float64
        Weighted mean of the rows where the divergence allows a shift, else zero: sums of
        rows with a large common offset keep their digits.
    divergence : Divergence
        With nothing left to be estimated.
    """

    points: FloatArray
    weights: FloatArray
    origin: FloatArray
    divergence: Divergence

    def starting_centers(self, init: Any, n_clusters: int) -> FloatArray:
        """Centers that the caller states, checked, less `origin`."""
        centers = np.array(init, dtype=np.float64)
        shape = (n_clusters, self.points.shape[1])
        if centers.shape != shape:
            raise InvalidInputError(
                f"init has shape {centers.shape}; pass {shape[0]} centers of {shape[1]} columns."
            )
        problem = self.divergence.problem(centers, "init")
        if problem is not None:
            raise problem.error(0)
        return np.asarray(centers - self.origin)


def prepare(
    points: Points, n_clusters: int, divergence: str | Divergence, sample_weight: Any
) -> Rows:
    """Check what is to be clustered, and bring it to float64.

    Rows of weight zero are left out: they have no say in the centers.

    Raises
    ------
    InvalidInputError
        If a row lies outside the domain of the divergence, weights are not finite,
        non-negative and positive in total, there are fewer rows than clusters, or the
        covariance that a Mahalanobis distance needs is singular.
    """
    check_count("n_clusters", n_clusters)
    if getattr(points, "ndim", None) != 2:
        raise InvalidInputError(
            f"points has shape {np.shape(points)}; pass rows, of shape (n_rows, n_columns)."
        )
    rows = dense(points)
    weights = _as_weights(sample_weight, len(rows))
    rows, weights = rows[weights > 0], weights[weights > 0]  # always a copy
    chosen = resolve_divergence(divergence)
    problem = chosen.problem(points, "points")
    if problem is not None:
        raise problem.error(0)
    if len(rows) < n_clusters:
        raise InvalidInputError(
            f"n_clusters is {n_clusters} but points has {len(rows)} rows of positive weight; "
            f"pass a smaller n_clusters."
        )
    origin = np.zeros(rows.shape[1])
    if chosen.translation_invariant:
        # In two steps: the first mean is off by the rounding of large sums, the second is not.
        origin = _mean(rows, weights)
        origin += _mean(rows - origin, weights)
        rows -= origin
    return Rows(rows, weights, origin, chosen.fitted(rows, weights))


def bregman_seeds(rows: Rows, n_clusters: int, rng: np.random.Generator) -> FloatArray:
    r"""Seeds in the manner of greedy k-means++, by the divergence.

    The first seed is drawn by weight. Each further one is the best of :math:`2 +
    \lfloor \ln k \rfloor` rows that are drawn in proportion to :math:`u(x)\, d(x, c(x))`,
    with c(x) the seed that is nearest so far; the best leaves the smallest cost.

    Parameters
    ----------
    rows : Rows
    n_clusters : int
        k, at most the number of rows.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (k, d), float64
        Rows of ``rows.points``. With fewer than k distinct rows some repeat.

    Warns
    -----
    CoresetWarning
        If there are fewer distinct rows than clusters.

    Examples
    --------
    >>> rows = prepare(np.array([[1.0], [1.0], [9.0]]), 2, "kl", None)
    >>> np.sort(bregman_seeds(rows, 2, np.random.default_rng(0)), axis=0).ravel()
    array([1., 9.])

    References
    ----------
    Arthur and Vassilvitskii (2007), k-means++; Nock, Luosto and Kivinen (2008), Mixed
    Bregman Clustering with Approximation Guarantees, for other divergences.
    """
    n_candidates = 2 + int(math.log(n_clusters))
    taken = [int(draw_with_replacement(rows.weights, 1, rng)[0])]
    potential = _potentials(rows, rows.points[taken])[:, 0]
    while len(taken) < n_clusters:
        if not potential.sum() > 0:
            warnings.warn(
                f"points has {len(taken)} distinct rows where n_clusters is {n_clusters}: the "
                f"other centers repeat; pass a smaller n_clusters.",
                CoresetWarning,
                stacklevel=5,
            )
            rest = draw_with_replacement(rows.weights, n_clusters - len(taken), rng)
            taken.extend(rest.tolist())
            break
        candidates = draw_with_replacement(potential, n_candidates, rng)
        left = np.minimum(_potentials(rows, rows.points[candidates]), potential[:, None])
        best = int(left.sum(axis=0).argmin())
        taken.append(int(candidates[best]))
        potential = left[:, best]
    return rows.points[taken]


def check_count(name: str, value: Any) -> None:
    """Raise unless `value` is a positive integer."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InvalidTypeError(f"{name} must be an int, got {value!r}; pass a positive int.")
    if value < 1:
        raise InvalidInputError(f"{name} must be at least 1, got {value}; pass a positive int.")


def check_tolerance(tol: float) -> None:
    """Raise unless `tol` is a finite number that is not negative."""
    if not 0 <= tol < math.inf:
        raise InvalidInputError(
            f"tol must be at least 0 and finite, got {tol}; pass such a number."
        )


def _as_weights(sample_weight: Any, n_rows: int) -> FloatArray:
    if sample_weight is None:
        return np.ones(n_rows)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_rows,):
        raise InvalidInputError(
            f"sample_weight has shape {weights.shape} beside {n_rows} rows; pass one weight for "
            f"every row."
        )
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise InvalidInputError(
            f"sample_weight is {weights[bad[0]]} at row {bad[0]}; weights must be finite and not "
            f"negative."
        )
    return weights


def _mean(rows: FloatArray, weights: FloatArray) -> FloatArray:
    return np.asarray(np.average(rows, axis=0, weights=weights))


def _potentials(rows: Rows, centers: FloatArray) -> FloatArray:
    out = np.empty((len(rows.points), len(centers)))
    for part in tiles(len(rows.points), rows.points.shape[1]):
        out[part] = rows.divergence.divergence(rows.points[part], centers)
    out *= rows.weights[:, None]
    return out
