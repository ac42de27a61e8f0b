import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import zarr

import daskcoreset as dc
from daskcoreset import Coreset, StrongBregman, StrongKMeans
from daskcoreset.core.blocks import Block
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.estimators import (
    CoresetBregman,
    CoresetGaussianMixture,
    CoresetKMeans,
)
from daskcoreset.objectives import (
    Distortion,
)
from tests.pairs import few

RNG = np.random.default_rng(0)

X = np.vstack([RNG.gamma(2.0, size=(30_000, 3)), 500.0 + RNG.random((5, 3))])

CENTROIDS: dict[str, Any] = {"representatives": "centroids"}

STRONG = StrongKMeans(8, **CENTROIDS)


@pytest.fixture(scope="module")
def coreset() -> Coreset:
    return dc.build(X, size=200, method=STRONG, random_state=0)


def by_the_formula(coreset: Coreset, q: Any) -> float:
    """Return the cost of centers on centroids, read off the formula."""
    at_points = ((coreset.points[:, None] - q) ** 2).sum(axis=2)
    rows: Any = coreset.cell_rows
    at_rows = ((rows.points[:, None] - q) ** 2).sum(axis=2)
    own = at_rows[np.arange(len(rows)), at_points.argmin(axis=1)]
    cost = coreset.weights @ at_points.min(axis=1) + coreset.constant
    return float(cost - rows.weights @ (own - at_rows.min(axis=1)))


def test_audit__costs_have_the_constant(coreset: Coreset) -> None:
    audit = coreset.audit(X, random_state=0)
    assert audit.differences.min() > -0.03
    q = X[::4000]
    given = coreset.audit(X, solutions=[q])
    assert given.on_coreset[0] == pytest.approx(by_the_formula(coreset, q))
    assert given.on_coreset[0] == coreset.cost(q)
    assert dc.metrics.distortion(coreset, X, q) == pytest.approx(given.distortion)
    with pytest.raises(InvalidInputError, match="say nothing"):
        coreset.audit(X, objective=Distortion(8, "kl"))
    assert coreset.audit(X, objective=Distortion(8), solutions=[q]).distortion < 1.0


@few("divergence", ["euclidean", "kl"], always=1)
def test_cost__of_fixed_centers_is_unbiased(divergence: str) -> None:
    """Z-tests over 200 builds that draw all rows; each fails by chance once in 15,000."""
    rng = np.random.default_rng(7)
    rows, weights = rng.gamma(2.0, size=(2000, 3)) + 0.1, rng.gamma(1.0, size=2000) + 0.01
    rows[:3] *= 40.0  # a few rows with much of the cost
    others = [rows[:5], rows[5:205], rng.gamma(2.0, size=(20, 3)) + 0.1]
    method: Any = STRONG if divergence == "euclidean" else StrongBregman(8, divergence, **CENTROIDS)
    block = Block(rows, weights)
    exact = np.array([method.objective.cost(block, solution) for solution in others])
    found, without = [], []
    for seed in range(200):
        few = dc.build(rows, size=40, method=method, sample_weight=weights, random_state=seed)
        found.append(few.cost(others) / exact - 1.0)
        without.append(replace(few, cell_rows=None).cost(others) / exact - 1.0)
    errors = np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    assert (errors > 0.0).all()
    assert (abs(np.mean(found, axis=0)) < 4.0 * errors).all()
    assert (np.min(without, axis=0)[1:] > 20.0 * errors[1:]).all()


