import pickle
import threading
import warnings
from dataclasses import replace
from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
import zarr
from sklearn.cluster import KMeans
from sklearn.svm import LinearSVC

import daskcoreset as dc
from daskcoreset import Coreset, Lightweight, StrongBregman, StrongKMeans
from daskcoreset.core.blocks import Block
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.estimators import (
    CoresetBregman,
    CoresetEstimator,
    CoresetGaussianMixture,
    CoresetKMeans,
    coreset_search,
)
from daskcoreset.objectives import (
    Distortion,
    LinearClassifier,
    LinearCost,
    QuantizationError,
)
from daskcoreset.sensitivities.base import SamplingDesign
from daskcoreset.solvers import kmeans_numba
from daskcoreset.solvers.divergences import KullbackLeibler, SquaredMahalanobis, resolve_divergence
from tests.pairs import each

RNG = np.random.default_rng(0)

X = np.vstack([RNG.gamma(2.0, size=(30_000, 3)), 500.0 + RNG.random((5, 3))])

CENTROIDS: dict[str, Any] = {"representatives": "centroids"}

STRONG = StrongKMeans(8, **CENTROIDS)


class InThisOrder(StrongKMeans):
    """Rows drawn in the order of those that centroids stand for."""

    @property
    def design(self) -> SamplingDesign[Any]:
        """A design that has their order alone."""

        class Order(SamplingDesign[Any]):
            def order(self, rows: Block, summary: Any, inclusion: Any) -> Any:
                return STRONG.design.order(rows, summary, inclusion)

        return Order()


@pytest.fixture(scope="module")
def coreset() -> Coreset:
    return dc.build(X, size=200, method=STRONG, random_state=0)


def test_build__gives_centroids_of_more_rows(coreset: Coreset) -> None:
    assert 195 <= len(coreset) <= 200
    assert coreset.of_centroids
    assert "centroids" in repr(coreset)
    assert coreset.provenance["drawn"] == 20_000
    assert coreset.provenance["parameters"]["representatives"] == "centroids"
    assert "representatives" not in StrongKMeans(8).parameters()
    rows = dc.build(X, size=20_000, method=InThisOrder(8), random_state=0)
    np.testing.assert_allclose(coreset.weights @ coreset.points, rows.weights @ rows.points)
    q = np.ones((1, 3))
    one, other = (
        part.weights @ ((part.points - q) ** 2).sum(axis=1) + part.constant
        for part in (coreset, rows)
    )
    np.testing.assert_allclose(one, other, rtol=1e-12)
    assert coreset.weights[coreset.points[:, 0] > 400].sum() == pytest.approx(5.0)
    near = np.linalg.norm(X[coreset.indices] - coreset.points, axis=1)
    assert np.median(near) < 0.5


def test_build__of_few_rows_is_exact() -> None:
    few = X[-4000:]
    method = Lightweight(**CENTROIDS)
    coreset = dc.build(few, size=100, method=method, random_state=0, n_clusters=3)
    assert not coreset.provenance["complete"]
    audit = coreset.audit(few, solutions={"one": few[:1]})
    np.testing.assert_allclose(audit.differences, 0.0, atol=1e-12)
    with pytest.warns(dc.errors.CoresetWarning, match="is not below"):
        whole = dc.build(few, size=4000, method=method, random_state=0)
    assert whole.constant == 0.0
    assert whole.provenance["complete"]
    np.testing.assert_array_equal(whole.points, few)


@pytest.mark.parametrize("normalize", [False, True])
def test_build__lazy_blocks_give_the_same(normalize: bool) -> None:
    options: dict[str, Any] = {"size": 200, "method": STRONG, "random_state": 0}
    blocks = da.from_array(X, chunks=(7000, 3))
    one = dc.build(blocks, normalize=normalize, **options)
    other = dc.build(blocks, normalize=normalize, compute=False, **options).compute()
    assert one.equals(other)
    if normalize:
        assert one.total_weight == pytest.approx(len(X))
        audit = one.audit(X, solutions={"mean": X.mean(axis=0)[None]})
        assert abs(audit.differences[0]) < 0.02


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


def test_cell_rows__are_of_the_data_and_of_their_cells(coreset: Coreset) -> None:
    rows: Any = coreset.cell_rows
    np.testing.assert_array_equal(rows.points, X[rows.indices])
    assert (rows.weights <= 2.0 * coreset.weights * (1 + 1e-9)).all()
    apart = coreset.points[:, 0] > 400
    assert (rows.points[apart, 0] > 400).all()
    assert (rows.points[~apart, 0] < 400).all()


