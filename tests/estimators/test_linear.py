"""Linear classifiers on coresets: answers in memory and out of core, streams and bad input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from daskcoreset.core.coreset import Coreset
from daskcoreset.errors import InvalidInputError
from daskcoreset.estimators import CoresetLogisticRegression, CoresetSVC
from daskcoreset.estimators.linear import LinearSVM
from daskcoreset.objectives import QuantizationError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6000, 4))
SCORE = X @ [1.5, -1.0, 0.5, 0.0] + RNG.normal(size=6000)


Y = np.where(SCORE > 1, "yes", "no")
THREE = np.where(SCORE > 1, 2, np.where(SCORE < -1, 0, 1))


@pytest.mark.parametrize(
    "estimator",
    [
        LinearSVC(dual=False, random_state=0),
        SGDClassifier(average=True, random_state=0),  # its last iterate alone is a matter of luck
        SVC(kernel="linear"),
    ],
)
def test_coreset_svc__any_solver_with_weights(estimator: Any) -> None:
    model = CoresetSVC(size=500, estimator=estimator, random_state=0)
    assert model.fit(X, Y).score(X, Y) > 0.8
    assert type(model.estimator_) is type(estimator)


def test_coreset_svc__three_classes_sparse_and_pipeline() -> None:
    model = CoresetSVC(size=400, random_state=0).fit(sp.csr_array(X), THREE)
    assert model.coef_.shape == (3, 4)
    assert model.decision_function(X).shape == (6000, 3)
    best = LinearSVM().fit(X, THREE)
    assert (model.predict(sp.csr_array(X)) == THREE).mean() > (
        best.predict(X) == THREE
    ).mean() - 0.03
    wild = X * [1e-3, 1.0, 1e3, 1.0] + 1e3
    piped = make_pipeline(StandardScaler(), CoresetSVC(size=300, random_state=0)).fit(wild, Y)
    assert piped.score(wild, Y) > 0.8


def test_partial_fit__goes_on_after_fit_and_out_of_core() -> None:
    model = CoresetSVC(size=200, random_state=0).fit(X[:3000], Y[:3000])
    model.partial_fit(da.from_array(X[3000:], chunks=(800, 4)), da.from_array(Y[3000:], chunks=800))
    assert model.coreset_.weights.sum() == pytest.approx(6000)
    assert model.score(X, Y) > 0.8
    with pytest.raises(ValueError, match="4 features"):
        model.partial_fit(X[:, :2], Y)
    with pytest.raises(InvalidInputError, match="4 features"):
        model.partial_fit(da.from_array(X[:, :2], chunks=1000), da.from_array(Y, chunks=1000))
    fresh = CoresetSVC(size=200, random_state=0)
    fresh.partial_fit(da.from_array(X, chunks=(800, 4)), da.from_array(Y, chunks=800))
    assert fresh.n_features_in_ == 4


# --- parameters and attributes of scikit-learn's own ----------------------------------------------


def _two_classes() -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3000, 2))
    return X, (X[:, 0] + 0.3 * rng.normal(size=3000) > 0.5).astype(int)


@pytest.mark.parametrize("estimator", [CoresetSVC, CoresetLogisticRegression])
@pytest.mark.parametrize("lazy", [False, True])
def test_fit__drops_invalid_rows_and_audits(estimator: Any, lazy: bool) -> None:
    X, y = _two_classes()
    bad, kept = X.copy(), np.arange(3000) != 7
    bad[7, 1] = np.nan
    given = (da.from_array(bad, chunks=(1000, 2)), da.from_array(y, chunks=1000))
    data = given if lazy else (bad, y)
    options = {"size": 10_000, "class_weight": "balanced", "random_state": 0}
    model = estimator(on_invalid="drop", **options).fit(*data)
    expected = estimator(**options).fit(X[kept], y[kept])
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-3)
    assert 7 not in model.coreset_.indices
    assert model.audit(*data, random_state=0).distortion < 1e-6


@pytest.mark.parametrize("class_weight", ["balanced", {"no": 0.2, "yes": 5.0}])
def test_coreset_audit__knows_the_weights_of_classes(class_weight: Any, tmp_path: Path) -> None:
    X, y = _two_classes()
    y = np.where(y == y[0], "yes", "no")
    lazy = da.from_array(X, chunks=(1000, 2)), da.from_array(y, chunks=1000)
    for given in ((X, y), lazy, (X, y.astype(object))):
        model = CoresetLogisticRegression(size=300, class_weight=class_weight, random_state=0)
        coreset = model.fit(*given).coreset_
        mine, its = coreset.audit(*given, random_state=0), model.audit(*given, random_state=0)
        assert mine.distortion == its.distortion < 0.2
        assert mine.data_weight == pytest.approx(coreset.total_weight)
    coreset.to_zarr(tmp_path / "coreset")
    again = Coreset.from_zarr(tmp_path / "coreset").audit(X, y, random_state=0)
    assert again.distortion == mine.distortion
    with pytest.raises(InvalidInputError, match="y is missing"):
        coreset.audit(X, objective=QuantizationError(2), random_state=0)
    if class_weight != "balanced":
        model.partial_fit(X, y)
        assert model.coreset_.provenance["class_weight"] == (("no", 0.2), ("yes", 5.0))


def test_logistic__without_penalty() -> None:
    X, y = _two_classes()
    model = CoresetLogisticRegression(C=np.inf, random_state=0).fit(X, y)
    plain = LogisticRegression(C=np.inf, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-3)
