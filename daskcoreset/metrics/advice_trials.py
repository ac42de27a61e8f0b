"""Constructions tried on a pilot by an advisor."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np

from daskcoreset.build import build_and_hold_out
from daskcoreset.constructions.sampling.held_out import MAX_SCREENING
from daskcoreset.core.blocks import labels_of
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.typing import FloatArray
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.metrics.advice_tasks import (
    Candidate,
    Drawn,
    SeveralClasses,
    Task,
    block_of,
    of_all_classes,
)
from daskcoreset.objectives import LeastSquaresCost, QuantizationError
from daskcoreset.solvers.spherical import unit_centers

# Solutions of trials from which a solver goes on with all rows of the pilot: of likelihoods, whose
# optima on few rows may all lie below one on all rows, several.
_FINALISTS, _FINALISTS_IN_NATS = 1, 3

# Gaps between the two best solutions that a better one may lie below them, with a chance of 4 in 5.
_UNKNOWN_GAPS = 4.0


@dataclass(eq=False)
class Finalist:
    """One of the best solutions of trials.

    Attributes
    ----------
    cost : float
        On the pilot.
    solution : object
    ended : float or None
        Cost of where a solver ended that went on from there with all rows of the pilot.
    """

    cost: float
    solution: Any
    ended: float | None = None


@dataclass(eq=False)
class Trials:
    """Coresets of a pilot, which stands for all rows, and what their solutions cost on it.

    Attributes
    ----------
    pilot : Coreset
    task : Task
    n_clusters : int or None
    size : int
        Rows of the coresets.
    n_rows : int
        Of the data.
    seed : int
    costs : dict of str to list of float
        Cost on the pilot of the solution of every trial, by candidate.
    coreset_costs : dict of str to list of float
        The same where the solver starts at the best solution known: what the coreset itself costs.
    drawn : dict of str to list of Drawn
        What the coreset of every trial has, by candidate.
    least_cost : float
        Of the best solution known, as the task tells solutions apart.
    best_cost : float
        Of the best solution known, by the objective.
    none : float
        Difference of costs that is nothing but rounding beside that of the first solution.
    seconds : dict of str to float
        Of the quickest build from the pilot, by candidate: the first one compiles loops.
    unmet : set of str
        Constructions for linear models of which a trial met but a part of the sums that weights
        are calibrated to, by chance.
    finalists : list of Finalist
        The best solutions of trials, the best one first.
    """

    pilot: Coreset
    task: Task
    n_clusters: int | None
    size: int
    n_rows: int
    seed: int
    costs: dict[str, list[float]] = field(default_factory=dict)
    coreset_costs: dict[str, list[float]] = field(default_factory=dict)
    drawn: dict[str, list[Drawn]] = field(default_factory=dict, repr=False)
    least_cost: float = np.inf
    seconds: dict[str, float] = field(default_factory=dict)
    unmet: set[str] = field(default_factory=set)
    finalists: list[Finalist] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self.rows = block_of(self.pilot)
        objective = self.task.objective(self.n_clusters).fitted(self.rows)
        self.objective: Any = of_all_classes(objective, self.rows)
        rng = stream(self.seed, Stage.SIZING, 2)
        # By chance, the best of all trials counts: a rough one of few rows does to begin with.
        drawn = Drawn(self.rows)
        if self.task.by_chance:
            drawn = self._drawn(self.task.candidates[0], rng)
        with warnings.catch_warnings():  # as of trials
            warnings.simplefilter("ignore")
            first = self._solution(drawn, rng)
        self._keep(first, self.task.cost(self.objective, self.rows, first))
        self.none = 1e-12 * (abs(self.least_cost) if self.task.in_nats else self.best_cost)
        if isinstance(self.objective, LeastSquaresCost):  # residuals of an exact fit are no cost
            labels = np.asarray(labels_of(self.rows), dtype=np.float64)
            self.none = max(self.none, 1e-24 * float(self.rows.weights @ np.square(labels)))

    def run(self, candidates: Sequence[Candidate], count: int) -> None:
        """Try each candidate `count` times more."""
        for candidate in candidates:
            costs = self.costs.setdefault(candidate.name, [])
            for _ in range(count):
                costs.append(self._cost(candidate, len(costs)))
        if not self.task.by_chance:
            self.coreset_costs = self.costs
            return
        # The best ones may be those of trials, and end lower on all rows of the pilot; or one that
        # was made first, or on a coreset from the best one before.
        if all(one.cost > self.least_cost for one in self.finalists):
            self._solved(Drawn(self.rows), stream(self.seed, Stage.SIZING, 4), self.best)
        for one in self.finalists:
            if one.ended is None:
                rng = stream(self.seed, Stage.SIZING, 4)
                one.ended = self._solved(Drawn(self.rows), rng, one.solution)
        start = self.best
        for name, trials in self.drawn.items():
            self.coreset_costs[name] = [
                self._solved(drawn, stream(self.seed, Stage.SIZING, 5), start) for drawn in trials
            ]

    def _cost(self, candidate: Candidate, trial: int) -> float:
        rng = stream(self.seed, Stage.SIZING, 3, trial)
        drawn = self._drawn(candidate, rng)
        self.drawn.setdefault(candidate.name, []).append(drawn)
        return self._solved(drawn, rng)

    def _drawn(self, candidate: Candidate, rng: np.random.Generator) -> Drawn:
        options: dict[str, Any] = {
            "n_clusters": self.n_clusters, "size": self.size,
            "random_state": int(rng.integers(2**63)),
        }  # fmt: skip
        weights, chunks = self.pilot.weights, len(self.pilot)
        held_out = None
        with warnings.catch_warnings():  # they are about the pilot
            warnings.simplefilter("ignore")
            began = time.perf_counter()
            if self.task.in_nats:  # the solver chooses by rows that the coreset did not take
                coreset, held_out = build_and_hold_out(
                    row_blocks(self.pilot.points, sample_weight=weights, chunks=chunks),
                    MAX_SCREENING, sampling="systematic", passes=1, normalize=False,
                    **candidate.options_for(self.n_clusters), **options,
                )  # fmt: skip
            else:
                coreset = candidate.build(
                    self.pilot.points, self.pilot.labels, sample_weight=weights, chunks=chunks,
                    progress=False, **options,
                )  # fmt: skip
        taken = time.perf_counter() - began
        self.seconds[candidate.name] = min(taken, self.seconds.get(candidate.name, np.inf))
        calibration = coreset.provenance.get("calibration")
        if self.task.labels and calibration and calibration["part"] < 1.0:
            self.unmet.add(candidate.name)
        return Drawn(block_of(coreset), held_out)

    def _solution(self, drawn: Drawn, rng: np.random.Generator, start: Any = None) -> Any:
        found = self.task.solve(self.objective, drawn, rng, start)
        if self.pilot.metric == "cosine" and isinstance(self.objective, QuantizationError):
            rows = drawn.rows.take(np.flatnonzero(drawn.rows.weights > 0.0))
            return unit_centers(rows.points, rows.weights, found)
        return found

    def _solved(self, drawn: Drawn, rng: np.random.Generator, start: Any = None) -> float:
        """Cost on the pilot of the solution on some rows, which may be the best one known."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                solution = self._solution(drawn, rng, start)
        except ValueError:  # of rows that show no solution, such as those of one class
            return np.inf
        cost = self.task.cost(self.objective, self.rows, solution)
        if cost < self.least_cost:
            self._keep(solution, cost)
        if start is None and self.task.by_chance:
            several = _FINALISTS_IN_NATS if self.task.in_nats else _FINALISTS
            found = sorted([*self.finalists, Finalist(cost, solution)], key=attrgetter("cost"))
            self.finalists = found[:several]
        return cost

    def _keep(self, solution: Any, cost: float) -> None:
        """Take a solution for the best one known."""
        self.least_cost, self.best = cost, solution
        self.best_cost = float(self.objective.cost(self.rows, solution))

    @property
    def scale(self) -> float:
        """Of what errors are shares: the cost of the best solution, or the weight for nats a row.

        Zero where that cost is nothing but rounding.
        """
        if self.task.in_nats:
            return float(self.rows.weights.sum())
        return self.best_cost if self.best_cost > max(self.none, 1e-300) else 0.0

    def errors(self, name: str, *, of_coreset: bool = False) -> FloatArray:
        """Errors of the solutions, for all rows in place of the pilot.

        With `of_coreset` those of solvers that start at the best solution known.
        """
        gaps = np.array((self.coreset_costs if of_coreset else self.costs)[name]) - self.least_cost
        scale = self.scale
        if not scale:  # of which any other cost is infinitely more
            return np.where(gaps <= max(self.none, self._rounding()), 0.0, np.inf)
        errors = np.maximum(gaps / scale, 0.0)
        if self.task.by_chance and not of_coreset:
            # What the coreset itself costs more on all rows; starts miss as much on either.
            own = np.array(self.coreset_costs[name]) - self.least_cost
            own = np.maximum(own / scale, 0.0)
            with np.errstate(invalid="ignore"):
                return errors + np.nan_to_num(own * (self._beyond_pilot(name) - 1.0), posinf=0.0)
        return errors * self._beyond_pilot(name)

    def gained_on_all_rows(self) -> float:
        """Error of the best of all solutions on coresets, by starts of their own."""
        return (min(min(costs) for costs in self.costs.values()) - self.least_cost) / self.scale

    def error_of_unknown(self) -> float:
        """Error of the best solution known beside one that may be there, and no trial found.

        Where the two best of all trials lie far apart, or where they ended with all rows if several
        went on, a better one is likely: below the limit with a chance of four in five.

        References
        ----------
        Robson and Whitlock (1964), Estimation of a truncation point.
        """
        costs = np.sort([cost for found in self.costs.values() for cost in found])
        ended = np.sort([one.ended for one in self.finalists if one.ended is not None])
        costs = ended if len(ended) > 1 else costs
        if not self.task.by_chance or not self.scale or not np.isfinite(costs[:2]).all():
            return 0.0
        return float(_UNKNOWN_GAPS * (costs[1] - costs[0]) / self.scale)

    def _beyond_pilot(self, name: str) -> float:
        """How much more a coreset of all rows errs than one of the pilot."""
        if self.n_rows == len(self.pilot):
            return 1.0
        # A draw without replacement from so few rows is nearer to them than one from all.
        candidate = next(one for one in self.task.candidates if one.name == name)
        drawn = candidate.n_drawn(self.n_clusters, self.size, self.pilot.n_features)
        of_all, of_pilot = (1.0 - drawn / n for n in (self.n_rows, len(self.pilot)))
        return max(of_all, 0.0) / max(of_pilot, 1e-9)

    def _rounding(self) -> float:
        """Cost that is nothing but rounding."""
        points: Any = self.rows.points
        return 1e-18 * float(self.rows.weights.sum()) * float(abs(points).max()) ** 2

    def least_spread(self) -> float:
        """Least deviation, between builds, of the logarithm of the error of a linear model.

        The excess of a solution is near to a quadratic form of a gradient that is Gaussian in as
        many directions as there are parameters. Its logarithm deviates least where all directions
        count alike: as that of a chi-squared value of so many degrees of freedom. Trials that
        agree more closely do so by chance.
        """
        if not self.task.labels:
            return 0.0
        from scipy.special import polygamma

        several = isinstance(self.objective, SeveralClasses)
        n_models = len(self.objective.labels) - 1 if several else 1
        return float(np.sqrt(polygamma(1, 0.5 * n_models * (self.pilot.n_features + 1))))

    def largest_share(self) -> float:
        """Share of the best cost on a uniform sample that one row would have, were it drawn."""
        losses = self.objective.losses(self.rows, self.best)
        total = float((losses * self.rows.weights).sum())
        factor = float(self.rows.weights.sum()) / self.size
        return factor * float(losses.max()) / total if total > 0.0 else 0.0
