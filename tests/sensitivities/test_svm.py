"""SVM coresets: the contract, the score of Lemma 2, and their builds."""

from __future__ import annotations

import math
import warnings
from typing import Any, Literal

import dask.array as da
import numpy as np
import pytest

import daskcoreset
from daskcoreset import build, datasets
from daskcoreset.core.blocks import Block
from daskcoreset.core.errors import CoresetWarning
from daskcoreset.core.random import Stage, stream
from daskcoreset.sensitivities import SVM
from daskcoreset.sensitivities.svm_pilot import lemma_2, row_terms
from daskcoreset.solvers.kmeans import assign
from daskcoreset.solvers.linear import solve_svm
from daskcoreset.testing import CountingArray, SensitivityContract
from tests.tools.two_classes import settled, two_classes

pytestmark = [
    pytest.mark.filterwarnings("ignore:a solution fitted on the coreset"),  # which are tiny here
    pytest.mark.filterwarnings("ignore:how far a solution fitted"),
]


class TestSystematic(SensitivityContract):
    n_seeds = 60

    def construction(self) -> SVM:
        return SVM(variant="systematic")


@pytest.mark.nightly  # the code of the others but for the score, which has tests of its own
class TestPaper(SensitivityContract):
    n_seeds = 60

    def construction(self) -> SVM:
        return SVM(variant="paper", n_clusters=2)


# The score


def test_lemma_2__bounds_the_share_of_a_row_in_the_cost_of_any_classifier() -> None:
    X, y = two_classes(400)
    u = np.random.default_rng(1).random(400) + 0.5
    rough = settled(SVM(variant="paper"), Block(X, u, y))
    seen = row_terms(Block(X, u, y), rough)
    bound = lemma_2(seen.squares, seen.cells, rough.weights, rough.opt, 1.0, provable=True)
    rng = np.random.default_rng(2)
    for scale in (0.01, 0.1, 1.0, 10.0) * 30:
        w, b = rng.normal(size=4) * scale, rng.normal() * scale
        parts = w @ w / (2 * u.sum()) + np.maximum(1 - y * (X @ w + b), 0)
        assert (parts <= bound * (u @ parts) * (1 + 1e-9)).all()


@pytest.mark.parametrize(("variant", "parts"), [("systematic", 1), ("auto", 2)])
def test_masses__one_for_every_part_of_the_scores(variant: Any, parts: int) -> None:
    X, y = two_classes(400)
    construction, block = SVM(variant=variant), Block(X, np.ones(400), y)
    pilot = construction.finalize(
        construction.block_summary(block, None, stream(0, Stage.SUMMARIES)),
        stream(0, Stage.SETTLING),
    )
    local = construction.block_summary(block, pilot, stream(0, Stage.SUMMARIES))
    masses = construction.total_scores(local, pilot)
    assert masses.shape == (parts,)
    assert masses.sum() == pytest.approx(construction.scores(block, pilot).sum(), rel=0.2)
    assert construction.scores(block, pilot).shape[0] in (1, parts)


def test_scores__made_of_exact_cells_and_costs() -> None:
    X, y = two_classes(12_000)  # more than a pilot holds
    u = np.random.default_rng(3).random(12_000) + 0.5
    construction = SVM(lam=0.5, variant="systematic")
    cut = 5000
    rough = settled(
        construction, Block(X[:cut], u[:cut], y[:cut]), Block(X[cut:], u[cut:], y[cut:])
    )

    scores = construction.scores(Block(X, u, y), rough)[0]

    Z = X - rough.origin
    cells = np.empty(len(X), dtype=int)
    for code, label in enumerate((-1, 1)):
        own = np.flatnonzero(rough.owners == code)
        cells[y == label] = own[assign(Z[y == label], rough.centers[own])[0]]
    k = len(rough.centers)
    weights = np.array([u[cells == i].sum() for i in range(k)])
    means = np.array([u[cells == i] @ Z[cells == i] for i in range(k)])
    means /= weights[:, None]
    margins = y * (Z @ rough.coef[0] + rough.intercept[0])
    cost = rough.coef[0] @ rough.coef[0] / 2 + 0.5 * u @ np.maximum(1 - margins, 0)
    np.testing.assert_allclose(rough.weights, weights)
    np.testing.assert_allclose(rough.means, means, atol=1e-12)
    np.testing.assert_allclose(rough.cost, [cost])
    assert rough.opt <= cost
    squares = ((Z - means[cells]) ** 2).sum(axis=1)
    np.testing.assert_allclose(scores, u * lemma_2(squares, cells, weights, rough.opt, 0.5))
    assert construction.provenance(rough)["total_sensitivity"] == pytest.approx(
        scores.sum(), rel=0.02
    )
    assert k == 2 * math.ceil(math.log(12_000))


