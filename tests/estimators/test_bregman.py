"""CoresetBregman: hard and soft clustering by a divergence, in memory and out of core."""

from __future__ import annotations

import pickle
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from daskcoreset.core.typing import AnyArray
from daskcoreset.estimators import CoresetBregman
from daskcoreset.solvers.divergences import SquaredMahalanobis
from tests.acceptance.tools.counting import CountingScheduler


def poisson(n: int = 4000) -> AnyArray:
    rng = np.random.default_rng(0)
    rates = np.array([[3.0, 30.0], [40.0, 5.0], [150.0, 90.0]])
    return np.asarray(rng.poisson(rates[rng.choice(3, size=n, p=[0.7, 0.25, 0.05])]) + 0.5)


X = poisson()
WEIGHTS = np.random.default_rng(1).uniform(0.5, 2.0, size=len(X))
LAZY = da.from_array(X, chunks=(1500, 2))


def small(**options: Any) -> CoresetBregman:
    """Return a model that samples, so that a coreset is not simply all rows."""
    given: dict[str, Any] = {
        "n_clusters": 3,
        "divergence": "kl",
        "size": 500,
        "random_state": 0,
        "n_init": 3,
    }
    return CoresetBregman(**(given | options))


# --- what it finds -----------------------------------------------------------------------


def test_fit__squared_euclidean_is_kmeans() -> None:
    model = small(divergence="squared_euclidean", size=len(X), tol=0.0).fit(X)
    expected = KMeans(3, n_init=5, random_state=0, tol=0.0).fit(X)
    assert model.inertia_ == pytest.approx(expected.inertia_, rel=1e-6)
    distances = expected.transform(X) ** 2
    found = model.transform(X)
    np.testing.assert_allclose(np.sort(found, axis=1), np.sort(distances, axis=1), rtol=1e-4)


@pytest.mark.parametrize("data", [X, LAZY], ids=["memory", "dask"])
@pytest.mark.parametrize("method", ["strong_bregman", "lightweight_bregman"])
def test_fit__precision_of_all_rows(data: Any, method: str) -> None:
    model = small(divergence="mahalanobis", method=method).fit(data, sample_weight=WEIGHTS)
    assert isinstance(model.divergence_, SquaredMahalanobis)
    expected = np.linalg.inv(np.cov(X.T, aweights=WEIGHTS, ddof=0))
    np.testing.assert_allclose(model.divergence_.precision, expected, rtol=1e-9)
    assert model.coreset_.provenance["parameters"]["divergence"]["name"] == "mahalanobis"


def test_soft__probabilities_and_weights() -> None:
    model = small(soft=True).fit(X)
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(shares.argmax(axis=1), model.predict(X))
    np.testing.assert_allclose(np.sort(model.weights_), [0.05, 0.25, 0.7], atol=0.05)
    hard = small().fit(X)
    assert not hasattr(hard, "weights_")
    assert not hasattr(hard, "predict_proba")
    with pytest.raises(AttributeError, match="no attribute 'predict_proba'"):
        hard.predict_proba(X)


# --- out of core -------------------------------------------------------------------------


@pytest.mark.parametrize("soft", [False, True])
def test_inertia__lazy_out_of_core(soft: bool) -> None:
    scheduler, bad = CountingScheduler(), X.copy()
    bad[7], weights = -1.0, np.ones(len(X))
    weights[7] = 0.0
    data, u = da.from_array(bad, chunks=(1500, 2)), da.from_array(weights, chunks=1500)
    model = small(soft=soft).fit(data, sample_weight=u)
    with dask.config.set(scheduler=scheduler):
        assert model.inertia_.shape == ()
        assert scheduler.calls == 0
    assert float(model.inertia_) == pytest.approx(-model.score(data, sample_weight=u))
    loaded = pickle.loads(pickle.dumps(model))
    for name in ("labels_", "inertia_"):
        with pytest.raises(AttributeError, match=f"{name} .* another process"):
            getattr(loaded, name)
    assert len(pickle.dumps(model)) < X.nbytes
    assert isinstance(small().fit_predict(LAZY), da.Array)
    np.testing.assert_array_equal((fitted := small()).fit_predict(X), fitted.labels_)


# --- as an estimator, and bad input ------------------------------------------------------


def test_score__rows_without_weight_do_not_count() -> None:
    model, bad, u = small().fit(X), X.copy(), WEIGHTS.copy()
    bad[[0, 3100]], u[[0, 3100]] = -1.0, 0.0
    expected = model.score(X, sample_weight=u)
    assert model.score(bad, sample_weight=u) == pytest.approx(expected)
    lazy, weights = da.from_array(bad, chunks=(1500, 2)), da.from_array(u, chunks=1500)
    assert model.score(lazy, sample_weight=weights) == pytest.approx(expected)
    assert small().fit(lazy, sample_weight=weights).coreset_.weights.min() > 0


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("lazy", [False, True])
def test_fit__fewer_distinct_rows_than_clusters(soft: bool, lazy: bool) -> None:
    rows: Any = np.repeat(X[:2], 50, axis=0)
    rows = da.from_array(rows, chunks=(30, 2)) if lazy else rows
    model = small(soft=soft, init=X[:3])
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(2\) .*n_clusters \(3\)"):
        model.fit(rows)
    assert model.cluster_centers_.shape == (3, 2)
    assert len(np.unique(model.cluster_centers_, axis=0)) == 2
    assert model.transform(X).shape == (len(X), 3)
    if soft:
        assert model.weights_.sum() == pytest.approx(1.0)
        assert model.predict_proba(X[:5]).sum(axis=1) == pytest.approx(1.0)
    else:
        np.testing.assert_allclose(model.cluster_centers_[model.predict(X[:2])], X[:2])
