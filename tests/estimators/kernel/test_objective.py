"""The objective over all rows against plain formulas and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from daskcoreset.core.typing import FloatArray
from daskcoreset.estimators.kernel.kernels import Isotropic, KernelMap
from daskcoreset.estimators.kernel.losses import LOSSES, MarginLoss, resolve_loss
from daskcoreset.estimators.kernel.objective import (
    ObjectiveQuery,
    whole_matrix,
)
from tests.tools.kernel_problems import U, X, Y, objective, rows

ODM = resolve_loss("odm", theta=0.3, mu=0.5)
SMOOTH = [LOSSES["squared_hinge"], ODM]
CORE = KernelMap(Isotropic("rbf", 5.0), X[:40])
ALL_ROWS = np.ones(1)


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
            assert way @ whole_matrix(found.hessian[0]) @ way > way @ bend
        else:
            assert np.allclose(whole_matrix(found.hessian[0]) @ way, bend, rtol=1e-4, atol=1e-3)
    values = CORE.kernel(((X[:, np.newaxis] - CORE.points) ** 2).sum(axis=2))
    weights = U * loss.curvature(Y * (values @ beta[:, 0]))
    assert np.allclose(whole_matrix(found.hessian[0]), values.T @ (weights[:, np.newaxis] * values))
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
        traces.append(np.trace(whole_matrix(found[0])))
    error = np.std(traces) / np.sqrt(len(traces))
    assert abs(np.mean(traces) - np.trace(whole_matrix(full[0]))) < 6 * error
