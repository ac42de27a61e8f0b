"""An audit: exact costs in one read, and intervals that hold as often as they say."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.stats
from matplotlib.figure import Figure
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.mixture import GaussianMixture

import daskcoreset
from daskcoreset import Draw, MergeReduce
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.typing import FloatArray
from daskcoreset.errors import CoresetWarning, InvalidInputError, InvalidTypeError
from daskcoreset.estimators import (
    CoresetBregman,
    CoresetEstimator,
    CoresetGaussianMixture,
    CoresetLogisticRegression,
    CoresetRidge,
    CoresetSVC,
)
from daskcoreset.metrics.audit import audit
from daskcoreset.metrics.costs import kmeans_cost
from daskcoreset.objectives import (
    Distortion,
    LeastSquaresCost,
    LinearCost,
    MixtureCost,
    Objective,
    QuantizationError,
)
from daskcoreset.sensitivities import (
    Lightweight,
    Mixture,
    StrongBregman,
)
from daskcoreset.solvers.divergences import KullbackLeibler
from tests.tools.heavy_tails import X

CORESET = daskcoreset.build(X, size=200, method="kmeans", n_clusters=6, random_state=1)


def queries() -> list[FloatArray]:
    """Solutions near, at random, of one center, and far from everything."""
    rng = np.random.default_rng(5)
    return [
        X[rng.integers(0, len(X), 6)],
        rng.normal(size=(6, 3)) * 6,
        X.mean(axis=0, keepdims=True),
        X[rng.integers(0, len(X), 2)] + 30.0,
    ]


# --- costs -------------------------------------------------------------------------------


def test_audit__costs_are_exact_on_both_sides() -> None:
    found = CORESET.audit(X, random_state=0)
    assert found.names[:2] == ("k-means", "k-means++ 1")
    assert [len(one) for one in found.solutions[:4]] == [6] * 4
    np.testing.assert_allclose(found.on_data, kmeans_cost(X, list(found.solutions)), rtol=1e-9)
    np.testing.assert_allclose(
        found.on_coreset, kmeans_cost(CORESET.points, list(found.solutions), CORESET.weights)
    )
    ratios = found.on_coreset / found.on_data
    assert found.distortion == pytest.approx(np.maximum(ratios, 1 / ratios).max() - 1)
    assert found.data_weight == len(X) == found.n_rows
    assert found.coreset_weight == pytest.approx(CORESET.weights.sum())
    gaps = found.on_coreset / found.on_data - 1
    np.testing.assert_allclose(found.differences, gaps, atol=1e-12)


def test_audit__given_solutions_keep_their_names() -> None:
    Q = queries()
    named = audit(CORESET, X, solutions={"first": Q[0], "second": Q[2]}, random_state=0)
    assert named.names == ("first", "second")
    assert audit(CORESET, X, solutions=Q[0], random_state=0).names == ("solution 0",)
    assert audit(CORESET, X, solutions=Q[0].tolist(), random_state=0).names == ("solution 0",)
    several = audit(CORESET, X, solutions=Q[:2], random_state=0)
    assert several.names == ("solution 0", "solution 1")
    np.testing.assert_allclose(several.on_data, kmeans_cost(X, Q[:2]))


def test_audit__drops_rows_if_the_build_did() -> None:
    rows = X.copy()
    rows[7] = np.nan
    coreset = daskcoreset.build(rows, size=200, on_invalid="drop", random_state=0)
    assert coreset.audit(rows, n_clusters=3, random_state=0).n_rows == len(X) - 1
    with pytest.raises(InvalidInputError, match=r"NaN .* at row 7"):
        coreset.audit(rows, n_clusters=3, on_invalid="raise")
    with pytest.raises(InvalidInputError, match=r"NaN .* at row 7"):
        CORESET.audit(da.from_array(rows, chunks=(5, 3)))


def test_audit__warns_about_other_weights() -> None:
    weights = np.where(X[:, 0] > 0.0, 3.0, 1.0)
    coreset = daskcoreset.build(X, sample_weight=weights, size=200, random_state=0)
    with pytest.warns(CoresetWarning, match=r"total weight 6000.* the same sample_weight"):
        coreset.audit(X, n_clusters=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CoresetWarning)
        coreset.audit(X, n_clusters=3, sample_weight=weights, random_state=0)


def test_audit__refuses_columns_of_other_names_or_in_another_order() -> None:
    frame = pd.DataFrame(X[:, :3], columns=["a b", "ü", "c"])
    coreset = daskcoreset.build(frame, size=50, random_state=0)
    assert coreset.audit(frame, n_clusters=2, random_state=0).n_rows == len(X)
    assert coreset.audit(frame.to_numpy(), n_clusters=2, random_state=0).n_rows == len(X)
    names = r"\['a b', 'ü', 'c'\]"
    remedy = rf"pass open_rows\(X, columns={names}\)\.$"
    calls: list[Callable[..., Any]] = [partial(coreset.audit, n_clusters=2), coreset.plot]
    for other, problem in (
        (frame[["c", "ü", "a b"]], rf"the coreset in another order; {remedy}"),
        (frame.assign(d=0.0), rf"columns that the coreset has not: \['d'\]; {remedy}"),
        (frame.rename(columns={"c": "d"}), rf"the coreset has {names}; select these"),
    ):
        for call in calls:
            with pytest.raises(InvalidInputError, match=problem):
                call(other)


# --- other costs -------------------------------------------------------------------------


def positive_rows(n: int = 3000) -> FloatArray:
    """Two uneven clusters of positive rows, sorted."""
    rng = np.random.default_rng(3)
    rows = np.concatenate([rng.gamma(9.0, size=(n, 3)), 30 * rng.gamma(9.0, size=(n // 10, 3))])
    return rows[np.argsort(rows[:, 0])]


def test_audit__of_a_bregman_coreset_compares_divergences() -> None:
    rows = positive_rows()
    coreset = daskcoreset.build(rows, size=300, method=StrongBregman(2, "kl"), random_state=0)
    found = coreset.audit(da.from_array(rows, chunks=(700, 3)), n_clusters=2, random_state=0)
    assert found.objective == Distortion(2, KullbackLeibler())
    assert found.names[:2] == ("Bregman clustering", "seeding 1")
    for centers, on_data, on_coreset in zip(
        found.solutions, found.on_data, found.on_coreset, strict=True
    ):
        gap = rows[:, None] * np.log(rows[:, None] / centers) - rows[:, None] + centers
        assert on_data == pytest.approx(gap.sum(axis=2).min(axis=1).sum(), rel=1e-9)
        gap = coreset.points[:, None] * np.log(coreset.points[:, None] / centers)
        gap += centers - coreset.points[:, None]
        assert on_coreset == pytest.approx(coreset.weights @ gap.sum(axis=2).min(axis=1), rel=1e-9)
    assert found.distortion < 0.3
    assert repr(found).startswith("Audit(distortion, distortion ")


def test_audit__of_a_bregman_coreset_names_a_row_outside_the_domain() -> None:
    rows = positive_rows()
    coreset = daskcoreset.build(rows, size=300, method=StrongBregman(2, "kl"), random_state=0)
    rows[1234, 1] = -1.0
    with pytest.raises(InvalidInputError, match=r"X is -1\.0 in column 1 at row 1234"):
        coreset.audit(da.from_array(rows, chunks=(700, 3)), random_state=0)
    with pytest.raises(InvalidInputError, match=r"solutions is -2\.0 in column 0"):
        coreset.audit(rows, solutions=[[-2.0, 1.0, 1.0]])


def test_audit__of_a_mixture_coreset_compares_its_part_of_the_likelihood() -> None:
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(size=(3000, 2)), rng.normal(9.0, 0.3, size=(300, 2))])
    coreset = daskcoreset.build(rows, size=400, method=Mixture(2), random_state=0)
    fitted = GaussianMixture(2, random_state=0).fit(rows[::3])
    found = coreset.audit(rows, solutions={"scikit-learn": fitted}, random_state=0)
    assert found.names == ("scikit-learn",)
    peaks = [
        scipy.stats.multivariate_normal(m, c).pdf(m)
        for m, c in zip(fitted.means_, fitted.covariances_, strict=True)
    ]
    z = fitted.weights_ @ np.array(peaks)
    assert found.on_data[0] == pytest.approx((np.log(z) - fitted.score_samples(rows)).sum())
    assert found.distortion < 0.1
    default = coreset.audit(rows, random_state=0, sample_size=500)
    assert default.names[0] == "EM"
    assert default.distortion < 0.2
    interval = default.interval(fitted)
    assert interval.low < found.on_data[0] < interval.high
    with pytest.raises(InvalidTypeError, match="solutions must be a fitted mixture"):
        coreset.audit(rows, solutions=GaussianMixture(2))
    with pytest.raises(InvalidTypeError, match=r"is GaussianMixture.*, which holds no numbers"):
        CORESET.audit(X, solutions=[GaussianMixture(2)])
    with pytest.raises(InvalidInputError, match="a mixture in 1 dimensions"):
        default.interval(GaussianMixture(1).fit(rows[:, :1]))


@dataclass(frozen=True)
class OfMixtures(Lightweight):
    """A user's construction: its name is unknown to the library, and it is for mixtures."""

    name: ClassVar[str] = "of_mixtures"

    @property
    def objective(self) -> Objective[Any]:  # type: ignore[override]
        return MixtureCost(2)


