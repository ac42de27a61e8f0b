"""Stochastic gradients on core points: how near they come, and bounds of the paper."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskcoreset.core.typing import AnyArray
from daskcoreset.estimators.kernel.kernels import Isotropic, KernelMap, resolve_kernel
from daskcoreset.estimators.kernel.losses import LOSSES, MarginLoss, resolve_loss
from daskcoreset.estimators.kernel.newton import solve_exact
from daskcoreset.estimators.kernel.odm import solve_dual
from daskcoreset.estimators.kernel.rows import KernelProblem
from daskcoreset.estimators.kernel.sgd import (
    approximation_bound,
    feature_diameter,
    smoothness,
    solve_avm,
    solve_csvrg,
)
from tests.pairs import each, pairs
from tests.tools.kernel_problems import ALL_LOSSES, U, X, Y, objective, rows
from tests.tools.plain_loops import use_plain_loops


@pairs(
    lam=[0.3, 20.0],
    kernel=["rbf", "laplacian"],
    loss=[loss for loss in ALL_LOSSES if not loss.width],
)
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


ODM = resolve_loss("odm", theta=0.3, mu=0.5)
SMOOTH = [LOSSES["squared_hinge"], ODM]
ALL = [*SMOOTH, LOSSES["hinge"]]
CORE = KernelMap(Isotropic("rbf", 5.0), X[:40])
STAND_INS: tuple[Any, ...] = ("span", "core_points")


@pytest.mark.parametrize("stand_ins", STAND_INS)
def test_solve_csvrg__converges_linearly(stand_ins: Any) -> None:
    """Theorem 8: with 100 L steps of 0.05 / L every epoch at least halves what is left."""
    core = KernelMap(Isotropic("rbf", 5.0), X)
    data = rows()
    solve_csvrg(
        KernelProblem(data, core, ODM, 4.0),
        beta=np.zeros((len(X), 1)),
        n_epochs=12,
        tol=0.0,
        stand_ins=stand_ins,
    )
    norms = [entry["gradient"] for entry in data.trace]
    assert data.reads == len(norms) + 1  # the last one is for the certificate
    for epoch in range(9):
        assert norms[epoch + 1] < 0.5 * norms[epoch]


@each(loss=ALL, option=["I", "II"])
def test_solve_csvrg__near_the_exact_solution(loss: MarginLoss, option: Any) -> None:
    core = KernelMap(Isotropic("rbf", 2.0), X[:150])
    start = np.zeros((150, 1))
    exact = solve_exact(KernelProblem(rows(), core, loss, 20.0), beta=start)
    found = solve_csvrg(
        KernelProblem(rows(), core, loss, 20.0), beta=start, n_epochs=25, option=option, tol=1e-6
    )
    assert found.objectives[0] <= 1.02 * exact.objectives[0]
    assert found.objectives[0] == pytest.approx(objective(found.beta[:, 0], core, loss, 20.0))


@each(lam=[4.0, 400.0], loss=ALL)
def test_solve_csvrg__converged_says_how_far_from_the_least_objective(
    loss: MarginLoss, lam: float
) -> None:
    start = np.zeros((40, 1))
    exact = solve_exact(KernelProblem(rows(), CORE, loss, lam), beta=start, tol=1e-6)
    for n_inner, tol in ((20, 1e-1), (None, 1e-4), (None, 1e-1)):
        found = solve_csvrg(
            KernelProblem(rows(), CORE, loss, lam), beta=start, n_inner=n_inner, tol=tol
        )
        assert found.gaps is not None
        # Above the least objective by no more than the certificate, and converged if that is small.
        assert found.objectives[0] - exact.objectives[0] <= found.gaps[0] * (1 + 1e-9)
        if found.converged:
            assert found.objectives[0] <= (1 + tol) * exact.objectives[0]


def test_steps__numpy_as_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = []
    for compiled in (True, False):
        if not compiled:
            use_plain_loops(monkeypatch)
        parts = [
            solve_csvrg(
                KernelProblem(rows(), CORE, loss, 20.0),
                beta=np.zeros((40, 1)),
                n_epochs=2,
                n_inner=500,
                eta=0.01,
                stand_ins=stand_ins,
            ).beta
            for loss in ALL
            for stand_ins in STAND_INS
        ]
        parts += [
            solve_avm(KernelProblem(rows(), CORE, loss, 20.0), n_steps=500).beta for loss in ALL
        ]
        gram = KernelMap(Isotropic("rbf", 5.0), X[:50]).gram()
        dual = solve_dual(gram, Y[:50, np.newaxis].astype(float), U[:50], ODM, 50.0)
        answers.append([*parts, dual.beta])
    for first, second in zip(*answers, strict=True):
        # Coordinates in the span magnify rounding.
        assert np.allclose(first, second, rtol=1e-6, atol=1e-7)
