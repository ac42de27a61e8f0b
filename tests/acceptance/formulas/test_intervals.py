"""Intervals, agreements and `converged_` on instances that are made to fool them."""

from __future__ import annotations

import warnings
from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tests.acceptance.face import (
    Coreset,
    block as make_block,
    build,
    errors,
    grow,
    metrics,
    objectives,
)
from tests.pairs import few

# --- intervals ---------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["lightweight", "kmeans"])
def test_interval__of_centers_on_clusters_far_apart(method: str) -> None:
    """Some rows are farther off than any cluster, and some blocks have no rows."""
    rng = np.random.default_rng(5)
    X = 30.0 * rng.normal(size=(20_000, 3)) + 1_000.0 * rng.integers(4, size=(20_000, 1))
    X[:20] += 20_000.0
    u = rng.uniform(0.5, 2.0, len(X))
    coreset = build(X, sample_weight=u, size=300, method=method, n_clusters=4, random_state=0)
    blocks = da.from_array(X, chunks=((6_000, 0, 14_000, 0), 3))
    report = coreset.audit(blocks, sample_weight=u, n_clusters=4, random_state=0, sample_size=2_000)
    for k in (1, 2, 8):
        centers = X[rng.choice(len(X), k, replace=False)]
        true = metrics.kmeans_cost(X, centers, sample_weight=u)
        interval = report.interval(centers)
        assert interval.low < true < interval.high
        assert interval.high - interval.low < 0.2 * true
    np.testing.assert_allclose(report.data_weight, u.sum())


def test_interval__of_classes_far_apart() -> None:
    """The upper end bounds what hardly any row of the sample shows: losses of a few rows."""
    rng = np.random.default_rng(5)
    y = rng.integers(2, size=20_000)
    X = rng.normal(size=(20_000, 3)) + 6.0 * y[:, None]
    coreset = build(X, y, size=300, method="svm", random_state=0)
    report = coreset.audit(X, y, random_state=0, sample_size=1_000)
    for w in ([3.0, 0.0, 1.0], [0.3, 0.3, 0.3]):
        model = objectives.LinearClassifier(np.array(w), -3.0 * sum(w), 1)
        true = report.objective.cost(make_block(X, None, y), model)
        interval = report.interval(model)
        assert interval.low < true < interval.high < 45 * true


def rare_losses(n: int = 60_000) -> tuple[Any, Any]:
    """Two classes that a line separates, but for six rows."""
    rng = np.random.default_rng(7)
    y = rng.integers(2, size=n)
    X = rng.normal(size=(n, 3)) + 12.0 * y[:, None] * np.array([1.0, 0, 0])
    wrong = rng.choice(n, 6, replace=False)
    y[wrong] = 1 - y[wrong]
    return X, y


@pytest.mark.filterwarnings("ignore::daskcoreset.errors.CoresetWarning")
def test_interval__never_of_no_width_where_the_sample_has_no_loss() -> None:
    """A sample without a single loss says nothing of six rows: the upper end must."""
    X, y = rare_losses()
    rows = make_block(X, np.ones(len(X)), y)
    coreset = build(X, y, size=300, method="svm", random_state=0)
    rng = np.random.default_rng(0)
    for seed in range(5):
        own = objectives.LinearCost("hinge").seed(
            make_block(coreset.points, coreset.weights, coreset.labels), rng
        )
        report = coreset.audit(X, y, solutions=[own], random_state=seed, sample_size=500)
        true = objectives.LinearCost("hinge").cost(rows, own)
        np.testing.assert_allclose(report.interval(own), true)
        other = type(own)(own.coef * 1.1, own.intercept * 1.1, own.positive)
        true = objectives.LinearCost("hinge").cost(rows, other)
        estimate, low, high = report.interval(other)
        assert low <= true <= high
        assert high > low
        assert low <= estimate <= high


