"""SVM coresets: the contract, the score of Lemma 2, and their builds."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from daskcoreset import build
from daskcoreset.core.block import Block
from daskcoreset.sensitivities import SVM
from tests.tools.two_classes import settled, two_classes

pytestmark = [
    pytest.mark.filterwarnings("ignore:a solution fitted on the coreset"),  # which are tiny here
    pytest.mark.filterwarnings("ignore:how far a solution fitted"),
]


# The score


def test_lower_bound__all_scores_alike_and_no_row_above_one() -> None:
    """Lemma 1's instance: every row matters as much as any other."""
    y = np.where(np.arange(252) % 2, -1, 1)
    X = np.zeros((252, 10))
    for i, columns in enumerate(combinations(range(10), 5)):
        X[i, columns] = y[i] * math.sqrt(2 / 10)
    construction = SVM(variant="paper", n_clusters=1)
    scores = construction.scores(
        Block(X, np.ones(len(X)), y), settled(construction, Block(X, np.ones(len(X)), y))
    )
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
