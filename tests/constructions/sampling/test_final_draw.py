"""Draws in one read and in two, on blocks as unlike as can be, against one machine.

The reference is a plain NumPy reading of the formulas over all rows at once. Where a test is
statistical its seeds are fixed, and its false-alarm rate over the choice of seeds is stated.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Literal

import dask
import numpy as np
import pytest

import daskcoreset
from daskcoreset.constructions.sampling import final_draw as root
from daskcoreset.constructions.sampling.block_steps import (
    ProposeCandidates,
    _candidates,
    draw_candidates,
    summarise_block,
    take_block,
)
from daskcoreset.constructions.sampling.final_draw import (
    FinalDraw,
    Selection,
    _inclusion,
    draw_systematically,
)
from daskcoreset.constructions.sampling.messages import BlockReport, DrawRequest, merge_reports
from daskcoreset.core.blocks import Block, InvalidRow, ReadBlock
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.sampling import Calibrated, inclusion_probabilities
from daskcoreset.core.typing import FloatArray, Sampling
from daskcoreset.execution.engine import BlockResults
from daskcoreset.sensitivities import SVM, Lightweight, Sensitivity, StrongKMeans, Uniform
from daskcoreset.testing import (
    CountingArray,
    CountingScheduler,
    assert_mean,
    assert_multinomial,
    cut_rows,
    draw,
)

SIZE = 24
METHODS: list[Sensitivity[Any]] = [Lightweight(), Uniform()]
MODES: list[tuple[Sampling, Literal[1, 2]]] = [
    ("systematic", 1),
    ("systematic", 2),
    ("multinomial", 1),
    ("multinomial", 2),
]

methods = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
passes_ = pytest.mark.parametrize("passes", [1, 2])
modes = pytest.mark.parametrize(("sampling", "passes"), MODES)


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


def by_block(counts: Any, sizes: list[int]) -> Any:
    edges = np.cumsum([0, *sizes])
    pairs = itertools.pairwise(edges)
    return np.stack([counts[..., start:stop].sum(axis=-1) for start, stop in pairs], axis=-1)


# --- the distribution of independent draws -----------------------------------------------


@pytest.mark.statistical
@methods
@passes_
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_multinomial__distributed_exactly_as_on_one_machine(
    method: Sensitivity[Any], passes: int, weighted: bool
) -> None:
    """Rows, blocks, and pairs of blocks. False-alarm rate: 1e-6 a case."""
    X, sizes = uneven_rows()
    u = uneven_weights(len(X)) if weighted else np.ones(len(X))
    q = plain_q(X, u, method)
    blocks = cut_rows(X, sizes, u if weighted else None)
    selections = (
        draw(blocks, method, SIZE, sampling="multinomial", passes=passes, seed=seed)
        for seed in range(1200)
    )
    counts = np.array([counts_of(selection, q, u) for selection in selections])

    assert (counts.sum(axis=1) == SIZE).all()
    assert_multinomial(counts, q, rate=4e-7)
    shares = by_block(q, sizes)
    of_blocks = by_block(counts, sizes)
    assert_multinomial(of_blocks, shares, rate=4e-7)
    centered = of_blocks - SIZE * shares
    products = np.einsum("si,sj->sij", centered, centered)
    covariance = SIZE * (np.diag(shares) - np.outer(shares, shares))
    upper = np.triu_indices(len(sizes))
    assert_mean(products[:, *upper], covariance[upper], rate=2e-7)


@pytest.mark.statistical
@pytest.mark.parametrize(
    "known",
    [
        pytest.param(True, id="sizes known"),
        pytest.param(False, id="sizes unknown", marks=pytest.mark.nightly),
    ],
)
def test_multinomial__blocks_that_run_short_are_read_again_without_bias(
    known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One candidate a row wanted: nearly every draw needs more. False-alarm rate: 1e-6."""
    monkeypatch.setattr(root, "OVERSAMPLING", 1)
    X, sizes = uneven_rows()
    u = uneven_weights(len(X))
    q = plain_q(X, u, Lightweight())
    blocks = cut_rows(X, sizes, u)
    if not known:
        blocks = replace(blocks, sizes=None)
    selections = [
        draw(blocks, Lightweight(), SIZE, sampling="multinomial", passes=1, seed=seed)
        for seed in range(1500)
    ]

    # In the mean more than one block, and not always the same ones.
    rereads = [selection.rereads for selection in selections]
    assert np.mean(rereads) > 1
    assert len(set(rereads)) > 2
    assert_multinomial([counts_of(selection, q, u) for selection in selections], q)


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


