"""Costs on coresets are right on average, and vary as much as theory says, or less.

The exact costs are computed from all rows. Seeds are fixed; a docstring states the
false-alarm rate of its test over the choice of seeds.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats

import daskcoreset
from daskcoreset.constructions.sampling import final_draw as root
from daskcoreset.core.typing import FloatArray, Sampling
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.sensitivities import Lightweight, Sensitivity, Uniform
from daskcoreset.testing import assert_mean, cut_rows, draw

METHODS: list[Sensitivity[Any]] = [Lightweight(), Uniform()]
MODES: list[tuple[Sampling, Literal[1, 2]]] = [
    ("systematic", 1),
    ("systematic", 2),
    ("multinomial", 1),
    ("multinomial", 2),
]

methods = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
modes = pytest.mark.parametrize(("sampling", "passes"), MODES)
weighting = pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])


def clusters() -> tuple[FloatArray, FloatArray, list[int]]:
    """Rows sorted by cluster, so that blocks differ; heavy-tailed weights; block sizes."""
    rng = np.random.default_rng(9)
    centers = np.array([[0.0, 0.0, 0.0], [8.0, 0.0, 0.0], [0.0, 30.0, 0.0]])
    X = np.repeat(centers, [240, 100, 20], axis=0) + rng.normal(size=(360, 3))
    u = rng.lognormal(size=360) * (rng.random(360) < 0.9)
    return X, u, [150, 0, 90, 1, 99, 20]


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


# --- means -------------------------------------------------------------------------------


@pytest.mark.statistical
@methods
@modes
@weighting
def test_cost__right_on_average_for_every_query(
    method: Sensitivity[Any],
    sampling: Sampling,
    passes: int,
    weighted: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """False-alarm rate: 1e-6 a case."""
    # With 20,000 candidates of 360 rows the first stage would hardly be a draw.
    monkeypatch.setattr(root, "MIN_CANDIDATES", 0)
    X, u, sizes = clusters()
    if not weighted:
        u = np.ones(len(X))
    queries = costs_by_row(X, u)
    blocks = cut_rows(X, sizes, u if weighted else None)
    estimates = estimates_of(
        blocks, queries, method, 30, sampling=sampling, passes=passes, n_seeds=600
    )

    assert_mean(estimates, queries @ u)


@pytest.mark.statistical
@modes
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_cost__right_on_average_under_an_offset_in_float32(
    sampling: Sampling, passes: int, form: Any
) -> None:
    """Squares of 1e6 hold no digit of the spread in float32. False-alarm rate: 1e-6 a case."""
    X, u, sizes = clusters()
    X32 = (X + 1e6).astype(np.float32)
    X = X32.astype(np.float64) - 1e6
    queries = costs_by_row(X, u)
    estimates = estimates_of(
        cut_rows(form(X32), sizes, u),
        queries,
        Lightweight(),
        30,
        sampling=sampling,
        passes=passes,
        n_seeds=200,
    )

    assert_mean(estimates, queries @ u)


@pytest.mark.statistical
@modes
def test_build__right_on_average(sampling: Sampling, passes: Literal[1, 2]) -> None:
    """The front door itself, on costs of the coreset's own rows. False-alarm rate: 1e-6."""
    X, u, _ = clusters()
    centers = X[[0, 250, 350]]
    estimates = np.empty((150, 2))
    for seed in range(len(estimates)):
        coreset = daskcoreset.build(
            X, size=30, sample_weight=u, sampling=sampling, passes=passes, random_state=seed
        )
        cost = daskcoreset.metrics.kmeans_cost(coreset.points, centers, coreset.weights)
        estimates[seed] = coreset.weights.sum(), cost

    exact = daskcoreset.metrics.kmeans_cost(X, centers, u)
    assert_mean(estimates, np.array([u.sum(), exact]))


# --- variances ---------------------------------------------------------------------------


@pytest.mark.statistical
@methods
@pytest.mark.parametrize("passes", [1, 2])
def test_multinomial__varies_as_theory_says(method: Sensitivity[Any], passes: int) -> None:
    r"""Variance of an estimate is :math:`(\sum u^2 f^2 / q - (\sum u f)^2) / m`, to the digit.

    False-alarm rate: 1e-6 a case.
    """
    X, u, sizes = clusters()
    queries = costs_by_row(X, u)
    exact = queries @ u
    q = u / u.sum()
    if method.name == "lightweight":
        v = u * ((X - np.average(X, axis=0, weights=u)) ** 2).sum(axis=1)
        q = (q + v / v.sum()) / 2
    counted = u > 0
    second = (queries[:, counted] ** 2) @ (u[counted] ** 2 / q[counted])
    estimates = estimates_of(
        cut_rows(X, sizes, u),
        queries,
        method,
        30,
        sampling="multinomial",
        passes=passes,
        n_seeds=1500,
    )

    # The total weight does not vary at all when rows are drawn by it.
    varying = second > exact**2 * (1 + 1e-9)
    squares = (estimates - exact)[:, varying] ** 2
    assert_mean(squares, ((second - exact**2) / 30)[varying])
    np.testing.assert_allclose(estimates[:, ~varying], np.tile(exact[~varying], (1500, 1)))


@pytest.mark.statistical
@methods
@pytest.mark.parametrize("passes", [1, 2])
@weighting
def test_systematic__varies_no_more_than_multinomial(
    method: Sensitivity[Any], passes: int, weighted: bool
) -> None:
    """Whatever the order of the candidates; with a good one it varies far less.

    An F-test of every query with half the degrees of freedom that the seeds give, which
    allows for tails heavier than normal. False-alarm rate: 1e-6 a case.
    """
    X, u, sizes = clusters()
    if not weighted:
        u = np.ones(len(X))
    queries = costs_by_row(X, u)
    blocks = cut_rows(X, sizes, u if weighted else None)
    n_seeds = 400
    systematic = estimates_of(
        blocks, queries, method, 30, sampling="systematic", passes=passes, n_seeds=n_seeds
    )
    multinomial = estimates_of(
        blocks, queries, method, 30, sampling="multinomial", passes=2, n_seeds=n_seeds
    )

    exact = queries @ u
    rounding = (1e-9 * exact) ** 2
    ratios = (systematic.var(axis=0) + rounding) / (multinomial.var(axis=0) + rounding)
    limit = scipy.stats.f.isf(1e-6 / len(queries), n_seeds / 2, n_seeds / 2)
    assert (ratios < limit).all(), f"variances by factors of {ratios}"
    # All but the total weight, which uniform draws have exactly: less in the geometric mean.
    assert np.exp(np.log(ratios[1:]).mean()) < 1.0


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


@pytest.mark.parametrize("sampling", ["systematic", "multinomial"])
@pytest.mark.parametrize("passes", [1, 2])
def test_normalize__total_weight_is_that_of_the_data(sampling: Any, passes: Any) -> None:
    rng = np.random.default_rng(0)
    X, u = rng.normal(size=(500, 2)), rng.random(500)
    options: dict[str, Any] = {"size": 40, "sampling": sampling, "passes": passes}

    plain = daskcoreset.build(X, sample_weight=u, random_state=3, **options)
    scaled = daskcoreset.build(X, sample_weight=u, random_state=3, normalize=True, **options)

    np.testing.assert_allclose(scaled.weights.sum(), u.sum(), rtol=1e-12)
    np.testing.assert_array_equal(scaled.indices, plain.indices)
    ratio = scaled.weights / plain.weights
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-12)
    assert scaled.provenance["normalized"]
    assert not plain.provenance["normalized"]
