"""Small data: all rows if no size is given, by a fixed rule, and a size that is given is obeyed."""

from __future__ import annotations

import warnings
from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans

from tests.acceptance import face

es = face.estimators


def mixture(n: int = 30_000, d: int = 3) -> Any:
    rng = np.random.default_rng(0)
    return 10 * rng.normal(size=(12, d))[rng.integers(12, size=n)] + rng.normal(size=(n, d))


@pytest.fixture(autouse=True)
def no_warnings() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error", face.errors.CoresetWarning)
        yield


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_model__of_few_rows_is_that_of_scikit_learn(dtype: str) -> None:
    X = mixture().astype(dtype)
    model, plain = (kind(8, random_state=3).fit(X) for kind in (es.CoresetKMeans, KMeans))
    assert len(model.coreset_) == len(X)
    assert np.array_equal(model.labels_, plain.labels_)
    assert model.inertia_ == pytest.approx(plain.inertia_, rel=1e-5)
    np.testing.assert_allclose(model.cluster_centers_, plain.cluster_centers_, rtol=1e-4, atol=1e-4)
    record = model.coreset_.provenance["size_rule"]
    assert dict(record) == {
        "rule": "default", "n": 30_000, "d": 3, "n_clusters": 8, "all_rows": True
    }  # fmt: skip


def test_build__takes_all_of_few_rows_if_clusters_are_known() -> None:
    X = mixture()
    coreset = face.build(X, n_clusters=8, random_state=0)
    assert np.array_equal(coreset.points, X)
    assert np.all(coreset.weights == 1.0)
    assert len(face.build(X, random_state=0)) == 10_000
    many = face.build_many(X, methods=["kmeans", "uniform"], n_clusters=8, random_state=0)
    assert [len(member) for member in many.values()] == [30_000, 30_000]
    assert len(face.plan(X, n_clusters=8, random_state=0).compute()) == 30_000


@pytest.mark.parametrize("size", [300, 10_000, 29_999])
def test_size__that_is_given_is_obeyed(size: int) -> None:
    X = mixture()
    assert len(face.build(X, size=size, n_clusters=8, random_state=0)) == size
    coreset = es.CoresetKMeans(8, size=size, random_state=0).fit(X).coreset_
    assert len(coreset) == size
    assert "size_rule" not in coreset.provenance


def test_size__that_is_given_as_all_rows_is_said_to_reduce_nothing() -> None:
    with pytest.warns(face.errors.CoresetWarning, match="nothing was reduced"):
        face.build(mixture(50), size=50, random_state=0)


def test_model__is_the_same_out_of_core() -> None:
    X = mixture()
    stored = da.from_array(X, chunks=(7_000, 3))
    here, there = (es.CoresetKMeans(8, random_state=0).fit(rows) for rows in (X, stored))
    assert np.array_equal(here.cluster_centers_, there.cluster_centers_)
    assert np.array_equal(here.labels_, there.labels_.compute())
    assert here.coreset_.points.tobytes() == there.coreset_.points.tobytes()


def test_model__of_unknown_rows_draws() -> None:
    X = da.from_array(mixture(), chunks=(7_000, 3))
    coreset = es.CoresetKMeans(8, random_state=0).fit(X[X[:, 0] > -np.inf]).coreset_
    assert len(coreset) == 20_000
    assert not coreset.provenance["size_rule"]["all_rows"]


def test_model__of_weighted_and_of_repeated_rows_is_the_same() -> None:
    X = mixture(500)
    counts = np.random.default_rng(1).integers(0, 3, len(X))
    weighted = es.CoresetKMeans(5, random_state=0).fit(X, sample_weight=counts)
    repeated = es.CoresetKMeans(5, random_state=0).fit(np.repeat(X, counts, axis=0))
    assert np.array_equal(weighted.cluster_centers_, repeated.cluster_centers_)
    assert weighted.inertia_ == pytest.approx(repeated.inertia_)
    assert np.array_equal(np.repeat(weighted.labels_, counts), repeated.labels_)


def test_model__of_sparse_wide_and_dropped_rows() -> None:
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(40, 90))
    dense = es.CoresetKMeans(4, random_state=0).fit(wide)
    sparse = es.CoresetKMeans(4, random_state=0).fit(sp.csr_array(wide))
    assert np.array_equal(dense.labels_, sparse.labels_)
    assert np.array_equal(dense.labels_, KMeans(4, random_state=0).fit(wide).labels_)
    X = mixture(400)
    X[7, 1] = np.nan
    model = es.CoresetKMeans(4, random_state=0, on_invalid="drop").fit(X)
    kept = KMeans(4, random_state=0).fit(np.delete(X, 7, axis=0))
    assert model.labels_[7] == -1
    assert np.array_equal(np.delete(model.labels_, 7), kept.labels_)


def test_model__of_directions_has_centers_of_length_one() -> None:
    X = mixture(2_000)
    model = es.CoresetKMeans(6, metric="cosine", random_state=0).fit(X)
    assert np.allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1.0)
    assert np.array_equal(model.labels_, model.predict(X))
    assert model.inertia_ == pytest.approx(-model.score(X))


@pytest.mark.parametrize("size", ["auto", 100])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_init__that_is_not_finite_is_an_error(size: Any, value: float) -> None:
    X = mixture(300, 2)
    with pytest.raises(face.errors.InvalidInputError, match="init contains NaN"):
        es.CoresetKMeans(3, size=size, init=np.full((3, 2), value)).fit(X)


def test_model__of_stored_rows_keeps_no_labels() -> None:
    X = mixture(2000)
    held, stored = (
        es.CoresetKMeans(8, random_state=0).fit(rows) for rows in (X, da.from_array(X, chunks=500))
    )
    assert np.array_equal(held.labels_, stored.labels_.compute())
    tuples = [each for part in vars(stored).values() if isinstance(part, tuple) for each in part]
    assert not [each for each in tuples if isinstance(each, np.ndarray)]


def test_model__of_equal_rows_in_two_columns_is_that_of_scikit_learn() -> None:
    """Rows that two columns do not tell apart are distinct by a third one."""
    X = np.column_stack([np.tile([[30.0, 0.0], [0.0, 20.0]], (300, 1)), np.arange(600.0) / 600])
    model, plain = (kind(4, random_state=1).fit(X) for kind in (es.CoresetKMeans, KMeans))
    assert np.array_equal(model.labels_, plain.labels_)
