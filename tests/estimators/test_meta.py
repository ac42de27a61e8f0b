"""CoresetEstimator around estimators of every kind."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr
from sklearn.base import BaseEstimator, clone, is_clusterer, is_regressor
from sklearn.cluster import DBSCAN, KMeans, MiniBatchKMeans
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from daskcoreset.errors import CoresetWarning, InvalidInputError, InvalidTypeError
from daskcoreset.estimators import CoresetEstimator

X, Y = make_classification(
    3000, 4, n_informative=3, n_redundant=0, n_clusters_per_class=1, random_state=0
)


NAMES = np.array(["no", "yes"])[Y]
TARGET = X @ np.array([1.0, 2.0, -1.0, 0.5]) + np.random.default_rng(0).normal(size=len(X))
WEIGHTS = np.random.default_rng(1).uniform(0.5, 2.0, size=len(X))
COLUMNS = list("abcd")


def small(estimator: Any, **options: Any) -> CoresetEstimator:
    """Return a model that samples, so that a coreset is not simply all rows."""
    return CoresetEstimator(estimator, **({"size": 500, "random_state": 0} | options))


def lazily(rows: Any) -> Any:
    return da.from_array(rows, chunks=700)


class Plain(BaseEstimator):  # type: ignore[misc] # scikit-learn has no annotations
    def fit(self, X: Any, y: Any = None) -> Plain:  # noqa: ARG002
        return self


# --- kinds of estimators -----------------------------------------------------------------


@pytest.mark.parametrize("labels", [Y, NAMES, NAMES.astype(object), Y.astype(bool)])
def test_classifier__score_out_of_core_is_that_in_memory(labels: Any) -> None:
    model = small(LogisticRegression()).fit(lazily(X), lazily(labels))
    assert model.predict(lazily(X)).compute().dtype == model.classes_.dtype
    plain = labels.astype(str) if labels.dtype == object else labels
    for weights in (None, WEIGHTS):
        lazy = None if weights is None else lazily(weights)
        found = model.score(lazily(X), lazily(labels), sample_weight=lazy)
        assert found == pytest.approx(model.score(X, plain, sample_weight=weights))


def test_classifier__says_which_class_is_lost() -> None:
    rare = Y.copy()
    rare[17] = 2
    with pytest.warns(CoresetWarning, match="1 of the 3 classes .* no row in the coreset .*: 2"):
        model = small(LogisticRegression(), size=100).fit(X, rare)
    assert list(model.classes_) == [0, 1]


def test_regressor__score_out_of_core_is_that_in_memory() -> None:
    model = small(Ridge()).fit(lazily(X), lazily(TARGET))
    assert is_regressor(model)
    full = Ridge().fit(X, TARGET)
    np.testing.assert_allclose(model.estimator_.coef_, full.coef_, atol=0.15)
    assert not hasattr(model, "classes_")
    for weights in (None, WEIGHTS):
        lazy = None if weights is None else lazily(weights)
        here = r2_score(TARGET, model.predict(X), sample_weight=weights)
        assert model.score(lazily(X), lazily(TARGET), sample_weight=lazy) == pytest.approx(here)
        assert model.score(X, TARGET, sample_weight=weights) == pytest.approx(here)
    with pytest.raises(InvalidInputError, match="sample_weight is zero"):
        model.score(lazily(X), lazily(TARGET), sample_weight=lazily(np.zeros(len(X))))


def test_clusterer__labels_and_fit_predict() -> None:
    model = small(KMeans(3, n_init=1)).fit(X)
    assert is_clusterer(model)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    np.testing.assert_array_equal(model.fit_predict(X), model.labels_)
    assert model.transform(lazily(X)).shape == (len(X), 3)
    lazy = small(KMeans(3, n_init=1))
    assert isinstance(lazy.fit_predict(lazily(X)), da.Array)
    assert isinstance(lazy.labels_, da.Array)
    np.testing.assert_array_equal(lazy.labels_.compute(), lazy.predict(X))
    assert not hasattr(pickle.loads(pickle.dumps(lazy)), "labels_")
    assert lazy.score(X) == pytest.approx(lazy.estimator_.score(X))
    assert lazy.score(lazily(X)) == pytest.approx(lazy.score(X))
    with pytest.raises(InvalidTypeError, match="score of a PCA needs rows in memory"):
        CoresetEstimator(FrozenEstimator(PCA(2).fit(X))).score(lazily(X))


def test_clusterer__inertia_is_of_all_rows() -> None:
    weights = np.random.default_rng(0).random(len(X))
    plain, lazy = small(KMeans(3, n_init=1)), small(MiniBatchKMeans(3, n_init=1))
    plain.fit(X, sample_weight=weights)
    assert isinstance(plain.inertia_, float)
    gaps = np.square(X[:, None] - plain.cluster_centers_).sum(axis=2).min(axis=1)
    assert plain.inertia_ == pytest.approx(weights @ gaps)
    assert plain.inertia_ != plain.estimator_.inertia_  # which is that of the coreset
    lazy.fit(lazily(X), sample_weight=lazily(weights))
    assert isinstance(lazy.inertia_, da.Array)
    gaps = np.square(X[:, None] - lazy.cluster_centers_).sum(axis=2).min(axis=1)
    assert float(lazy.inertia_) == pytest.approx(weights @ gaps)
    assert len(lazy.labels_) == len(X)


def test_transformer__frames_and_names() -> None:
    frame = pd.DataFrame(X, columns=COLUMNS, index=np.arange(len(X)) + 7)
    model = small(StandardScaler()).set_output(transform="pandas")
    found = model.fit_transform(frame)
    assert list(found.columns) == COLUMNS
    assert found.index[0] == 7
    assert list(model.get_feature_names_out()) == COLUMNS
    with pytest.raises(InvalidInputError, match='transform="default"'):
        model.transform(lazily(X))
    assert list(model.fit_transform(X).columns) == ["x0", "x1", "x2", "x3"]
    model.set_output(transform="default").fit(frame)
    assert isinstance(model.transform(frame), np.ndarray)
    lazy = model.fit_transform(dd.from_pandas(frame, npartitions=3))
    np.testing.assert_allclose(lazy.compute().mean(axis=0), 0, atol=0.2)


def test_transformer__sparse_results_stay_sparse() -> None:
    bins = KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf")
    model = small(bins).fit(X)
    blocks = model.transform(lazily(X))
    assert blocks.shape == (len(X), 16)
    found = blocks.compute()
    assert sp.issparse(found)
    assert abs(found - model.transform(X)).sum() == 0


@pytest.mark.parametrize(
    ("estimator", "present", "absent"),
    [
        (LogisticRegression(), ("predict_proba", "score"), ("transform", "fit_predict")),
        (Ridge(), ("predict", "score"), ("predict_proba", "transform", "classes_")),
        (StandardScaler(), ("transform", "fit_transform"), ("predict", "score")),
        (KMeans(2, n_init=1), ("predict", "fit_predict", "transform"), ("predict_proba",)),
        (DBSCAN(), (), ("predict", "fit_predict", "labels_")),
        (IsolationForest(n_estimators=5), ("predict", "score_samples"), ("transform",)),
        (KernelDensity(), ("score", "score_samples"), ("predict", "transform")),
    ],
)
def test_methods__are_those_of_the_estimator(
    estimator: Any, present: tuple[str, ...], absent: tuple[str, ...]
) -> None:
    model = small(estimator)
    target = TARGET if is_regressor(estimator) else Y
    for fitted in (model, clone(model).fit(X, target)):
        assert all(hasattr(fitted, name) for name in present)
        assert not any(hasattr(fitted, name) for name in absent)


# --- inputs ------------------------------------------------------------------------------


def test_fit__columns_of_frames_and_stores_by_name(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=COLUMNS).assign(y=Y, w=WEIGHTS)
    group = zarr.open_group(tmp_path / "all.zarr", mode="w")
    for name, values in (("X", X), ("y", Y), ("w", WEIGHTS)):
        group.create_array(name, data=values, chunks=(1000, *values.shape[1:]))
    for data in (frame, dd.from_pandas(frame, npartitions=3), str(tmp_path / "all.zarr")):
        model = small(LogisticRegression()).fit(data, "y", sample_weight="w")
        assert model.n_features_in_ == 4
        assert hasattr(model, "feature_names_in_") is not isinstance(data, str)
        assert model.score(data, "y", sample_weight="w") > 0.75


# --- what a user of scikit-learn does ----------------------------------------------------


def test_random_state__seeds_what_is_inside() -> None:
    forest = small(RandomForestClassifier(5))
    one, two = (clone(forest).fit(X, Y).predict_proba(X) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert forest.estimator.random_state is None
    chosen = small(RandomForestClassifier(5, random_state=3)).fit(X, Y)
    assert chosen.estimator_.random_state == 3


# --- bad input ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator", [PCA(), Plain(), make_pipeline(Ridge()), GridSearchCV(Ridge(), {})]
)
def test_fit__estimator_without_weights(estimator: Any) -> None:
    with pytest.raises(InvalidTypeError, match="takes no sample_weight"):
        small(estimator).fit(X, Y)


def test_attributes__of_the_inner_estimator() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3000, 2))
    y = (X[:, 0] > 0).astype(int)
    model = CoresetEstimator(LogisticRegression(), size=300, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.coef_, model.estimator_.coef_)
    assert model.n_iter_.shape == (1,)
    assert not hasattr(model, "cluster_centers_")
    bad = X.copy()
    bad[3] = np.nan
    dropping = CoresetEstimator(LogisticRegression(), size=300, on_invalid="drop").fit(bad, y)
    np.testing.assert_array_equal(dropping.coreset_.labels, y[dropping.coreset_.indices])


def test_audit__of_a_model_that_is_not_linear_says_so() -> None:
    trees = DecisionTreeClassifier(), DecisionTreeRegressor()
    for tree, y in zip(trees, (NAMES, TARGET), strict=True):
        model = small(tree, method="uniform").fit(X, y)
        with pytest.warns(CoresetWarning, match=f"linear models, but {type(tree).__name__} is not"):
            model.audit(X, y)
        assert model.audit(X, n_clusters=2).distortion < 1  # asked for by name: no warning
    small(LogisticRegression(), method="logistic").fit(X, NAMES).audit(X, NAMES)
    small(KMeans(2)).fit(X).audit(X)
