"""Calibration of SVM coresets, and the draws it chooses from."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from daskcoreset import build
from daskcoreset.core.blocks import Block
from daskcoreset.sensitivities import SVM
from daskcoreset.sensitivities.svm_calibration import (
    AT_ZERO,
    rake_to_pilot,
)
from daskcoreset.sensitivities.svm_pilot import WIDTH
from daskcoreset.solvers.linear import solve_svm
from daskcoreset.testing import cut_rows, draw
from tests.tools.two_classes import settled, two_classes

pytestmark = [
    pytest.mark.filterwarnings("ignore:a solution fitted on the coreset"),  # which are tiny here
    pytest.mark.filterwarnings("ignore:how far a solution fitted"),
]


def test_fitted__cost_of_the_classifier_that_is_fitted_on_all_rows() -> None:
    X, y = two_classes(300)
    block, lam = Block(X, np.ones(300), y), 0.3
    found = SVM(lam=lam).design.fitted(block, np.ones(300), block, settled(SVM(lam=lam), block))
    fit = solve_svm(X, y.astype(np.float64), np.ones(300), lam, intercept=True, tol=1e-6)
    losses = lam * np.maximum(1.0 - y * (X @ fit.coef + fit.intercept), 0.0)

    assert found.constant == pytest.approx(fit.coef @ fit.coef / 2, rel=0.1)
    assert found.losses.sum() == pytest.approx(losses.sum(), rel=0.02)


@pytest.mark.parametrize("variant", ["calibrated", "pilot_mix", "auto"])
def test_calibration__class_weights_and_means_are_those_of_the_data(variant: Any) -> None:
    X, y = two_classes(5000)
    u = np.random.default_rng(7).random(5000)
    coreset = build(
        X + 1e3, y, size=400, method=SVM(variant=variant), sample_weight=u, random_state=1
    )
    assert (coreset.weights > 0).all()
    for label in (-1, 1):
        mine, own = coreset.labels == label, y == label
        np.testing.assert_allclose(coreset.weights[mine].sum(), u[own].sum(), rtol=1e-8)
        if variant != "auto":
            np.testing.assert_allclose(
                coreset.weights[mine] @ coreset.points[mine], u[own] @ (X[own] + 1e3), rtol=1e-8
            )


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("labels", [[-1, 1], ["a", "b", "c"]], ids=["two", "three"])
def test_calibration__losses_and_slopes_are_those_of_all_blocks(
    passes: Literal[1, 2], labels: list[Any]
) -> None:
    """Of the rounded hinge at the rough solution; read off the formulas, with weights."""
    X, y = two_classes(6000)
    if len(labels) > 2:
        y = np.where((y == 1) & (X[:, 1] > 0), 2, (y + 1) // 2)
    y = np.array(labels)[(y + 1) // 2 if len(labels) == 2 else y]
    u = np.random.default_rng(8).lognormal(size=6000)
    blocks = cut_rows(X + 7.0, [0, 1000, 1, 4999], u, y)
    found = draw(blocks, SVM(variant="pilot_mix"), 600, passes=passes)
    rough = found.summary
    positives = labels if len(labels) > 2 else labels[1:]
    for label, coef, shift in zip(positives, rough.coef, rough.intercept, strict=True):
        side = np.where(y == label, 1.0, -1.0)
        rows = X + 7.0 - rough.origin
        margins = side * (rows @ coef + shift)
        slope = np.clip((1 + WIDTH - margins) / (2 * WIDTH), 0, 1)
        loss = np.where(margins < 1 - WIDTH, 1 - margins, WIDTH * slope**2)
        terms = np.column_stack([loss, rows * (slope * side)[:, np.newaxis], slope * side])
        scale = u @ np.abs(terms)
        kept = found.weights @ terms[found.indices]
        np.testing.assert_allclose(kept / scale, u @ terms / scale, atol=1e-6)


def test_rake_to_pilot__the_difference_of_two_classes_in_the_place_of_their_means() -> None:
    """Class 0 has no row as far out as its mean; class 1 has, and makes up for it."""
    points = np.array([[0.0], [1.0], [-6.0], [0.0], [1.0]])
    codes = np.array([0, 0, 1, 1, 1])
    sums, weights, totals = np.array([[2.05], [-6.5]]), np.ones(5), np.array([2.0, 3.0])

    def nothing() -> Any:
        raise AssertionError

    def raked(**options: Any) -> Any:
        mode = (True, False)  # the means, and not the gradient
        return rake_to_pilot(weights, codes, points, totals, sums, nothing, mode, **options)

    assert raked().met == ("class totals",)
    found = raked(at_zero=True)
    assert found.met == ("class totals", AT_ZERO)
    assert found.requested == ("class totals", "class means")
    difference = found.weights[2:] @ points[2:] - found.weights[:2] @ points[:2]
    np.testing.assert_allclose(difference, sums[1] - sums[0], rtol=1e-6)
    np.testing.assert_allclose(np.bincount(codes, found.weights), totals)
