"""What a block does for a draw: candidates and reports."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from daskcoreset.constructions.sampling.block_steps import (
    ProposeCandidates,
    _candidates,
    summarise_block,
    take_block,
)
from daskcoreset.constructions.sampling.messages import BlockReport
from daskcoreset.core.blocks import Block, InvalidRow, ReadBlock
from daskcoreset.sensitivities import SVM, StrongKMeans, Uniform


def test_candidates__all_rows_with_a_score_leave_nothing_to_chance() -> None:
    block = Block(np.eye(3), np.array([0.0, 1.0, 2.0]))
    rng = np.random.default_rng(0)
    drawn = _candidates(Uniform(), None, block, 0, block.weights, 2.0, rng)

    assert drawn.target == np.inf
    assert _candidates(Uniform(), None, block, 0, block.weights, 1.0, rng).target == 1.0


def test_harvest__as_many_candidates_as_wanted_by_the_estimate_of_all_scores() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    block = Block(X, np.ones(3000), (X[:, 0] > 0).astype(int))
    construction = SVM(variant="systematic")
    pilot = construction.finalize(construction.block_summary(block, None, rng), rng)
    chunk = ProposeCandidates(construction, "systematic", 0, 400.0, 3000, 1)
    report = chunk(ReadBlock(3000, block), pilot)
    assert isinstance(report, BlockReport)
    (candidates,) = report.candidates

    assert len(candidates.rows) == pytest.approx(400, rel=0.2)


def test_summarise__summaries_of_earlier_folds_stay_with_their_blocks() -> None:
    rows = ReadBlock(40, Block(np.random.default_rng(0).normal(size=(40, 2)), np.ones(40)))
    construction = StrongKMeans(3, rough="kmeans||")
    report = summarise_block(construction, 0, 0, replace(rows, index=5), None)

    assert isinstance(report, BlockReport)
    assert report.summary is not None
    assert not report.summaries


def test_take_planned__the_only_read_finds_what_is_wrong() -> None:
    rows = ReadBlock(3, Block(np.eye(3), np.ones(3)))  # without labels
    assert isinstance(take_block(SVM(), rows), InvalidRow)
