"""Problems on core points, and their plain objective."""

from __future__ import annotations

import numpy as np

from daskcoreset.constructions.class_summary import summarise_classes
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.estimators.kernel.kernels import KernelMap
from daskcoreset.estimators.kernel.objective import KernelProblem
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.solvers.losses import LOSSES, MarginLoss, resolve_loss

ALL_LOSSES = [
    LOSSES["hinge"],
    LOSSES["squared_hinge"],
    resolve_loss("odm", theta=0.3, mu=0.7),
    resolve_loss("odm", theta=0.0, mu=1.0),
]


def name_of(loss: MarginLoss) -> str:
    return f"{loss.name}-{loss.theta}"


def problem(n: int = 300, seed: int = 0) -> tuple[AnyArray, AnyArray, AnyArray]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    noise = rng.normal(scale=0.15, size=n)
    y = np.where((X[:, 0] - 0.5) ** 2 + (X[:, 1] - 0.5) ** 2 + 0.1 * noise > 0.1, 1, -1)
    return X, y, rng.uniform(0.2, 2.0, n)


X, Y, U = problem()


def problem_of(core: KernelMap, loss: MarginLoss, lam: float) -> KernelProblem:
    """The rows X in three blocks."""
    blocks = row_blocks(X, Y, U, chunks=100)
    found = summarise_classes(blocks)
    return KernelProblem(blocks, found.classes, found.n_rows, found.weights, core, loss, lam)


def kernel_values(core: KernelMap, points: AnyArray) -> FloatArray:
    """Kernel between rows and core points, from plain distances."""
    squares = ((points[:, np.newaxis] - core.points) ** 2).sum(axis=2)
    return np.asarray(np.exp(-core.gamma * squares))


def objective(beta: FloatArray, core: KernelMap, loss: MarginLoss, lam: float) -> float:
    """Plain NumPy reading of f, restricted to the span, with weights U."""
    values, gram = kernel_values(core, X), kernel_values(core, core.points)
    return float(0.5 * beta @ gram @ beta + lam / U.sum() * (U @ loss.value(Y * (values @ beta))))
