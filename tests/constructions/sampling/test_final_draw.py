"""Draws in one read and in two, on blocks as unlike as can be, against one machine.

The reference is a plain NumPy reading of the formulas over all rows at once. Where a test is
statistical its seeds are fixed, and its false-alarm rate over the choice of seeds is stated.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from daskcoreset.constructions.sampling import final_draw as root
from daskcoreset.constructions.sampling.final_draw import FinalDraw, draw_systematically
from daskcoreset.constructions.sampling.messages import BlockReport
from daskcoreset.core.blocks import Block
from daskcoreset.core.sampling import Calibrated
from daskcoreset.core.typing import FloatArray, Sampling
from daskcoreset.execution.engine import BlockResults
from daskcoreset.sensitivities import Lightweight, Sensitivity, Uniform
from daskcoreset.testing import cut_rows, draw
from tests.tools.draws import modes

SIZE = 24
METHODS: list[Sensitivity[Any]] = [Lightweight(), Uniform()]
methods = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
passes_ = pytest.mark.parametrize("passes", [1, 2])


def uneven_rows() -> tuple[FloatArray, list[int]]:
    """Sorted rows in blocks: most of the scores on two of them, one empty, two single rows."""
    rng = np.random.default_rng(4)
    ordinary = np.sort(rng.normal(size=(24, 2)), axis=0)
    outlier = np.array([[40.0, 40.0]])
    alone = np.array([[-60.0, 0.0]])
    constant = np.full((6, 2), 2.5)
    X = np.concatenate([ordinary[:12], ordinary[12:13], constant, outlier, ordinary[13:], alone])
    return X, [12, 0, 1, 6, 1 + 4, 7, 1]


def uneven_weights(n_rows: int) -> FloatArray:
    """Weights over two orders of magnitude; some rows, and one whole block, have none."""
    u = np.random.default_rng(8).lognormal(size=n_rows)
    u[[0, 5, 20]] = 0.0
    u[12] = 0.0
    return u


def plain_q(X: FloatArray, u: FloatArray, method: Sensitivity[Any]) -> FloatArray:
    """Algorithm 1 as it is printed, with the weights that PAPERS restates."""
    q: FloatArray = u / u.sum()
    if isinstance(method, Uniform):
        return q
    mu = (u[:, np.newaxis] * X).sum(axis=0) / u.sum()
    v: FloatArray = u * ((X - mu) ** 2).sum(axis=1)
    return np.asarray(0.5 * q + 0.5 * v / v.sum())


# --- the distribution of independent draws -----------------------------------------------


def test_multinomial__no_block_is_read_again_when_candidates_abound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(root, "OVERSAMPLING", 500)
    X, sizes = uneven_rows()
    selection = draw(cut_rows(X, sizes), Lightweight(), SIZE, sampling="multinomial", passes=1)

    assert selection.rereads == 0


# --- systematic draws --------------------------------------------------------------------


@methods
@pytest.mark.parametrize("oversampling", [1, 4])
def test_systematic__two_reads_need_no_sizes_beforehand(
    method: Sensitivity[Any], oversampling: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(root, "MIN_CANDIDATES", 0)
    monkeypatch.setattr(root, "OVERSAMPLING", oversampling)
    X, sizes = uneven_rows()
    known = cut_rows(X, sizes, uneven_weights(len(X)))
    for seed in range(20):
        first, second = (
            draw(blocks, method, 12, passes=2, seed=seed)
            for blocks in (known, replace(known, sizes=None))
        )
        assert first.indices.tolist() == second.indices.tolist()
        assert first.weights.tolist() == second.weights.tolist()


def test_systematic__reading_again_is_decided_before_drawing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A single far row is drawn or not; to read its block again only if not would count it
    # twice in the mean.
    monkeypatch.setattr(root, "MIN_CANDIDATES", 0)
    monkeypatch.setattr(root, "OVERSAMPLING", 1)
    X, sizes = uneven_rows()
    blocks = cut_rows(X, sizes)

    rereads = [draw(blocks, Lightweight(), 5, seed=seed).rereads for seed in range(60)]
    assert len(set(rereads)) == 1
    assert rereads[0] > 0


@passes_
def test_systematic__a_block_with_many_scores_gives_as_many_rows(
    passes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One block of twenty holds most of the scores, but had been asked for a twentieth of the
    # candidates: fewer than it must give.
    monkeypatch.setattr(root, "MIN_CANDIDATES", 0)
    X = np.random.default_rng(0).normal(size=(2000, 2))
    X[700:800] += 1000.0
    q = plain_q(X, np.ones(2000), Lightweight())
    selection = draw(cut_rows(X, [100] * 20), Lightweight(), 100, passes=passes)

    wanted = 100 * q[700:800].sum()
    assert wanted > 40
    given = ((selection.indices >= 700) & (selection.indices < 800)).sum()
    assert abs(given - wanted) < 4
    assert selection.rereads == (passes == 1)


def test_systematic__a_block_that_gave_all_it_has_is_not_read_again() -> None:
    # 20,000 candidates of 32 rows: all of every block, those of outliers too.
    X, sizes = uneven_rows()
    for n_rows in (1, 2, 5):
        selection = draw(cut_rows(X, sizes), Uniform(), n_rows)
        assert selection.rereads == 0


# --- candidates ------------------------------------------------------------------------------


def test_systematic__blocks_that_gave_just_their_share_are_not_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(root, "MIN_CANDIDATES", 0)
    monkeypatch.setattr(root, "OVERSAMPLING", 1)
    X = np.random.default_rng(0).normal(size=(40, 2))

    assert draw(cut_rows(X, [10] * 4), Uniform(), 20, passes=1).rereads == 0


@pytest.mark.parametrize("size", [1, 2])
def test_draw_systematically__first_of_equal_tries_and_one_where_all_is_certain(size: int) -> None:
    losses: list[float] = []

    def loss(*_: Any) -> float:
        losses.append(1.0)
        return 1.0

    design = SimpleNamespace(
        final_scores=lambda _, __, scores, *___: scores,
        classes=lambda _: None,
        order=lambda rows, *_: np.arange(len(rows)),
        n_draws=lambda *_: 3,
        adjust=lambda *given: given[4],
        calibrate=lambda _, weights, __, draw_index: Calibrated(weights, part=draw_index),
        draw_loss=loss,
    )
    construction: Any = SimpleNamespace(row_scores=lambda rows, _: rows.weights, design=design)
    rows = Block(np.eye(3), np.array([0.0, 1.0, 1.0]))
    found = draw_systematically(
        construction, None, rows, np.ones(3), size, np.random.default_rng(0)
    )

    assert len(losses) == (3 if size == 1 else 0)
    assert found.calibrated.part == 0
    assert found.weights.tolist() == [2.0 / size] * size


# --- what holds for every way to draw ----------------------------------------------------


@methods
@modes
def test_draw__size_one(method: Sensitivity[Any], sampling: Sampling, passes: int) -> None:
    X, sizes = uneven_rows()
    for seed in range(30):
        selection = draw(cut_rows(X, sizes), method, 1, sampling=sampling, passes=passes, seed=seed)
        assert len(selection.indices) <= 1
        assert np.isfinite(selection.weights).all()


def test_root__number_of_candidates() -> None:
    assert FinalDraw(Uniform(), 100, "multinomial", 0).n_candidates == 400
    assert FinalDraw(Uniform(), 100, "systematic", 0).n_candidates == 20_000
    assert FinalDraw(Uniform(), 10_000, "systematic", 0).n_candidates == 40_000


# --- reads -------------------------------------------------------------------------------


def test_plan__of_whole_numbers_that_are_enough() -> None:
    root = FinalDraw(Uniform(), 100, "systematic", 0)
    total_scores = {0: np.array([1.0]), 1: np.array([2.0])}
    rows = {0: 1000, 1: 2000}
    results = BlockResults(BlockReport({}, total_scores=total_scores), rows, rows)
    assert root.request(results).targets == {0: 6667.0, 1: 13334.0}  # of 20,000


"""Both designs and both numbers of reads, once each; `MODES` has them crossed."""