def test_audit__of_a_users_construction_compares_what_it_is_made_for(tmp_path: Path) -> None:
    coreset = daskcoreset.build(X, size=400, method=OfMixtures(), random_state=0)
    coreset.to_zarr(tmp_path / "coreset.zarr")
    for one in (coreset, Coreset.from_zarr(tmp_path / "coreset.zarr")):
        assert one.audit(X, random_state=0).objective == MixtureCost(2)


@pytest.mark.parametrize("draw", [Draw(), MergeReduce()])
def test_build__remembers_n_clusters_for_the_audit(draw: Any, tmp_path: Path) -> None:
    coreset = daskcoreset.build(
        X, size=200, n_clusters=4, chunks=1500, random_state=0, method="lightweight", draw=draw
    )
    coreset.to_zarr(tmp_path / "coreset.zarr")
    for one in (coreset, Coreset.from_zarr(tmp_path / "coreset.zarr")):
        found = one.audit(X, random_state=0)
        assert found.objective == QuantizationError(4)
        assert len(found.solutions[0]) == 4
    both = coreset.merge(coreset)
    assert both.provenance["objective"] == coreset.provenance["objective"]
    auto = daskcoreset.grow(X, n_clusters=4, epsilon=0.5, random_state=0, method="lightweight")
    assert auto.audit(X, random_state=0).objective == QuantizationError(4)


