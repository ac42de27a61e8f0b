"""Calibration of SVM coresets, and the trial of what was drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from daskcoreset.core.blocks import class_codes
from daskcoreset.core.sampling import Calibrated, Target, by_class, calibrate_classes
from daskcoreset.core.typing import FloatArray
from daskcoreset.sensitivities.estimated_error import Fitted
from daskcoreset.sensitivities.svm_pilot import WIDTH, parts, row_terms, signs_of
from daskcoreset.solvers.linear import round_hinge, solve_svm

if TYPE_CHECKING:
    from daskcoreset.core.blocks import Block
    from daskcoreset.sensitivities.svm_pilot import PilotSolution, RowTerms

__all__ = ["calibrate", "fitted_on", "modes_for"]

Mode = tuple[bool, bool]
"""Whether the means of the classes are calibrated, and whether the gradient is."""

_ENOUGH = 12
"""Rows for every feature with which both are: measured on htru2 and credit."""

_SOME = 4
"""Rows for every feature with which the gradient alone is."""

_MOST_WORK = 2e9
"""Products that a Newton step of the raking may take."""

_TRIAL_TOL = 1e-2
"""Of fits that are only compared with each other."""

_FINAL_TOL = 1e-4
"""Of the fit that an error is estimated of: with rare classes the trivial classifier may cost a
hundredth more than the best one, and err by a third less."""


def modes_for(size: int, rough: PilotSolution) -> tuple[Mode, ...]:
    """Return ways to calibrate, the likeliest first.

    Sums that are met by rows too few for them are met by absurd weights; what is too few is
    found by trial, see `SVM.n_draws`.
    """
    both, gradient, means, neither = (True, True), (False, True), (True, False), (False, False)
    d, k, p = len(rough.origin), len(rough.classes), len(rough.coef)
    if p > 1 and size * (p * (d + 2)) ** 2 > _MOST_WORK:
        return (neither,)
    if size >= _ENOUGH * p * (d + 1):
        cheap = size * ((p + k) * (d + 1)) ** 2 <= _MOST_WORK
        return (both, gradient) if cheap else (gradient,)
    if size >= _SOME * p * (d + 1):
        return gradient, both, means, neither
    return neither, gradient, means, both


def calibrate(
    rows: Block, weights: FloatArray, rough: PilotSolution, *, means: bool, gradient: bool
) -> Calibrated:
    """Scale weights to the totals of the classes, and rake them to further sums over all rows.

    Parameters
    ----------
    rows : Block
    weights : ndarray of shape (m,), float64
    rough : Rough
        Settled after the last fold.
    means : bool
        Whether the means of the classes are to be met.
    gradient : bool
        Whether the sums of the rounded losses and of their gradients at the rough solution are.

    Returns
    -------
    Calibrated
        Where not all can be met, the gradient is given up last; the means of the classes, taken
        together, are not moved away for it.
    """
    seen = row_terms(rows, rough)
    points = np.empty((len(rows), len(rough.origin)))
    for part, tile in parts(rows, rough):
        points[part] = tile
    class_weights, class_sums = rough.class_sums()

    def class_means() -> Target:
        own = by_class(seen.codes, class_weights)
        features = np.concatenate([points * mine[:, np.newaxis] for mine in own], axis=1)
        return Target(features, np.concatenate(class_sums))

    targets = {"class means": class_means, "gradient": lambda: _pulls(seen, points, rough)}
    wanted = ("gradient",) * gradient + ("class means",) * means
    ladder = [wanted[:count] for count in range(len(wanted), 0, -1)]
    if len(wanted) > 1:
        ladder.append(wanted[1:])
    return calibrate_classes(
        weights, seen.codes, class_weights, targets, ladder, kept=["class means"]
    )


def _pulls(seen: RowTerms, points: FloatArray, rough: PilotSolution) -> Target:
    """Losses and slopes, at the rough solution, of the rows drawn; and their sums over all."""
    assert rough.sums is not None  # noqa: S101 - the last fold has summed up
    signs = signs_of(seen.codes, len(rough.classes))
    loss, slope = round_hinge(seen.margins, WIDTH)
    columns: list[FloatArray] = []
    totals: list[FloatArray] = []
    for problem in range(len(rough.coef)):
        pull = (slope * signs)[:, problem, np.newaxis]
        columns += [loss[:, problem, np.newaxis], points * pull, pull]
        totals += [rough.sums.rounded[problem : problem + 1], rough.sums.slopes[problem]]
    return Target(np.concatenate(columns, axis=1), np.concatenate(totals))


def fitted_on(
    rows: Block,
    weights: FloatArray,
    others: Block,
    rough: PilotSolution,
    lam: float,
    *,
    intercept: bool,
    roughly: bool,
) -> Fitted:
    """Losses on `others`, summed over all problems, of classifiers fitted on `rows`."""
    codes = len(rough.classes)
    points = np.concatenate([tile for _, tile in parts(rows, rough)])
    targets = signs_of(class_codes(rows, rough.classes), codes)
    fits = [
        solve_svm(
            points,
            signs,
            weights,
            lam,
            intercept=intercept,
            tol=_TRIAL_TOL if roughly else _FINAL_TOL,
            start=(np.append(coef, shift) if intercept else coef) if roughly else None,
        )
        for signs, coef, shift in zip(targets.T, rough.coef, rough.intercept, strict=True)
    ]
    truth = signs_of(class_codes(others, rough.classes), codes)
    losses = np.zeros(len(others))
    for part, tile in parts(others, rough):
        for problem, fit in enumerate(fits):
            margins = truth[part, problem] * (tile @ fit.coef + fit.intercept)
            losses[part] += lam * np.maximum(1.0 - margins, 0.0)
    return Fitted(sum(float(fit.coef @ fit.coef) / 2 for fit in fits), losses, lam)
