"""Coresets for mixtures: bounds, leverages by the formula, and rows that bounds alone leave out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import daskcoreset
from daskcoreset import Draw, MergeReduce, Mixture, StrongKMeans
from daskcoreset.core.block import Block
from daskcoreset.core.sampling import inclusion_probabilities, systematic
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.sensitivities import mixture_pilot as pilots
from daskcoreset.sensitivities.mixture import MixtureDesign
from daskcoreset.solvers.kmeans import Clusters
from daskcoreset.solvers.mixture.em import fit_mixture
from daskcoreset.solvers.mixture.model import (
    MixtureModel,
    mixture_from_covariances,
    responsibilities,
    score_samples,
)
from daskcoreset.testing import SensitivityContract
from tests.tools.bregman import POSITIVE, WEIGHTS, settled


def test_scores__of_strong_kmeans() -> None:
    block = Block(POSITIVE, WEIGHTS)
    found, expected = Mixture(4), StrongKMeans(4)
    for_mixture = found.scores(block, settled(found, block)[1])
    np.testing.assert_array_equal(for_mixture, expected.scores(block, settled(expected, block)[1]))
    assert found.provenance(settled(found, block)[1])["rough_centers"] == 4


class TestMixture(SensitivityContract):
    def construction(self) -> Mixture:
        return Mixture(3)


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


def clusters_of(points: AnyArray, weights: FloatArray, k: int) -> Clusters:
    found = Mixture(k)
    return settled(found, Block(points, weights))[1]  # type: ignore[no-any-return]


def uneven(n: int, seed: int = 0) -> FloatArray:
    rng = np.random.default_rng(seed)
    widths = rng.uniform(0.2, 3.0, size=(6, 3))
    which = rng.integers(6, size=n)
    return np.asarray(
        8.0 * rng.normal(size=(6, 3))[which] + widths[which] * rng.normal(size=(n, 3))
    )


def final(points: Any, k: int = 6, *, first: Any = None) -> tuple[FloatArray, FloatArray]:
    """Bounds and final scores of candidates, each scaled to add up to one draw."""
    n = points.shape[0]
    weights = np.random.default_rng(3).uniform(0.5, 2.0, n)
    first = np.full(n, 0.5) if first is None else first
    construction, rows = Mixture(k), Block(points, weights)
    summary = clusters_of(points, weights, k)
    scores = construction.row_scores(rows, summary)
    mixed = construction.design.final_scores(rows, first, scores, summary, 100)
    return scores / (scores / first).sum(), mixed / (mixed / first).sum()


def test_final_scores__half_by_bounds_and_half_by_leverages() -> None:
    points = uneven(5000)
    first = np.random.default_rng(5).uniform(0.1, 1.0, len(points))
    bounds, mixed = final(points, first=first)
    by_pull = 2.0 * mixed - bounds
    assert (by_pull > 0.0).all()  # so that no row has less than half its chance by the bounds
    assert (by_pull / first).sum() == pytest.approx(1.0)
    weights = np.random.default_rng(3).uniform(0.5, 2.0, len(points))
    fit = fit_mixture(points, weights / first, n_components=6, random_state=0, n_init=4)
    expected = weights * np.sqrt(pilots.leverages(fit.mixture, points))
    expected /= (expected / first).sum()
    # The pilot is another mixture than that of all candidates, by chance and by its few steps.
    assert np.corrcoef(np.log(by_pull / weights), np.log(expected / weights))[0, 1] > 0.7
    assert responsibilities(fit.mixture, points).max(axis=1).mean() > 0.9  # or it says nothing


def test_final_scores__neither_offsets_nor_units_nor_zeros_stored_matter() -> None:
    points = uneven(4000)
    scaled = (points + 1e4) * np.array([1e-3, 1.0, 1e3])
    weights = np.random.default_rng(3).uniform(0.5, 2.0, len(points))
    summary = clusters_of(points, weights, 6)
    moved = Clusters(
        (summary.centers + 1e4) * np.array([1e-3, 1.0, 1e3]), summary.weights, summary.costs
    )
    design, first, scores = Mixture(6).design, np.ones(4000), np.ones(4000)
    expected = design.final_scores(Block(points, weights), first, scores, summary, 100)
    assert expected.std() > 0.1 * expected.mean()
    stored = Block(sp.csr_array(points), weights)
    found = design.final_scores(stored, first, scores, summary, 100)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    # The pilot starts from clusters of Euclidean distances, and ends near where it would have.
    other = design.final_scores(Block(scaled, weights), first, scores, moved, 100)
    assert np.corrcoef(np.log(other), np.log(expected))[0, 1] > 0.8


@pytest.mark.parametrize(
    ("points", "k"),
    [
        pytest.param(np.random.default_rng(0).normal(size=(300, 80)), 20, id="too few rows"),
        pytest.param(np.random.default_rng(0).normal(size=(500, 1)), 300, id="too many components"),
    ],
)
def test_final_scores__bounds_alone_where_no_pilot_can_be_fitted(points: AnyArray, k: int) -> None:
    bounds, mixed = final(points, k)
    np.testing.assert_array_equal(mixed, bounds)


@pytest.mark.parametrize(
    "points",
    [
        pytest.param(np.repeat(np.eye(3), [2998, 1, 1], axis=0), id="three distinct rows"),
        pytest.param(np.c_[uneven(3000)[:, :2], np.full(3000, 7.0)], id="a constant column"),
        pytest.param(np.r_[uneven(2999), [[1e9, -1e9, 1e9]]], id="one row far out"),
        pytest.param(uneven(3000).astype(np.float32) * np.float32(1e15), id="large float32"),
    ],
)
def test_final_scores__finite_and_at_least_half_the_bounds(points: AnyArray) -> None:
    bounds, mixed = final(points, 3)
    assert np.isfinite(mixed).all()
    assert (mixed >= 0.4999 * bounds).all()


# --- weights by the derivatives at the pilot --------------------------------------------------


def drawn(points: Any, size: int, k: int = 6) -> dict[str, Any]:
    """Arguments of `MixtureDesign.adjust`: every row a candidate for half of its like."""
    n = points.shape[0]
    rows = Block(points, np.random.default_rng(3).uniform(0.5, 2.0, n))
    summary = clusters_of(points, rows.weights, k)
    construction, first = Mixture(k), np.full(n, 0.5)
    scores = construction.row_scores(rows, summary)
    scores = construction.design.final_scores(rows, first, scores, summary, size)
    second = inclusion_probabilities(scores / first, size)
    chosen = systematic(second, np.random.default_rng(0))
    weights = rows.weights[chosen] / (first[chosen] * second[chosen])
    found = {"rows": rows, "first": first, "second": second, "chosen": chosen}
    return found | {"weights": weights, "summary": summary}


def shortfall(given: dict[str, Any], weights: FloatArray) -> float:
    """How far derivatives at the pilot add up to others than over all candidates."""
    rows = given["rows"]
    pilot = pilots.pilot_of(rows, given["first"], given["summary"])
    assert pilot is not None
    found = pilots.derivatives(pilot.mixture, pilot.standardised(rows, slice(None)))
    total = (rows.weights / given["first"]) @ found
    return float(np.linalg.norm(total - weights @ found[given["chosen"]]))


@pytest.mark.parametrize("size", [50, 300])
def test_adjust__derivatives_are_nearer_to_those_of_all_candidates(size: int) -> None:
    """Six components of three columns have 60 derivatives: more than the rows drawn, and fewer."""
    given = drawn(uneven(12_000), size)
    adjusted = MixtureDesign().adjust(**given)
    assert shortfall(given, adjusted) < 0.8 * shortfall(given, given["weights"])
    ratio = adjusted / given["weights"]
    assert ratio.min() >= 0.5
    assert ratio.max() <= 2.0


@pytest.mark.parametrize(
    ("n", "size"),
    [
        pytest.param(9000, 300, id="few candidates"),
        pytest.param(12_000, 600, id="rows enough for the derivatives"),
    ],
)
def test_adjust__weights_stay_where_there_is_nothing_to_gain(n: int, size: int) -> None:
    given = drawn(uneven(n), size)
    np.testing.assert_array_equal(MixtureDesign().adjust(**given), given["weights"])


@pytest.mark.parametrize(
    "points",
    [
        pytest.param(np.repeat(np.eye(3), [11_998, 1, 1], axis=0), id="three distinct rows"),
        pytest.param(np.r_[uneven(11_900), np.full((100, 3), 1e150)], id="copies far out"),
        pytest.param(uneven(12_000).astype(np.float32) * np.float32(1e15), id="large float32"),
        pytest.param(
            np.random.default_rng(0).standard_cauchy((12_000, 3)) ** 3, id="hardly any moments"
        ),
    ],
)
def test_adjust__within_a_factor_of_two_and_certain_rows_as_they_are(points: AnyArray) -> None:
    given = drawn(points, 150, k=3)
    adjusted = MixtureDesign().adjust(**given)
    ratio = adjusted / given["weights"]
    assert np.isfinite(ratio).all()
    assert ratio.min() >= 0.4999
    assert ratio.max() <= 2.0001
    certain = given["second"][given["chosen"]] == 1.0
    np.testing.assert_array_equal(ratio[certain], 1.0)


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
