r"""The core-set loop for a maximum margin, and its form for two classes.

The loop is Fig. 1 of Har-Peled, Roth and Zimak (2007): separate the core set, read all rows for
violated constraints, add some of them. By Corollary 3.2 any violated constraint will do, so that
every block may return some, and one read does the work of many.

For two classes, a row is a constraint. The worst rows of a block often lie side by side. So the
worst one is taken first. The shortest vector moves towards it along a segment, as in Gilbert's
method, and products with all other candidates are updated. The next row is the worst for the new
vector. Rows that do not violate its margin are not taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from daskcoreset.constructions.class_summary import ClassSummary
from daskcoreset.core.block import Block, labels_of
from daskcoreset.core.deadline import check_time
from daskcoreset.core.linalg import dense_rows, inner_products, product
from daskcoreset.core.messages import warn_user
from daskcoreset.core.moments import distances_to
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points
from daskcoreset.errors import InvalidInputError, NotSeparableError
from daskcoreset.execution.engine import map_reduce
from daskcoreset.execution.select import SelectedRows, row_numbers, smallest
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.solvers.hard_margin import HardMargin, hard_margin

Violators = int | Literal["auto"]
Rows = TypeVar("Rows", bound=SelectedRows)

# Up to which hard-margin problems are solved.
TOLERANCE = 1e-9

# Violators compared for each that is taken.
_CANDIDATES = 8

# Rows whose products with all others are formed at a time.
_TILE = 256

# Columns of more rows than these, at most: separating 2,000 of so many takes minutes.
_MAX_COLUMNS = 2**11


# --- the loop --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pass:
    """One solution on the core set, and its margin on the data, measured by one read.

    Attributes
    ----------
    reads : int
        Reads of the data so far.
    size : int
        Constraints in the core set.
    core_margin : float
        The largest margin on the core set, an upper bound of the largest margin on the data.
        Infinite for an empty core set.
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


@dataclass(frozen=True, eq=False)
class Found(Generic[Rows]):
    """The margin of a separator on the data, and the constraints that it violates.

    Attributes
    ----------
    hard : HardMargin
        The separator, its intercept as the data allow it.
    margin : float
        On all data.
    rows : SelectedRows
        Violated constraints that are not in the core set.
    """

    hard: HardMargin
    margin: float
    rows: Rows


@dataclass(frozen=True, eq=False, repr=False)
class CoreSet(Generic[Rows]):
    r"""A core set, its best separator, and the certificate.

    Attributes
    ----------
    core : SelectedRows
        Its constraints.
    hard : HardMargin
        The separator of largest margin on the data.
    bound : HardMargin
        The separator of the whole core set. If there is none, it is the evidence.
    margin : float
        Margin on all the data, measured by a read.
    core_margin : float
        Margin on the core set: an upper bound of the largest margin on the data.
    epsilon : float
    reason : str
        Why the loop ended before the margin was certified, or empty.
    trace : tuple of Pass
    indices : ndarray of shape (m,), int64
        Row numbers of the constraints. An example of several rows has the number of the first.
    n_rows : int
        Rows or examples of the data.
    radius : float or None
        R, the largest distance of a row from the origin. With an intercept, from a center.
    largest_label : int
        The largest label of all rows, as numbers of a structured problem.
    """

    core: Rows
    hard: HardMargin
    bound: HardMargin
    margin: float
    core_margin: float
    epsilon: float
    reason: str
    trace: tuple[Pass, ...]
    indices: IndexArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    n_rows: int = 0
    radius: float | None = None
    largest_label: int = 0

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({len(self.core):,} constraints of {self.n_rows:,} rows, margin "
            f"{self.margin:.6g} >= {self.factor:.4g} x the largest, {self.reads} reads)"
        )

    @property
    def w(self) -> FloatArray:
        """Normal of the best separator."""
        return self.hard.w

    @property
    def dual(self) -> FloatArray:
        """Coefficients of the best separator, which is in proportion to their combination."""
        dual = np.zeros(len(self.core))  # constraints were only added after those of it
        dual[: len(self.hard.dual)] = self.hard.dual
        return dual

    @property
    def converged(self) -> bool:
        """Whether ``margin >= (1 - epsilon) * core_margin``."""
        return not self.reason

    @property
    def factor(self) -> float:
        r"""Certified share of the largest margin that is reached, :math:`\rho / \rho_C`."""
        return self.margin / self.core_margin

    @property
    def reads(self) -> int:
        """Reads of all the data."""
        return self.trace[-1].reads

    def rows(self) -> WeightedPoints:
        """Return the rows of the core set, each once, with weights of one, labels and numbers."""
        indices, first = np.unique(self.indices, return_index=True)
        block = self.core.block.take(first)
        return WeightedPoints(block.points, np.ones(len(first)), indices, block.labels)

    def describe(self) -> dict[str, Any]:
        """Facts for a provenance, plain JSON."""
        facts = {
            "epsilon": float(self.epsilon),
            "margin": self.margin,
            "core_margin": self.core_margin,
            "factor": self.factor,
            "converged": self.converged,
            "reads": self.reads,
            "passes": [
                {"size": step.size, "core_margin": step.core_margin, "margin": step.margin}
                for step in self.trace
                if step.size
            ],
        }
        if self.radius is not None:
            bound = passes_bound(self.radius, self.core_margin, self.epsilon)
            facts |= {"radius": self.radius}
            facts |= {"passes_bound": bound if math.isfinite(bound) else None}
        return facts


