r"""Solvers of kernel machines in the span of core points: Newton, CSVRG and AVM.

A model is :math:`w = \sum_j \beta_j \varphi(c_j)`. Newton's method works on rows in memory. The
other two take the gradient :math:`a_i \varphi(x_i)` of every row at its core point. Their compiled
loops take steps on rows that were drawn in a pass over all rows.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from daskcoreset.core.block import Block, labels_of
from daskcoreset.core.deadline import check_time
from daskcoreset.core.linalg import one_thread
from daskcoreset.core.messages import scores_error
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.sampling import draw_with_replacement
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.estimators.kernel.kernels import KernelMap, nearest
from daskcoreset.estimators.kernel.losses import MarginLoss
from daskcoreset.estimators.kernel.objective import n_problems, signs_of, squared_norms
from daskcoreset.estimators.kernel.rows import ROOT, KernelProblem, Solution

# --- Newton's method, on rows in memory

# Added to the kernel matrix of the core points: directions with a smaller eigenvalue are rounding.
_RIDGE = 1e-10

# Parts of a step that are tried, and the part of the first-order decrease that one must reach.
_LENGTHS = (1.0, 0.5, 0.25, 0.1, 0.03, 0.01, 0.001)
_SUFFICIENT = 1e-4

_MAX_STEPS = 40

# Rows that are added to Hessians at a time.
_PANEL_ROWS = 1024

# Rows over those of the problem that is solved before, for its solution has a smaller Hessian; rows
# of the first one at least, for every core point and in all, and its tolerance at least.
_MORE, _MIN_ROWS_OF_POINT, _MIN_ROWS, _ROUGH = 4, 4, 1000, 3e-2


def solve_newton(problem: KernelProblem, *, tol: float = 3e-5) -> Solution:
    """Minimise over the span of the core points by Newton's method.

    Parameters
    ----------
    problem : KernelProblem
        Not of the hinge. Its rows and their kernel values are held in memory.
    tol : float, default=3e-5
        Stop when a further step promises to lower the objective by less than half this part of it.

    References
    ----------
    Chapelle (2007), Training a support vector machine in the primal.
    """
    rows, core = problem.rows, problem.core
    block = rows.all_rows()
    values, farthest = np.empty((len(block), len(core))), 0.0
    with one_thread():
        for part, squares in core.squares(block.points):
            farthest = max(farthest, nearest(squares)[1])
            values[part] = core.values(squares)
    rows.radius = float(np.sqrt(farthest))
    signs = signs_of(labels_of(block), rows.classes)
    weights = problem.factor * block.weights
    held = HeldRows(values, core.gram(), signs, weights, problem.loss)
    found = [held.solve(k, tol) for k in range(signs.shape[1])]
    objectives = np.array([one.objective for one in found])
    rows.record(objective=float(objectives.sum()))
    beta = np.stack([one.beta for one in found], axis=1)
    return Solution(beta, objectives, max(one.n_steps for one in found))


class HessianSum(NamedTuple):
    """The Hessian in coefficients, and the second derivatives in its sum.

    Attributes
    ----------
    matrix : ndarray of shape (r, r), float64
        Lower triangle of the Hessian.
    curvature : ndarray of shape (n,), float64
        Second derivative of the loss at every row, times its weight.
    """

    matrix: FloatArray
    curvature: FloatArray


class HeldSolution(NamedTuple):
    """A solution of one problem, and the Hessian there."""

    beta: FloatArray  # (r,)
    objective: float
    sums: HessianSum
    n_steps: int


@dataclass(frozen=True, eq=False)
class HeldRows:
    """Rows and the kernel between them and the core points.

    The second derivative of squares is one of few numbers. A step of Newton's method changes it for
    few rows, so that all steps together add up little more than one Hessian.

    Attributes
    ----------
    values : ndarray of shape (n, r), float64
    gram : ndarray of shape (r, r), float64
    signs : ndarray of shape (n, K), float64
    weights : ndarray of shape (n,), float64
        Factors of the losses.
    loss : MarginLoss
        Not the hinge.
    """

    values: FloatArray
    gram: FloatArray
    signs: FloatArray
    weights: FloatArray
    loss: MarginLoss

    @one_thread()
    def solve(self, k: int, tol: float) -> HeldSolution:
        """Solve problem k, until a step promises less than half of `tol` of the objective."""
        gram, weights, loss, signs = self.gram, self.weights, self.loss, self.signs[:, k]
        beta, sums = self._begun(k, tol)
        margins = signs * (self.values @ beta)

        def objective(beta: FloatArray, margins: FloatArray) -> float:
            return float(0.5 * beta @ (gram @ beta) + weights @ loss.value(margins))

        value, steps = objective(beta, margins), 0
        for steps in range(1, _MAX_STEPS + 1):  # noqa: B007 - counted
            check_time("a kernel machine was being fitted", "pass a smaller size")
            curvature = weights * loss.curvature(margins)
            self._add_products(sums.matrix, curvature - sums.curvature)
            sums.curvature[:] = curvature
            gradient = gram @ beta + (signs * weights * loss.slope(margins)) @ self.values
            move = -scipy.linalg.cho_solve(_factor(sums.matrix), gradient)
            slope = float(gradient @ move)
            if -slope <= tol * value:
                break
            moved = signs * (self.values @ move)
            for t in _LENGTHS:
                shorter = objective(beta + t * move, margins + t * moved)
                if shorter <= value + _SUFFICIENT * t * slope:
                    break
            else:
                break  # lost in rounding
            beta, margins, value = beta + t * move, margins + t * moved, shorter
        return HeldSolution(beta, value, sums, steps)

    def _begun(self, k: int, tol: float) -> tuple[FloatArray, HessianSum]:
        """Return the starting point and its Hessian. Many rows start from a solution on fewer."""
        prior = self.gram + _RIDGE * np.eye(len(self.gram))
        sums = HessianSum(prior.copy(order="F"), np.zeros(len(self.weights)))
        least = max(_MIN_ROWS, _MIN_ROWS_OF_POINT * len(prior))
        if len(self.weights) < _MORE * least:
            return np.zeros(len(prior)), sums
        rough = self._every(_MORE).solve(k, max(tol, _ROUGH))
        sums.matrix[:] += (rough.sums.matrix - prior) / _MORE
        sums.curvature[::_MORE] = rough.sums.curvature / _MORE
        return rough.beta, sums

    def _every(self, step: int) -> HeldRows:
        """Return every `step`-th row. The order of the rows carries no information."""
        weights = self.weights[::step] * step
        return HeldRows(self.values[::step], self.gram, self.signs[::step], weights, self.loss)

    def _add_products(self, hessian: FloatArray, factors: FloatArray) -> None:
        """Add products of rows with themselves, times factors, to the lower triangle."""
        for sign in (1.0, -1.0):
            chosen = np.flatnonzero(sign * factors > 0.0)
            for first in range(0, len(chosen), _PANEL_ROWS):
                some = chosen[first : first + _PANEL_ROWS]
                panel = self.values[some] * np.sqrt(np.abs(factors[some]))[:, np.newaxis]
                # In place, the lower triangle alone.
                scipy.linalg.blas.dsyrk(sign, panel.T, beta=1.0, c=hessian, lower=1, overwrite_c=1)


def _factor(hessian: FloatArray) -> Any:
    """Cholesky factor, after an increase of the diagonal if rounding requires it."""
    if not np.isfinite(hessian).all():
        raise scores_error()
    ridge = 0.0
    while True:
        shifted = hessian.copy(order="F")
        shifted[np.diag_indices_from(shifted)] += ridge
        try:
            return scipy.linalg.cho_factor(
                shifted, lower=True, overwrite_a=True, check_finite=False
            )
        except np.linalg.LinAlgError:
            ridge = max(10.0 * ridge, 1e-15 * float(np.trace(hessian)))


# --- stochastic gradients at core points, out of core

# Inner steps of an epoch at most, about a second for 300 core points.
MAX_STEPS = 1_000_000

# Numbers held for the steps of one read: 64 MiB.
SAMPLE_NUMBERS = 2**23

# Added to the number of a read where the order of steps is drawn.
_ORDER = 2**30

# Steps of the averaged gradient at least.
_MIN_STEPS = 10_000


def max_sample_rows(width: int) -> int:
    """Largest number of rows of this width to hold in memory."""
    return max(1, SAMPLE_NUMBERS // width)


def order_stream(seed: int, index: int) -> np.random.Generator:
    """Random numbers for the order of the steps after a pass."""
    return stream(seed, Stage.DESCENT, ROOT, _ORDER + index)


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows in memory as the compiled loops need them.

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
    @one_thread()
    def of(cls, block: Block, core: KernelMap, classes: AnyArray, *, all_rows: bool) -> Sample:
        """Return the rows of a block as a sample."""
        values = np.empty((len(block), len(core)))
        cells = np.empty(len(block), dtype=np.int64)
        for part, squares in core.squares(block.points):
            cells[part] = nearest(squares)[0]
            values[part] = core.values(squares)
        signs = np.ascontiguousarray(signs_of(labels_of(block), classes).T)
        return cls(values, cells, signs, block.weights, all_rows)

    def order(self, n_steps: int, rng: np.random.Generator) -> IndexArray:
        """Draw the row of every step. Drawn rows are repeated if there are too few."""
        n_rows = len(self.weights)
        if self.all_rows:
            return draw_with_replacement(self.weights, n_steps, rng)
        if n_steps <= n_rows:
            return np.asarray(rng.permutation(n_rows)[:n_steps], dtype=np.int64)
        return np.asarray(rng.integers(n_rows, size=n_steps), dtype=np.int64)


def smoothness(loss: MarginLoss, lam: float) -> float:
    r"""Lipschitz constant L of the gradients of single rows, :math:`1 + \lambda \sup l''`.

    The hinge has none, and Theorem 8 leaves it out. Its steps are those of the squared hinge.

    Examples
    --------
    >>> from daskcoreset.estimators.kernel.losses import LOSSES
    >>> smoothness(LOSSES["squared_hinge"], 4.0)
    9.0
    """
    return 1.0 + lam * loss.smoothness


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
        The snapshot with the least objective. The trace of the rows has "gradient", the norm of the
        full gradient of the algorithm, too.

    Notes
    -----
    Steps have the length ``0.05 / L``. An epoch has ``100 L`` steps, with which the bound of
    Theorem 8 at least halves the distance from the optimum, and a million at most. Rows for them
    are drawn by quotas over the blocks, in proportion to weights. When there are more steps than
    the 64 MiB of kernel values hold rows, rows serve repeatedly within the epoch.

    References
    ----------
    Tan, Zhang and Wang (2019), Algorithm 1 and Theorem 8, and Johnson and Zhang (2013).
    """
    from daskcoreset.estimators.kernel import loops_numba as loops

    rows, core, loss = problem.rows, problem.core, problem.loss
    constant = smoothness(loss, problem.lam)
    eta, n_inner = 0.05 / constant, min(MAX_STEPS, int(np.ceil(100.0 * constant)))
    numbers = np.array([problem.lam, eta, loss.safe_radius(problem.lam)])
    gram, n_columns = core.gram(), n_problems(len(rows.classes))
    # All rows, once for all, if they fit; else as many as there are steps.
    all_rows = rows.n_rows <= max_sample_rows(len(core))
    count = None if all_rows else min(n_inner, max_sample_rows(len(core)))
    sample: Sample | None = None
    best = beta = np.zeros((len(core), n_columns))
    lowest, previous, objectives = np.inf, np.inf, np.full(n_columns, np.inf)
    for epoch in range(n_epochs + 1):
        draws = epoch < n_epochs and (sample is None or not all_rows)
        terms = problem.evaluate(beta, rows.quotas(seed, epoch, count) if draws else None)
        values = problem.objectives(gram, beta, terms.losses)
        gradient = beta + problem.factor * terms.gradient
        objective = float(values.sum())
        norm = float(np.sqrt(max(0.0, squared_norms(gram, gradient).sum())))
        rows.record(objective=objective, gradient=norm)
        if objective < lowest:
            best, lowest, objectives = beta, objective, values
        if epoch == n_epochs or abs(previous - objective) <= tol * abs(objective):
            break
        previous = objective
        if terms.drawn is not None:
            sample = Sample.of(terms.drawn, core, rows.classes, all_rows=all_rows)
        assert sample is not None  # noqa: S101 - the first epoch drew it
        order = sample.order(n_inner, order_stream(seed, epoch))
        beta = beta.copy()
        for k, signs in enumerate(sample.signs):
            column = np.ascontiguousarray(beta[:, k])
            with one_thread():
                z = signs * (sample.values @ column)
            # h = w + lambda (a - a~) phi(c) + (G - w~). Equation 9 of the paper drops lambda.
            shift = np.ascontiguousarray(gradient[:, k] - column)
            loops.reduce_variance(
                sample.values, sample.cells, signs, signs * loss.slope(z), order, shift, gram,
                numbers, loss.numbers, column,
            )  # fmt: skip
            beta[:, k] = column
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
    rows, core = problem.rows, problem.core
    n_steps = max(_MIN_STEPS, rows.n_rows)
    burn_in = n_steps // 2
    state = np.zeros((2, n_problems(len(rows.classes)), len(core)))
    max_rows = max_sample_rows(max(core.points.shape))
    all_rows = rows.n_rows <= max_rows
    steps_per_read = n_steps if all_rows else max_rows
    for part, taken in enumerate(range(0, n_steps, steps_per_read)):
        count = min(steps_per_read, n_steps - taken)
        steps = AveragedSteps(
            core, problem.loss, problem.lam, rows.classes, state, taken, burn_in, count,
            all_rows=all_rows, seed=seed, part=part,
        )  # fmt: skip
        state = rows.work_on_draw(steps, rows.quotas(seed, part, None if all_rows else count))
    mean = state[1].T / (n_steps - burn_in)
    objectives = problem.objectives(core.gram(), mean, problem.evaluate(mean).losses)
    rows.record(objective=float(objectives.sum()))
    return Solution(mean, objectives, n_steps)