def test_coreset__keeps_the_constant(coreset: Coreset, tmp_path: Any) -> None:
    assert pickle.loads(pickle.dumps(coreset)).equals(coreset)
    store = zarr.storage.MemoryStore()
    coreset.to_zarr(store)
    assert Coreset.from_zarr(store).equals(coreset)
    assert coreset.to_dataframe().attrs["constant"] == coreset.constant
    dataset = coreset.to_xarray()
    assert dataset.attrs["constant"] == coreset.constant
    np.testing.assert_array_equal(dataset["cell_points"], coreset.cell_rows.points)  # type: ignore[union-attr]
    portfolio = dc.build_many(
        X, methods={"one": STRONG, "two": "uniform"}, sizes=200, random_state=0
    )
    assert portfolio["one"].equals(coreset)
    portfolio.to_zarr(tmp_path / "both.zarr")
    assert dc.Portfolio.from_zarr(tmp_path / "both.zarr")["one"].equals(coreset)
    for wrong in (-1.0, np.inf, np.nan, "1"):
        with pytest.raises(InvalidInputError, match="constant"):
            Coreset(np.ones((1, 2)), np.ones(1), np.zeros(1, int), constant=wrong)  # type: ignore[arg-type]


def test_merge__adds_constants_of_one_cost(coreset: Coreset) -> None:
    rows = dc.build(X, size=300, method=StrongKMeans(8), random_state=1)
    both = coreset.merge(rows, coreset, offsets=[0, len(X), 2 * len(X)])
    assert both.constant == pytest.approx(2 * coreset.constant)
    assert both.of_centroids
    q = X[::3000]
    assert both.cost(q) == pytest.approx(2 * coreset.cost(q) + rows.cost(q))
    assert both.cell_rows.indices.max() > 2 * len(X)  # type: ignore[union-attr]
    audit = both.audit(np.vstack([X, X, X]), n_clusters=8, random_state=0)
    assert audit.distortion < 0.3
    other = dc.build(X, size=300, method=StrongKMeans(9), random_state=1)
    assert coreset.merge(other).provenance["objective"]["n_clusters"] is None
    for wrong in ("uniform", StrongBregman(8, "kl")):
        part = dc.build(X, size=30, method=wrong, random_state=1)
        if wrong == "uniform":
            coreset.merge(part)  # for the same cost
        else:
            with pytest.raises(InvalidInputError, match="different costs"):
                coreset.merge(part)


def test_wrong_uses__are_refused(coreset: Coreset) -> None:
    with pytest.raises(InvalidInputError, match="representatives must be"):
        StrongKMeans(3, representatives="means")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="precision"):
        StrongBregman(3, "mahalanobis", **CENTROIDS)
    with pytest.raises(InvalidInputError, match="no labels"):
        dc.build(X, np.zeros(len(X)), size=100, method=STRONG)
    with pytest.raises(InvalidInputError, match="nodes of a tree"):
        dc.build(X, size=100, method=STRONG, draw=dc.MergeReduce())
    with pytest.raises(InvalidInputError, match="nodes of a tree"):
        dc.CoresetStream(size=100, method=STRONG)
    with pytest.raises(InvalidInputError, match="compares coresets of rows"):
        dc.grow(X, method=STRONG)
    for model in (CoresetGaussianMixture(2), CoresetBregman(2, soft=True)):
        with pytest.raises(InvalidInputError, match="lost the spread"):
            model.fit(coreset)
    with pytest.raises(InvalidInputError, match="gives rows only"):
        CoresetKMeans(2, method="uniform", representatives="centroids").fit(X)


def test_coreset_kmeans__costs_less_of_centroids() -> None:
    rng = np.random.default_rng(5)
    rows = np.exp(rng.normal(size=(40_000, 10)))
    options: dict[str, Any] = {"size": 400, "n_init": 1}
    costs: dict[str, list[float]] = {"auto": [], "rows": []}
    for seed in range(3):
        for kind, found in costs.items():
            model = CoresetKMeans(40, representatives=kind, random_state=seed, **options)  # type: ignore[arg-type]
            found.append(model.fit(rows).inertia_)
            off = model.coreset_inertia_ / model.inertia_ - 1
            assert off > -0.02 if kind == "auto" else off < 0.0
    assert np.mean(costs["auto"]) < 0.96 * np.mean(costs["rows"])