Loop = Generator[tuple[Rows, HardMargin], Found[Rows], CoreSet[Rows]]


def grow_core_set(
    core: Rows,
    solve: Callable[[Rows], HardMargin],
    *,
    epsilon: float,
    max_passes: int | None = None,
    reads: int = 0,
    trace: tuple[Pass, ...] = (),
) -> Loop[Rows]:
    """Add violated constraints until the margin is certified.

    Parameters
    ----------
    core : SelectedRows
        Constraints to start from.
    solve : callable
        ``solve(core)`` returns the separator of largest margin on a core set.
    epsilon : float
        The margin is at least ``1 - epsilon`` of the largest.
    max_passes : int or None, default=None
        Passes at most, those in `trace` included.
    reads : int, default=0
        Reads before.
    trace : tuple of Pass
        Passes before.

    Yields
    ------
    tuple of SelectedRows and HardMargin
        A core set and its separator. The generator is sent what a read finds of it.

    Returns
    -------
    CoreSet
    """
    best: Found[Rows] | None = None
    passes, upper, reason = list(trace), math.inf, ""
    while True:
        hard = solve(core)
        # No margin on the data passes that on a part of them.
        upper = min(upper, hard.length)
        if not hard.separable:
            reason = "no separator has a margin"
            break
        if best is not None:
            if best.margin >= (1.0 - epsilon) * upper:
                break
            if max_passes is not None and len(passes) >= max_passes:
                reason = (
                    f"it ended after {len(passes)} passes, by max_passes={max_passes}; pass a "
                    "larger one"
                )
                break
        found = yield core, hard
        reads += 1
        # The margin on the data may fall from a pass to the next, and the best one counts.
        if best is None or found.margin > best.margin:
            best = found
        passes.append(Pass(reads, len(core), upper, found.margin, best.margin))
        if best.margin >= (1.0 - epsilon) * upper:
            break
        if not len(found.rows):
            reason = "the margin is too small for double precision; scale the columns"
            break
        core = core.joined(found.rows)
    best_hard, margin = (hard, 0.0) if best is None else (best.hard, best.margin)
    return CoreSet(core, best_hard, hard, margin, upper, epsilon, reason, tuple(passes))


def complete(loop: Loop[Rows], read: Callable[[Rows, HardMargin], Found[Rows]]) -> CoreSet[Rows]:
    """Run the loop to its end, with one read a pass. Warn if the margin is not certified."""
    step: Found[Rows] | None = None
    while True:
        try:
            core, hard = loop.send(step)  # type: ignore[arg-type] # None starts it
        except StopIteration as end:
            found: CoreSet[Rows] = end.value
            break
        step = read(core, hard)
    if found.reason and found.bound.separable:
        warn_user(
            f"the margin is certified to {found.margin / found.core_margin:.3g} of the largest "
            f"and not to {1 - found.epsilon:.3g}: {found.reason}."
        )
    return found


def floors_of(hard: HardMargin, epsilon: float) -> FloatArray:
    """Products of each class below which a row violates the margin of a core set."""
    # Together the share of the margin: some row is below unless it is reached.
    return np.asarray(hard.levels + (hard.length - hard.margin) - epsilon * hard.length)


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


# --- two classes -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Query:
    """A separator, and which of the rows that violate its margin to return.

    Attributes
    ----------
    hard : HardMargin
    middle : ndarray of shape (d,), float64
        Midway between the hulls of the core set. Zeros through the origin.
    classes : ndarray of shape (2,)
    epsilon : float
    per_block : int
        Rows to return.
    center : ndarray of shape (d,), float64, or None
        From which R is measured. None if it is known.
    """

    hard: HardMargin
    middle: FloatArray
    classes: AnyArray
    epsilon: float
    per_block: int
    center: FloatArray | None


