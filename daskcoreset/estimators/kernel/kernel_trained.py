"""Training of coefficients of given core points, block by block."""

from __future__ import annotations

import sys
import warnings
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from daskcoreset.estimators.kernel.svrg import approximation_bound
from daskcoreset.estimators.kernel.training_rows import draw_strata, quotas_of, training_rows
from daskcoreset.estimators.kernel.isotropic import Isotropic, KernelMap
from daskcoreset.estimators.kernel.losses import MarginLoss, resolve_loss
from daskcoreset.estimators.kernel.objective import n_problems
from daskcoreset.constructions.class_summary import Outline
from daskcoreset.estimators.kernel.rows import PAST, Rows
from daskcoreset.estimators.kernel.span import Solution
from daskcoreset.estimators.kernel.model import Expansion, resolve_lambda
from daskcoreset.estimators.kernel.kernel_points import CorePoints, past_rows
from daskcoreset.estimators.machine_model import MachineModel
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.execution.progress import counting
from daskcoreset.core.typing import AnyArray, FloatArray

if TYPE_CHECKING:
    from daskcoreset.inputs.blocks import RowBlocks

__all__ = ["TrainedModel"]


class TrainedModel(MachineModel):
    """Trains coefficients of core points; subclasses say which points, and which solver.

    Attributes
    ----------
    core_points_ : ndarray of shape (n_core_points_, d)
    dual_coef_ : ndarray of shape (n_problems, n_core_points_), float64
    """

    core_points_: AnyArray
    dual_coef_: FloatArray
    diameter_: float
    lam_: float
    objective_: Any
    converged_: bool | None
    n_iter_: int
    trace_: list[dict[str, Any]]
    _kernel: Isotropic
    _table: FloatArray
    _cell: float

    loss: Any
    lam: Any
    C: Any
    mu: Any
    theta: Any
    verbose: Any
    progress: Any

    @property
    def n_core_points_(self) -> int:
        """Number of core points, the size of the model."""
        return len(self.core_points_)

    @abstractmethod
    def _solve(
        self, rows: Rows, core: KernelMap, loss: MarginLoss, lam: float, *, start: Any, seed: int
    ) -> Solution:
        """Find coefficients."""

    @abstractmethod
    def _steps(self) -> int:
        """Return the reads of `_solve`, at most, for the bar of progress."""

    def _quotas(self, found: Outline, n_points: int) -> dict[Any, int] | None:
        """Rows of every class to train on; None for all rows."""
        size = self._size(n_points)
        if size is None or size >= found.n_rows:
            return None
        return quotas_of(size, found.classes, found.class_weights)

    def _size(self, n_points: int) -> int | None:
        """Rows to train on; None for all of them."""
        del n_points
        return None

    def _train(
        self,
        blocks: RowBlocks,
        internal: AnyArray,
        found: Outline,
        given: CorePoints,
        *,
        start: FloatArray | None,
        seed: int,
    ) -> None:
        """Run the solver, and set what it found."""
        points = np.asarray(given.points, dtype=np.float64)
        core = KernelMap(self._kernel, points)
        past = None if given.table is None else past_rows(points, given.table, internal)
        weights, n_rows, drawn = dict(found.weights), found.n_rows, given.drawn
        if drawn is None and (quotas := self._quotas(found, len(points))) is not None:
            strata = draw_strata(blocks, found.classes, quotas=quotas, seed=seed)
            drawn = training_rows(strata, quotas)
        if drawn is not None:
            n_rows, weights = len(drawn), {0: found.weight}
            blocks = row_blocks(drawn.points, drawn.labels, drawn.weights, chunks=n_rows)
        if past is not None:
            n_rows, weights[PAST] = n_rows + len(past), float(past.weights.sum())
        total = sum(weights.values())
        lam = resolve_lambda(self.lam, self.C, total)
        loss = resolve_loss(self.loss, theta=self.theta, mu=self.mu)
        if start is None:
            start = np.zeros((len(points), n_problems(len(internal))))
        with counting(self.progress, self._steps(), unit="read") as advance:
            rows = Rows(
                blocks,
                internal,
                total,
                n_rows,
                weights,
                past,
                self._reporter(advance),
            )
            solution = self._solve(rows, core, loss, lam, start=start, seed=seed)
        if solution.converged is False:
            assert solution.gaps is not None  # noqa: S101 - it was asked for
            above = float((solution.gaps / solution.objectives).max())
            warnings.warn(
                f"{type(self).__name__} stopped after {solution.n_iter} iterations before tol was "
                f"reached: the objective may be up to {above:.2g} of itself above the least one. "
                f'Raise max_iter or tol, or take solver="exact".',
                ConvergenceWarning,
                stacklevel=4,
            )
        self.core_points_ = given.points
        measured = 2.0 * solution.radius if given.measured else 0.0
        self.diameter_ = max(given.diameter, measured)
        if past is None:
            self._cell = self.diameter_
        self.dual_coef_ = np.ascontiguousarray(solution.beta.T)
        self.objective_ = solution.objectives
        if len(solution.objectives) == 1:
            self.objective_ = float(solution.objectives[0])
        self.lam_, self.n_iter_, self.trace_ = lam, solution.n_iter, rows.trace
        self.converged_, self.gap_ = solution.converged, solution.gaps
        self.approximation_bound_ = approximation_bound(self._kernel, self.diameter_, loss, lam)
        # What partial_fit keeps of these rows; those of the past stood at core points already.
        self._table = solution.table
        self._machine = Expansion(core, solution.beta, self.classes_)

    def _reporter(self, advance: Callable[[int], None]) -> Callable[[dict[str, Any]], None]:
        name = type(self).__name__

        def report(entry: dict[str, Any]) -> None:
            advance(1)
            if self.verbose:
                facts = ", ".join(f"{key} {value:.6g}" for key, value in entry.items())
                sys.stdout.write(f"[{name}] {facts}\n")

        return report
