r"""The cost of a solution over all rows: an interval that holds whatever the rows are.

**The bound.** Rows enter a Poisson sample on their own, with probabilities :math:`\pi`. For what
a row holds, r, and :math:`X = r / \pi`, with :math:`1 + z \le e^z` and any :math:`\theta` for
which no :math:`\theta X` exceeds one,

.. math::

    \mathrm{E} \prod_{\text{sample}} (1 - \theta X) = \prod_{\text{all rows}} (1 - \theta r)
    \le \exp\left(-\theta \sum_{\text{all rows}} r\right),

so that by Markov's inequality, with probability at least :math:`1 - \alpha`,

.. math::

    \sum_{\text{all rows}} r \le \frac1\theta \left(\ln \frac1\alpha
    - \sum_{\text{sample}} \ln(1 - \theta X) \right) .

Nothing is assumed of the rows: no normal approximation, no estimated variance, and where the
sample has nothing of what a solution pays for, the bound says what may be hidden from it. Of
several :math:`\theta`, each takes its share of :math:`\alpha`; the one that has most of it is
the best for rows like those of the coreset, near :math:`\sqrt{2 \ln(1/\alpha) / \sum X^2}`,
where the bound is that of a normal distribution but for a factor of about 1.5. It must be known
how large X can be for rows that are not in the sample, which is what the scores are for: see
`daskcoreset.objectives.cells`. The other end is the same bound of -r.

**What is known exactly is left out of r**: sums of weights, distances and divergences by cell,
the costs of the audited solutions, and all that rows of the sample cost which were certain to be
in it (the difference estimator, Särndal, Swensson and Wretman 1992, section 6.3). Of several ways
to do this the one is taken that promises the shortest interval on the rows of the coreset, of
which the sample is independent. What the cells alone say of the cost bounds both ends as well.

References
----------
Howard, Ramdas, McAuliffe and Sekhon (2020), Time-uniform Chernoff bounds via nonnegative
supermartingales; Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by
betting.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.metrics.survey import BASE

if TYPE_CHECKING:
    from daskcoreset.core.blocks import Block
    from daskcoreset.objectives import Objective
    from daskcoreset.objectives.cells import Cells
    from daskcoreset.metrics.survey import Reading
    from daskcoreset.core.typing import FloatArray

__all__ = ["Interval", "Survey", "checked_confidence"]

_ROUNDING = 1e-12
"""Part of the cost that rounding may add to what a single row holds."""

_LADDER = np.array([[0.0625, 0.25, 1.0, 4.0, 16.0], [0.0625, 0.125, 0.625, 0.125, 0.0625]])
"""Multiples of the best theta that are tried, and their shares of alpha."""


class Interval(NamedTuple):
    """An estimate and its confidence interval."""

    estimate: float
    low: float
    high: float


def checked_confidence(confidence: Any) -> float:
    """Return a confidence level as a float, or refuse it."""
    if isinstance(confidence, bool) or not isinstance(confidence, numbers.Real):
        raise InvalidTypeError(f"confidence must be a number, got {confidence!r}; pass a float.")
    level = float(confidence)
    if not 0 < level < 1:
        raise InvalidInputError(
            f"confidence must lie between 0 and 1, got {confidence}; pass for example 0.95."
        )
    return level


class _Way(NamedTuple):
    """One way to leave out what is known: per row of weight one, and limits of X."""

    total: float
    on_sample: FloatArray
    on_coreset: FloatArray
    below: float
    above: float


@dataclass(frozen=True, eq=False)
class Survey:
    """What a read found, and how rows were scored.

    Attributes
    ----------
    reading : Reading
    objective : Objective
    cells : Cells
    own : Block
        Rows of the coreset.
    """

    reading: Reading
    objective: Objective[Any]
    cells: Cells
    own: Block

    def interval(self, solutions: Sequence[Any], solution: Any, confidence: float) -> Interval:
        """Return the interval for a solution.

        Parameters
        ----------
        solutions : sequence
            The audited ones, whose costs are known.
        solution : object
        confidence : float
        """
        reading, objective = self.reading, self.objective
        rows = reading.rows
        assert rows is not None  # noqa: S101 - the total weight is positive
        fixed = objective.constant(solution)
        for known, cost in zip(solutions, reading.costs, strict=True):
            if _same(known, solution):
                return Interval(fixed + cost, fixed + cost, fixed + cost)
        losses = objective.losses(rows, solution)
        certain = float((rows.weights * losses).sum())
        if len(rows) == reading.n_weighed:
            return Interval(fixed + certain, fixed + certain, fixed + certain)
        inclusion = reading.inclusion
        chance = inclusion < 1.0
        low, high = certain, math.inf
        guess = float((rows.weights * losses / inclusion).sum())
        ways = list(self._ways(solutions, solution, losses))
        if ways:
            level = math.log(2.0 / (1.0 - confidence))
            best = min(ways, key=lambda way: self._width(way, level))
            held = rows.weights * best.on_sample
            exact = best.total + float(held[~chance].sum())
            x = held[chance] / inclusion[chance]
            guess = exact + float(x.sum())
            theta = self._theta(best, level)
            low = max(low, exact - _most(-x, best.below, theta, level))
            high = exact + _most(x, best.above, theta, level)
            for bracket, i in objective.brackets(self.cells, solution, solutions):
                known = 0.0 if i is None else float(reading.costs[i])
                middle = known + float((bracket.control * reading.sums).sum())
                low = max(low, middle - _sum(bracket.low, reading.sums))
                high = min(high, middle + _sum(bracket.high, reading.sums))
        high = max(high, low)
        return Interval(fixed + min(max(guess, low), high), fixed + low, fixed + high)

    def _ways(self, solutions: Sequence[Any], solution: Any, losses: FloatArray) -> Iterator[_Way]:
        reading, rows = self.reading, self.reading.rows
        assert rows is not None  # noqa: S101 - as in `interval`
        here, there = self.cells.place(rows), self.cells.place(self.own)
        on_coreset = self.objective.losses(self.own, solution)
        for bracket, i in self.objective.brackets(self.cells, solution, solutions):
            held = losses - (bracket.control[:, here.cells] * here.z).sum(axis=0)
            expected = on_coreset - (bracket.control[:, there.cells] * there.z).sum(axis=0)
            total = float((bracket.control * reading.sums).sum())
            if i is not None:
                held = held - self.objective.losses(rows, solutions[i])
                expected = expected - self.objective.losses(self.own, solutions[i])
                total += float(reading.costs[i])
            # What rounding leaves of a difference of losses may be above a bound of zero.
            least = _ROUNDING * float((self.own.weights * on_coreset).sum())
            limits = (
                self.cells.ratio(bounds) / (BASE * reading.threshold) + least
                for bounds in (bracket.low, bracket.high)
            )
            yield _Way(total, held, expected, *limits)

    def _spread(self, way: _Way) -> float:
        """Return the sum of X squared that the coreset lets expect."""
        own = self.own
        scores = BASE * self.cells.score(self.cells.place(own))
        inclusion = self.reading.threshold * scores
        chance = (inclusion < 1.0) & (own.weights > 0.0)
        squares = np.square(way.on_coreset[chance]) / inclusion[chance]
        return float((own.weights[chance] * squares).sum())

    def _theta(self, way: _Way, level: float) -> float:
        """Return the best theta for rows like those of the coreset; zero where nothing is left."""
        spread = self._spread(way)
        if spread > 0.0:
            return math.sqrt(2.0 * level / spread)
        limit = sum(each for each in (way.below, way.above) if math.isfinite(each))
        return 1.0 / limit if limit > 0.0 else 0.0

    def _width(self, way: _Way, level: float) -> float:
        return math.sqrt(8.0 * level * self._spread(way)) + level * (way.below + way.above)


def _most(x: FloatArray, limit: float, theta: float, level: float) -> float:
    """Bound of the sum of all r from the X of the sample, none of which exceeds `limit`.

    Where one does, the objective's bounds are wrong, and nothing is known.
    """
    if math.isinf(limit) or (x > limit).any():
        return math.inf
    if theta == 0.0:
        return 0.0  # no row can hold anything
    ladder, shares = _LADDER
    thetas = np.minimum(theta * ladder, (1.0 - 1e-9) / limit if limit > 0.0 else math.inf)
    gains = np.log1p(-thetas[:, np.newaxis] * x).sum(axis=1)
    return float(((level - np.log(shares) - gains) / thetas).min())


def _sum(bounds: FloatArray, sums: FloatArray) -> float:
    """Sum of the least of several bounds over all rows."""
    counted = sums[0] > 0.0
    each = np.where(bounds[:, :, counted] == 0.0, 0.0, bounds[:, :, counted] * sums[:, counted])
    return float(each.sum(axis=1).min(axis=0).sum())


def _same(one: Any, other: Any) -> bool:
    """Whether two solutions are equal in every number."""
    parts, others = (getattr(each, "__dict__", {"": each}) for each in (one, other))
    return parts.keys() == others.keys() and all(
        np.array_equal(value, others[name]) for name, value in parts.items()
    )
