from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.estimators.kernel.kernels import (
    Isotropic,
    KernelMap,
    resolve_gamma,
    resolve_kernel,
)
from daskcoreset.estimators.kernel.losses import LOSSES, MarginLoss, resolve_loss
from daskcoreset.estimators.kernel.sgd import approximation_bound, feature_diameter, smoothness

ALL = [
    LOSSES["hinge"],
    LOSSES["squared_hinge"],
    LOSSES["hinge"].smoothed(0.3),
    resolve_loss("odm", theta=0.3, mu=0.7),
    resolve_loss("odm", theta=0.0, mu=1.0),
]


def named(loss: MarginLoss) -> str:
    return f"{loss.name}-{loss.width}-{loss.theta}"


# --- losses --------------------------------------------------------------------------------


def test_value__formulas_of_the_paper() -> None:
    z = np.linspace(-2, 3, 41)
    assert np.allclose(LOSSES["hinge"].value(z), np.maximum(1 - z, 0))
    assert np.allclose(LOSSES["squared_hinge"].value(z), np.maximum(1 - z, 0) ** 2)
    theta, mu = 0.2, 0.6
    low, high = np.maximum(1 - theta - z, 0), np.maximum(z - 1 - theta, 0)
    expected = (low**2 + mu * high**2) / (1 - theta) ** 2
    assert np.allclose(resolve_loss("odm", theta=theta, mu=mu).value(z), expected)


@pytest.mark.parametrize("loss", ALL, ids=named)
def test_slope__finite_differences_of_the_value(loss: MarginLoss) -> None:
    z = np.random.default_rng(0).uniform(-2, 3, 500)
    z = z[np.abs(z - 1) > 1e-4] if loss.linear and not loss.width else z
    step = 1e-6
    differences = (loss.value(z + step) - loss.value(z - step)) / (2 * step)
    assert np.allclose(loss.slope(z), differences, atol=1e-4)


@pytest.mark.parametrize("loss", [loss for loss in ALL if not loss.linear], ids=named)
def test_curvature__finite_differences_of_the_slope(loss: MarginLoss) -> None:
    z = np.random.default_rng(0).uniform(-2, 3, 500)
    corners = [loss.low, loss.high]
    z = z[np.abs(z[:, np.newaxis] - corners).min(axis=1) > 1e-4]
    step = 1e-6
    differences = (loss.slope(z + step) - loss.slope(z - step)) / (2 * step)
    assert np.allclose(loss.curvature(z), differences, atol=1e-6)
    assert loss.curvature(z).max() <= loss.smoothness + 1e-12


