"""Training of coefficients of given core points, block by block."""

from __future__ import annotations

import sys
import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from daskcoreset.constructions.class_summary import ClassSummary
from daskcoreset.constructions.coverage.cover import cover
from daskcoreset.constructions.coverage.metric import Cells
from daskcoreset.core.blocks import Block
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.estimators.classifier import DecisionModel
from daskcoreset.estimators.kernel.kernels import Isotropic, KernelMap, Solution
from daskcoreset.estimators.kernel.losses import MarginLoss, resolve_loss
from daskcoreset.estimators.kernel.model import KernelDecision, resolve_lambda
from daskcoreset.estimators.kernel.objective import n_problems
from daskcoreset.estimators.kernel.rows import PAST, TrainingRows
from daskcoreset.estimators.kernel.svrg import approximation_bound
from daskcoreset.estimators.kernel.training_rows import quotas_of, sample_classes, training_rows
from daskcoreset.execution.progress import count_reads
from daskcoreset.inputs.blocks import row_blocks

if TYPE_CHECKING:
    from daskcoreset.inputs.blocks import RowBlocks


@dataclass(frozen=True, eq=False)
class CorePoints:
    """Core points, and the rows of the past that they stand for.

    Attributes
    ----------
    points : ndarray of shape (r, d)
    diameter : float
        What is promised of rows that were seen already.
    measured : bool
        Whether the rows at hand are to say how far they are from the core points.
    table : ndarray of shape (r, n_classes), float64, or None
        Weight of every class that stands at a core point.
    drawn : Block or None
        Rows to train on that were drawn in the same read.
    """

    points: AnyArray
    diameter: float = 0.0
    measured: bool = True
    table: FloatArray | None = None
    drawn: Block | None = None


def thinned(
    points: AnyArray, table: FloatArray, start: FloatArray, max_points: int, cells: Cells
) -> tuple[CorePoints, float, FloatArray]:
    """Cover core points by fewer of them, with larger cells.

    Parameters
    ----------
    points : ndarray of shape (r, d)
    table : ndarray of shape (r, n_classes), float64
        Weight of every class that stands at a core point.
    start : ndarray of shape (r, K), float64
        Coefficients.
    max_points : int
    cells : {"euclidean", "chebyshev"}

    Returns
    -------
    core : CorePoints
        With what stood at the core points that are gone at the nearest that is left.
    diameter : float
        Of the cells.
    start : ndarray of shape (r', K), float64
    """
    coverage = cover(row_blocks(points), max_points=max_points, cells=cells)
    nearest = coverage.nearest(points)[0]
    moved = np.zeros((len(coverage.points), table.shape[1]))
    np.add.at(moved, nearest, table)
    carried = np.zeros((len(coverage.points), start.shape[1]))
    np.add.at(carried, nearest, start)
    return CorePoints(coverage.points, table=moved), coverage.diameter, carried


def past_rows(points: FloatArray, table: FloatArray, labels: AnyArray) -> Block:
    """Rows that stand for those of the past: core points, with the weight of every class."""
    which, codes = np.nonzero(table)
    return Block(points[which], table[which, codes], np.asarray(labels)[codes]).all_rows()


def nearest_gaps(points: AnyArray, old: AnyArray, cells: str) -> FloatArray:
    """Distance of every point from the nearest of the old ones, in the metric of the cells."""
    from scipy.spatial import cKDTree

    p = np.inf if cells == "chebyshev" else 2
    gaps, _ = cKDTree(np.asarray(old, dtype=np.float64)).query(
        np.asarray(points, dtype=np.float64), p=p
    )
    return np.asarray(gaps, dtype=np.float64)


class TrainedModel(DecisionModel):
    """Trains coefficients of core points; subclasses say which points, and which solver.

    Attributes
    ----------
    core_points_ : ndarray of shape (n_core_points_, d)
    dual_coef_ : ndarray of shape (n_problems, n_core_points_), float64
    """

    objective_: Any
    _kernel: Isotropic

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
        self, rows: TrainingRows, core: KernelMap, loss: MarginLoss, *, start: Any, seed: int
    ) -> Solution:
        """Find coefficients."""

    @abstractmethod
    def _steps(self) -> int:
        """Return the reads of `_solve`, at most, for the bar of progress."""

    def _quotas(self, summary: ClassSummary, n_points: int) -> dict[Any, int] | None:
        """Rows of every class to train on; None for all rows."""
        size = self._size(n_points)
        if size is None or size >= summary.n_rows:
            return None
        return quotas_of(size, summary.classes, summary.class_weights)

    def _size(self, _n_points: int) -> int | None:
        """Rows to train on, for so many core points; None for all of them."""
        return None

    def _train(
        self,
        blocks: RowBlocks,
        classes: AnyArray,
        summary: ClassSummary,
        core_points: CorePoints,
        *,
        start: FloatArray | None,
        seed: int,
    ) -> None:
        """Run the solver, and set what it found."""
        points = np.asarray(core_points.points, dtype=np.float64)
        core = KernelMap(self._kernel, points)
        past = None if core_points.table is None else past_rows(points, core_points.table, classes)
        weights, n_rows, drawn = dict(summary.weights), summary.n_rows, core_points.drawn
        if drawn is None and (quotas := self._quotas(summary, len(points))) is not None:
            strata = sample_classes(blocks, summary.classes, quotas=quotas, seed=seed)
            drawn = training_rows(strata, quotas)
        if drawn is not None:
            n_rows, weights = len(drawn), {0: summary.weight}
            blocks = row_blocks(drawn.points, drawn.labels, drawn.weights, chunks=n_rows)
        if past is not None:
            n_rows, weights[PAST] = n_rows + len(past), float(past.weights.sum())
        total = sum(weights.values())
        self.lam_ = resolve_lambda(self.lam, self.C, total)
        loss = resolve_loss(self.loss, theta=self.theta, mu=self.mu)
        if start is None:
            start = np.zeros((len(points), n_problems(len(classes))))
        with count_reads(self.progress, self._steps(), unit="read") as advance:
            report = self._reporter(advance)
            rows = TrainingRows(blocks, classes, total, n_rows, weights, past, report)
            solution = self._solve(rows, core, loss, start=start, seed=seed)
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
        self.core_points_ = core_points.points
        measured = 2.0 * solution.radius if core_points.measured else 0.0
        self.diameter_ = max(core_points.diameter, measured)
        if past is None:
            self._cell = self.diameter_
        self.dual_coef_ = np.ascontiguousarray(solution.beta.T)
        self.objective_ = solution.objectives
        if len(solution.objectives) == 1:
            self.objective_ = float(solution.objectives[0])
        self.n_iter_, self.trace_ = solution.n_iter, rows.trace
        self.converged_, self.gap_ = solution.converged, solution.gaps
        self.approximation_bound_ = approximation_bound(
            self._kernel, self.diameter_, loss, self.lam_
        )
        # What partial_fit keeps of these rows; those of the past stood at core points already.
        self._table = solution.table
        self._decision = KernelDecision(core, solution.beta, self.classes_)

    def _reporter(self, advance: Callable[[int], None]) -> Callable[[dict[str, Any]], None]:
        name = type(self).__name__

        def report(entry: dict[str, Any]) -> None:
            advance(1)
            if self.verbose:
                facts = ", ".join(f"{key} {value:.6g}" for key, value in entry.items())
                sys.stdout.write(f"[{name}] {facts}\n")

        return report
