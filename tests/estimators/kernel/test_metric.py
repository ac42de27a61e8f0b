"""Factors of columns that are learned from a pilot."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

from daskcoreset.core.blocks import Block
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.estimators import CSVRGClassifier
from daskcoreset.estimators.kernel import metric
from daskcoreset.estimators.kernel.held import HeldRows
from daskcoreset.estimators.kernel.kernels import Isotropic, KernelMap
from daskcoreset.estimators.kernel.losses import LOSSES
from daskcoreset.estimators.kernel.metric import learned_scales


def many_columns(n: int = 4_000, d: int = 10) -> tuple[FloatArray, AnyArray]:
    """Rows of which two columns tell the classes apart."""
    X = np.random.default_rng(0).random((n, d))
    return X, np.where((X[:, 3] - 0.5) ** 2 + (X[:, 1] - 0.5) ** 2 < 0.15, "in", "out")


def in_order(X: AnyArray, y: AnyArray) -> Block:
    order = np.argsort(y, kind="stable")
    return Block(X[order], np.ones(len(X)), y[order])


def learned(X: AnyArray, y: AnyArray, lam: float = 3.0) -> FloatArray:
    rows, classes, points = in_order(X, y), np.unique(y), X[:200]
    found = learned_scales(rows, points, LOSSES["odm"], classes=classes, lam=lam * len(X))
    return found[0]


@pytest.mark.parametrize("loss", ["odm", "squared_hinge"])
def test_pilot__slopes_as_by_differences(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = many_columns(500, 4)
    rows, classes = in_order(X, y), np.array(["in", "out"])
    monkeypatch.setattr(metric, "_TOL", 1e-10)
    pilot = metric._Pilot(rows, X[:30], LOSSES[loss], classes, 500.0)
    scales = np.array([1.0, 4.0, 0.5, 2.0])
    _, slopes = pilot.evaluate(scales)
    assert pilot.first is not None

    def least(scales: FloatArray) -> float:
        # At the least point coefficients change the objective in second order alone.
        core = KernelMap(Isotropic("rbf", 1.0), pilot.points, scales)
        held = HeldRows.of(core, pilot.rows, classes, pilot.loss, pilot.factor)
        found = held.solve(0, pilot.beta[0], 1e-10)
        losses = held.weights @ held.loss.value(found.margins)
        return float(0.5 * found.beta @ held.gram @ found.beta + losses)

    for j, slope in enumerate(slopes * pilot.first[0]):
        factors = np.exp(0.01 * np.eye(4)[j])
        expected = (least(scales * factors) - least(scales / factors)) / 0.02
        assert slope == pytest.approx(expected, rel=2e-3, abs=1e-2)


def test_fit__gamma_is_learned_too() -> None:
    X, y = many_columns()
    fresh = many_columns(9_000)
    options: dict[str, Any] = {"metric": "learned", "max_points": 60, "random_state": 0}
    model = CSVRGClassifier(gamma="learned", **options).fit(X, y)
    wide = CSVRGClassifier(gamma=0.001, **options).fit(X, y)
    assert wide.gamma_ == 0.001
    assert model.gamma_ > 1.0
    assert model.score(*fresh) > max(0.97, wide.score(*fresh))
    # Where nothing can be learned it begins and ends at one width.
    flat = CSVRGClassifier(gamma="learned", **options).fit(np.full_like(X[:9], 3.0), y[:9])
    assert flat.gamma_ == 1.0


@pytest.mark.nightly
def test_fit__two_columns_of_ten() -> None:
    X, y = many_columns()
    fresh = many_columns(9_000)
    scores = {}
    for name in ("euclidean", "learned"):
        model = CSVRGClassifier(metric=name, max_points=60, random_state=0).fit(X, y)
        scores[name] = model.score(*fresh)
    assert scores["learned"] > scores["euclidean"] + 0.02
    others = np.delete(model.scales_, [1, 3])
    assert model.scales_[[1, 3]].min() > 3 * others.max()
    # Gamma means the same as before.
    variances = X.var(axis=0)
    assert (model.scales_**2) @ variances == pytest.approx(variances.sum(), rel=0.05)


@pytest.mark.nightly
def test_learned_scales__hostile_rows() -> None:
    X, y = many_columns(2_000, 5)
    # Of no unit: the slope along a column in other units is the slope times them.
    units = np.array([1.0, 1.0, 1.0, 1e-2, 1.0])
    assert learned(X * units, y)[3] > 0
    # A constant column, noise labels, one value only.
    X[:, 2] = 7.0
    assert learned(X, y)[2] == 0.0
    noise = np.random.default_rng(0).integers(0, 2, len(X))
    assert np.isfinite(learned(X, noise)).all()
    np.testing.assert_array_equal(learned(np.full_like(X, 3.0), y), np.ones(5))


@pytest.mark.nightly
def test_learned_scales__a_class_of_five_rows_has_its_column() -> None:
    X, y = many_columns(3_000, 8)
    X[:, 3] = 4 * X[:, 3]
    X[:5, 5], y[:5] = 3.0, "rim"  # X[:, 5] is below one elsewhere
    scales = learned(X, y)
    assert scales[5] > np.delete(scales, [1, 3, 5]).max()
    model = CSVRGClassifier(metric="learned", max_points=60, random_state=0).fit(X, y)
    assert (model.predict(X[:5]) == "rim").all()


@pytest.mark.nightly
def test_fit__same_bits_on_every_scheduler_sparse_as_dense_and_warm() -> None:
    X, y = many_columns(12_000, 6)
    rows: Any = da.from_array(X, chunks=(3_000, 6)), da.from_array(y, chunks=3_000)
    found = []
    for scheduler in ("sync", "threads"):
        with dask.config.set(scheduler=scheduler):
            model = CSVRGClassifier(metric="learned", max_points=40, size=2_000, random_state=0)
            found.append(model.fit(*rows))
    first, second = found
    np.testing.assert_array_equal(first.scales_, second.scales_)
    np.testing.assert_array_equal(first.dual_coef_, second.dual_coef_)
    assert first.audit(*rows, random_state=0).distortion < 0.5
    before = first.scales_
    first.set_params(warm_start=True, C=2.0).fit(*rows)
    assert first.scales_ is before
    first.set_params(warm_start=False, metric="euclidean").fit(*rows)
    assert not hasattr(first, "scales_")


@pytest.mark.nightly
def test_fit__what_a_learned_metric_does_not_go_with() -> None:
    X, y = many_columns(300, 4)
    for options in ({"diameter": 0.5}, {"strategy": "online"}, {"strategy": "farthest"}):
        with pytest.raises(InvalidInputError, match=r"metric=.*covers"):
            CSVRGClassifier(metric="learned", **options).fit(X, y)
    with pytest.raises(InvalidInputError, match="partial_fit cannot learn a metric"):
        CSVRGClassifier(metric="learned").partial_fit(X, y)
    combinations: list[dict[str, Any]] = [{}, {"metric": "learned", "kernel": "laplacian"}]
    for more in combinations:
        with pytest.raises(InvalidInputError, match='gamma="learned" is learned with the metric'):
            CSVRGClassifier(gamma="learned", **more).fit(X, y)
    with pytest.raises(ValueError, match="metric"):
        CSVRGClassifier(metric="cosine").fit(X, y)  # type: ignore[arg-type] # what is tested
