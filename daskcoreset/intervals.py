r"""The cost of a solution over all rows, from a Poisson sample and totals that are exact.

**Controls.** The same read learns the total weight, the total score and the costs of the
audited solutions exactly. A regression of y on these, fitted on the sample, leaves only its
residuals to chance (the difference estimator, Särndal, Swensson and Wretman 1992, section
6.8, with the coefficients of least estimated variance).
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from daskcoreset.errors import InvalidInputError, InvalidTypeError

if TYPE_CHECKING:
    from daskcoreset.objectives import Objective
    from daskcoreset.survey import Reading
    from daskcoreset.typing import FloatArray

__all__ = ["Interval", "checked_confidence", "estimate"]

_ROWS_PER_CONTROL = 20
"""A coefficient fitted to fewer rows than this takes more from the error than it gives."""


class Interval(NamedTuple):
    """An estimate and its confidence interval."""

    estimate: float
    low: float
    high: float


def estimate(
    reading: Reading,
    objective: Objective[Any],
    solutions: Sequence[Any],
    solution: Any,
    confidence: float,
) -> Interval:
    r"""Cost of a solution over all rows, from the sample and the exact totals.

    Parameters
    ----------
    reading : Reading
    objective : Objective
    solutions : sequence
        Those whose costs are exact in the reading.
    solution : object
        The one asked about.
    confidence : float

    Returns
    -------
    Interval
        By Student's t with as many degrees of freedom as there are sampled rows less fitted
        coefficients, about residuals divided by one minus their leverage: fitted residuals
        are too small, and these are not. The cost of the sampled rows themselves is certain,
        and bounds the interval from below.
    """
    from scipy.special import stdtrit  # noqa: PLC0415 - slow to import

    rows = reading.rows
    assert rows is not None  # noqa: S101 - the total weight is positive
    inclusion = reading.inclusion
    values = rows.weights * objective.losses(rows, solution)
    chance = inclusion < 1.0
    n = int(chance.sum())
    n_controls = min(n // _ROWS_PER_CONTROL, 2 + len(solutions))
    columns = [rows.weights, reading.scores]
    columns += [
        rows.weights * objective.losses(rows, known)
        for known in solutions[: max(0, n_controls - 2)]
    ]
    controls = np.stack(columns[:n_controls], axis=1) if n_controls else np.empty((len(values), 0))
    totals = np.array([reading.weight, reading.score, *reading.costs])[:n_controls]

    spread = np.sqrt(1.0 - inclusion[chance]) / inclusion[chance]
    coefficients, residuals, rank = _fit(controls[chance], values[chance], spread)
    guess = values.sum() if n == 0 else (values / inclusion).sum()
    missed = totals - (controls / inclusion[:, np.newaxis]).sum(axis=0)
    guess = float(guess + missed @ coefficients)
    error = float(np.sqrt((residuals * residuals).sum()))
    certain = float(values.sum())
    width = error * float(stdtrit(max(1, n - rank - 1), 0.5 + confidence / 2)) if n else 0.0
    low, high = max(guess - width, certain), max(guess + width, certain)
    fixed = objective.constant(solution)
    return Interval(fixed + max(guess, certain), fixed + low, fixed + high)


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


def _fit(
    controls: FloatArray, values: FloatArray, spread: FloatArray
) -> tuple[FloatArray, FloatArray, int]:
    """Coefficients of least estimated variance, residuals freed of leverage, and the rank."""
    left = controls * spread[:, np.newaxis]
    right = values * spread
    # Costs of several solutions are nearly the same: what they cannot tell apart is left out.
    scale = np.linalg.norm(left, axis=0)
    scale[scale == 0] = 1.0
    basis, singular, turn = np.linalg.svd(left / scale, full_matrices=False)
    rank = int((singular > 1e-7 * singular[0]).sum()) if len(singular) else 0
    basis, singular, turn = basis[:, :rank], singular[:rank], turn[:rank]
    along = basis.T @ right
    coefficients = (turn.T @ (along / singular)) / scale
    leverage = np.minimum((basis * basis).sum(axis=1), 0.99)
    return coefficients, (right - basis @ along) / (1.0 - leverage), rank