@pytest.mark.parametrize("loss", ALL, ids=named)
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"theta": 1.0}, r"theta=1.0 is outside \[0, 1\)"),
        ({"theta": -0.1}, "theta=-0.1 is outside"),
        ({"theta": np.nan}, "theta=nan is outside"),
        ({"mu": 0.0}, r"mu=0.0 is outside \(0, 1\]"),
        ({"mu": 1.5}, "mu=1.5 is outside"),
        ({"name": "log"}, "loss='log' is not known"),
    ],
)
def test_resolve_loss__bad_parameters(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        resolve_loss(**{"name": "odm", "theta": 0.4, "mu": 0.4, **arguments})


# --- kernels -------------------------------------------------------------------------------


def cauchy(squares: FloatArray) -> FloatArray:
    return np.asarray(1.0 / (1.0 + squares))


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", cauchy])
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tiles__kernel_of_plain_distances(kernel: Any, offset: float, dtype: Any) -> None:
    rows = (np.random.default_rng(0).normal(size=(700, 3)) * 2 + offset).astype(dtype)
    core = KernelMap(resolve_kernel(kernel, 0.7), rows[::20].astype(np.float64))
    gaps = rows[:, np.newaxis].astype(np.float64) - core.points
    squares = (gaps**2).sum(axis=2)
    expected = {
        "rbf": np.exp(-0.7 * squares),
        "laplacian": np.exp(-0.7 * np.sqrt(squares)),
    }.get(kernel, 1 / (1 + squares))
    for part, values, nearest in core.tiles(rows, nearest=True):
        assert np.allclose(values, expected[part], atol=1e-6 if kernel == "laplacian" else 1e-10)
        assert nearest is not None
        # At a large offset float32 has few values: of two as near as each other either is right.
        found = np.take_along_axis(squares[part], nearest.cells[:, np.newaxis], axis=1)[:, 0]
        assert np.allclose(found, squares[part].min(axis=1), rtol=0, atol=1e-10)
        assert nearest.farthest == pytest.approx(squares[part].min(axis=1).max(), abs=1e-10)
    assert np.allclose(np.diag(core.gram()), 1.0, atol=0, rtol=0)


def test_resolve_gamma__as_in_svc() -> None:
    X = np.random.default_rng(0).normal(size=(50, 4)) * 3 + 1
    assert resolve_gamma("scale", 4, float(X.var())) == pytest.approx(1 / (4 * X.var()))
    assert resolve_gamma("scale", 4, 0.0) == 1.0
    for bad in ("large", 0.0, -1.0, np.inf, True, None):
        with pytest.raises(InvalidInputError, match="gamma must be"):
            resolve_gamma(bad, 4, 1.0)


def linear(squares: FloatArray) -> FloatArray:
    return np.asarray(1.0 + squares)


def shifted(squares: FloatArray) -> FloatArray:
    return np.asarray(0.5 * np.exp(-squares))


def two(first: FloatArray, second: FloatArray) -> FloatArray:
    return first @ second.T


def total(squares: FloatArray) -> float:
    return float(squares.sum())


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("poly", "kernel='poly' is not known to be isotropic"),
        ("linear", "kernel='linear' is not known to be isotropic"),
        (linear, "is above 1"),
        (shifted, "is 0.5 at distance zero"),
        (two, "fails on an array of squared distances"),
        (total, "returns shape"),
    ],
)
def test_resolve_kernel__not_isotropic(kernel: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        resolve_kernel(kernel, 1.0)


def test_resolve_kernel__no_kernel_at_all() -> None:
    with pytest.raises(InvalidTypeError, match="must be a name or callable"):
        resolve_kernel(3, 1.0)


# --- Theorem 4 -----------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [loss for loss in ALL if not loss.width], ids=named)
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("lam", [0.3, 20.0])
def test_approximation_bound__holds_for_every_row(
    loss: MarginLoss, kernel: str, lam: float
) -> None:
    """Error of the gradient h of a row, by kernels between all rows: no core point stands in."""
    rng = np.random.default_rng(1)
    X = rng.random((150, 2))
    y = np.where(X[:, 0] > 0.5, 1.0, -1.0)
    diameter = 0.3
    centers: list[int] = []
    for i in range(len(X)):
        if all(np.linalg.norm(X[i] - X[j]) > diameter / 2 for j in centers):
            centers.append(i)
    cells = np.array([centers[np.linalg.norm(X[centers] - x, axis=1).argmin()] for x in X])
    function = resolve_kernel(kernel, 2.0)
    full = KernelMap(function, X).gram()

    def within(w: AnyArray) -> AnyArray:
        norm = np.sqrt(w @ full @ w)
        return np.asarray(w * min(1.0, loss.safe_radius(lam) / norm))

    w, snapshot = (within(rng.normal(size=len(X))) for _ in range(2))
    slopes = [y * loss.slope(y * (full @ v)) for v in (w, snapshot)]
    bound = approximation_bound(function, diameter, loss, lam)
    worst = 0.0
    for t in range(len(X)):
        # Coefficients of phi(x_i): what stands at the rows, minus what stands at core points.
        error = np.zeros(len(X))
        stands = lam / len(X) * slopes[1]
        stands[t] += lam * (slopes[0][t] - slopes[1][t])
        np.add.at(error, np.arange(len(X)), stands)
        np.add.at(error, cells, -stands)
        worst = max(worst, float(np.sqrt((error @ full @ error).clip(min=0.0))))
    assert 0 < worst <= bound
    assert feature_diameter(function, 0.0) == 0.0
    assert smoothness(loss, lam) == 1 + lam * (2 if loss.linear else loss.smoothness)


def test_feature_diameter__twice_the_distance_at_the_rim() -> None:
    function = Isotropic("rbf", 3.0)
    k = np.exp(-3.0 * 0.25**2)
    assert feature_diameter(function, 0.5) == pytest.approx(2 * np.sqrt(2 - 2 * k))