def test_lower_bound__all_scores_alike_and_no_row_above_one() -> None:
    """Lemma 1's instance: every row matters as much as any other."""
    X, y = (part.compute() for part in datasets.make_svm_lower_bound(10, dtype="float64"))
    construction = SVM(variant="systematic", n_clusters=1)
    scores = construction.scores(
        Block(X, np.ones(len(X)), y), settled(construction, Block(X, np.ones(len(X)), y))
    )[0]
    assert scores.max() < 1.3 * scores.min()
    # Their sum is above the number of rows, though no row has more than all of the cost.
    assert scores.sum() > 1.4 * len(X)
    coreset = build(X, y, size=50, method="svm", random_state=0)
    assert len(X) / 2 < coreset.provenance["total_sensitivity"] <= len(X)


# Reads and draws


@pytest.mark.parametrize("variant", ["auto", "systematic"])
def test_build__two_reads_then_the_draw(variant: Any) -> None:
    X, y = two_classes()
    both: tuple[tuple[Literal[1, 2], int], ...] = ((1, 2), (2, 3))
    for passes, reads in both:
        counting = CountingArray(X)
        coreset = build(
            counting,
            y,
            size=200,
            method=SVM(variant=variant),
            passes=passes,
            chunks=700,
            random_state=0,
        )
        assert (counting.reads == reads).all()
        assert coreset.provenance["passes"] == reads
        assert len(coreset) == 200
        np.testing.assert_array_equal(coreset.points, X[coreset.indices])
        np.testing.assert_array_equal(coreset.labels, y[coreset.indices])


def test_build__out_of_core_as_in_memory() -> None:
    X, y = two_classes()
    options: dict[str, Any] = {"size": 150, "method": "svm", "random_state": 3, "chunks": 1000}
    here = build(CountingArray(X), y, **options)
    lazy = build(
        da.from_array(X, chunks=(1000, 4)), da.from_array(y, chunks=1000), compute=False, **options
    )
    assert here.equals(lazy.compute(scheduler="threads"))
    assert here.equals(lazy.compute(scheduler="synchronous"))


def test_build__sorted_by_class_reads_no_block_twice() -> None:
    X, y = two_classes(6000)
    order = np.argsort(y, kind="stable")
    coreset = build(X[order], y[order], size=300, method="svm", chunks=500, random_state=0)
    assert coreset.provenance["blocks_read_again"] == 0


def test_scores__activity_counts_weights() -> None:
    X, y = two_classes(2000)
    u = np.random.default_rng(9).lognormal(size=2000)
    rough = settled(SVM(), Block(X, u, y))
    scores = SVM().scores(Block(X, u, y), rough)[1]
    rows = X - rough.origin
    margins = y * (rows @ rough.coef[0] + rough.intercept[0])
    lengths = np.sqrt((rows**2).sum(axis=1) + rough.radius**2)
    activity = u * lengths / (1 + np.exp(2 * (margins - 1)))
    np.testing.assert_allclose(scores, activity / (2 * activity.sum()), rtol=1e-9)


def test_default__better_than_uniform_and_than_algorithm_1() -> None:
    X, y = two_classes(20_000, 6)
    full = solve_svm(X, y.astype(float), np.ones(len(y)), tol=1e-7)

    def mean_error(size: int, **options: Any) -> float:
        errors = []
        for seed in range(4):
            coreset = build(X, y, size=size, random_state=seed, **options)
            assert coreset.labels is not None
            fit = solve_svm(coreset.points, coreset.labels.astype(float), coreset.weights)
            hinge = np.maximum(1 - y * (X @ fit.coef + fit.intercept), 0)
            errors.append((fit.coef @ fit.coef / 2 + hinge.sum()) / full.cost - 1)
        return float(np.mean(errors))

    paper: dict[str, Any] = {"sampling": "multinomial", "passes": 2}
    assert mean_error(30, method="svm") < 0.5 * mean_error(30, method="uniform", **paper)
    assert mean_error(1000, method="svm") < 0.25 * mean_error(
        1000, method=SVM(variant="paper"), **paper
    )


@pytest.mark.nightly
@pytest.mark.statistical
@pytest.mark.parametrize(("share", "size"), [(0.5, 41), (0.02, 60)])
def test_default__rows_that_a_plane_separates_are_as_good_as_uniform_ones(
    share: float, size: int
) -> None:
    """By the activity as well they cost 1.5 to 3 times as much more than the best classifier."""
    rng = np.random.default_rng(20)
    X = rng.normal(size=(10_000, 20))
    z = X @ rng.normal(size=20) / 3.0 + 0.7 * rng.normal(size=10_000)
    y = np.where(z > np.quantile(z, 1.0 - share), 1.0, -1.0)
    least = solve_svm(X, y, np.ones(len(y)), tol=1e-4).cost

    def excess(rows: Any, signs: Any, weights: Any) -> float:
        fit = solve_svm(rows, signs, weights)
        losses = np.maximum(1.0 - y * (X @ fit.coef + fit.intercept), 0.0)
        return float((fit.coef @ fit.coef / 2 + losses.sum()) / least - 1.0)

    drawn, uniform = [], []
    for seed in range(6):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CoresetWarning)  # all are poor
            coreset = build(X, y, size=size, method="svm", random_state=seed)
        assert coreset.labels is not None
        drawn.append(excess(coreset.points, coreset.labels, coreset.weights))
        rows = rng.choice(len(y), size, replace=False)
        while len(np.unique(y[rows])) < 2:
            rows = rng.choice(len(y), size, replace=False)
        uniform.append(excess(X[rows], y[rows], np.full(size, len(y) / size)))
    assert np.mean(drawn) < 1.1 * np.mean(uniform)


