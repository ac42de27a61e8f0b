"""The nearest point of a convex hull, and the hard margin that it gives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daskcoreset.core.deadline import check_time
from daskcoreset.core.linalg import one_thread
from daskcoreset.core.typing import FloatArray, IndexArray

# Length, as a share of the longest row, below which a vector counts as none.
ZERO = 1e-10

# Entries up to which SciPy solves non-negative least squares, in about a second, without a pause.
_MAX_ENTRIES = 2**20

# Share of its square that a row must have at right angles to others to be independent of them.
_INDEPENDENT = 1e-10

# Gradient of non-negative least squares, as a share of that at zero, that counts as none.
_FLAT = 1e-10

# Diagonal of a triangular factor, as a share of its largest, that counts as zero.
_DEPENDENT = 1e-13


@dataclass(frozen=True, eq=False)
class MinNormPoint:
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


@one_thread()
def min_norm_point(rows: FloatArray, groups: IndexArray, *, tol: float = 1e-10) -> MinNormPoint:
    """Find the shortest vector of the sum of the hulls of groups of rows.

    Parameters
    ----------
    rows : ndarray of shape (m, d), float64
        Their length is about one: the longest row sets the scale of what counts as zero.
    groups : ndarray of shape (m,), int64
        Group of each row, from zero. No group is empty.
    tol : float, default=1e-10
        Gap between the squared length and the sum of levels, as a share of the former.

    Returns
    -------
    MinNormPoint
        Its length is below `ZERO` if the sum of hulls holds the origin.

    Examples
    --------
    >>> found = min_norm_point(np.array([[0.0, 1.0], [1.0, 0.0]]), np.zeros(2, dtype=int))
    >>> found.vector, found.dual
    (array([0.5, 0.5]), array([0.5, 0.5]))

    References
    ----------
    Wolfe (1976), Finding the nearest point in a polytope: "corrals" are the sets `active`.
    """
    scale = float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max(initial=0.0)))
    n_groups = int(groups.max()) + 1
    dual = _scaled(_guess(rows, groups, n_groups), groups)
    best: MinNormPoint | None = None
    # Every set of active rows occurs once at most; the limit only guards against rounding.
    remaining_steps = 10 * (len(rows) + rows.shape[1]) + 100
    while True:
        check_time("a hard-margin problem was being solved", "pass fewer rows or columns")
        remaining_steps -= 1
        dual, vector = _to_corral(rows, groups, dual)
        products = rows @ vector
        point = MinNormPoint(vector, dual, _smallest(products, groups, n_groups))
        square = float(vector @ vector)
        if best is not None and (square >= float(best.vector @ best.vector) or not remaining_steps):
            # No progress is possible in this arithmetic: the sharper certificate wins.
            return point if point.levels.sum() > best.levels.sum() else best
        best = point
        if square <= (ZERO * scale) ** 2 or point.levels.sum() >= square * (1.0 - tol):
            return point
        active = dual > 0.0
        # Rows of a corral have one product each group, so that others violate by this much.
        reached = np.array([products[active & (groups == g)].mean() for g in range(n_groups)])
        violation = np.where(active, -np.inf, reached[groups] - products)
        worst = int(violation.argmax())
        if violation[worst] <= 0.0:
            return point
        # The worst row joins the corral, with the least coefficient there is.
        dual = dual.copy()
        dual[worst] = np.finfo(np.float64).tiny


def _guess(rows: FloatArray, groups: IndexArray, n_groups: int) -> FloatArray:
    r"""Coefficients by non-negative least squares, as Lawson and Hanson (1974, chapter 23).

    Minimising :math:`|Z^T a|^2 + c^2 \sum_g (\sum_{i \in g} a_i - 1)^2` over a >= 0 gives a
    multiple of the answer for one group, and nearly so for more.
    """
    from scipy.optimize import nnls

    penalty = 1.0 if n_groups == 1 else 10.0
    if rows.size > _MAX_ENTRIES:
        return _guess_in_steps(rows @ rows.T + penalty**2 * np.equal.outer(groups, groups))
    of_group = np.equal.outer(np.arange(n_groups), groups)
    matrix = np.concatenate([rows.T, penalty * of_group])
    target = np.concatenate([np.zeros(rows.shape[1]), np.full(n_groups, penalty)])
    try:
        guess: FloatArray = nnls(matrix, target)[0]
    except RuntimeError:  # its limit of steps; what follows gets there from anywhere
        return np.zeros(len(rows))
    return guess


def _guess_in_steps(gram: FloatArray) -> FloatArray:
    """Minimise a^T G a / 2 - sum(a) over a >= 0, where each step looks at the deadline.

    References
    ----------
    Lawson and Hanson (1974), chapter 23, with a Cholesky factor in place of QR.
    """
    from scipy.linalg import cholesky, solve_triangular

    m = len(gram)
    dual, gradient = np.zeros(m), np.ones(m)
    blocked = np.zeros(m, dtype=bool)
    active: list[int] = []
    factor = np.zeros((m, m))  # lower triangle, of the active rows
    for _ in range(3 * m):
        check_time("a hard-margin problem was being solved", "pass fewer rows or columns")
        blocked[active] = True
        best = int(np.where(blocked, -np.inf, gradient).argmax())
        if blocked[best] or gradient[best] <= _FLAT:
            break
        k = len(active)
        across = solve_triangular(factor[:k, :k], gram[active, best], lower=True)
        left = float(gram[best, best] - across @ across)
        blocked[best] = True
        if left <= _INDEPENDENT * gram[best, best]:
            continue
        factor[k, :k], factor[k, k] = across, np.sqrt(left)
        active.append(best)
        while True:
            k = len(active)
            half = solve_triangular(factor[:k, :k], np.ones(k), lower=True)
            wanted = solve_triangular(factor[:k, :k], half, lower=True, trans="T")
            if wanted.min() > 0.0:
                break
            current, falling = dual[active], wanted <= 0.0
            shares = current[falling] / (current[falling] - wanted[falling])
            step = float(shares.min())
            dual[active] = current + step * (wanted - current)
            gone = np.flatnonzero(falling)[shares <= step]
            dual[np.array(active)[gone]] = 0.0
            active = np.delete(active, gone).tolist()
            k = len(active)
            factor[:k, :k] = cholesky(gram[np.ix_(active, active)], lower=True)
        if best not in active:  # rounding is all that is left
            break
        dual[active] = wanted
        gradient = 1.0 - gram @ dual
        blocked[:] = False
    return dual


def _scaled(start: FloatArray, groups: IndexArray) -> FloatArray:
    """Bring coefficients to sum one in every group. A group without any gets its first row."""
    dual, sums = start.copy(), np.bincount(groups, weights=start)
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

    Written as one row of each group plus differences to it, from which the residual of least
    squares is taken twice: the second time its error is relative to the short result, no more
    to the long rows ("twice is enough").
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
    """QR of independent columns; of dependent ones a largest independent set is taken."""
    from scipy.linalg import qr

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


@dataclass(frozen=True, eq=False)
class HardMargin:
    r"""A separator with the largest margin, and the evidence for it.

    Attributes
    ----------
    w : ndarray of shape (d,), float64
        Unit normal. Zero if the rows are not separable.
    margin : float
        :math:`\rho = \min_i \langle w, z_i\rangle`. With a bias, half the width of the strip
        between the classes. Reached by `w` itself, rounding included.
    dual : ndarray of shape (m,), float64
        Convex coefficients: not negative, with sum one (with a bias: over each class).
    length : float
        :math:`|\sum_i a_i z_i|` (with a bias: half of it), which no margin can pass.
        ``margin / length`` is one but for rounding.
    separable : bool
        False where the origin lies in the hull, up to `ZERO` of the longest row: then `dual`
        is the evidence, a convex combination of length about zero (with a bias: the hulls of
        the two classes meet).
    intercept : float, default=0.0
        With a bias, the rule is the sign of ``w @ x + intercept``.
    levels : ndarray of shape (1,) or (2,), float64
        Smallest :math:`\langle w, z_i\rangle`, with a bias of the class +1 and of -1, where
        ``z`` is ``x`` and ``-x``.
    """

    w: FloatArray
    margin: float
    dual: FloatArray
    length: float
    separable: bool
    levels: FloatArray
    intercept: float = 0.0


@one_thread()
def hard_margin(z: Any, *, tol: float = 1e-8) -> HardMargin:
    r"""Find the separator through the origin with the largest margin.

    Parameters
    ----------
    z : array-like of shape (m, d)
        Rows times labels, :math:`z_i = y_i x_i`; m and d up to some thousands.
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
    """
    rows = np.asarray(z, dtype=np.float64)
    return _solve(rows, np.zeros(len(rows), dtype=np.int64), tol)


@one_thread()
def hard_margin_bias(points: Any, labels: Any, *, tol: float = 1e-8) -> HardMargin:
    r"""Find the hyperplane, through the origin or not, with the largest margin.

    Its normal joins the nearest points of the hulls of the two classes. This is not the same
    as a column of ones: that would shrink the bias, too.

    Parameters
    ----------
    points : array-like of shape (m, d)
    labels : array-like of shape (m,)
        +1 and -1, both present.
    tol
        As in `hard_margin`.

    Returns
    -------
    HardMargin
        ``labels * (points @ w + intercept)`` is at least `margin`.

    Examples
    --------
    >>> found = hard_margin_bias([[4.0], [6.0], [9.0]], [-1, 1, 1])
    >>> found.w, found.intercept, found.margin
    (array([1.]), -5.0, 1.0)
    """
    points, signs = np.asarray(points, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    # Moving all points moves no hull against the other, and a common offset costs digits.
    center = points.mean(axis=0)
    rows = (points - center) * signs[:, None]
    hard = _solve(rows, (signs < 0).astype(np.int64), tol)
    intercept = float((hard.levels[1] - hard.levels[0]) / 2 - hard.w @ center)
    return replace(
        hard,
        margin=hard.margin / 2,
        length=hard.length / 2,
        levels=hard.levels + np.array([1.0, -1.0]) * float(hard.w @ center),
        intercept=intercept,
    )


def _solve(rows: FloatArray, groups: IndexArray, tol: float) -> HardMargin:
    """Scale and solve. Measure the margin of the unit normal on the original rows."""
    scale = float(np.abs(rows).max(initial=0.0)) or 1.0
    scaled = rows / scale
    longest = float(np.sqrt(np.einsum("ij,ij->i", scaled, scaled).max()))
    point = min_norm_point(scaled, groups, tol=min(tol, 1.0) / 100)
    length = float(np.linalg.norm(point.vector))
    w, levels = np.zeros(rows.shape[1]), np.zeros(len(point.levels))
    if length > ZERO * longest:
        unit = point.vector / length
        reached = _smallest(rows @ unit, groups, len(levels))
        if reached.sum() > 0.0:
            w, levels = unit, reached
    margin = float(levels.sum())
    # Of the coefficients themselves, not of the vector they belong to: they are the result.
    upper = float(np.linalg.norm(point.dual @ scaled)) * scale
    return HardMargin(w, margin, point.dual, upper, margin > 0.0, levels)
