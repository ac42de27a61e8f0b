"""Solvers in the span of core points, against a general minimiser and plain readings."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest
import scipy.optimize

from daskcoreset.core.random import Stage, stream
from daskcoreset.core.sampling import draw_with_replacement
from daskcoreset.core.typing import FloatArray
from daskcoreset.errors import CoresetWarning
from daskcoreset.estimators.kernel import solvers
from daskcoreset.estimators.kernel.kernels import KernelMap
from daskcoreset.estimators.kernel.objective import ROOT, KernelProblem, Solution
from daskcoreset.estimators.kernel.solvers import solve_avm, solve_csvrg, solve_newton
from daskcoreset.solvers.losses import LOSSES, MarginLoss, resolve_loss
from tests.pairs import each
from tests.tools.kernel_problems import U, X, Y, kernel_values, objective, problem_of

ODM = resolve_loss("odm", theta=0.3, mu=0.5)
SMOOTH = [LOSSES["squared_hinge"], ODM]
CORE = KernelMap(5.0, X[:40])


@each(loss=SMOOTH, lam=[0.3, 30.0, 3000.0])
def test_newton__as_a_general_minimiser(loss: MarginLoss, lam: float) -> None:
    problem = problem_of(CORE, loss, lam)
    found = solve_newton(problem, tol=1e-12)
    eigenvalues, vectors = np.linalg.eigh(CORE.gram())
    into = vectors / np.sqrt(np.maximum(eigenvalues, 1e-12))
    features = kernel_values(CORE, X) @ into

    def both(gamma: FloatArray) -> tuple[float, FloatArray]:
        z = Y * (features @ gamma)
        value = 0.5 * gamma @ gamma + lam / U.sum() * (U @ loss.value(z))
        return value, gamma + lam / U.sum() * (features.T @ (U * Y * loss.slope(z)))

    general = scipy.optimize.minimize(
        both,
        np.zeros(into.shape[1]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 10**6, "ftol": 1e-15, "gtol": 1e-9},
    )
    assert found.objectives[0] == pytest.approx(objective(found.beta[:, 0], CORE, loss, lam))
    assert found.objectives[0] <= general.fun * (1 + 1e-6)
    gaps = ((X[:, np.newaxis] - CORE.points) ** 2).sum(axis=2)
    assert problem.radius == pytest.approx(np.sqrt(gaps.min(axis=1).max()))


def test_csvrg__converges_linearly() -> None:
    """Theorem 8: with 100 L steps of 0.05 / L every epoch at least halves what is left."""
    problem = problem_of(KernelMap(5.0, X), ODM, 4.0)
    solve_csvrg(problem, n_epochs=12, tol=0.0)
    norms = [entry["gradient"] for entry in problem.trace]
    assert problem.reads == len(norms) >= 10
    for epoch in range(9):
        assert norms[epoch + 1] < 0.5 * norms[epoch]


def test_avm__averages_the_second_half_of_the_iterates(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain reading of the steps, in the span of all core points, with its own projection."""
    loss, lam, n_steps = LOSSES["hinge"], 10.0, 301
    monkeypatch.setattr(solvers, "_MIN_STEPS", n_steps)
    found = solve_avm(problem_of(CORE, loss, lam), seed=5)
    assert found.n_iter == n_steps
    order = draw_with_replacement(U, n_steps, stream(5, Stage.DESCENT, ROOT, solvers._ORDER))
    gram, values = CORE.gram(), kernel_values(CORE, X)
    beta, iterates = np.zeros(len(CORE)), []
    for t, i in enumerate(order, start=1):
        slope = -float(Y[i] * (values[i] @ beta) <= 1.0)
        beta = (1 - 1 / t) * beta
        beta[values[i].argmax()] -= lam / t * Y[i] * slope  # the nearest core point
        norm = np.sqrt(beta @ gram @ beta)
        beta = beta * (min(1.0, float(loss.safe_radius(lam)) / float(norm)) if norm > 0 else 1.0)
        iterates.append(beta)
    mean = np.mean(iterates[n_steps // 2 :], axis=0)
    assert np.allclose(found.beta[:, 0], mean, atol=1e-10)


def test_quotas__draw_as_many_rows_as_are_asked_for() -> None:
    problem = problem_of(CORE, ODM, 1.0)
    drawn = problem.draw(problem.quotas(0, 0, 50))
    assert len(drawn) == 50
    assert len(problem.draw(problem.quotas(0, 0, None))) == len(X)


@pytest.mark.parametrize("solve", [solve_newton, solve_csvrg, solve_avm])
def test_solvers__predict_hours(
    solve: Callable[[KernelProblem], Solution], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = problem_of(CORE, ODM, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve(problem)
    monkeypatch.setattr(solvers, "_LONG", 1e-6)
    with pytest.warns(CoresetWarning, match=r"0.0 hours .* with 40 core points and 300 rows"):
        solve(problem)
