"""The problem restricted to the span of the core points, solved by Newton's method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from daskcoreset.core.linalg import one_thread
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.estimators.kernel.kernels import KernelMap, Solution, Span
from daskcoreset.estimators.kernel.losses import MarginLoss
from daskcoreset.estimators.kernel.objective import ObjectiveQuery, ObjectiveTerms
from daskcoreset.estimators.kernel.rows import TrainingRows
from daskcoreset.inputs.blocks import row_blocks

LENGTHS = (1.0, 0.5, 0.25, 0.1, 0.03, 0.01, 0.001)

"""Parts of a step at which losses are summed in the read that looks at its end."""

_FINE = tuple(0.6**i for i in range(20))

"""The same for the hinge, whose whole steps are often too long."""

_SUFFICIENT = 1e-4

"""Part of the decrease that the gradient promises which a whole step must bring (Armijo)."""

_ROUNDING = 1e-9

"""Part of the objective below which a decrease cannot be told from rounding."""

_FAILURES = 3

"""Steps without any length that is better, after which a stage of the hinge is over."""


@dataclass(eq=False)
class State:
    """Where the problems stand: every array has a column or an entry for each."""

    gamma: FloatArray  # (q, K)
    move: FloatArray  # (q, K): what led here, zero where the place is known to be good
    before: FloatArray  # (K,): objective before the move
    slope: FloatArray  # (K,): derivative along the move where it began
    floor: FloatArray  # (K,): lower bound of the true objective
    todo: AnyArray  # (K,) bool: whether the gap is too large
    open: AnyArray  # (K,) bool: whether the stage is not over yet
    failures: IndexArray  # (K,): steps in this stage of which no length was better


class Newton:
    """Steps of all problems side by side."""

    def __init__(
        self,
        rows: TrainingRows,
        core: KernelMap,
        span: Span,
        lam: float,
        *,
        most: int,
        bent: FloatArray,
        seed: int,
        linear: bool,
    ) -> None:
        self.rows, self.core, self.span = rows, core, span
        self.factor = lam / rows.weight
        self.most, self.seed, self.linear = most, seed, linear
        self.bent = bent.copy()  # part of the rows that have a second derivative, likely
        self.objectives = np.empty(0)  # with the true loss, at `best`
        self.best = np.empty((0, 0))

    def start(self, beta: FloatArray) -> State:
        """Stand at given coefficients, with nothing known."""
        with one_thread():
            gamma = self.span.coordinates(beta)
        k = gamma.shape[1]
        self.objectives, self.best = np.full(k, np.inf), gamma.copy()
        unknown = np.full(k, np.inf)
        return State(
            gamma,
            np.zeros_like(gamma),
            unknown,
            np.zeros(k),
            np.zeros(k),
            np.ones(k, dtype=bool),
            np.ones(k, dtype=bool),
            np.zeros(k, dtype=np.int64),
        )

    def step(
        self, state: State, stage: MarginLoss, truth: MarginLoss, tol: float, *, table: bool
    ) -> ObjectiveTerms:
        """Read once: accept the moves that led here, or shorten them, and make new ones."""
        which = np.flatnonzero(state.open)
        moves = state.move[:, which]
        gamma = state.gamma[:, which]
        moved = bool(moves.any())
        lengths = (_FINE if self.linear else LENGTHS) if moved else (1.0,)
        # So many that `most` of them have one: of the hinge few do, and of smooth losses not all.
        n_rows = self.rows.n_rows
        share = np.minimum(1.0, self.most / np.maximum(1.0, self.bent[which] * n_rows))
        with one_thread():
            query = ObjectiveQuery(
                self.core,
                stage,
                self.rows.classes,
                self.span.into @ gamma,
                problems=which,
                move=self.span.into @ moves if moved else None,
                lengths=lengths,
                truth=truth,
                gradient="rows",
                hessian=share,
                table=table,
                seed=self.seed,
                fold=self.rows.reads,
            )
        terms = self.rows.evaluate(query)
        self.bent[which] = terms.bent / (share * n_rows)
        for i, k in enumerate(which):
            along = self._along(gamma[:, i], moves[:, i], terms.losses[:, i], lengths)
            if np.isfinite(state.before[k]) and moves[:, i].any():
                enough = state.before[k] + _SUFFICIENT * state.slope[k]
                if not along[0] <= enough:
                    self._shorten(state, int(k), along, lengths)
                    continue
            self._renew(state, int(k), along[0], _Place.of(terms, i), tol)
        return terms

    def _along(
        self, gamma: FloatArray, move: FloatArray, losses: FloatArray, lengths: tuple[float, ...]
    ) -> FloatArray:
        """Objectives at parts of the move that ended at `gamma`."""
        points = (gamma - (1.0 - t) * move for t in lengths)
        norms = np.array([point @ point for point in points])
        return np.asarray(0.5 * norms + self.factor * losses)

    def _shorten(self, state: State, k: int, along: FloatArray, lengths: tuple[float, ...]) -> None:
        """Go back to the best place along the move; its gradient is for the next read."""
        best = int(np.argmin(along))
        start = state.gamma[:, k] - state.move[:, k]
        if along[best] < state.before[k]:
            state.gamma[:, k] = start + lengths[best] * state.move[:, k]
        else:
            state.gamma[:, k] = start
            # Lost in rounding, or else the Hessian of all rows gives a better step.
            lost = -state.slope[k] <= _ROUNDING * state.before[k]
            self.bent[k] = 0.0
            state.failures[k] += 1
            state.open[k] = not (lost or (self.linear and state.failures[k] >= _FAILURES))
            state.todo[k] = not lost
        state.move[:, k] = 0.0
        state.before[k] = np.inf

    def _renew(self, state: State, k: int, objective: float, here: _Place, tol: float) -> None:
        """Take the place as it is, and move on by a Newton step unless it is good enough."""
        into, gamma = self.span.into, state.gamma[:, k].copy()
        with one_thread():
            gradient = gamma + self.factor * (into.T @ here.gradient)
        above = 0.5 * float(gradient @ gradient)
        truth = 0.5 * float(gamma @ gamma) + self.factor * here.truth
        # The least value of the stage bounds nothing where its loss is not the true one; the
        # slopes of the smoothed hinge are a feasible point of the hinge's dual problem.
        inner = gamma - gradient
        gained, paid = -self.factor * here.slopes, float(inner @ inner)
        part = min(1.0, gained / paid) if paid > 0.0 else 1.0  # as good as any part of it
        dual = part * gained - 0.5 * part**2 * paid
        bound = dual if self.linear else truth - above
        state.floor[k] = max(state.floor[k], bound)
        if truth < self.objectives[k]:
            self.objectives[k], self.best[:, k] = truth, gamma
        state.move[:, k] = 0.0
        if self.objectives[k] - state.floor[k] <= tol * state.floor[k]:
            state.todo[k] = state.open[k] = False
            return
        with one_thread():
            hessian = self.factor * (into.T @ here.hessian @ into)
            hessian[np.diag_indices_from(hessian)] += 1.0
            move = -_solved(hessian, gradient)
        slope = float(gradient @ move)
        # A step would gain half of -slope. The corner costs as much at the hinge's own best place
        # as here, or somewhat more, for there rows lie in the middle of it.
        corner = objective - truth if self.linear else 0.0
        if -slope + 2.0 * corner <= tol * truth:
            state.todo[k] = state.open[k] = False
        elif self.linear and -slope <= 0.2 * corner:
            state.open[k] = False  # the corner costs more than this stage can gain
        else:
            state.before[k], state.slope[k] = objective, slope
            state.move[:, k] = move
            state.gamma[:, k] = gamma + move


def _solved(hessian: FloatArray, gradient: FloatArray) -> FloatArray:
    """Solve with a matrix whose eigenvalues are one at least, were it not for rounding."""
    try:
        factor = scipy.linalg.cho_factor(hessian, lower=True)
    except np.linalg.LinAlgError:
        # With many core points and little penalty, the basis magnifies rounding beyond that one.
        values, vectors = np.linalg.eigh((hessian + hessian.T) / 2.0)
        return np.asarray(vectors @ ((vectors.T @ gradient) / np.maximum(values, 1.0)))
    return np.asarray(scipy.linalg.cho_solve(factor, gradient))


@dataclass(frozen=True, eq=False)
class _Place:
    """Terms of one problem at its present coefficients."""

    truth: float
    slopes: float
    gradient: FloatArray
    hessian: FloatArray

    @classmethod
    def of(cls, terms: ObjectiveTerms, i: int) -> _Place:
        assert terms.hessian is not None  # noqa: S101 - asked for
        truth, slopes = float(terms.truth[i]), float(terms.slopes[i])
        return cls(truth, slopes, terms.gradient[:, i], terms.hessian[i])


_PILOT = 2**30 - 1

"""Address of the draw of rows to begin with."""

_BENDING = 20_000

"""Rows that Hessians of few core points are made from."""

_RUNGS, _FEWEST, _ROUGH = 4, 2_000, 3e-3

"""Every pilot has so many times the rows of the one before, the first at least so many, and all
of them end where a step would gain less than this part: their rows tell no more."""

_WIDEST, _NARROWER = 2.0, 0.25

"""Width of the hinge's rounded corner at first, and from stage to stage."""


