r"""The shortest vector of a sum of convex hulls: what every hard margin comes down to.

The separator through the origin with the largest margin on :math:`z_i = y_i x_i` points along
the shortest vector of their convex hull; with a bias it points along the shortest vector
between the hulls of the two classes, which is the shortest one of the sum of the hull of
:math:`\{x_i : y_i = 1\}` and that of :math:`\{-x_i : y_i = -1\}`. Wolfe's active-set method
finds either exactly, in finitely many steps. Here it works on any number of groups of rows
whose hulls are added.

Duals of a quadratic programme solver with default tolerances would not do: the ratio of what
is certified from both sides is the promise of a core set, and with :math:`R/\rho = 10^4` a
direction that is right to 1e-8 gives a margin that is wrong by 1e-4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import qr, solve_triangular
from scipy.optimize import nnls

if TYPE_CHECKING:
    from daskcoreset.core.typing import FloatArray, IndexArray

__all__ = ["ZERO", "Shortest", "shortest_vector"]

ZERO = 1e-10
"""Length, as a share of the longest row, below which a vector counts as none."""

_DEPENDENT = 1e-13
"""Diagonal of a triangular factor, as a share of its largest, that counts as zero."""


@dataclass(frozen=True, eq=False)
class Shortest:
    """The shortest vector of a sum of convex hulls.

    Attributes
    ----------
    vector : ndarray of shape (d,), float64
    dual : ndarray of shape (m,), float64
        Coefficients of the rows, not negative, with sum one over each group.
    levels : ndarray of shape (n_groups,), float64
        Smallest product of `vector` with a row of each group. By duality their sum is at most
        ``vector @ vector``, and equal to it but for rounding.
    """

    vector: FloatArray
    dual: FloatArray
    levels: FloatArray


def shortest_vector(
    rows: FloatArray,
    groups: IndexArray,
    *,
    start: FloatArray | None = None,
    tol: float = 1e-10,
) -> Shortest:
    """Find the shortest vector of the sum of the hulls of groups of rows.

    Parameters
    ----------
    rows : ndarray of shape (m, d), float64
        Of length about one: the longest row sets the scale of what counts as zero.
    groups : ndarray of shape (m,), int64
        Group of each row, from zero; no group is empty.
    start : ndarray of shape (m,) or None, default=None
        Coefficients to start from, such as those of a smaller problem; scaled to sum one in
        every group.
    tol : float, default=1e-10
        Gap between the squared length and the sum of levels, as a share of the former.

    Returns
    -------
    Shortest
        Of length below `ZERO` where the sum of hulls holds the origin.

    Examples
    --------
    >>> found = shortest_vector(np.array([[0.0, 1.0], [1.0, 0.0]]), np.zeros(2, dtype=int))
    >>> found.vector, found.dual
    (array([0.5, 0.5]), array([0.5, 0.5]))

    References
    ----------
    Wolfe (1976), Finding the nearest point in a polytope: "corrals" are the sets `active`.
    """
    scale = float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max(initial=0.0)))
    n_groups = int(groups.max()) + 1
    dual = _scaled(_guess(rows, groups, n_groups) if start is None else start, groups)
    best: Shortest | None = None
    # Every set of active rows occurs once at most; the limit only guards against rounding.
    left = 10 * (len(rows) + rows.shape[1]) + 100
    while True:
        left -= 1
        dual, vector = _to_corral(rows, groups, dual)
        products = rows @ vector
        levels = _smallest(products, groups, n_groups)
        found = Shortest(vector, dual, levels)
        square = float(vector @ vector)
        if best is not None and (square >= float(best.vector @ best.vector) or not left):
            # No progress is possible in this arithmetic: the sharper certificate wins.
            return found if levels.sum() > best.levels.sum() else best
        best = found
        if square <= (ZERO * scale) ** 2 or levels.sum() >= square * (1.0 - tol):
            return found
        held = dual > 0.0
        # Rows of a corral have one product each group, so that others violate by this much.
        reached = np.array([products[held & (groups == g)].mean() for g in range(n_groups)])
        violation = np.where(held, -np.inf, reached[groups] - products)
        worst = int(violation.argmax())
        if violation[worst] <= 0.0:
            return found
        dual = dual.copy()
        dual[worst] = np.finfo(np.float64).tiny


def _guess(rows: FloatArray, groups: IndexArray, n_groups: int) -> FloatArray:
    r"""Coefficients by non-negative least squares, as Lawson and Hanson (1974, chapter 23).

    Minimising :math:`|Z^T a|^2 + c^2 \sum_g (\sum_{i \in g} a_i - 1)^2` over a >= 0 gives a
    multiple of the answer for one group, and nearly so for more.
    """
    penalty = 1.0 if n_groups == 1 else 10.0
    of_group = np.equal.outer(np.arange(n_groups), groups)
    matrix = np.concatenate([rows.T, penalty * of_group])
    target = np.concatenate([np.zeros(rows.shape[1]), np.full(n_groups, penalty)])
    try:
        guess: FloatArray = nnls(matrix, target)[0]
    except RuntimeError:  # its limit of steps; what follows gets there from anywhere
        return np.zeros(len(rows))
    return guess


def _scaled(start: FloatArray, groups: IndexArray) -> FloatArray:
    dual = np.maximum(np.asarray(start, dtype=np.float64), 0.0)
    sums = np.bincount(groups, weights=dual)
    for g in np.flatnonzero(~(sums > 0.0)):
        dual[np.flatnonzero(groups == g)[0]] = 1.0
        sums[g] = 1.0
    scaled: FloatArray = dual / sums[groups]
    return scaled


def _smallest(products: FloatArray, groups: IndexArray, n_groups: int) -> FloatArray:
    return np.array([products[groups == g].min() for g in range(n_groups)])


def _to_corral(
    rows: FloatArray, groups: IndexArray, dual: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Wolfe's minor cycle: drop rows until the affine minimiser lies within the hulls."""
    active = np.flatnonzero(dual > 0.0)
    current = dual[active]
    while True:
        wanted, vector = _affine_minimiser(rows[active], groups[active], current)
        if wanted.min() > 0.0:
            break
        falling = wanted <= 0.0
        gap = current - wanted
        # A row that stands at zero and is to stay there sets the step: none.
        shares = np.divide(current, gap, out=np.zeros_like(gap), where=gap > 0.0)
        step = float(shares[falling].min())
        current = current + step * (wanted - current)
        # The one that sets the step leaves, even where rounding says that a little is left.
        gone = falling & (current <= 4.0 * np.finfo(np.float64).eps * step)
        ratio = np.where(falling, dual[active] * 0.0 + current, np.inf)
        gone[int(ratio.argmin())] = True
        active, current = active[~gone], current[~gone]
    result = np.zeros(len(rows))
    result[active] = wanted
    return result, vector


