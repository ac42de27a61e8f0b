"""Hartigan's method: k-means that moves single rows, where Lloyd's steps have ended."""

from __future__ import annotations

import sys

import numpy as np

from daskcoreset.core.deadline import check_time
from daskcoreset.core.linalg import read_only
from daskcoreset.core.typing import FloatArray


def hartigan(
    points: FloatArray,
    weights: FloatArray,
    centers: FloatArray,
    *,
    max_iter: int,
    tol: float,
    verbose: int = 0,
    settled: bool = True,
) -> tuple[FloatArray, int]:
    r"""Move single rows between the cells of given centers as long as the cost falls.

    A row x of weight u costs its cell a, of weight :math:`n_a` and mean :math:`c_a`, and would
    cost another cell b

    .. math::

        \frac{n_a u}{n_a - u} |x - c_a|^2 \quad\text{and}\quad \frac{n_b u}{n_b + u} |x - c_b|^2,

    for the means follow the row. Lloyd's steps compare the distances alone: a rare category in
    one-hot form that shares a cell with a common one has no nearer center among those that are one
    category each, though it may cost a light cell a part of what it costs a heavy one. What
    Hartigan's steps leave as it is Lloyd's would leave, too, and not the other way round.

    A pass looks for rows by whose move the cells as they are would gain, out of cells that the
    pass before has changed or into these. Then it moves them one after another, those that still
    gain, to where they cost least. Where most rows will gain, the first pass tries all of them, and
    looks at each once.

    Parameters
    ----------
    points : ndarray of shape (m, d), float64
    weights : ndarray of shape (m,), float64
        Positive.
    centers : ndarray of shape (k, d), float64
    max_iter : int
        Passes at most.
    tol : float
        Share of the cost: the pass that gains no more is the last.
    verbose : int, default=0
        Whether every pass prints a line.
    settled : bool, default=True
        Whether Lloyd's steps have ended at `centers`, so that few rows gain. If not, the first pass
        goes through all rows, and does not look for those that gain: half of the work.

    Returns
    -------
    centers : ndarray of shape (k, d), float64
        Means of the cells, which cost less, or those given.
    n_iter : int
        Passes that moved rows.

    Examples
    --------
    Three categories in two cells: the light ones belong together, at no nearer distance.

    >>> rows, counts = np.eye(3), np.array([8.0, 2.0, 1.0])
    >>> start = np.array([[0.9, 0.0, 0.1], [0.0, 1.0, 0.0]])
    >>> hartigan(rows, counts, start, max_iter=9, tol=0.0)[0].round(3)
    array([[1.   , 0.   , 0.   ],
           [0.   , 0.667, 0.333]])

    References
    ----------
    Hartigan (1975), Clustering algorithms, chapter 4.
    Telgarsky and Vattani (2010), Hartigan's method: k-means clustering without Voronoi.
    """
    cells = _Cells(points, weights, centers)
    start = cost = cells.cost()
    cells.center()
    n_iter = 0
    while n_iter < max_iter:
        check_time("clusters were being fitted", "pass a smaller size")
        n_moved, gain = cells.improve(all_rows=not settled and n_iter == 0)
        if not n_moved:
            break
        n_iter += 1
        cost -= gain
        if verbose:
            sys.stdout.write(f"Pass {n_iter} over rows, {n_moved} moved, inertia {cost}.\n")
        if gain <= tol * cost:
            break
    cells.center()
    # Where rounding is all that is left to gain, centers stay as they are.
    return (cells.centers, n_iter) if cells.cost() < start else (centers, 0)


class _Cells:
    """Cells of weighted rows, and which of them have changed since rows were looked at."""

    def __init__(self, points: FloatArray, weights: FloatArray, centers: FloatArray) -> None:
        from daskcoreset.solvers import kmeans_numba as loops

        k = len(centers)
        self.points, self.weights = read_only(points), weights
        self.centers = np.array(centers, dtype=np.float64)
        self.labels = np.zeros(len(points), dtype=np.int64)
        loops.nearest_center(
            self.points, self.centers, 0, self.labels, np.full(len(points), np.inf)
        )
        self.mass = np.bincount(self.labels, weights, k).astype(np.float64)
        self.counts = np.bincount(self.labels, minlength=k)
        self.live = np.ones(k, dtype=np.bool_)

    def improve(self, *, all_rows: bool = False) -> tuple[int, float]:
        """Make a pass; return how many rows it moved, and by how much the cost fell."""
        from daskcoreset.solvers import hartigan_numba as loops

        state = self.labels, self.centers, self.mass, self.counts, self.live
        if all_rows:
            rows = np.arange(len(self.points))
        else:
            rows = loops.movable_rows(self.points, self.weights, *state)
        n_moved, gain = loops.move_rows(self.points, self.weights, rows, *state)
        return n_moved, gain

    def center(self) -> None:
        """Bring centers to the means of their cells; one of a cell without weight stays."""
        from daskcoreset.solvers import kmeans_numba as loops

        mass, shift = np.zeros(len(self.centers)), np.zeros(self.centers.shape)
        loops.cell_means(self.points, self.weights, self.labels, self.centers, mass, shift)
        used = mass > 0.0
        self.centers[used] += shift[used] / mass[used, np.newaxis]

    def cost(self) -> float:
        """Weighted squared distances of all rows to the centers of their cells."""
        from daskcoreset.solvers import kmeans_numba as loops

        distances = np.empty(len(self.points))
        loops.own_distances(self.points, self.labels, self.centers, distances)
        return float((self.weights * distances).sum())
