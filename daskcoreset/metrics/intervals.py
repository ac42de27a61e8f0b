"""Exact costs of some solutions, and intervals for others from a Poisson sample, in one read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from daskcoreset.core.block import Block, concatenate, labels_of
from daskcoreset.core.invalid import InvalidRow
from daskcoreset.core.messages import ignore_overflow, overflow_error
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.typing import FloatArray
from daskcoreset.errors import InvalidInputError
from daskcoreset.execution.engine import map_reduce
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.objectives import Objective
from daskcoreset.objectives.cells import Cells

# Share of the score that bounds what rows can hold.
BASE = 0.75


def _thresholds(size: int, weight: float, score: float) -> FloatArray:
    """Return the thresholds that draw a number of rows out of sums of u and of u s.

    Rows of weight u and score s have the inclusion probability a u + b u s, for thresholds a and b.
    Half of the rows are expected by weight alone: whatever the scores are, the sample has the rows
    of a uniform one of half its size.
    """
    return np.array([size / 2.0 / each if each > 0.0 else math.inf for each in (weight, score)])


@dataclass(frozen=True, eq=False)
class PoissonSample:
    """Exact costs over the rows of some blocks, and a sample of these rows.

    Attributes
    ----------
    costs : ndarray of shape (n_solutions,), float64
        Exact.
    weight, score : float
        Sums of u and of u s over the rows.
    thresholds : ndarray of shape (2,), float64
        Of weights and of scores.
    rows : Block
        The sample. Its weights are the input weights u.
    scores, coins : ndarray of shape (r,), float64
        u s and the random number of every sampled row.
    n_rows : int
        Rows that were counted: all but invalid ones that were dropped.
    n_weighed : int
        Rows of positive weight.
    sums : ndarray of shape (4, k), float64
        Sums of `Placed.z` by cell, over all rows.
    farthest : ndarray of shape (k,), float64
        Largest distance from the center of every cell. Negative without rows of a weight.
    """

    costs: FloatArray
    weight: float
    score: float
    thresholds: FloatArray
    rows: Block
    scores: FloatArray
    coins: FloatArray
    n_rows: int
    n_weighed: int
    sums: FloatArray
    farthest: FloatArray

    def thinned(self, thresholds: FloatArray) -> PoissonSample:
        """Return the sample as lower thresholds would have drawn it."""
        chances = _chances(thresholds, self.rows.weights, self.scores)
        kept = np.flatnonzero(self.coins < chances)
        return replace(
            self,
            thresholds=thresholds,
            rows=self.rows.take(kept),
            scores=self.scores[kept],
            coins=self.coins[kept],
        )


def _chances(thresholds: FloatArray, weights: FloatArray, scores: FloatArray) -> FloatArray:
    """Return inclusion probabilities, or more than one, of rows of u and u s."""
    by_weight, by_score = thresholds
    chances: FloatArray = by_weight * weights + by_score * scores
    return chances


@dataclass(frozen=True, eq=False)
class SampleDesign:
    """Solutions, inclusion and seed, for the work on the blocks.

    Attributes
    ----------
    objective : Objective
    solutions : tuple
        Solutions of the objective.
    cells : Cells
        By which rows are scored.
    shares : ndarray of shape (n_solutions,), float64
        Contribution of a unit of the cost of every solution to the score of a row.
    size : int
        Expected rows of the sample.
    weight : float
        Expected weight of all rows.
    seed : int
    """

    objective: Objective[Any]
    solutions: tuple[Any, ...]
    cells: Cells
    shares: FloatArray
    size: int
    weight: float
    seed: int


def sample_costs(
    blocks: RowBlocks, design: SampleDesign, *, progress: bool | None = None
) -> PoissonSample:
    """Add up the costs of solutions over all rows and draw a Poisson sample, in one read.

    Raises
    ------
    InvalidInputError
        For the first row that no cost can be given to.
    """
    merge = partial(_merge, design.size)
    sample: PoissonSample = map_reduce(
        blocks, _sample_block, merge, broadcast=design, progress=progress
    ).value
    if not sample.weight > 0:
        raise InvalidInputError(
            "X has no row with a positive weight",
            argument="X",
            remedy="pass the data of the coreset",
        )
    if not np.isfinite([*sample.costs, sample.score]).all():
        raise overflow_error()
    return sample


def _sample_block(block: Block, index: int, design: SampleDesign) -> PoissonSample | InvalidRow:
    """Add up costs and draw from one block."""
    objective, cells = design.objective, design.cells
    problem = objective.find_invalid_row(block) or _other_labels(cells, block)
    if problem is not None:
        return problem
    farthest, costs = np.full(len(cells), -1.0), np.zeros(len(design.solutions))
    u = block.weights
    with ignore_overflow():
        placed = cells.place(block)
        sums = cells.sums(block, placed)
        np.maximum.at(farthest, placed.cells[u > 0.0], placed.z[1, u > 0.0])
        scores = np.multiply(BASE, cells.score(placed))
        for i, solution in enumerate(design.solutions):
            losses = objective.losses(block, solution)
            # A square may overflow on a row of weight zero, which does not count: not inf times 0.
            costs[i] = np.where(u > 0.0, u * losses, 0.0).sum()
            scores += design.shares[i] * losses
        scores = np.where(u > 0.0, u * scores, 0.0)
        weight, total = float(u.sum()), float(scores.sum())
        # Half of what is expected: should there be less, the sample is smaller, not wrong.
        thresholds = _thresholds(design.size, max(weight, 0.5 * design.weight), max(total, 0.5))
        coins = stream(design.seed, Stage.AUDIT, index).random(len(block))
        drawn = np.flatnonzero(coins < _chances(thresholds, u, scores))
    return PoissonSample(
        costs,
        weight,
        total,
        thresholds,
        block.take(drawn),
        scores[drawn],
        coins[drawn],
        len(block),
        int(np.count_nonzero(u)),
        sums,
        farthest,
    )


def _other_labels(cells: Cells, block: Block) -> InvalidRow | None:
    """Return the error of labels of another kind than those of the coreset, or None."""
    if cells.labels is None or block.labels is None or not len(block):
        return None
    labels = labels_of(block)
    if (cells.labels.dtype.kind == "U") == (labels.dtype.kind == "U"):
        return None
    return InvalidRow(
        f"y is {labels[0].item()!r}" + "{row}, and the labels of the coreset are "
        f"{cells.labels[:3].tolist()}: text for text, and numbers for numbers",
        block.number_of(0),
        "y",
        "pass the labels that it was built with",
    )


def _merge(size: int, first: PoissonSample, second: PoissonSample) -> PoissonSample:
    """Merge neighbouring samples, in the order of the blocks."""
    weight, score = first.weight + second.weight, first.score + second.score
    # A row is in the sample if its coin is below its chance: every part can be thinned to the
    # lowest thresholds of all parts.
    thresholds = np.minimum(first.thresholds, second.thresholds)
    thresholds = np.minimum(thresholds, _thresholds(size, weight, score))
    with ignore_overflow():
        parts = first.thinned(thresholds), second.thinned(thresholds)
    return PoissonSample(
        costs=first.costs + second.costs,
        weight=weight,
        score=score,
        thresholds=thresholds,
        rows=concatenate([part.rows for part in parts]),
        scores=np.concatenate([part.scores for part in parts]),
        coins=np.concatenate([part.coins for part in parts]),
        n_rows=first.n_rows + second.n_rows,
        n_weighed=first.n_weighed + second.n_weighed,
        sums=first.sums + second.sums,
        farthest=np.maximum(first.farthest, second.farthest),
    )


# Part of the cost that rounding may add to what a single row holds.
_ROUNDING = 1e-12

# Multiples of the best theta that are tried, and their shares of alpha.
_THETAS = np.array([[0.0625, 0.25, 1.0, 4.0, 16.0], [0.0625, 0.125, 0.625, 0.125, 0.0625]])


class Interval(NamedTuple):
    """An estimate and its confidence interval."""

    estimate: float
    low: float
    high: float


class _ControlVariate(NamedTuple):
    """The known part of the losses of all rows, and limits of X, the residual of a row.

    Attributes
    ----------
    total : float
        The known part over all rows. Their cost lies between ``total - sum_below`` and
        ``total + sum_above``.
    residual : ndarray of shape (r,), float64
        The loss of every sampled row less its known part.
    spread : float
        Sum of X squared that the coreset lets expect.
    below, above : float
        Limits of -X and X.
    """

    total: float
    residual: FloatArray
    spread: float
    below: float
    above: float
    sum_below: float
    sum_above: float

    def width(self, level: float) -> float:
        """Return how wide an interval is to be expected."""
        return math.sqrt(8.0 * level * self.spread) + level * (self.below + self.above)

    def theta(self, level: float) -> float:
        """Return the best theta for rows like those of the coreset. Zero where all is certain."""
        if self.spread > 0.0:
            return math.sqrt(2.0 * level / self.spread)
        limit = sum(each for each in (self.below, self.above) if math.isfinite(each))
        return 1.0 / limit if limit > 0.0 else 0.0


@dataclass(frozen=True, eq=False)
class CostEstimates:
    """The sample of a read, and how its rows were scored.

    Attributes
    ----------
    sample : PoissonSample
    design : SampleDesign
        With the audited solutions, whose costs are known.
    coreset_rows : Block
        Rows of the coreset.
    """

    sample: PoissonSample
    design: SampleDesign
    coreset_rows: Block

    def interval(self, solution: Any, confidence: float) -> Interval:
        """Return the interval for the cost of a solution."""
        sample, objective = self.sample, self.design.objective
        rows = sample.rows
        fixed = objective.constant(solution)
        for audited, cost in zip(self.design.solutions, sample.costs, strict=True):
            if _same(audited, solution):
                return Interval(*3 * (fixed + float(cost),))
        losses = objective.losses(rows, solution)
        certain = float((rows.weights * losses).sum())
        if len(rows) == sample.n_weighed:
            return Interval(fixed + certain, fixed + certain, fixed + certain)
        inclusion = np.minimum(1.0, _chances(sample.thresholds, rows.weights, sample.scores))
        chance = inclusion < 1.0
        low, high = certain, math.inf
        estimate = float((rows.weights * losses / inclusion).sum())
        variates = list(self._control_variates(solution, losses))
        if variates:
            level = math.log(2.0 / (1.0 - confidence))
            best = min(variates, key=lambda variate: variate.width(level))
            weighted = rows.weights * best.residual
            exact = best.total + float(weighted[~chance].sum())
            x = weighted[chance] / inclusion[chance]
            estimate = exact + float(x.sum())
            theta = best.theta(level)
            low = max(low, exact - upper_bound(-x, best.below, theta, level))
            high = exact + upper_bound(x, best.above, theta, level)
            # These bounds hold for certain, so that all of them may be taken, and not the best.
            for variate in variates:
                low = max(low, variate.total - variate.sum_below)
                high = min(high, variate.total + variate.sum_above)
        high = max(high, low)
        return Interval(fixed + min(max(estimate, low), high), fixed + low, fixed + high)

    def _control_variates(self, solution: Any, losses: FloatArray) -> Iterator[_ControlVariate]:
        sample, design, coreset_rows = self.sample, self.design, self.coreset_rows
        rows, objective, cells = sample.rows, design.objective, design.cells
        placed, placed_coreset = cells.place(rows), cells.place(coreset_rows)
        on_coreset = objective.losses(coreset_rows, solution)
        assert cells.scores is not None  # noqa: S101 - the design scores rows by them
        by_weight, by_score = sample.thresholds
        scores = by_score * BASE * cells.scores  # the least that rows of weight one have
        scores[0] += by_weight
        inclusion = (scores[:, placed_coreset.cells] * placed_coreset.z).sum(axis=0)
        chance = (inclusion < 1.0) & (coreset_rows.weights > 0.0)
        # What rounding leaves of a difference of losses may be above a bound of zero.
        rounding = _ROUNDING * float((coreset_rows.weights * on_coreset).sum())
        for bracket, i in objective.brackets(cells, solution, design.solutions):
            residual = losses - (bracket.control[:, placed.cells] * placed.z).sum(axis=0)
            expected = on_coreset - (
                bracket.control[:, placed_coreset.cells] * placed_coreset.z
            ).sum(axis=0)
            total = float((bracket.control * sample.sums).sum())
            if i is not None:
                residual = residual - objective.losses(rows, design.solutions[i])
                expected = expected - objective.losses(coreset_rows, design.solutions[i])
                total += float(sample.costs[i])
            squares = np.square(expected[chance]) / inclusion[chance]
            spread = float((coreset_rows.weights[chance] * squares).sum())
            bounds = bracket.low, bracket.high
            limits = (cells.ratio(bound, scores, sample.farthest) + rounding for bound in bounds)
            sums = (_sum_of_smallest(bound, sample.sums) for bound in bounds)
            yield _ControlVariate(total, residual, spread, *limits, *sums)


def upper_bound(x: FloatArray, limit: float, theta: float, level: float) -> float:
    """Bound of the sum of all r from the X of the sample, each at most `limit`.

    If one does, the objective's bounds are wrong, and nothing is known.
    """
    if math.isinf(limit) or (x > limit).any():
        return math.inf
    if theta == 0.0:
        return 0.0  # no row can hold anything
    multiples, shares = _THETAS
    # Any theta gives a bound; several share the chance of failure, as the best one is a guess.
    thetas = np.minimum(theta * multiples, (1.0 - 1e-9) / limit if limit > 0.0 else math.inf)
    gains = np.log1p(-thetas[:, np.newaxis] * x).sum(axis=1)
    return float(((level - np.log(shares) - gains) / thetas).min())


def _sum_of_smallest(bounds: FloatArray, sums: FloatArray) -> float:
    """Sum of the smallest of several bounds over all rows."""
    counted = sums[0] > 0.0
    each = np.where(bounds[:, :, counted] == 0.0, 0.0, bounds[:, :, counted] * sums[:, counted])
    return float(each.sum(axis=1).min(axis=0).sum())


def _same(first: Any, second: Any) -> bool:
    """Whether two solutions are equal in every number."""
    parts, others = (getattr(each, "__dict__", {"": each}) for each in (first, second))
    return parts.keys() == others.keys() and all(
        np.array_equal(value, others[name]) for name, value in parts.items()
    )
