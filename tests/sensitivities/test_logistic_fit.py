"""Models of logistic coresets: of rows drawn, and whether they are worse than none."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from daskcoreset.core.blocks import Block
from daskcoreset.sensitivities.logistic_fit import cost_over_none, sampling_error, without_model
from daskcoreset.sensitivities.logistic_pilot import labelled_scatter

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3000, 60))
SCORE = X[:, 0] + RNG.logistic(size=3000)


def judged(y: Any, rows: slice, *, intercept: bool = True, lam: float = 1.0) -> float | None:
    """By all rows as candidates; of those drawn each stands for as many as there are in all."""
    block, n = Block(X, np.ones(3000), y), len(range(*rows.indices(3000)))
    none = without_model(labelled_scatter(block), intercept=intercept)
    drawn = Block(X[rows], np.ones(n), y[rows])
    weights = np.full(n, 3000 / n)
    return cost_over_none(drawn, weights, block, np.ones(3000), none, lam, intercept=intercept)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("cuts", [[1.0], [-1.0, 1.0]], ids=["two classes", "three"])
def test_cost_over_none__by_scikit_learn(cuts: list[float], intercept: bool) -> None:
    y = np.digitize(SCORE, cuts)
    found = judged(y, slice(80), intercept=intercept, lam=0.5)
    model = LogisticRegression(
        C=0.5, fit_intercept=intercept, tol=1e-10, max_iter=10_000
    )  # fmt: skip
    model.fit(X[:80], y[:80], np.full(80, 3000 / 80))
    chances = model.predict_log_proba(X)[np.arange(3000), y]
    cost = -chances.sum() + np.square(model.coef_).sum() / (2 * 0.5)
    shares = np.bincount(y) / 3000 if intercept else np.full(len(cuts) + 1, 1 / (len(cuts) + 1))
    none = -np.log(shares)[y].sum()
    assert found is not None
    assert found == pytest.approx(cost / none, rel=1e-3)


def test_cost_over_none__nothing_where_models_are_better_or_penalised() -> None:
    y = (SCORE > 0).astype(int)
    assert judged(y, slice(1500)) is None
    assert judged(y, slice(80)) is not None
    assert judged(y, slice(80), lam=1e-5) is None


def test_cost_over_none__of_all_rows_chance_has_no_part() -> None:
    """Few rows with most of the excess: enough where they are all the data, not for a sample."""
    y = np.zeros(3000, dtype=int)
    y[:5] = 1
    rows, drawn = X[:, :10], np.r_[0:5, 100:145]
    weights = np.where(y[drawn] == 1, 1.0, 2995 / 45)
    found = []
    for share in (1.0, 0.1):  # the input weights are those of a tenth of as many rows
        block = Block(rows, np.full(3000, share), y)
        whole = Block(rows, np.ones(3000), y)
        none = without_model(labelled_scatter(whole), intercept=True)
        chosen = Block(rows[drawn], np.ones(50), y[drawn])
        found.append(
            cost_over_none(chosen, weights, block, np.ones(3000), none, 1.0, intercept=True)
        )
    model = LogisticRegression(tol=1e-10, max_iter=10_000).fit(rows[drawn], y[drawn], weights)
    own = -model.predict_log_proba(rows)[np.arange(3000), y].sum()
    without = -5 * np.log(5 / 3000) - 2995 * np.log(2995 / 3000)
    truth = (own + np.square(model.coef_).sum() / 2) / without
    assert found[0] == pytest.approx(truth, rel=1e-3)
    assert found[1] is None


def test_sampling_error__over_all_samples_has_the_mean_of_the_variance() -> None:
    """Four rows, one of which is there for certain, in all of their eight samples."""
    inputs, chances = np.array([1.0, 2.0, 1.0, 0.5]), np.array([1.0, 0.5, 0.2, 0.9])
    values = np.array([50.0, -1.0, 3.0, 2.0])
    weights, sums, squares = inputs / chances, np.zeros(2), 0.0
    for there in itertools.product([False, True], repeat=4):
        taken = np.array(there)
        chance = np.where(taken, chances, 1.0 - chances).prod()
        total = float((weights * values)[taken].sum())
        sums += chance * np.array([total, total**2])
        error = sampling_error((weights * values)[taken], inputs[taken], weights[taken])
        squares += chance * error**2
    assert sums[0] == pytest.approx(inputs @ values)
    assert squares == pytest.approx(sums[1] - sums[0] ** 2)
