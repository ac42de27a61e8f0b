"""Losses: formulas of the paper, slopes, curvatures and bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskcoreset.estimators.kernel.losses import LOSSES, MarginLoss, resolve_loss
from tests.tools.kernel_problems import ALL_LOSSES, name_of


def test_value__formulas_of_the_paper() -> None:
    z = np.linspace(-2, 3, 41)
    assert np.allclose(LOSSES["hinge"].value(z), np.maximum(1 - z, 0))
    assert np.allclose(LOSSES["squared_hinge"].value(z), np.maximum(1 - z, 0) ** 2)
    theta, mu = 0.2, 0.6
    low, high = np.maximum(1 - theta - z, 0), np.maximum(z - 1 - theta, 0)
    expected = (low**2 + mu * high**2) / (1 - theta) ** 2
    assert np.allclose(resolve_loss("odm", theta=theta, mu=mu).value(z), expected)


@pytest.mark.parametrize("loss", ALL_LOSSES, ids=name_of)
def test_slope__finite_differences_of_the_value(loss: MarginLoss) -> None:
    z = np.random.default_rng(0).uniform(-2, 3, 500)
    z = z[np.abs(z - 1) > 1e-4] if loss.linear and not loss.width else z
    step = 1e-6
    differences = (loss.value(z + step) - loss.value(z - step)) / (2 * step)
    assert np.allclose(loss.slope(z), differences, atol=1e-4)


@pytest.mark.parametrize("loss", [loss for loss in ALL_LOSSES if not loss.linear], ids=name_of)
def test_curvature__finite_differences_of_the_slope(loss: MarginLoss) -> None:
    z = np.random.default_rng(0).uniform(-2, 3, 500)
    corners = [loss.low, loss.high]
    z = z[np.abs(z[:, np.newaxis] - corners).min(axis=1) > 1e-4]
    step = 1e-6
    differences = (loss.slope(z + step) - loss.slope(z - step)) / (2 * step)
    assert np.allclose(loss.curvature(z), differences, atol=1e-6)
    assert loss.curvature(z).max() <= loss.smoothness + 1e-12


@pytest.mark.parametrize("loss", ALL_LOSSES, ids=name_of)
def test_slope_bound__is_the_largest_on_the_ball(loss: MarginLoss) -> None:
    z = np.linspace(-1.7, 1.7, 1001)
    assert np.abs(loss.slope(z)).max() == pytest.approx(loss.slope_bound(1.7))


@given(
    z=st.floats(-50, 50),
    theta=st.floats(0, 0.99),
    mu=st.floats(0.01, 1),
    name=st.sampled_from(sorted(LOSSES)),
)
def test_safe_radius__no_margin_pulls_harder(z: float, theta: float, mu: float, name: str) -> None:
    """At the optimum |w|^2 is lambda times a mean of -z l'(z), which lambda = 1 bounds."""
    loss = resolve_loss(name, theta=theta, mu=mu)
    pull = -z * float(loss.slope(np.array([z]))[0])
    assert pull <= loss.safe_radius(1.0) ** 2 + 1e-9


def test_smoothed__lies_above_the_hinge_by_half_its_width() -> None:
    z = np.linspace(-1, 3, 2001)
    above = LOSSES["hinge"].smoothed(0.4).value(z) - LOSSES["hinge"].value(z)
    assert above.min() >= 0
    assert above.max() == pytest.approx(0.2)


def test_smoothed__curvature_between_the_second_derivative_and_a_parabola_above() -> None:
    z, step, width = np.random.default_rng(0).uniform(-2, 4, 500), 1e-6, 0.3
    loss = LOSSES["hinge"].smoothed(width)
    second = (loss.slope(z + step) - loss.slope(z - step)) / (2 * step)
    above = 0.5 / np.sqrt((1 - z) ** 2 + width**2)
    assert np.all(loss.curvature(z) >= second - 1e-6)
    assert np.allclose(loss.curvature(z), np.sqrt(second * above), rtol=1e-4)
    assert loss.curvature(z).max() <= loss.smoothness
    # The parabola: it touches the loss at z, and is nowhere below it.
    there = np.linspace(-2, 4, 101)
    gap = there - z[:, np.newaxis]
    parabola = loss.value(z)[:, np.newaxis] + loss.slope(z)[:, np.newaxis] * gap
    assert np.all(parabola + 0.5 * above[:, np.newaxis] * gap**2 >= loss.value(there) - 1e-12)
    far = np.array([1 - 31 * width, 1 + 31 * width])
    assert np.array_equal(loss.curvature(far), [0.0, 0.0])
