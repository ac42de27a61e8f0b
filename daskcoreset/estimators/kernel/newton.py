"""The problem restricted to the span of the core points, solved by Newton's method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from daskcoreset.core.errors import scores_error
from daskcoreset.core.linalg import one_thread
from daskcoreset.core.typing import FloatArray
from daskcoreset.estimators.kernel.held import HELD_NUMBERS, HeldRows
from daskcoreset.estimators.kernel.kernels import Span
from daskcoreset.estimators.kernel.losses import MarginLoss
from daskcoreset.estimators.kernel.objective import ObjectiveQuery, ObjectiveTerms, whole_matrix
from daskcoreset.estimators.kernel.rows import KernelProblem, Solution, TrainingRows
from daskcoreset.inputs.blocks import row_blocks

# Parts of a step at which losses are summed in the read after it.
LENGTHS = (1.0, 0.5, 0.25, 0.1, 0.03, 0.01, 0.001)

# The same for the hinge, whose whole steps are often too long.
_FINE = tuple(0.6**i for i in range(20))

# Part of the first-order decrease that a whole step must reach (Armijo).
_SUFFICIENT = 1e-4

# Part of the objective below which a decrease cannot be told from rounding.
_ROUNDING = 1e-9

# Steps without any length that is better, after which a stage of the hinge is over.
_FAILURES = 3

# Part of its promise to which a step by a known factor has to bring the next one.
_QUICK = 0.3

# Address of the draw of rows to begin with.
_PILOT = 2**30 - 1

# Rows that Hessians of few core points are made from.
_MIN_HESSIAN_ROWS = 20_000

# Rows of a pilot over those of the one before, rows of the first one at least, and tolerance of all
# of them: a sample determines the solution no better.
_PILOT_FACTOR, _MIN_PILOT, _PILOT_TOL = 4, 2_000, 3e-3

# Width of the hinge's rounded corner at first, and from stage to stage.
_MAX_WIDTH, _WIDTH_FACTOR = 2.0, 0.25


@dataclass(eq=False)
class Iterate:
    """Coordinates of one binary problem, and the step that led there."""

    index: int  # its column among the coefficients
    gamma: FloatArray  # (q,): coordinates in the span
    move: FloatArray  # (q,): the step that led to gamma, zero where gamma is accepted
    best: FloatArray  # (q,): coordinates with the least true objective so far
    bent: float  # likely part of the rows that have a second derivative
    objective: float = np.inf  # with the true loss, at best
    floor: float = 0.0  # lower bound of the true objective
    before: float = np.inf  # objective of the stage before the move
    slope: float = -np.inf  # derivative along the move where it began
    factor: Any = None  # Cholesky factor of a Hessian of like rows, in coefficients
    failures: int = 0  # steps in this stage of which no length was better
    unsolved: bool = True  # whether the gap is too large
    open: bool = True  # whether the stage is not over yet

    def begin_stage(self) -> None:
        """Begin at gamma, where the loss of the stage was not evaluated yet."""
        self.open = self.unsolved
        self.move = np.zeros_like(self.gamma)
        self.failures = 0


@dataclass(frozen=True, eq=False)
class Newton:
    """Newton's method for all problems side by side.

    Attributes
    ----------
    problem : KernelProblem
    span : Span
        Of the core points.
    tol : float
    max_hessian_rows : int
        Rows with a second derivative that Hessians are estimated from.
    seed : int
    """

    problem: KernelProblem
    span: Span
    tol: float
    max_hessian_rows: int
    seed: int

    def start(
        self, beta: FloatArray, bent: FloatArray, factors: list[Any] | None = None
    ) -> list[Iterate]:
        """Return the iterates at given coefficients, before any evaluation."""
        factors = factors or [None] * beta.shape[1]
        with one_thread():
            gamma = self.span.coordinates(beta)
        return [
            Iterate(k, column.copy(), np.zeros(len(column)), column.copy(), part, factor=factor)
            for k, (column, part, factor) in enumerate(
                zip(gamma.T, bent.tolist(), factors, strict=True)
            )
        ]

    def held(self, beta: FloatArray) -> tuple[FloatArray, FloatArray, list[Any] | None]:
        """Solve on rows in memory, all or some; return coefficients, `bent` and factors."""
        rows, most = self.problem.rows, HELD_NUMBERS // len(self.problem.core)
        sample, tol = rows.whole, 0.3 * self.tol
        if sample is None or len(sample) > most:
            largest = max(_MIN_HESSIAN_ROWS, self.max_hessian_rows // 2)
            count = min(largest, rows.n_rows // _PILOT_FACTOR, most)
            if count < _MIN_PILOT:
                return beta, np.ones(beta.shape[1]), None
            drawn, tol = rows.draw(self.seed, _PILOT, count), max(tol, _PILOT_TOL)
            sample = replace(drawn, weights=np.full(len(drawn), rows.weight / len(drawn)))
        problem = self.problem
        held = HeldRows.of(problem.core, sample, rows.classes, problem.loss, problem.factor)
        found = [held.solve(k, column, tol) for k, column in enumerate(beta.T)]
        bent = [np.count_nonzero(one.sums.curvature) / len(sample) for one in found]
        beta = np.stack([one.beta for one in found], axis=1)
        return beta, np.array(bent), [one.factor for one in found]

    def pilots(self, beta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Solve on more and more drawn rows; return coefficients and `bent` for `solve`."""
        all_rows = bent = np.ones(beta.shape[1])
        rows, largest = self.problem.rows, max(_MIN_HESSIAN_ROWS, self.max_hessian_rows // 2)
        counts = [min(largest, rows.n_rows // _PILOT_FACTOR)]
        while counts[-1] // _PILOT_FACTOR >= max(_MIN_PILOT, 10 * len(self.problem.core)):
            counts.append(counts[-1] // _PILOT_FACTOR)
        if counts[-1] < _MIN_PILOT:
            return beta, bent
        drawn = rows.draw(self.seed, _PILOT, counts[0])
        for i in reversed(range(len(counts))):
            # They are drawn block by block: every fourth is as good a sample as all.
            part = drawn.take(np.arange(0, len(drawn), _PILOT_FACTOR**i))
            weights = np.full(len(part), rows.weight / len(part))
            blocks = row_blocks(part.points, part.labels, weights, chunks=len(part))
            sample = TrainingRows(blocks, rows.classes, rows.weight, len(part))
            pilot = Newton(
                replace(self.problem, rows=sample),
                self.span,
                max(self.tol, _PILOT_TOL),
                max_hessian_rows=len(part),
                seed=self.seed,
            )
            solution, bent = pilot.solve(beta, all_rows)
            beta = solution.beta
        return beta, bent

    def solve(
        self,
        beta: FloatArray,
        bent: FloatArray,
        max_iter: int = 100,
        factors: list[Any] | None = None,
    ) -> tuple[Solution, FloatArray]:
        """Solve on all rows.

        Parameters
        ----------
        beta : ndarray of shape (r, K), float64
            Where to begin.
        bent : ndarray of shape (K,), float64
            Likely part of the rows that have a second derivative there.
        max_iter : int, default=100
            Reads at most.
        factors : list, optional
            Cholesky factors of Hessians near `beta`, of every problem, to begin with.

        Returns
        -------
        solution : Solution
        bent : ndarray of shape (K,), float64
            That part in the end.
        """
        loss, rows = self.problem.loss, self.problem.rows
        linear, trace = loss.linear, rows.trace
        # For the hinge, the pilots ended with a sharper corner, at which fewer rows are bent.
        iterates = self.start(beta, np.ones_like(bent) if linear else bent, factors)
        width = _MAX_WIDTH * _WIDTH_FACTOR**2 if beta.any() else _MAX_WIDTH
        begun = len(trace)
        while (
            any(iterate.unsolved for iterate in iterates)
            and len(trace) - begun < max_iter
            and self._corner_matters(width, iterates)
        ):
            stage = loss.smoothed(width) if linear else loss
            for iterate in iterates:
                iterate.begin_stage()
            while any(iterate.open for iterate in iterates) and len(trace) - begun < max_iter:
                self._step([iterate for iterate in iterates if iterate.open], stage)
                total = np.sum([iterate.objective for iterate in iterates])
                rows.record(objective=float(total))
            if linear:
                width *= _WIDTH_FACTOR
                for iterate in iterates:
                    iterate.bent *= _WIDTH_FACTOR
        with one_thread():
            beta = self.span.into @ np.stack([iterate.best for iterate in iterates], axis=1)
        objectives = np.array([iterate.objective for iterate in iterates])
        gaps = objectives - np.array([iterate.floor for iterate in iterates])
        converged = not any(iterate.unsolved for iterate in iterates)
        solution = Solution(beta, objectives, gaps, len(trace) - begun, converged)
        return solution, np.array([iterate.bent for iterate in iterates])

    def _corner_matters(self, width: float, iterates: list[Iterate]) -> bool:
        """Whether the corner of the hinge costs at least a thousandth of what is tolerated."""
        if not self.problem.loss.linear:
            return True
        floor = min(iterate.floor for iterate in iterates)
        return self.problem.lam * width >= 2e-3 * self.tol * floor

    def _step(self, iterates: list[Iterate], stage: MarginLoss) -> None:
        """Read once: accept the last steps or shorten them, and take new ones."""
        rows, loss = self.problem.rows, self.problem.loss
        gamma = np.stack([iterate.gamma for iterate in iterates]).T
        moves = np.stack([iterate.move for iterate in iterates]).T
        moved = bool(moves.any())
        lengths = (_FINE if loss.linear else LENGTHS) if moved else (1.0,)
        # So many rows that `max_hessian_rows` of them have a second derivative: of the hinge few
        # do, and of smooth losses not all.
        n_rows = rows.n_rows
        bent = np.array([iterate.bent for iterate in iterates])
        share = np.minimum(1.0, self.max_hessian_rows / np.maximum(1.0, bent * n_rows))
        # While steps by known factors lead far, second derivatives wait.
        known = all(iterate.factor is not None for iterate in iterates)
        with one_thread():
            query = ObjectiveQuery(
                self.problem.core,
                stage,
                rows.classes,
                self.span.into @ gamma,
                problems=np.array([iterate.index for iterate in iterates]),
                move=self.span.into @ moves if moved else None,
                lengths=lengths,
                truth=loss,
                gradient="rows",
                hessian=None if known else share,
                seed=self.seed,
                fold=rows.reads,
            )
        terms = rows.evaluate(query)
        for i, iterate in enumerate(iterates):
            if not known:
                iterate.bent = float(terms.bent[i] / (share[i] * n_rows))
                iterate.factor = None
            along = self._along(iterate, terms.losses[:, i], lengths)
            sufficient = iterate.before + _SUFFICIENT * iterate.slope
            if np.isfinite(iterate.before) and iterate.move.any() and not along[0] <= sufficient:
                self._shorten(iterate, along, lengths)
            else:
                self._renew(iterate, float(along[0]), terms, i)

    def _along(
        self, iterate: Iterate, losses: FloatArray, lengths: tuple[float, ...]
    ) -> FloatArray:
        """Objectives at parts of the move that ended at gamma."""
        points = (iterate.gamma - (1.0 - t) * iterate.move for t in lengths)
        norms = np.array([point @ point for point in points])
        return np.asarray(0.5 * norms + self.problem.factor * losses)

    def _shorten(self, iterate: Iterate, along: FloatArray, lengths: tuple[float, ...]) -> None:
        """Go back to the best point along the move; its gradient is for the next read."""
        best = int(np.argmin(along))
        start = iterate.gamma - iterate.move
        if along[best] < iterate.before:
            iterate.gamma = start + lengths[best] * iterate.move
        else:
            iterate.gamma = start
            # Lost in rounding, or else the Hessian of all rows gives a better step.
            lost = -iterate.slope <= _ROUNDING * iterate.before
            iterate.bent = 0.0
            iterate.failures += 1
            failed = self.problem.loss.linear and iterate.failures >= _FAILURES
            iterate.open = not (lost or failed)
            iterate.unsolved = not lost
        iterate.move = np.zeros_like(start)
        iterate.before, iterate.factor = np.inf, None

    def _renew(self, iterate: Iterate, objective: float, terms: ObjectiveTerms, i: int) -> None:
        """Accept gamma, and move on by a Newton step unless it is good enough.

        `objective` is that of the stage, and `i` the column of the problem among the terms.
        """
        linear, factor = self.problem.loss.linear, self.problem.factor
        into, gamma = self.span.into, iterate.gamma
        with one_thread():
            gradient = gamma + factor * (into.T @ terms.gradient[:, i])
        above = 0.5 * float(gradient @ gradient)
        truth = 0.5 * float(gamma @ gamma) + factor * float(terms.truth[i])
        # The least value of the stage bounds nothing where its loss is not the true one; the
        # slopes of the smoothed hinge are a feasible point of the hinge's dual problem.
        inner = gamma - gradient
        gained, paid = -factor * float(terms.slopes[i]), float(inner @ inner)
        part = min(1.0, gained / paid) if paid > 0.0 else 1.0  # as good as any part of it
        dual = part * gained - 0.5 * part**2 * paid
        iterate.floor = max(iterate.floor, dual if linear else truth - above)
        if truth < iterate.objective:
            iterate.objective, iterate.best = truth, gamma
        iterate.move = np.zeros_like(gamma)
        if iterate.objective - iterate.floor <= self.tol * iterate.floor:
            iterate.unsolved = iterate.open = False
            return
        with one_thread():
            if iterate.factor is not None:
                of_beta = self.span.gram @ (into @ gamma) + factor * terms.gradient[:, i]
                move = -self.span.coordinates(scipy.linalg.cho_solve(iterate.factor, of_beta))
            else:
                hessian = factor * (into.T @ whole_matrix(terms.hessian[i]) @ into)
                hessian[np.diag_indices_from(hessian)] += 1.0
                move = -_solved(hessian, gradient)
        slope = float(gradient @ move)
        if -slope > _QUICK * -iterate.slope:
            iterate.factor = None
        # A step would gain half of -slope. The corner costs as much at the hinge's own best point
        # as here, or somewhat more, for there rows lie in the middle of it.
        corner = objective - truth if linear else 0.0
        if -slope + 2.0 * corner <= self.tol * truth:
            iterate.unsolved = iterate.open = False
        elif linear and -slope <= 0.2 * corner:
            iterate.open = False  # the corner costs more than this stage can gain
        else:
            iterate.before, iterate.slope = objective, slope
            iterate.move, iterate.gamma = move, gamma + move


def _solved(hessian: FloatArray, gradient: FloatArray) -> FloatArray:
    """Solve with a matrix whose eigenvalues are one at least, were it not for rounding."""
    if not np.isfinite(hessian).all():
        raise scores_error()
    try:
        factor = scipy.linalg.cho_factor(hessian, lower=True)
    except np.linalg.LinAlgError:
        # With many core points and little penalty, the basis magnifies rounding beyond that one.
        values, vectors = np.linalg.eigh((hessian + hessian.T) / 2.0)
        return np.asarray(vectors @ ((vectors.T @ gradient) / np.maximum(values, 1.0)))
    return np.asarray(scipy.linalg.cho_solve(factor, gradient))


def solve_exact(
    problem: KernelProblem,
    *,
    beta: FloatArray,
    tol: float = 1e-4,
    max_iter: int = 100,
    seed: int = 0,
) -> Solution:
    r"""Minimise over the span of the core points.

    Parameters
    ----------
    problem : KernelProblem
        The hinge is smoothed: its corner is rounded, less from stage to stage, each of which
        starts from the one before.
    beta : ndarray of shape (r, K), float64
        Where to begin.
    tol : float, default=1e-4
        A problem is solved when Newton's method promises less than half this part of its
        objective from a further step, and from a sharper corner, or when ``gaps`` prove as much.
        (The proof alone takes twice as many reads: it uses of the Hessian only that it is at
        least the identity.)
    max_iter : int, default=100
        Reads at most.
    seed : int, default=0
        Of the random share of all rows that Hessians are estimated from, and of the pilots.

    Returns
    -------
    Solution

    Notes
    -----
    Hessians are estimated from about ``max(20,000, 100 r)`` rows with a second derivative;
    gradients and objectives are of all rows always, and so are the gaps.

    Where `beta` is zero, problems of few rows come first, each of four times as many as the one
    before, up to 20,000 or half the rows of the Hessians, and a quarter of all. They are drawn in
    a read that computes nothing, and where the last one ends, two or three reads are left.

    References
    ----------
    Chapelle (2007), Training a support vector machine in the primal.
    """
    max_hessian_rows = max(_MIN_HESSIAN_ROWS, 100 * len(problem.core))
    newton = Newton(problem, Span.of(problem.core), tol, max_hessian_rows, seed)
    bent, factors = np.ones(beta.shape[1]), None
    if not beta.any():
        if problem.loss.linear:
            beta, bent = newton.pilots(beta)
        else:
            beta, bent, factors = newton.held(beta)
    return newton.solve(beta, bent, max_iter, factors)[0]
