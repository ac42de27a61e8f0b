"""Terms of logistic coresets: dense and sparse rows agree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st

from daskcoreset import Logistic
from daskcoreset.core.block import Block
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.sensitivities.logistic_pilot import (
    LabelledScatter,
    labelled_scatter,
    logistic_terms,
)

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


# Place of the slopes in what is compared: the first read has four values, then come the losses.
SLOPES = 5


def values_of(found: Any) -> list[FloatArray]:
    """Return the numbers of a summary of the first read, or of the second one."""
    if not isinstance(found, LabelledScatter):
        return [np.atleast_1d(part) for part in found[1:-1]]
    of_classes = [(one.count, one.weight, *one.mean) for one in found.classes.values()]
    return [np.array([found.weight]), found.mean, found.matrix, np.array(of_classes)]


@settings(max_examples=20)
@given(labelled_rows(), st.booleans())
def test_terms__of_dense_and_of_sparse_rows(rows: Rows, intercept: bool) -> None:
    points, u, y = rows
    method, found = Logistic(intercept=intercept), []
    sparse: Any = sp.csr_array(points)
    pilot = method.finalize(
        method.block_summary(Block(points, u, y), None, np.random.default_rng(0)),
        None,  # type: ignore[arg-type] # which is not asked
    )
    for rows_of_form in (points, sparse):
        block = Block(rows_of_form, u, y)
        sums, scores, _ = method.block_summary(block, pilot, np.random.default_rng(0))
        found.append([*values_of(labelled_scatter(block)), *values_of(sums), scores])
    # The gradient at its least is a sum whose terms are far larger.
    largest = np.where(u[:, np.newaxis] > 0.0, points, 0.0).astype(np.float64)
    slope = (u @ np.abs(largest)).max()
    for other in found[1:]:
        for place, (one, its) in enumerate(zip(found[0], other, strict=True)):
            size = max(np.abs(one).max(), slope if place == SLOPES else 0.0)
            np.testing.assert_allclose(its, one, rtol=1e-6, atol=1e-7 * size)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_terms__of_huge_margins_and_of_none(n_classes: int) -> None:
    """Losses are the margins then, and pulls are zero or one."""
    points = np.array([[1e300], [-1e300], [0.0], [1e-310]])
    y = np.array([1, 1, 0, *range(n_classes)])[:4]
    block = Block(points, np.ones(4), y)
    rows = Block(np.arange(6.0)[:, None], np.ones(6), np.arange(6) % n_classes)
    method = Logistic(intercept=False)
    pilot = method.finalize(method.block_summary(rows, None, np.random.default_rng(0)), None)  # type: ignore[arg-type] # which is not asked
    coef = np.array([[1.0], [2.0], [-1.0]])[: len(pilot.coef)]
    shift = np.zeros(len(coef))
    terms = logistic_terms(block, replace(pilot, coef=coef, intercept=shift))
    margins = points @ coef.T
    if n_classes == 2:
        expected = np.maximum(np.where(y == 1, -1, 1) * margins[:, 0], 0.0)
        expected[2:] = np.log(2.0)
    else:
        expected = margins.max(axis=1) - margins[np.arange(4), y]
        expected[2:] = np.log(3.0)
    np.testing.assert_allclose(terms.losses.sum(axis=1), expected)
    assert np.isfinite(terms.pulls).all()
    assert np.abs(terms.pulls).max() <= 1.0
