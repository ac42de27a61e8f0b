"""Rows that solvers on core points are trained on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from daskcoreset.constructions.class_summary import summarise_classes
from daskcoreset.core.typing import AnyArray
from daskcoreset.estimators.kernel.rows import (
    quotas_of,
    sample_classes,
    sample_core_points,
    training_rows,
)
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.testing import assert_mean
from tests.pairs import each
from tests.tools.kernel_problems import U, X, Y


def drawn_points(blocks: Any, count: int, seed: int = 0) -> AnyArray:
    strata = sample_classes(blocks, np.array([0, 1]), points=count, seed=seed)
    return np.asarray(sample_core_points(strata, count).points)


def test_points_of__distinct_rows_and_small_classes() -> None:
    points = np.repeat(np.arange(20.0), 5)[:, np.newaxis]
    labels = (points[:, 0] == 7).astype(int)
    for chunks in (100, 13):
        found = drawn_points(row_blocks(points, labels, chunks=chunks), 10)
        assert len(np.unique(found)) == len(found)
        assert 7.0 in found
    everything = drawn_points(row_blocks(points, labels), 100)
    assert sorted(everything[:, 0]) == list(range(20))


@each(form=[np.asarray, sp.csr_array], chunks=[300, 7])
def test_training_rows__stand_for_every_class(form: Any, chunks: int) -> None:
    blocks = row_blocks(form(X), Y, U, chunks=chunks)
    found = summarise_classes(blocks)
    quotas = quotas_of(60, found.classes, found.class_weights)
    assert quotas[-1] + quotas[1] == 60
    few = min(quotas, key=lambda label: quotas[label])
    assert U[few == Y].sum() / U.sum() < quotas[few] / 60 < 0.5
    drawn = training_rows(sample_classes(blocks, found.classes, quotas=quotas, seed=0), quotas)
    assert drawn.labels is not None
    for label in (-1, 1):
        own = drawn.labels == label
        assert own.sum() == quotas[label]
        assert drawn.weights[own].sum() == pytest.approx(U[label == Y].sum())
    whole = dict.fromkeys((-1, 1), 1000)
    everything = training_rows(sample_classes(blocks, found.classes, quotas=whole, seed=0), whole)
    assert np.allclose(np.sort(everything.weights), np.sort(U))


@pytest.mark.statistical
@pytest.mark.nightly
def test_training_rows__sums_are_unbiased() -> None:
    """Of rows of equal weight; mean of 2,000 draws, false-alarm rate 1e-6."""
    blocks, classes = row_blocks(X, Y, chunks=90), np.array([-1, 1])
    quotas = {-1: 12, 1: 30}
    sums = []
    for seed in range(2000):
        drawn = training_rows(sample_classes(blocks, classes, quotas=quotas, seed=seed), quotas)
        sums.append(drawn.weights @ drawn.points)
    assert_mean(np.array(sums), X.sum(axis=0))
