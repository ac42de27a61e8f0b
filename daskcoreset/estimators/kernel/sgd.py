r"""Stochastic gradient methods on core points, out of core: CSVRG, and its baseline AVM.

The model keeps :math:`w = \sum_j \beta_j \varphi(c_j)` and every row's gradient
:math:`a_i \varphi(x_i)` stands at its core point. Steps are taken on rows in memory by compiled
loops. Of CSVRG, Algorithm 1, the full gradient at a snapshot is one read, in which a sample of rows
for the inner steps is drawn too: one epoch is one read.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np

from daskcoreset.core.blocks import Block
from daskcoreset.core.linalg import one_thread, product
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.sampling import draw_with_replacement
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.estimators.kernel.kernels import Isotropic, KernelMap, Span
from daskcoreset.estimators.kernel.losses import MarginLoss
from daskcoreset.estimators.kernel.objective import n_problems, signs_of, squared_norms
from daskcoreset.estimators.kernel.rows import ROOT, KernelProblem, Solution

# Inner steps of an epoch at most, about a second for 300 core points.
MAX_STEPS = 1_000_000

# Numbers held for the steps of one read: 64 MiB.
SAMPLE_NUMBERS = 2**23

# Added to the number of a read where the order of steps is drawn.
_ORDER = 2**30


def max_sample_rows(width: int) -> int:
    """Rows of so many numbers that are held at most."""
    return max(1, SAMPLE_NUMBERS // width)


def order_stream(seed: int, index: int) -> np.random.Generator:
    """Random numbers for the order of the steps after a read."""
    return stream(seed, Stage.DESCENT, ROOT, _ORDER + index)


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows in memory as the compiled loops need them.

    Attributes
    ----------
    values : ndarray of shape (m, r), float64
        Kernel between rows and core points, or coordinates in their span.
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
    def of(
        cls,
        block: Block,
        core: KernelMap,
        classes: AnyArray,
        *,
        all_rows: bool,
        span: Span | None = None,
    ) -> Sample:
        """Compute what is needed of a block; with a span, coordinates in it are the values."""
        values = np.empty((len(block), len(core)))
        cells: Any = np.empty(len(block), dtype=np.int64)
        if span is not None:
            values = np.empty((len(block), span.into.shape[1]))
        for part, tile, nearest in core.tiles(block.points, nearest=True):
            values[part] = tile if span is None else product(tile, span.into)
            cells[part] = nearest.cells  # type: ignore[union-attr] # asked for
        labels: Any = block.labels
        signs = np.ascontiguousarray(signs_of(labels, classes).T)
        return cls(values, cells, signs, block.weights, all_rows)

    def order(self, n_steps: int, rng: np.random.Generator) -> IndexArray:
        """Draw the row of every step; drawn rows serve repeatedly where there are too few."""
        n_rows = len(self.weights)
        if self.all_rows:
            return draw_with_replacement(self.weights, n_steps, rng)
        if n_steps <= n_rows:
            return np.asarray(rng.permutation(n_rows)[:n_steps], dtype=np.int64)
        return np.asarray(rng.integers(n_rows, size=n_steps), dtype=np.int64)


def smoothness(loss: MarginLoss, lam: float) -> float:
    r"""Lipschitz constant L of the gradients of single rows, :math:`1 + \lambda \sup l''`.

    The hinge has none (Theorem 8 leaves it out); its steps are those of the squared hinge.

    Examples
    --------
    >>> from daskcoreset.estimators.kernel.losses import LOSSES
    >>> smoothness(LOSSES["squared_hinge"], 4.0)
    9.0
    """
    return 1.0 + lam * (2.0 if loss.linear else loss.smoothness)


def feature_diameter(kernel: Isotropic, diameter: float) -> float:
    r""":math:`\delta_\varphi = 2 \sqrt{2 (1 - k(\delta^2 / 4))}`.

    Twice the largest distance, among feature vectors, of a row from its core point.

    Examples
    --------
    >>> round(feature_diameter(Isotropic("rbf"), 0.2), 4)
    0.2821
    """
    at_rim = float(kernel(np.array([diameter**2 / 4.0]))[0])
    return 2.0 * float(np.sqrt(max(0.0, 2.0 * (1.0 - at_rim))))


def approximation_bound(kernel: Isotropic, diameter: float, loss: MarginLoss, lam: float) -> float:
    r"""Bound of Theorem 4 on the error of one variance-reduced gradient.

    :math:`\frac32 \lambda A \delta_\varphi`, where A bounds :math:`|a|` over the ball that holds
    the iterates, for a cover of this diameter. (The theorem's gradients are those of losses
    without lambda.)

    Examples
    --------
    >>> from daskcoreset.estimators.kernel.losses import LOSSES
    >>> round(approximation_bound(Isotropic("rbf"), 0.2, LOSSES["hinge"], 2.0), 4)
    0.8464
    """
    largest = loss.slope_bound(loss.safe_radius(lam))
    return 1.5 * lam * largest * feature_diameter(kernel, diameter)


def solve_csvrg(
    problem: KernelProblem,
    *,
    beta: FloatArray,
    n_epochs: int = 20,
    option: Literal["I", "II"] = "I",
    eta: float | None = None,
    n_inner: int | None = None,
    tol: float = 1e-4,
    seed: int = 0,
    stand_ins: Literal["span", "core_points"] = "span",
) -> Solution:
    r"""Run CSVRG.

    Parameters
    ----------
    problem : KernelProblem
        Its core points are those of a delta-cover of the rows.
    beta : ndarray of shape (r, K), float64
        Where to begin.
    n_epochs : int, default=20
        Snapshots that inner steps start from; each costs one read, and two more reads give the
        objective and the certificate at the end.
    option : {"I", "II"}, default="I"
        Snapshot of the next epoch: the last iterate, or one drawn uniformly.
    eta : float, optional
        Length of steps; ``0.05 / L`` by default.
    n_inner : int, optional
        Inner steps of an epoch. By default ``100 L``, with which the bound of Theorem 8 at least
        halves the distance from the optimum in every epoch, and a million at most.
    tol : float, default=1e-4
        Stop when an epoch changes the objective by less than this part of it. That is no sign of
        being near the least one: it has converged if, in addition, by the certificate
        the objectives are above the least ones in the span by no more than this part of them.
    seed : int, default=0
    stand_ins : {"span", "core_points"}, default="span"
        Where the gradients of rows stand: at the nearest vector of the span of the core points,
        or at the nearest core point, as the paper has it. Both are within Theorem 4's distance
        of the row, the first is nearer. In the span the full gradient is exact, so that steps
        end at the least objective there; at core points they end elsewhere, on covers of the
        paper's size up to ten percent above it.

    Returns
    -------
    Solution
        The snapshot with the least objective, and with ``gaps`` :math:`|\nabla|^2 / 2`, the
        gradient at the true rows, in the span: the objective is strongly convex with modulus
        one, so that it is above its least value by no more, whatever the loss. For large lambda
        the curvature is far above one and the gap far above the difference. The trace of `rows`
        has "gradient", the norm of the full gradient of the algorithm, too.

    Notes
    -----
    Rows for the inner steps are drawn by quotas over the blocks, in proportion to weights. When
    there are more steps than the 64 MiB of kernel values hold rows, rows serve repeatedly within
    the epoch.

    References
    ----------
    Tan, Zhang and Wang (2019), Algorithm 1 and Theorem 8; Johnson and Zhang (2013).
    """
    rows, core = problem.rows, problem.core
    constant = smoothness(problem.loss, problem.lam)
    eta = 0.05 / constant if eta is None else eta
    if n_inner is None:
        n_inner = min(MAX_STEPS, int(np.ceil(100.0 * constant)))
    span = Span.of(core) if stand_ins == "span" else None
    gram = core.gram() if span is None else span.gram
    # All rows, once for all, where they fit; else as many as there are steps.
    all_rows = rows.n_rows <= max_sample_rows(len(core))
    count = None if all_rows else min(n_inner, max_sample_rows(len(core)))
    sample: Sample | None = None
    best, lowest, previous = beta, np.inf, np.inf
    objectives = np.full(beta.shape[1], np.inf)
    for epoch in range(n_epochs + 1):
        draws = epoch < n_epochs and (sample is None or not all_rows)
        draw = rows.quotas(seed, epoch, count) if draws else None
        terms = problem.evaluate(beta, "cells" if span is None else "rows", draw)
        values = problem.objectives(gram, beta, terms.losses[0])
        if span is None:
            gradient = beta + problem.factor * terms.gradient
            norm = np.sqrt(max(0.0, squared_norms(gram, gradient).sum()))
        else:
            gradient = span.gradient(beta, problem.factor * terms.gradient)
            norm = np.linalg.norm(gradient)
        objective = float(values.sum())
        rows.record(objective=objective, gradient=float(norm))
        if objective < lowest:
            best, lowest, objectives = beta, objective, values
        if epoch == n_epochs or abs(previous - objective) <= tol * abs(objective):
            break
        previous = objective
        if terms.drawn is not None:
            sample = Sample.of(terms.drawn, core, rows.classes, all_rows=all_rows, span=span)
        assert sample is not None  # noqa: S101 - the first epoch drew it
        rng = order_stream(seed, epoch)
        order = sample.order(n_inner, rng)
        n_steps = n_inner if option == "I" else int(rng.integers(n_inner)) + 1
        steps = InnerSteps(problem, sample, order[:n_steps], gram, eta, span)
        beta = np.stack(
            [steps.run(k, beta[:, k], gradient[:, k]) for k in range(beta.shape[1])], axis=1
        )
    gaps = _gaps(problem, best)
    converged = bool((gaps <= tol * (objectives - gaps)).all())
    return Solution(best, objectives, gaps, epoch, converged)


@dataclass(frozen=True, eq=False)
class InnerSteps:
    r"""Variance-reduced steps from a snapshot.

    .. math:: h = w + \lambda (a_t - \tilde a_t) \varphi(c_t) + (G - \tilde w), \qquad
              w \leftarrow \Pi(w - \eta h)

    Attributes
    ----------
    problem : KernelProblem
    sample : Sample
    order : ndarray of shape (n_steps,), int64
        Row of the sample for every step.
    gram : ndarray of shape (r, r), float64
        Kernel between the core points.
    eta : float
        Length of the steps.
    span : Span or None
        In whose coordinates steps are taken; None where rows stand at core points.

    References
    ----------
    Tan, Zhang and Wang (2019), Algorithm 1; equation 9 and the listing drop lambda.
    """

    problem: KernelProblem
    sample: Sample
    order: IndexArray
    gram: FloatArray
    eta: float
    span: Span | None = None

    def run(self, k: int, snapshot: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return the last iterate of problem k, from coefficients and the full gradient there."""
        from daskcoreset.estimators.kernel import sgd_numba as loops

        loss, lam = self.problem.loss, self.problem.lam
        sample, signs = self.sample, self.sample.signs[k]
        numbers = np.array([lam, self.eta, loss.safe_radius(lam)])
        if self.span is not None:
            with one_thread():
                gamma = self.span.coordinates(snapshot)
                z = signs * (sample.values @ gamma)
            loops.reduce_variance_in_span(
                sample.values,
                signs,
                signs * loss.slope(z),
                self.order,
                gradient - gamma,
                numbers,
                loss.numbers,
                gamma,
            )
            with one_thread():
                return np.asarray(self.span.into @ gamma)
        beta = snapshot.copy()
        with one_thread():
            z = signs * (sample.values @ beta)
        loops.reduce_variance(
            sample.values,
            sample.cells,
            signs,
            signs * loss.slope(z),
            self.order,
            np.ascontiguousarray(gradient - beta),
            self.gram,
            numbers,
            loss.numbers,
            beta,
        )
        return beta


