"""CoresetKMeans: as good as on all rows, in memory and out of core."""

from __future__ import annotations

import pickle
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from daskcoreset.core.typing import AnyArray
from daskcoreset.errors import CoresetWarning, InvalidInputError
from daskcoreset.estimators import CoresetKMeans
from daskcoreset.metrics.costs import kmeans_cost
from tests.acceptance.tools.hostile import uneven_categories
from tests.pairs import each

K = 5


def mixture(n: int = 4000, d: int = 3) -> AnyArray:
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(K, d)) * 10
    uneven = rng.choice(K, size=n, p=[0.6, 0.2, 0.1, 0.08, 0.02])
    return np.asarray((centers[uneven] + rng.normal(size=(n, d))).astype(np.float32))


X = mixture()
WEIGHTS = np.random.default_rng(1).uniform(0.5, 2.0, size=len(X))
COLUMNS = ["a", "b", "c"]


def small(**options: Any) -> CoresetKMeans:
    """Return a model that samples, so that a coreset is not simply all rows."""
    return CoresetKMeans(
        **({"n_clusters": K, "size": 500, "n_init": 3, "random_state": 0} | options)
    )


# --- what it finds -----------------------------------------------------------------------


@each(lazy=[False, True], sparse=[False, True])
def test_fit__uneven_categories_as_good_as_kmeans_on_everything(sparse: bool, lazy: bool) -> None:
    rows = uneven_categories(20_000, 60)
    full = KMeans(30, n_init=3, random_state=0).fit(rows)
    made: Any = sp.csr_array(rows) if sparse else rows
    if lazy:
        made = da.from_array(rows, chunks=(5000, 60))
        made = made.map_blocks(sp.csr_array) if sparse else made
    model = CoresetKMeans(30, size=5000, random_state=0)
    cost = kmeans_cost(rows, model.fit(made).cluster_centers_)
    assert cost <= 1.001 * full.inertia_
    assert model.coreset_inertia_ == pytest.approx(float(cost), rel=0.02)


def test_fit__initial_centers_are_used() -> None:
    init = KMeans(K, n_init=5, random_state=0).fit(X).cluster_centers_
    model = small(init=init, n_init="auto").fit(X)
    np.testing.assert_allclose(model.cluster_centers_, init, atol=1.0)
    lazy = small(init=init.tolist(), n_init=1).fit(da.from_array(X, chunks=1000))
    np.testing.assert_allclose(lazy.cluster_centers_, init, atol=1.0)


# --- inputs ------------------------------------------------------------------------------


def test_predict__known_and_unknown_weights() -> None:
    lazy, weights = da.from_array(X, chunks=1000), da.from_array(WEIGHTS, chunks=1000)
    model = small().fit(lazy, sample_weight=weights)
    assert model.coreset_.total_weight == pytest.approx(WEIGHTS.sum(), rel=0.1)
    inertia = float(model.inertia_)
    assert inertia == pytest.approx(-model.score(X, sample_weight=WEIGHTS))
    assert inertia == pytest.approx(-model.score(lazy, sample_weight=WEIGHTS))
    frame = pd.DataFrame(X, columns=COLUMNS).assign(w=WEIGHTS)
    named = small().fit(frame, sample_weight="w")
    assert list(named.feature_names_in_) == COLUMNS
    np.testing.assert_array_equal(named.labels_, named.predict(frame[COLUMNS]))
    assert float(named.inertia_) == pytest.approx(-named.score(frame, sample_weight="w"))


def test_transform__set_output_gives_frames_of_rows_in_memory() -> None:
    model = small().set_output(transform="pandas")
    frame = pd.DataFrame(X, columns=COLUMNS, index=np.arange(len(X)) + 7)
    found = model.fit_transform(frame)
    assert list(found.columns) == [f"coresetkmeans{i}" for i in range(K)]
    assert list(found.columns) == list(model.get_feature_names_out())
    assert found.index[0] == 7
    with pytest.raises(InvalidInputError, match='transform="default"'):
        model.transform(da.from_array(X, chunks=1000))
    plain = small().fit(X)
    with config_context(transform_output="pandas"), pytest.raises(InvalidInputError, match="Dask"):
        plain.transform(da.from_array(X, chunks=1000))


# --- what a user of scikit-learn does ----------------------------------------------------


