"""Draws in one read and in two, on blocks as unlike as can be, against one machine.

The reference is a plain NumPy reading of the formulas over all rows at once. Where a test is
statistical its seeds are fixed, and its false-alarm rate over the choice of seeds is stated.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats

from daskcoreset.constructions.sampling import final_draw as root
from daskcoreset.constructions.sampling.final_draw import FinalDraw, Selection, draw_systematically
from daskcoreset.constructions.sampling.messages import BlockReport, DrawRequest
from daskcoreset.core.blocks import Block
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.sampling import Calibrated, inclusion_probabilities
from daskcoreset.core.typing import FloatArray, Sampling
from daskcoreset.execution.engine import BlockResults
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.sensitivities import Lightweight, Sensitivity, Uniform
from daskcoreset.testing import assert_mean, assert_multinomial, cut_rows, draw
from tests.tools.draws import MODES, clusters, modes

SIZE = 24
METHODS: list[Sensitivity[Any]] = [Lightweight(), Uniform()]
methods = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
passes_ = pytest.mark.parametrize("passes", [1, 2])
# Ten seconds for what another case proves as well.
REPEATED = [pytest.mark.nightly, pytest.mark.long]


def combinations(
    names: str, always: Callable[..., bool], *values: Sequence[Any]
) -> pytest.MarkDecorator:
    """Every combination of values; those run always that meet every pair of them."""
    params = [
        pytest.param(
            *one,
            id="-".join(getattr(value, "name", str(value)) for value in one),
            marks=[] if always(*one) else REPEATED,
        )
        for one in itertools.product(*values)
    ]
    return pytest.mark.parametrize(names, params)


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


@pytest.mark.nightly_beyond(1)
@pytest.mark.statistical
@methods
@passes_
@pytest.mark.parametrize(
    "weighted",
    [pytest.param(False, id="unweighted", marks=REPEATED), pytest.param(True, id="weighted")],
)
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
        for seed in range(600)
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
        for seed in range(600)
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
@combinations(
    "method, passes, known, oversampling",
    # All with one candidate a row, where blocks run short.
    lambda method, passes, known, candidates: (
        (passes == 1 or known)
        and (candidates == 1 or (candidates == 4 and (passes == 2) == (method == METHODS[0])))
    ),
    METHODS, [1, 2], [True, False], [1, 2, 4],
)  # fmt: skip
@pytest.mark.nightly_beyond(3)
def test_systematic__every_row_has_its_weight_on_average(
    method: Sensitivity[Any],
    oversampling: int,
    passes: int,
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
    weights = np.zeros((500, len(X)))
    for seed in range(len(weights)):
        selection = draw(blocks, method, size, passes=passes, seed=seed)
        assert len(selection.indices) <= size
        weights[seed, selection.indices] = selection.weights

    assert_mean(weights, u)


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


HALF = MODES[1:3]
"""Both designs and both numbers of reads, once each; `MODES` has them crossed."""


def varied(method: Sensitivity[Any], mode: Any, weighted: bool) -> bool:
    """All modes where scores and weights differ most, and half of them in every other case."""
    lightweight = method.name == "lightweight"
    return (lightweight and weighted) or (mode in HALF) == (lightweight or weighted)


def costs_by_row(X: FloatArray, u: FloatArray) -> FloatArray:
    """Cost of every row for several queries: near, at random, far, and the total weight."""
    rng = np.random.default_rng(1)
    mean = np.average(X, axis=0, weights=u)
    solutions = [
        mean[np.newaxis],
        rng.normal(X.mean(axis=0), X.std(axis=0), (2, 3)),
        rng.normal(X.mean(axis=0), X.std(axis=0), (10, 3)),
        X[[0, 250, 350]],
        X[:2],
        mean[np.newaxis] + 1e3,
        np.array([[0.0, 30.0, 0.0]]),
    ]
    costs = [((X[:, np.newaxis] - Q) ** 2).sum(axis=2).min(axis=1) for Q in solutions]
    return np.stack([np.ones(len(X)), *costs])


def weighted_clusters(weighted: bool) -> tuple[FloatArray, FloatArray, list[int]]:
    X, u, sizes = clusters()
    return X, u if weighted else np.ones(len(X)), sizes


@functools.cache
def independent_estimates(method: Sensitivity[Any], passes: int, weighted: bool) -> FloatArray:
    """Estimates by 30 rows of the clusters, drawn independently; several tests look at them."""
    X, u, sizes = weighted_clusters(weighted)
    return estimates_of(
        cut_rows(X, sizes, u if weighted else None),
        costs_by_row(X, u),
        method,
        30,
        sampling="multinomial",
        passes=passes,
        n_seeds=1000 if weighted else 400,
    )


def estimates_of(
    blocks: RowBlocks,
    queries: FloatArray,
    method: Sensitivity[Any],
    size: int,
    *,
    sampling: Sampling,
    passes: int,
    n_seeds: int,
) -> FloatArray:
    estimates = np.empty((n_seeds, len(queries)))
    for seed in range(n_seeds):
        drawn = draw(blocks, method, size, sampling=sampling, passes=passes, seed=seed)
        estimates[seed] = queries[:, drawn.indices] @ drawn.weights
    return estimates


@pytest.mark.nightly_beyond(3)
@pytest.mark.statistical
@combinations("method, mode, weighted", varied, METHODS, MODES, [False, True])
def test_cost__right_on_average_for_every_query(
    method: Sensitivity[Any],
    mode: tuple[Sampling, int],
    weighted: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """False-alarm rate: 1e-6 a case."""
    sampling, passes = mode
    # With 20,000 candidates of 360 rows the first stage would hardly be a draw.
    monkeypatch.setattr(root, "MIN_CANDIDATES", 0)
    X, u, sizes = weighted_clusters(weighted)
    queries = costs_by_row(X, u)
    if sampling == "multinomial":
        estimates = independent_estimates(method, passes, weighted)
    else:
        blocks = cut_rows(X, sizes, u if weighted else None)
        estimates = estimates_of(
            blocks, queries, method, 30, sampling=sampling, passes=passes, n_seeds=400
        )

    assert_mean(estimates, queries @ u)


@pytest.mark.nightly_beyond(1)
@pytest.mark.statistical
@combinations(
    "mode, sparse",
    lambda mode, sparse: (mode in HALF) == sparse,
    MODES,
    [False, True],
)
def test_cost__right_on_average_under_an_offset_in_float32(
    mode: tuple[Sampling, int], sparse: bool
) -> None:
    """Squares of 1e6 hold no digit of the spread in float32. False-alarm rate: 1e-6 a case."""
    sampling, passes = mode
    X, u, sizes = clusters()
    X32 = (X + 1e6).astype(np.float32)
    X = X32.astype(np.float64) - 1e6
    queries = costs_by_row(X, u)
    estimates = estimates_of(
        cut_rows(sp.csr_array(X32) if sparse else X32, sizes, u),
        queries,
        Lightweight(),
        30,
        sampling=sampling,
        passes=passes,
        n_seeds=200,
    )

    assert_mean(estimates, queries @ u)


@pytest.mark.statistical
@combinations(
    "method, passes",
    lambda method, passes: varied(method, ("multinomial", passes), True),
    METHODS,
    [1, 2],
)
def test_multinomial__varies_as_theory_says(method: Sensitivity[Any], passes: int) -> None:
    r"""Variance of an estimate is :math:`(\sum u^2 f^2 / q - (\sum u f)^2) / m`, to the digit.

    False-alarm rate: 1e-6 a case.
    """
    X, u, _ = clusters()
    queries = costs_by_row(X, u)
    exact = queries @ u
    q = u / u.sum()
    if method.name == "lightweight":
        v = u * ((X - np.average(X, axis=0, weights=u)) ** 2).sum(axis=1)
        q = (q + v / v.sum()) / 2
    counted = u > 0
    second = (queries[:, counted] ** 2) @ (u[counted] ** 2 / q[counted])
    estimates = independent_estimates(method, passes, True)

    # The total weight does not vary at all when rows are drawn by it.
    varying = second > exact**2 * (1 + 1e-9)
    squares = (estimates - exact)[:, varying] ** 2
    assert_mean(squares, ((second - exact**2) / 30)[varying])
    np.testing.assert_allclose(estimates[:, ~varying], np.tile(exact[~varying], (1000, 1)))


@pytest.mark.nightly_beyond(2)
@pytest.mark.statistical
@combinations(
    "method, passes, weighted",
    lambda method, passes, weighted: varied(method, ("multinomial", passes), weighted),
    METHODS,
    [1, 2],
    [False, True],
)
def test_systematic__varies_no_more_than_multinomial(
    method: Sensitivity[Any], passes: int, weighted: bool
) -> None:
    """Whatever the order of the candidates; with a good one it varies far less.

    An F-test of every query with half the degrees of freedom that the seeds give, which
    allows for tails heavier than normal. False-alarm rate: 1e-6 a case.
    """
    X, u, sizes = weighted_clusters(weighted)
    queries = costs_by_row(X, u)
    blocks = cut_rows(X, sizes, u if weighted else None)
    n_seeds = 400
    systematic = estimates_of(
        blocks, queries, method, 30, sampling="systematic", passes=passes, n_seeds=n_seeds
    )
    multinomial = independent_estimates(method, passes, weighted)[:n_seeds]

    exact = queries @ u
    rounding = (1e-9 * exact) ** 2
    ratios = (systematic.var(axis=0) + rounding) / (multinomial.var(axis=0) + rounding)
    limit = scipy.stats.f.isf(1e-6 / len(queries), n_seeds / 2, n_seeds / 2)
    assert (ratios < limit).all(), f"variances by factors of {ratios}"
    # All but the total weight, which uniform draws have exactly: less in the geometric mean.
    assert np.exp(np.log(ratios[1:]).mean()) < 1.0


@pytest.mark.nightly_beyond(1)
@pytest.mark.statistical
@modes
def test_cost__error_falls_with_the_size(sampling: Sampling, passes: int) -> None:
    """Four times the rows: at most half the error, up to an F-test. False-alarm rate: 1e-6."""
    X, u, sizes = clusters()
    queries = costs_by_row(X, u)
    small, large = (
        estimates_of(
            cut_rows(X, sizes, u),
            queries,
            Lightweight(),
            size,
            sampling=sampling,
            passes=passes,
            n_seeds=200,
        )
        for size in (20, 80)
    )

    limit = scipy.stats.f.isf(1e-6 / len(queries), 100, 100)
    assert (large.var(axis=0) < limit / 4 * small.var(axis=0)).all()