def test_final_scores__bounds_alone_below_as_many_rows_as_a_plane_separates() -> None:
    """Of 2 columns and the intercept: 2.5 rows for each, more with a rare class."""
    rng = np.random.default_rng(0)
    X, y = two_classes(4_000, 2)
    rare = np.where(rng.random(len(y)) < 0.02, 1, -1)
    for labels, limit in ((y, 8), (rare, 13)):
        block = Block(X, np.ones(len(X)), labels)
        summary = settled(SVM(), block)
        method, scores = SVM(), np.ones(len(X))
        for size, same in ((limit - 1, False), (limit, True), (2, False)):
            found = method.design.final_scores(block, scores, scores, summary, size)
            assert np.array_equal(found, scores) == same
        bound = SVM(variant="calibrated").row_scores(block, summary)
        found = method.design.final_scores(block, scores, scores, summary, 2)
        np.testing.assert_allclose(found, bound, rtol=1e-12)
        apart = SVM(variant="pilot_mix").design.final_scores(block, scores, scores, summary, 2)
        assert np.array_equal(apart, scores)


# Labels


@pytest.mark.parametrize(
    "labels", [(0, 1), (-1.0, 1.0), (False, True), ("no", "yes"), (b"n", b"y")]
)
def test_labels__any_two_values(labels: tuple[Any, Any]) -> None:
    X, y = two_classes(800)
    named = np.array([labels[0] if one < 0 else labels[1] for one in y])
    plain = build(X, y, size=60, method="svm", random_state=0)
    coreset = build(X, named, size=60, method="svm", random_state=0)
    np.testing.assert_array_equal(coreset.indices, plain.indices)
    np.testing.assert_array_equal(coreset.weights, plain.weights)


def test_labels__more_classes_share_their_draws() -> None:
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b", "c", "d"], 4000, p=[0.6, 0.25, 0.1, 0.05])
    X = (
        rng.normal(size=(4000, 2))
        + np.array([[0, 0], [3, 0], [0, 3], [3, 3]])[np.searchsorted(["a", "b", "c", "d"], y)]
    )
    coreset = build(X, y, size=400, method="svm", random_state=0)
    assert len(coreset.provenance["rough_cost"]) == 4
    for label in "abcd":
        sign = np.where(y == label, 1.0, -1.0)
        full = solve_svm(X, sign, np.ones(4000))
        fit = solve_svm(
            coreset.points, np.where(coreset.labels == label, 1.0, -1.0), coreset.weights
        )
        hinge = np.maximum(1 - sign * (X @ fit.coef + fit.intercept), 0).sum()
        assert fit.coef @ fit.coef / 2 + hinge < 1.05 * full.cost


@pytest.mark.parametrize("intercept", [True, False])
def test_separable__and_one_class_in_a_block(intercept: bool) -> None:
    X = np.concatenate([np.full((300, 2), -5.0), np.full((300, 2), 5.0)])
    X += np.random.default_rng(0).normal(size=X.shape)
    y = np.repeat([0, 1], 300)
    coreset = build(X, y, size=40, method=SVM(intercept=intercept), chunks=150, random_state=0)
    assert np.isfinite(coreset.weights).all()
    assert set(coreset.labels.tolist() if coreset.labels is not None else ()) == {0, 1}


def test_reducer__a_part_with_one_class_only() -> None:
    X, y = two_classes(2000)
    order = np.argsort(y, kind="stable")
    coreset = build(
        X[order], y[order], size=200, method="svm", strategy="tree", chunks=400, random_state=0
    )
    assert coreset.weights.sum() == pytest.approx(2000, rel=1e-6)


# What bad input gets


def test_svm__more_clusters_than_rows_of_a_class() -> None:
    X, y = two_classes(200)
    few = np.concatenate([np.flatnonzero(y < 0), np.flatnonzero(y > 0)[:2]])
    coreset = build(X[few], y[few], size=40, method=SVM(n_clusters=30), random_state=0)
    assert coreset.provenance["cells"] <= 32


def test_svm__is_public() -> None:
    assert daskcoreset.SVM is SVM
