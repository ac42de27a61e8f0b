r"""The work on a block: summarise, propose candidates, draw as the final draw requests.

**Two reads** (Bachem, Lucic and Krause 2018, section 4.2): blocks send summaries, the root
knows the global summary and every block's mass, blocks draw what the root asks for.

**One read**: a block's summary is all it knows, so it draws *candidates* by its own scores.
The root, which alone knows the global summary, turns them into the final draw.

- *Re-weighting.* Candidates enter with inclusion probability :math:`\pi_1`, known to the
  root. It draws `size` of them systematically with :math:`\pi_2 \propto s(x) / \pi_1`, s the
  global score. The weight :math:`u / (\pi_1 \pi_2)` is unbiased for every query.
- *Rejection.* Candidates are independent draws from the block's own :math:`p_i`. Each is
  kept with probability :math:`q / (c\, Q_i\, p_i)`; what is kept is distributed exactly as
  q within the block.

A block whose candidates are too few for its share of the scores is read again, alone. That
is decided by the summaries, not by what was drawn, so nothing is biased by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daskcoreset.constructions.sampling.messages import BlockReport, Candidates, DrawRequest
from daskcoreset.core.block import Block, ReadBlock, class_codes
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

# Candidates of every class in every block at least, where there are so many rows of it.
MIN_OF_CLASS = 5

# An eighth of the rows is spread over the classes evenly; the other rows go by score. A class of
# few rows, which may have most of the cost, is then not left to two or three of them.
CLASS_SHARE = 8


def _block_of(construction: Sensitivity[Any], rows: ReadBlock) -> Block | InvalidRow:
    """Return the block that was read, or its first row that the construction cannot take."""
    return construction.find_invalid_row(rows.valid_block) or rows.valid_block


def _weights(rows: ReadBlock) -> dict[int, float]:
    return {rows.index: float(rows.valid_block.weights.sum())}


def summarise_block(
    construction: Sensitivity[Any], seed: int, fold: int, rows: ReadBlock, previous: Any
) -> BlockReport | InvalidRow:
    """Summarise one block in one of several folds. `previous` is the finalized summary before."""
    block = _block_of(construction, rows)
    if isinstance(block, InvalidRow):
        return block
    with ignore_overflow():
        rng = stream(seed, Stage.SUMMARIES, rows.index, fold)
        local = construction.block_summary(block, previous, rng)
        if fold == construction.n_folds - 1:
            return _last_report(construction, rows, local, previous)
    return BlockReport(_weights(rows), local)


def _last_report(
    construction: Sensitivity[Any],
    rows: ReadBlock,
    local: Any,
    previous: Any,
    *candidates: Candidates,
) -> BlockReport:
    """Report of the last fold: with the summary, or the estimated sum of scores instead."""
    if construction.design.scores_from_pilot:
        total_scores = {rows.index: construction.total_scores(local, previous)}
        return BlockReport(_weights(rows), local, {}, total_scores, candidates)
    return BlockReport(_weights(rows), local, {rows.index: local}, {}, candidates)


def sum_scores(construction: Sensitivity[Any], rows: ReadBlock, summary: Any) -> BlockReport:
    """Add up the scores of one block by component, where summaries only estimate the sums."""
    with ignore_overflow():
        scores = construction.scores(rows.valid_block, summary)
    return BlockReport(_weights(rows), total_scores={rows.index: scores.sum(axis=1)})


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

    def __call__(self, rows: ReadBlock, broadcast: Any) -> BlockReport | InvalidRow:
        """Summarise one block and draw its candidates."""
        block = _block_of(self.construction, rows)
        if isinstance(block, InvalidRow):
            return block
        if self.construction.n_folds > 1:
            return self._by_estimates(rows, block, broadcast)
        index = rows.index
        # By rows, since a block cannot know its share of the scores; the root, which can, has a
        # block read again that gave too few.
        share = 1 / self.n_blocks if self.n_rows is None else rows.read / self.n_rows
        # A whole number, so that chance does not decide how many: that would add variance.
        target = np.ceil(self.n_candidates * share)
        rng = stream(self.seed, Stage.CANDIDATES, index)
        with ignore_overflow():
            summaries = stream(self.seed, Stage.SUMMARIES, index)
            local, scores = self.construction.proposal(block, None, summaries)
            candidates = _candidates(self.construction, local, block, index, scores, target, rng)
        return _last_report(self.construction, rows, local, None, candidates)

    def _by_estimates(self, rows: ReadBlock, block: Block, previous: Any) -> BlockReport:
        """Draw candidates by the finalized summary of the fold before."""
        construction, fold = self.construction, self.construction.n_folds - 1
        with ignore_overflow():
            summaries = stream(self.seed, Stage.SUMMARIES, rows.index, fold)
            local, scores = construction.proposal(block, previous, summaries)
            # The estimated scores are of all the data, so that a block gives what is due to it,
            # and is read again in no case.
            share = self.n_candidates / construction.design.pilot_total(previous)
            inclusion = np.minimum(scores * share, 1.0)
            rng = stream(self.seed, Stage.CANDIDATES, rows.index)
            chosen = draw_candidates(construction, previous, block, scores, inclusion, rng)
            candidates = Candidates(rows.index, block.take(chosen), inclusion[chosen])
            return _last_report(construction, rows, local, previous, candidates)


def draw_candidates(  # noqa: PLR0917 - all of them are always given
    construction: Sensitivity[Any],
    summary: Any,
    rows: Block,
    scores: FloatArray,
    inclusion: FloatArray,
    rng: np.random.Generator,
) -> IndexArray:
    """Draw rows as candidates. If classes must keep rows, from every class.

    Parameters
    ----------
    construction : Sensitivity
    summary : object
        That the scores were made with.
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
    labels = construction.design.classes(summary)
    if labels is None or not len(labels):  # no row has a weight
        return systematic(inclusion, rng)
    codes = class_codes(rows, labels)
    if not np.isfinite(inclusion.sum()):
        raise scores_error()
    even = int(inclusion.sum()) // (CLASS_SHARE * len(labels))
    raise_classes(inclusion, scores, codes, np.full(len(labels), max(MIN_OF_CLASS, even)))
    # Class by class: whole units of inclusion lie in each, so that none of them is missed.
    order = class_order(codes)
    return np.sort(order[systematic(inclusion[order], rng)])