@dataclass(frozen=True, eq=False)
class _Worst:
    r"""The worst rows of some blocks.

    Attributes
    ----------
    levels : ndarray of shape (1,) or (2,), float64
        Smallest :math:`y \langle w, x\rangle` of each class, as in `HardMargin`.
    square : float
        Largest squared distance from the center.
    rows : SelectedRows
        Violators. Their values are how far they are above their floor, all negative.
    """

    levels: FloatArray
    square: float
    rows: SelectedRows

    def merged(self, other: _Worst, *, n_keep: int) -> _Worst:
        levels, square = np.minimum(self.levels, other.levels), max(self.square, other.square)
        return _Worst(levels, square, self.rows.joined(other.rows).smallest(n_keep))


def max_margin(
    blocks: RowBlocks,
    summary: ClassSummary,
    *,
    epsilon: float,
    intercept: bool,
    violators: Violators,
    max_passes: int,
) -> CoreSet[SelectedRows]:
    """Separate two classes by nearly the largest margin.

    Parameters
    ----------
    blocks : RowBlocks
        With labels.
    summary : ClassSummary
        With rows near the boundary.
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
    CoreSet

    Raises
    ------
    NotSeparableError
        If no hyperplane separates the classes.
    """
    few = max(20, min(2 * blocks.schema.n_features, 1000))
    in_all = few if violators == "auto" else violators
    # Twice its share from each block, for blocks are not alike.
    per_block = min(-(-2 * in_all // blocks.n_blocks), in_all)
    start, classes = summary.near_rows(max(1, in_all // 2)), summary.classes
    center: FloatArray = np.zeros(blocks.schema.n_features)
    if intercept:  # not about a distant origin
        points: Any = start.block.points
        center = np.asarray(points.mean(axis=0, dtype=np.float64)).ravel()
    squares: list[float] = []

    def read(core: SelectedRows, hard: HardMargin) -> Found[SelectedRows]:
        middle = np.zeros_like(hard.w)
        if intercept:
            middle = product(hard.dual[None], _dense(core.block.points))[0] / 2.0
        measured = None if squares else center
        query = _Query(hard, middle, classes, epsilon, per_block, measured)
        # Merging keeps more than are taken, for a choice of directions at the end.
        merge = partial(_Worst.merged, n_keep=4 * in_all)
        worst: _Worst = map_reduce(blocks, _worst_of_block, merge, broadcast=query).value
        squares.append(worst.square)
        # As few as were asked for are all taken, whatever they pull at.
        rows = worst.rows
        rows = _diverse(rows, query, in_all) if len(rows) > in_all else rows
        new = rows.take(np.flatnonzero(~np.isin(rows.keys, core.keys)))
        levels = worst.levels
        if intercept:  # the middle of the strip that the data leave
            hard = replace(hard, intercept=float(levels[1] - levels[0]) / 2)
        return Found(hard, float(levels.sum()) / len(levels), new)

    solve = partial(_separate, classes=classes, intercept=intercept)
    loop = grow_core_set(start, solve, epsilon=epsilon, max_passes=max_passes, reads=1)
    found = complete(loop, read)
    numbers = row_numbers(found.core.keys, summary.starts)
    if not found.bound.separable:
        plane = "a hyperplane" if intercept else "a hyperplane through the origin"
        wrong = "drop wrong rows, or use OutlierMaxMarginClassifier or a soft margin"
        raise not_separable(
            f"X and y are not separable by {plane}",
            found.bound.dual,
            numbers,
            numbers.tolist(),
            argument="X",
            remedy=wrong if intercept else f"use an intercept, {wrong}",
            points=found.core.block.points,
            norm=found.bound.length * len(found.bound.levels),
            intercept=intercept,
        )
    radius = float(np.sqrt(squares[0]))
    return replace(found, indices=numbers, n_rows=summary.n_read, radius=radius)


def refuse_wide(blocks: RowBlocks, most: int | None = None) -> None:
    """Raise an error if rows are many and have too many columns to be separated by a hyperplane.

    Few rows may have any number of columns: the work is that of the fewer of both, cubed.

    Parameters
    ----------
    blocks : RowBlocks
    most : int or None, default=None
        Rows that are separated at most. None for all.
    """
    d, n_rows = blocks.schema.n_features, blocks.n_rows if most is None else most
    if d <= _MAX_COLUMNS or (n_rows is not None and n_rows <= _MAX_COLUMNS):
        return
    raise InvalidInputError(
        f"X has {d:,} columns, and the solver needs matrices of d x d numbers",
        argument="X",
        remedy=f"pass at most {_MAX_COLUMNS:,} columns, for example those of "
        "sklearn.decomposition.TruncatedSVD or of sklearn.feature_selection",
    )


def signs_of(block: Block, classes: AnyArray) -> FloatArray:
    """+1 for the second of two classes, -1 for the first, and 0 for rows without a weight."""
    signs = np.where(labels_of(block) == classes[1], 1.0, -1.0)
    signs[block.weights == 0.0] = 0.0
    return signs


def _dense(points: Points) -> FloatArray:
    return dense_rows(points).astype(np.float64)


def _separate(core: SelectedRows, *, classes: AnyArray, intercept: bool) -> HardMargin:
    """Solve the hard-margin problem on the rows of a core set."""
    points: Any = core.block.points
    # Columns that are zero in every row of the core set are zero in the normal.
    used = np.union1d([0], points.nonzero()[1])
    signs, w = signs_of(core.block, classes), np.zeros(points.shape[1])
    hard = hard_margin(_dense(points[:, used]), signs, intercept=intercept, tol=TOLERANCE)
    w[used] = hard.w
    return replace(hard, w=w)


def _worst_of_block(block: Block, block_index: int, query: _Query) -> _Worst:
    hard, signs = query.hard, signs_of(block, query.classes)
    products = signs * inner_products(block.points, hard.w[None])[:, 0]
    groups = (signs < 0.0).astype(np.int64) if len(hard.levels) == 2 else np.zeros(len(block), int)
    used = signs != 0.0
    levels = [products[used & (groups == g)].min(initial=np.inf) for g in range(len(hard.levels))]
    square = 0.0
    if query.center is not None and used.any():
        square = float(distances_to(block.points, query.center)[used].max())
    values = products - floors_of(hard, query.epsilon)[groups]
    values[~used | (values >= 0.0)] = np.inf
    # More than are taken, so that rows which pull elsewhere are among them.
    below = smallest(values, _CANDIDATES * query.per_block)
    rows = SelectedRows.of(block, block_index, below, values[below])
    return _Worst(np.array(levels), square, _diverse(rows, query, query.per_block))


def _diverse(rows: SelectedRows, query: _Query, n_keep: int) -> SelectedRows:
    """Take some of the violators, which pull the shortest vector in different directions."""
    if len(rows) < 2:  # no row, or the only one
        return rows
    if n_keep == 1:
        return rows.take(np.array([rows.values.argmin()]))
    points, length = _dense(rows.block.points) - query.middle, query.hard.length
    gram = np.empty((len(points), len(points)))
    for start in range(0, len(points), _TILE):
        check_time("violators of a margin were being compared", "pass fewer columns")
        gram[start : start + _TILE] = inner_products(points[start : start + _TILE], points)
    signs, share = signs_of(rows.block, query.classes), 1.0 - query.epsilon
    gram = gram * np.outer(signs, signs)
    products = rows.values + share * length
    return rows.take(choose_diverse(products * length, gram, length**2, share, n_keep))


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


# --- evidence --------------------------------------------------------------------------------


def not_separable(
    problem: str,
    dual: FloatArray,
    numbers: IndexArray,
    names: Sequence[object],
    *,
    argument: str,
    remedy: str,
    points: Any = None,
    **evidence: Any,
) -> NotSeparableError:
    """Return the error of rows with a convex combination that has no margin.

    Parameters
    ----------
    problem : str
    dual : ndarray of shape (m,), float64
        Coefficients of the combination.
    numbers : ndarray of shape (m,), int64
        Numbers of the rows.
    names : sequence of length m
        The same, for the message.
    argument, remedy : str
    points : ndarray of shape (m, d) or csr_array, optional
        The rows. Two equal ones are called so.
    **evidence
        Further attributes of the error.
    """
    rows = np.flatnonzero(dual > 0.0)
    rows = rows[np.argsort(-dual[rows], kind="stable")]
    indices, duplicates = numbers[rows], None
    named = first_few([names[i] for i in rows.tolist()], 6)
    why = f"a convex combination of rows {named} has no margin"
    if points is not None and len(rows) == 2 and np.array_equal(*dense_rows(points[rows])):
        duplicates = int(indices.min()), int(indices.max())
        why = f"rows {duplicates[0]} and {duplicates[1]} are equal"
    return NotSeparableError(
        f"{problem}: {why}",
        argument=argument,
        remedy=remedy,
        indices=indices,
        coefficients=dual[rows],
        duplicates=duplicates,
        **evidence,
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
