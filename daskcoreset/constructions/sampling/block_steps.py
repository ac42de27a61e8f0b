r"""The work on a block: summarise, propose candidates, draw as the final draw requests.

**Two reads** (Bachem, Lucic and Krause 2018, section 4.2): blocks send summaries, the root
knows the global summary and every block's mass, blocks draw what the root asks for.

**One read**: a block's summary is all it knows, so it draws *candidates* by its own scores.
The root, which alone knows the global summary, turns them into the final draw.

- *Re-weighting.* Candidates enter with inclusion probability :math:`\pi_1`, known to the
  root. It draws `size` of them systematically with :math:`\pi_2 \propto s(x) / \pi_1`, s the
  global score. The weight :math:`u / (\pi_1 \pi_2)` is unbiased for every query.

A block whose candidates are too few for its share of the scores is read again, alone. That
is decided by the summaries, not by what was drawn, so nothing is biased by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daskcoreset.constructions.sampling.messages import BlockReport, DrawRequest, SentRows
from daskcoreset.core.block import Block, ReadBlock
from daskcoreset.core.invalid import InvalidRow
from daskcoreset.core.labels import class_order
from daskcoreset.core.messages import ignore_overflow, scores_error
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.sampling import (
    draw_with_replacement,
    inclusion_probabilities,
    raise_classes,
    systematic,
)
from daskcoreset.core.typing import FloatArray, IndexArray, Sampling
from daskcoreset.sensitivities import Sensitivity
from daskcoreset.sensitivities.base import Scored, find_invalid_row, summary_of
from daskcoreset.sensitivities.draw import CLASS_SHARE

# Candidates of every class in every block at least, where there are so many rows of it.
MIN_OF_CLASS = 5


def _block_of(construction: Sensitivity[Any], rows: ReadBlock) -> Block | InvalidRow:
    """Return the block that was read, or its first row that the construction cannot take."""
    return find_invalid_row(construction, rows.valid_block) or rows.valid_block


def _weights(rows: ReadBlock) -> dict[int, float]:
    return {rows.index: float(rows.valid_block.weights.sum())}


def _classes(construction: Sensitivity[Any], block: Block) -> dict[Any, int]:
    """Return the rows of positive weight of every class."""
    if construction.labels != "classes":
        return {}
    labels, counts = block.coded[1].tolist(), block.class_totals[0].tolist()
    return {label: count for label, count in zip(labels, counts, strict=True) if count}


@dataclass(frozen=True)
class SummariseBlock:
    """The work on a block in one of several folds: its summary, and candidates if they are wanted.

    With one fold the scores are the block's own. With several they are those of the finalized
    summary of the fold before, so that blocks give candidates in proportion to their scores.

    Attributes
    ----------
    construction : Sensitivity
    seed : int
    fold : int
    n_candidates : float, default=0
        Candidates that all blocks propose, in the last fold of a build with one pass. 0 for none.
    n_rows : int or None, default=None
        Rows in all, where known: a block gives candidates in proportion to its rows.
    n_blocks : int, default=1
        If it is unknown, every block gives the same number.
    """

    construction: Sensitivity[Any]
    seed: int
    fold: int
    n_candidates: float = 0.0
    n_rows: int | None = None
    n_blocks: int = 1

    @ignore_overflow()
    def __call__(self, rows: ReadBlock, previous: Any) -> BlockReport | InvalidRow:
        """Summarise one block. `previous` is the finalized summary of the fold before."""
        construction, index = self.construction, rows.index
        block = _block_of(construction, rows)
        if isinstance(block, InvalidRow):
            return block
        rng = stream(self.seed, Stage.SUMMARIES, index, self.fold)
        local = construction.block_summary(block, previous, rng)
        summary = summary_of(local)
        summaries: dict[int, Any] = {}
        total_scores: dict[int, float] = {}
        if self.fold == construction.n_folds - 1:  # what the final draw needs of every block
            if isinstance(local, Scored) and local.total is not None:
                total_scores[index] = construction.total_scores(summary, previous)
            else:
                summaries[index] = summary
        sent = {index: self._proposed(block, rows, local)} if self.n_candidates else {}
        classes = _classes(construction, block)
        return BlockReport(_weights(rows), summary, summaries, total_scores, sent, classes)

    def _proposed(self, block: Block, rows: ReadBlock, local: Any) -> SentRows:
        construction = self.construction
        if not isinstance(local, Scored):
            local = Scored(local, construction.scores(block, local))
        rng = stream(self.seed, Stage.CANDIDATES, rows.index)
        if local.total is None:
            # By rows, since a block cannot know its share of the scores; the root, which can,
            # has a block read again that gave too few.
            share = 1 / self.n_blocks if self.n_rows is None else rows.read / self.n_rows
            # A whole number, so that chance does not decide how many: that would add variance.
            target = np.ceil(self.n_candidates * share)
            return _candidates(construction, block, local.scores, target, rng)
        # The estimated scores are of all the data, so that a block gives what is due to it, and is
        # read again in no case.
        inclusion = np.minimum(local.scores * (self.n_candidates / local.total), 1.0)
        chosen = draw_candidates(construction, block, local.scores, inclusion, rng)
        return SentRows(block.take(chosen), inclusion[chosen])


def sum_scores(construction: Sensitivity[Any], rows: ReadBlock, summary: Any) -> BlockReport:
    """Add up the scores of one block, where summaries only estimate the sum."""
    with ignore_overflow():
        scores = construction.scores(rows.valid_block, summary)
    return BlockReport(_weights(rows), total_scores={rows.index: float(scores.sum())})


def draw_candidates(
    construction: Sensitivity[Any],
    rows: Block,
    scores: FloatArray,
    inclusion: FloatArray,
    rng: np.random.Generator,
) -> IndexArray:
    """Draw rows as candidates. If classes must keep rows, from every class.

    Parameters
    ----------
    construction : Sensitivity
    rows : Block
    scores : ndarray of shape (n,), float64
    inclusion : ndarray of shape (n,), float64
        Inclusion probabilities. Those of a class whose sum is below `MIN_OF_CLASS`, and
        below an even share of a part of the whole sum, are raised in place: a class of five
        rows is kept whole.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (m,), int64
        Increasing.
    """
    if construction.labels != "classes" or not len(rows):
        return systematic(inclusion, rng)
    _, classes, codes = rows.coded
    if not np.isfinite(inclusion.sum()):
        raise scores_error()
    even = int(inclusion.sum()) // (CLASS_SHARE * len(classes))
    raise_classes(inclusion, scores, codes, np.full(len(classes), max(MIN_OF_CLASS, even)))
    # Class by class: whole units of inclusion lie in each, so that none of them is missed.
    order = class_order(codes)
    return np.sort(order[systematic(inclusion[order], rng)])


def _candidates(
    construction: Sensitivity[Any],
    block: Block,
    scores: FloatArray,
    target: float,
    rng: np.random.Generator,
) -> SentRows:
    inclusion = inclusion_probabilities(scores, target)
    if len(block) and inclusion.min() == 1.0:  # all rows, of which no copy is needed
        return SentRows(block.numbered(), inclusion)
    chosen = draw_candidates(construction, block, scores, inclusion, rng)
    if not ((inclusion > 0.0) & (inclusion < 1.0)).any():
        target = np.inf  # all rows with a score are here: reading the block again would add none
    return SentRows(block.take(chosen), inclusion[chosen], target)


def take_block(
    construction: Sensitivity[Any], rows: ReadBlock, broadcast: object = None
) -> BlockReport | InvalidRow:
    """Send all rows of one block, where all are known to be needed before reading."""
    del broadcast
    block = _block_of(construction, rows)
    if isinstance(block, InvalidRow):
        return block
    sent = SentRows(block.numbered(), np.ones(len(block)))
    return BlockReport(_weights(rows), sent={rows.index: sent})


@dataclass(frozen=True)
class DrawRequested:
    """The work on a block in a read that answers a `DrawRequest`."""

    construction: Sensitivity[Any]
    sampling: Sampling
    seed: int
    stage: Stage = Stage.DRAWS

    def __call__(self, rows: ReadBlock, request: DrawRequest) -> BlockReport | InvalidRow:
        """Draw the rows that `request` is for."""
        if request.targets is None:
            return take_block(self.construction, rows)
        block, index = rows.valid_block, rows.index
        target = request.targets[index]
        rng = stream(self.seed, self.stage, index)
        with ignore_overflow():
            scores = self.construction.scores(block, request.summary)
            if self.sampling == "systematic":
                sent = _candidates(self.construction, block, scores, target, rng)
            else:  # as many rows as the quota of the block is (section 4.2, round two)
                chosen = draw_with_replacement(scores, int(target), rng)
                sent = SentRows(block.take(chosen), scores[chosen])
        return BlockReport(_weights(rows), sent={index: sent})
