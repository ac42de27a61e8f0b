"""The choice of parameters on a coreset: the right ones, weights, one read, bad input."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss, make_scorer

import daskcoreset
from daskcoreset import SVM, Coreset, MixtureCoreset, StrongKMeans
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.estimators import (
    CoresetEstimator,
    CoresetGaussianMixture,
    CoresetKMeans,
    CoresetLogisticRegression,
    CoresetSVC,
    coreset_search,
)
from daskcoreset.testing import CountingArray

ROWS = 20_000


def make_clusters(shares: Any = (0.6, 0.3, 0.06, 0.03, 0.01)) -> Any:
    """Clusters of different sizes, each as far from all others, sorted."""
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(5), (ROWS * np.array(shares)).astype(int))
    return 12.0 * np.eye(5)[cluster] + rng.normal(size=(ROWS, 5))


@pytest.mark.parametrize("criterion", ["silhouette", "bic", "stability"])
def test_search__finds_the_number_of_uneven_clusters(criterion: Any) -> None:
    # Of clusters of one size no fewer are stable.
    X = make_clusters((0.2,) * 5) if criterion == "stability" else make_clusters()
    coreset = daskcoreset.build(X, size=600, method=StrongKMeans(8), random_state=0)
    found = coreset_search(
        CoresetKMeans(n_init=5, random_state=0),
        coreset,
        parameters={"n_clusters": [3, 4, 5, 6, 7]},
        criterion=criterion,
        n_repeats=3,
        random_state=0,
    )
    assert found.best_parameters == {"n_clusters": 5}
    assert found.model.cluster_centers_.shape == (5, 5)
    assert found.coreset is coreset
    assert np.isnan(found.spreads).all() == (criterion != "stability")
    assert "n_clusters=5" in repr(found)
    assert "best" in found._repr_html_()


def test_search__finds_components_by_the_criterion_of_all_rows() -> None:
    X = make_clusters((0.3, 0.3, 0.2, 0.1, 0.1))
    methods: dict[str, Any] = {"plain": "uniform", "mix": MixtureCoreset(8)}
    portfolio = daskcoreset.build(X, size=800, method=methods, random_state=0)
    model = CoresetGaussianMixture(n_init=2, random_state=0)
    found = coreset_search(model, portfolio, parameters={"n_components": [3, 4, 5, 6]})
    assert found.criterion == "bic"
    assert found.coreset.equals(portfolio["mix"])
    assert found.best_parameters == {"n_components": 5}


def make_classes() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 8))
    y = X[:, 0] + 0.5 * X[:, 1] + 2.0 * rng.normal(size=ROWS) > 0
    return X, np.where(y, "yes", "no")


@pytest.mark.nightly
@pytest.mark.parametrize("model", [CoresetLogisticRegression(), CoresetSVC(size=600)])
def test_search__chooses_a_penalty_by_folds(model: Any) -> None:
    X, y = make_classes()
    coreset = daskcoreset.build(X, y, size=600, method=SVM(), random_state=0)
    found = coreset_search(
        model, coreset, parameters={"C": [1e-9, 1e-3, 1.0]}, n_folds=3, random_state=0
    )
    assert found.criterion == "cross_validation"
    assert found.best_parameters["C"] > 1e-9
    assert found.scores.shape == found.spreads.shape == (3,)
    again = coreset_search(
        model, coreset, parameters={"C": [1e-9, 1e-3, 1.0]}, n_folds=3, random_state=0
    )
    np.testing.assert_array_equal(found.scores, again.scores)


@pytest.mark.nightly
def test_search__honours_weights_in_scores() -> None:
    # Two groups that want opposite signs: by rows the first is larger, by weight the second.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 1))
    first = np.arange(400) < 300
    y = np.where((X[:, 0] > 0) == first, 1, 0)
    weights = np.where(first, 1.0, 100.0)
    coreset = Coreset(X, weights, np.arange(400), y)
    found = coreset_search(
        CoresetEstimator(LogisticRegression(), random_state=0),
        coreset,
        parameters={"estimator__C": [1.0]},
        random_state=0,
    )
    assert found.scores[0] > 0.9


@pytest.mark.nightly
def test_search__reads_the_data_once_for_all_candidates() -> None:
    rows = CountingArray(make_clusters())
    X = da.concatenate(
        [
            da.from_delayed(dask.delayed(rows.__getitem__)(slice(i, i + 2000)), (2000, 5), float)
            for i in range(0, ROWS, 2000)
        ]
    )
    model = CoresetKMeans(size=500, n_init=2, random_state=0)
    found = coreset_search(model, X, parameters={"n_clusters": [2, 5, 9]})
    assert rows.reads.max() <= 2
    assert np.median(rows.reads) == 1
    assert len(found.coreset) == 500


@pytest.mark.nightly
def test_search__of_regressions_uses_the_scoring_that_is_given() -> None:
    X, _ = make_classes()
    coreset = daskcoreset.build(
        X, X @ np.arange(8.0), size=400, method=daskcoreset.LeastSquares(), random_state=0
    )

    def error(model: Any, points: Any, y: Any, weights: Any) -> float:
        return -float(weights @ (model.predict(points) - y) ** 2)

    found = coreset_search(
        CoresetEstimator(Ridge(), method="least_squares"),
        coreset,
        parameters={"estimator__alpha": [1e9, 1e-6, 1e6]},
        scoring=error,
        n_folds=3,
    )
    assert found.best_parameters == {"estimator__alpha": 1e-6}


@pytest.mark.nightly
def test_search__by_a_scorer_of_scikit_learn() -> None:
    X, y = make_classes()
    coreset = daskcoreset.build(X, y, size=400, method="logistic", random_state=0)

    def loss(model: Any, points: Any, y: Any, weights: Any) -> float:
        return -float(log_loss(y, model.predict_proba(points), sample_weight=weights))

    by_name = make_scorer(log_loss, greater_is_better=False, response_method="predict_proba")
    named, made, called = (
        coreset_search(
            CoresetLogisticRegression(),
            coreset,
            parameters={"C": [1e-6, 1.0]},
            scoring=scoring,
            random_state=0,
        )
        for scoring in ("neg_log_loss", by_name, loss)
    )
    np.testing.assert_allclose(named.scores, called.scores)
    np.testing.assert_array_equal(named.scores, made.scores)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"scoring": "acuracy"}, InvalidInputError, 'scoring must be "accuracy"'),
        ({"scoring": 3}, InvalidTypeError, 'scoring is 3; pass the name .* "roc_auc"'),
        ({"estimator": Ridge()}, InvalidTypeError, "CoresetEstimator around"),
        ({"parameters": {}}, InvalidTypeError, "parameters is"),
        ({"parameters": {"n_cluster": [2]}}, InvalidInputError, "no such parameter"),
        ({"parameters": {"n_clusters": 3}}, InvalidTypeError, "pass a list"),
        ({"parameters": {"n_clusters": []}}, InvalidInputError, "is empty"),
        ({"criterion": "elbow"}, InvalidInputError, "criterion"),
        ({"n_folds": 1}, InvalidInputError, "n_folds"),
        ({"sample_weight": np.ones(400)}, InvalidInputError, "leave out y and sample_weight"),
        (
            {"parameters": {"n_clusters": [1]}, "criterion": "silhouette"},
            InvalidInputError,
            "no number",
        ),
        (
            {
                "estimator": CoresetLogisticRegression(),
                "parameters": {"C": [1.0]},
                "criterion": "bic",
            },
            InvalidInputError,
            "mixtures and k-means",
        ),
        (
            {
                "estimator": CoresetLogisticRegression(),
                "parameters": {"C": [1.0]},
                "criterion": "stability",
            },
            InvalidInputError,
            "cross_validation",
        ),
    ],
)
def test_search__says_what_cannot_be_searched(
    change: dict[str, Any], kind: type[Exception], words: str
) -> None:
    X, y = make_classes()
    coreset = daskcoreset.build(X, y, size=400, random_state=0)
    arguments: dict[str, Any] = {
        "estimator": CoresetKMeans(n_init=1),
        "X": coreset,
        "parameters": {"n_clusters": [2, 3]},
    }
    with pytest.raises(kind, match=words):
        coreset_search(**(arguments | change))


@pytest.mark.nightly
def test_search__of_a_class_with_few_rows_asks_for_fewer_folds() -> None:
    X = np.random.default_rng(0).normal(size=(100, 2))
    y = np.arange(100) < 3
    coreset = Coreset(X, np.ones(100), np.arange(100), y.astype(int))
    with pytest.raises(InvalidInputError, match="n_folds=5, and a class has 3 rows"):
        coreset_search(CoresetLogisticRegression(), coreset, parameters={"C": [1.0]})
