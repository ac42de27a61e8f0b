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
from daskcoreset.constructions.sampling.final_draw import FinalDraw, Selection, draw_systematically
from daskcoreset.constructions.sampling.messages import BlockReport, DrawRequest
from daskcoreset.core.blocks import Block
from daskcoreset.core.sampling import Calibrated, inclusion_probabilities
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


def counts_of(
    selection: Selection, q: FloatArray, u: FloatArray, size: int = SIZE, rtol: float = 1e-11
) -> Any:
    """How often every row was drawn: a row that was drawn c times has the weight c u / (m q)."""
    i = selection.indices
    counts = selection.weights * size * q[i] / u[i]
    np.testing.assert_allclose(counts, np.round(counts), rtol=rtol)
    drawn = np.zeros(len(u), dtype=np.int64)
    drawn[i] = np.round(counts)
    return drawn


# --- the distribution of independent draws -----------------------------------------------


def test_multinomial__no_block_is_read_again_when_candidates_abound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(root, "OVERSAMPLING", 500)
    X, sizes = uneven_rows()
    selection = draw(cut_rows(X, sizes), Lightweight(), SIZE, sampling="multinomial", passes=1)

    assert selection.rereads == 0


@passes_
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_multinomial__weights_are_exact_under_an_offset(passes: int, dtype: Any) -> None:
    # The mean is rounded to ten digits at 1e6, and so are the distances to it.
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(90, 3)) + 1e6).astype(dtype)
    u = rng.lognormal(size=90)
    wide = X.astype(np.float64) - 1e6
    for seed in range(5):
        selection = draw(
            cut_rows(X, [30, 30, 30], u),
            Lightweight(),
            40,
            passes=passes,
            seed=seed,
            sampling="multinomial",
        )
        q = plain_q(wide, u, Lightweight())
        assert counts_of(selection, q, u, size=40, rtol=1e-8).sum() == 40


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


def test_systematic__a_block_that_is_read_again_gives_its_share_of_the_candidates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requests: list[DrawRequest] = []

    def noted(summary: Any, targets: Any) -> DrawRequest:
        requests.append(DrawRequest(summary, targets))
        return requests[-1]

    monkeypatch.setattr(root, "MIN_CANDIDATES", 0)
    monkeypatch.setattr(root, "OVERSAMPLING", 1)
    monkeypatch.setattr(root, "DrawRequest", noted)
    X = np.random.default_rng(0).normal(size=(40, 2))
    X[30:] += 1000.0
    share = plain_q(X, np.ones(40), Lightweight())[30:].sum()
    draw(cut_rows(X, [10] * 4), Lightweight(), 9, passes=1)

    assert [request.targets for request in requests] == [{3: np.ceil(9 * share)}]


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


