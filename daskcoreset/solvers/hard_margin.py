"""The hard margin, by the nearest point of a convex hull, or the nearest points of two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daskcoreset.core.deadline import check_time
from daskcoreset.core.linalg import one_thread
from daskcoreset.core.typing import FloatArray, IndexArray

# Length, as a share of the longest row, below which a vector counts as none.
ZERO = 1e-10

# Diagonal of a triangular factor, as a share of its largest, that counts as zero.
_DEPENDENT = 1e-13


@dataclass(frozen=True, eq=False)
class HardMargin:
    r"""A separator with the largest margin, and the evidence for it.

    Attributes
    ----------
    w : ndarray of shape (d,), float64
        Unit normal. Zero if the rows are not separable.
    intercept : float
        The rule is the sign of ``w @ x + intercept``. Zero through the origin.
    margin : float
        :math:`\rho = \min_i y_i (\langle w, x_i\rangle + b)`. Reached by `w` itself, rounding
        included.
    length : float
        :math:`|\sum_i a_i y_i x_i|` (with an intercept, half of it), which no margin can pass.
        ``margin / length`` is one but for rounding.
    dual : ndarray of shape (m,), float64
        Convex coefficients: not negative, with sum one. With an intercept, over each class.
    levels : ndarray of shape (1,) or (2,), float64
        Smallest :math:`y_i \langle w, x_i\rangle`. With an intercept, of the class +1 and of -1.
    """

    w: FloatArray
    intercept: float
    margin: float
    length: float
    dual: FloatArray
    levels: FloatArray

    @property
    def separable(self) -> bool:
        """Whether there is a margin. If not, `dual` is a combination of length about zero."""
        return self.margin > 0.0


@one_thread()
def hard_margin(
    points: Any, signs: Any = None, *, intercept: bool = False, tol: float = 1e-8
) -> HardMargin:
    r"""Find the separator with the largest margin.

    Its normal is the shortest vector of the hull of rows times labels. With an intercept, it
    joins the nearest points of the hulls of the two classes. This is not the same as a column of
    ones, which would shrink the intercept, too.

    Parameters
    ----------
    points : array-like of shape (m, d)
        m and d up to some thousands.
    signs : array-like of shape (m,), optional
        Labels +1 and -1. With an intercept, both are present. Default: all +1.
    intercept : bool, default=False
    tol : float, default=1e-8
        Relative gap between `margin` and `length` at which to stop. In double precision about
        :math:`10^{-15} R / \rho` can be reached, and usually is.

    Returns
    -------
    HardMargin

    Examples
    --------
    >>> found = hard_margin([[1.0, 1.0], [3.0, 0.0]])
    >>> found.w.round(6), round(found.margin, 6)
    (array([0.707107, 0.707107]), 1.414214)
    >>> hard_margin([[1.0], [-1.0]]).separable
    False
    >>> found = hard_margin([[4.0], [6.0], [9.0]], [-1, 1, 1], intercept=True)
    >>> found.w, found.intercept, found.margin
    (array([1.]), -5.0, 1.0)
    """
    points = np.asarray(points, dtype=np.float64)
    signs = np.ones(len(points)) if signs is None else np.asarray(signs, dtype=np.float64)
    groups = np.zeros(len(points), dtype=np.int64)
    center = np.zeros(points.shape[1])
    if intercept:
        groups = (signs < 0.0).astype(np.int64)
        # Moving all points moves no hull against the other, and a common offset costs digits.
        center = points.mean(axis=0)
    rows = (points - center) * signs[:, None]
    scale = float(np.abs(rows).max(initial=0.0)) or 1.0
    scaled = rows / scale
    longest = float(np.sqrt(np.einsum("ij,ij->i", scaled, scaled).max()))
    vector, dual = _shortest_vector(scaled, groups, min(tol, 1.0) / 100)
    length = float(np.linalg.norm(vector))
    w, levels = np.zeros(points.shape[1]), np.zeros(1 + intercept)
    if length > ZERO * longest:
        unit = vector / length
        reached = _smallest(rows @ unit, groups, len(levels))
        if reached.sum() > 0.0:
            w, levels = unit, reached
    # By the coefficients themselves, not by the vector they belong to: they are the result.
    upper = float(np.linalg.norm(dual @ scaled)) * scale
    margin, shift = float(levels.sum()) / len(levels), 0.0
    if intercept:
        offset = float(w @ center)
        shift = float(levels[1] - levels[0]) / 2 - offset
        levels = levels + np.array([1.0, -1.0]) * offset
    return HardMargin(w, shift, margin, upper / len(levels), dual, levels)


def _shortest_vector(
    rows: FloatArray, groups: IndexArray, tol: float
) -> tuple[FloatArray, FloatArray]:
    """Find the shortest vector of the sum of the hulls of groups of rows.

    Parameters
    ----------
    rows : ndarray of shape (m, d), float64
        Their length is about one: the longest row sets the scale of what counts as zero.
    groups : ndarray of shape (m,), int64
        Group of each row, from zero. No group is empty.
    tol : float
        Gap between the squared length and the sum of the smallest products of the groups with
        the vector, as a share of the former. By duality it is zero but for rounding.

    Returns
    -------
    vector : ndarray of shape (d,), float64
        Its length is below `ZERO` if the sum of hulls holds the origin.
    dual : ndarray of shape (m,), float64

    References
    ----------
    Wolfe (1976), Finding the nearest point in a polytope: "corrals" are the active rows.
    """
    scale = float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max(initial=0.0)))
    n_groups = int(groups.max()) + 1
    dual = _guess(rows, groups, n_groups)
    best: tuple[FloatArray, FloatArray, float] | None = None
    # Every set of active rows occurs once at most. The limit only guards against rounding.
    remaining_steps = 10 * (len(rows) + rows.shape[1]) + 100
    while True:
        remaining_steps -= 1
        dual, vector = _to_corral(rows, groups, dual)
        products, square = rows @ vector, float(vector @ vector)
        total = float(_smallest(products, groups, n_groups).sum())
        if best is not None and (square >= float(best[0] @ best[0]) or not remaining_steps):
            # No progress is possible in this arithmetic: the sharper certificate wins.
            return (vector, dual) if total > best[2] else best[:2]
        best = vector, dual, total
        if square <= (ZERO * scale) ** 2 or total >= square * (1.0 - tol):
            return vector, dual
        active = dual > 0.0
        # Rows of a corral have one product each group, so that others violate by this much.
        reached = np.array([products[active & (groups == g)].mean() for g in range(n_groups)])
        violation = np.where(active, -np.inf, reached[groups] - products)
        worst = int(violation.argmax())
        if violation[worst] <= 0.0:
            return vector, dual
        # The worst row joins the corral, with the least coefficient there is.
        dual = dual.copy()
        dual[worst] = np.finfo(np.float64).tiny


def _smallest(products: FloatArray, groups: IndexArray, n_groups: int) -> FloatArray:
    return np.array([products[groups == g].min() for g in range(n_groups)])


def _guess(rows: FloatArray, groups: IndexArray, n_groups: int) -> FloatArray:
    r"""Coefficients by non-negative least squares, as Lawson and Hanson (1974, chapter 23).

    Minimising :math:`|Z^T a|^2 + c^2 \sum_g (\sum_{i \in g} a_i - 1)^2` over a >= 0 gives a
    multiple of the answer for one group, and nearly so for more. The coefficients of every group
    are brought to sum one. A group without any gets its first row.
    """
    from scipy.optimize import nnls

    penalty = 1.0 if n_groups == 1 else 10.0
    of_group = np.equal.outer(np.arange(n_groups), groups)
    matrix = np.concatenate([rows.T, penalty * of_group])
    target = np.concatenate([np.zeros(rows.shape[1]), np.full(n_groups, penalty)])
    check_time("a hard-margin problem was being solved", "pass fewer rows or columns")
    try:
        guess: FloatArray = nnls(matrix, target)[0]
    except RuntimeError:  # its limit of steps; what follows gets there from anywhere
        guess = np.zeros(len(rows))
    sums = np.bincount(groups, weights=guess)
    for g in np.flatnonzero(~(sums > 0.0)):
        guess[np.flatnonzero(groups == g)[0]] = 1.0
        sums[g] = 1.0
    return guess / sums[groups]


def _to_corral(
    rows: FloatArray, groups: IndexArray, dual: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Wolfe's minor cycle: drop rows until the affine minimiser lies within the hulls."""
    active = np.flatnonzero(dual > 0.0)
    current = dual[active]
    while True:
        check_time("a hard-margin problem was being solved", "pass fewer rows or columns")
        affine, vector = _affine_minimiser(rows[active], groups[active], current)
        if affine.min() > 0.0:
            break
        falling = affine <= 0.0
        gap = current - affine
        # A row that stands at zero and is to stay there sets the step: none.
        shares = np.divide(current, gap, out=np.zeros_like(gap), where=gap > 0.0)
        step = float(shares[falling].min())
        current = current + step * (affine - current)
        # The one that sets the step leaves, even where rounding leaves a little.
        gone = falling & (current <= 4.0 * np.finfo(np.float64).eps * step)
        ratio = np.where(falling, current, np.inf)
        gone[int(ratio.argmin())] = True
        active, current = active[~gone], current[~gone]
    result = np.zeros(len(rows))
    result[active] = affine
    return result, vector


def _affine_minimiser(
    rows: FloatArray, groups: IndexArray, current: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Shortest vector of the sum of affine hulls, with its coefficients.

    It is written as one row of each group plus differences to it. The residual of least squares is
    taken twice ("twice is enough"). The second time, its error is relative to the short result and
    not to the long rows.
    """
    from scipy.linalg import solve_triangular

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
        q, r, columns = _independent_qr(differences)
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


def _independent_qr(columns: FloatArray) -> tuple[FloatArray, FloatArray, IndexArray]:
    """QR of a largest independent set of columns."""
    from scipy.linalg import qr

    q, r, order = qr(columns, mode="economic", pivoting=True, check_finite=False)
    sizes = np.abs(np.diag(r))
    rank = int((sizes > _DEPENDENT * sizes[0]).sum())
    return q[:, :rank], r[:rank, :rank], order[:rank]
