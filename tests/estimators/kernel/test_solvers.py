"""Solvers on core points against independent ones: gradients, optima, certificates."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp

from daskcoreset.constructions.class_summary import _range, summarise_classes
from daskcoreset.core import linalg as products
from daskcoreset.core import linalg as threads
from daskcoreset.core.blocks import Block
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.linalg import one_thread
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.sampling import draw_with_replacement
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.estimators.kernel import newton
from daskcoreset.estimators.kernel import newton as newton_steps
from daskcoreset.estimators.kernel.kernels import Isotropic, KernelMap, Span
from daskcoreset.estimators.kernel.losses import LOSSES, MarginLoss, resolve_loss
from daskcoreset.estimators.kernel.newton import solve_exact
from daskcoreset.estimators.kernel.objective import (
    ObjectiveQuery,
    ObjectiveTerms,
    evaluate_block,
    signs_of,
)
from daskcoreset.estimators.kernel.odm import solve_dual
from daskcoreset.estimators.kernel.rows import (
    PAST,
    ROOT,
    KernelProblem,
    TrainingRows,
    quotas_of,
    sample_classes,
    sample_core_points,
    split_evenly,
    training_rows,
)
from daskcoreset.estimators.kernel.sgd import _ORDER, solve_avm, solve_csvrg
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.testing import assert_mean
from tests.tools.plain_loops import use_plain_loops

ODM = resolve_loss("odm", theta=0.3, mu=0.5)
SMOOTH = [LOSSES["squared_hinge"], ODM]
ALL = [*SMOOTH, LOSSES["hinge"]]


def problem(n: int = 300, seed: int = 0) -> tuple[AnyArray, AnyArray, AnyArray]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    noise = rng.normal(scale=0.15, size=n)
    y = np.where((X[:, 0] - 0.5) ** 2 + (X[:, 1] - 0.5) ** 2 + 0.1 * noise > 0.1, 1, -1)
    return X, y, rng.uniform(0.2, 2.0, n)


X, Y, U = problem()
CORE = KernelMap(Isotropic("rbf", 5.0), X[:40])
ALL_ROWS = np.ones(1)


def rows(chunks: int = 100, *, weights: bool = True, n: int = len(X)) -> TrainingRows:
    u = U[:n] if weights else None
    blocks = row_blocks(X[:n], Y[:n], u, chunks=chunks)
    found = summarise_classes(blocks)
    return TrainingRows(blocks, found.classes, found.weight, found.n_rows, found.weights)


def objective(beta: FloatArray, core: KernelMap, loss: MarginLoss, lam: float) -> float:
    """Plain NumPy reading of f, restricted to the span, with weights U."""
    squares = ((X[:, np.newaxis] - core.points) ** 2).sum(axis=2)
    values = core.kernel(squares)
    gram = core.kernel(((core.points[:, np.newaxis] - core.points) ** 2).sum(axis=2))
    return float(0.5 * beta @ gram @ beta + lam / U.sum() * (U @ loss.value(Y * (values @ beta))))


# --- one read ------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [*SMOOTH, LOSSES["hinge"].smoothed(0.4)])
def test_ask__gradient_and_hessian_by_finite_differences(loss: MarginLoss) -> None:
    rng = np.random.default_rng(0)
    beta = 0.3 * rng.normal(size=(40, 1))
    asked = ObjectiveQuery(CORE, loss, np.array([-1, 1]), beta, gradient="rows", hessian=ALL_ROWS)
    found = rows().evaluate(asked)

    def losses(at: FloatArray) -> float:
        gram = CORE.gram()
        return float(objective(at, CORE, loss, U.sum()) - 0.5 * at @ gram @ at)

    assert found.losses[0, 0] == pytest.approx(losses(beta[:, 0]))
    for _ in range(3):
        way = rng.normal(size=40)
        step = 1e-6
        slope = (losses(beta[:, 0] + step * way) - losses(beta[:, 0] - step * way)) / (2 * step)
        assert found.gradient[:, 0] @ way == pytest.approx(slope, rel=1e-5)

        def gradient(at: FloatArray) -> FloatArray:
            place = at[:, np.newaxis]
            return (
                rows()
                .evaluate(ObjectiveQuery(CORE, loss, np.array([-1, 1]), place, gradient="rows"))
                .gradient[:, 0]
            )

        step = 1e-7
        bend = (gradient(beta[:, 0] + step * way) - gradient(beta[:, 0] - step * way)) / (2 * step)
        if loss.linear:  # an upper bound of the second derivative
            assert way @ found.hessian[0] @ way > way @ bend
        else:
            assert np.allclose(found.hessian[0] @ way, bend, rtol=1e-4, atol=1e-3)
    values = CORE.kernel(((X[:, np.newaxis] - CORE.points) ** 2).sum(axis=2))
    weights = U * loss.curvature(Y * (values @ beta[:, 0]))
    assert np.allclose(found.hessian[0], values.T @ (weights[:, np.newaxis] * values))
    assert found.bent[0] == np.count_nonzero(weights)


def test_ask__cells_losses_along_a_move_and_table() -> None:
    rng = np.random.default_rng(0)
    beta, move = rng.normal(size=(2, 40, 1))
    lengths = (1.0, 0.5, 0.1)
    found = rows().evaluate(
        ObjectiveQuery(
            CORE, ODM, np.array([-1, 1]), beta, move=move, lengths=lengths, gradient="cells",
            table=True, truth=LOSSES["hinge"],
        )
    )  # fmt: skip
    squares = ((X[:, np.newaxis] - CORE.points) ** 2).sum(axis=2)
    cells, values = squares.argmin(axis=1), CORE.kernel(squares)
    for i, t in enumerate(lengths):
        there = (beta - (1 - t) * move)[:, 0]
        assert found.losses[i, 0] == pytest.approx(U @ ODM.value(Y * (values @ there)))
    z = Y * (values @ beta[:, 0])
    a = U * Y * ODM.slope(z)
    assert np.allclose(found.gradient[:, 0], np.bincount(cells, a, 40))
    assert found.truth[0] == pytest.approx(U @ LOSSES["hinge"].value(z))
    assert found.slopes[0] == pytest.approx(U @ ODM.slope(z))
    for k, label in enumerate((-1, 1)):
        assert np.allclose(found.table[:, k], np.bincount(cells, U * (label == Y), 40))
    assert found.farthest == pytest.approx(squares.min(axis=1).max())


@pytest.mark.statistical
def test_ask__hessian_of_a_share_is_unbiased() -> None:
    """Mean of 200 estimates within 6 standard errors: false-alarm rate below 1e-8."""
    beta = np.zeros((40, 1))
    full = (
        rows()
        .evaluate(ObjectiveQuery(CORE, ODM, np.array([-1, 1]), beta, hessian=ALL_ROWS))
        .hessian
    )
    data, traces = rows(), []
    for seed in range(200):
        asked = ObjectiveQuery(
            CORE, ODM, np.array([-1, 1]), beta, hessian=np.array([0.3]), seed=seed
        )
        found = data.evaluate(asked).hessian
        traces.append(np.trace(found[0]))
    error = np.std(traces) / np.sqrt(len(traces))
    assert abs(np.mean(traces) - np.trace(full[0])) < 6 * error


def test_ask__every_problem_has_a_share_of_its_own() -> None:
    labels = np.digitize(X[:, 0], [0.3, 0.7])
    blocks = row_blocks(X, labels, U, chunks=100)
    found = summarise_classes(blocks)
    data = TrainingRows(blocks, found.classes, found.weight, found.n_rows)
    beta, shares = np.zeros((40, 3)), np.array([1.0, 0.5, 0.1])
    told = data.evaluate(ObjectiveQuery(CORE, ODM, found.classes, beta, hessian=shares))
    whole = data.evaluate(ObjectiveQuery(CORE, ODM, found.classes, beta, hessian=np.ones(3)))
    assert told.bent[0] == whole.bent[0] == len(X)
    assert np.array_equal(told.hessian[0], whole.hessian[0])
    # 6 standard deviations of a binomial number.
    assert abs(told.bent[1] - 150) < 6 * np.sqrt(75)
    assert abs(told.bent[2] - 30) < 6 * np.sqrt(27)


def test_answer__sparse_rows_and_empty_blocks() -> None:
    asked = ObjectiveQuery(
        CORE, ODM, np.array([-1, 1]), np.ones((40, 1)), gradient="cells", hessian=ALL_ROWS
    )
    dense = evaluate_block(Block(X, U, Y), 0, asked)
    sparse = evaluate_block(Block(sp.csr_array(X), U, Y), 0, asked)
    assert np.allclose(dense.gradient, sparse.gradient)
    empty = evaluate_block(Block(X[:0], U[:0], Y[:0]), 0, asked).merged(dense)
    assert np.array_equal(empty.gradient, dense.gradient)


def test_answer__labels_beyond_the_last_class_count_for_it() -> None:
    asked = ObjectiveQuery(CORE, ODM, np.array([-1, 1]), np.zeros((40, 1)), table=True)
    tables = [
        evaluate_block(Block(X, U, np.where(Y == 1, last, Y)), 0, asked).table for last in (1, 7)
    ]
    np.testing.assert_array_equal(tables[1], tables[0])
    assert tables[0].sum(axis=0).tolist() == pytest.approx([U[Y < 0].sum(), U[Y > 0].sum()])


def test_outline__range_of_sparse_columns() -> None:
    wide = X[:50] @ [[1.0, 0.0, -1.0], [0.0, 2.0, 1.0]]
    for found, dense in zip(_range(sp.csr_array(wide)), _range(wide), strict=True):
        np.testing.assert_array_equal(found, dense)
    np.testing.assert_array_equal(_range(wide), [wide.min(axis=0), wide.max(axis=0)])


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
def test_solve_dual__gap_holds_from_the_first_sweep(loss: MarginLoss) -> None:
    n, lam = 60, 50.0
    gram, signs = KernelMap(Isotropic("rbf", 5.0), X[:n]).gram(), Y[:n, np.newaxis].astype(float)
    least = solve_dual(gram, signs, U[:n], loss, lam, tol=1e-8)
    for sweeps in (1, 2, 4):
        found = solve_dual(gram, signs, U[:n], loss, lam, tol=1e-8, max_iter=sweeps)
        assert found.gaps is not None
        above = found.objectives[0] - least.objectives[0]
        assert 0.0 <= above + 1e-9 <= found.gaps[0] + 2e-9


def test_solve_exact__no_pilots_where_it_begins_with_coefficients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def pilots(*_: Any, **__: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(newton.Newton, "pilots", pilots)
    beta = np.full((40, 1), 1e-3)
    found = solve_exact(KernelProblem(rows(), CORE, ODM, 10.0), beta=beta, tol=1e-2)
    assert found.objectives[0] < 10.0


def test_one_thread__is_a_setting_of_the_outermost_body() -> None:
    def of_blas() -> list[int]:
        pools = threads._controller().info()
        return [pool["num_threads"] for pool in pools if pool["user_api"] == "blas"]

    before = of_blas()
    with one_thread():
        assert set(of_blas()) <= {1}
        with one_thread():
            assert threads._inside == 2
        assert set(of_blas()) <= {1}
    assert threads._inside == 0
    assert of_blas() == before


def test_split_evenly__up_to_the_limits() -> None:
    assert split_evenly(1, np.array([5, 5, 5])).tolist() == [1, 0, 0]
    assert split_evenly(7, np.array([0, 2, 9])).tolist() == [0, 2, 5]
    assert split_evenly(99, np.array([0, 2, 9])).tolist() == [0, 2, 9]


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
def test_averaged_steps__same_in_plain_numpy(
    loss: MarginLoss, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = solve_avm(KernelProblem(rows(), CORE, loss, 10.0), n_steps=80, seed=5).beta
    use_plain_loops(monkeypatch)
    again = solve_avm(KernelProblem(rows(), CORE, loss, 10.0), n_steps=80, seed=5).beta
    assert np.abs(found).max() > 0.01
    np.testing.assert_allclose(again, found, atol=1e-10)


def test_signs_of__one_against_the_rest() -> None:
    found = signs_of(np.array([3, 1, 2]), np.array([1, 2, 3]))
    assert found.tolist() == [[-1, -1, 1], [1, -1, -1], [-1, 1, -1]]


@pytest.mark.parametrize("beside", [1, 10, 200, 10_000])
def test_gram_sum__of_rows_that_come_in_pieces(
    beside: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "_WAITING", 2**16)
    values = np.random.default_rng(0).normal(size=(300, 70))
    total = products.GramSum(70, beside)
    # 936, 93 or no rows wait.
    assert total._rows.nbytes <= 8 * 2**16 / beside
    for start, stop in ((0, 0), (0, 5), (5, 200), (200, 300)):
        total.add(values[start:stop])
    assert np.allclose(total.total(), values.T @ values)


# --- the exact solver ----------------------------------------------------------------------


@pytest.mark.parametrize("lam", [0.3, 30.0, 3000.0])
@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: str(loss.name))
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


@pytest.mark.parametrize("tol", [1e-2, 1e-4])
@pytest.mark.parametrize("lam", [0.3, 30.0, 3000.0])
@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: str(loss.name))
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


def test_solve_exact__stops_at_max_iter_and_keeps_the_best() -> None:
    found = solve_exact(
        KernelProblem(rows(), CORE, LOSSES["hinge"], 500.0),
        beta=np.zeros((40, 1)),
        tol=1e-9,
        max_iter=7,
    )
    assert not found.converged
    assert found.n_iter == 7
    assert found.objectives[0] == pytest.approx(
        objective(found.beta[:, 0], CORE, LOSSES["hinge"], 500.0)
    )


def test_span__equal_core_points_and_false_kernels() -> None:
    twice = KernelMap(Isotropic("rbf"), np.repeat(X[:5], 2, axis=0))
    assert Span.of(twice).into.shape == (10, 5)

    def cosine(squares: FloatArray) -> FloatArray:
        return np.asarray(np.cos(3 * squares))

    with pytest.raises(InvalidInputError, match="not positive semi-definite"):
        Span.of(KernelMap(Isotropic("callable", profile=cosine), X[:30]))


def test_span__what_is_rounding_is_a_part_of_the_largest_eigenvalue() -> None:
    class Told(KernelMap):
        def gram(self) -> FloatArray:
            return np.diag(self.points[:, 0])

    Span.of(Told(Isotropic("rbf"), np.array([[100.0], [-5e-7]])))
    with pytest.raises(InvalidInputError, match="not positive semi-definite"):
        Span.of(Told(Isotropic("rbf"), np.array([[100.0], [-2e-6]])))


def newton_of_two(
    loss: MarginLoss, tol: float = 1e-4
) -> tuple[newton_steps.Newton, newton_steps.Iterate]:
    """One problem with two coordinates, and factor one."""
    data, span = rows(), Span(np.eye(2), np.eye(2))
    of_rows = KernelProblem(data, CORE, loss, data.weight)
    found = newton_steps.Newton(of_rows, span, tol, max_hessian_rows=10, seed=0)
    return found, found.start(np.array([[1.0], [2.0]]), np.ones(1))[0]


def test_newton__lower_bound_is_that_of_the_best_part_of_the_slopes() -> None:
    for slopes in (-3.0, -0.2):
        newton_, place = newton_of_two(LOSSES["hinge"], 1e-9)
        gradient = np.array([-2.0, 1.0])  # of the losses alone
        terms = ObjectiveTerms(
            losses=np.array([[9.5]]), truth=np.array([7.0]), slopes=np.array([slopes]),
            gradient=gradient[:, np.newaxis], hessian=np.eye(2)[np.newaxis], bent=np.array([1]),
            table=np.empty((2, 0)),
        )  # fmt: skip
        newton_._renew(place, 9.5, terms, 0)
        parts = np.linspace(0.0, 1.0, 10_001)
        bounds = -parts * slopes - 0.5 * parts**2 * float(gradient @ gradient)
        assert place.floor == pytest.approx(bounds.max(), rel=1e-6)


def test_newton__a_decrease_of_just_the_rounding_ends_a_problem() -> None:
    for slope, going_on in ((-newton_steps._ROUNDING, False), (-1e-3, True)):
        newton_, place = newton_of_two(ODM)
        place.before, place.slope = 1.0, slope
        newton_._shorten(place, np.array([1.5, 1.2]), (1.0, 0.5))
        assert place.unsolved is going_on


# --- CSVRG ---------------------------------------------------------------------------------


def test_solve_csvrg__converges_linearly() -> None:
    """Theorem 8: with 100 L steps of 0.05 / L every epoch at least halves what is left."""
    core = KernelMap(Isotropic("rbf", 5.0), X)
    data = rows()
    solve_csvrg(
        KernelProblem(data, core, ODM, 4.0), beta=np.zeros((len(X), 1)), n_epochs=12, tol=0.0
    )
    norms = [entry["gradient"] for entry in data.trace]
    assert data.reads == len(norms) + 1  # the last one is for the certificate
    for epoch in range(9):
        assert norms[epoch + 1] < 0.5 * norms[epoch]


@pytest.mark.parametrize("option", ["I", "II"])
@pytest.mark.parametrize("loss", ALL, ids=lambda loss: str(loss.name))
def test_solve_csvrg__near_the_exact_solution(loss: MarginLoss, option: Any) -> None:
    core = KernelMap(Isotropic("rbf", 2.0), X[:150])
    start = np.zeros((150, 1))
    exact = solve_exact(KernelProblem(rows(), core, loss, 20.0), beta=start)
    found = solve_csvrg(
        KernelProblem(rows(), core, loss, 20.0), beta=start, n_epochs=25, option=option, tol=1e-6
    )
    assert found.objectives[0] <= 1.02 * exact.objectives[0]
    assert found.objectives[0] == pytest.approx(objective(found.beta[:, 0], core, loss, 20.0))


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: str(loss.name))
@pytest.mark.parametrize("lam", [4.0, 400.0])
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


def test_solve_csvrg__few_steps_change_little_and_have_not_converged() -> None:
    start = np.zeros((40, 1))
    found = solve_csvrg(
        KernelProblem(rows(), CORE, ODM, 400.0), beta=start, n_inner=1, eta=1e-9, tol=1e-4
    )
    exact = solve_exact(KernelProblem(rows(), CORE, ODM, 400.0), beta=start)
    assert found.n_iter == 1  # an epoch that changes nothing ends it
    assert found.objectives[0] > 1.19 * exact.objectives[0]
    assert found.converged is False
    everything = KernelMap(Isotropic("rbf", 5.0), X)
    exactly = solve_csvrg(
        KernelProblem(rows(), everything, ODM, 4.0), beta=np.zeros((len(X), 1)), tol=1e-6
    )
    assert exactly.converged is True


def test_solve_csvrg__rows_by_quotas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskcoreset.estimators.kernel.sgd.SAMPLE_NUMBERS", 40 * 100)
    exact = solve_exact(KernelProblem(rows(), CORE, ODM, 20.0), beta=np.zeros((40, 1)))
    for steps in (80, 3000):
        data = rows()
        found = solve_csvrg(
            KernelProblem(data, CORE, ODM, 20.0),
            beta=np.zeros((40, 1)),
            n_epochs=40,
            n_inner=steps,
            tol=1e-9,
        )
        assert found.objectives[0] <= 1.1 * exact.objectives[0]
        # Rows come in the read of the gradient, and the certificate takes one of its own.
        assert data.reads == len(data.trace) + 1


def test_solve_csvrg__iterates_stay_in_the_safe_ball() -> None:
    data = rows()
    found = solve_csvrg(
        KernelProblem(data, CORE, ODM, 20.0),
        beta=np.zeros((40, 1)),
        n_epochs=3,
        eta=0.9,
        n_inner=50,
        tol=0.0,
    )
    norm = np.sqrt(found.beta[:, 0] @ CORE.gram() @ found.beta[:, 0])
    assert norm <= ODM.safe_radius(20.0) * (1 + 1e-9)


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
            ).beta
            for loss in ALL
        ]
        parts += [
            solve_avm(KernelProblem(rows(), CORE, loss, 20.0), n_steps=500).beta for loss in ALL
        ]
        gram = KernelMap(Isotropic("rbf", 5.0), X[:50]).gram()
        dual = solve_dual(gram, Y[:50, np.newaxis].astype(float), U[:50], ODM, 50.0)
        answers.append([*parts, dual.beta])
    for first, second in zip(*answers, strict=True):
        assert np.allclose(first, second, rtol=1e-8, atol=1e-10)


# --- AVM and drawn points ------------------------------------------------------------------


def test_solve_avm__comes_near_and_counts_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = solve_exact(KernelProblem(rows(), CORE, LOSSES["hinge"], 10.0), beta=np.zeros((40, 1)))
    found = solve_avm(KernelProblem(rows(), CORE, LOSSES["hinge"], 10.0), n_steps=20_000)
    assert exact.objectives[0] <= found.objectives[0] <= 1.1 * exact.objectives[0]
    monkeypatch.setattr("daskcoreset.estimators.kernel.sgd.SAMPLE_NUMBERS", 40 * 100)
    data = rows()
    found = solve_avm(KernelProblem(data, CORE, LOSSES["hinge"], 10.0), n_steps=1000)
    assert data.reads == 11
    assert found.objectives[0] <= 1.3 * exact.objectives[0]


def drawn_points(blocks: Any, count: int, seed: int = 0) -> AnyArray:
    return sample_core_points(
        sample_classes(blocks, np.array([0, 1]), points=count, seed=seed), count
    )


@pytest.mark.statistical
def test_points_of__in_proportion_to_weights_within_classes() -> None:
    """Frequency of the heavier of two rows against 3/4: 6 standard errors, rate below 1e-8."""
    rows_ = np.array([[0.0], [1.0], [2.0], [3.0]])
    blocks = row_blocks(rows_, [0, 0, 1, 1], [1.0, 3.0, 1.0, 0.0], chunks=2)
    hits = 0
    for seed in range(500):
        found = drawn_points(blocks, 2, seed)
        assert len(found) == 2
        assert found[1, 0] == 2.0  # the other row of the class weighs nothing
        hits += int(found[0, 0] == 1.0)
    assert abs(hits / 500 - 0.75) < 6 * np.sqrt(0.75 * 0.25 / 500)


def test_points_of__distinct_rows_and_small_classes() -> None:
    points = np.repeat(np.arange(20.0), 5)[:, np.newaxis]
    labels = (points[:, 0] == 7).astype(int)
    for chunks in (100, 13):
        found = drawn_points(row_blocks(points, labels, chunks=chunks), 10)
        assert len(np.unique(found)) == len(found)
        assert 7.0 in found
    everything = drawn_points(row_blocks(points, labels), 100)
    assert sorted(everything[:, 0]) == list(range(20))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("chunks", [300, 7])
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


# --- what one read tells first -------------------------------------------------------------


def test_outline__numbers_of_all_blocks() -> None:
    found = summarise_classes(row_blocks(X, Y, U, chunks=70))
    assert found.classes.tolist() == [-1, 1]
    assert np.allclose(found.class_weights, [U[Y == -1].sum(), U[Y == 1].sum()])
    assert sum(found.weights.values()) == pytest.approx(found.weight) == pytest.approx(U.sum())
    assert np.array_equal(found.low, X.min(axis=0))
    assert np.array_equal(found.high, X.max(axis=0))
    plain = summarise_classes(row_blocks(X, Y, chunks=70))
    assert plain.variance == pytest.approx(X.var())
    assert plain.total_variance == pytest.approx(X.var(axis=0).sum())
    sparse = summarise_classes(row_blocks(sp.csr_array(X), Y))
    assert np.array_equal(sparse.high, X.max(axis=0))


@pytest.mark.parametrize("shape", [(10_000, 3), (4_097, 1), (50, 5_000), (1, 2)])
def test_outline__ranges_of_narrow_and_wide_rows(shape: tuple[int, int]) -> None:
    points = np.random.default_rng(0).normal(size=shape)
    found = summarise_classes(row_blocks(points, np.zeros(len(points))))
    assert np.array_equal(found.low, points.min(axis=0))
    assert np.array_equal(found.high, points.max(axis=0))


def test_outline__zero_weights_and_text() -> None:
    labels = da.from_array(np.array(["b", "a", "c", "a"], dtype=object), chunks=2)
    blocks = row_blocks(da.from_array(X[:4], chunks=(2, 2)), labels, np.array([1.0, 1, 0, 2]))
    found = summarise_classes(blocks)
    assert found.classes.tolist() == ["a", "b"]
    assert found.class_weights.tolist() == [3.0, 1.0]


@pytest.mark.parametrize(
    ("labels", "weights", "message"),
    [
        (None, None, "y is missing"),
        (np.where(np.arange(300) == 250, np.nan, 1.0), None, "y is nan at row 250"),
        (Y, np.zeros(300), "sample_weight is zero for every row"),
    ],
)
def test_outline__bad_labels(labels: Any, weights: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        summarise_classes(row_blocks(X, labels, weights, chunks=100))


def test_outline__numbers_of_a_regression() -> None:
    many = np.arange(12_000.0)
    for chunks in (12_000, 6000):
        with pytest.raises(InvalidInputError, match="classes or more"):
            summarise_classes(row_blocks(many[:, np.newaxis], many, chunks=chunks))


def test_rows__draw_includes_the_past() -> None:
    data = rows(n=100)
    past = Block(X[:2], np.array([5.0, 7.0]), np.array([-1, 1])).all_rows()
    data.past = past
    data.block_weights = {**data.block_weights, PAST: 12.0}
    assert len(data.draw(0, 0, None)) == 102
    assert len(data.draw(0, 0, 50)) == 50


def test_newton__solves_where_rounding_spoils_the_hessian() -> None:
    # Eigenvalues of one at least, but for an error of rounding that made one of them negative.
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    gradient = np.arange(4.0)
    for values in ([1.0, 2.0, 1e9, 1e12], [-3.0, 2.0, 1e9, 1e12]):
        expected = basis @ ((basis.T @ gradient) / np.maximum(values, 1.0))
        found = newton_steps._solved(basis @ np.diag(values) @ basis.T, gradient)
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_solve_avm__averages_the_second_half_of_the_iterates() -> None:
    """A plain reading of the steps, in the span of all core points, with its own projection."""
    loss, lam, n_steps = LOSSES["hinge"], 10.0, 301
    data = rows()
    found = solve_avm(KernelProblem(data, CORE, loss, lam), n_steps=n_steps, seed=5)
    rng = stream(5, Stage.DESCENT, ROOT, _ORDER)
    order = draw_with_replacement(U, n_steps, rng)
    gram, values = CORE.gram(), CORE.kernel(((X[:, None] - CORE.points) ** 2).sum(axis=2))
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
