"""Newton's method on core points against a general minimiser."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

from daskcoreset.core.typing import FloatArray
from daskcoreset.estimators.kernel.kernels import Isotropic, KernelMap, Span
from daskcoreset.estimators.kernel.losses import LOSSES, MarginLoss, resolve_loss
from daskcoreset.estimators.kernel.newton import solve_exact
from daskcoreset.estimators.kernel.rows import KernelProblem
from tests.pairs import each
from tests.tools.kernel_problems import U, X, Y, objective, rows

ODM = resolve_loss("odm", theta=0.3, mu=0.5)
SMOOTH = [LOSSES["squared_hinge"], ODM]
CORE = KernelMap(Isotropic("rbf", 5.0), X[:40])


@each(loss=SMOOTH, lam=[0.3, 30.0, 3000.0])
def test_solve_exact__as_a_general_minimiser(loss: MarginLoss, lam: float) -> None:
    data = rows()
    found = solve_exact(KernelProblem(data, CORE, loss, lam), beta=np.zeros((40, 1)), tol=1e-10)
    into = Span.of(CORE).into
    features = CORE.kernel(((X[:, np.newaxis] - CORE.points) ** 2).sum(axis=2)) @ into

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
    assert found.converged
    assert found.gaps is not None
    assert found.objectives[0] == pytest.approx(objective(found.beta[:, 0], CORE, loss, lam))
    assert found.objectives[0] <= general.fun * (1 + 1e-9)
    assert found.objectives[0] - found.gaps[0] <= general.fun * (1 + 1e-9)
    assert data.radius == pytest.approx(
        np.sqrt(((X[:, np.newaxis] - CORE.points) ** 2).sum(axis=2).min(axis=1).max())
    )


def quadratic_program(gram: FloatArray, signs: FloatArray, most: FloatArray) -> float:
    """Least objective of the hinge without intercept: its dual, a box and a quadratic."""
    q = gram * np.outer(signs, signs)
    found = scipy.optimize.minimize(
        lambda alpha: (0.5 * alpha @ q @ alpha - alpha.sum(), q @ alpha - 1),
        np.zeros(len(signs)),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, upper) for upper in most],
        options={"maxiter": 20000, "maxfun": 10**6, "ftol": 1e-16, "gtol": 1e-10},
    )
    return -float(found.fun)


@pytest.mark.parametrize("lam", [5.0, 200.0])
def test_solve_exact__hinge_with_every_row_a_core_point(lam: float) -> None:
    n = 120
    core = KernelMap(Isotropic("rbf", 5.0), X[:n])
    data = rows(50, n=n)
    found = solve_exact(
        KernelProblem(data, core, LOSSES["hinge"], lam), beta=np.zeros((n, 1)), tol=1e-5
    )
    best = quadratic_program(core.gram(), Y[:n].astype(float), lam * U[:n] / U[:n].sum())
    assert found.converged
    assert best * (1 - 1e-7) <= found.objectives[0] <= best * (1 + 1e-4)
    assert found.gaps is not None
    assert found.objectives[0] - found.gaps[0] <= best * (1 + 1e-7)


@pytest.mark.parametrize("lam", [1e5, 1e7])
def test_solve_exact__hinge_where_the_penalty_counts_for_little(lam: float) -> None:
    """Between the least hinge loss, a linear program, and the objective where it is reached."""
    into = Span.of(CORE).into
    features = CORE.kernel(((X[:, np.newaxis] - CORE.points) ** 2).sum(axis=2)) @ into
    n, q = features.shape
    shares = U / U.sum()
    program = scipy.optimize.linprog(
        np.concatenate([np.zeros(q), shares]),
        A_ub=-np.hstack([Y[:, np.newaxis] * features, np.eye(n)]),
        b_ub=-np.ones(n),
        bounds=[(None, None)] * q + [(0, None)] * n,
    )
    assert program.success
    gamma = program.x[:q]
    found = solve_exact(
        KernelProblem(rows(), CORE, LOSSES["hinge"], lam), beta=np.zeros((40, 1)), max_iter=300
    )
    assert found.converged
    assert found.objectives[0] >= lam * program.fun * (1 - 1e-9)
    assert found.objectives[0] <= (lam * program.fun + 0.5 * gamma @ gamma) * (1 + 1e-3)
