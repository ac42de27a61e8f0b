"""Leverage scores of least squares: the contract, the formula, and costs on coresets."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from daskcoreset import CoresetStream, Draw, MergeReduce, build
from daskcoreset.errors import InvalidInputError
from daskcoreset.objectives import LeastSquaresCost
from tests.pairs import each

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 4)) * RNG.lognormal(size=(4000, 1)) + 3.0
Y = X @ [1.0, -1.0, 0.5, 0.0] + RNG.normal(size=4000)


@pytest.mark.parametrize("passes", [1, 2])
def test_build__a_row_of_large_leverage_is_kept(passes: Any) -> None:
    rows, y = X.copy(), Y.copy()
    y[1234] = 1e4
    coreset = build(
        da.from_array(rows, chunks=700),
        da.from_array(y, chunks=700),
        size=300,
        method="least_squares",
        random_state=0,
        draw=Draw(passes=passes),
    )
    assert 1234 in coreset.indices
    assert coreset.labels is not None
    model = LinearRegression().fit(coreset.points, coreset.labels, coreset.weights)
    best = LinearRegression().fit(rows, y)
    costs = [float(((y - one.predict(rows)) ** 2).sum()) for one in (model, best)]
    assert costs[0] <= 1.05 * costs[1]
    assert coreset.audit(rows, y, random_state=0).objective == LeastSquaresCost()


LARGE_Y = r"y is 1e\+\d+ at row 1234, and of values so large squared distances overflow"


MODES: list[dict[str, Any]] = [
    {"draw": Draw(passes=1)},
    {"draw": Draw(passes=2)},
    {"draw": MergeReduce()},
    {"draw": Draw(passes=2, sampling="multinomial")},
]


@each(value=[1e160, 1e200], mode=MODES)
def test_build__refuses_a_y_whose_square_overflows(mode: dict[str, Any], value: float) -> None:
    y = np.where(np.arange(4000) == 1234, value, Y)
    rows, numbers = da.from_array(X, chunks=700), da.from_array(y, chunks=700)
    with pytest.raises(InvalidInputError, match=LARGE_Y):
        build(rows, numbers, size=300, method="least_squares", **mode)


def test_stream__refuses_a_y_whose_square_overflows_and_goes_on() -> None:
    stream = CoresetStream("least_squares", size=100, random_state=0)
    stream.partial_fit(X[:1000], Y[:1000])
    with pytest.raises(InvalidInputError, match=r"y is 1e\+160 at row 3"):
        stream.partial_fit(X[:10], np.where(np.arange(10) == 3, 1e160, Y[:10]))
    stream.partial_fit(X[1000:2000], Y[1000:2000])
    coreset = stream.coreset()
    assert np.isfinite(coreset.weights).all()
    assert coreset.weights.sum() == pytest.approx(2000, rel=0.3)