def _affine_minimiser(
    rows: FloatArray, groups: IndexArray, current: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Shortest vector of the sum of affine hulls, with its coefficients.

    Written as one row of each group plus differences to it, from which the residual of least
    squares is taken twice: the second time its error is relative to the short result, no more
    to the long rows ("twice is enough").
    """
    n_groups = int(groups.max()) + 1
    # The row with the largest share is the reference of its group.
    order = np.lexsort((-current, groups))
    first = order[np.searchsorted(groups[order], np.arange(n_groups))]
    others = np.ones(len(rows), dtype=bool)
    others[first] = False
    vector = rows[first].sum(axis=0)
    coefficients = np.zeros(len(rows))
    if others.any():
        differences = (rows[others] - rows[first[groups[others]]]).T
        q, r, columns = _factor(differences)
        moved = np.zeros(len(columns))
        for _ in range(2):
            part = q.T @ vector
            vector = vector - q @ part
            moved -= solve_triangular(r, part)
        within = np.zeros(differences.shape[1])
        within[columns] = moved
        coefficients[others] = within
    coefficients[first] = 1.0 - np.bincount(groups, weights=coefficients, minlength=n_groups)
    return coefficients, vector


def _factor(columns: FloatArray) -> tuple[FloatArray, FloatArray, IndexArray]:
    """QR of independent columns; of dependent ones a largest independent set is taken."""
    n = columns.shape[1]
    if n <= columns.shape[0]:
        q, r = qr(columns, mode="economic", check_finite=False)
        sizes = np.abs(np.diag(r))
        if sizes.min() > _DEPENDENT * sizes.max():
            return q, r, np.arange(n)
    q, r, order = qr(columns, mode="economic", pivoting=True, check_finite=False)
    sizes = np.abs(np.diag(r))
    rank = int((sizes > _DEPENDENT * sizes[0]).sum())
    return q[:, :rank], r[:rank, :rank], order[:rank]