def test_attributes__absent_ones_say_what_to_do() -> None:
    model = small()
    with pytest.raises(NotFittedError):
        _ = model.labels_
    with pytest.raises(NotFittedError):
        _ = model.inertia_
    model.fit(da.from_array(X, chunks=1000))
    assert isinstance(model.labels_, da.Array)
    loaded = pickle.loads(pickle.dumps(model))
    with pytest.raises(AttributeError, match=r"predict\(X\)"):
        _ = loaded.labels_
    with pytest.raises(AttributeError, match=r"-score\(X\)"):
        _ = loaded.inertia_
    assert isinstance(model.fit_predict(da.from_array(X, chunks=1000)), da.Array)
    model.fit(X)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    np.testing.assert_array_equal(model.fit_predict(X), model.labels_)


def test_grid_search__and_pipeline() -> None:
    pipeline = make_pipeline(StandardScaler(), small(n_init=1))
    search = GridSearchCV(pipeline, {"coresetkmeans__n_clusters": [2, K]}, cv=3).fit(X)
    assert search.best_params_ == {"coresetkmeans__n_clusters": K}
    assert search.predict(X).shape == (len(X),)
    assert list(search.best_estimator_[-1:].get_feature_names_out()) == [
        f"coresetkmeans{i}" for i in range(K)
    ]


# --- edges and bad input -----------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 7])
def test_fit__as_many_clusters_as_distinct_rows(k: int) -> None:
    rows = np.arange(k, dtype=float)[:, None].repeat(2, axis=1).repeat(3, axis=0)
    model = CoresetKMeans(k, random_state=0).fit(rows)
    assert model.inertia_ == pytest.approx(0)
    assert len(np.unique(model.labels_)) == k
    with pytest.warns(ConvergenceWarning, match=rf"clusters \({k}\) .*n_clusters \({k + 1}\)"):
        model = CoresetKMeans(k + 1).fit(rows)
    assert model.cluster_centers_.shape == (k + 1, 2)
    assert model.inertia_ == 0
    assert np.unique(model.labels_).tolist() == list(range(k))
    with pytest.raises(ValueError, match=f"n_samples={3 * k} should be >= n_clusters={3 * k + 1}"):
        CoresetKMeans(3 * k + 1).fit(rows)


def test_fit__too_few_rows_in_the_coreset() -> None:
    with pytest.raises(InvalidInputError, match="size=3 is below n_clusters=5"):
        small(size=3).fit(X)
    rows = np.r_[np.zeros((1000, 2)), np.arange(6.0).reshape(3, 2)]
    with pytest.warns(ConvergenceWarning, match=r"rows of coreset_ .* Raise size"):
        CoresetKMeans(8, size=8, method="uniform", random_state=0).fit(rows)


# --- rows that are dropped, and what is read when asked for ----------------------------------


@pytest.mark.parametrize("size", [100, "auto"])
def test_fit__drops_invalid_rows(size: Any) -> None:
    bad = X.copy()
    bad[[7, 1500], [0, 2]] = np.nan, np.inf
    model = small(on_invalid="drop", size=size).fit(bad)
    assert np.flatnonzero(model.labels_ < 0).tolist() == [7, 1500]
    assert model.coreset_.provenance["n_dropped"] == 2
    np.testing.assert_array_equal(bad[model.coreset_.indices], model.coreset_.points)
    lazy = small(on_invalid="drop", size=size).fit(da.from_array(bad, chunks=(1000, 3)))
    assert lazy.coreset_.provenance["n_dropped"] == 2
    with pytest.raises(
        AttributeError, match=r"left out rows .* call predict\(X\) on the other rows\."
    ):
        _ = lazy.labels_
    with pytest.raises(ValueError, match="all rows were dropped"):
        small(on_invalid="drop").fit(np.full((20, 2), np.nan))
    with pytest.raises(ValueError, match="NaN"):
        small().fit(bad)


def test_fit__warns_once_of_a_column_that_decides_alone() -> None:
    wide = X / X.std(axis=0) * [1.0, 100.0, 1.0]
    with pytest.warns(CoresetWarning, match="column 1 holds more than 99.8 %") as caught:
        small().fit(wide)
    named = pd.DataFrame(wide, columns=["a", "b", "c"])
    with pytest.warns(CoresetWarning, match=r"column 1 \('b'\) holds more"):
        small().fit(named)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    small().fit(X / X.std(axis=0) * [1.0, 20.0, 1.0])
    small().fit(wide[:, 1:2])