# --- intervals ---------------------------------------------------------------------------


def test_interval__all_rows_in_the_sample_leave_nothing_to_chance() -> None:
    rows = X[:400]
    coreset = daskcoreset.build(rows, size=100, random_state=0)
    found = coreset.audit(rows, n_clusters=2, sample_size=1_000_000, random_state=0)
    Q = queries()[1]
    assert found.sample_size == 400
    np.testing.assert_allclose(found.interval(Q), kmeans_cost(rows, Q))


def test_interval__wider_where_more_confident_and_with_fewer_rows() -> None:
    Q = queries()[1]
    found = CORESET.audit(X, random_state=0, sample_size=500)
    widths = [np.ptp(found.interval(Q, confidence=level)) for level in (0.5, 0.95, 0.999)]
    assert widths == sorted(widths)
    assert np.ptp(found.interval(Q)) == widths[1]
    few = CORESET.audit(X, random_state=0, sample_size=30)
    assert np.ptp(few.interval(Q)) > widths[1]
    assert few.sample_size < 80


def test_interval__infinite_where_an_objective_bounds_nothing() -> None:
    found = CORESET.audit(X, objective=WithoutBounds(6), random_state=0, sample_size=200)
    estimate, low, high = found.interval(queries()[0])
    assert low < estimate < high == np.inf
    assert low <= kmeans_cost(X, queries()[0])


@dataclass(frozen=True)
class WithoutBounds(QuantizationError):  # noqa: N818 - a quantization error is no exception
    """A user's cost, of which nothing is known but what it is on rows."""

    def brackets(self, *args: Any) -> Any:
        return Objective.brackets(self, *args)


def test_audit__row_of_weight_zero_may_overflow() -> None:
    """A row of weight zero changes no bit, even where its squared distances are infinite."""
    weights = np.ones(400)
    weights[7] = 0.0
    small, large = X[:400].copy(), X[:400].copy()
    large[7] = 1e200
    coreset = daskcoreset.build(
        large, sample_weight=weights, size=60, method="kmeans", n_clusters=3, random_state=1
    )
    first, second = (
        coreset.audit(rows, sample_weight=weights, random_state=1, sample_size=50, chunks=100)
        for rows in (small, large)
    )
    np.testing.assert_array_equal(first.on_data, second.on_data)
    assert first.interval(X[20:23]) == second.interval(X[20:23])


# --- its picture -------------------------------------------------------------------------


