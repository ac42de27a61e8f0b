"""SVM coresets: the contract, the score of Lemma 2, and their builds."""

from __future__ import annotations

import math
import warnings
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from daskcoreset import build
from daskcoreset.core.block import Block
from daskcoreset.errors import CoresetWarning
from daskcoreset.sensitivities import SVM
from daskcoreset.solvers.linear import solve_svm
from daskcoreset.testing import SensitivityContract
from tests.tools.two_classes import settled, two_classes

pytestmark = [
    pytest.mark.filterwarnings("ignore:a solution fitted on the coreset"),  # which are tiny here
    pytest.mark.filterwarnings("ignore:how far a solution fitted"),
]


@pytest.mark.nightly  # costs, bits and scores are held by the acceptance tests
class TestSystematic(SensitivityContract):
    def construction(self) -> SVM:
        return SVM(variant="systematic")


@pytest.mark.nightly  # the code of the others but for the score, which has tests of its own
class TestPaper(SensitivityContract):
    def construction(self) -> SVM:
        return SVM(variant="paper", n_clusters=2)


# The score


def test_lower_bound__all_scores_alike_and_no_row_above_one() -> None:
    """Lemma 1's instance: every row matters as much as any other."""
    y = np.where(np.arange(252) % 2, -1, 1)
    X = np.zeros((252, 10))
    for i, columns in enumerate(combinations(range(10), 5)):
        X[i, columns] = y[i] * math.sqrt(2 / 10)
    construction = SVM(variant="systematic", n_clusters=1)
    scores = construction.scores(
        Block(X, np.ones(len(X)), y), settled(construction, Block(X, np.ones(len(X)), y))
    )[0]
    assert scores.max() < 1.3 * scores.min()
    # Their sum is above the number of rows, though no row has more than all of the cost.
    assert scores.sum() > 1.4 * len(X)
    coreset = build(X, y, size=50, method="svm", random_state=0)
    assert len(X) / 2 < coreset.provenance["total_sensitivity"] <= len(X)


# Reads and draws


def test_build__sorted_by_class_reads_no_block_twice() -> None:
    X, y = two_classes(6000)
    order = np.argsort(y, kind="stable")
    coreset = build(X[order], y[order], size=300, method="svm", chunks=500, random_state=0)
    assert coreset.provenance["blocks_read_again"] == 0


@pytest.mark.nightly
@pytest.mark.statistical
@pytest.mark.parametrize(("share", "size"), [(0.5, 41), (0.02, 60)])
def test_default__rows_that_a_plane_separates_are_as_good_as_uniform_ones(
    share: float, size: int
) -> None:
    """By the activity as well they cost 1.5 to 3 times as much more than the best classifier."""
    rng = np.random.default_rng(20)
    X = rng.normal(size=(10_000, 20))
    z = X @ rng.normal(size=20) / 3.0 + 0.7 * rng.normal(size=10_000)
    y = np.where(z > np.quantile(z, 1.0 - share), 1.0, -1.0)
    least = solve_svm(X, y, np.ones(len(y)), tol=1e-4).cost

    def excess(rows: Any, signs: Any, weights: Any) -> float:
        fit = solve_svm(rows, signs, weights)
        losses = np.maximum(1.0 - y * (X @ fit.coef + fit.intercept), 0.0)
        return float((fit.coef @ fit.coef / 2 + losses.sum()) / least - 1.0)

    drawn, uniform = [], []
    for seed in range(6):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CoresetWarning)  # all are poor
            coreset = build(X, y, size=size, method="svm", random_state=seed)
        assert coreset.labels is not None
        drawn.append(excess(coreset.points, coreset.labels, coreset.weights))
        rows = rng.choice(len(y), size, replace=False)
        while len(np.unique(y[rows])) < 2:
            rows = rng.choice(len(y), size, replace=False)
        uniform.append(excess(X[rows], y[rows], np.full(size, len(y) / size)))
    assert np.mean(drawn) < 1.1 * np.mean(uniform)


# Labels
