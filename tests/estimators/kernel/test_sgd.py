"""Stochastic gradients on core points: how near they come, and bounds of the paper."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskcoreset.estimators.kernel.kernels import Isotropic, KernelMap
from daskcoreset.estimators.kernel.losses import LOSSES, MarginLoss, resolve_loss
from daskcoreset.estimators.kernel.newton import solve_exact
from daskcoreset.estimators.kernel.rows import KernelProblem
from daskcoreset.estimators.kernel.sgd import (
    solve_csvrg,
)
from tests.pairs import each
from tests.tools.kernel_problems import X, rows

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