def test_plot__shows_every_difference() -> None:
    found = CORESET.audit(X, random_state=0)
    ax = found.plot(Figure().add_subplot())
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == [*found.names, "total weight"]
    drawn = np.array([bar.get_width() for bar in ax.patches])
    np.testing.assert_allclose(drawn[:-1], found.differences)
    assert drawn[-1] == pytest.approx(CORESET.total_weight / len(X) - 1)
    assert found.objective.name in ax.get_title()


def test_audit__empty_blocks_and_weights_beyond_all_numbers() -> None:
    rows = da.from_array(X, chunks=((0, 4000, 0, 2000), 3))
    found = CORESET.audit(rows, random_state=0, sample_size=400)
    np.testing.assert_allclose(found.on_data, kmeans_cost(X, list(found.solutions)))
    with pytest.raises(InvalidInputError, match="squared distances overflow"):
        CORESET.audit(X, sample_weight=np.full(len(X), 2e303), random_state=0)


# --- what a coreset for any number of clusters is judged by ---


@pytest.mark.parametrize(
    ("labels", "objective"),
    [
        (X[:, 0] > 0, LinearCost("logistic")),
        (np.where(X[:, 0] > 0, "yes", "no"), LinearCost("logistic")),
        (X @ [1.0, 2.0, 3.0], LeastSquaresCost()),
        (np.arange(6000), LeastSquaresCost()),
    ],
)
def test_audit__of_labels(labels: Any, objective: Any) -> None:
    coreset = daskcoreset.build(X, labels, size=500, method="uniform", random_state=0)
    assert coreset.audit(X, labels, random_state=0).objective == objective
    # Who names clusters, or passes no labels, asks for these.
    found = coreset.audit(X, labels, n_clusters=3, random_state=0)
    assert found.objective == QuantizationError(3)
    assert coreset.audit(X, random_state=0).objective == QuantizationError()


@pytest.mark.parametrize(
    ("model", "objective"),
    [
        (CoresetSVC(), LinearCost("hinge")),
        (CoresetLogisticRegression(C=2.0), LinearCost("logistic", 2.0)),
        (CoresetRidge(), LeastSquaresCost()),
        (CoresetEstimator(LogisticRegression()), LinearCost("logistic")),
        (CoresetEstimator(LinearRegression()), LeastSquaresCost()),
    ],
)
@pytest.mark.parametrize("method", ["lightweight", "uniform"])
def test_audit__of_the_loss_of_an_estimator(model: Any, objective: Any, method: str) -> None:
    y = (X[:, 0] + 0.1 * X[:, 1] ** 2 > 0).astype(int)  # whole numbers, for regressions as well
    model = clone(model).set_params(size=500, method=method, random_state=0).fit(X, y)
    found = model.audit(X, y, random_state=0).objective
    assert type(found) is type(objective)
    assert getattr(found, "loss", None) == getattr(objective, "loss", None)
    assert getattr(found, "lam", None) == getattr(objective, "lam", None)
    assert model.audit(X, y, n_clusters=2, random_state=0).objective == QuantizationError(2)


def test_audit__of_clusters_of_another_kind() -> None:
    options: dict[str, Any] = {"size": 500, "method": "uniform", "random_state": 0}
    rows = np.abs(X) + 0.1
    hard = CoresetBregman(2, divergence="kl", **options).fit(rows)
    found = hard.audit(rows, sample_size=1000, random_state=0)
    assert found.objective.name == "distortion"
    interval = found.interval(hard.cluster_centers_)
    assert interval.low < -hard.score(rows) < interval.high
    soft = CoresetGaussianMixture(2, **options).fit(X).audit(X, random_state=0)
    assert soft.objective == MixtureCost(2)


def test_audit__of_fitted_models() -> None:
    y = (X[:, 0] > 0).astype(int)
    coreset = daskcoreset.build(X, y, size=500, method="uniform", random_state=0)
    clusters = KMeans(3, n_init=1, random_state=0).fit(X)
    found = coreset.audit(X, solutions={"mine": clusters}, random_state=0)
    assert found.objective == QuantizationError()
    np.testing.assert_allclose(found.on_data, [kmeans_cost(X, clusters.cluster_centers_)])
    model = LogisticRegression().fit(X, y)
    for solutions in (model, [model], {"mine": model}):
        assert coreset.audit(X, y, solutions=solutions).objective == LinearCost("logistic")
    with pytest.raises(InvalidInputError, match="labels are missing"):
        coreset.audit(X, solutions=[model])
