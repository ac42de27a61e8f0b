"""Gaussian mixtures on coresets beside those of scikit-learn on all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from tests.acceptance import face

Draw = Callable[[np.random.Generator, int], Any]


def normal(mean: float, spread: float) -> Draw:
    return lambda rng, n: rng.normal(mean, spread, n)


def poisson(mean: float) -> Draw:
    return lambda rng, n: rng.poisson(mean, n)


def stars(share: float) -> Draw:
    return lambda rng, n: 1 + rng.binomial(4, share, n)


CORNERS = [(x, y) for x in (0.0, 6.0) for y in (0.0, 6.0)]

# Columns of each cluster.
CLUSTERS: dict[str, list[Sequence[Draw]]] = {
    "ages, visits, stars": [
        (normal(25, 4), poisson(2), stars(0.3)),
        (normal(45, 5), poisson(9), stars(0.6)),
        (normal(70, 6), poisson(20), stars(0.5)),
    ],
    "a grid": [(normal(x, 1), normal(y, 1)) for x, y in CORNERS],
    "children": [
        (normal(35, 8), normal(2, 0.8), normal(100, 10)),
        (normal(60, 8), normal(5, 1), normal(160, 15)),
    ],
}


def rows_of(name: str, n_rows: int, step: float) -> tuple[Any, Any]:
    """Return rows that are rounded, to multiples of a step if it is not zero, and clusters."""
    rng = np.random.default_rng(3)
    clusters = CLUSTERS[name]
    labels = rng.integers(len(clusters), size=n_rows)
    X = np.zeros((n_rows, len(clusters[0])))
    for k, draws in enumerate(clusters):
        chosen = labels == k
        X[chosen] = np.column_stack([draw(rng, int(chosen.sum())) for draw in draws])
    return (np.round(X / step) * step if step else X), labels


@pytest.mark.parametrize(
    ("name", "step", "options"),
    [
        ("ages, visits, stars", 1.0, {}),
        ("ages, visits, stars", 1.0, {"size": 1_000}),
        ("a grid", 1.0, {}),
        ("a grid", 2.0, {"size": 800, "n_init": 6}),
        ("a grid", 0.0, {"size": 800}),
        ("children", 1.0, {}),
        ("children", 1.0, {"covariance_type": "diag", "size": 1_000}),
    ],
)
def test_fit__clusters_of_integers_are_found(
    name: str, step: float, options: dict[str, Any]
) -> None:
    X, labels = rows_of(name, 12_000, step)
    k, kind = len(CLUSTERS[name]), options.get("covariance_type", "full")
    theirs = GaussianMixture(k, covariance_type=kind, random_state=0).fit_predict(X)
    least = adjusted_rand_score(labels, theirs) - 0.03
    for seed in range(3):
        model = face.estimators.CoresetGaussianMixture(k, random_state=seed, **options).fit(X)
        assert adjusted_rand_score(labels, model.predict(X)) > least


def test_fit__out_of_core_integers_have_no_spikes() -> None:
    X, labels = rows_of("ages, visits, stars", 30_000, 1.0)
    rows = da.from_array(X, chunks=(5_000, 3))
    model = face.estimators.CoresetGaussianMixture(3, size=2_000, random_state=1).fit(rows)
    assert np.linalg.eigvalsh(model.covariances_).min() > 0.1
    assert adjusted_rand_score(labels, model.predict(X)) > 0.95


def test_fit__a_constant_column_is_a_spike_of_every_component() -> None:
    X, labels = rows_of("a grid", 4_000, 0.0)
    X = np.column_stack([X, np.full(len(X), 7.0)])
    model = face.estimators.CoresetGaussianMixture(4, size=1_000, random_state=0).fit(X)
    assert adjusted_rand_score(labels, model.predict(X)) > 0.9


@pytest.mark.parametrize("spread", [1e-4, 1e4])
def test_fit__units_of_continuous_columns_do_not_matter(spread: float) -> None:
    X, labels = rows_of("a grid", 4_000, 0.0)
    model = face.estimators.CoresetGaussianMixture(
        4, size=1_000, reg_covar=1e-6 * spread**2, random_state=0
    ).fit(X * spread)
    assert adjusted_rand_score(labels, model.predict(X * spread)) > 0.9
