"""Linear regressors on coresets: exact from moments, bad and hostile data."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge

from daskcoreset import build
from daskcoreset.estimators import CoresetElasticNet, CoresetRidge

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6000, 4)) * [1.0, 10.0, 0.1, 1.0] + 100.0
Y = X @ [1.0, -0.2, 5.0, 0.0] + RNG.standard_t(3, size=6000)
LAZY = da.from_array(X, chunks=(1000, 4)), da.from_array(Y, chunks=1000)


def test_ridge__on_the_coreset_is_as_good() -> None:
    best = LinearRegression().fit(X, Y).score(X, Y)
    model = CoresetRidge(0.0, size=500, estimator=LinearRegression(), random_state=0)
    model.fit(*LAZY)
    assert not model.exact_
    assert model.score(X, Y) == pytest.approx(best, abs=0.01)
    rows = build(X, Y, size=500, method="least_squares", random_state=0)
    assert CoresetRidge(0.0).fit(rows).score(X, Y) == pytest.approx(best, abs=0.01)


@pytest.mark.filterwarnings("ignore:Objective did not converge")  # nor does scikit-learn's own
@pytest.mark.parametrize("make", [CoresetRidge, CoresetElasticNet])
def test_hostile__offsets_constants_collinear_columns_and_wide_data(make: Any) -> None:
    few = X[:300]
    for rows, y in [
        (few + 1e8, Y[:300]),
        (few, np.full(300, 3.0)),
        (np.column_stack([few, few[:, 0], np.ones(300)]), Y[:300]),
        (RNG.normal(size=(30, 50)), Y[:30]),
        (few * np.where(np.arange(300) == 7, 1e6, 1.0)[:, np.newaxis], Y[:300]),
        (few, np.where(np.arange(300) == 7, 1e9, Y[:300])),
    ]:
        model = make(alpha=0.01, size=100, random_state=0).fit(rows, y)
        assert np.isfinite(model.predict(rows)).all()
        assert np.isfinite(model.coreset_.weights).all()
        assert (model.coreset_.weights >= 0).all()
    assert make(alpha=0.01).fit(few, np.full(300, 3.0)).predict(few) == pytest.approx(3.0)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_ridge__positive_is_exact_by_moments(fit_intercept: bool) -> None:
    X, y = rows_of_several_scales()
    model = CoresetRidge(
        3.0, positive=True, size=50, fit_intercept=fit_intercept, random_state=0
    ).fit(da.from_array(X, chunks=(500, X.shape[1])), da.from_array(y, chunks=500))
    whole = Ridge(3.0, positive=True, tol=1e-10, fit_intercept=fit_intercept).fit(X, y)
    assert model.exact_
    assert (whole.coef_ == 0.0).any()
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(model.intercept_, whole.intercept_, rtol=1e-5, atol=1e-7)
    on_coreset = CoresetRidge(positive=True).fit(model.coreset_)
    assert not on_coreset.exact_
    assert on_coreset.estimator_.positive
    assert (on_coreset.coef_ >= 0.0).all()


def rows_of_several_scales() -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(2000, 4)) * [1.0, 2.0, 0.5, 3.0] + 1.0
    return X, X @ np.array([1.0, -2.0, 0.5, 3.0]) + rng.normal(size=2000)
