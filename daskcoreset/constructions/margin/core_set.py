r"""A core set for the maximum margin, by a few reads of all rows.

The loop is Fig. 1 of Har-Peled, Roth and Zimak (2007): separate the core set, read all rows for
violators, add some of them. A block returns the smallest margin of each class and a few violators,
rows below the floor that the core set determines. By Corollary 3.2 any violator will do, so that
every block may return some, and one read does the work of many.

The worst rows of a block often lie side by side. So the worst one is taken, the shortest vector
moves towards it along a segment (as in Gilbert's method), products with all other candidates are
updated, and the next one is the worst for the new vector. Rows that it no longer violates are not
taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from daskcoreset.constructions.margin.rows import (
    FirstRead,
    SelectedRows,
    concatenate_rows,
    select_rows,
    signs_of,
    smallest,
)
from daskcoreset.core.block import Block
from daskcoreset.core.deadline import check_time
from daskcoreset.core.linalg import dense_rows, inner_products
from daskcoreset.core.messages import warn_user
from daskcoreset.core.moments import distances_to
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points
from daskcoreset.errors import NotSeparableError
from daskcoreset.execution.engine import BlockResults, map_reduce
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.solvers.hard_margin import HardMargin, hard_margin, hard_margin_bias

Violators = int | Literal["auto"]

# Up to which hard-margin problems are solved.
_TOLERANCE = 1e-9

# Violators compared for each that is taken.
_CANDIDATES = 8

# Rows whose products with all others are formed at a time.
_TILE = 256

# Rows named in a message; all of them are attributes of the error.
_MAX_NAMED = 6


@dataclass(frozen=True, eq=False)
class Separator:
    """A hyperplane.

    Attributes
    ----------
    w : ndarray of shape (d,), float64
        Unit normal.
    intercept : float, default=0.0

    Examples
    --------
    >>> Separator(np.array([1.0, 0.0]), -2.0)(np.eye(2))
    array([-1., -2.])
    """

    w: FloatArray
    intercept: float = 0.0

    def __call__(self, points: Points) -> FloatArray:
        """Signed distance of every row from the hyperplane, float64 of shape (n,)."""
        return self.projections(points) + self.intercept

    def projections(self, points: Points) -> FloatArray:
        """Inner product of every row with the normal, float64 of shape (n,)."""
        return inner_products(points, self.w[None])[:, 0]


def passes_bound(radius: float, margin: float, epsilon: float) -> float:
    r"""Bound the passes that each add some violator (Corollary 3.2).

    The passes are at most :math:`1 + 4R^2/(\epsilon\rho)^2`, however many violators each of
    them adds. Let x be the shortest vector of the hull, :math:`|x| = \rho_i`, and z a violator,
    :math:`\langle x, z\rangle < (1-\epsilon)\rho_i^2`. The segment from x to z, of length at
    most 2R, holds a point of squared length at most
    :math:`\rho_i^2 (1 - \epsilon^2\rho_i^2/4R^2)`, and so does the next hull. Hence
    :math:`1/\rho_{i+1}^2 \ge 1/\rho_i^2 + \epsilon^2/4R^2`, which can happen
    :math:`4R^2/(\epsilon\rho)^2` times before :math:`\rho_i < \rho`.

    With an intercept x joins the nearest points of two hulls, :math:`|x| = 2\rho_i`, a step
    within one of them is at most 2R long, R about any center, and the same follows.

    Parameters
    ----------
    radius, margin, epsilon : float

    Returns
    -------
    float

    Examples
    --------
    >>> round(passes_bound(10.0, 1.0, 0.1))
    40001
    """
    if margin <= 0:
        return math.inf
    ratio = radius / margin / epsilon  # may overflow to infinity, and its square may
    return 1.0 + 4.0 * ratio * ratio


def solve_margin(
    rows: FloatArray, signs: FloatArray, *, intercept: bool, **options: Any
) -> HardMargin:
    """Separate rows with the largest margin, with an intercept or through the origin."""
    if intercept:
        return hard_margin_bias(rows, signs, **options)
    return hard_margin(rows * signs[:, None], **options)


def margin_of_levels(levels: FloatArray, *, intercept: bool) -> float:
    """Margin of a separator, from the smallest products of the classes +1 and -1.

    With an intercept the hyperplane goes into the middle of the strip between the classes.
    """
    return float(levels.sum()) / 2 if intercept else float(levels.min())


def floors_of(hard: HardMargin, epsilon: float, *, intercept: bool) -> FloatArray:
    """Products of the classes +1 and -1 below which a row violates the margin of a core set."""
    if not intercept:
        return np.full(2, (1.0 - epsilon) * hard.length)
    # Together twice the share of the margin: some row is below unless it is reached.
    return np.asarray(hard.levels + (hard.length - hard.margin) - epsilon * hard.length)


def evidence_of(dual: FloatArray) -> IndexArray:
    """Positions of the rows of a convex combination, the largest coefficients first."""
    rows = np.flatnonzero(dual > 0.0)
    return rows[np.argsort(-dual[rows], kind="stable")]


@dataclass(frozen=True)
class Pass:
    """One solution on the core set, and its margin on the data, measured by one read.

    Attributes
    ----------
    reads : int
        Reads of the data so far.
    size : int
        Rows in the core set.
    core_margin : float
        The largest margin on the core set, an upper bound of the largest margin on the data.
    margin : float
        Margin of the same separator on the data. Negative if it errs.
    best : float
        The largest margin on the data of any separator so far.
    """

    reads: int
    size: int
    core_margin: float
    margin: float
    best: float


@dataclass(frozen=True, eq=False, repr=False)
class MarginCoreset:
    r"""A core set for the maximum margin, its separator, and the certificate.

    Attributes
    ----------
    core : WeightedPoints
        Rows of the core set with weights of one, row numbers and labels.
    dual : ndarray of shape (m,), float64
        Convex coefficients: the normal is in proportion to :math:`\sum_i a_i y_i x_i`. With
        an intercept their sum is one over each class. Rows with zero add nothing.
    signs : ndarray of shape (m,), float64
        +1 for the second class and -1 for the first.
    separator : Separator
    margin : float
        Margin on all the data, measured by a read: :math:`\min y f(x)`.
    core_margin : float
        Margin on the core set: an upper bound of the largest margin on the data.
    epsilon : float
    converged : bool
        Whether ``margin >= (1 - epsilon) * core_margin``.
    radius : float
        R, the largest distance of a row from the origin. With an intercept, from a center.
    n_rows : int
        Rows of the data.
    trace : tuple of Pass
    """

    core: WeightedPoints
    dual: FloatArray
    signs: FloatArray
    separator: Separator
    margin: float
    core_margin: float
    epsilon: float
    converged: bool
    radius: float
    n_rows: int
    trace: tuple[Pass, ...]

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({len(self.core):,} of {self.n_rows:,} rows, margin "
            f"{self.margin:.6g} >= {self.factor:.4g} x the largest, {self.reads} reads)"
        )

    @property
    def factor(self) -> float:
        r"""Certified share of the largest margin that is reached, :math:`\rho / \rho_C`."""
        return self.margin / self.core_margin

    @property
    def reads(self) -> int:
        """Reads of all the data, the one that finds the classes included."""
        return len(self.trace) + 1

    def describe(self) -> dict[str, Any]:
        """Facts for a provenance, plain JSON."""
        bound = passes_bound(self.radius, self.core_margin, self.epsilon)
        return {
            "margin": self.margin,
            "core_margin": self.core_margin,
            "factor": self.factor,
            "converged": self.converged,
            "radius": self.radius,
            "passes_bound": bound if math.isfinite(bound) else None,
            "reads": self.reads,
            "passes": [
                {"size": step.size, "core_margin": step.core_margin, "margin": step.margin}
                for step in self.trace
            ],
        }


@dataclass(frozen=True, eq=False)
class Fit:
    """The separator with the largest margin on a core set.

    Attributes
    ----------
    hard : HardMargin
    separator : Separator
    middle : ndarray of shape (d,), float64, or None
        With an intercept, the point midway between the hulls.
    """

    hard: HardMargin
    separator: Separator
    middle: FloatArray | None


def fit_core(core: SelectedRows, signs: FloatArray, *, intercept: bool) -> Fit:
    """Solve the hard-margin problem on the rows of a core set.

    Raises
    ------
    NotSeparableError
        With the evidence.
    """
    # Columns that are zero in every row of the core set are zero in the normal.
    points, columns = _used_columns(core.block.points)
    hard = solve_margin(points, signs, intercept=intercept, tol=_TOLERANCE)
    if not hard.separable:
        raise _not_separable(core, points, signs, hard, intercept=intercept)
    w = np.zeros(core.block.points.shape[1])
    w[columns] = hard.w
    middle = None
    if intercept:
        middle = np.zeros(len(w))
        middle[columns] = hard.dual @ points / 2.0
    return Fit(hard, Separator(w, hard.intercept), middle)


def _used_columns(points: Points) -> tuple[FloatArray, Any]:
    """Rows, dense, in the columns that are not zero throughout, and these columns."""
    if isinstance(points, np.ndarray):
        return points.astype(np.float64), slice(None)
    columns = np.unique(points.indices)
    if not len(columns):
        columns = np.zeros(1, dtype=np.int64)
    return dense_rows(points[:, columns]).astype(np.float64), columns


def _not_separable(
    core: SelectedRows, points: FloatArray, signs: FloatArray, hard: HardMargin, *, intercept: bool
) -> NotSeparableError:
    support = np.flatnonzero(hard.dual > 0.0)
    indices = core.indices[support]
    # The length is half of the distance between the hulls if there are two.
    norm = 2.0 * hard.length if intercept else hard.length
    duplicates = opposite_duplicates(points, signs, core.indices)
    remedy = "drop wrong rows, or use OutlierMaxMarginClassifier or a soft margin"
    if duplicates is not None:
        problem = f"X has equal rows with opposite labels, {duplicates[0]} and {duplicates[1]}"
    elif len(indices) == 1:
        problem = (
            f"X is zero at row {indices[0]}, which lies on every hyperplane through the origin"
        )
        remedy = "use an intercept, or drop the row"
    else:
        kind, reason = "", "the hulls of the two classes meet"
        if not intercept:
            kind, remedy = " through the origin", f"use an intercept, {remedy}"
            reason = "a convex combination of rows times labels is zero"
        problem = (
            f"X and y are not separable by a hyperplane{kind}: {reason}, with coefficients on the "
            f"rows {first_few(indices, _MAX_NAMED)} and length {norm:.2g}"
        )
    return NotSeparableError(
        problem,
        argument="X",
        remedy=remedy,
        indices=indices,
        coefficients=hard.dual[support],
        norm=norm,
        intercept=intercept,
        duplicates=duplicates,
    )


def first_few(values: Any, count: int) -> str:
    """Name the first of some values, and how many more there are.

    Examples
    --------
    >>> first_few([3, 5, 8], 2)
    '3, 5 and 1 more'
    """
    more = len(values) - count
    return ", ".join(map(str, values[:count])) + (f" and {more} more" if more > 0 else "")


def opposite_duplicates(
    points: AnyArray, signs: FloatArray, indices: IndexArray
) -> tuple[int, int] | None:
    """Find two equal rows with opposite signs.

    Parameters
    ----------
    points : ndarray of shape (m, d)
    signs : ndarray of shape (m,), float64
    indices : ndarray of shape (m,), int64

    Returns
    -------
    tuple of int or None
        Their row numbers, the smaller one first.

    Examples
    --------
    >>> rows = np.array([[1.0], [2.0], [1.0]])
    >>> opposite_duplicates(rows, np.array([1.0, 1.0, -1.0]), np.array([4, 7, 2]))
    (2, 4)
    """
    of_value = np.unique(points, axis=0, return_inverse=True)[1].reshape(-1)
    both = np.intersect1d(of_value[signs > 0.0], of_value[signs < 0.0])
    if not len(both):
        return None
    equal = of_value == both[0]
    first, second = sorted(int(indices[equal & (signs == sign)].min()) for sign in (1.0, -1.0))
    return first, second


def max_margin(
    blocks: RowBlocks,
    first: BlockResults[FirstRead],
    *,
    epsilon: float,
    intercept: bool,
    violators: Violators,
    max_passes: int,
) -> MarginCoreset:
    """Separate two classes by nearly the largest margin.

    Parameters
    ----------
    blocks : RowBlocks
        With labels.
    first : BlockResults of FirstRead
        Result of `find_classes`.
    epsilon : float
        The margin is at least ``1 - epsilon`` of the largest.
    intercept : bool
        False for hyperplanes through the origin.
    violators : "auto" or int
        Rows added after a read.
    max_passes : int
        Reads after which to stop, with a warning.

    Returns
    -------
    MarginCoreset

    Raises
    ------
    NotSeparableError
        If no hyperplane separates the classes.
    """
    few = max(20, min(2 * blocks.schema.n_features, 1000))
    in_all = few if violators == "auto" else violators
    classes = first.value.classes
    core = first.value.first_rows(1 if in_all == 1 else max(1, in_all // 2))
    middle = _middle(core)
    center = middle if intercept else np.zeros_like(middle)
    # Twice its share from each block, for blocks are not alike.
    per_block = min(-(-2 * in_all // blocks.n_blocks), in_all)
    offsets, radius = dict(first.offsets()), 0.0
    trace: list[Pass] = []
    best: tuple[Fit, float] | None = None
    upper, reason = np.inf, ""
    while True:
        fit = fit_core(core, signs_of(core.block, classes), intercept=intercept)
        # No margin on the data passes that on a part of them.
        upper = min(upper, fit.hard.length)
        if best is not None and best[1] >= (1.0 - epsilon) * upper:
            break
        if len(trace) == max_passes:
            reason = f"max_passes={max_passes} is reached; pass a larger one"
            break
        query = ViolatorQuery(
            fit, classes, epsilon, intercept, per_block, in_all, offsets, center, not trace
        )
        found = find_violators(blocks, query)
        margin = margin_of_levels(found.levels, intercept=intercept)
        # The margin on the data may fall from a pass to the next, and the best one counts.
        if best is None or margin > best[1]:
            best = (_centred(fit, found.levels) if intercept else fit, margin)
        radius = radius if trace else float(np.sqrt(found.square))
        trace.append(Pass(len(trace) + 2, len(core), fit.hard.margin, margin, best[1]))
        if best[1] >= (1.0 - epsilon) * upper:
            break
        new = found.rows.take(np.flatnonzero(~np.isin(found.rows.indices, core.indices)))
        if not len(new):
            reason = "the margin is too small for double precision; scale the columns"
            break
        core = concatenate_rows(core, new)
    assert best is not None  # noqa: S101 - max_passes is at least one
    fit, margin = best
    if reason:
        warn_user(
            f"the margin is certified to {margin / upper:.3g} of the largest and not to "
            f"{1 - epsilon:.3g}: {reason}."
        )
    # Rows were only added, after those of the best separator.
    dual = np.zeros(len(core))
    dual[: len(fit.hard.dual)] = fit.hard.dual
    ones = np.ones(len(core))
    return MarginCoreset(
        core=WeightedPoints(core.block.points, ones, core.indices, core.block.labels),
        dual=dual,
        signs=signs_of(core.block, classes),
        separator=fit.separator,
        margin=margin,
        core_margin=float(upper),
        epsilon=epsilon,
        converged=not reason,
        radius=radius,
        n_rows=first.n_rows,
        trace=tuple(trace),
    )


def _middle(core: SelectedRows) -> FloatArray:
    """Mean of rows: the radius is about it, and not about a distant origin."""
    points: Any = core.block.points
    return np.asarray(points.mean(axis=0, dtype=np.float64)).ravel()


def _centred(fit: Fit, levels: FloatArray) -> Fit:
    """Move the hyperplane into the middle of the strip that the data leave."""
    middle = float(levels[1] - levels[0]) / 2
    return replace(fit, separator=replace(fit.separator, intercept=middle))


@dataclass(frozen=True, eq=False)
class ViolatorQuery:
    r"""A separator, and which of the rows that violate its margin to return.

    Attributes
    ----------
    fit : Fit
        The separator of the core set.
    classes : ndarray of shape (2,)
        Labels of the classes -1 and +1.
    epsilon : float
        Rows violate a share :math:`1 - \epsilon` of the margin on the core set.
    intercept : bool
    per_block, in_all : int
        Violators to return.
    starts : dict of int to int
        Number of the first row of every block.
    center : ndarray of shape (d,), float64
        The point from which R is measured.
    measure : bool
        Whether to measure R.
    """

    fit: Fit
    classes: AnyArray
    epsilon: float
    intercept: bool
    per_block: int
    in_all: int
    starts: dict[int, int]
    center: FloatArray
    measure: bool = False


@dataclass(frozen=True, eq=False)
class ViolatorRows:
    r"""Margins and violators of some blocks.

    Attributes
    ----------
    levels : ndarray of shape (2,), float64
        Smallest :math:`y \langle w, x\rangle` of the classes +1 and -1. Infinity for none.
    square : float
        Largest squared distance from the center, R squared. Zero if it is not measured.
    rows : SelectedRows
        Violators. Their values are how far they are above their floor, all negative.
    """

    levels: FloatArray
    square: float
    rows: SelectedRows


def find_violators(blocks: RowBlocks, query: ViolatorQuery) -> ViolatorRows:
    """Read all rows once for the margins of a separator, and for violators."""
    # Merging keeps more than are taken, for a choice of directions at the end.
    merge = partial(_merge, n_keep=4 * query.in_all)
    read: BlockResults[ViolatorRows] = map_reduce(
        blocks, _violators_of_block, merge, broadcast=query
    )
    rows = read.value.rows
    # As few as were asked for are all taken, whatever they pull at.
    chosen = _diverse(rows, query, query.in_all) if len(rows) > query.in_all else rows
    return replace(read.value, rows=chosen)


def _violators_of_block(block: Block, block_index: int, query: ViolatorQuery) -> ViolatorRows:
    separator, start = query.fit.separator, query.starts[block_index]
    signs = signs_of(block, query.classes)
    if not signs.any():
        none = np.flatnonzero(signs)
        return ViolatorRows(np.full(2, np.inf), 0.0, select_rows(block, none, signs[none]))
    products = signs * separator.projections(block.points)
    floors = floors_of(query.fit.hard, query.epsilon, intercept=query.intercept)
    values = np.where(signs > 0.0, products - floors[0], products - floors[1])
    levels = np.array([products[signs == sign].min(initial=np.inf) for sign in (1.0, -1.0)])
    square = 0.0
    if query.measure:
        square = float(distances_to(block.points, query.center)[signs != 0.0].max())
    values[(signs == 0.0) | (values >= 0.0)] = np.inf
    # More than are taken, so that rows which pull elsewhere are among them.
    below = smallest(values, _CANDIDATES * query.per_block)
    rows = select_rows(block, below, values[below], start)
    return ViolatorRows(levels, square, _diverse(rows, query, query.per_block))


def _merge(first: ViolatorRows, second: ViolatorRows, *, n_keep: int) -> ViolatorRows:
    return ViolatorRows(
        np.minimum(first.levels, second.levels),
        max(first.square, second.square),
        concatenate_rows(first.rows, second.rows).smallest(n_keep),
    )


def _diverse(rows: SelectedRows, query: ViolatorQuery, n_keep: int) -> SelectedRows:
    """Take some of the violators, which pull the shortest vector in different directions."""
    if len(rows) < 2:  # no row, or the only one
        return rows
    if n_keep == 1:
        return rows.take(np.array([rows.values.argmin()]))
    hard = query.fit.hard
    points = dense_rows(rows.block.points).astype(np.float64)
    if query.fit.middle is not None:
        points = points - query.fit.middle
    gram = np.empty((len(points), len(points)))
    for start in range(0, len(points), _TILE):
        check_time("violators of a margin were being compared", "pass fewer columns")
        gram[start : start + _TILE] = inner_products(points[start : start + _TILE], points)
    signs, share = signs_of(rows.block, query.classes), 1.0 - query.epsilon
    gram = gram * np.outer(signs, signs)
    products = rows.values + share * hard.length
    return rows.take(choose_diverse(products * hard.length, gram, hard.length**2, share, n_keep))


def choose_diverse(
    products: FloatArray, gram: FloatArray, square: float, share: float, n_keep: int
) -> IndexArray:
    r"""Choose violators that pull the shortest vector in different directions.

    Parameters
    ----------
    products : ndarray of shape (c,), float64
        :math:`\langle x, z_i\rangle` of the candidates with the shortest vector x.
    gram : ndarray of shape (c, c), float64
        :math:`\langle z_i, z_j\rangle`.
    square : float
        :math:`|x|^2`.
    share : float
        A candidate violates where its product is below this share of the square.
    n_keep : int
        Violators to choose, at most.

    Returns
    -------
    ndarray of shape (at most `n_keep`,), int64
        Positions, increasing. The worst candidate is always among them.

    Examples
    --------
    One of two equal rows is taken, and the row that pulls elsewhere.

    >>> z = np.array([[1.0, -1.0], [1.0, -1.0], [0.9, 1.5]])
    >>> choose_diverse(z @ [2.0, 0.0], z @ z.T, 4.0, 0.9, 2)
    array([0, 2])
    """
    products = products.copy()
    remaining = np.ones(len(products), dtype=bool)
    chosen: list[int] = []
    while len(chosen) < n_keep and remaining.any():
        worst = int(np.where(remaining, products, np.inf).argmin())
        if chosen and products[worst] >= share * square:
            break
        chosen.append(worst)
        remaining[worst] = False
        # The shortest vector on the segment from x to the row.
        span = square - 2.0 * products[worst] + gram[worst, worst]
        step = float(np.clip((square - products[worst]) / span, 0.0, 1.0)) if span > 0 else 0.0
        square = (
            (1.0 - step) ** 2 * square
            + 2.0 * step * (1.0 - step) * products[worst]
            + step**2 * gram[worst, worst]
        )
        products = (1.0 - step) * products + step * gram[worst]
    return np.sort(np.array(chosen, dtype=np.int64))
