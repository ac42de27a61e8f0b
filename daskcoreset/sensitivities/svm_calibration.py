"""The design of the draws of SVM coresets: classes, order, calibration, trials of several draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from daskcoreset.core.block import Block, class_codes
from daskcoreset.core.raking import Calibrated, Target
from daskcoreset.core.typing import FloatArray, IndexArray
from daskcoreset.sensitivities.draw import (
    Candidates,
    Drawn,
    SystematicDraws,
    systematic_draws,
)
from daskcoreset.sensitivities.estimated_error import Fitted, estimated_error
from daskcoreset.sensitivities.pilot import (
    Judged,
    best_draw,
    centred_rows,
    judges_of,
    modes_for,
    parts,
    pull_target,
    rake_to_pilot,
)
from daskcoreset.sensitivities.svm_pilot import (
    WIDTH,
    PilotSolution,
    row_terms,
    signs_of,
)
from daskcoreset.solvers.linear import LinearFit, solve_svm
from daskcoreset.solvers.losses import RoundedHinge

# Of fits that are compared with each other, or whose error is estimated: with rare classes the
# trivial classifier may cost a hundredth more than the best one, and err by a third less.
_TOL = 1e-4


def calibrate(
    rows: Block, weights: FloatArray, rough: PilotSolution, *, means: bool, gradient: bool
) -> Calibrated:
    """Scale weights to the totals of the classes, and calibrate them to further sums over all rows.

    Parameters
    ----------
    rows : Block
    weights : ndarray of shape (m,), float64
    rough : PilotSolution
        Finalized after the last fold.
    means : bool
        Whether the means of the classes are to be met.
    gradient : bool
        Whether the sums of the rounded losses and of their gradients at the rough solution are.

    Returns
    -------
    Calibrated
        If not all can be met, the gradient is given up last. The means of the classes, taken
        together, are not moved away for it.
    """
    by_pilot = row_terms(rows, rough)
    points = centred_rows(rows, rough)
    signs = signs_of(by_pilot.codes, len(rough.classes))

    def pulls() -> Target:
        assert rough.sums is not None  # noqa: S101 - the last fold has summed up
        rounded = RoundedHinge(WIDTH)
        loss, slope = rounded.value(by_pilot.margins), -rounded.slope(by_pilot.margins)
        return pull_target(points, loss, slope * signs, rough.sums.rounded, rough.sums.slopes)

    class_weights, sums = rough.class_sums()
    return rake_to_pilot(
        weights, by_pilot.codes, points, class_weights, sums, pulls, (means, gradient)
    )


Variant: TypeAlias = Literal["auto", "pilot_mix", "calibrated", "systematic", "paper"]

# Of tiny coresets; sixteen did as well as twenty-four on htru2 and credit.
_MAX_DRAWS = 16

# Rows of all draws together: some hundred milliseconds.
_TRIED_ROWS = 6000

# The same, times problems: felt from nine classes on.
_TRIED_PROBLEMS = 48_000

# Fewer are solved in a few hundredths of a second, and nobody saves time by a coreset of them; of
# more, building and training must stay below training on all rows.
_TIMED_ROWS = 18_000

# Products in a Newton step up to which uniform rows are tried as well.
_COMPARED_WORK = 4e8

# Products in a Newton step of a trial at most: beyond it trials would take seconds.
_TRIAL_WORK = 6e7


@dataclass(frozen=True)
class SVMDraws:
    """The draws of `SVM`: every class is a stratum, ordered by margin, with calibrated weights.

    Attributes
    ----------
    lam, variant, intercept
        As in `SVM`.
    """

    lam: float
    variant: Variant
    intercept: bool

    @property
    def mixes_activity(self) -> bool:
        """Whether rows are scored by half their bound and half their activity."""
        return self.variant in ("auto", "pilot_mix")

    def draw(
        self,
        candidates: Candidates,
        scores: FloatArray,
        summary: Any,
        size: int,
        rng: np.random.Generator,
    ) -> Drawn:
        """Draw rows of candidates with these scores, as `daskcoreset.Sensitivity.draw`."""
        rows = candidates.rows
        codes = class_codes(rows, summary.classes)
        order = partial(self._order, summary)
        draws = systematic_draws(candidates, scores, size, codes=codes, order=order)
        n_draws = self._n_draws(draws, size, summary)

        def by_pilot(number: int) -> Drawn:
            return self._calibrated(draws(rng), rows, summary, number)

        if self._compares(draws, size, summary):
            uniform = systematic_draws(
                candidates, rows.weights, size, codes=codes, order=order, even=False
            )
            class_weights = summary.class_sums()[0]
            fit = partial(self._fits, rows, summary, True)
            judge = partial(self._judged, summary)
            judges = judges_of(summary.sums.judges, summary)
            kinds = by_pilot, uniform, codes, class_weights
            drawn = best_draw(*kinds, fit, judge, judges, n_draws, rng)
        else:
            drawn = by_pilot(0)
        if not candidates.final or draws.is_certain:
            return drawn
        found = self._judged(summary, self._fits(rows, summary, False, drawn), rows)
        targets = signs_of(codes[drawn.chosen], len(summary.classes))
        none = self.lam * self._least_loss(targets, drawn.weights)
        fitted = Fitted(found.constant, found.losses, self.lam, none)
        error = estimated_error(
            fitted, drawn.chosen, drawn.weights, rows.weights, candidates.first, drawn.second
        )
        return drawn._replace(facts={**drawn.facts, "estimated_error": error})

    def _order(self, summary: Any, candidates: Candidates, second: FloatArray) -> IndexArray:
        """Order by label and margin. By label, cell and distance without activities."""
        del second
        by_pilot = row_terms(candidates.rows, summary)
        if not self.mixes_activity:
            # Cells stand in the order of classes.
            return np.lexsort((by_pilot.squares, by_pilot.cells))
        problems = (
            by_pilot.codes if by_pilot.margins.shape[1] > 1 else np.zeros_like(by_pilot.codes)
        )
        return np.lexsort((by_pilot.margins[np.arange(len(problems)), problems], by_pilot.codes))

    def _n_draws(self, draws: SystematicDraws, size: int, summary: Any) -> int:
        """Several where rows are few and chance decides, one where it does not matter."""
        problems, d = summary.coef.shape
        work = size * (d + 1) ** 2 * problems
        if self.variant != "auto" or work > _TRIAL_WORK or draws.is_certain:
            return 1
        n = summary.n_rows
        # Of few rows, such as those of a leaf of a stream, there are many sets.
        several = min(_MAX_DRAWS, max(4, n // (1000 if n < _TIMED_ROWS else 4000)))
        # Of many problems each takes as long as the one of two classes.
        affordable = min(_TRIED_ROWS // size, _TRIED_PROBLEMS // (size * problems))
        return int(max(1, min(several, affordable)))

    def _calibrated(self, drawn: Drawn, rows: Block, summary: Any, number: int) -> Drawn:
        """Scale weights to the totals of the classes, and calibrate them to other sums over all."""
        if self.variant in ("systematic", "paper"):
            return drawn
        kept = rows.take(drawn.chosen)
        means, gradient = True, False
        if self.variant != "calibrated":
            modes = modes_for(len(kept), summary)
            means, gradient = modes[number % len(modes)]
        found = calibrate(kept, drawn.weights, summary, means=means, gradient=gradient)
        return drawn._replace(weights=found.weights, facts=found.describe())

    def _compares(self, draws: SystematicDraws, size: int, summary: Any) -> bool:
        """Whether uniform rows are tried as well."""
        problems, d = summary.coef.shape
        work = size * (d + 1) ** 2 * problems
        return self.variant == "auto" and not draws.is_certain and work <= _COMPARED_WORK

    def _fits(
        self, candidates: Block, summary: Any, from_pilot: bool, drawn: Drawn
    ) -> tuple[LinearFit, ...]:
        """Fit a classifier of every problem on the rows drawn, or move that of the pilot there."""
        rows = candidates.take(drawn.chosen)
        points = np.concatenate([tile for _, tile in parts(rows, summary)])
        targets = signs_of(class_codes(rows, summary.classes), len(summary.classes))
        fit_to = partial(solve_svm, points, intercept=self.intercept, tol=_TOL)
        fits = []
        for signs, coef, shift in zip(targets.T, summary.coef, summary.intercept, strict=True):
            pilot = np.append(coef, shift) if self.intercept else coef
            start = pilot if from_pilot else None
            fits.append(fit_to(signs, drawn.weights, self.lam, start=start))
        return tuple(fits)

    def _judged(self, summary: Any, fits: Sequence[LinearFit], rows: Block) -> Judged:
        """Sum up the losses of rows by the classifiers of all problems."""
        truth = signs_of(class_codes(rows, summary.classes), len(summary.classes))
        losses = np.zeros(len(rows))
        for part, tile in parts(rows, summary):
            for problem, fit in enumerate(fits):
                margins = truth[part, problem] * (tile @ fit.coef + fit.intercept)
                losses[part] += self.lam * np.maximum(1.0 - margins, 0.0)
        return Judged(sum(float(fit.coef @ fit.coef) / 2 for fit in fits), losses)

    def _least_loss(self, targets: FloatArray, weights: FloatArray) -> float:
        """Loss of the best classifiers without features, of all problems."""
        positive = np.where(targets > 0.0, weights[:, np.newaxis], 0.0).sum(axis=0)
        total = float(weights.sum())
        if not self.intercept:
            return total * float(targets.shape[1])
        return float(2.0 * np.minimum(positive, total - positive).sum())
