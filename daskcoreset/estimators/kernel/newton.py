r"""The problem restricted to the span of the core points, solved exactly by Newton's method.

.. math:: \min_\beta\; \tfrac12 \beta^T K \beta
          + \frac{\lambda}{M} \sum_i u_i\, l(y_i\, k_i^T \beta),
          \qquad K_{jl} = k(c_j, c_l), \quad k_{ij} = k(x_i, c_j),

with the true loss at the true rows. With :math:`K = V S V^T` and
:math:`\gamma = S^{1/2} V^T \beta` the first term is :math:`|\gamma|^2 / 2`: every Hessian is at
least the identity, and :math:`|\nabla|^2 / 2` bounds how far the objective is above its least
value.
"""

from __future__ import annotations

import numpy as np

from daskcoreset.estimators.kernel.isotropic import KernelMap
from daskcoreset.estimators.kernel.losses import MarginLoss
from daskcoreset.estimators.kernel.newton_steps import Newton
from daskcoreset.estimators.kernel.objective import Answer
from daskcoreset.estimators.kernel.rows import Rows
from daskcoreset.estimators.kernel.span import Solution, Span
from daskcoreset.core.threads import one_thread
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.core.typing import FloatArray

__all__ = ["solve_exact"]

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
    rows: Rows,
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
    first: Answer | None = None
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
            found = problem.step(state, stage, loss, tol, table=first is None)
            first = found if first is None else first
            rows.note(objective=float(problem.objectives.sum()))
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
    rows: Rows,
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
        sample = Rows(few, rows.classes, rows.weight, len(part))
        found, bent = _solve(
            sample, core, span, loss, lam, beta=beta, bent=all_rows, most=len(part),
            tol=max(tol, _ROUGH), seed=seed,
        )  # fmt: skip
        beta = found.beta
    return beta, bent
