"""Losses: formulas of the paper, slopes, curvatures and bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from daskcoreset.solvers.losses import LOSSES, MarginLoss, RoundedHinge, resolve_loss
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
    z = z[np.abs(z - 1) > 1e-4] if loss.linear else z
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


@pytest.mark.parametrize("width", [1e-3, 0.5])
def test_rounded_hinge__is_smooth_and_little_above_the_hinge(width: float) -> None:
    loss, step = RoundedHinge(width), 1e-3 * width
    z = 1.0 + width * np.linspace(-2.0, 2.0, 44)
    above = loss.value(z) - np.maximum(1.0 - z, 0.0)
    assert (above >= 0.0).all()
    assert above.max() <= width / 4.0
    for values, slopes in ((loss.value, loss.slope), (loss.slope, loss.curvature)):
        differences = (values(z + step) - values(z - step)) / (2 * step)
        assert np.allclose(slopes(z), differences, rtol=1e-6, atol=1e-9)


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
