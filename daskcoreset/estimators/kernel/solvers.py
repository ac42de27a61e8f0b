r"""Solvers of kernel machines in the span of core points: Newton, CSVRG and AVM.

A model is :math:`w = \sum_j \beta_j \varphi(c_j)`. Newton's method works on rows in memory. The
other two take the gradient :math:`a_i \varphi(x_i)` of every row at its core point. Their compiled
loops take steps on rows that were drawn in a pass over all rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskcoreset.core.block import Block, labels_of
from daskcoreset.core.deadline import check_time
from daskcoreset.core.linalg import one_thread
from daskcoreset.core.messages import warn_user
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.sampling import draw_with_replacement
from daskcoreset.core.typing import FloatArray, IndexArray
from daskcoreset.estimators.kernel.kernels import KernelMap
from daskcoreset.estimators.kernel.objective import (
    ALL_ROWS,
    ROOT,
    KernelProblem,
    Solution,
    n_problems,
    signs_of,
    squared_norms,
)
from daskcoreset.solvers.newton import LossesOfMargins

# Seconds on one core: for a kernel value of a pass, for a coefficient of a gradient step, and for a
# product in a Hessian or its factor.
_VALUE_SECONDS, _STEP_SECONDS, _PRODUCT_SECONDS = 1e-8, 2e-9, 1e-10

# Seconds from which a warning predicts the time.
_LONG = 900.0


def _warn_slow(problem: KernelProblem, solver: str, seconds: float) -> None:
    """Warn if a solver may take long."""
    if seconds > _LONG:
        warn_user(
            f"solver={solver!r} can take {seconds / 3600:.1f} hours on one core, with "
            f"{len(problem.core):,} core points and {problem.n_rows:,} rows. Pass a smaller "
            "max_points, a larger diameter or a smaller size."
        )


# --- Newton's method, on rows in memory

# Steps of Newton's method that are usual.
_USUAL_STEPS = 6


def solve_newton(problem: KernelProblem, *, tol: float = 3e-5) -> Solution:
    """Minimise over the span of the core points by Newton's method.

    Parameters
    ----------
    problem : KernelProblem
        Not of the hinge. Its rows and their kernel values are held in memory.
    tol : float, default=3e-5
        Stop when a further step promises to lower the objective by less than half this part of it.

    Warns
    -----
    CoresetWarning
        If it can take more than a quarter of an hour, as the other solvers.

    References
    ----------
    Chapelle (2007), Training a support vector machine in the primal.
    """
    core, size = problem.core, len(problem.core)
    n_products = n_problems(len(problem.classes)) * size**2 * (problem.n_rows + _USUAL_STEPS * size)
    _warn_slow(problem, "newton", n_products * _PRODUCT_SECONDS)
    block = problem.draw(ALL_ROWS)
    values, _, farthest = core.matrix(block.points)
    problem.radius = float(np.sqrt(farthest))
    signs = signs_of(labels_of(block), problem.classes)
    weights = problem.factor * block.weights
    machine = LossesOfMargins(values, core.gram(), weights, problem.loss)
    found = [machine.minimised(column, tol) for column in signs.T]
    betas, objectives, steps = zip(*found, strict=True)
    problem.record(objective=float(sum(objectives)))
    return Solution(np.stack(betas, axis=1), np.array(objectives), max(steps))


# --- stochastic gradients at core points, out of core

# Inner steps of an epoch at most, about a second for 300 core points.
MAX_STEPS = 1_000_000

# Numbers held for the steps of one read: 64 MiB.
SAMPLE_NUMBERS = 2**23

# Added to the number of a read where the order of steps is drawn.
_ORDER = 2**30

# Steps of the averaged gradient at least.
_MIN_STEPS = 10_000


def max_sample_rows(core: KernelMap) -> int:
    """Return how many rows, or kernel values between them and core points, are held in memory."""
    return max(1, SAMPLE_NUMBERS // int(max(core.points.shape)))


def _seconds(problem: KernelProblem, n_reads: int, n_steps: int) -> float:
    """Return how long passes and the gradient steps of all problems take at most."""
    in_passes = n_reads * problem.n_rows * _VALUE_SECONDS
    in_steps = n_steps * n_problems(len(problem.classes)) * _STEP_SECONDS
    return len(problem.core) * (in_passes + in_steps)


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows in memory as the compiled loop needs them.

    Attributes
    ----------
    values : ndarray of shape (m, r), float64
        Kernel between rows and core points.
    cells : ndarray of shape (m,), int64
        Nearest core point.
    signs : ndarray of shape (K, m), float64
        In every problem.
    weights : ndarray of shape (m,), float64
    all_rows : bool
        Whether they are all rows of the data, or were drawn in proportion to weights.
    """

    values: FloatArray
    cells: IndexArray
    signs: FloatArray
    weights: FloatArray
    all_rows: bool

    @classmethod
    def of(cls, block: Block, problem: KernelProblem, *, all_rows: bool) -> Sample:
        """Return the rows of a block as a sample."""
        values, cells, _ = problem.core.matrix(block.points)
        signs = np.ascontiguousarray(signs_of(labels_of(block), problem.classes).T)
        return cls(values, cells, signs, block.weights, all_rows)

    def order(self, n_steps: int, seed: int, index: int) -> IndexArray:
        """Draw the row of every step after a pass. Drawn rows are repeated if they are too few."""
        rng = stream(seed, Stage.DESCENT, ROOT, _ORDER + index)
        if self.all_rows:
            return draw_with_replacement(self.weights, n_steps, rng)
        return np.resize(rng.permutation(len(self.weights)), n_steps)


