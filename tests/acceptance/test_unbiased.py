"""Weights are u / (m q) by the papers' formulas, and every weighted cost is unbiased."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

from tests.acceptance import face
from tests.acceptance.tools import readings as read
from tests.acceptance.tools.plain import PlainLogistic, PlainSVM

INDEPENDENT = face.Draw(sampling="multinomial", passes=2)


def data(n: int = 300, seed: int = 1) -> tuple[Any, Any, Any]:
    """Positive rows in three far clusters of unlike sizes, cells, and uneven weights."""
    rng = np.random.default_rng(seed)
    cells = np.arange(n) % 10
    cells = np.where(cells < 6, 0, np.where(cells < 9, 1, 2))
    centers = np.array([[20.0, 20.0, 20.0], [60.0, 20.0, 35.0], [30.0, 90.0, 20.0]])
    X = centers[cells] + rng.normal(size=(n, 3)) * np.array([1.0, 2.0, 0.5])
    return X, rng.uniform(0.2, 3.0, size=n), cells


def kl(X: Any, u: Any) -> Any:
    """By the quadratic distance that dominates Kullback-Leibler: 1 / (2 min) for each column."""
    return read.half_and_half(u, ((X - read.mean_of(X, u)) ** 2 / (2 * X.min(axis=0))).sum(axis=1))


def itakura_saito(X: Any, u: Any) -> Any:
    """Likewise 1 / (2 min ** 2)."""
    gaps = (X - read.mean_of(X, u)) ** 2 / (2 * X.min(axis=0) ** 2)
    return read.half_and_half(u, gaps.sum(axis=1))


def mahalanobis(X: Any, u: Any) -> Any:
    """By the inverse of the covariance."""
    gaps = X - read.mean_of(X, u)
    precision = np.linalg.inv(read.scatter_of(X, u) / u.sum())
    return read.half_and_half(u, np.einsum("ij,jk,ik->i", gaps, precision, gaps))


def strong(X: Any, u: Any) -> Any:
    """By the cells of the three clusters, which any seeding finds."""
    return read.strong(X, u, data(len(X))[2])


def constant_target(X: Any, u: Any) -> Any:
    """By leverages of (x, 1, y) with a target that X explains."""
    rows = np.column_stack([X, targets(X)])
    ridge = 1e-6 * np.diag(read.scatter_of(rows, u))
    lever = 1 / u.sum() + read.leverages(rows - read.mean_of(rows, u), u, ridge)
    return u * lever / (u @ lever)


def targets(X: Any) -> Any:
    """Depend on the rows, and on noise."""
    noise = np.random.default_rng(0).normal(size=len(X))
    return X @ [1.0, -2.0, 0.5] + noise


CLOSED: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "uniform": (face.Uniform(), read.uniform),
    "lightweight": (face.Lightweight(), read.lightweight),
    "kmeans": (face.StrongKMeans(3), strong),
    "kl": (face.LightweightBregman("kl"), kl),
    "itakura_saito": (face.LightweightBregman("itakura_saito"), itakura_saito),
    "mahalanobis": (face.LightweightBregman("mahalanobis"), mahalanobis),
    "strong_bregman": (face.StrongBregman(3), strong),
    "least_squares": (face.LeastSquares(), constant_target),
}


def labels_for(name: str, X: Any) -> Any:
    return targets(X) if name == "least_squares" else None


@pytest.mark.parametrize("size", [12, 150])
@pytest.mark.parametrize("name", CLOSED)
def test_build__weights_of_a_block_are_u_over_inclusion(name: str, size: int) -> None:
    """Also with rows so heavy that they are certain, and keep their own weight."""
    method, probability = CLOSED[name]
    X, u, _ = data()
    X[0] += 6.0
    u[7] = 60.0
    c = face.build(
        X, labels_for(name, X), sample_weight=u, method=method, size=size, random_state=0
    )
    p = read.inclusion(probability(X, u), size)
    assert len(c) == size
    assert np.allclose(c.weights, (u / p)[c.indices], rtol=1e-6)
    assert np.array_equal(c.points, X[c.indices])
    assert (np.diff(c.indices) > 0).all()


@pytest.mark.parametrize("name", CLOSED)
def test_build__independent_draws_count_times_u_over_m_q(name: str) -> None:
    method, probability = CLOSED[name]
    X, u, _ = data()
    y = labels_for(name, X)
    c = face.build(
        X, y, sample_weight=u, method=method, size=80, draw=INDEPENDENT, chunks=90, random_state=0
    )
    counts = c.weights * (80 * probability(X, u) / u)[c.indices]
    assert np.allclose(counts, counts.round(), rtol=1e-5)
    assert counts.round().sum() == 80
    assert counts.round().max() >= 2


MODES: dict[str, Any] = {
    "systematic": face.Draw(),
    "two reads": face.Draw(passes=2),
    "independent": INDEPENDENT,
}


@pytest.mark.parametrize("mode", MODES)
def test_build__rows_come_as_often_as_their_probability_says(mode: str) -> None:
    """Over 250 seeds, each of 40 rows, and each block of them, within 4.5 standard errors."""
    rng = np.random.default_rng(5)
    X, u = rng.normal(size=(40, 2)) ** 3, rng.uniform(0.5, 2.0, size=40)
    q = read.lightweight(X, u)
    counts = np.zeros((250, 40))
    for seed in range(250):
        c = face.build(
            X, sample_weight=u, size=8, random_state=seed, draw=MODES[mode], chunks=20,
        )  # fmt: skip
        counts[seed, c.indices] = c.weights * (8 * q / u)[c.indices]
    if MODES[mode].sampling == "systematic":
        p = read.inclusion(q, 8)
        assert np.isin(counts.round(6), np.append((8 * q / p).round(6), 0.0)).all()
        drawn = counts > 0
        assert (drawn.sum(axis=1) == 8).all()
        assert np.abs(read.z_score(drawn, p)).max() < 4.5
        # A fixed number from every stretch of rows that are alike: less than by chance.
        assert (drawn.var(axis=0).sum() > drawn.sum(axis=1).var()).all()
    assert np.abs(read.z_score(counts, 8 * q)).max() < 4.5
    total = (counts / (8 * q / u)).sum(axis=1)
    assert abs(read.z_score(total, u.sum())) < 4.5


def long_blocks(order: str) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30_000, 3)) * np.exp(rng.normal(size=30_000))[:, np.newaxis]
    if order == "sorted":
        X = X[np.argsort((X**2).sum(axis=1))]
    u = rng.uniform(0.5, 1.5, size=len(X))
    return X, u, [10_000, 15_000, 5_000]


@pytest.mark.parametrize("order", ["mixed", "sorted"])
@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("name", ["uniform", "lightweight"])
def test_build__candidates_of_long_blocks_leave_weights_in_proportion(
    name: str, passes: Any, order: str
) -> None:
    """The factor of u / (m q) differs from one only by what a sample of candidates errs."""
    X, u, chunks = long_blocks(order)
    method, probability = CLOSED[name]
    rows = da.from_array(X, chunks=(chunks, 3))
    weights = da.from_array(u, chunks=(chunks,))
    c = face.build(
        rows, sample_weight=weights, method=method, size=400, random_state=0,
        draw=face.Draw(passes=passes),
    )  # fmt: skip
    q = probability(X, u)
    p = read.inclusion(q, 400)
    factors = c.weights * (p / u)[c.indices]
    sure = p[c.indices] > 0.99
    assert np.ptp(factors[~sure]) < 1e-6
    assert factors[~sure][0] == pytest.approx(1.0, abs=0.02)
    assert len(c) == 400
    assert c.provenance["blocks_read_again"] == 0
    starts = np.append(0, np.cumsum(chunks))
    found = np.histogram(c.indices, starts)[0]
    wanted = np.add.reduceat(p, starts[:-1])
    assert np.abs(found - wanted).max() < 45
    assert np.array_equal(c.points, X[c.indices])


@pytest.mark.parametrize("heavy", [2, 1])
def test_build__block_with_too_few_candidates_is_read_again(heavy: int) -> None:
    """A block offers candidates by its rows, and the last one holds 0.55 of the scores."""
    X, u, _ = long_blocks("mixed")
    chunks = [15_000, 12_000, 3_000]
    edges = np.cumsum([0, *chunks])
    X[edges[heavy] : edges[heavy] + 3_000] *= 20.0
    c = face.build(da.from_array(X, chunks=(chunks, 3)), sample_weight=u, size=6000, random_state=0)
    p = read.inclusion(read.lightweight(X, u), 6000)
    factors = c.weights * (p / u)[c.indices]
    assert c.provenance["blocks_read_again"] == (heavy == 2)
    assert len(c) == 6000
    light = p[c.indices] < 0.9
    assert np.ptp(factors[light]) < 1e-6
    assert factors[light][0] == pytest.approx(1.0, abs=0.01)


def test_build__candidates_come_by_the_scores_of_their_block() -> None:
    """Row numbers of long blocks over seeds: light and heavy rows as often as q says."""
    X, u, chunks = long_blocks("mixed")
    rows = da.from_array(X, chunks=(chunks, 3))
    q = read.lightweight(X, u)
    groups = np.digitize(q, np.quantile(q, [0.25, 0.5, 0.75, 0.97]))
    found = []
    for seed in range(25):
        c = face.build(rows, sample_weight=u, size=1000, random_state=seed)
        found.append(np.bincount(groups[c.indices], minlength=5))
    wanted = np.bincount(groups, read.inclusion(q, 1000))
    assert np.abs(read.z_score(np.array(found), wanted)).max() < 4.5


def rows_with_labels() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(11)
    X = np.abs(rng.normal(size=(240, 3)) + 3.0 * rng.integers(0, 2, (240, 1))) + 0.1
    y = (X[:, 0] + rng.normal(size=240) > 2.0).astype(np.int64)
    return X, y, rng.uniform(0.3, 2.0, size=240)


METHODS: dict[str, tuple[Any, bool]] = {
    "uniform": (face.Uniform(), False),
    "lightweight": (face.Lightweight(), False),
    "kmeans": (face.StrongKMeans(4), False),
    "kl": (face.LightweightBregman("kl"), False),
    "strong_bregman": (face.StrongBregman(3, "itakura_saito"), False),
    "mahalanobis": (face.StrongBregman(3, "mahalanobis"), False),
    "logistic": (PlainLogistic(), True),
    "svm": (PlainSVM(), True),
    "svm as proved": (face.SVM(variant="paper"), True),
    "least_squares": (face.LeastSquares(), True),
}

PAIRS = [
    (name, mode)
    for i, name in enumerate(METHODS)
    for j, mode in enumerate(("systematic", "independent", "tree", "stream"))
    if (i + j) % 3 == 0 or name == "lightweight"
]


def built(name: str, mode: str, seed: int) -> face.Coreset:
    X, y, u = rows_with_labels()
    method, labelled = METHODS[name]
    if mode == "stream":
        stream = face.stream(method=method, size=40, leaf_size=100, random_state=seed)
        for start in range(0, 240, 50):
            part = slice(start, start + 50)
            stream.partial_fit(X[part], y[part] if labelled else None, u[part])
        return stream.coreset()
    draw = {"tree": face.MergeReduce(split_every=2)}.get(mode) or MODES[mode]
    if mode == "systematic" and getattr(method, "n_folds", 1) > 1:
        draw = face.Draw(passes=2)
    labels = y if labelled else None
    return face.build(
        X, labels, sample_weight=u, method=method, size=40, chunks=60, random_state=seed, draw=draw
    )


@pytest.mark.parametrize(("name", "mode"), PAIRS)
def test_cost__is_unbiased_for_every_solution(name: str, mode: str) -> None:
    """Sums over 24 seeds of costs that know nothing of the draw, within 6 standard errors."""
    X, y, u = rows_with_labels()
    centers = np.array([[0.5, 1.0, 1.0], [4.0, 3.0, 4.0], [9.0, 0.5, 3.0]])

    def costs(P: Any, labels: Any, w: Any) -> list[float]:
        signs = np.where(labels > 0, 1.0, -1.0)
        margins = signs * (P @ [1.0, -0.4, 0.1] - 2.0)
        return [
            w.sum(),
            read.kmeans_cost(P, w, centers[:1]),
            read.kmeans_cost(P, w, centers),
            w @ np.maximum(1 - margins, 0),
            w @ np.log1p(np.exp(-margins)),
            w @ (labels - P[:, 0]) ** 2,
        ]

    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", face.CoresetWarning)
        for seed in range(24):
            c = built(name, mode, seed)
            found.append(costs(c.points, y[c.indices], c.weights))
    assert np.abs(read.z_score(np.array(found), np.array(costs(X, y, u)))).max() < 6


def test_build__normalised_weights_are_scaled_to_the_total() -> None:
    X, u, _ = data()
    plain = face.build(X, sample_weight=u, size=30, random_state=2)
    scaled = face.build(X, sample_weight=u, size=30, random_state=2, draw=face.Draw(normalize=True))
    assert np.array_equal(plain.indices, scaled.indices)
    assert np.allclose(scaled.weights, plain.weights * u.sum() / plain.weights.sum())
    assert plain.weights.sum() != pytest.approx(u.sum(), rel=1e-6)


@pytest.mark.parametrize("name", CLOSED)
def test_scores__of_blocks_add_up_to_what_summaries_say(name: str) -> None:
    """Scores by the formula, up to one factor; their sums known without another look."""
    method, probability = CLOSED[name]
    X, u, _ = data(120)
    u[5] = 0.0
    y = labels_for(name, X)
    parts = [slice(0, 50), slice(50, 50), slice(50, 120)]
    blocks = [face.block(X[at], u[at], None if y is None else y[at]) for at in parts]
    scores = face.scores(method, *blocks)
    q = probability(X, u) if name != "kmeans" else read.strong(X, u, data(120)[2])
    ratio = np.concatenate(scores)[u > 0] / q[u > 0]
    assert np.allclose(ratio, ratio[0], rtol=1e-5)
    assert np.concatenate(scores)[5] == 0.0
    if method.total_scores_exact:
        assert np.allclose(face.total_scores(method, *blocks), [s.sum() for s in scores])
    sparse = [face.block(sp.csr_array(X[at]), u[at], None if y is None else y[at]) for at in parts]
    assert np.allclose(np.concatenate(face.scores(method, *sparse)), np.concatenate(scores))