def _candidates(  # noqa: PLR0917 - all of them are always given
    construction: Sensitivity[Any],
    summary: Any,
    block: Block,
    block_index: int,
    scores: FloatArray,
    target: float,
    rng: np.random.Generator,
) -> Candidates:
    inclusion = inclusion_probabilities(scores, target)
    if len(block) and inclusion.min() == 1.0:  # all rows, of which no copy is needed
        return Candidates(block_index, block.numbered(), inclusion, target=np.inf)
    chosen = draw_candidates(construction, summary, block, scores, inclusion, rng)
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
                candidates = _candidates(
                    self.construction,
                    request.summary,
                    block,
                    index,
                    scores.sum(axis=0),
                    target,
                    rng,
                )
            else:
                candidates = _independent_draws(block, index, scores, target, rng)
        return BlockReport(_weights(rows), candidates=(candidates,))


def _independent_draws(
    block: Block,
    block_index: int,
    scores: FloatArray,
    quota: IndexArray,
    rng: np.random.Generator,
) -> Candidates:
    """Draw u_i rows uniformly, v_i by distance (section 4.2, round two)."""
    chosen = np.concatenate(
        [
            draw_with_replacement(component, int(count), rng)
            for component, count in zip(scores, quota, strict=True)
        ]
    )
    probability = scores.sum(axis=0)[chosen]
    return Candidates(block_index, block.take(chosen), probability)
