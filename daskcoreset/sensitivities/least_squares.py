"""Coresets for linear regression: leverage scores, and weights raked to exact moments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from daskcoreset.core.blocks import Block, InvalidRow
from daskcoreset.core.linalg import (
    dense,
    inverse_root,
    is_narrow,
    product,
    ridge_coefficients,
    spread_directions,
    tiles,
)
from daskcoreset.core.moments import Scatter, merge_scatters, scatter_of
from daskcoreset.core.sampling import TOTALS, Calibrated, Target, calibrate_classes
from daskcoreset.core.typing import AnyArray, FloatArray, Points
from daskcoreset.core.validation import check_choice, check_flag, check_penalty
from daskcoreset.objectives.regression import LeastSquaresCost, find_bad_number, targets_of
from daskcoreset.sensitivities.base import SamplingDesign, Sensitivity

# Columns at most: a matrix of d x d numbers takes 128 MiB then, for every block.
_MAX_COLUMNS = 2**12


Variant: TypeAlias = Literal["calibrated", "systematic"]

# Rows of the coreset for every sum that is calibrated: fewer met few of them.
_ROWS_PER_SUM = 4

# Products in a Newton step of the raking at most: a second or two in all.
_MAX_WORK = 3e8

# Draws of which the best is kept, at most, and products of a Newton step of the raking of them all.
_MAX_DRAWS = 4
_MAX_TRIED = 2e7

_MOMENTS = "second moments"

# How many times as far from the data as those of unbiased weights second moments may be where they
# are no targets: so far they are after raking with light tails, by chance.
_SPOILT = 2.0

# Share of the spread of scaled columns below which a direction is rounding.
_FLAT = 1e-12


@dataclass(frozen=True)
class LeastSquaresDesign(SamplingDesign[Scatter]):
    """The draws of `LeastSquares`: weights raked to exact moments, the best of several draws.

    Attributes
    ----------
    variant, alpha, intercept
        As in `LeastSquares`.
    """

    variant: str
    alpha: float
    intercept: bool

    def n_draws(self, size: int, summary: Scatter) -> int:
        """Several where that takes milliseconds."""
        if self.variant == "systematic":
            return 1
        tried = _MAX_TRIED / (size * _n_sums(len(summary.mean) - 1, size) ** 2)
        return int(max(1, min(_MAX_DRAWS, tried)))

    def draw_loss(
        self,
        rows: Block,
        weights: FloatArray,
        candidates: Block,
        candidate_weights: FloatArray,
        summary: Scatter,
    ) -> float:
        """Cost, over all the data, of the solution on the rows drawn: moments know it exactly."""
        del candidates, candidate_weights
        values = dense(with_targets(rows))
        own = _about(scatter_of(values, weights), intercept=self.intercept)
        every = _about(summary, intercept=self.intercept)
        coef = ridge_coefficients(own.matrix, self.alpha, rcond=_FLAT)
        shift = own.mean - every.mean if self.intercept else np.zeros(len(own.mean))
        # Residuals of all the data are those about their own mean, and a shift.
        offset = float(shift[-1] - shift[:-1] @ coef)
        penalty = self.alpha * float(coef @ coef)
        return _residual(every.matrix, coef) + every.weight * offset**2 + penalty

    def calibrate(
        self, rows: Block, weights: FloatArray, summary: Scatter, draw_index: int = 0
    ) -> Calibrated:
        """Rake weights to the gradient at the exact solution, to means and to second moments."""
        del draw_index
        if self.variant == "systematic" or not len(rows):
            return Calibrated(weights)
        ladder = self._ladder(len(summary.mean) - 1, len(rows))
        if not ladder:  # in hundreds of columns what follows takes seconds
            return rake_all(rows.weights, weights, summary.weight, {}, ladder)
        every = _about(summary, intercept=self.intercept)
        d, scatter = len(every.mean) - 1, every.matrix
        gaps = dense(with_targets(rows)) - every.mean
        coef = ridge_coefficients(scatter, self.alpha, rcond=_FLAT)
        residuals = gaps[:, d] - gaps[:, :d] @ coef
        # So that no square of a square overflows.
        unit = float(np.abs(residuals).max()) or 1.0
        residuals /= unit
        # In coordinates in which columns are alike: raking regularises by the size of the sums.
        root = spread_directions(scatter[:d, :d])
        points = gaps[:, :d] @ root

        def gradient() -> Target:
            slopes = root.T @ (scatter[:d, d] - scatter[:d, :d] @ coef)
            sums = [points * residuals[:, np.newaxis], np.square(residuals)[:, np.newaxis]]
            totals: FloatArray = np.append(slopes / unit, _residual(scatter, coef) / unit**2)
            if self.intercept:
                sums.append(residuals[:, np.newaxis])
                totals = np.append(totals, 0.0)
            return Target(np.concatenate(sums, axis=1), totals)

        def means() -> Target:
            return Target(points, np.zeros(points.shape[1]))

        def moments() -> Target:
            first, second = np.triu_indices(points.shape[1])
            totals = root.T @ scatter[:d, :d] @ root
            return Target(points[:, first] * points[:, second], totals[first, second])

        def squares() -> Target:
            return Target(np.square(points), _diagonal(scatter[:d, :d], root))

        targets = {"gradient": gradient, "means": means, _MOMENTS: moments}
        kept = {} if _MOMENTS in ladder[0] else {"squares": squares}
        return rake_all(rows.weights, weights, summary.weight, targets, ladder, kept)

    def _ladder(self, d: int, size: int) -> list[tuple[str, ...]]:
        """Return sets of targets to try in turn, by columns and rows; none of too few rows."""
        few = 2 * d + 2
        if size < _ROWS_PER_SUM * few:
            return [("gradient",)] if size >= few else []
        ladder = [("gradient", "means"), ("gradient",)][not self.intercept :]
        if _n_sums(d, size) > few:
            ladder.insert(0, (*ladder[0], _MOMENTS))
        return ladder


def too_many_columns(n_features: int) -> str | None:
    """Return why a matrix of d x d numbers would take too much, or None."""
    if n_features <= _MAX_COLUMNS:
        return None
    return (
        f"a matrix of d x d numbers takes {n_features**2 / 2**27:.3g} GiB for every block; "
        f"pass {_MAX_COLUMNS:,} columns at most, for example those of "
        f"sklearn.decomposition.TruncatedSVD."
    )


def rake_all(  # noqa: PLR0917 - all but the last are always given
    own: FloatArray,
    weights: FloatArray,
    total: float,
    targets: dict[str, Callable[[], Target]],
    ladder: list[tuple[str, ...]],
    kept: dict[str, Callable[[], Target]] | None = None,
) -> Calibrated:
    """Scale weights to their total, and rake them as `calibrate_classes` does without classes.

    Rows of their `own` weight, which are drawn for certain, stand for themselves alone and keep it:
    with heavy tails they hold most of the sums, and to rake them would move the cost of every other
    model far from that on the data. Targets that are only `kept` end at most twice as far away.
    Where those are given, and not all is met so, all rows are raked if more is met then: of a rare
    category, say, of which nearly all rows are certain, the others alone can carry no sum.
    """
    makers = {**targets, **(kept or {})}
    # Made once, though all rows may be raked after some.
    target_of = cache(lambda name: makers[name]())

    def raked(moved: AnyArray, left: float) -> Calibrated:
        def of_moved(name: str) -> Target:
            """Return what the rows that stay as they are leave of a target."""
            features, totals = target_of(name)
            return Target(features[moved], totals - weights[~moved] @ features[~moved])

        found = calibrate_classes(
            weights[moved],
            np.zeros(int(moved.sum()), dtype=np.int64),
            np.array([left]),
            {name: partial(of_moved, name) for name in targets},
            ladder,
            kept={name: partial(map, of_moved, [name]) for name in kept or {}},
            slack=_SPOILT,
        )
        every = weights.copy()
        every[moved] = found.weights
        return found._replace(weights=every)

    free = weights > own * (1.0 + 1e-9)
    left = total - float(weights[~free].sum())
    tried = [raked(free, left)] if free.any() and left > 0.0 else []
    if not tried or (kept is not None and not free.all() and tried[0].met != tried[0].requested):
        tried.append(raked(np.ones(len(weights), dtype=bool), total))
    best = max(tried, key=lambda one: (len(one.met or ()), one.part))
    met, requested = (
        tuple("total weight" if name == TOTALS else name for name in names or ())
        for names in (best.met, best.requested)
    )
    return best._replace(met=met, requested=requested)


def _n_sums(d: int, size: int) -> int:
    """Count the sums to be calibrated, with second moments where rows and time are enough."""
    few, many = 2 * d + 2, 2 * d + 2 + d * (d + 1) // 2
    return many if size >= _ROWS_PER_SUM * many and size * many**2 <= _MAX_WORK else few


def _about(scatter: Scatter, *, intercept: bool) -> Scatter:
    """Scatter about the mean, or about the origin."""
    if intercept:
        return scatter
    matrix = scatter.matrix + scatter.weight * np.outer(scatter.mean, scatter.mean)
    return Scatter(scatter.weight, np.zeros_like(scatter.mean), matrix)


def _diagonal(matrix: FloatArray, root: FloatArray) -> FloatArray:
    """Diagonal of R^T M R."""
    return np.asarray((root * product(matrix, root)).sum(axis=0))


def _residual(matrix: FloatArray, coef: FloatArray) -> float:
    """Sum of squared residuals about the mean, from the scatter of the columns and y."""
    d = len(coef)
    whole = matrix[d, d] - 2.0 * coef @ matrix[:d, d] + coef @ matrix[:d, :d] @ coef
    return max(float(whole), 0.0)


@dataclass(frozen=True)
class LeastSquares(Sensitivity[Scatter]):
    r"""Coresets for least squares and ridge regression: leverage scores, and exact moments.

    With the rows :math:`a = (x, 1, y)` and :math:`S = \sum_a u(a) a a^T`, the score
    :math:`u(a)\, a^T (S + \alpha I)^+ a` is the sensitivity of the row itself, the largest share
    that it has in the cost of any w and b. Scores add up to the rank of S, at most d + 2; the
    penalty is one of w alone.

    S is known from the same read. So weights are raked, as far as rows and time allow, until the
    gradient and the cost of the exact solution, the means and the second moments of the columns
    are those of the data: with the first the solution on the rows is that on the data, with all of
    them it is so for any other penalty, and for any part of the columns. No weight is
    raised or lowered by more than a factor of 20, rows that are drawn for certain keep theirs
    where the others meet all that is asked, and second moments that are not met end at most twice
    as far away, so that other models are not spoilt. What was met is said by
    ``provenance["calibration"]``: of more rows more is asked, and less may be met. Before it
    weights are unbiased for every w and b.

    Parameters
    ----------
    intercept : bool, default=True
        Whether the solutions that the coreset is for have an intercept.
    alpha : float, default=0.0
        Of :math:`\sum_x u(x) (y(x) - \langle x, w \rangle - b)^2 + \alpha |w|^2`.
    variant : {"calibrated", "systematic"}, default="calibrated"
        "systematic": the unbiased weights. "calibrated": raked as above, and of up to four draws
        the one whose solution costs least on all the data, which the moments know.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If a parameter cannot be used. When building: if y is missing or holds no numbers.

    Examples
    --------
    >>> import daskcoreset
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 3))
    >>> y = X @ [1.0, -2.0, 0.5] + rng.normal(size=5000)
    >>> coreset = daskcoreset.build(X, y, size=500, method="least_squares", random_state=0)
    >>> coreset.audit(X, y, random_state=0).distortion < 0.2
    True

    References
    ----------
    Drineas, Mahoney and Muthukrishnan (2006), Sampling algorithms for l2 regression and
    applications, section 3.
    """

    intercept: bool = True
    alpha: float = 0.0
    variant: Variant = "calibrated"

    name: ClassVar[str] = "least_squares"
    citation: ClassVar[str] = "drineas2006sampling, section 3"
    needs_labels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_flag("intercept", self.intercept)
        check_penalty("alpha", self.alpha)
        check_choice("variant", self.variant, "calibrated", "systematic")

    @property
    def objective(self) -> LeastSquaresCost:
        """The cost of linear regression."""
        return LeastSquaresCost(self.intercept, float(self.alpha))

    @property
    def design(self) -> LeastSquaresDesign:
        """Weights raked to exact moments."""
        return LeastSquaresDesign(self.variant, float(self.alpha), self.intercept)

    def _penalised(self, summary: Scatter) -> Scatter:
        """Return the scatter with the penalty of the columns of X."""
        if not self.alpha:
            return summary
        added = np.full(len(summary.mean), float(self.alpha))
        added[-1] = 0.0
        return replace(summary, matrix=summary.matrix + np.diag(added))

    def too_much(self, n_rows: int, n_features: int) -> str | None:
        """Return why a matrix of d x d numbers would take too much."""
        del n_rows
        return too_many_columns(n_features)

    def find_invalid_row(self, block: Block) -> InvalidRow | None:
        """Return the first row without a number as its label."""
        return find_bad_number(block)

    def block_summary(
        self, block: Block, previous: Scatter | None, rng: np.random.Generator
    ) -> Scatter:
        """Scatter of the features and y together."""
        del previous, rng
        return scatter_of(with_targets(block), block.weights)

    def merge(self, first: Scatter, second: Scatter) -> Scatter:
        """Scatter of both."""
        return merge_scatters(first, second)

    def scores(self, block: Block, summary: Scatter) -> FloatArray:
        """Return u times the leverage of a row of weight one."""
        if summary.weight == 0.0:
            return np.zeros((1, len(block)))
        penalised = self._penalised(summary)
        points = with_targets(block)
        scores = leverages(points, block.weights, penalised, intercept=self.intercept)
        return (scores * block.weights)[np.newaxis]

    def total_scores(self, local: Scatter, summary: Scatter) -> FloatArray:
        """Return the exact sum of `scores` over a block, from its scatter."""
        penalised = self._penalised(summary)
        return np.array([total_leverage(local, penalised, intercept=self.intercept)])


def leverages(
    points: Points, weights: FloatArray, scatter: Scatter, *, intercept: bool
) -> FloatArray:
    r"""Leverages :math:`a^T S^+ a` of rows, float64 of shape (n,).

    Parameters
    ----------
    points : ndarray of shape (n, d) or csr_array
    weights : ndarray of shape (n,), float64
        Rows of weight zero may hold anything: they count as the mean.
    scatter : Scatter
        Of all rows, of positive weight.
    intercept : bool
        Whether an entry of one is appended to every row.

    Examples
    --------
    >>> rows = np.array([[-1.0], [1.0]])
    >>> leverages(rows, np.ones(2), scatter_of(rows, np.ones(2)), intercept=True).round(5)
    array([1., 1.])
    """
    none = np.empty((0, len(scatter.mean)))
    return leverages_and_products(points, weights, scatter, none, intercept=intercept)[0]


def leverages_and_products(
    points: Points, weights: FloatArray, scatter: Scatter, vectors: FloatArray, *, intercept: bool
) -> tuple[FloatArray, FloatArray]:
    """Leverages, and products with vectors of shape (p, d), of shape (n, p), in one go.

    Products are those of rows less the center of leverages: the mean, or without intercept zero.
    """
    center, root = _whitening(scatter, intercept=intercept)
    if is_narrow(points):
        from daskcoreset.core import gaps_numba as loops

        out, products = loops.lengths_and_products(points, weights, center, root, vectors)
    else:
        out, products = np.empty(len(weights)), np.empty((len(weights), len(vectors)))
        columns = np.ascontiguousarray(vectors.T)
        for part, gaps in gaps_of(points, weights, center):
            out[part] = np.square(product(gaps, root)).sum(axis=1)
            if len(vectors):
                products[part] = product(gaps, columns)
    # About the mean the entry of one stands at right angles to all columns.
    return out + 1.0 / scatter.weight if intercept else out, products


def gaps_of(
    points: Any, weights: FloatArray, center: FloatArray
) -> Iterator[tuple[slice, FloatArray]]:
    """Go through rows less a center, some at a time; those of weight zero are at the center."""
    for rows in tiles(len(weights), len(center)):
        gaps = dense(points[rows]) - center
        gaps[weights[rows] == 0.0] = 0.0
        yield rows, gaps


def total_leverage(local: Scatter, scatter: Scatter, *, intercept: bool) -> float:
    """Sum of the `leverages` of the rows of a block, each times its weight, from its scatter."""
    if local.weight == 0.0:
        return 0.0
    center, root = _whitening(scatter, intercept=intercept)
    # M is the block's scatter about the center of all rows.
    gap = local.mean - center
    total = float(_diagonal(local.matrix + local.weight * np.outer(gap, gap), root).sum())
    return total + local.weight / scatter.weight if intercept else total


def _whitening(scatter: Scatter, *, intercept: bool) -> tuple[FloatArray, FloatArray]:
    r"""Return the center of leverages, and R with :math:`R R^T \approx S^+` about it."""
    if intercept:
        return scatter.mean, inverse_root(scatter.matrix)
    added = scatter.weight * np.outer(scatter.mean, scatter.mean)
    return np.zeros_like(scatter.mean), inverse_root(scatter.matrix + added)


def with_targets(block: Block) -> Any:
    """Return the features with y as the last column."""
    y: AnyArray = targets_of(block)[:, np.newaxis]
    if isinstance(block.points, np.ndarray):
        return np.concatenate([block.points, y], axis=1)
    import scipy.sparse as sp

    return sp.csr_array(sp.hstack([block.points, y], format="csr"))
