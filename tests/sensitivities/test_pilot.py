"""Methods with a pilot: dense and sparse rows agree, and extreme rows stay numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from sklearn.linear_model import LogisticRegression

from daskcoreset import SVM, Logistic, build
from daskcoreset.core.block import Block
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.sensitivities import pilot_draw

Rows = tuple[AnyArray, FloatArray, AnyArray]


@st.composite
def labelled_rows(draw: st.DrawFn) -> Rows:
    """Rows of two classes and more, some without weight, that may be few or far from the origin."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.sampled_from([6, 130, 400])), draw(st.sampled_from([1, 2, 7, 20]))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    points = rng.normal(size=(n, d)) * draw(st.sampled_from([1e-3, 1.0, 1e3]))
    points += draw(st.sampled_from([0.0, 100.0])) * abs(points).max()
    weights = np.where(rng.random(n) < 0.2, 0.0, rng.lognormal(size=n))
    labels = rng.integers(draw(st.sampled_from([2, 5])), size=n)
    labels[:2], weights[:2] = [0, 1], 1.0
    points[weights == 0.0] = 1e30
    return points.astype(dtype), weights, labels


@settings(max_examples=20)
@given(labelled_rows(), st.booleans(), st.sampled_from([SVM, Logistic]))
def test_sums__of_dense_and_of_sparse_rows(rows: Rows, intercept: bool, make: Any) -> None:
    points, u, y = rows
    method, found = make(intercept=intercept), []
    sparse: Any = sp.csr_array(points)
    rng = np.random.default_rng(0)
    pilot = method.finalize(method.block_summary(Block(points, u, y), None, rng), rng)
    for form in (points, sparse):
        summary, scores, _ = method.block_summary(
            Block(form, u, y), pilot, np.random.default_rng(0)
        )
        found.append({**summary.sums, "scores": scores})
    # The gradient at its least is a sum whose terms are far larger.
    largest = np.where(u[:, np.newaxis] > 0.0, points, 0.0).astype(np.float64)
    terms = (u @ np.abs(largest)).max()
    for name, one in found[0].items():
        size = max(np.abs(one).max(), terms if name in ("slopes", "rows") else 0.0)
        np.testing.assert_allclose(found[1][name], one, rtol=1e-6, atol=1e-7 * size)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logistic_losses__of_huge_margins_and_of_none(n_classes: int) -> None:
    """Losses are the margins then, and pulls are zero or one."""
    points = np.array([[1e300], [-1e300], [0.0], [1e-310]])
    y = np.array([1, 1, 0, *range(n_classes)])[:4]
    coef = np.array([[1.0], [2.0], [-1.0]])[: n_classes if n_classes > 2 else 1]
    margins = points @ coef.T
    losses, pulls = Logistic().losses(y, margins)
    if n_classes == 2:
        expected = np.maximum(np.where(y == 1, -1, 1) * margins[:, 0], 0.0)
        expected[2:] = np.log(2.0)
    else:
        expected = margins.max(axis=1) - margins[np.arange(4), y]
        expected[2:] = np.log(3.0)
    np.testing.assert_allclose(losses.sum(axis=1), expected)
    assert np.isfinite(pulls).all()
    assert np.abs(pulls).max() <= 1.0


def test_draw__keeps_the_best_of_several(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean excess of models on the rows kept is well below that of single draws."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = X[:, 0] + rng.logistic(size=600) > 1.0

    def cost(points: Any, labels: Any, weights: Any) -> float:
        model = LogisticRegression(tol=1e-8).fit(points, labels, weights)
        losses = np.logaddexp(0.0, np.where(y, -1.0, 1.0) * model.decision_function(X))
        return float(np.square(model.coef_).sum() / 2 + losses.sum())

    excess = []
    for most in (1, 16):
        monkeypatch.setattr(pilot_draw, "_MAX_DRAWS", most)
        coresets = [build(X, y, size=30, method="logistic", random_state=i) for i in range(8)]
        costs = [cost(one.points, one.labels, one.weights) for one in coresets]
        excess.append(np.mean(costs) - cost(X, y, np.ones(600)))
    assert excess[1] < 0.7 * excess[0]