@dataclass(frozen=True, eq=False)
class Descent:
    """Gradient steps of all problems, one problem after another.

    Attributes
    ----------
    problem : KernelProblem
    gram : ndarray of shape (r, r), float64
    beta : ndarray of shape (K, r), float64
        Iterates.
    total : ndarray of shape (K, r), float64
        Sums of iterates.
    """

    problem: KernelProblem
    gram: FloatArray
    beta: FloatArray
    total: FloatArray

    @classmethod
    def of(cls, problem: KernelProblem) -> Descent:
        """Begin at zero."""
        zeros = np.zeros((n_problems(len(problem.classes)), len(problem.core)))
        return cls(problem, problem.core.gram(), zeros, zeros.copy())

    def take_steps(  # noqa: PLR0917 - as the loop has them
        self,
        sample: Sample,
        order: IndexArray,
        lengths: FloatArray,
        anchors: FloatArray,
        shifts: FloatArray,
        skipped: int,
    ) -> None:
        """Take steps of some lengths at rows of a sample. See `loops_numba.descend`."""
        from daskcoreset.estimators.kernel import loops_numba as loops

        loss, lam = self.problem.loss, self.problem.lam
        numbers = np.array([lam, loss.safe_radius(lam), float(skipped)])
        for k, signs in enumerate(sample.signs):
            check_time("a kernel machine was being fitted", "pass a smaller max_points")
            loops.descend(
                sample.values, sample.cells, signs, anchors[k], shifts[k], order, lengths,
                self.gram, numbers, loss.numbers, self.beta[k], self.total[k],
            )  # fmt: skip


