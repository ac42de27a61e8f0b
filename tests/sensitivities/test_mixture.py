"""Coresets for mixtures: bounds, leverages by the formula, and rows that bounds alone leave out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import daskcoreset
from daskcoreset import Draw, MergeReduce, Mixture, StrongKMeans
from daskcoreset.core.block import Block
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.sensitivities import mixture_pilot as pilots
from daskcoreset.sensitivities.draw import Candidates
from daskcoreset.solvers.mixture.model import MixtureModel, mixture_from_covariances, score_samples
from tests.tools.bregman import POSITIVE, WEIGHTS, settled


def test_scores__of_strong_kmeans() -> None:
    block = Block(POSITIVE, WEIGHTS)
    found, expected = Mixture(4), StrongKMeans(4)
    for_mixture = found.scores(block, settled(found, block)[1])
    np.testing.assert_array_equal(for_mixture, expected.scores(block, settled(expected, block)[1]))
    assert found.provenance(settled(found, block)[1])["rough_centers"] == 4


# --- leverages ------------------------------------------------------------------------------


def some_mixture(kind: Any, seed: int = 0) -> MixtureModel:
    rng = np.random.default_rng(seed)
    k, d = 3, 2
    roots = rng.normal(size=(k, d, d))
    matrices = roots @ roots.swapaxes(1, 2) + np.eye(d)
    covariances = matrices if kind == "full" else np.diagonal(matrices, axis1=1, axis2=2)
    return mixture_from_covariances(
        kind, rng.dirichlet(np.ones(k)), 2.0 * rng.normal(size=(k, d)), covariances
    )


def derivatives(mixture: MixtureModel, rows: FloatArray) -> list[list[FloatArray]]:
    """Derivatives of the log-density of rows by weights, means, covariances; by differences."""
    step = 1e-5
    found = []
    for name in ("weights", "means", "covariances"):
        values = getattr(mixture, name)
        for component in range(len(values)):
            parts = []
            for place in np.ndindex(values[component].shape):
                sides = []
                for by in (step, -step):
                    moved = values.copy()
                    moved[(component, *place)] += by
                    if mixture.covariance_type == "full" and len(place) == 2:
                        # A symmetric matrix moves as one: each half of a pair by half.
                        moved = (moved + np.where(np.eye(2), moved, moved.swapaxes(1, 2))) / 2
                    given = {"weights": mixture.weights, "means": mixture.means}
                    given |= {"covariances": mixture.covariances, name: moved}
                    other = mixture_from_covariances(mixture.covariance_type, **given)
                    sides.append(score_samples(other, rows))
                parts.append((sides[0] - sides[1]) / (2 * step))
            found.append(np.stack(parts, axis=-1))
    k = len(mixture.weights)
    return [found[:k], found[k : 2 * k], found[2 * k :]]


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_leverages__of_derivatives_in_the_information_of_known_components(kind: Any) -> None:
    """With known components the information is 1 / pi, pi / S, and pi S^-1 x S^-1 / 2."""
    mixture = some_mixture(kind)
    rows = np.random.default_rng(1).normal(scale=2.0, size=(20, 2))
    by_weights, by_means, by_covariances = derivatives(mixture, rows)
    expected = np.zeros(len(rows))
    for k, share in enumerate(mixture.weights):
        matrix = mixture.covariances[k] if kind == "full" else np.diag(mixture.covariances[k])
        expected += share * by_weights[k][:, 0] ** 2
        expected += np.einsum("ni,ij,nj->n", by_means[k], matrix, by_means[k]) / share
        pulls = by_covariances[k]
        if kind == "full":
            pulls = pulls.reshape(-1, 2, 2)
            # tr(S G S G), G the derivative as a symmetric matrix.
            expected += 2.0 / share * np.einsum("nij,jk,nkl,li->n", pulls, matrix, pulls, matrix)
        else:
            expected += 2.0 / share * (pulls**2 @ np.diag(matrix) ** 2)
    np.testing.assert_allclose(pilots.leverages(mixture, rows), expected, rtol=1e-5)


def test_leverages__of_one_component_add_up_to_its_parameters() -> None:
    """Weighted by the density they are the number of parameters, 1 + d + d (d + 1) / 2."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200_000, 3))
    one = mixture_from_covariances("full", np.ones(1), np.zeros((1, 3)), np.eye(3)[np.newaxis])
    found = pilots.leverages(one, rows)
    assert abs(found.mean() - 10.0) < 5 * found.std() / np.sqrt(len(rows))


def test_leverages__far_out_and_without_weight_are_finite() -> None:
    mixture = mixture_from_covariances(
        "full", np.array([1.0, 0.0]), np.zeros((2, 1)), np.ones((2, 1, 1))
    )
    assert np.isfinite(pilots.leverages(mixture, np.array([[0.0], [1e90], [1e200]]))).all()


# --- the final draw -------------------------------------------------------------------------


def uneven(n: int, seed: int = 0) -> FloatArray:
    rng = np.random.default_rng(seed)
    widths = rng.uniform(0.2, 3.0, size=(6, 3))
    which = rng.integers(6, size=n)
    return np.asarray(
        8.0 * rng.normal(size=(6, 3))[which] + widths[which] * rng.normal(size=(n, 3))
    )


# --- weights by the derivatives at the pilot --------------------------------------------------


@pytest.mark.parametrize(
    "points",
    [
        pytest.param(np.repeat(np.eye(3), [2998, 1, 1], axis=0), id="three distinct rows"),
        pytest.param(np.c_[uneven(3000)[:, :2], np.full(3000, 7.0)], id="a constant column"),
        pytest.param(np.r_[uneven(2999), [[1e9, -1e9, 1e9]]], id="one row far out"),
        pytest.param(uneven(3000).astype(np.float32) * np.float32(1e15), id="large float32"),
    ],
)
def test_draw__has_at_least_half_the_probability_of_the_bounds(
    points: AnyArray,
) -> None:
    rows = Block(points, np.random.default_rng(3).uniform(0.5, 2.0, len(points)))
    summary = settled(Mixture(3), rows)[1]
    candidates = Candidates(rows, np.full(len(rows), 0.5))
    drawn = Mixture(3).draw(candidates, summary, 100, np.random.default_rng(0))
    bounds = Mixture(3).scores(rows, summary)
    assert np.isfinite(drawn.weights).all()
    assert (drawn.second >= 0.4999 * np.minimum(1.0, 100 * bounds / bounds.sum())).all()


@pytest.mark.parametrize("options", [{}, {"draw": MergeReduce()}, {"draw": Draw(passes=2)}])
def test_build__weights_add_up_to_those_of_all_rows(options: dict[str, Any]) -> None:
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 30_000)
    coreset = daskcoreset.build(
        uneven(30_000),
        sample_weight=weights,
        size=200,
        method=Mixture(4),
        random_state=0,
        **options,
    )
    assert coreset.weights.sum() == pytest.approx(weights.sum(), rel=1e-12)


def test_build__rows_that_are_certain_keep_their_weight() -> None:
    rng = np.random.default_rng(0)
    giants = 1e4 * rng.normal(size=(5, 3))
    X = np.vstack([rng.normal(size=(20_000, 3)), giants])
    coreset = daskcoreset.build(X, size=500, method=Mixture(4), random_state=0)
    certain = coreset.weights[coreset.indices >= 20_000]
    np.testing.assert_array_equal(certain, np.ones(5))
    assert coreset.weights.sum() == pytest.approx(20_005, rel=1e-12)
