"""The dual of optimal-distribution machines, and data refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from daskcoreset.core.errors import CoresetWarning
from daskcoreset.estimators import ODMClassifier
from daskcoreset.estimators.kernel.kernels import Isotropic, KernelMap
from daskcoreset.estimators.kernel.losses import LOSSES, MarginLoss, resolve_loss
from daskcoreset.estimators.kernel.odm import solve_dual
from tests.tools.kernel_problems import U, X, Y

# The certificate of "csvrg" is rarely below its tolerance, and fits say so.
pytestmark = pytest.mark.filterwarnings(
    "ignore:CSVRGClassifier stopped after:sklearn.exceptions.ConvergenceWarning"
)


@pytest.mark.parametrize("data", ["one far row", "far from zero", "uneven", "as it should be"])
def test_odm__warns_of_features_as_csvrg_does(data: str) -> None:
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = (X[:, 0] > X[:, 1]).astype(int)
    if data == "one far row":
        X[7] = 1e5
    elif data == "far from zero":
        X[:, 2] += 100.0
    elif data == "uneven":
        X[:, 1] *= 1e4
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CoresetWarning)
        ODMClassifier(random_state=0).fit(X, y)
    said = [str(one.message) for one in caught if issubclass(one.category, CoresetWarning)]
    assert any("hardly tells rows apart" in one for one in said) == (data in _ALIKE)
    assert any("features are not scaled" in one for one in said) == (data == "uneven")
    assert not any("be learned" in one for one in said)  # it cannot


def test_odm__warns_where_no_row_sees_another() -> None:
    X = np.random.default_rng(0).normal(size=(100, 3))
    with pytest.warns(CoresetWarning, match="no row sees another one"):
        ODMClassifier(gamma=100.0, random_state=0).fit(X, X[:, 0] > 0)


_ALIKE = ("one far row", "far from zero")

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
