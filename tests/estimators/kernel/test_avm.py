"""Averaged steps on core points, and how near they come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from daskcoreset.core.random import Stage, stream
from daskcoreset.core.sampling import draw_with_replacement
from daskcoreset.estimators.kernel.kernels import Isotropic, KernelMap
from daskcoreset.estimators.kernel.losses import LOSSES
from daskcoreset.estimators.kernel.newton import solve_exact
from daskcoreset.estimators.kernel.rows import ROOT, KernelProblem
from daskcoreset.estimators.kernel.sgd import _ORDER, solve_avm
from tests.tools.kernel_problems import U, X, Y, rows

if TYPE_CHECKING:
    import pytest

CORE = KernelMap(Isotropic("rbf", 5.0), X[:40])


def test_solve_avm__comes_near_and_counts_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = solve_exact(KernelProblem(rows(), CORE, LOSSES["hinge"], 10.0), beta=np.zeros((40, 1)))
    found = solve_avm(KernelProblem(rows(), CORE, LOSSES["hinge"], 10.0), n_steps=20_000)
    assert exact.objectives[0] <= found.objectives[0] <= 1.1 * exact.objectives[0]
    monkeypatch.setattr("daskcoreset.estimators.kernel.sgd.SAMPLE_NUMBERS", 40 * 100)
    data = rows()
    found = solve_avm(KernelProblem(data, CORE, LOSSES["hinge"], 10.0), n_steps=1000)
    assert data.reads == 11
    assert found.objectives[0] <= 1.3 * exact.objectives[0]


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
