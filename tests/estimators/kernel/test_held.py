"""Newton's method on rows whose kernel values are held."""

from __future__ import annotations

import numpy as np
import pytest

from daskcoreset.core.blocks import Block
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.estimators.kernel import held as held_rows
from daskcoreset.estimators.kernel.held import HeldRows
from daskcoreset.estimators.kernel.kernels import Isotropic, KernelMap
from daskcoreset.estimators.kernel.losses import LOSSES, MarginLoss
from daskcoreset.estimators.kernel.newton import solve_exact
from daskcoreset.estimators.kernel.rows import KernelProblem, TrainingRows
from tests.pairs import each
from tests.tools.kernel_problems import objective, problem

X, Y, U = problem()
ROWS, CLASSES = Block(X, U, Y), np.array([-1, 1])
CORE = KernelMap(Isotropic("rbf", 5.0), X[:40])
SMOOTH = [LOSSES["odm"], LOSSES["squared_hinge"]]


@each(levels=[False, True], loss=SMOOTH)
def test_solve__least_objective(
    loss: MarginLoss, levels: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if levels:  # one of a fourth of the rows before
        monkeypatch.setattr(held_rows, "_MIN_ROWS", 50)
        monkeypatch.setattr(held_rows, "_MIN_ROWS_OF_POINT", 1)
    factor = 500.0 / U.sum()
    found = HeldRows.of(CORE, ROWS, CLASSES, loss, factor).solve(0, np.zeros(40), 1e-8)
    rows = TrainingRows.of_block(ROWS, CLASSES)
    rows.whole = None  # nothing is held
    best = solve_exact(KernelProblem(rows, CORE, loss, 500.0), beta=np.zeros((40, 1)), tol=1e-9)
    assert objective(found.beta, CORE, loss, 500.0) == pytest.approx(best.objectives[0], rel=1e-4)
    np.testing.assert_allclose(found.margins, Y * (CORE.held(X) @ found.beta), atol=1e-3)
    # What the levels before have added is a part of the Hessian of all rows.
    values = CORE.held(X).astype(np.float64)
    hessian = CORE.gram() + (values.T * (factor * U * loss.curvature(found.margins))) @ values
    np.testing.assert_allclose(np.tril(found.sums.matrix), np.tril(hessian), rtol=1e-5, atol=1e-5)
    assert rows.reads > 1


def test_solve__equal_core_points_and_numbers_that_are_none() -> None:
    twice = KernelMap(Isotropic("rbf", 5.0), np.repeat(X[:20], 2, axis=0))
    loss, factor = LOSSES["squared_hinge"], 500.0 / U.sum()
    found = HeldRows.of(twice, ROWS, CLASSES, loss, factor).solve(0, np.zeros(40), 1e-8)
    once = KernelMap(twice.kernel, X[:20])
    best = HeldRows.of(once, ROWS, CLASSES, loss, factor).solve(0, np.zeros(20), 1e-8)
    least = objective(best.beta, once, loss, 500.0)
    assert objective(found.beta, twice, loss, 500.0) == pytest.approx(least, rel=1e-4)
    held = HeldRows.of(CORE, Block(X, np.full(300, np.inf), Y), CLASSES, loss, 1.0)
    with pytest.raises(InvalidInputError):
        held.solve(0, np.zeros(40), 1e-8)
