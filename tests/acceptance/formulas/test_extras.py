"""What few ask of margins: kernels, audits, strategies, stored runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest

from tests.acceptance import face
from tests.acceptance.tools.margins import three_classes, two_classes

es = face.estimators


@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid", "linear"])
@pytest.mark.parametrize("intercept", [True, False])
def test_kernel__margin_is_that_of_a_hard_support_vector_machine(
    kernel: str, intercept: bool
) -> None:
    from sklearn.metrics.pairwise import pairwise_kernels
    from sklearn.svm import SVC

    X, y = two_classes(60, 2, 0.8, 3)
    own: dict[str, Any] = {"gamma": 0.05, "degree": 2, "coef0": 0.1}
    model = es.MaxMarginClassifier(1e-3, kernel=kernel, fit_intercept=intercept, **own)
    data = da.from_array(X, chunks=(20, 2)), da.from_array(y, chunks=20)
    if kernel == "sigmoid":
        with pytest.raises(face.CoresetError, match="positive semidefinite"):
            model.fit(*data)
        return
    model.fit(*data)
    used = {"rbf": ["gamma"], "linear": []}.get(kernel, [*own])
    gram = pairwise_kernels(X, metric=kernel, **{name: own[name] for name in used})
    if intercept:
        solved = SVC(kernel="precomputed", C=1e9, tol=1e-6).fit(gram, y)
        a = np.zeros(60)
        a[solved.support_] = solved.dual_coef_[0]
        best = 1 / np.sqrt(a @ gram @ a)
        assert model.margin_ == pytest.approx(best, rel=2e-3)
    signs = np.where(y, 1.0, -1.0)
    values = model.decision_function(X)
    assert (signs * values).min() == pytest.approx(model.margin_, rel=1e-6)
    normal = np.zeros(60)
    normal[model.core_indices_] = model.dual_coef_
    normal /= np.sqrt(normal @ gram @ normal)
    assert np.allclose(gram @ normal + model.intercept_, values)
    if kernel != "linear":
        assert model.coreset_.provenance["radius"] == pytest.approx(np.sqrt(np.diag(gram).max()))
    three, labels = three_classes(45)
    several = es.MaxMarginClassifier(0.01, kernel="rbf").fit(three, labels)
    assert (several.predict(three) == labels).all()
    assert len(several.core_) == 3


def test_audit__of_margins_counts_rows_of_new_data() -> None:
    X, y = two_classes(200, 3, 0.5, 1)
    model = es.MaxMarginClassifier(0.05).fit(X[:100], y[:100])
    Z = X.copy()
    Z[150:] -= 0.6 * np.where(y[150:], 1, -1)[:, np.newaxis] * model.coef_
    u = np.ones(200)
    u[190:] = 0.0
    distances = np.where(y, 1, -1) * model.decision_function(Z)
    found = model.audit(da.from_array(Z, chunks=(60, 3)), y, sample_weight=u)
    assert found.on_data == pytest.approx(distances[:190].min())
    core = model.coreset_
    assert found.on_coreset == pytest.approx(distances[core.indices].min())
    assert found.largest == face.margins(model)[1]
    assert found.n_wrong == (distances[:190] <= 0).sum() > 0
    assert found.n_inside == (distances[:190] < 0.95 * found.largest).sum() > found.n_wrong
    assert (found.n_rows, found.n_core, found.n_left_out) == (190, len(core), 0)
    assert found.factor == found.on_data / found.largest
    assert not found.holds
    assert "below 0.95" in repr(found)
    own = model.audit(X[:100], y[:100])
    assert own.holds
    assert "at least 0.95" in repr(own)
    outlier = es.OutlierMaxMarginClassifier(2).fit(X[:100], y[:100])
    left_out = outlier.audit(X[:100], y[:100])
    assert left_out.n_left_out == 2
    assert left_out.on_data == pytest.approx(outlier.margin_)


@pytest.mark.usefixtures("quick_disk")
@pytest.mark.parametrize("strategy", ["pool", "stream", "cover"])
def test_labels__of_stored_runs_go_on(strategy: Any, tmp_path: Path) -> None:
    X, y = two_classes(200, 2, 0.3, 7)
    options: dict[str, Any] = {"strategy": strategy, "batch": 4, "random_state": 0, "error": 0.2}
    lazy = da.from_array(X, chunks=(70, 2))
    whole = face.margin.ActiveMaxMargin(lambda _, indices: y[indices], **options).run(lazy)
    assert (whole.predict(X) != y).mean() <= 0.2
    assert whole.n_labels < 60
    assert whole.stopped == "verified"
    path = tmp_path / "run.zarr"
    run = face.margin.ActiveMaxMargin(**options).start(lazy, store=path)
    for _ in range(4):
        request: Any = run.ask()
        assert 0 < len(set(request.indices.tolist())) == len(request) <= 4
        if strategy == "stream" and run.state.fit is not None:
            gaps = np.abs(run.result().decision_function(X))
            assert (gaps[request.indices] < 0.9 * run.result().margin).all()
        run.tell(y[request.indices])
        run = face.margin.ActiveMaxMargin.resume(path, lazy)
    again = run.run(lambda _, indices: y[indices])
    assert np.array_equal(again.indices, whole.indices)
    assert np.array_equal(again.w, whole.w)
    assert again.certificate == whole.certificate
    assert len(again.trace) == len(whole.trace)
    with pytest.raises(face.CoresetError, match="exists"):
        face.margin.ActiveMaxMargin(**options).start(lazy, store=path)
    with pytest.raises(face.CoresetError, match="not the pool"):
        face.margin.ActiveMaxMargin.resume(path, X[::-1])
    slip = int(whole.indices[0])
    run.correct({slip: y[slip]})
    with pytest.raises(face.CoresetError, match="no label yet"):
        run.correct({int(np.setdiff1d(np.arange(200), whole.indices)[0]): True})