def test_interval__says_what_may_be_hidden_where_coreset_and_sample_have_no_loss() -> None:
    X, y = rare_losses()
    cost, coef = objectives.LinearCost("hinge"), np.array([10.0, 0.0, 0.0])
    one, near = (objectives.LinearClassifier(coef * f, -60.0 * f, 1) for f in (1.0, 1.01))

    def has_none(coreset: Any) -> bool:
        own = make_block(coreset.points, coreset.weights, coreset.labels)
        return bool(cost.total(own, one) == 0.0)

    drawn = (build(X, y, size=300, method="uniform", random_state=seed) for seed in range(20))
    coreset = next(filter(has_none, drawn))  # none of the six
    report = coreset.audit(X, y, objective=cost, solutions=[near], random_state=0, sample_size=300)
    true = cost.cost(make_block(X, np.ones(len(X)), y), one)
    estimate, low, high = report.interval(one)
    assert 1.5 * true < high < np.inf
    assert low <= min(estimate, true)


# --- a row far away that weighs too much in every coreset -----------------------------------


def giant_row(seed: int) -> Any:
    """Hold 99.9 % of the cost of the mean, and nothing of that of several centers."""
    X = np.random.default_rng(seed).normal(size=(20_000, 3))
    X[77] = [3e4, 0.0, 0.0]
    return X


@few("seed", range(20))
def test_auto_size__a_wrong_weight_of_a_giant_row_is_not_silent(seed: int) -> None:
    """Solutions of several centers have one at the giant, where its weight costs nothing."""
    X = giant_row(seed)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = grow(X, n_clusters=5, method="uniform", random_state=seed)
    true = np.square(X).sum()
    cost = (found.weights * np.square(found.points).sum(axis=1)).sum()
    assert said or abs(cost / true - 1) <= 0.05


def test_audit__tells_a_wrong_weight_of_a_giant_row() -> None:
    X = giant_row(0)
    rows = np.append(77, np.arange(1000, 2000))
    weights = np.append(2.5, np.full(1000, 20.0))
    for name, objective in (
        ("mean", objectives.QuantizationError(5)),
        ("one component", objectives.MixtureCost(3)),
    ):
        report = Coreset(X[rows], weights, rows).audit(X, objective=objective, random_state=0)
        assert abs(report.differences[report.names.index(name)]) > 0.1


# --- classifiers of other labels ---------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.int64, object, str])
def test_audit__of_a_classifier_finds_its_labels_again(kind: Any) -> None:
    """A coreset keeps labels of dtype object as text; the classifier was fitted on numbers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=4000) > 0.5).astype(int)
    signs = np.where(y == 1, 1.0, -1.0)
    one, other = (LogisticRegression(C=c).fit(X, y) for c in (1.0, 1e-3))
    truth = [
        0.5 * float((model.coef_**2).sum())
        + float(np.maximum(1.0 - signs * model.decision_function(X), 0.0).sum())
        for model in (one, other)
    ]
    labels = y.astype(kind)
    coreset = build(X, labels, size=500, method="svm", random_state=0)
    report = coreset.audit(X, labels, solutions={"mine": one}, random_state=0)
    assert report.on_data[0] == pytest.approx(truth[0])
    found = report.interval(other)
    assert found.low <= truth[1] * (1 + 1e-9)
    assert truth[1] <= found.high * (1 + 1e-9)


def test_audit__refuses_classifiers_and_labels_of_other_classes() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    y = (X[:, 0] > 0.5).astype(int)
    words = np.where(y == 1, "yes", "no")
    stranger = LogisticRegression().fit(X, words)
    coreset = build(X, y, size=200, method="svm", random_state=0)
    with pytest.raises(errors.InvalidInputError, match="positive class 'yes'"):
        coreset.audit(X, y, solutions={"stranger": stranger})
    with pytest.raises(errors.InvalidInputError, match="positive class 'yes'"):
        coreset.audit(X, y, random_state=0).interval(stranger)
    with pytest.raises(errors.InvalidInputError, match="text for text"):
        coreset.audit(X, words, random_state=0)
