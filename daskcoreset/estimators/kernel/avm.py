r"""Approximation vector machines: one pass of stochastic gradient steps on the core points."""

from __future__ import annotations

import numpy as np

from daskcoreset.core.blocks import Block
from daskcoreset.estimators.kernel.sgd import Sample, averaged_steps
from daskcoreset.estimators.kernel.isotropic import KernelMap
from daskcoreset.estimators.kernel.losses import MarginLoss
from daskcoreset.estimators.kernel.objective import Question
from daskcoreset.estimators.kernel.rows import ROOT, Rows
from daskcoreset.estimators.kernel.span import Solution
from daskcoreset.core.threads import one_thread
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.sampling import draw_with_replacement
from daskcoreset.core.typing import IndexArray

__all__ = ["solve_avm"]

SAMPLE_NUMBERS = 2**23
"""Kernel values, and numbers of rows, held for the steps of one read: 64 MiB each."""

_ORDER = 2**30
"""Added to the number of a read where the order of steps is drawn."""


def solve_avm(
    rows: Rows,
    core: KernelMap,
    loss: MarginLoss,
    lam: float,
    *,
    n_steps: int,
    seed: int = 0,
) -> Solution:
    r"""Take steps of length 1/t from zero, and average the second half of the iterates.

    Parameters
    ----------
    rows : Rows
    core : KernelMap
    loss : MarginLoss
    lam : float
        Lambda.
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
    Le et al. (2017), Approximation vector machines for large-scale online learning.
    """
    k = 1 if len(rows.classes) == 2 else len(rows.classes)
    beta, total = np.zeros((k, len(core))), np.zeros((k, len(core)))
    with one_thread():
        gram = core.gram()
    ball, burn_in = loss.safe_radius(lam), n_steps // 2
    fit = max(1, SAMPLE_NUMBERS // max(core.points.shape))
    everything = rows.n_rows <= fit
    taken, part = 0, 0
    sample: Sample | None = None
    while taken < n_steps:
        count = n_steps - taken if everything else min(fit, n_steps - taken)
        if sample is None or not everything:
            drawn: Block = rows.draw(seed, part, None if everything else count)
            sample = Sample.of(drawn, core, rows.classes)
        rng = stream(seed, Stage.DESCENT, ROOT, _ORDER + part)
        order = _order(sample, count, rng, everything=everything)
        for problem in range(k):
            averaged_steps(
                sample,
                problem,
                order,
                gram=gram,
                loss=loss,
                lam=lam,
                radius=ball,
                taken=taken,
                burn_in=burn_in,
                beta=beta[problem],
                total=total[problem],
            )
        taken += count
        part += 1
        if taken < n_steps:
            rows.note(steps=taken)
    mean = total.T / (n_steps - burn_in)
    asked = Question(core, loss, rows.classes, mean, table=True)
    found = rows.ask(asked)
    with one_thread():
        norms = np.einsum("jk,jk->k", mean, gram @ mean)
    objectives = 0.5 * norms + lam / rows.weight * found.losses[0]
    rows.note(steps=taken, objective=float(objectives.sum()))
    assert found.table is not None  # noqa: S101 - asked for
    radius = float(np.sqrt(found.farthest))
    return Solution(mean, objectives, None, taken, None, found.table, radius)


def _order(sample: Sample, count: int, rng: np.random.Generator, *, everything: bool) -> IndexArray:
    if everything:
        return draw_with_replacement(sample.weights, count, rng)
    return np.asarray(rng.permutation(len(sample)), dtype=np.int64)
