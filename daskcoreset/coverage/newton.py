r"""The problem restricted to the span of the core points, solved exactly by Newton's method.

.. math:: \min_\beta\; \tfrac12 \beta^T K \beta
          + \frac{\lambda}{M} \sum_i u_i\, l(y_i\, k_i^T \beta),
          \qquad K_{jl} = k(c_j, c_l), \quad k_{ij} = k(x_i, c_j),

with the true loss at the true rows. With :math:`K = V S V^T` and
:math:`\gamma = S^{1/2} V^T \beta` the first term is :math:`|\gamma|^2 / 2`: every Hessian is at
least the identity, and :math:`|\nabla|^2 / 2` bounds how far the objective is above its least
value. One read gives the losses along the last step, the gradient and the Hessian at its end;
only where the whole step was too long, another read is needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from daskcoreset.coverage.isotropic import KernelMap
from daskcoreset.coverage.losses import MarginLoss
from daskcoreset.coverage.objective import Answer, Question
from daskcoreset.coverage.rows import Rows
from daskcoreset.coverage.span import Solution, Span
from daskcoreset.coverage.threads import one_thread
from daskcoreset.inputs import row_blocks
from daskcoreset.typing import AnyArray, FloatArray

__all__ = ["solve_exact"]

LENGTHS = (1.0, 0.5, 0.25, 0.1, 0.03, 0.01, 0.001)
"""Parts of a step at which losses are summed in the read that looks at its end."""

_FINE = tuple(0.6**i for i in range(20))
"""The same for the hinge, whose whole steps are often too long."""

_SUFFICIENT = 1e-4
"""Part of the decrease that the gradient promises which a whole step must bring (Armijo)."""

_ROUNDING = 1e-9
"""Part of the objective below which a decrease cannot be told from rounding."""

_PILOT = 2**30 - 1
"""Address of the draw of rows to begin with."""

_BENDING = 20_000
"""Rows that Hessians of few core points are made from."""

_RUNGS, _FEWEST, _ROUGH = 4, 2_000, 3e-3
"""Every pilot has so many times the rows of the one before, the first at least so many, and all
of them end where a step would gain less than this part: their rows tell no more."""

_WIDEST, _NARROWER = 0.5, 0.25
"""Half the width of the parabola in the hinge's corner at first, and from stage to stage."""


@dataclass(eq=False)
class _State:
    """Where the problems stand: every array has a column or an entry for each."""

    gamma: FloatArray  # (q, K)
    move: FloatArray  # (q, K): what led here, zero where the place is known to be good
    before: FloatArray  # (K,): objective before the move
    slope: FloatArray  # (K,): derivative along the move where it began
    floor: FloatArray  # (K,): lower bound of the true objective
    todo: AnyArray  # (K,) bool: whether the gap is too large
    open: AnyArray  # (K,) bool: whether the stage is not over yet


