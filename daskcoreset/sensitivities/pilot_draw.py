"""Draws by a pilot: calibrated to sums over all rows, and compared with uniform rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from daskcoreset.core.block import Block, class_codes, concatenate
from daskcoreset.core.raking import Target, calibrate_classes, class_sums, join_targets
from daskcoreset.core.sampling import StratifiedReservoir
from daskcoreset.core.typing import FloatArray, IndexArray
from daskcoreset.sensitivities.draw import (
    Candidates,
    Drawn,
    SystematicDraws,
    best_of,
    systematic_draws,
)
from daskcoreset.sensitivities.least_squares import gaps_of

# Rows that judge draws, and numbers in them: 8 MiB of float32. Of a class at least 128.
_JUDGES, _JUDGE_NUMBERS, _MIN_JUDGES = 10_000, 2**21, 128

# Draws of a kind at most, and rows of all of them: some hundred milliseconds. Of uniform rows at
# least, which are then better than one draw of uniform rows.
_MAX_DRAWS, _TRIED_ROWS, _UNIFORM_DRAWS = 16, 6000, 3

# Share of a cost that uniform rows save at least, if they are kept.
_SAVED = 1e-3

# Products in a step of Newton's method: of the sums of one draw, beyond which weights are not
# calibrated and draws not compared, and of all draws of a kind.
_MAX_WORK, _TRIED_WORK = 2e9, 6e7

_GRADIENT, _MEANS = "gradient", "class means"

# Samples of every class that are drawn neither for the coreset nor for the pilot.
Judges: TypeAlias = dict[Any, StratifiedReservoir]


def judge_size(pilot: Any) -> int:
    """Return the rows of a class that judge draws."""
    rows = min(_JUDGES, _JUDGE_NUMBERS // max(len(pilot.origin), 1))
    return max(_MIN_JUDGES, rows // max(2, len(pilot.classes)))


def judges_of(pilot: Any) -> Candidates:
    """Return the rows that judge draws, and the probabilities with which they were sampled."""
    size, strata = judge_size(pilot), list(pilot.judges.values())
    rows = concatenate([one.rows.take(slice(size)) for one in strata])
    return Candidates(rows, rows.weights / np.concatenate([one.stand_ins(size) for one in strata]))


def centred(rows: Block, pilot: Any) -> FloatArray:
    """Return rows less the `origin` of a pilot."""
    tiles = [points for _, points in gaps_of(rows.points, rows.weights, pilot.origin)]
    return np.concatenate(tiles) if tiles else np.empty((0, len(pilot.origin)))


class Judged(NamedTuple):
    """Cost of a model: a constant, and losses of rows of weight one."""

    constant: float
    losses: FloatArray


@dataclass(frozen=True, eq=False)
class PilotDraws:
    """Draws of `size` rows of candidates, by a method with a pilot."""

    method: Any
    candidates: Candidates
    pilot: Any
    size: int

    def best(self, rng: np.random.Generator) -> tuple[Drawn, Any]:
        """Return the best of several draws by the pilot, or of uniform rows if these are better.

        Uniform rows are better if the cost of their model is smaller by two standard errors on rows
        that are drawn for nothing else. Draws of one kind differ by less than such errors, so all
        candidates compare them. Also return the model on the rows, if it was fitted.
        """
        draws = self._draws(self.method.scores(self.candidates.rows, self.pilot))
        if draws.is_certain or self._work() > _MAX_WORK:
            return self._calibrated(draws(rng)), None
        uniform = self._draws(self.candidates.rows.weights, even=False)
        judges, n_draws = judges_of(self.pilot), self._n_draws()
        tried = [self._calibrated(draws(rng)) for _ in range(n_draws)]
        drawn, model = self._best(tried, self.candidates)
        others = [self._scaled(uniform(rng)) for _ in range(max(n_draws, _UNIFORM_DRAWS))]
        other, other_model = self._best(others, judges)
        costs = self.judged(model, judges.rows), self.judged(other_model, judges.rows)
        if _costs_more(*costs, judges):
            return other._replace(facts={**other.facts, "rows": "uniform"}), other_model
        return drawn, model

    @cached_property
    def _codes(self) -> IndexArray:
        return class_codes(self.candidates.rows, self.pilot.classes)

    @cached_property
    def _decisions(self) -> FloatArray:
        return decisions_of(self.candidates.rows, self.pilot)

    @cached_property
    def _class_sums(self) -> tuple[FloatArray, FloatArray]:
        sums: tuple[FloatArray, FloatArray] = self.pilot.class_sums()
        return sums

    def _draws(self, scores: FloatArray, *, even: bool = True) -> SystematicDraws:
        def order(candidates: Candidates, second: FloatArray) -> IndexArray:
            found: IndexArray = self.method.order(candidates, second, self._codes, self._decisions)
            return found

        return systematic_draws(
            self.candidates, scores, self.size, codes=self._codes, order=order, even=even
        )

    def _work(self) -> float:
        p, d = self.pilot.coef.shape
        return float(self.size * (p * (d + 2)) ** 2)

    def _n_draws(self) -> int:
        """Several if rows are few and chance decides."""
        few = _TRIED_ROWS // (self.size * len(self.pilot.coef))
        return max(1, min(_MAX_DRAWS, few, int(_TRIED_WORK / self._work())))

    def _scaled(self, drawn: Drawn) -> Drawn:
        """Scale weights to the class totals."""
        codes = self._codes[drawn.chosen]
        found = calibrate_classes(drawn.weights, codes, self._class_sums[0], {}, [])
        return drawn._replace(weights=found.weights, facts=found.describe())

    def _calibrated(self, drawn: Drawn) -> Drawn:
        """Calibrate weights to class totals, class means, and losses and gradients at the pilot."""
        pilot, codes = self.pilot, self._codes[drawn.chosen]
        class_weights, sums = self._class_sums
        # Weights meet no more sums than there are rows.
        p, d = pilot.coef.shape
        counts = {(_GRADIENT, _MEANS): p * (d + 2) + sums.size, (_GRADIENT,): p * (d + 2)}
        ladder = [names for names, count in counts.items() if count < len(codes)]
        if not ladder or self._work() > _MAX_WORK:
            return self._scaled(drawn)
        points = centred(self.candidates.rows.take(drawn.chosen), pilot)

        def gradient() -> Target:
            losses, pulls = self.method.losses(codes, self._decisions[drawn.chosen])
            slopes = [np.column_stack([points * pull[:, np.newaxis], pull]) for pull in pulls.T]
            totals = np.append(pilot.sums["losses"], pilot.sums["slopes"])
            return Target(np.concatenate([losses, *slopes], axis=1), totals)

        def means() -> Iterator[Target]:
            return class_sums(points, codes, sums)

        found = calibrate_classes(
            drawn.weights,
            codes,
            class_weights,
            {_GRADIENT: gradient, _MEANS: lambda: join_targets(means())},
            ladder,
            kept={_MEANS: means},
        )
        return drawn._replace(weights=found.weights, facts=found.describe())

    def fitted(self, drawn: Drawn) -> Any:
        """Return the pilot with the model of the rows drawn."""
        points = centred(self.candidates.rows.take(drawn.chosen), self.pilot)
        codes = self._codes[drawn.chosen]
        return self.method.fit(self.pilot, points, codes, drawn.weights)

    def judged(self, model: Any, rows: Block) -> Judged:
        """Return the cost of a model over rows."""
        losses, _ = self.method.losses(class_codes(rows, model.classes), decisions_of(rows, model))
        constant = float(np.square(model.coef).sum()) / 2.0
        return Judged(constant, self.method.lam * losses.sum(axis=1))

    def _best(self, draws: list[Drawn], judges: Candidates) -> tuple[Drawn, Any]:
        """Return the draw whose model costs least over other rows, and the model."""
        models = [self.fitted(drawn) for drawn in draws]
        if len(draws) == 1:
            return draws[0], models[0]
        found = [self.judged(model, judges.rows) for model in models]
        costs = [one.constant + float(judges.weights @ one.losses) for one in found]
        return best_of([*zip(draws, models, strict=True)], costs)


def decisions_of(rows: Block, model: Any) -> FloatArray:
    """Return decision values of rows, of shape (n, p)."""
    found = np.empty((len(rows), len(model.coef)))
    for part, points in gaps_of(rows.points, rows.weights, model.origin):
        found[part] = model.decisions(points)
    return found


def _costs_more(first: Judged, second: Judged, judges: Candidates) -> bool:
    """Whether a model costs more than another, by two standard errors of the judges at least."""
    gaps, weights, codes = first.losses - second.losses, judges.weights, judges.codes
    means = np.bincount(codes, weights * gaps) / np.bincount(codes, weights)
    unseen = np.maximum(1.0 - judges.first, 0.0)
    error = math.sqrt(float(unseen @ np.square(weights * (gaps - means[codes]))))
    cost = first.constant + float(weights @ first.losses)
    saved = first.constant - second.constant + float(weights @ gaps)
    return saved > max(2.0 * error, _SAVED * cost)