def test_cell_rows__have_numbers_of_the_data_where_rows_are_left_out() -> None:
    some = np.vstack([np.full((7, 3), np.nan), X])
    few = CoresetKMeans(8, size=200, on_invalid="drop", random_state=0).fit(some).coreset_
    assert few.of_centroids
    np.testing.assert_array_equal(few.cell_rows.points, some[few.cell_rows.indices])  # type: ignore[union-attr]


def test_cell_rows__have_numbers_of_a_cube() -> None:
    xarray = pytest.importorskip("xarray")
    cube = xarray.DataArray(X[:30_000].reshape(100, 300, 3), dims=("a", "b", "feature"))
    cube = cube.transpose("b", "a", "feature").chunk({"b": 100, "a": 40})
    options: dict[str, Any] = {"size": 200, "method": STRONG, "random_state": 0}
    few = dc.build(cube, sample_dims=("b", "a"), **options)
    assert (np.diff(few.indices) >= 0).all()
    rows = np.ascontiguousarray(cube.values).reshape(-1, 3)
    np.testing.assert_array_equal(few.cell_rows.points, rows[few.cell_rows.indices])
    near = ((few.points - few.cell_rows.points) ** 2).sum(axis=1)
    assert np.median(near) < 1.0


@pytest.mark.parametrize("divergence", ["euclidean", "kl"])
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


def test_cost__is_right_where_centers_were_found_elsewhere() -> None:
    """In isotropic rows the centroids alone are above a third too high for 300 centers."""
    rows = np.random.default_rng(0).normal(size=(50_000, 8))
    true = dc.metrics.kmeans_cost(rows, others := [rows[:300], rows[300:310]])
    for seed in range(3):
        method = StrongKMeans(10, **CENTROIDS)
        few = dc.build(rows, size=1000, method=method, random_state=seed)
        off = few.cost(others) / true - 1.0
        assert abs(off).max() < 0.06  # the deviations are 0.018 and 0.006
        assert (replace(few, cell_rows=None).cost(others) / true - 1.0)[0] > 0.3