def solve_exact(
    rows: Rows,
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
    rows : Rows
    core : KernelMap
    loss : MarginLoss
        The hinge is smoothed: its corner becomes a parabola that narrows from stage to stage,
        each starting from the one before, until a feasible point of the dual problem proves
        that the hinge's own objective is good enough.
    lam : float
        Lambda.
    beta : ndarray of shape (r, K), float64
        Where to begin.
    tol : float, default=1e-4
        A problem is solved when Newton's method promises less than half this part of its
        objective from a further step, or when ``gaps`` prove as much. (The proof alone takes
        twice as many reads: it knows of the Hessian only that it is at least the identity.)
    max_iter : int, default=100
        Reads at most.
    hessian_rows : int, optional
        Rows that second derivatives are estimated from, by a random share of all; by default
        ``max(20,000, 100 r)``. Gradients and objectives are of all rows always, and so are
        the gaps.
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
    share = min(1.0, most / max(1, rows.n_rows))
    if pilots and not beta.any():
        beta = _pilots(rows, core, loss, lam, beta, max(_BENDING, most // 2), tol, seed)
    problem = _Newton(rows, core, span, lam, share=share, seed=seed, linear=loss.linear)
    state = problem.start(beta)
    begun = len(rows.trace)
    first: Answer | None = None
    width = _WIDEST if loss.linear else 0.0
    # A corner that costs a thousandth of what is tolerated can be no hindrance any more.
    while (
        state.todo.any()
        and len(rows.trace) - begun < max_iter
        and (not loss.linear or lam * width >= 4e-3 * tol * state.floor.min())
    ):
        stage = loss.smoothed(width) if loss.linear else loss
        state.open = state.todo.copy()
        state.move[:] = 0.0
        while state.open.any() and len(rows.trace) - begun < max_iter:
            found = problem.step(state, stage, loss, tol, table=first is None)
            first = found if first is None else first
            rows.note(objective=float(problem.objectives.sum()))
        width *= _NARROWER
    assert first is not None  # noqa: S101 - there was a read
    assert first.table is not None  # noqa: S101 - the first one gave it
    with one_thread():
        beta = span.into @ problem.best
    return Solution(
        beta,
        problem.objectives,
        problem.objectives - state.floor,
        len(rows.trace) - begun,
        not state.todo.any(),
        first.table,
        float(np.sqrt(first.farthest)),
    )


def _pilots(  # noqa: PLR0917 - for the one call above
    rows: Rows,
    core: KernelMap,
    loss: MarginLoss,
    lam: float,
    beta: FloatArray,
    most: int,
    tol: float,
    seed: int,
) -> FloatArray:
    """Solve on more and more drawn rows, for coefficients to begin with."""
    counts = [min(most, rows.n_rows // _RUNGS)]
    while counts[-1] // _RUNGS >= max(_FEWEST, 10 * len(core)):
        counts.append(counts[-1] // _RUNGS)
    if counts[-1] < _FEWEST:
        return beta
    drawn = rows.draw(seed, _PILOT, counts[0])
    for rung in reversed(range(len(counts))):
        # They are drawn block by block: every fourth is as good a sample as all.
        part = drawn.take(np.arange(0, len(drawn), _RUNGS**rung))
        weights = np.full(len(part), rows.weight / len(part))
        few = row_blocks(part.points, part.labels, weights, chunks=len(part))
        sample = Rows(few, rows.classes, rows.weight, len(part))
        found = solve_exact(
            sample, core, loss, lam, beta=beta, tol=max(tol, _ROUGH), hessian_rows=len(part),
            seed=seed, pilots=False,
        )  # fmt: skip
        beta = found.beta
    return beta


class _Newton:
    """Steps of all problems side by side."""

    def __init__(
        self,
        rows: Rows,
        core: KernelMap,
        span: Span,
        lam: float,
        *,
        share: float,
        seed: int,
        linear: bool,
    ) -> None:
        self.rows, self.core, self.span = rows, core, span
        self.factor = lam / rows.weight
        self.share, self.seed, self.linear = share, seed, linear
        self.objectives = np.empty(0)  # with the true loss, at `best`
        self.best = np.empty((0, 0))

    def start(self, beta: FloatArray) -> _State:
        """Stand at given coefficients, with nothing known."""
        with one_thread():
            gamma = self.span.coordinates(beta)
        k = gamma.shape[1]
        self.objectives, self.best = np.full(k, np.inf), gamma.copy()
        unknown = np.full(k, np.inf)
        return _State(
            gamma,
            np.zeros_like(gamma),
            unknown,
            np.zeros(k),
            np.zeros(k),
            np.ones(k, dtype=bool),
            np.ones(k, dtype=bool),
        )

    def step(
        self, state: _State, stage: MarginLoss, truth: MarginLoss, tol: float, *, table: bool
    ) -> Answer:
        """Read once: accept the moves that led here, or shorten them, and make new ones."""
        which = np.flatnonzero(state.open)
        moves = state.move[:, which]
        gamma = state.gamma[:, which]
        moved = bool(moves.any())
        lengths = (_FINE if self.linear else LENGTHS) if moved else (1.0,)
        with one_thread():
            asked = Question(
                self.core,
                stage,
                self.rows.classes,
                self.span.into @ gamma,
                problems=which,
                move=self.span.into @ moves if moved else None,
                lengths=lengths,
                truth=truth,
                gradient="rows",
                hessian=self.share,
                table=table,
                seed=self.seed,
                fold=self.rows.reads,
            )
        found = self.rows.ask(asked)
        for i, k in enumerate(which):
            along = self._along(gamma[:, i], moves[:, i], found.losses[:, i], lengths)
            if np.isfinite(state.before[k]) and moves[:, i].any():
                enough = state.before[k] + _SUFFICIENT * state.slope[k]
                if not along[0] <= enough:
                    self._shorten(state, int(k), along, lengths)
                    continue
            self._renew(state, int(k), along[0], _Place.of(found, i), tol)
        return found

    def _along(
        self, gamma: FloatArray, move: FloatArray, losses: FloatArray, lengths: tuple[float, ...]
    ) -> FloatArray:
        """Objectives at parts of the move that ended at `gamma`."""
        places = (gamma - (1.0 - t) * move for t in lengths)
        norms = np.array([place @ place for place in places])
        return np.asarray(0.5 * norms + self.factor * losses)

    def _shorten(
        self, state: _State, k: int, along: FloatArray, lengths: tuple[float, ...]
    ) -> None:
        """Go back to the best place along the move; its gradient is for the next read."""
        best = int(np.argmin(along))
        start = state.gamma[:, k] - state.move[:, k]
        if along[best] < state.before[k]:
            state.gamma[:, k] = start + lengths[best] * state.move[:, k]
        else:
            state.gamma[:, k] = start
            # Lost in rounding, or else another share of the rows gives a better step.
            lost = -state.slope[k] <= _ROUNDING * state.before[k]
            state.open[k] = not (lost or self.linear)
            state.todo[k] = not lost
        state.move[:, k] = 0.0
        state.before[k] = np.inf

    def _renew(self, state: _State, k: int, objective: float, here: _Place, tol: float) -> None:
        """Take the place as it is, and move on by a Newton step unless it is good enough."""
        into, gamma = self.span.into, state.gamma[:, k].copy()
        with one_thread():
            gradient = gamma + self.factor * (into.T @ here.gradient)
        above = 0.5 * float(gradient @ gradient)
        truth = 0.5 * float(gamma @ gamma) + self.factor * here.truth
        # The least value of the stage bounds nothing where its loss is not the true one; the
        # slopes of the smoothed hinge are a feasible point of the hinge's dual problem.
        inner = gamma - gradient
        dual = -self.factor * here.slopes - 0.5 * float(inner @ inner)
        bound = dual if self.linear else truth - above
        state.floor[k] = max(state.floor[k], bound)
        if truth < self.objectives[k]:
            self.objectives[k], self.best[:, k] = truth, gamma
        if self.objectives[k] - state.floor[k] <= tol * state.floor[k]:
            state.todo[k] = state.open[k] = False
        elif self.linear and above <= 0.1 * (objective - truth):
            state.open[k] = False  # the corner costs more than this stage can gain
        state.move[:, k] = 0.0
        if not state.open[k]:
            return
        with one_thread():
            hessian = self.factor * (into.T @ here.hessian @ into)
            hessian[np.diag_indices_from(hessian)] += 1.0
            move = -_solved(hessian, gradient)
        slope = float(gradient @ move)
        if not self.linear and -slope <= tol * truth:  # the step would gain half of it
            state.todo[k] = state.open[k] = False
            return
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
    """What a read told of one problem where it stands."""

    truth: float
    slopes: float
    gradient: FloatArray
    hessian: FloatArray

    @classmethod
    def of(cls, found: Answer, i: int) -> _Place:
        assert found.hessian is not None  # noqa: S101 - asked for
        truth, slopes = float(found.truth[i]), float(found.slopes[i])
        return cls(truth, slopes, found.gradient[:, i], found.hessian[i])
