"""Coresets for linear quantile regression: a pilot, its residuals, leverage, raked weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from daskcoreset.core.blocks import Block, InvalidRow
from daskcoreset.core.linalg import dense, spread_directions, tiles
from daskcoreset.core.moments import Scatter, merge_scatters, scatter_of
from daskcoreset.core.ordering import spatial_order
from daskcoreset.core.sampling import (
    TOTALS,
    Calibrated,
    StratifiedReservoir,
    Target,
    calibrate_classes,
    merge_reservoirs,
    sample_strata,
)
from daskcoreset.core.typing import FloatArray, IndexArray
from daskcoreset.core.validation import as_float, check_choice, check_flag
from daskcoreset.objectives import LinearPredictor, PinballCost
from daskcoreset.objectives.regression import find_bad_number, residuals_of
from daskcoreset.sensitivities.base import SamplingDesign, Sensitivity
from daskcoreset.sensitivities.least_squares import leverages, too_many_columns, with_targets
from daskcoreset.solvers.quantile import solve_quantile

Variant: TypeAlias = Literal["calibrated", "systematic"]

# Rows of the pilot, and numbers of it at most.
_PILOT_ROWS = 2048
_PILOT_NUMBERS = 2**19

# Share of the pilot's rows with residuals so small that the loss is rounded off there.
_ROUNDED = 0.1

# Shares of the rows by pull, by loss, by leverage, and by its root with an equal share for all,
# which bounds the sensitivity of a row with a third more than three times the rows. With an eighth
# by the root errors were greater, with two fifths of it and none by the loss those of the costs of
# data with one y far out were those of uniform rows.
_SHARES = np.array([0.4, 0.1, 0.2, 0.3])

# Pull of a row that the pilot meets exactly.
_MIN_PULL = 0.05

# Rows of the coreset for every sum that is calibrated.
_ROWS_PER_SUM = 4

# Draws at most, rows of all draws together, and products in a step of a trial.
_MAX_DRAWS = 4
_TRIED_ROWS = 8000
_TRIAL_WORK = 2e7


@dataclass(frozen=True, eq=False)
class SampledScatter(Scatter):
    """Scatter of the columns of X, and a sample of the rows.

    Attributes
    ----------
    sample : dict of int to StratifiedReservoir
        Of one stratum; its rows have y as the last column.
    """

    sample: dict[Any, StratifiedReservoir]


@dataclass(frozen=True, eq=False)
class QuantilePilot:
    r"""A rough solution, and what is known of all rows.

    Attributes
    ----------
    scatter : Scatter
        Of the columns of X.
    predictor : LinearPredictor
        Of the pilot.
    width : float
        h, below which residuals are rounded off.
    totals : ndarray of shape (4,), float64
        Sums of the terms of the scores; of the pilot, until a fold has summed them up.
    sums : QuantileSums or None
        Of all the data; None after the first fold.
    """

    scatter: Scatter
    predictor: LinearPredictor
    width: float
    totals: FloatArray
    sums: QuantileSums | None = None


class QuantileSums(NamedTuple):
    """Sums over rows, given a rough solution.

    Attributes
    ----------
    pilot : QuantilePilot
        Of the fold before.
    losses : ndarray of shape (1,), float64
        Weighted sum of the rounded losses.
    slopes : ndarray of shape (d + 1,), float64
        Weighted sums of the pulls times the row about its mean, and one.
    totals : ndarray of shape (4,), float64
    """

    pilot: QuantilePilot
    losses: FloatArray
    slopes: FloatArray
    totals: FloatArray


def round_pinball(
    residuals: FloatArray, quantile: float, width: float
) -> tuple[FloatArray, FloatArray]:
    """Round the pinball loss off; return it and its derivative.

    Parameters
    ----------
    residuals : ndarray
    quantile : float
    width : float
        h, positive.

    Returns
    -------
    loss : ndarray
        At most h/4 above the pinball loss, and the same beyond h.
    pull : ndarray
        From ``quantile - 1`` to ``quantile``.

    Examples
    --------
    >>> loss, pull = round_pinball(np.array([-2.0, 0.0, 2.0]), 0.25, 1.0)
    >>> loss.tolist(), pull.tolist()
    ([1.5, 0.25, 0.5], [-0.75, -0.25, 0.25])
    """
    share = np.clip((residuals + width) / (2.0 * width), 0.0, 1.0)
    inside = share * share * width + (quantile - 1.0) * residuals
    beyond = np.maximum(quantile * residuals, (quantile - 1.0) * residuals)
    loss = np.where((share > 0.0) & (share < 1.0), inside, beyond)
    return loss, share + (quantile - 1.0)


@dataclass(frozen=True)
class QuantileDesign(SamplingDesign[QuantilePilot]):
    """The draws of `QuantileRegression`: by the sign of the residual, with raked weights.

    Attributes
    ----------
    quantile, variant, intercept
        As in `QuantileRegression`.
    """

    quantile: float
    variant: str
    intercept: bool

    scores_from_pilot: ClassVar[bool] = True

    def pilot_total(self, summary: QuantilePilot) -> float:
        """Sum of all scores, as the pilot estimates it."""
        del summary
        return 1.0

    def order(self, rows: Block, summary: QuantilePilot, inclusion: FloatArray) -> IndexArray:
        """Order by the sign of the residual, and within it so that neighbours are alike."""
        above = residuals_of(rows, summary.predictor) > 0.0
        points: Any = rows.points
        halves = [np.flatnonzero(above), np.flatnonzero(~above)]
        ordered = [part[spatial_order(points[part], inclusion[part])] for part in halves]
        return np.concatenate(ordered)

    def n_draws(self, size: int, summary: QuantilePilot) -> int:
        """Several where rows are few, and chance decides."""
        work = size * (len(summary.predictor.coef) + 1) ** 2
        if self.variant == "systematic" or work > _TRIAL_WORK:
            return 1
        return int(max(1, min(_MAX_DRAWS, _TRIED_ROWS // size)))

    def draw_loss(
        self,
        rows: Block,
        weights: FloatArray,
        candidates: Block,
        candidate_weights: FloatArray,
        summary: QuantilePilot,
    ) -> float:
        """Cost, over all candidates, of the solution on the rows drawn."""
        del summary
        cost = PinballCost(self.quantile, self.intercept)
        fitted = cost.solve(replace(rows, weights=weights), np.random.default_rng(0))
        return float(candidate_weights @ cost.losses(candidates, fitted))

    def calibrate(
        self, rows: Block, weights: FloatArray, summary: QuantilePilot, draw_index: int = 0
    ) -> Calibrated:
        """Rake weights to the loss and the gradient of the pilot, and to the means."""
        del draw_index
        if self.variant == "systematic" or not len(rows):
            return Calibrated(weights)
        sums, d = summary.sums, len(summary.predictor.coef)
        assert sums is not None  # noqa: S101 - the last fold has summed up
        residuals = residuals_of(rows, summary.predictor)
        losses, pulls = round_pinball(residuals, self.quantile, summary.width)
        unit = float(losses.max()) or 1.0  # so that no square overflows
        center, root = _coordinates(summary.scatter, intercept=self.intercept)
        points = (dense(rows.points) - center) @ root

        def gradient() -> Target:
            features = np.column_stack([points * pulls[:, np.newaxis], pulls, losses / unit])
            totals = [root.T @ sums.slopes[:d], sums.slopes[d:], sums.losses / unit]
            return Target(features, np.concatenate(totals))

        def means() -> Target:
            return Target(points, summary.scatter.weight * (summary.scatter.mean - center) @ root)

        ladder = [("gradient", "means"), ("gradient",), ("means",)]
        if len(rows) < _ROWS_PER_SUM * (2 * d + 2):
            ladder = ladder[1:2] if len(rows) >= 2 * (d + 2) else []
        targets = {"gradient": gradient, "means": means}
        return _rake_all(rows.weights, weights, summary.scatter.weight, targets, ladder)


def _rake_all(
    own: FloatArray,
    weights: FloatArray,
    total: float,
    targets: dict[str, Callable[[], Target]],
    ladder: list[tuple[str, ...]],
) -> Calibrated:
    """Scale weights to their total, and rake them as `calibrate_classes` does without classes.

    Rows of their `own` weight, which are drawn for certain, stand for themselves alone and keep it.
    With heavy tails they hold most of the sums. To rake them would move the cost of every other
    model far from that on the data.
    """
    moved = weights > own * (1.0 + 1e-9)
    left = total - float(weights[~moved].sum())
    if not (moved.any() and left > 0.0):
        moved, left = np.ones(len(weights), dtype=bool), total

    def of_moved(name: str) -> Target:
        """Return what the rows that stay as they are leave of a target."""
        features, totals = targets[name]()
        return Target(features[moved], totals - weights[~moved] @ features[~moved])

    found = calibrate_classes(
        weights[moved],
        np.zeros(int(moved.sum()), dtype=np.int64),
        np.array([left]),
        {name: partial(of_moved, name) for name in targets},
        ladder,
    )
    every = weights.copy()
    every[moved] = found.weights
    met, requested = (
        tuple("total weight" if name == TOTALS else name for name in names or ())
        for names in (found.met, found.requested)
    )
    return found._replace(weights=every, met=met, requested=requested)


def _coordinates(scatter: Scatter, *, intercept: bool) -> tuple[FloatArray, FloatArray]:
    """Origin, and directions in which rows are alike."""
    center = scatter.mean if intercept else np.zeros_like(scatter.mean)
    gap = scatter.mean - center
    return center, spread_directions(scatter.matrix + scatter.weight * np.outer(gap, gap))


@dataclass(frozen=True)
class QuantileRegression(Sensitivity[Any]):
    r"""Coresets for linear quantile regression, such as that of the median.

    The first read takes the second moments of the columns, and a sample of 2,048 rows whose
    solution is the pilot. A row with the residual r by it and the leverage
    :math:`\ell` among the columns is scored by :math:`|\rho'(r)| \sqrt{\ell}` (two fifths of the
    draws), by :math:`\rho(r)` (a tenth), by :math:`\ell` (a fifth) and by
    :math:`\sqrt{\ell} + 1/U` (three tenths), u times each and divided by its sum. The second read
    sums up the pilot's loss and gradient, rounded off near zero, and draws candidates; weights are
    raked to these sums and to the means, as far as that is possible with no weight
    raised or lowered by more than a factor of 20. ``provenance["calibration"]`` says what was met.

    Parameters
    ----------
    quantile : float, default=0.5
        q, between 0 and 1.
    intercept : bool, default=True
        Whether the solutions that the coreset is for have an intercept.
    variant : {"calibrated", "systematic"}, default="calibrated"
        "systematic": the weights before they are raked, which are unbiased for every w and b.
        "calibrated": raked, and of up to four draws the one whose solution costs least on all
        candidates.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If a parameter cannot be used. When building: if y is missing or holds no numbers.

    Notes
    -----
    The last of the scores bounds, up to a factor that depends on the data alone, the share of a
    row in the cost of any w and b: with ten thirds of the rows it has, for whatever pilot, the
    guarantee that it has alone.

    Examples
    --------
    >>> import daskcoreset
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 3))
    >>> y = X @ [1.0, -2.0, 0.5] + rng.standard_t(2, size=5000)
    >>> coreset = daskcoreset.build(X, y, size=500, method="quantile", random_state=0)
    >>> coreset.audit(X, y, random_state=0).distortion < 0.2
    True

    References
    ----------
    Clarkson (2005), Subgradient and sampling algorithms for l1 regression, section 3.
    """

    quantile: float = 0.5
    intercept: bool = True
    variant: Variant = "calibrated"

    name: ClassVar[str] = "quantile"
    citation: ClassVar[str] = "clarkson2005subgradient, section 3"
    randomised: ClassVar[bool] = True
    total_scores_exact: ClassVar[bool] = False
    needs_labels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        as_float("quantile", self.quantile)
        check_flag("intercept", self.intercept)
        check_choice("variant", self.variant, "calibrated", "systematic")

    @property
    def objective(self) -> PinballCost:
        """The pinball loss."""
        return PinballCost(float(self.quantile), self.intercept)

    @property
    def design(self) -> QuantileDesign:
        """An order by residuals, and raked weights."""
        return QuantileDesign(float(self.quantile), self.variant, self.intercept)

    @property
    def n_folds(self) -> int:
        """One for the pilot, one for the sums."""
        return 2

    def too_much(self, n_rows: int, n_features: int) -> str | None:
        """Return why a matrix of d x d numbers would take too much."""
        del n_rows
        return too_many_columns(n_features)

    def find_invalid_row(self, block: Block) -> InvalidRow | None:
        """Return the first row without a number as its label."""
        return find_bad_number(block)

    def block_summary(self, block: Block, previous: Any, rng: np.random.Generator) -> Any:
        """Second moments and a sample; then sums by the pilot."""
        if previous is None:
            scatter = scatter_of(block.points, block.weights)
            joined = Block(with_targets(block), block.weights, np.zeros(len(block), dtype=np.int64))
            sample = sample_strata(joined, _pilot_size(len(scatter.mean)), rng)
            return SampledScatter(scatter.weight, scatter.mean, scatter.matrix, sample)
        return self.proposal(block, previous, rng)[0]

    def proposal(
        self, block: Block, previous: QuantilePilot, rng: np.random.Generator
    ) -> tuple[QuantileSums, FloatArray]:
        """Sum losses and pulls over the rows, and score them by the terms that are summed too."""
        del rng
        residuals = residuals_of(block, previous.predictor)
        losses, pulls = round_pinball(residuals, float(self.quantile), previous.width)
        u, center = block.weights, previous.scatter.mean * bool(self.intercept)
        slopes = np.zeros(len(center) + 1)
        points: Any = block.points
        for part in tiles(len(u), len(center)):
            used = u[part, np.newaxis] > 0.0
            gaps = np.where(used, dense(points[part]) - center, 0.0)
            slopes[:-1] += np.einsum("i,ij->j", u[part] * pulls[part], gaps)
        slopes[-1] = float((u * pulls).sum())
        total = np.array([float((u * losses).sum())])
        terms = self._terms(block, previous)
        sums = QuantileSums(previous, total, slopes, terms.sum(axis=1))
        return sums, (terms * _factors(previous)[:, np.newaxis]).sum(axis=0)

    def merge(self, first: Any, second: Any) -> Any:
        """Merge moments and samples, or sums."""
        if isinstance(first, QuantileSums):
            pairs = zip(first[1:], second[1:], strict=True)
            return QuantileSums(first.pilot, *(one + other for one, other in pairs))
        whole = merge_scatters(first, second)
        sample = merge_reservoirs(first.sample, second.sample, _pilot_size(len(whole.mean)))
        return SampledScatter(whole.weight, whole.mean, whole.matrix, sample)

    def finalize(self, summary: Any, rng: np.random.Generator) -> QuantilePilot:
        """Solve the pilot; then replace its estimated sums by exact ones."""
        del rng
        if isinstance(summary, QuantileSums):
            return replace(summary.pilot, totals=summary.totals, sums=summary)
        d = len(summary.mean)
        scatter = Scatter(summary.weight, summary.mean, summary.matrix)
        pilot = QuantilePilot(scatter, LinearPredictor(np.zeros(d), 0.0), 1.0, np.ones(4))
        if not summary.sample:  # no row has a weight
            return pilot
        stratum = next(iter(summary.sample.values()))
        size = _pilot_size(d)
        rows, u = dense(stratum.rows.points[:size]), stratum.stand_ins(size)
        coef, shift = solve_quantile(
            rows[:, :d], rows[:, d], u, float(self.quantile), intercept=self.intercept
        )
        if not (np.isfinite(coef).all() and np.isfinite(shift)):
            coef, shift = np.zeros(d), 0.0
        predictor = LinearPredictor(coef, shift)
        block = Block(np.ascontiguousarray(rows[:, :d]), u, rows[:, d])
        sizes = np.abs(residuals_of(block, predictor))
        width = float(np.quantile(sizes, _ROUNDED))
        # Where many residuals are zero, a sliver of the mean one, and so much more than rounding
        # leaves that pulls keep eight digits.
        spread = float(np.abs(rows[:, d] - np.median(rows[:, d])).mean())
        summands = np.abs(rows[:, d]) + np.abs(rows[:, :d]) @ np.abs(coef)
        rounding = 1e-6 * spread + 1e-8 * float(summands.max())
        width = max(width, 1e-6 * float(sizes.mean()), rounding, np.finfo(np.float64).tiny)
        pilot = replace(pilot, predictor=predictor, width=width)
        return replace(pilot, totals=self._terms(block, pilot).sum(axis=1))

    def _terms(self, block: Block, pilot: QuantilePilot) -> FloatArray:
        """Terms of the scores, u included; shape (4, n)."""
        scatter = pilot.scatter
        if scatter.weight == 0.0:
            return np.zeros((4, len(block)))
        leverage = leverages(block.points, block.weights, scatter, intercept=self.intercept)
        residuals = residuals_of(block, pilot.predictor)
        losses, pulls = round_pinball(residuals, float(self.quantile), pilot.width)
        roots = np.sqrt(leverage)
        # The pilot may meet every row, when what is left of pulls is rounding.
        pulls = np.maximum(np.abs(pulls), _MIN_PULL)
        terms = [pulls * roots, losses, leverage, roots + 1.0 / scatter.weight]
        return np.where(block.weights > 0.0, block.weights * np.stack(terms), 0.0)

    def scores(self, block: Block, summary: QuantilePilot) -> FloatArray:
        """Return the terms, each divided by its sum and times its share."""
        return np.asarray(self._terms(block, summary) * _factors(summary)[:, np.newaxis])

    def total_scores(self, local: QuantileSums, summary: QuantilePilot) -> FloatArray:
        """Return the sums of `scores`, as the pilot's estimates make them."""
        return np.asarray(local.totals * _factors(summary))


def _pilot_size(d: int) -> int:
    return max(128, min(_PILOT_ROWS, _PILOT_NUMBERS // max(d, 1)))


def _factors(pilot: QuantilePilot) -> FloatArray:
    """Factors of the terms; none for one that is zero in the pilot, such as the loss of a fit."""
    known = pilot.totals > 1e-300  # below it lies what rounding off leaves of an exact fit
    return np.asarray(np.divide(_SHARES, pilot.totals, out=np.zeros(4), where=known))
