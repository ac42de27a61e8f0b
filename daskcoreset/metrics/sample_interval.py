r"""Intervals for costs over all rows, from a uniform sample and the ranges of the columns.

The sample of a `Portfolio` is drawn by pivots in two stages, so that draws of different rows are
negatively associated (Brändén and Jonasson 2012). The bounds of independent draws hold for such
draws, too, where every row adds something of one sign, as losses are: with X what a sampled row
stands for, and :math:`0 < \theta < 1 / B`, B the most that any row can stand for,

.. math:: E \prod (1 - \theta X) \le \prod (1 - \theta E X) \le \exp(-\theta \sum E X).

B is known, since no row lies outside the ranges of the columns, which the same read has seen. No
row is assumed to be like those in the sample. The price is width, where the ranges are wide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskcoreset.core.blocks import Block
from daskcoreset.core.data_summary import DataSummary
from daskcoreset.core.typing import FloatArray
from daskcoreset.metrics.poisson_sample import Interval, upper_bound
from daskcoreset.objectives import Objective
from daskcoreset.objectives.cells import Cells


@dataclass(frozen=True, eq=False)
class SampleIntervals:
    """A uniform sample of all rows, and where all rows lie.

    Attributes
    ----------
    rows : Block
        With weights that stand for all rows.
    coreset_rows : Block
        Rows of a coreset, drawn independently: the shape of the bound is chosen by them.
    summary : DataSummary
    n_rows : int
        Of the data.
    """

    rows: Block
    coreset_rows: Block
    summary: DataSummary
    n_rows: int

    def interval(self, objective: Objective[Any], solution: Any, confidence: float) -> Interval:
        """Return the interval for the cost of a solution over all rows."""
        fixed = objective.constant(solution)
        x = self.rows.weights * objective.losses(self.rows, solution)
        estimate = float(x.sum())
        if len(self.rows) >= self.n_rows:
            return Interval(fixed + estimate, fixed + estimate, fixed + estimate)
        if (x < 0.0).any():  # of an objective of one's own
            return Interval(fixed + estimate, -math.inf, math.inf)
        level = math.log(2.0 / (1.0 - confidence))
        scale = float(self.rows.weights.max(initial=0.0))
        limit = scale * self._largest(objective, solution)
        on_coreset = np.square(objective.losses(self.coreset_rows, solution))
        squares = scale * float((self.coreset_rows.weights * on_coreset).sum())
        theta = math.sqrt(2.0 * level / max(squares, 1e-300))
        cap = math.inf if limit == 0.0 else 0.5 / limit
        high = upper_bound(x, limit, min(theta, cap), level)
        low = max(0.0, -upper_bound(-x, 0.0, theta, level))
        return Interval(fixed + estimate, fixed + low, fixed + max(high, estimate))

    def _largest(self, objective: Objective[Any], solution: Any) -> float:
        """Largest loss of any row within the ranges of the columns; infinite where unknown."""
        cells = objective.cells(self.coreset_rows, 1, np.random.default_rng(0))
        if cells.labels is None:
            cells = Cells(self.summary.mean[np.newaxis], cells.root, divergence=cells.divergence)
        z = np.ones((4, len(cells)))
        z[1] = self._farthest(cells)
        z[2] = z[1] ** 2
        z[3] = 0.0 if cells.divergence is None else math.inf
        largest = math.inf
        for bracket, known in objective.brackets(cells, solution, ()):
            if known is None and not bracket.control.any():
                with np.errstate(invalid="ignore"):
                    each = np.where(bracket.high == 0.0, 0.0, bracket.high * z).sum(axis=1)
                largest = min(largest, float(each.min(axis=0).max()))
        return largest * (1.0 + 1e-9)

    def _farthest(self, cells: Cells) -> FloatArray:
        """Bound of the distance of any row from every center."""
        low, high = self.summary.low, self.summary.high
        gaps = np.maximum(np.abs(low - cells.centers), np.abs(high - cells.centers))
        if cells.root is None or cells.root.ndim == 1:
            return np.asarray(np.linalg.norm(cells.scaled(gaps), axis=1))
        return np.asarray(gaps @ np.linalg.norm(cells.root, axis=1))