@methods
@passes_
def test_systematic__weights_are_those_of_one_stage_when_all_are_candidates(
    method: Sensitivity[Any], passes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So many candidates that the first stage takes every row for certain.
    monkeypatch.setattr(root, "MIN_CANDIDATES", 10**9)
    X, sizes = uneven_rows()
    u = uneven_weights(len(X))
    inclusion = inclusion_probabilities(plain_q(X, u, method), SIZE)
    for seed in range(20):
        selection = draw(cut_rows(X, sizes, u), method, SIZE, passes=passes, seed=seed)
        i = selection.indices
        assert len(i) == SIZE
        np.testing.assert_allclose(selection.weights, u[i] / inclusion[i], rtol=1e-11)
        assert set(np.flatnonzero(inclusion == 1)) <= set(i.tolist())


@methods
@passes_
def test_systematic__both_stages_together_are_in_proportion_to_the_scores(
    method: Sensitivity[Any], passes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Otherwise still unbiased, but for nothing more uneven than it must be.
    monkeypatch.setattr(root, "MIN_CANDIDATES", 0)
    rng = np.random.default_rng(0)
    X, u = rng.normal(size=(2000, 2)), rng.lognormal(size=2000)
    q = plain_q(X, u, method)
    selection = draw(cut_rows(X, [500] * 4, u), method, 50, passes=passes)
    i = selection.indices
    factors = selection.weights * q[i] / u[i]

    # Candidates that the root takes for certain were too unlikely in the first stage.
    np.testing.assert_allclose(factors.min(), 1 / 50, rtol=0.1)
    assert np.isclose(factors, factors.min(), rtol=1e-9).mean() > 0.9


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
def test_draw__rows_weights_and_numbers_belong_together(
    method: Sensitivity[Any], sampling: Sampling, passes: int
) -> None:
    X, sizes = uneven_rows()
    u = uneven_weights(len(X))
    y = np.arange(len(X)) * 7
    for seed in range(30):
        blocks = cut_rows(X, sizes, u, y)
        selection = draw(blocks, method, SIZE, sampling=sampling, passes=passes, seed=seed)
        i = selection.indices
        assert (np.diff(i) > 0).all()
        assert (selection.rows.points == X[i]).all()
        np.testing.assert_array_equal(selection.rows.labels, y[i])
        assert (u[i] > 0).all()
        assert (selection.weights > 0).all()
        assert selection.results.n_kept == len(X)
        assert selection.results.value.weight == pytest.approx(u.sum(), rel=1e-14)


@modes
def test_draw__rows_that_are_dropped_keep_their_numbers(sampling: Sampling, passes: int) -> None:
    X, sizes = uneven_rows()
    X[[0, 3, 15]] = np.nan
    X[12] = np.inf  # the only row of its block
    blocks = cut_rows(X, sizes)
    blocks = replace(blocks, schema=replace(blocks.schema, on_invalid="drop"))
    selection = draw(blocks, Lightweight(), SIZE, sampling=sampling, passes=passes)

    assert np.isfinite(selection.rows.points).all()
    assert (selection.rows.points == X[selection.indices]).all()
    assert selection.results.n_kept == len(X) - 4


@modes
@pytest.mark.parametrize("size", [32, 1000])
def test_draw__all_rows_with_their_own_weights_when_size_is_not_smaller(
    sampling: Sampling, passes: int, size: int
) -> None:
    # Found out at the root, as with blocks of unknown sizes.
    X, sizes = uneven_rows()
    u = uneven_weights(len(X))
    blocks = cut_rows(X, sizes, u)
    selection = draw(blocks, Lightweight(), size, sampling=sampling, passes=passes)

    assert selection.complete
    assert (selection.weights == u).all()
    np.testing.assert_array_equal(selection.indices, np.arange(len(X)))


@methods
@modes
def test_draw__size_one(method: Sensitivity[Any], sampling: Sampling, passes: int) -> None:
    X, sizes = uneven_rows()
    for seed in range(30):
        selection = draw(cut_rows(X, sizes), method, 1, sampling=sampling, passes=passes, seed=seed)
        assert len(selection.indices) <= 1
        assert np.isfinite(selection.weights).all()


@modes
def test_draw__constant_data_are_drawn_uniformly(sampling: Sampling, passes: int) -> None:
    X = np.full((50, 2), 1e6 + 0.1)
    selection = draw(cut_rows(X, [20, 1, 29]), Lightweight(), 10, sampling=sampling, passes=passes)

    assert selection.weights.sum() == pytest.approx(50, rel=1e-12)
    counts = selection.weights / 5
    np.testing.assert_allclose(counts, np.round(counts), rtol=1e-12)


@modes
def test_draw__seed_decides(sampling: Sampling, passes: int) -> None:
    X, sizes = uneven_rows()
    first, again, other = (
        draw(cut_rows(X, sizes), Lightweight(), SIZE, sampling=sampling, passes=passes, seed=seed)
        for seed in (1, 1, 2)
    )

    assert (first.weights == again.weights).all()
    assert (first.indices == again.indices).all()
    assert first.indices.tolist() != other.indices.tolist()


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
