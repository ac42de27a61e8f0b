r"""From scores to a coreset in one or two reads: leaves for the blocks, and their root.

**Two reads** (Bachem, Lucic and Krause 2018, section 4.2): blocks send summaries, the root
knows the global summary and every block's mass, blocks draw what the root asks for.

**One read**: a block's summary is all it knows, so it draws *candidates* by its own scores;
the root, which alone knows the global summary, turns them into the final draw.

- *Re-weighting.* Candidates enter with inclusion probability :math:`\pi_1`, known to the
  root. It draws `size` of them systematically with :math:`\pi_2 \propto s(x) / \pi_1`, s the
  global score; the weight :math:`u / (\pi_1 \pi_2)` is unbiased for every query.
- *Rejection.* Candidates are independent draws from the block's own :math:`p_i`. Each is
  kept with probability :math:`q / (c\, Q_i\, p_i)`; what is kept is distributed exactly as
  q within the block.

A block whose candidates are too few for its share of the scores is read again, alone. That
is decided by the summaries, not by what was drawn, so nothing is biased by it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.constructions.sampling.messages import BlockReport, Candidates, DrawRequest
from daskcoreset.core.blocks import ReadBlock, class_codes
from daskcoreset.core.errors import ignore_overflow
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.sampling import (
    draw_with_replacement,
    inclusion_probabilities,
    raise_classes,
    systematic,
)
from daskcoreset.core.typing import FloatArray, IndexArray, Sampling

if TYPE_CHECKING:
    from daskcoreset.core.blocks import Block
    from daskcoreset.sensitivities import Sensitivity

__all__ = [
    "CLASS_SHARE",
    "DrawRequested",
    "ProposeCandidates",
    "SumScores",
    "SummariseBlock",
    "draw_candidates",
]

FEWEST_OF_CLASS = 5
"""Candidates of every class in every block at least, where there are so many rows of it."""

CLASS_SHARE = 8
"""An eighth of the rows is spread over the classes evenly; what is over goes by score. A class of
few rows, which may have most of the cost, is then not left to two or three of them."""

_MOST_PROPOSALS = 4
"""Proposals for each row of a block at most: a `size` above the number of rows, where that is
unknown, asks for more than memory holds, only to learn that every row is wanted."""


def _census(
    rows: ReadBlock,
    number: int,
    local: Any = None,
    drawn: Candidates | None = None,
    *,
    keeps: bool = True,
) -> BlockReport:
    block = rows.block
    return BlockReport(
        read={number: rows.read},
        kept={number: 0 if block is None else len(block)},
        weights={number: 0.0 if block is None else float(block.weights.sum())},
        problem=None if rows.problem is None else (number, rows.problem),
        summary=local,
        locals={number: local} if keeps and local is not None else {},
        drawn=() if drawn is None else (drawn,),
    )


def _fit(construction: Sensitivity[Any], rows: ReadBlock) -> ReadBlock:
    """Put what the construction finds wrong with a block in its place."""
    problem = None if rows.block is None else construction.problem(rows.block)
    return rows if problem is None else ReadBlock(rows.read, None, problem)


@dataclass(frozen=True)
class SummariseBlock:
    """Leaf of a fold that only summarises."""

    construction: Sensitivity[Any]
    seed: int
    fold: int = 0

    def __call__(self, rows: ReadBlock, number: int, previous: Any) -> BlockReport:
        """Summarise one block."""
        rows = _fit(self.construction, rows)
        if rows.block is None:
            return _census(rows, number)
        with ignore_overflow():
            rng = stream(self.seed, Stage.SUMMARIES, number, self.fold)
            local = self.construction.block_summary(rows.block, previous, rng)
            if self.fold == self.construction.n_folds - 1:
                return _last_census(self.construction, rows, number, local, previous)
        return _census(rows, number, local, keeps=False)


def _last_census(  # noqa: PLR0917 - all of them are always given
    construction: Sensitivity[Any],
    rows: ReadBlock,
    number: int,
    local: Any,
    previous: Any,
    drawn: Candidates | None = None,
) -> BlockReport:
    """Census of the last fold: with summaries, or with estimated sums of scores instead."""
    if not construction.scores_from_pilot:
        return _census(rows, number, local, drawn)
    masses = {number: construction.masses(local, previous)}
    return replace(_census(rows, number, local, drawn, keeps=False), masses=masses)


@dataclass(frozen=True)
class SumScores:
    """Leaf of a read that adds scores up, for constructions that only estimate the sums."""

    construction: Sensitivity[Any]

    def __call__(self, rows: ReadBlock, number: int, summary: Any) -> BlockReport:
        """Add up the scores of the block by component."""
        if rows.block is None:
            return _census(rows, number)
        with ignore_overflow():
            scores = self.construction.scores(rows.block, summary)
        return replace(_census(rows, number), masses={number: scores.sum(axis=1)})


@dataclass(frozen=True)
class ProposeCandidates:
    """Leaf of the last fold: the block's summary, and candidates by scores made without it all.

    With one fold the scores are the block's own. With several they are those of the settled
    summary of the fold before, so that blocks give candidates in proportion to their scores.

    Attributes
    ----------
    candidates : float
        Candidates wanted in all.
    n_rows : int or None
        Rows in all, where known: a block gives candidates in proportion to its rows.
    n_blocks : int
        Where they are unknown, every block gives as many as any other.
    """

    construction: Sensitivity[Any]
    sampling: Sampling
    seed: int
    candidates: float
    n_rows: int | None
    n_blocks: int

    def __call__(self, rows: ReadBlock, number: int, given: Any) -> BlockReport:
        """Summarise one block and draw its candidates."""
        rows = _fit(self.construction, rows)
        block = rows.block
        if block is None:
            return _census(rows, number)
        if self.construction.n_folds > 1:
            return self._by_estimates(rows, block, number, given)
        share = 1 / self.n_blocks if self.n_rows is None else rows.read / self.n_rows
        # A whole number, so that chance does not decide how many: that would add variance.
        target = np.ceil(self.candidates * share)
        rng = stream(self.seed, Stage.CANDIDATES, number)
        with ignore_overflow():
            summaries = stream(self.seed, Stage.SUMMARIES, number)
            local, scores = self.construction.proposal(block, summaries)
            if self.sampling == "systematic":
                drawn = _candidates(self.construction, local, block, number, scores, target, rng)
            else:
                if self.n_rows is None:
                    target = min(target, _MOST_PROPOSALS * rows.read)
                drawn = _proposals(block, number, scores, int(np.ceil(target)), rng)
        return _census(rows, number, local, drawn)

    def _by_estimates(
        self, rows: ReadBlock, block: Block, number: int, previous: Any
    ) -> BlockReport:
        """Draw candidates by what the fold before made known of all the data."""
        construction, fold = self.construction, self.construction.n_folds - 1
        with ignore_overflow():
            local = construction.block_summary(
                block, previous, stream(self.seed, Stage.SUMMARIES, number, fold)
            )
            scores = construction.scores(block, previous).sum(axis=0)
            share = self.candidates / construction.pilot_total(previous)
            inclusion = np.minimum(scores * share, 1.0)
            rng = stream(self.seed, Stage.CANDIDATES, number)
            chosen = draw_candidates(construction, previous, block, scores, inclusion, rng)
            drawn = Candidates(number, block.take(chosen), inclusion[chosen])
            return _last_census(construction, rows, number, local, previous, drawn)


def draw_candidates(  # noqa: PLR0917 - all of them are always given
    construction: Sensitivity[Any],
    summary: Any,
    rows: Block,
    scores: FloatArray,
    inclusion: FloatArray,
    rng: np.random.Generator,
) -> IndexArray:
    """Draw rows as candidates; where classes must keep rows, from every class.

    Parameters
    ----------
    construction : Sensitivity
    summary : object
        That the scores were made with.
    rows : Block
    scores : ndarray of shape (n,), float64
    inclusion : ndarray of shape (n,), float64
        Inclusion probabilities. Those of a class whose sum is below `FEWEST_OF_CLASS`, and
        below an even share of a part of the whole sum, are raised in place: a class of five
        rows is kept whole.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (m,), int64
        Increasing.
    """
    labels = construction.classes(summary)
    if labels is None or not len(labels):  # no row has a weight
        return systematic(inclusion, rng)
    codes = class_codes(rows, labels)
    even = int(inclusion.sum()) // (CLASS_SHARE * len(labels))
    raise_classes(inclusion, scores, codes, np.full(len(labels), max(FEWEST_OF_CLASS, even)))
    # Class by class: whole units of inclusion lie in each, so that none of them is missed.
    order = np.argsort(codes.astype(np.min_scalar_type(len(labels))), kind="stable")
    return np.sort(order[systematic(inclusion[order], rng)])


def _candidates(  # noqa: PLR0917 - all of them are always given
    construction: Sensitivity[Any],
    summary: Any,
    block: Block,
    number: int,
    scores: FloatArray,
    target: float,
    rng: np.random.Generator,
) -> Candidates:
    inclusion = inclusion_probabilities(scores, target)
    chosen = draw_candidates(construction, summary, block, scores, inclusion, rng)
    if not ((inclusion > 0.0) & (inclusion < 1.0)).any():
        target = np.inf
    return Candidates(number, block.take(chosen), inclusion[chosen], target=target)


def _proposals(
    block: Block, number: int, scores: FloatArray, count: int, rng: np.random.Generator
) -> Candidates:
    total = scores.sum()
    chosen = draw_with_replacement(scores, count if total > 0 else 0, rng)
    probability = scores[chosen] / total
    coins = rng.random(len(chosen))
    return Candidates(number, block.take(chosen), probability, coins, target=count)


@dataclass(frozen=True)
class DrawRequested:
    """Leaf of a read in which blocks give what a plan asks for."""

    construction: Sensitivity[Any]
    sampling: Sampling
    seed: int
    stage: Stage = Stage.DRAWS

    def __call__(self, rows: ReadBlock, number: int, plan: DrawRequest | None) -> BlockReport:
        """Draw what `plan` asks of the block; all rows without one."""
        if plan is None:  # the only read
            rows = _fit(self.construction, rows)
        block = rows.block
        if block is None:
            return _census(rows, number)
        if plan is None or plan.wanted is None:
            drawn = Candidates(number, block.all_rows(), np.ones(len(block)))
            return _census(rows, number, drawn=drawn)
        wanted = plan.wanted[number]
        rng = stream(self.seed, self.stage, number)
        with ignore_overflow():
            scores = self.construction.scores(block, plan.summary)
            if self.sampling == "systematic":
                one = scores.sum(axis=0)
                construction, summary = self.construction, plan.summary
                drawn = _candidates(construction, summary, block, number, one, wanted, rng)
            else:
                drawn = _draws(block, number, scores, wanted, rng)
        return _census(rows, number, drawn=drawn)


def _draws(
    block: Block, number: int, scores: FloatArray, quota: IndexArray, rng: np.random.Generator
) -> Candidates:
    """Draw u_i rows uniformly, v_i by distance (section 4.2, round two)."""
    chosen = np.concatenate(
        [
            draw_with_replacement(component, int(count), rng)
            for component, count in zip(scores, quota, strict=True)
        ]
    )
    probability = scores.sum(axis=0)[chosen]
    return Candidates(number, block.take(chosen), probability)
