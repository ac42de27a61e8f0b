"""The choice of parameters on a coreset: the right ones, weights, one read, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import daskcoreset
from daskcoreset import SVM, MixtureCoreset, StrongKMeans
from daskcoreset.estimators import (
    CoresetGaussianMixture,
    CoresetKMeans,
    CoresetLogisticRegression,
    CoresetSVC,
    coreset_search,
)

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
