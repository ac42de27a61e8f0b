"""The dual of optimal-distribution machines, and data refused."""

from __future__ import annotations

import numpy as np
import pytest

from daskcoreset.estimators.kernel.kernels import Isotropic, KernelMap
from daskcoreset.estimators.kernel.losses import LOSSES, MarginLoss, resolve_loss
from daskcoreset.estimators.kernel.odm import solve_dual
from tests.tools.kernel_problems import U, X, Y

# The certificate of "csvrg" is rarely below its tolerance, and fits say so.
pytestmark = pytest.mark.filterwarnings(
    "ignore:CSVRGClassifier stopped after:sklearn.exceptions.ConvergenceWarning"
)


ODM = resolve_loss("odm", theta=0.3, mu=0.5)
SMOOTH = [LOSSES["squared_hinge"], ODM]
ALL = [*SMOOTH, LOSSES["hinge"]]


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