def test_multinomial__rows_drawn_twice_are_merged() -> None:
    X, sizes = uneven_rows()
    for passes in (1, 2):
        selection = draw(
            cut_rows(X, sizes), Lightweight(), SIZE, sampling="multinomial", passes=passes
        )
        assert len(selection.indices) < SIZE
        assert (np.diff(selection.indices) > 0).all()
        q = plain_q(X, np.ones(len(X)), Lightweight())
        # The outlier holds a quarter of q.
        assert counts_of(selection, q, np.ones(len(X))).max() > 1


# --- systematic draws --------------------------------------------------------------------


@pytest.mark.statistical
@methods
@passes_
@pytest.mark.parametrize("oversampling", [1, 2, 4])
@pytest.mark.parametrize("known", [True, False], ids=["sizes known", "sizes unknown"])
def test_systematic__every_row_has_its_weight_on_average(
    method: Sensitivity[Any],
    passes: int,
    oversampling: int,
    known: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Horvitz and Thompson in two stages: the mean of w_i 1{i drawn} is u_i for each row i.

    With few candidates, so that the first stage is a draw indeed. False-alarm rate: 1e-6 a
    case.
    """
    monkeypatch.setattr(root, "MIN_CANDIDATES", 0)
    monkeypatch.setattr(root, "OVERSAMPLING", oversampling)
    X, sizes = uneven_rows()
    u = uneven_weights(len(X))
    blocks = cut_rows(X, sizes, u)
    if not known:
        blocks = replace(blocks, sizes=None)
    size = 12
    weights = np.zeros((1000, len(X)))
    for seed in range(len(weights)):
        selection = draw(blocks, method, size, passes=passes, seed=seed)
        assert len(selection.indices) <= size
        weights[seed, selection.indices] = selection.weights

    assert_mean(weights, u)


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


def test_candidates__all_rows_with_a_score_leave_nothing_to_chance() -> None:
    block = Block(np.eye(3), np.array([0.0, 1.0, 2.0]))
    rng = np.random.default_rng(0)
    drawn = _candidates(Uniform(), None, block, 0, block.weights, 2.0, rng)

    assert drawn.target == np.inf
    assert _candidates(Uniform(), None, block, 0, block.weights, 1.0, rng).target == 1.0


def test_inclusion__two_rows_of_every_class_that_has_them() -> None:
    summary, y = SimpleNamespace(classes=np.array([0, 1])), np.repeat([0, 1], [6, 3])
    rows, scores = Block(np.ones((9, 1)), np.ones(9), y), np.full(9, 0.25)
    with pytest.raises(InvalidInputError, match=r"size=3 is too small for 2 .* at least 4"):
        _inclusion(SVM(), summary, rows, scores, 3)
    scores[-2:] = 0.0  # one of the second class is left

    assert _inclusion(SVM(), summary, rows, scores, 3).tolist() == [1 / 3] * 6 + [1.0, 0.0, 0.0]


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
        classes=lambda _: None,
        order=lambda rows, *_: np.arange(len(rows)),
        n_draws=lambda *_: 3,
        calibrate=lambda _, weights, __, draw_index: Calibrated(weights, part=draw_index),
        draw_loss=loss,
    )
    construction: Any = SimpleNamespace(
        scores=lambda rows, _: rows.weights[np.newaxis], design=design
    )
    rows = Block(np.eye(3), np.array([0.0, 1.0, 1.0]))
    found = draw_systematically(
        construction, None, rows, np.ones(3), size, np.random.default_rng(0)
    )

    assert len(losses) == (3 if size == 1 else 0)
    assert found.calibrated.part == 0
    assert found.weights.tolist() == [2.0 / size] * size


def test_draw_candidates__an_eighth_is_spread_over_the_classes_evenly() -> None:
    # 160 rows of two classes: ten of each at least.
    y = np.repeat([0, 1], [900, 100])
    inclusion = np.where(y == 1, 0.01, 159 / 900)
    rows = Block(np.ones((1000, 1)), np.ones(1000), y)
    summary, rng = SimpleNamespace(classes=np.array([0, 1])), np.random.default_rng(0)
    chosen = draw_candidates(SVM(), summary, rows, np.ones(1000), inclusion, rng)

    assert inclusion[y == 1].sum() == pytest.approx(10)
    assert np.bincount(y[chosen]).tolist() == [159, 10]


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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, u: (X * np.nan, u), "none of the 32 rows of X is finite; pass"),
        (lambda X, u: (X, u * 0), "sample_weight is zero on every row; give"),
        (lambda X, u: (X * 1e160, u), "of values so large squared distances overflow"),
        (lambda X, u: (X, u - 50 * (np.arange(len(u)) == 14)), "sample_weight is -.* at row 14"),
    ],
    ids=["no finite row", "no weight", "overflow", "negative weight"],
)
@modes
def test_draw__data_that_nothing_can_be_drawn_from(
    sampling: Sampling, passes: int, change: Callable[..., Any], message: str
) -> None:
    X, sizes = uneven_rows()
    X, u = change(X, np.ones(len(X)))
    blocks = cut_rows(X, sizes, u)
    blocks = replace(blocks, schema=replace(blocks.schema, on_invalid="drop"))

    with pytest.raises(InvalidInputError, match=message):
        draw(blocks, Lightweight(), 5, sampling=sampling, passes=passes)


def test_combine__merges_in_the_order_of_the_blocks() -> None:
    # Summaries that do not commute, such as lists, and parts without one.
    concatenating: Any = SimpleNamespace(merge=lambda first, second: first + second)
    parts = [BlockReport({i: 1.0}, text) for i, text in enumerate(["a", None, "b", "c"])]

    assert merge_reports(concatenating, parts).summary == "abc"
    assert merge_reports(concatenating, parts[1:2]).summary is None


def test_root__number_of_candidates() -> None:
    assert FinalDraw(Uniform(), 100, "multinomial", 0).n_candidates == 400
    assert FinalDraw(Uniform(), 100, "systematic", 0).n_candidates == 20_000
    assert FinalDraw(Uniform(), 10_000, "systematic", 0).n_candidates == 40_000


# --- reads -------------------------------------------------------------------------------


def read_counts(n_rows: int, **options: Any) -> tuple[Any, Any, int]:
    """Build from rows that count their reads: reads by row and by block, blocks read again."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 2))
    X[-n_rows // 10 :] *= 100.0  # the last block has nearly half of the scores
    rows, weights = CountingArray(X), CountingArray(rng.lognormal(size=n_rows))
    scheduler = CountingScheduler()
    with dask.config.set(scheduler=scheduler):
        coreset = daskcoreset.build(
            rows, sample_weight=weights, chunks=n_rows // 10, random_state=0, **options
        )
    assert (weights.reads == rows.reads).all()
    blocks = rows.reads.reshape(10, -1)
    assert (blocks == blocks[:, :1]).all()
    again = int(coreset.provenance["blocks_read_again"])
    assert scheduler.calls == 1 + (again > 0)
    return blocks[:, 0], coreset, again


@methods
@pytest.mark.parametrize("sampling", ["systematic", "multinomial"])
def test_build__two_passes_read_every_row_twice(
    method: Sensitivity[Any], sampling: Sampling
) -> None:
    reads, _, again = read_counts(1000, size=50, passes=2, sampling=sampling, method=method)

    assert (reads == 2).all()
    assert again == 0


@methods
@pytest.mark.parametrize("sampling", ["systematic", "multinomial"])
def test_build__one_pass_reads_every_row_once(method: Sensitivity[Any], sampling: Sampling) -> None:
    reads, coreset, again = read_counts(1000, size=50, passes=1, sampling=sampling, method=method)

    assert reads.min() == 1
    assert (reads - 1).sum() == again
    assert coreset.provenance["passes"] == 1
    if sampling == "systematic" or method.name == "uniform":
        assert again == 0


def test_build__one_pass_reads_short_blocks_once_more() -> None:
    # Half of the 500 draws fall on the last block, which has 200 candidates.
    reads, _, again = read_counts(1000, size=500, passes=1, sampling="multinomial")

    assert again > 0
    assert reads[-1] == 2
    assert set(reads) == {1, 2}
    assert (reads == 2).sum() == again


def test_build__all_rows_are_read_once() -> None:
    with pytest.warns(daskcoreset.errors.CoresetWarning, match="size=1000 is not below"):
        reads, coreset, again = read_counts(1000, size=1000, passes=2)

    assert (reads == 1).all()
    assert again == 0
    assert len(coreset) == 1000


@modes
def test_build__draws_what_blocks_in_memory_draw(sampling: Sampling, passes: Literal[1, 2]) -> None:
    # The graph and `draw` are the same algorithm: what is proven of one holds for the other.
    X = np.random.default_rng(0).normal(size=(300, 2))
    coreset = daskcoreset.build(
        X, size=20, chunks=100, sampling=sampling, passes=passes, random_state=3, split_every=2
    )
    selection = draw(
        cut_rows(X, [100] * 3), Lightweight(), 20, sampling=sampling, passes=passes, seed=3
    )

    assert (coreset.indices == selection.indices).all()
    assert (coreset.weights == selection.weights).all()


def test_plan__of_whole_numbers_that_are_enough() -> None:
    root = FinalDraw(Uniform(), 100, "systematic", 0)
    total_scores = {0: np.array([1.0]), 1: np.array([2.0])}
    rows = {0: 1000, 1: 2000}
    results = BlockResults(BlockReport({}, total_scores=total_scores), rows, rows)
    assert root.request(results).targets == {0: 6667.0, 1: 13334.0}  # of 20,000
