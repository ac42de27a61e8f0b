"""The design of the draws of SVM coresets: classes, order, calibration, trials of several draws."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from daskcoreset.core.block import Block, class_codes
from daskcoreset.core.raking import Calibrated, Target, calibrate_classes, class_sums, join_targets
from daskcoreset.core.typing import FloatArray, IndexArray
from daskcoreset.sensitivities.draw import (
    Candidates,
    Drawn,
    SystematicDraws,
    best_of,
    systematic_draws,
)
from daskcoreset.sensitivities.estimated_error import Fitted, estimated_error
from daskcoreset.sensitivities.svm_pilot import (
    WIDTH,
    PilotSolution,
    lemma_2,
    parts,
    row_terms,
    signs_of,
)
from daskcoreset.solvers.linear import round_hinge, solve_svm


class SeparableRows(NamedTuple):
    r"""Rows for every column, an intercept among them, below which a plane is likely to be found.

    With two rows per column, half of all labellings are those of a plane, and a model on such rows
    follows the penalty alone. Rows near the plane of a pilot, and among them those that it has
    wrong, then make another plane, worse than that of uniform rows. So do more rows where a
    class is rare.

    Attributes
    ----------
    balanced : float
        Without a rare class.
    rare : float
        With a class that is all but absent. Between both in proportion to the share of the rarest.
    share : float
        Share of the weight up to which a class counts as rare.

    Examples
    --------
    >>> few = SeparableRows(2.0, 3.0, 0.1)
    >>> few.number([50.0, 50.0], 9), few.number([95.0, 5.0], 9)
    (20.0, 25.0)

    References
    ----------
    Cover (1965), Geometrical and statistical properties of systems of linear inequalities.
    """

    balanced: float
    rare: float
    share: float

    def number(self, masses: Iterable[float], n_features: int) -> float:
        """Return the rows, by the weights of the classes."""
        masses = list(masses)
        rarity = max(0.0, 1.0 - min(masses) / (self.share * sum(masses)))
        rows = self.balanced + (self.rare - self.balanced) * rarity
        return float(rows * (n_features + 1))


# Whether the means of the classes are calibrated, and whether the gradient is.
Mode = tuple[bool, bool]

# Name of what may be met in the place of the means of two classes.
AT_ZERO = "gradient at zero"

# Rows for every feature with which both are: measured on htru2 and credit.
_ROWS_PER_FEATURE = 12

# Rows for every feature with which the gradient alone is.
_SOME = 4

# Rows below which they are drawn by the bound alone. By the activity as well they were worse than
# uniform ones: up to 4 for every column where a class had 2 % of the weight.
_FEW = SeparableRows(2.5, 4.5, 0.25)

# Products that a Newton step of the raking may take.
_MAX_WORK = 2e9

# Of fits that are only compared with each other.
_TRIAL_TOL = 1e-2

# Of the fit that an error is estimated of: with rare classes the trivial classifier may cost a
# hundredth more than the best one, and err by a third less.
_FINAL_TOL = 1e-4


def modes_for(size: int, rough: Any) -> tuple[Mode, ...]:
    """Return modes of calibration, the likeliest to succeed first.

    Sums that are met by rows too few for them are met by absurd weights; what is too few is
    found by trial, see `SVMDraws`.
    """
    both, gradient, means, neither = (True, True), (False, True), (True, False), (False, False)
    d, k, p = len(rough.origin), len(rough.classes), len(rough.coef)
    if p > 1 and size * (p * (d + 2)) ** 2 > _MAX_WORK:
        return (neither,)
    if size >= _ROWS_PER_FEATURE * p * (d + 1):
        cheap = size * ((p + k) * (d + 1)) ** 2 <= _MAX_WORK
        return (both, gradient) if cheap else (gradient,)
    if size >= _SOME * p * (d + 1):
        return gradient, both, means, neither
    return neither, gradient, means, both


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
        loss, slope = round_hinge(by_pilot.margins, WIDTH)
        return pull_target(points, loss, slope * signs, rough.sums.rounded, rough.sums.slopes)

    class_weights, sums = rough.class_sums()
    return rake_to_pilot(
        weights, by_pilot.codes, points, class_weights, sums, pulls, (means, gradient)
    )


def centred_rows(rows: Block, rough: Any) -> FloatArray:
    """Return rows less the `origin` of a pilot, as one array."""
    points = np.empty((len(rows), len(rough.origin)))
    for part, tile in parts(rows, rough):
        points[part] = tile
    return points


def rake_to_pilot(  # noqa: PLR0917 - all of them are always given
    weights: FloatArray,
    codes: IndexArray,
    points: FloatArray,
    class_weights: FloatArray,
    sums: FloatArray,
    pulls: Callable[[], Target],
    mode: Mode,
    *,
    at_zero: bool = False,
) -> Calibrated:
    """Scale weights to the totals of the classes, and calibrate them as `mode` says.

    Parameters
    ----------
    weights : ndarray of shape (m,), float64
    codes : ndarray of shape (m,), int64
    points : ndarray of shape (m, d), float64
        As of `centred_rows`.
    class_weights : ndarray of shape (K,), float64
    sums : ndarray of shape (K, d), float64
        Sums of the rows of every class, over all the data.
    pulls : callable
        Makes what `pull_target` returns.
    mode : (bool, bool)
        As of `modes_for`.
    at_zero : bool, default=False
        Whether, of two classes whose means cannot both be met, the difference of their sums may be:
        the gradient of losses where coefficients are zero, which rules the cost of small ones.
        Half as many sums.
    """

    def class_means() -> Iterator[Target]:
        return class_sums(points, codes, sums)

    def differences() -> Target:
        return Target(points * np.where(codes == 1, 1.0, -1.0)[:, np.newaxis], sums[1] - sums[0])

    means, gradient = mode
    targets = {
        "class means": lambda: join_targets(class_means()),
        "gradient": pulls,
        AT_ZERO: differences,
    }
    names = ("gradient",) * gradient + ("class means",) * means
    ladder = [names[:count] for count in range(len(names), 0, -1)]
    if len(names) > 1:
        ladder.append(names[1:])
    if at_zero and means and len(sums) == 2:
        ladder.insert(1, (*names[:-1], AT_ZERO))
        if gradient:
            ladder.append((AT_ZERO,))
    kept = {"class means": class_means}
    return calibrate_classes(weights, codes, class_weights, targets, ladder, kept=kept)


def pull_target(
    points: FloatArray,
    losses: FloatArray,
    pulls: FloatArray,
    total_losses: FloatArray,
    slopes: FloatArray,
) -> Target:
    """Losses and gradients, at a pilot's solution, of the rows drawn; and their sums over all.

    Parameters
    ----------
    points : ndarray of shape (m, d), float64
    losses, pulls : ndarray of shape (m, p), float64
        Pulls are minus the derivatives of the loss by the decision values.
    total_losses : ndarray of shape (p,), float64
    slopes : ndarray of shape (p, d + 1), float64
        Sums of the pulls times the row and one.
    """
    columns: list[FloatArray] = []
    totals: list[FloatArray] = []
    for problem in range(losses.shape[1]):
        pull = pulls[:, problem, np.newaxis]
        columns += [losses[:, problem, np.newaxis], points * pull, pull]
        totals += [total_losses[problem : problem + 1], slopes[problem]]
    return Target(np.concatenate(columns, axis=1), np.concatenate(totals))


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
        if np.count_nonzero(scores) > size and self._are_few(size, summary):
            by_pilot = row_terms(rows, summary)
            bound = lemma_2(
                by_pilot.squares, by_pilot.cells, summary.weights, summary.opt, self.lam
            )
            scores = np.asarray(rows.weights * bound)
        codes = class_codes(rows, summary.classes)
        order = partial(self._order, summary)
        draws = systematic_draws(candidates, scores, size, codes=codes, order=order)
        drawn = best_of(
            [
                self._calibrated(draws(rng), rows, summary, number)
                for number in range(self._n_draws(draws, size, summary))
            ],
            partial(self._loss, candidates, summary),
        )
        if not candidates.final or draws.is_certain:
            return drawn
        fitted = self._fitted(drawn, rows, summary, tol=_FINAL_TOL)
        error = estimated_error(
            fitted, drawn.chosen, drawn.weights, rows.weights, candidates.first, drawn.second
        )
        return drawn._replace(facts={**drawn.facts, "estimated_error": error})

    def _are_few(self, size: int, summary: Any) -> bool:
        """Whether the rows drawn are so few that a plane separates them."""
        masses = np.bincount(summary.owners, weights=summary.weights)
        return self.variant == "auto" and size < _FEW.number(masses, len(summary.origin))

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

    def _loss(self, candidates: Candidates, summary: Any, drawn: Drawn) -> float:
        """Cost, over all candidates, of the classifiers fitted on a draw."""
        fitted = self._fitted(drawn, candidates.rows, summary, tol=_TRIAL_TOL)
        return fitted.constant + float(candidates.weights @ fitted.losses)

    def _fitted(self, drawn: Drawn, candidates: Block, summary: Any, *, tol: float) -> Fitted:
        """Fit classifiers on the rows drawn, and sum up the losses of candidates by all of them."""
        classes, lam = summary.classes, self.lam
        rows, weights = candidates.take(drawn.chosen), drawn.weights
        points = np.concatenate([tile for _, tile in parts(rows, summary)])
        targets = signs_of(class_codes(rows, classes), len(classes))
        fit_to = partial(solve_svm, points, intercept=self.intercept, tol=tol)
        fits = [fit_to(signs, weights, lam) for signs in targets.T]
        truth = signs_of(class_codes(candidates, classes), len(classes))
        losses = np.zeros(len(candidates))
        for part, tile in parts(candidates, summary):
            for problem, fit in enumerate(fits):
                margins = truth[part, problem] * (tile @ fit.coef + fit.intercept)
                losses[part] += lam * np.maximum(1.0 - margins, 0.0)
        constant = sum(float(fit.coef @ fit.coef) / 2 for fit in fits)
        return Fitted(constant, losses, lam, lam * self._least_loss(targets, weights))

    def _least_loss(self, targets: FloatArray, weights: FloatArray) -> float:
        """Loss of the best classifiers without features, of all problems."""
        positive = np.where(targets > 0.0, weights[:, np.newaxis], 0.0).sum(axis=0)
        total = float(weights.sum())
        if not self.intercept:
            return total * float(targets.shape[1])
        return float(2.0 * np.minimum(positive, total - positive).sum())
