"""CoresetGaussianMixture: scikit-learn's answers where it has any, and lazy ones elsewhere."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from daskcoreset import Draw, build
from daskcoreset.core.typing import AnyArray
from daskcoreset.errors import CoresetWarning, InvalidInputError
from daskcoreset.estimators import CoresetGaussianMixture
from daskcoreset.sensitivities import Mixture
from tests.acceptance.tools.counting import CountingScheduler

TYPES = ("full", "tied", "diag", "spherical")


def blobs(n: int = 4000) -> AnyArray:
    rng = np.random.default_rng(0)
    component = rng.choice(3, size=n, p=[0.7, 0.25, 0.05])
    means = np.array([[0.0, 0.0], [8.0, 1.0], [-4.0, 9.0]])
    return np.asarray(means[component] + rng.normal(size=(n, 2)) * [[1.0, 0.5]])


X = blobs()
WEIGHTS = np.random.default_rng(1).uniform(0.5, 2.0, size=len(X))
LAZY = da.from_array(X, chunks=(1500, 2))


def small(**options: Any) -> CoresetGaussianMixture:
    """Return a model that samples, so that a coreset is not simply all rows."""
    return CoresetGaussianMixture(**({"n_components": 3, "size": 800, "random_state": 0} | options))


# --- what it finds -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", TYPES)
def test_fit__scikit_learns_answer_where_nothing_is_sampled(kind: Any) -> None:
    options: Any = {"covariance_type": kind, "tol": 1e-12, "max_iter": 1000, "random_state": 0}
    rows = X[:600]
    theirs, ours = GaussianMixture(3, **options), CoresetGaussianMixture(3, **options)
    theirs.fit(rows)
    ours.fit(rows)
    assert ours.converged_
    assert ours.lower_bound_ == pytest.approx(theirs.lower_bound_, abs=1e-8)
    assert ours.lower_bounds_[-1] == ours.lower_bound_
    assert len(ours.lower_bounds_) == ours.n_iter_
    np.testing.assert_allclose(np.sort(ours.weights_), np.sort(theirs.weights_), rtol=1e-4)
    np.testing.assert_allclose(np.sort(ours.means_, 0), np.sort(theirs.means_, 0), rtol=1e-4)
    np.testing.assert_allclose(ours.score_samples(rows), theirs.score_samples(rows), atol=1e-4)
    assert adjusted_rand_score(ours.predict(rows), theirs.predict(rows)) == 1.0
    proba = ours.predict_proba(rows)
    np.testing.assert_array_equal(proba.argmax(axis=1), ours.predict(rows))
    np.testing.assert_allclose(np.sort(proba), np.sort(theirs.predict_proba(rows)), atol=1e-4)
    for name in ("score", "bic", "aic"):
        assert getattr(ours, name)(rows) == pytest.approx(getattr(theirs, name)(rows), rel=1e-6)


# --- out of core -------------------------------------------------------------------------


def test_bic__depends_on_the_scale_of_weights() -> None:
    model = small().fit(X)
    f, n = model._fitted.n_parameters, len(X)
    difference = model.bic(X, sample_weight=np.full(n, 2.0)) - 2 * model.bic(X)

    assert difference == pytest.approx(f * (np.log(2 * n) - 2 * np.log(n)), rel=1e-6)
    assert model.bic(X) == pytest.approx(model.aic(X) + f * (np.log(n) - 2.0))
    for criterion in (model.bic, model.aic):
        of_rows = criterion(np.repeat(X, 2, axis=0))
        assert criterion(X, sample_weight=np.full(n, 2.0)) == pytest.approx(of_rows, rel=1e-9)


def test_score__weighted_in_one_read_out_of_core() -> None:
    model, u = small().fit(LAZY), da.from_array(WEIGHTS, chunks=1500)
    scheduler = CountingScheduler()
    with dask.config.set(scheduler=scheduler):
        found = model.bic(LAZY, sample_weight=u)
    assert scheduler.calls == 1
    assert found == pytest.approx(model.bic(X, sample_weight=WEIGHTS))
    assert model.score(LAZY, sample_weight=u) == pytest.approx(model.score(X, None, WEIGHTS))
    with pytest.raises(InvalidInputError, match="zero on every row"):
        model.score(LAZY, sample_weight=0 * u)
    bad = X.copy()
    bad[3100, 1] = np.nan
    with pytest.raises(InvalidInputError, match="row 3100"):
        model.aic(da.from_array(bad, chunks=(1500, 2)))
    for empty in (LAZY[:0], LAZY[LAZY[:, 0] > 1e9]):  # the second of unknown size
        with pytest.raises(InvalidInputError, match="no rows"):
            model.score(empty)


# --- as an estimator ---------------------------------------------------------------------


def test_fit__warns_where_em_does_not_converge() -> None:
    with pytest.warns(ConvergenceWarning, match="^Best performing initialization did not"):
        model = small(max_iter=1).fit(X)
    assert not model.converged_


def test_fit__several_starts_by_default() -> None:
    rng = np.random.default_rng(0)
    rows = np.exp(1.5 * rng.normal(size=(6000, 4))) * rng.integers(1, 4, size=(6000, 1))
    options: dict[str, Any] = {"covariance_type": "diag", "size": 1500, "reg_covar": 1e-3}
    several: list[dict[str, Any]] = [{}, {"n_init": 1}]
    auto, single = (
        [
            CoresetGaussianMixture(6, random_state=seed, **options, **starts).fit(rows).score(rows)
            for seed in range(4)
        ]
        for starts in several
    )
    assert np.mean(auto) > np.mean(single) + 0.02
    full = CoresetGaussianMixture(3, random_state=0, **options | {"size": "auto"}).fit(rows)
    assert full.lower_bound_ == pytest.approx(full.score(rows), abs=0.05)


# --- what it says of all rows ------------------------------------------------------------


def uneven(n: int, seed: int = 0) -> AnyArray:
    rng = np.random.default_rng(seed)
    return np.asarray(8.0 * rng.normal(size=(8, 5))[rng.zipf(2.0, n) % 8] + rng.normal(size=(n, 5)))


def test_lower_bound__exact_where_all_other_rows_are_candidates() -> None:
    rows, counts = uneven(4000), np.random.default_rng(1).integers(0, 3, size=4000)
    model = CoresetGaussianMixture(8, size=400, reg_covar=1e-3, random_state=0).fit(
        rows, None, counts
    )
    assert model.lower_bound_ == pytest.approx(model.score(rows, None, counts), abs=1e-9)
    assert model.lower_bound_error_ == 0.0


def test_lower_bound__with_rows_far_out() -> None:
    rows = uneven(60_000)
    rows[[7, 30_000]] = [[3e3] * 5, [-1e5] * 5]
    model = CoresetGaussianMixture(8, size=400, reg_covar=1e-3, random_state=0).fit(rows)
    score = model.score(rows)
    assert abs(model.lower_bound_ - score) < 6 * model.lower_bound_error_ < 0.3


def test_lower_bound__same_bits_and_no_read_for_it() -> None:
    rows = da.from_array(uneven(30_000), chunks=(5000, 5))
    model = small(size=300)
    scheduler = CountingScheduler()
    with dask.config.set(scheduler=scheduler):
        first = model.fit(rows).lower_bound_
    assert scheduler.calls == 1
    with dask.config.set(scheduler="synchronous"):
        assert model.fit(rows).lower_bound_ == first
    built = build(rows, size=300, method=Mixture(3), random_state=0, draw=Draw(normalize=True))
    assert model.coreset_.equals(built)


def test_fit__warns_of_rows_without_density() -> None:
    rows = np.random.default_rng(0).normal(size=(20_000, 2))
    rows[::1000] += 1e4
    options: dict[str, Any] = {"size": 200, "random_state": 0}
    with pytest.warns(CoresetWarning, match="almost no density.*Raise size, raise reg_covar"):
        model = CoresetGaussianMixture(2, method="uniform", **options).fit(rows)
    assert model.lower_bound_ < model.lower_bounds_[-1] - 1e3
    # Those that are drawn by sensitivities keep such rows; without steps nothing is compared.
    CoresetGaussianMixture(2, **options).fit(rows)
    CoresetGaussianMixture(2, method="uniform", max_iter=0, **options).fit(rows)
