"""The cost of kernel machines, by which rows that stand for all are compared with all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from daskcoreset.core.blocks import Block, InvalidRow, find_bad_label, labels_of
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.linalg import one_thread, product
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.estimators.kernel.kernels import KernelMap
from daskcoreset.estimators.kernel.losses import MarginLoss
from daskcoreset.estimators.kernel.newton import solve_exact
from daskcoreset.estimators.kernel.objective import n_problems, signs_of, squared_norms
from daskcoreset.estimators.kernel.rows import KernelProblem, TrainingRows
from daskcoreset.objectives.base import Objective
from daskcoreset.objectives.cells import Cells, cells_by_class

# Tolerance of solutions that are made to be compared.
_TOL = 1e-3


@dataclass(frozen=True, eq=False)
class KernelCost(Objective[FloatArray]):
    r"""The objective of a kernel machine on given core points.

    .. math:: \sum_k \frac12 |w_k|^2 + \frac\lambda M \sum_i u_i\, l(z_{ik}),

    over the problems, one class against the rest each. Solutions are coefficients of the core
    points, of shape (r, n_problems).

    Parameters
    ----------
    core : KernelMap
    loss : MarginLoss
    factor : float
        :math:`\lambda / M`.
    classes : ndarray of shape (n_classes,)
    fitted_beta : ndarray of shape (r, n_problems), float64
        Of the model that is audited.
    """

    core: KernelMap
    loss: MarginLoss
    factor: float
    classes: AnyArray
    fitted_beta: FloatArray

    name: ClassVar[str] = "cost of a kernel machine"

    def find_invalid_row(self, block: Block) -> InvalidRow | None:
        """Return the first row without a label."""
        return find_bad_label(block)

    def cells(self, block: Block, n_parts: int, rng: np.random.Generator) -> Cells:
        """One cell for every class."""
        del n_parts, rng
        return cells_by_class(block)

    def constant(self, solution: FloatArray) -> float:
        """Return the penalty."""
        return 0.5 * float(squared_norms(self.core.gram(), solution).sum())

    @one_thread()
    def losses(self, block: Block, solution: FloatArray) -> FloatArray:
        """Losses of the rows, over all problems, times lambda / M."""
        out = np.empty(len(block))
        signs = signs_of(labels_of(block), self.classes)
        for part, values, _ in self.core.tiles(block.points):
            margins = signs[part] * product(values, solution)
            out[part] = self.loss.value(margins).sum(axis=1)
        return self.factor * out

    def solve(self, block: Block, rng: np.random.Generator) -> FloatArray:
        """Coefficients fitted to the rows."""
        del rng
        rows = TrainingRows.of_block(block, self.classes)
        problem = KernelProblem(rows, self.core, self.loss, self.factor * rows.weight)
        start = np.zeros_like(self.fitted_beta)
        return solve_exact(problem, beta=start, tol=_TOL).beta

    def seed(self, block: Block, rng: np.random.Generator) -> FloatArray:
        """Coefficients fitted to some of the rows, drawn by weight."""
        few = max(10, len(block) // 10)
        rows = rng.choice(len(block), few, p=block.weights / block.weights.sum())
        part = block.take(np.sort(rows))
        total = float(block.weights.sum())
        equal = np.full(few, total / few)
        return self.solve(Block(part.points, equal, part.labels), rng)

    def candidates(
        self, block: Block, rng: np.random.Generator
    ) -> Iterator[tuple[str, FloatArray]]:
        """Yield the model, none, three that are fitted to few rows, and three at random."""
        yield "the model", self.fitted_beta
        yield "no model", np.zeros_like(self.fitted_beta)
        for i in range(1, 4):
            yield f"fitted to few rows {i}", self.seed(block, rng)
        size = float(np.sqrt(self.constant(self.fitted_beta)))
        for i in range(1, 4):
            beta = rng.normal(size=self.fitted_beta.shape)
            norm = float(np.sqrt(self.constant(beta)))
            yield f"random coefficients {i}", beta * (size / norm)

    def read(self, solution: Any, n_features: int, name: str) -> FloatArray:
        """Return coefficients, or those of a model on the same core points."""
        del n_features
        found: Any = getattr(solution, "dual_coef_", None)
        points = self.core.points
        same = np.array_equal(getattr(solution, "core_points_", points), points)
        beta = np.asarray(solution if found is None else found.T, dtype=np.float64)
        expected = (len(self.core), n_problems(len(self.classes)))
        if beta.shape != expected or (found is not None and not same):
            raise InvalidInputError(
                f"{name} must be coefficients of the model's core points, of shape {expected}; "
                f"pass dual_coef_.T of a model that was fitted on the same ones, for example "
                f"with warm_start=True."
            )
        return beta
