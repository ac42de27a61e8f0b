r"""The hard-margin problem on a few rows in memory, solved to the last digits.

Everything here rests on `daskcoreset.solvers.hull`: the largest margin of a separator through
the origin, :math:`\max_{|w|=1} \min_i \langle w, z_i\rangle` with :math:`z_i = y_i x_i`, is
the length of the shortest vector of the hull of the :math:`z_i`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg.lapack import dpstrf

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.solvers.hull import ZERO, shortest_vector

if TYPE_CHECKING:
    from daskcoreset.core.typing import FloatArray

__all__ = ["HardMargin", "hard_margin", "hard_margin_bias", "hard_margin_gram"]

_NOT_POSITIVE = 1e-7
"""What a Gram matrix may miss of its factors, as a share of its largest entry."""


@dataclass(frozen=True, eq=False)
class HardMargin:
    r"""A separator with the largest margin, and the evidence for it.

    Attributes
    ----------
    w : ndarray of shape (d,), float64, or None
        Unit normal; None for a Gram matrix, whose separator is
        ``sum_i dual[i] z_i / length``. Where the rows are not separable it is zero.
    margin : float
        :math:`\rho = \min_i \langle w, z_i\rangle`; with a bias, half the width of the strip
        between the classes. Reached by `w` as it is, rounding included.
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

    w: FloatArray | None
    margin: float
    dual: FloatArray
    length: float
    separable: bool
    levels: FloatArray
    intercept: float = 0.0


def hard_margin(z: Any, *, start: FloatArray | None = None, tol: float = 1e-8) -> HardMargin:
    r"""Find the separator through the origin with the largest margin.

    Parameters
    ----------
    z : array-like of shape (m, d)
        Rows times labels, :math:`z_i = y_i x_i`; m and d up to some thousands.
    start : ndarray of shape (m,) or None, default=None
        Dual coefficients to start from, zeros for new rows; saves time, changes nothing else.
    tol : float, default=1e-8
        Relative gap between `margin` and `length` at which to stop. In double precision about
        :math:`10^{-15} R / \rho` can be reached, and usually is.

    Returns
    -------
    HardMargin

    Raises
    ------
    InvalidInputError
        If `z` is not a finite matrix with at least one row.

    Examples
    --------
    >>> found = hard_margin([[1.0, 1.0], [3.0, 0.0]])
    >>> found.w.round(6), round(found.margin, 6)
    (array([0.707107, 0.707107]), 1.414214)
    >>> hard_margin([[1.0], [-1.0]]).separable
    False
    """
    rows = _as_rows(z, "z")
    return _solve(rows, np.zeros(len(rows), dtype=np.int64), start, tol)


def hard_margin_bias(
    points: Any, labels: Any, *, start: FloatArray | None = None, tol: float = 1e-8
) -> HardMargin:
    r"""Find the hyperplane, through the origin or not, with the largest margin.

    Its normal joins the nearest points of the hulls of the two classes. This is not the same
    as a column of ones: that would shrink the bias, too.

    Parameters
    ----------
    points : array-like of shape (m, d)
    labels : array-like of shape (m,)
        +1 and -1, both present.
    start, tol
        As in `hard_margin`.

    Returns
    -------
    HardMargin
        ``labels * (points @ w + intercept)`` is at least `margin`.

    Raises
    ------
    InvalidInputError
        If `points` is not a finite matrix, or the labels are not both of +1 and -1.

    Examples
    --------
    >>> found = hard_margin_bias([[4.0], [6.0], [9.0]], [-1, 1, 1])
    >>> found.w, found.intercept, found.margin
    (array([1.]), -5.0, 1.0)
    """
    points = _as_rows(points, "points")
    signs = _as_signs(labels, len(points))
    # Moving all points moves no hull against the other, and a common offset costs digits.
    center = points.mean(axis=0)
    rows = (points - center) * signs[:, None]
    found = _solve(rows, (signs < 0).astype(np.int64), start, tol)
    assert found.w is not None  # noqa: S101 - of explicit rows
    intercept = float((found.levels[1] - found.levels[0]) / 2 - found.w @ center)
    return HardMargin(
        found.w,
        found.margin / 2,
        found.dual,
        found.length / 2,
        found.separable,
        found.levels + np.array([1.0, -1.0]) * float(found.w @ center),
        intercept,
    )