@dataclass(frozen=True, eq=False)
class AveragedSteps:
    """Steps of `solve_avm` on the rows of one pass, taken by the worker that has them.

    Attributes
    ----------
    core : KernelMap
    loss : MarginLoss
    lam : float
    classes : ndarray of shape (n_classes,)
    state : ndarray of shape (2, K, r), float64
        Iterates of every problem, and the sums of those after `burn_in` steps.
    taken, burn_in, count : int
        Steps before, steps whose iterates are not added up, and steps to take.
    all_rows : bool
        As in `Sample`.
    seed, part : int
        Address of the order of the rows.
    """

    core: KernelMap
    loss: MarginLoss
    lam: float
    classes: AnyArray
    state: FloatArray
    taken: int
    burn_in: int
    count: int
    _: KW_ONLY
    all_rows: bool
    seed: int
    part: int

    def __call__(self, drawn: Block) -> FloatArray:
        """Return the state after the steps."""
        from daskcoreset.estimators.kernel import loops_numba as loops

        sample = Sample.of(drawn, self.core, self.classes, all_rows=self.all_rows)
        order = sample.order(self.count, order_stream(self.seed, self.part))
        beta, total = state = self.state.copy()
        gram, radius = self.core.gram(), self.loss.safe_radius(self.lam)
        numbers = np.array([self.lam, radius, float(self.taken), float(self.burn_in)])
        for k, signs in enumerate(sample.signs):
            loops.average(
                sample.values, sample.cells, signs, order, gram, numbers, self.loss.numbers,
                beta[k], total[k],
            )  # fmt: skip
        return np.asarray(state)