def solve_csvrg(
    problem: KernelProblem, *, n_epochs: int = 20, tol: float = 1e-3, seed: int = 0
) -> Solution:
    r"""Run CSVRG: variance-reduced gradients, with the gradient of every row at its core point.

    Parameters
    ----------
    problem : KernelProblem
        Its core points are those of a delta-cover of the rows.
    n_epochs : int, default=20
        Snapshots that inner steps start from at most. Each costs one pass, and one more pass gives
        the objective at the end.
    tol : float, default=1e-3
        Stop when an epoch changes the objective by less than this part of it.
    seed : int, default=0

    Returns
    -------
    Solution
        The snapshot with the least objective. The trace has "gradient", the norm of the full
        gradient of the algorithm, too.

    Notes
    -----
    Steps have the length ``0.05 / L``. The hinge, which Theorem 8 leaves out, has the L of the
    squared hinge. An epoch has ``100 L`` steps, with which the bound of Theorem 8 at least halves
    the distance from the optimum, and a million at most. Rows for them are drawn by quotas over the
    blocks, in proportion to weights. When there are more steps than the 64 MiB of kernel values
    hold rows, rows serve repeatedly within the epoch.

    References
    ----------
    Tan, Zhang and Wang (2019), Algorithm 1 and Theorem 8, and Johnson and Zhang (2013).
    """
    # L, the Lipschitz constant of the gradients of single rows.
    constant = 1.0 + problem.lam * problem.loss.smoothness
    max_rows = max_sample_rows(problem.core)
    n_inner = min(MAX_STEPS, int(np.ceil(100.0 * constant)))
    lengths = np.full(n_inner, 0.05 / constant)
    descent = Descent.of(problem)
    n_columns = len(descent.beta)
    _warn_slow(problem, "csvrg", _seconds(problem, n_epochs + 1, n_epochs * n_inner))
    # All rows, once for all, if they fit; else as many as there are steps.
    all_rows = problem.n_rows <= max_rows
    count = None if all_rows else min(n_inner, max_rows)
    sample: Sample | None = None
    best, lowest, previous, objectives = descent.beta.T, np.inf, np.inf, np.full(n_columns, np.inf)
    for epoch in range(n_epochs + 1):
        draws = epoch < n_epochs and (sample is None or not all_rows)
        beta = descent.beta.T.copy()
        terms = problem.evaluate(beta, problem.quotas(seed, epoch, count) if draws else None)
        values = problem.objectives(descent.gram, beta, terms.losses)
        gradient = beta + problem.factor * terms.gradient
        objective = float(values.sum())
        norm = float(np.sqrt(max(0.0, squared_norms(descent.gram, gradient).sum())))
        problem.record(objective=objective, gradient=norm)
        if objective < lowest:
            best, lowest, objectives = beta, objective, values
        if epoch == n_epochs or abs(previous - objective) <= tol * abs(objective):
            break
        previous = objective
        if terms.drawn is not None:
            sample = Sample.of(terms.drawn, problem, all_rows=all_rows)
        assert sample is not None  # noqa: S101 - the first epoch drew it
        with one_thread():
            z = sample.signs * (sample.values @ beta).T
        # h = w + lambda (a - a~) phi(c) + (G - w~). Equation 9 of the paper drops lambda.
        anchors = sample.signs * problem.loss.slope(z)
        shifts = np.ascontiguousarray((gradient - beta).T)
        order = sample.order(n_inner, seed, epoch)
        descent.take_steps(sample, order, lengths, anchors, shifts, skipped=n_inner)
    return Solution(best, objectives, epoch)


def solve_avm(problem: KernelProblem, *, seed: int = 0) -> Solution:
    r"""Take steps of length 1/t from zero, and average the second half of the iterates.

    .. math:: w \leftarrow \Pi\left((1 - \tfrac1t) w - \tfrac\lambda t a_t \varphi(c_t)\right)

    Parameters
    ----------
    problem : KernelProblem
    seed : int, default=0

    Notes
    -----
    There is one step per row, and at least 10,000. The authors take rows in their order. Here, rows
    are drawn by quotas over the blocks, in proportion to weights, because blocks may differ. The
    gradient of every row is taken at its core point.

    References
    ----------
    Le et al. (2017), Approximation vector machines for large-scale online learning, Algorithm 2.
    The scale is that of Tan, Zhang and Wang's objective, whose strong convexity is one.
    """
    n_steps, max_rows = max(_MIN_STEPS, problem.n_rows), max_sample_rows(problem.core)
    descent, burn_in = Descent.of(problem), n_steps // 2
    _warn_slow(problem, "avm", _seconds(problem, 2, n_steps))
    all_rows = problem.n_rows <= max_rows
    steps_per_read = n_steps if all_rows else max_rows
    for part, taken in enumerate(range(0, n_steps, steps_per_read)):
        count = min(steps_per_read, n_steps - taken)
        drawn = problem.draw(problem.quotas(seed, part, None if all_rows else count))
        sample = Sample.of(drawn, problem, all_rows=all_rows)
        lengths = 1.0 / np.arange(taken + 1.0, taken + count + 1.0)
        order = sample.order(count, seed, part)
        anchors, shifts = np.zeros_like(sample.signs), np.zeros_like(descent.beta)
        descent.take_steps(sample, order, lengths, anchors, shifts, skipped=burn_in - taken)
    mean = descent.total.T.copy() / (n_steps - burn_in)
    losses = problem.evaluate(mean).losses
    objectives = problem.objectives(descent.gram, mean, losses)
    problem.record(objective=float(objectives.sum()))
    return Solution(mean, objectives, n_steps)