def hard_margin_gram(
    gram: Any,
    labels: Any = None,
    *,
    start: FloatArray | None = None,
    tol: float = 1e-8,
) -> HardMargin:
    r"""Find the separator with the largest margin in the space of a kernel.

    Parameters
    ----------
    gram : array-like of shape (m, m)
        :math:`\langle z_i, z_j\rangle = y_i y_j k(x_i, x_j)`, symmetric and positive
        semidefinite. With `labels` the same matrix.
    labels : array-like of shape (m,) or None, default=None
        +1 and -1, for a separator with a bias; None for one through the origin.
    start, tol
        As in `hard_margin`. Entries are known to :math:`10^{-16} R^2`, so that the margin is
        to about :math:`10^{-16} (R / \rho)^2`.

    Returns
    -------
    HardMargin
        With ``w`` None: the separator is :math:`\sum_i a_i z_i` over its length, which is
        `length` without and ``2 * length`` with a bias.

    Raises
    ------
    InvalidInputError
        If `gram` is not a symmetric positive semidefinite matrix.

    Examples
    --------
    >>> z = np.array([[1.0, 1.0], [3.0, 0.0]])
    >>> round(hard_margin_gram(z @ z.T).margin, 6)
    1.414214
    """
    gram = _as_rows(gram, "gram")
    if gram.shape[0] != gram.shape[1] or not np.allclose(gram, gram.T, rtol=1e-6, atol=0.0):
        raise InvalidInputError(
            f"gram, of shape {gram.shape}, is not symmetric; pass inner products of all pairs."
        )
    rows = _factor(gram)
    if labels is None:
        groups, share = np.zeros(len(rows), dtype=np.int64), 1.0
    else:
        groups, share = (_as_signs(labels, len(rows)) < 0).astype(np.int64), 0.5
    found = _solve(rows, groups, start, tol)
    # Half the difference between the levels moves the rule into the middle of the strip.
    intercept = 0.0 if labels is None else float(found.levels[1] - found.levels[0]) / 2
    return HardMargin(
        None,
        found.margin * share,
        found.dual,
        found.length * share,
        found.separable,
        found.levels,
        intercept,
    )


def _solve(
    rows: FloatArray, groups: np.ndarray[Any, Any], start: FloatArray | None, tol: float
) -> HardMargin:
    """Scale, solve, and measure what the unit normal reaches on the rows as they were."""
    scale = float(np.abs(rows).max(initial=0.0))
    if scale == 0.0:
        scale = 1.0
    scaled = rows / scale
    longest = float(np.sqrt(np.einsum("ij,ij->i", scaled, scaled).max()))
    found = shortest_vector(scaled, groups, start=start, tol=min(tol, 1.0) / 100)
    length = float(np.linalg.norm(found.vector))
    levels = np.zeros(len(found.levels))
    w = np.zeros(rows.shape[1])
    separable = length > ZERO * longest
    if separable:
        w = found.vector / length
        products = rows @ w
        levels = np.array([products[groups == g].min() for g in range(len(levels))])
        separable = bool(levels.sum() > 0.0)
    if not separable:
        w, levels = np.zeros(rows.shape[1]), np.zeros(len(levels))
    # Of the coefficients themselves, not of the vector they belong to: this is what is told.
    reached = float(np.linalg.norm(found.dual @ scaled)) * scale
    return HardMargin(w, float(levels.sum()), found.dual, reached, separable, levels)


def _factor(gram: FloatArray) -> FloatArray:
    """Rows whose inner products are `gram`, by a Cholesky factor with pivots."""
    largest = float(np.abs(gram).max(initial=0.0))
    if largest == 0.0:
        return np.zeros((len(gram), 1))
    lower, order, rank, _ = dpstrf(gram, lower=1, tol=1e-15 * largest)
    order = order - 1
    rows = np.zeros((len(gram), rank))
    rows[order] = np.tril(lower)[:, :rank]
    if np.abs(rows @ rows.T - gram).max() > _NOT_POSITIVE * largest:
        raise InvalidInputError(
            "gram is not positive semidefinite, so that it holds no inner products; use another "
            "kernel or other parameters of it."
        )
    return rows


def _as_rows(value: Any, name: str) -> FloatArray:
    rows = np.asarray(value, dtype=np.float64)
    if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
        raise InvalidInputError(
            f"{name} has shape {rows.shape}, or is not finite; pass a finite matrix with at least "
            f"one row and one column."
        )
    return rows


def _as_signs(labels: Any, m: int) -> FloatArray:
    signs = np.asarray(labels, dtype=np.float64)
    if signs.shape != (m,) or set(np.unique(signs).tolist()) != {-1.0, 1.0}:
        raise InvalidInputError(
            f"labels has the values {np.unique(signs).tolist()[:5]} in shape {signs.shape}; pass "
            f"+1 and -1, both present, one for each of {m} rows."
        )
    return signs
