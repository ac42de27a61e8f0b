"""Candidates that a coreset did not take: rows by which models fitted on it are judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskcoreset.core.sampling import systematic
from daskcoreset.core.typing import FloatArray, Points
from daskcoreset.sensitivities.draw import Candidates, Drawn
from daskcoreset.sensitivities.estimated_error import rows_outside


@dataclass(frozen=True, eq=False)
class HeldOut:
    r"""A sample of the rows outside of a coreset, from the reads that built it.

    Attributes
    ----------
    points : ndarray of shape (j, d) or csr_array
    weights : ndarray of shape (j,), float64
        Input weights u.
    factors : ndarray of shape (j,), float64
        Number of rows outside of the coreset that each represents. See
        `daskcoreset.sensitivities.estimated_error.rows_outside`.
    own : ndarray of shape (m,), float64
        Input weights of the rows of the coreset.
    total : float
        Weight of all the data.
    """

    points: Points
    weights: FloatArray
    factors: FloatArray
    own: FloatArray
    total: float

    def mean(self, of_coreset: FloatArray, of_held_out: FloatArray) -> tuple[float, float]:
        r"""Estimate the weighted mean of a value over all the data, and the standard error.

        Rows of the coreset count for themselves, of which nothing is left to chance. The mean of
        all others is the ratio of two sums over the rows that were held out. Whatever was done with
        the coreset, these were not seen by it.

        Parameters
        ----------
        of_coreset : ndarray of shape (m,), float64
        of_held_out : ndarray of shape (j,), float64

        Returns
        -------
        mean, error : float
            The error is zero where all rows were held out, and infinite where the mean is.

        Examples
        --------
        >>> ones = np.ones(2)
        >>> held_out = HeldOut(np.zeros((2, 1)), ones, 4 * ones, ones, total=10.0)
        >>> mean, error = held_out.mean(np.array([5.0, 3.0]), np.array([1.0, 2.0]))
        >>> mean, round(error, 3)
        (2.0, 0.245)

        References
        ----------
        Särndal, Swensson and Wretman (1992), Model Assisted Survey Sampling, section 5.6, for the
        ratio and, with independent draws, its variance.
        """
        weights = self.weights * self.factors
        share = max(0.0, 1.0 - float(self.own.sum()) / self.total)
        rest = float(weights @ of_held_out / weights.sum())
        mean = float(self.own @ of_coreset) / self.total + share * rest
        if not np.isfinite(mean):
            return mean, np.inf
        unseen = np.maximum(1.0 - 1.0 / self.factors, 0.0)
        squares = float(unseen @ (weights * (of_held_out - rest)) ** 2)
        return mean, share * float(np.sqrt(squares) / weights.sum())

    def judge(
        self, score: Callable[[Any, Points], FloatArray], points: Points
    ) -> Callable[[Any], float]:
        """Return a function by which the best of several models is chosen.

        A model may be good for nearly all rows and infinitely bad for a few, which few rows do not
        show.

        Parameters
        ----------
        score : callable
            From a model and rows to values, of which the mean is to be large.
        points : ndarray of shape (m, d) or csr_array
            Rows of the coreset.

        Returns
        -------
        callable
            From a model to an estimate of the mean over all the data.

        Examples
        --------
        >>> ones = np.ones(2)
        >>> held_out = HeldOut(np.zeros((2, 1)), ones, 4 * ones, ones, total=10.0)
        >>> judge = held_out.judge(lambda model, points: model + points[:, 0], ones[:, None])
        >>> judge(5.0)
        5.2
        """

        def judged(model: Any) -> float:
            return self.mean(score(model, points), score(model, self.points))[0]

        return judged


def hold_out(
    candidates: Candidates, drawn: Drawn, total: float, count: int, rng: np.random.Generator
) -> HeldOut | None:
    """Keep candidates that were not drawn.

    Parameters
    ----------
    candidates : Candidates
    drawn : Drawn
    total : float
        Weight of all the data.
    count : int
        Rows to be kept at most, in equal parts of all there are.
    rng : numpy.random.Generator

    Returns
    -------
    HeldOut or None
        None where all candidates were drawn.
    """
    rows, chosen = candidates.rows, drawn.chosen
    if len(chosen) == len(rows):
        return None
    factors = rows_outside(chosen, candidates.first, drawn.second)
    positions = np.flatnonzero((factors > 0.0) & (rows.weights > 0.0))
    if not len(positions):
        return None
    share = min(1.0, count / len(positions))
    if share < 1.0:
        positions = positions[systematic(np.full(len(positions), share), rng)]
    kept = rows.take(positions)
    own = rows.weights[chosen]
    return HeldOut(kept.points, kept.weights, factors[positions] / share, own, total)
