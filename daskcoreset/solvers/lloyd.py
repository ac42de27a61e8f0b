"""scikit-learn's KMeans on weighted rows, kept safe from offsets and from sampling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans

from daskcoreset.core.errors import InvalidInputError

if TYPE_CHECKING:
    from daskcoreset.core.typing import AnyArray, FloatArray, Points

__all__ = ["Centers", "check_init", "solve"]


class Centers(NamedTuple):
    """A solution: centers of shape (k, d) in float64, and the steps it took."""

    centers: FloatArray
    n_iter: int


def check_init(init: Any, n_clusters: int, n_features: int) -> None:
    """Refuse initial centers that do not fit, before the data are read for long."""
    shape = np.shape(init)
    if shape != (n_clusters, n_features):
        raise InvalidInputError(
            f"init has shape {shape}; pass {n_clusters} centers of {n_features} features, one "
            f"for each of n_clusters."
        )


def solve(
    points: Points,
    weights: FloatArray,
    n_clusters: int,
    *,
    init: Any,
    n_init: int,
    max_iter: int,
    tol: float,
    seed: int,
) -> Centers:
    """Run k-means on weighted rows.

    All is done in float64, and dense rows are moved to their weighted mean before anything is
    squared: scikit-learn takes distances from products, of which a large offset, or clusters far
    apart, would leave nothing in float32. All rows are divided by a power
    of two, which changes no digit, for squares must not overflow. scikit-learn measures `tol`
    by the variance of the rows as they are; that of a coreset is larger than that of the
    data, for its far rows are many and light, so `tol` is put in proportion.

    Parameters
    ----------
    points : ndarray of shape (m, d) or csr_array
        Distinct rows, at least k.
    weights : ndarray of shape (m,), float64
        Positive.
    n_clusters, init, n_init, max_iter, tol
        As in `CoresetKMeans`; `n_init` a number.
    seed : int
        Below 2**32.

    Returns
    -------
    Centers

    Examples
    --------
    >>> rows = np.float32(1e6) + np.array([[0.0], [1.0], [9.0]], dtype=np.float32)
    >>> options = {"init": "k-means++", "n_init": 1, "max_iter": 10, "tol": 1e-4, "seed": 0}
    >>> found = solve(rows, np.array([1.0, 3.0, 1.0]), 2, **options)
    >>> sorted(round(float(center) - 1e6, 3) for center in found.centers[:, 0])
    [0.75, 9.0]
    """
    shift: Any = 0.0
    if isinstance(points, np.ndarray):
        shift, points, scale, ratio = _centered(points, weights)
        tol *= ratio
    else:
        scale = _power_of_two(points.data)
        points = points.astype(np.float64) / scale
    if callable(init):
        init = _Shifted(init, shift, scale)
    elif not isinstance(init, str):
        init, n_init = (np.asarray(init, dtype=np.float64) - shift) / scale, 1
    model = KMeans(
        n_clusters,
        init=init,
        n_init=n_init,
        max_iter=max_iter,
        tol=tol,
        random_state=seed,
        copy_x=False,
    ).fit(points, sample_weight=weights)
    centers: FloatArray = model.cluster_centers_.astype(np.float64) * scale + shift
    return Centers(centers, int(model.n_iter_))


def _centered(points: AnyArray, weights: FloatArray) -> tuple[FloatArray, AnyArray, float, float]:
    mean: FloatArray = np.average(points, axis=0, weights=weights)
    moved = points - mean
    scale = _power_of_two(moved)
    moved /= scale
    variance = float(moved.var(axis=0).mean())
    weighted = float(np.average(np.square(moved), axis=0, weights=weights).mean())
    return mean, moved, scale, weighted / variance if variance else 1.0


def _power_of_two(values: AnyArray) -> float:
    """Return the power of two next above the largest value."""
    return float(2.0 ** np.frexp(np.float64(abs(values).max(initial=0.0)))[1])


class _Shifted:
    """Calls a user's `init` with the rows where the user knows them to be."""

    def __init__(self, init: Any, shift: Any, scale: float) -> None:
        self.init, self.shift, self.scale = init, shift, scale

    def __call__(self, X: Any, n_clusters: int, random_state: Any) -> Any:
        rows = X * self.scale
        rows = rows + self.shift if isinstance(X, np.ndarray) else rows
        found = self.init(rows, n_clusters, random_state=random_state)
        return (found - self.shift) / self.scale
