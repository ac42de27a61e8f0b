"""Newton's method on core points against a general minimiser."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

from daskcoreset.constructions.class_summary import summarise_classes
from daskcoreset.core.typing import FloatArray
from daskcoreset.estimators.kernel import newton as newton_steps
from daskcoreset.estimators.kernel.kernels import Isotropic, KernelMap, Span
from daskcoreset.estimators.kernel.losses import LOSSES, MarginLoss, resolve_loss
from daskcoreset.estimators.kernel.newton import solve_exact
from daskcoreset.estimators.kernel.odm import solve_dual
from daskcoreset.estimators.kernel.rows import KernelProblem, TrainingRows
from daskcoreset.estimators.kernel.sgd import solve_csvrg
from daskcoreset.inputs.blocks import row_blocks
from tests.pairs import each, pairs
from tests.tools.kernel_problems import U, X, Y, objective, problem, rows

ODM = resolve_loss("odm", theta=0.3, mu=0.5)
SMOOTH = [LOSSES["squared_hinge"], ODM]
ALL = [*SMOOTH, LOSSES["hinge"]]
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


@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: str(loss.name))
def test_all_solvers__same_optimum_with_every_row_a_core_point(loss: MarginLoss) -> None:
    """Cells of diameter zero: the reduced problem is the kernel machine itself."""
    n, lam = 150, 20.0
    core = KernelMap(Isotropic("rbf", 5.0), X[:n])
    signs = Y[:n, np.newaxis].astype(float)
    dual = solve_dual(core.gram(), signs, U[:n], loss, lam, tol=1e-9, max_iter=5000)
    assert dual.converged
    assert dual.gaps is not None
    start = np.zeros((n, 1))
    exact = solve_exact(KernelProblem(rows(40, n=n), core, loss, lam), beta=start, tol=1e-8)
    noisy = solve_csvrg(
        KernelProblem(rows(40, n=n), core, loss, lam), beta=start, n_epochs=40, tol=1e-8
    )
    assert exact.objectives[0] == pytest.approx(dual.objectives[0], rel=1e-6)
    assert noisy.objectives[0] == pytest.approx(dual.objectives[0], rel=1e-4)
    assert noisy.objectives[0] >= dual.objectives[0] - dual.gaps[0]


@pairs(loss=SMOOTH, lam=[0.3, 30.0, 3000.0], tol=[1e-2, 1e-4])
def test_solve_exact__stops_where_a_step_would_gain_little(
    loss: MarginLoss, lam: float, tol: float
) -> None:
    start = np.zeros((40, 1))
    best = solve_exact(KernelProblem(rows(), CORE, loss, lam), beta=start, tol=1e-12).objectives[0]
    data = rows()
    found = solve_exact(KernelProblem(data, CORE, loss, lam), beta=start, tol=tol)
    assert found.converged
    assert found.objectives[0] <= best * (1 + tol)
    assert found.gaps is not None
    assert found.objectives[0] - found.gaps[0] <= best * (1 + 1e-9)
    before = [entry["objective"] for entry in data.trace][-2]
    assert before > best * (1 + tol / 2)  # it was needed


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: str(loss.name))
def test_solve_exact__pilots_and_hessian_of_a_share(loss: MarginLoss) -> None:
    points, labels, weights = problem(40_000, seed=3)
    blocks = row_blocks(points, labels, weights, chunks=9_000)
    found = summarise_classes(blocks)
    beta, bent, results = np.zeros((40, 1)), np.ones(1), []
    for pilots, max_hessian_rows, seed in ((False, 20_000, 0), (True, 3_000, 0), (True, 3_000, 1)):
        data = TrainingRows(blocks, found.classes, found.weight, found.n_rows, dict(found.weights))
        whole = KernelProblem(data, CORE, loss, 3000.0)
        solver = newton_steps.Newton(whole, Span.of(CORE), 1e-4, max_hessian_rows, seed)
        start = solver.pilots(beta) if pilots else (beta, bent)
        result, _ = solver.solve(*start)
        assert result.converged
        results.append((result.objectives[0], data))
    (least, plain), *others = results
    assert plain.reads == len(plain.trace)
    for objective_, data in others:
        assert objective_ == pytest.approx(least, rel=2e-4)
        assert data.reads == len(data.trace) + 1  # one drew the pilots
        assert data.trace[0]["objective"] < 1.05 * least < plain.trace[0]["objective"]
        if not loss.linear:
            assert data.reads < plain.reads


def test_solve_exact__one_against_the_rest_is_three_problems() -> None:
    labels = np.digitize(X[:, 0], [0.3, 0.7])
    blocks = row_blocks(X, labels, U, chunks=100)
    found = summarise_classes(blocks)
    data = TrainingRows(blocks, found.classes, found.weight, found.n_rows)
    together = solve_exact(KernelProblem(data, CORE, ODM, 50.0), beta=np.zeros((40, 3)), tol=1e-8)
    for k in range(3):
        blocks = row_blocks(X, np.where(labels == k, 1, -1), U, chunks=100)
        alone = TrainingRows(blocks, np.array([-1, 1]), found.weight, found.n_rows)
        one = solve_exact(KernelProblem(alone, CORE, ODM, 50.0), beta=np.zeros((40, 1)), tol=1e-8)
        assert together.objectives[k] == pytest.approx(one.objectives[0], rel=1e-7)