def test_cost__warns_where_cells_hold_several_clusters() -> None:
    rng = np.random.default_rng(5)
    centers = 10.0 * rng.normal(size=(50, 4))
    rows = centers[rng.integers(0, 50, 20_000)] + 0.1 * rng.normal(size=(20_000, 4))
    true = float(dc.metrics.kmeans_cost(rows, centers))
    warned = 0
    for seed in range(8):
        few = dc.build(rows, size=100, method=StrongKMeans(10, **CENTROIDS), random_state=seed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            cost = few.cost(centers)
        assert cost > 0.5 * true
        warned += any("cells of the centroids" in str(one.message) for one in caught)
    assert warned >= 2  # where the row of such a cell is not of the cluster that its centroid is at
    many = dc.build(rows, size=1000, method=StrongKMeans(10, **CENTROIDS), random_state=0)
    assert many.cost(centers) == pytest.approx(true, rel=0.1)


def test_cost__finds_nearest_centers_once_and_by_threads(
    coreset: Coreset, monkeypatch: pytest.MonkeyPatch
) -> None:
    q = X[::4000]
    cost = coreset.cost(q)
    method = StrongBregman(4, "kl", **CENTROIDS)
    of_kl = dc.build(X[:5000] + 0.1, size=100, method=method, random_state=0)
    loops: Any = kmeans_numba.nearest_center
    by_kl: Any = KullbackLeibler.nearest
    found: list[int] = []
    threads = set()

    def counted(rows: Any, *others: Any) -> None:
        found.append(len(rows))
        threads.add(threading.current_thread())
        loops(rows, *others)

    def counted_kl(self: Any, rows: Any, centers: Any) -> Any:
        found.append(len(rows))
        return by_kl(self, rows, centers)

    monkeypatch.setattr(kmeans_numba, "nearest_center", counted)
    monkeypatch.setattr(KullbackLeibler, "nearest", counted_kl)
    monkeypatch.setattr("daskcoreset.solvers.kmeans._DISTANCES_AT_ONCE", 3 * 30)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert coreset.cost(q) == cost
    assert sum(found) == 2 * len(coreset)
    assert threading.current_thread() not in threads
    found.clear()
    of_kl.cost(q + 0.1)
    assert sum(found) == 2 * len(of_kl)


def test_cost__of_sparse_centroids(coreset: Coreset) -> None:
    sparse: Any = replace(coreset, points=sp.csr_array(coreset.points))
    cells: Any = coreset.cell_rows
    sparse = replace(sparse, cell_rows=replace(cells, points=sp.csr_array(cells.points)))
    for objective in (None, Distortion(8)):
        assert sparse.cost(X[::4000], objective) == pytest.approx(coreset.cost(X[::4000]))


def test_cost__far_centers_overflow_to_infinity(coreset: Coreset) -> None:
    assert coreset.cost(np.full((2, 3), 1e160)) == np.inf
    by_hand = Coreset(np.ones((2, 1)), np.ones(2), np.arange(2), constant=5.0)
    assert by_hand.cost([[0.0]]) == 7.0


def test_models__refuse_centroids_for_another_cost(coreset: Coreset) -> None:
    rows = X[:5000] + 0.1
    of_kl = dc.build(rows, size=100, method=StrongBregman(4, "kl", **CENTROIDS), random_state=0)
    model = CoresetKMeans(4, random_state=0).fit(rows)
    meta = CoresetEstimator(KMeans(4, n_init=1, random_state=0)).fit(rows)
    for score in (model.score, meta.score, meta.fit):
        with pytest.raises(InvalidInputError, match="by kl, and say nothing of the quantization"):
            score(of_kl)
    bregman = CoresetBregman(4, divergence="kl", n_init=1, random_state=0)
    assert bregman.fit(of_kl).score(of_kl) == pytest.approx(-bregman.inertia_)
    with pytest.raises(InvalidInputError, match="say nothing of the distortion by kl"):
        bregman.score(coreset)
    with pytest.raises(InvalidInputError, match="lost the spread"):
        bregman.set_params(soft=True).fit(rows).score(of_kl)
    meta.fit(coreset)
    assert meta.score(coreset) == pytest.approx(-meta.inertia_)
    assert meta.inertia_ == pytest.approx(coreset.cost(meta.cluster_centers_))


def test_distortion__goes_by_the_metric_of_the_coreset() -> None:
    few = dc.build(X, size=200, method=STRONG, metric="cosine", random_state=0)
    unit = X[:8] / np.linalg.norm(X[:8], axis=1, keepdims=True)
    assert dc.metrics.distortion(few, X, unit) < 0.2


def test_cost__of_other_constructions() -> None:
    q = X[:5]
    rows = dc.build(X, size=500, random_state=0)
    assert rows.cost(q) == pytest.approx(dc.metrics.kmeans_cost(rows.points, q, rows.weights))
    assert rows.cell_rows is None
    several = rows.cost([q, X[:2]])
    assert several.shape == (2,)
    assert several[0] == rows.cost(q)
    assert rows.cost({"one": q}).shape == (1,)
    by_hand = Coreset(rows.points, rows.weights, rows.indices)
    assert by_hand.cost(q) == rows.cost(q)
    y = (X[:, 0] > 2.0).astype(int)
    svm = dc.build(X, y, size=500, method="svm", random_state=0)
    model = LinearSVC().fit(svm.points, svm.labels, svm.weights)
    assert svm.cost(model) == pytest.approx(svm.audit(X, y, solutions=model).on_coreset[0])
    with pytest.raises(InvalidInputError, match="solutions is empty"):
        rows.cost([])
    with pytest.raises(InvalidInputError, match="columns"):
        rows.cost(np.ones((2, 7)))
    with pytest.raises(dc.errors.InvalidTypeError, match="objective"):
        rows.cost(q, objective="k-means")
    with pytest.raises(dc.errors.InvalidTypeError, match="solutions is None"):
        rows.cost(None)
    for unlabelled in (rows, by_hand):
        with pytest.raises(InvalidInputError, match="linear model"):
            unlabelled.cost(model)


def version_of(store: Any) -> Any:
    """Return the version of the layout of a store."""
    header: Any = zarr.open_group(store).attrs["daskcoreset"]
    return header["schema_version"]


def test_coreset__of_centroids_of_before_has_no_rows_of_cells(coreset: Coreset) -> None:
    before = replace(coreset, cell_rows=None)
    store = zarr.storage.MemoryStore()
    before.to_zarr(store)
    assert version_of(store) == 1
    assert Coreset.from_zarr(store).equals(before)
    assert not before.equals(coreset)
    assert before.cost(X[::4000]) > coreset.cost(X[::4000])
    assert before.merge(coreset).cell_rows is None
    newer = zarr.storage.MemoryStore()
    coreset.to_zarr(newer)
    assert version_of(newer) == 2
    rows = coreset.cell_rows
    for wrong, error in ((rows.take(slice(3)), InvalidInputError), (X, dc.errors.InvalidTypeError)):  # type: ignore[union-attr]
        with pytest.raises(error, match="cell_rows"):
            replace(coreset, cell_rows=wrong)  # type: ignore[arg-type]


def test_coreset__keeps_the_constant(coreset: Coreset, tmp_path: Any) -> None:
    assert pickle.loads(pickle.dumps(coreset)).equals(coreset)
    store = zarr.storage.MemoryStore()
    coreset.to_zarr(store)
    assert Coreset.from_zarr(store).equals(coreset)
    assert coreset.to_dataframe().attrs["constant"] == coreset.constant
    dataset = coreset.to_xarray()
    assert dataset.attrs["constant"] == coreset.constant
    np.testing.assert_array_equal(dataset["cell_points"], coreset.cell_rows.points)  # type: ignore[union-attr]
    portfolio = dc.build(X, method={"one": STRONG, "two": "uniform"}, size=200, random_state=0)
    assert portfolio["one"].equals(coreset)
    portfolio.to_zarr(tmp_path / "both.zarr")
    assert dc.Portfolio.from_zarr(tmp_path / "both.zarr")["one"].equals(coreset)
    for wrong in (-1.0, np.inf, np.nan, "1"):
        with pytest.raises(InvalidInputError, match="constant"):
            Coreset(np.ones((1, 2)), np.ones(1), np.zeros(1, int), constant=wrong)  # type: ignore[arg-type]


def test_cell_rows__are_of_centroids_and_costs_of_centers(coreset: Coreset) -> None:
    given: dict[str, Any] = {"cell_rows": coreset.cell_rows, "labels": np.arange(len(coreset)) % 2}
    cost = LinearCost("hinge")
    with pytest.raises(InvalidInputError, match=r"cell_rows is given, .* is None; set it to"):
        replace(coreset, **given, provenance={"objective": cost.record()})
    with pytest.raises(InvalidInputError, match="is 'rows'; set it to 'centroids'"):
        replace(coreset, **given, provenance={"representatives": "rows"})
    record = {"representatives": "centroids", "objective": cost.record()}
    by_hand = replace(coreset, **given, provenance=record)
    model = LinearClassifier(np.ones(3), 0.0, 1)
    with pytest.raises(InvalidInputError, match="cost of a linear classifier is none; build"):
        by_hand.cost(model)


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


def test_merge__adds_offsets_to_rows_of_cells(coreset: Coreset) -> None:
    cells: Any = coreset.cell_rows
    both = coreset.merge(coreset, offsets=[5, 2 * len(X)])
    expected = np.concatenate([cells.indices + 5, cells.indices + 2 * len(X)])
    np.testing.assert_array_equal(both.cell_rows.indices, expected)  # type: ignore[union-attr]
    moved = coreset.renumbered(lambda numbers: numbers + 2 * len(X))
    assert both.take(slice(len(coreset), None)).equals(moved.take(slice(None)))
    far = replace(coreset, cell_rows=replace(cells, indices=cells.indices + 2**62))
    with pytest.raises(InvalidInputError, match="give a number of rows for each"):
        far.merge(coreset, offsets=[2**62, 0])


@each(
    strong=[False, True],
    divergence=["kl", "itakura_saito", SquaredMahalanobis([1.0, 2.0, 3.0])],
)
def test_bregman__one_center_costs_the_same(divergence: Any, strong: bool) -> None:
    method: Any = (
        StrongBregman(4, divergence, **CENTROIDS)
        if strong
        else dc.BregmanLightweight(divergence, **CENTROIDS)
    )
    rows = X[:5000] + 0.1
    coreset = dc.build(rows, size=100, method=method, random_state=0)
    q = np.array([[2.0, 1.0, 3.0]])
    audit = coreset.audit(rows, solutions=[q])
    np.testing.assert_allclose(audit.differences, 0.0, atol=1e-10)
    plain = resolve_divergence(divergence).to_mean(rows, q[0]).sum()
    np.testing.assert_allclose(audit.on_coreset, plain)
    with pytest.raises(InvalidInputError, match="say nothing"):
        coreset.audit(rows, objective=QuantizationError(4))
    model = CoresetBregman(4, divergence=divergence, n_init=1, random_state=0).fit(coreset)
    audit = coreset.audit(rows, solutions=[model.cluster_centers_])
    assert model.coreset_inertia_ == pytest.approx(audit.on_coreset[0])


def test_wrong_uses__are_refused(coreset: Coreset) -> None:
    with pytest.raises(InvalidInputError, match="representatives must be"):
        StrongKMeans(3, representatives="means")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="precision"):
        StrongBregman(3, "mahalanobis", **CENTROIDS)
    with pytest.raises(InvalidInputError, match="no labels"):
        dc.build(X, np.zeros(len(X)), size=100, method=STRONG)
    with pytest.raises(InvalidInputError, match="nodes of a tree"):
        dc.build(X, size=100, method=STRONG, strategy="tree")
    with pytest.raises(InvalidInputError, match="nodes of a tree"):
        dc.CoresetStream(size=100, method=STRONG)
    with pytest.raises(InvalidInputError, match="compares coresets of rows"):
        dc.build(X, size="auto", method=STRONG)
    for model in (CoresetGaussianMixture(2), CoresetBregman(2, soft=True)):
        with pytest.raises(InvalidInputError, match="lost the spread"):
            model.fit(coreset)
    with pytest.raises(InvalidInputError, match="lost the spread"):
        coreset_search(CoresetKMeans(), coreset, parameters={"n_clusters": [2, 3]})
    with pytest.raises(InvalidInputError, match="gives rows only"):
        CoresetKMeans(2, method="uniform", representatives="centroids").fit(X)