def _gaps(problem: KernelProblem, beta: FloatArray) -> FloatArray:
    """Read once more: how far, at most, objectives are above the least ones in the span."""
    terms = problem.evaluate(beta, "rows")
    span = Span.of(problem.core)
    gradient = span.gradient(beta, problem.factor * terms.gradient)
    return np.asarray(0.5 * np.square(gradient).sum(axis=0))


def solve_avm(problem: KernelProblem, *, n_steps: int, seed: int = 0) -> Solution:
    r"""Take steps of length 1/t from zero, and average the second half of the iterates.

    .. math:: w \leftarrow \Pi\left((1 - \tfrac1t) w - \tfrac\lambda t a_t \varphi(c_t)\right)

    Parameters
    ----------
    problem : KernelProblem
    n_steps : int
        Steps, each on a row drawn in proportion to weights.
    seed : int, default=0

    Returns
    -------
    Solution

    Notes
    -----
    The authors read rows as they come; here they are drawn by quotas over the blocks, since
    blocks need not be alike, and every row is approximated.

    References
    ----------
    Le et al. (2017), Approximation vector machines for large-scale online learning, Algorithm 2,
    in the scale of Tan, Zhang and Wang's objective, whose strong convexity is one.
    """
    rows, core = problem.rows, problem.core
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
        state = rows.work_on_draw(steps, seed, part, None if all_rows else count)
        if taken + count < n_steps:
            rows.record(steps=taken + count)
    mean = state[1].T / (n_steps - burn_in)
    objectives = problem.objectives(core.gram(), mean, problem.evaluate(mean).losses[0])
    rows.record(steps=n_steps, objective=float(objectives.sum()))
    return Solution(mean, objectives, None, n_steps, None)


@dataclass(frozen=True, eq=False)
class AveragedSteps:
    """Steps of `solve_avm` on the rows of one read, taken by the worker that has them.

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
        from daskcoreset.estimators.kernel import sgd_numba as loops

        loss = self.loss
        sample = Sample.of(drawn, self.core, self.classes, all_rows=self.all_rows)
        order = sample.order(self.count, order_stream(self.seed, self.part))
        beta, total = state = self.state.copy()
        gram, radius = self.core.gram(), loss.safe_radius(self.lam)
        numbers = np.array([self.lam, radius, float(self.taken), float(self.burn_in)])
        for k in range(len(beta)):
            loops.average(
                sample.values,
                sample.cells,
                sample.signs[k],
                order,
                gram,
                numbers,
                loss.numbers,
                beta[k],
                total[k],
            )
        return np.asarray(state)
