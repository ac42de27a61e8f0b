r"""One read of all rows: exact costs of some solutions, and a sample whose error is bounded.

**Why another sample.** A systematic sample takes most pairs of neighbours never, so that no
estimate of its variance from the sample itself is unbiased. The read that adds the costs up
therefore draws *Poisson*: every row enters on its own, with probability
:math:`\pi = \min(1, \tau s)`. Three quarters of the score s are that of
`daskcoreset.objectives.cells`, made of the coreset's rows, in proportion to which no row, seen
or not, can hold more than a known part of a cost; the last quarter is the row's share in the
costs of the audited solutions, so that rows that some solution is paying for are there.
`daskcoreset.metrics.intervals` says what follows.

**In one read.** A row keeps the coin that it was drawn by. The final :math:`\tau` is the
rows wanted over the sum of all scores, which is known at the end only; until then every part
uses a larger one of its own, and where parts merge, rows whose coin is no longer below
:math:`\tau s` leave (permanent random numbers, Ohlsson 1995). What is left is distributed as
if :math:`\tau` had been known from the start.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.blocks import Block, Problem, concatenate
from daskcoreset.core.errors import (quiet)
from daskcoreset.core.classes import plain_labels
from daskcoreset.core.errors import InvalidInputError, out_of_range
from daskcoreset.execution.gathering import gather
from daskcoreset.core.random import Stage, stream

if TYPE_CHECKING:
    from daskcoreset.inputs.blocks import RowBlocks
    from daskcoreset.objectives import Objective
    from daskcoreset.objectives.cells import Cells
    from daskcoreset.core.typing import FloatArray

__all__ = ["BASE", "Reading", "SurveyBlock", "read_survey"]

BASE = 0.75
"""Share of the score that bounds what rows can hold."""


@dataclass(frozen=True, eq=False)
class Reading:
    """What some blocks gave.

    Attributes
    ----------
    costs : ndarray of shape (n_solutions,), float64
        Exact.
    weight, score : float
        Sums of u and of u s over the rows.
    threshold : float
        tau.
    rows : Block
        The sample; its weights are the input weights u.
    scores, coins : ndarray of shape (r,), float64
        u s and the random number of every sampled row.
    n_rows : int
        Rows that were counted: all but invalid ones that were dropped.
    n_weighed : int
        Those of a positive weight.
    sums : ndarray of shape (4, k), float64
        Sums of `Placed.z` by cell, over all rows.
    """

    costs: FloatArray
    weight: float
    score: float
    threshold: float
    rows: Block | None
    scores: FloatArray
    coins: FloatArray
    n_rows: int
    n_weighed: int
    sums: FloatArray

    @property
    def inclusion(self) -> FloatArray:
        """Inclusion probabilities of the sampled rows."""
        return np.minimum(1.0, self.threshold * self.scores)

    def thinned(self, threshold: float) -> Reading:
        """Return the sample as a lower threshold would have drawn it."""
        if self.rows is None or threshold >= self.threshold:
            return self
        left = np.flatnonzero(self.coins < threshold * self.scores)
        return replace(
            self,
            threshold=threshold,
            rows=self.rows.take(left),
            scores=self.scores[left],
            coins=self.coins[left],
        )

    def check(self) -> None:
        """Raise an error where there is nothing to compare with."""
        if not self.weight > 0:
            raise InvalidInputError(
                "X has no row with a positive weight; pass the data that the coreset is of."
            )
        if not np.isfinite([*self.costs, self.score]).all():
            raise out_of_range()


@dataclass(frozen=True, eq=False)
class SurveyBlock:
    """Leaf of the read.

    Attributes
    ----------
    objective : Objective
    solutions : tuple
        Of the objective's kind.
    cells : Cells
        By which rows are scored.
    shares : ndarray of shape (n_solutions,), float64
        What a unit of the cost of every solution adds to the score of a row.
    size : int
        Rows wanted in the sample, on average.
    seed : int
    """

    objective: Objective[Any]
    solutions: tuple[Any, ...]
    cells: Cells
    shares: FloatArray
    size: int
    seed: int

    def __call__(self, block: Block, number: int, given: object) -> Reading | Problem:
        """Add up costs and draw from one block."""
        del given
        problem = self.objective.problem(block) or self._other_labels(block)
        if problem is not None:
            return problem
        nothing, sums = np.zeros(0), np.zeros((4, len(self.cells)))
        costs = np.zeros(len(self.solutions))
        if not len(block):
            return Reading(costs, 0.0, 0.0, np.inf, None, nothing, nothing, 0, 0, sums)
        u = block.weights
        with quiet():
            placed = self.cells.place(block)
            sums = self.cells.sums(block, placed)
            scores = np.multiply(BASE, self.cells.score(placed))
            for i, solution in enumerate(self.solutions):
                losses = self.objective.losses(block, solution)
                costs[i] = (u * losses).sum()
                scores += self.shares[i] * losses
            # Zero by zero where a distance overflows, on a row that does not count.
            scores = np.where(u > 0.0, u * scores, 0.0)
            total = float(scores.sum())
            # Half of what is expected: should there be less, the sample is smaller, not wrong.
            threshold = self.size / max(total, 0.5)
            coins = stream(self.seed, Stage.AUDIT, number).random(len(block))
            drawn = np.flatnonzero(coins < threshold * scores)
        return Reading(
            costs,
            float(u.sum()),
            total,
            threshold,
            block.take(drawn),
            scores[drawn],
            coins[drawn],
            len(block),
            int(np.count_nonzero(u)),
            sums,
        )

    def _other_labels(self, block: Block) -> Problem | None:
        """Return what is wrong with labels of another kind than those of the coreset, or None."""
        if self.cells.labels is None or block.labels is None or not len(block):
            return None
        own, labels = self.cells.labels, plain_labels(block)
        if (own.dtype.kind == "U") == (labels.dtype.kind == "U"):
            return None
        return Problem(
            f"y is {labels[0].item()!r}" + "{row}, and the labels of the coreset are "
            f"{own[:3].tolist()}: text for text, and numbers for numbers; pass the labels that it "
            f"was built with.",
            0 if block.rows is None else int(block.rows[0]),
        )


@dataclass(frozen=True)
class _Merge:
    """Merges neighbouring readings, in the order of the blocks."""

    size: int

    def __call__(self, first: Reading, second: Reading) -> Reading:
        score = first.score + second.score
        whole = self.size / score if score > 0 else np.inf
        threshold = min(whole, first.threshold, second.threshold)
        with quiet():
            parts = first.thinned(threshold), second.thinned(threshold)
        rows = [part.rows for part in parts if part.rows is not None]
        return Reading(
            costs=np.sum([part.costs for part in parts], axis=0),
            weight=float(sum(part.weight for part in parts)),
            score=score,
            threshold=threshold,
            rows=concatenate(rows) if rows else None,
            scores=np.concatenate([part.scores for part in parts]),
            coins=np.concatenate([part.coins for part in parts]),
            n_rows=sum(part.n_rows for part in parts),
            n_weighed=sum(part.n_weighed for part in parts),
            sums=np.sum([part.sums for part in parts], axis=0),
        )


def read_survey(blocks: RowBlocks, leaf: SurveyBlock, *, progress: bool | None = None) -> Reading:
    """Read all rows once.

    Parameters
    ----------
    blocks : RowBlocks
    leaf : SurveyBlock
    progress : bool or None, default=None
        As in `daskcoreset.build`.

    Returns
    -------
    Reading

    Raises
    ------
    InvalidInputError
        For the first row that no cost can be given to.
    """
    reading = gather(blocks, leaf, _Merge(leaf.size), progress=progress).value
    reading.check()
    return reading