def test_design__draws_what_memory_holds() -> None:
    design = STRONG.design
    assert design.n_drawn(1000, 8) == 20_000
    assert design.n_drawn(50_000, 8) == 100_000
    assert design.n_drawn(10_000, 768) == 10_922
    assert design.n_drawn(10_000, 10**6) == 10_000  # rows stand for themselves


def test_design__order_keeps_what_is_alike_together() -> None:
    design, n = STRONG.design, 4000
    line = np.arange(float(n))[RNG.permutation(n), np.newaxis]
    inclusion = np.full(n, 0.25)
    inclusion[::500] = 1.0
    block = Block(line, np.ones(n))
    order = design.order(block, None, inclusion)
    assert sorted(order) == list(range(n))
    assert sorted(order[:8]) == list(range(0, n, 500))  # what is certain first
    others = line[order[8:], 0]
    # In cells of 16 draws, each of 64 rows, in any order: neighbours are 1,300 apart in none.
    assert 5.0 < abs(np.diff(others)).mean() < 64.0


def test_build__estimates_of_uneven_clusters_are_near() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50_000, 8))
    rows += 30.0 * rng.normal(size=(100, 8))[rng.zipf(1.5, 50_000) % 100]
    for seed in range(4):
        model = CoresetKMeans(10, size=1000, random_state=seed).fit(rows)
        assert model.coreset_.of_centroids
        # The deviation is 0.0005; of rows drawn in no order it is 0.0075.
        assert abs(model.coreset_inertia_ / model.inertia_ - 1.0) < 0.0025


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


def test_coreset_kmeans__of_a_coreset_of_centroids(coreset: Coreset) -> None:
    model = CoresetKMeans(8, random_state=0).fit(coreset)
    assert model.inertia_ == pytest.approx(model.coreset_inertia_)
    assert model.inertia_ > coreset.constant
    true = dc.metrics.kmeans_cost(X, model.cluster_centers_)
    assert -0.03 < model.inertia_ / true - 1 < 0.5


def test_build__of_unlike_blocks_draws_fewer_rows_and_reads_none_again() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(60_000, 2)) * np.where(np.arange(60_000) < 6000, 30.0, 1.0)[:, None]
    blocks = da.from_array(rows, chunks=(6000, 2))
    coreset = dc.build(blocks, size=500, method=StrongKMeans(4, **CENTROIDS), random_state=0)
    assert coreset.provenance["blocks_read_again"] == 0
    drawn = coreset.provenance["drawn"]
    assert drawn > 500
    assert drawn < 20_000
    audit = coreset.audit(rows, random_state=0)
    assert audit.differences.min() > -0.05