def solve_exact(
    rows: TrainingRows,
    core: KernelMap,
    loss: MarginLoss,
    lam: float,
    *,
    beta: FloatArray,
    tol: float = 1e-4,
    max_iter: int = 100,
    hessian_rows: int | None = None,
    seed: int = 0,
    pilots: bool = True,
) -> Solution:
    r"""Minimise over the span of the core points.

    Parameters
    ----------
    rows : TrainingRows
    core : KernelMap
    loss : MarginLoss
        The hinge is smoothed: its corner is rounded, less from stage to stage, each of which
        starts from the one before.
    lam : float
        Lambda.
    beta : ndarray of shape (r, K), float64
        Where to begin.
    tol : float, default=1e-4
        A problem is solved when Newton's method promises less than half this part of its
        objective from a further step, and from a sharper corner, or when ``gaps`` prove as much.
        (The proof alone takes twice as many reads: it knows of the Hessian only that it is at
        least the identity.)
    max_iter : int, default=100
        Reads at most.
    hessian_rows : int, optional
        Rows with a second derivative that Hessians are estimated from, by a random share of
        all rows; by default ``max(20,000, 100 r)``. Gradients and objectives are of all rows
        always, and so are the gaps.
    seed : int, default=0
        Of the share.
    pilots : bool, default=True
        Whether to solve problems of few rows first, where `beta` is zero.

    Returns
    -------
    Solution

    Notes
    -----
    With pilots, problems of few rows come first, each of four times as many as the one before,
    up to 20,000 or half of `hessian_rows`, and a quarter of all. They are drawn in a read that
    computes nothing, and where the last one ends, two or three reads are left.

    References
    ----------
    Chapelle (2007), Training a support vector machine in the primal.
    """
    span = Span.of(core)
    most = max(_BENDING, 100 * len(core)) if hessian_rows is None else hessian_rows
    bent = np.ones(beta.shape[1])
    if pilots and not beta.any():
        few = max(_BENDING, most // 2)
        beta, bent = _pilots(rows, core, span, loss, lam, beta=beta, most=few, tol=tol, seed=seed)
    return _solve(
        rows, core, span, loss, lam, beta=beta, bent=bent, most=most, tol=tol, max_iter=max_iter,
        seed=seed,
    )[0]  # fmt: skip


def _solve(
    rows: TrainingRows,
    core: KernelMap,
    span: Span,
    loss: MarginLoss,
    lam: float,
    *,
    beta: FloatArray,
    bent: FloatArray,
    most: int,
    tol: float,
    seed: int,
    max_iter: int = 100,
) -> tuple[Solution, FloatArray]:
    """Solve, and say which part of the rows has a second derivative in the end.

    `bent` is that part where it begins, likely.
    """
    width = _WIDEST * _NARROWER**2 if beta.any() else _WIDEST
    if loss.linear:
        bent = np.ones_like(bent)  # it was that of the pilots' last stage
    problem = Newton(rows, core, span, lam, most=most, bent=bent, seed=seed, linear=loss.linear)
    state = problem.start(beta)
    begun = len(rows.trace)
    first: ObjectiveTerms | None = None
    # A corner that costs a thousandth of what is tolerated can be no hindrance any more.
    while (
        state.todo.any()
        and len(rows.trace) - begun < max_iter
        and (not loss.linear or lam * width >= 2e-3 * tol * state.floor.min())
    ):
        stage = loss.smoothed(width) if loss.linear else loss
        state.open = state.todo.copy()
        state.move[:], state.failures[:] = 0.0, 0
        while state.open.any() and len(rows.trace) - begun < max_iter:
            terms = problem.step(state, stage, loss, tol, table=first is None)
            first = first or terms
            rows.record(objective=float(problem.objectives.sum()))
        if loss.linear:
            width *= _NARROWER
            problem.bent *= _NARROWER
    assert first is not None  # noqa: S101 - there was a read
    assert first.table is not None  # noqa: S101 - the first one gave it
    with one_thread():
        beta = span.into @ problem.best
    solution = Solution(
        beta,
        problem.objectives,
        problem.objectives - state.floor,
        len(rows.trace) - begun,
        not state.todo.any(),
        first.table,
        float(np.sqrt(first.farthest)),
    )
    return solution, problem.bent


def _pilots(
    rows: TrainingRows,
    core: KernelMap,
    span: Span,
    loss: MarginLoss,
    lam: float,
    *,
    beta: FloatArray,
    most: int,
    tol: float,
    seed: int,
) -> tuple[FloatArray, FloatArray]:
    """Solve on more and more drawn rows, for coefficients to begin with."""
    all_rows = bent = np.ones(beta.shape[1])
    counts = [min(most, rows.n_rows // _RUNGS)]
    while counts[-1] // _RUNGS >= max(_FEWEST, 10 * len(core)):
        counts.append(counts[-1] // _RUNGS)
    if counts[-1] < _FEWEST:
        return beta, bent
    drawn = rows.draw(seed, _PILOT, counts[0])
    for rung in reversed(range(len(counts))):
        # They are drawn block by block: every fourth is as good a sample as all.
        part = drawn.take(np.arange(0, len(drawn), _RUNGS**rung))
        weights = np.full(len(part), rows.weight / len(part))
        few = row_blocks(part.points, part.labels, weights, chunks=len(part))
        sample = TrainingRows(few, rows.classes, rows.weight, len(part))
        solution, bent = _solve(
            sample, core, span, loss, lam, beta=beta, bent=all_rows, most=len(part),
            tol=max(tol, _ROUGH), seed=seed,
        )  # fmt: skip
        beta = solution.beta
    return beta, bent
