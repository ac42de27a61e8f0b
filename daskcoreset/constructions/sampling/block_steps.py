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

from daskcoreset.constructions.sampling.messages import BlockReport, Candidates, DrawRequest
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


def summarise_block(
    construction: Sensitivity[Any], seed: int, fold: int, rows: ReadBlock, previous: Any
) -> BlockReport | InvalidRow:
    """Summarise one block in one of several folds. `previous` is the finalized summary before."""
    with ignore_overflow():
        block = _block_of(construction, rows)
        if isinstance(block, InvalidRow):
            return block
        rng = stream(seed, Stage.SUMMARIES, rows.index, fold)
        local = construction.block_summary(block, previous, rng)
        if fold == construction.n_folds - 1:
            return _last_report(construction, rows, local, previous)
    return BlockReport(_weights(rows), summary_of(local), classes=_classes(construction, block))


def _last_report(
    construction: Sensitivity[Any],
    rows: ReadBlock,
    local: Any,
    previous: Any,
    *candidates: Candidates,
) -> BlockReport:
    """Report of the last fold: with the summary, or the estimated sum of scores instead."""
    summary = summary_of(local)
    summaries: dict[int, Any] = {}
    total_scores: dict[int, float] = {}
    if isinstance(local, Scored) and local.total is not None:
        total_scores[rows.index] = construction.total_scores(summary, previous)
    else:
        summaries[rows.index] = summary
    classes = _classes(construction, rows.valid_block)
    return BlockReport(_weights(rows), summary, summaries, total_scores, candidates, classes)


def sum_scores(construction: Sensitivity[Any], rows: ReadBlock, summary: Any) -> BlockReport:
    """Add up the scores of one block, where summaries only estimate the sum."""
    with ignore_overflow():
        scores = construction.scores(rows.valid_block, summary)
    return BlockReport(_weights(rows), total_scores={rows.index: float(scores.sum())})


@dataclass(frozen=True)
class ProposeCandidates:
    """The work on a block in the last fold: its summary, and candidates for the final draw.

    With one fold the scores are the block's own. With several they are those of the finalized
    summary of the fold before, so that blocks give candidates in proportion to their scores.

    Attributes
    ----------
    n_candidates : float
        Candidates to be proposed in all.
    n_rows : int or None
        Rows in all, where known: a block gives candidates in proportion to its rows.
    n_blocks : int
        If it is unknown, every block gives the same number.
    """

    construction: Sensitivity[Any]
    seed: int
    n_candidates: float
    n_rows: int | None
    n_blocks: int

    def __call__(self, rows: ReadBlock, previous: Any) -> BlockReport | InvalidRow:
        """Summarise one block and draw its candidates."""
        construction, index = self.construction, rows.index
        block = _block_of(construction, rows)
        if isinstance(block, InvalidRow):
            return block
        with ignore_overflow():
            summaries = stream(self.seed, Stage.SUMMARIES, index, construction.n_folds - 1)
            local = construction.block_summary(block, previous, summaries)
            if not isinstance(local, Scored):
                local = Scored(local, construction.scores(block, local))
            rng = stream(self.seed, Stage.CANDIDATES, index)
            if local.total is None:
                # By rows, since a block cannot know its share of the scores; the root, which can,
                # has a block read again that gave too few.
                share = 1 / self.n_blocks if self.n_rows is None else rows.read / self.n_rows
                # A whole number, so that chance does not decide how many: that would add variance.
                target = np.ceil(self.n_candidates * share)
                found = _candidates(construction, block, index, local.scores, target, rng)
            else:
                # The estimated scores are of all the data, so that a block gives what is due to
                # it, and is read again in no case.
                inclusion = np.minimum(local.scores * (self.n_candidates / local.total), 1.0)
                chosen = draw_candidates(construction, block, local.scores, inclusion, rng)
                found = Candidates(index, block.take(chosen), inclusion[chosen])
            return _last_report(construction, rows, local, previous, found)


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


def _candidates(  # noqa: PLR0917 - all of them are always given
    construction: Sensitivity[Any],
    block: Block,
    block_index: int,
    scores: FloatArray,
    target: float,
    rng: np.random.Generator,
) -> Candidates:
    inclusion = inclusion_probabilities(scores, target)
    if len(block) and inclusion.min() == 1.0:  # all rows, of which no copy is needed
        return Candidates(block_index, block.numbered(), inclusion, target=np.inf)
    chosen = draw_candidates(construction, block, scores, inclusion, rng)
    # One look clears the usual case, in which no row is certain.
    is_partial = 0.0 < inclusion.max(initial=0.0) < 1.0
    if not is_partial and not ((inclusion > 0.0) & (inclusion < 1.0)).any():
        target = np.inf  # all rows with a score are here: reading the block again would add none
    return Candidates(block_index, block.take(chosen), inclusion[chosen], target=target)


def take_block(
    construction: Sensitivity[Any], rows: ReadBlock, broadcast: object = None
) -> BlockReport | InvalidRow:
    """Send all rows of one block, where all are known to be needed before reading."""
    del broadcast
    block = _block_of(construction, rows)
    if isinstance(block, InvalidRow):
        return block
    candidates = Candidates(rows.index, block.numbered(), np.ones(len(block)))
    return BlockReport(_weights(rows), candidates=(candidates,))


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
                candidates = _candidates(self.construction, block, index, scores, target, rng)
            else:
                candidates = _independent_draws(block, index, scores, target, rng)
        return BlockReport(_weights(rows), candidates=(candidates,))


def _independent_draws(
    block: Block, block_index: int, scores: FloatArray, quota: int, rng: np.random.Generator
) -> Candidates:
    """Draw as many rows as the quota of the block is (section 4.2, round two)."""
    chosen = draw_with_replacement(scores, int(quota), rng)
    return Candidates(block_index, block.take(chosen), scores[chosen])
