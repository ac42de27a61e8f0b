r"""Coreset stochastic variance-reduced gradient: Algorithm 1, out of core.

The model keeps :math:`w = \sum_j \beta_j \varphi(c_j)` and every row's gradient
:math:`a_i \varphi(x_i)` stands at its core point. The full gradient at a snapshot is one read,
in which a sample of rows for the inner steps is drawn too: one epoch is one read.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from daskcoreset.core.blocks import Block
from daskcoreset.core.linalg import one_thread
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.sampling import draw_with_replacement
from daskcoreset.core.typing import FloatArray, IndexArray
from daskcoreset.estimators.kernel.kernels import Isotropic, KernelMap, Solution, Span
from daskcoreset.estimators.kernel.losses import MarginLoss
from daskcoreset.estimators.kernel.objective import ObjectiveQuery, ObjectiveTerms
from daskcoreset.estimators.kernel.rows import ROOT, TrainingRows
from daskcoreset.estimators.kernel.sgd import Sample, reduced_steps

SAMPLE_NUMBERS = 2**23
"""Kernel values of the rows for the inner steps: 64 MiB."""

MAX_STEPS = 1_000_000
"""Inner steps of an epoch at most, about a second for 300 core points."""

_ORDER = 2**30
"""Added to the number of an epoch where the order of steps is drawn."""


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
    the iterates. (The theorem's gradients are those of losses without lambda.)

    Parameters
    ----------
    kernel : Isotropic
    diameter : float
        Delta of the cover.
    loss : MarginLoss
    lam : float

    Returns
    -------
    float

    Examples
    --------
    >>> from daskcoreset.estimators.kernel.losses import LOSSES
    >>> round(approximation_bound(Isotropic("rbf"), 0.2, LOSSES["hinge"], 2.0), 4)
    0.8464
    """
    largest = loss.slope_bound(loss.safe_radius(lam))
    return 1.5 * lam * largest * feature_diameter(kernel, diameter)


def solve_csvrg(
    rows: TrainingRows,
    core: KernelMap,
    loss: MarginLoss,
    lam: float,
    *,
    beta: FloatArray,
    n_epochs: int = 20,
    option: Literal["I", "II"] = "I",
    eta: float | None = None,
    n_inner: int | None = None,
    tol: float = 1e-4,
    seed: int = 0,
) -> Solution:
    r"""Run CSVRG.

    Parameters
    ----------
    rows : TrainingRows
    core : KernelMap
        Core points of a delta-cover of the rows.
    loss : MarginLoss
    lam : float
        Lambda.
    beta : ndarray of shape (r, K), float64
        Where to begin.
    n_epochs : int, default=20
        Snapshots that inner steps start from; each costs one read, and two more reads tell the
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
        being near the least one: it has converged if, in addition, the certificate says that
        the objectives are above the least ones in the span by no more than this part of them.
    seed : int, default=0

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
    run = _Descent(rows, core, loss, lam, n_inner=n_inner, eta=eta, seed=seed)
    best, lowest = beta, np.inf
    first: ObjectiveTerms | None = None
    objectives = np.full(beta.shape[1], np.inf)
    previous = np.inf
    for epoch in range(n_epochs + 1):
        terms = run.evaluate(beta, epoch, table=first is None, draw=epoch < n_epochs)
        first = first or terms
        values, gradient, norm = run.at(beta, terms)
        objective = float(values.sum())
        rows.record(objective=objective, gradient=norm)
        if objective < lowest:
            best, lowest, objectives = beta, objective, values
        if epoch == n_epochs or abs(previous - objective) <= tol * abs(objective):
            break
        previous = objective
        beta = run.epoch(beta, gradient, terms.drawn, epoch, option)
    assert first is not None  # noqa: S101 - there was a read
    assert first.table is not None  # noqa: S101 - the first one gave it
    radius = float(np.sqrt(first.farthest))
    gaps = run.gaps(best)
    converged = bool((gaps <= tol * (objectives - gaps)).all())
    return Solution(best, objectives, gaps, epoch, converged, first.table, radius)


class _Descent:
    """What stays the same over the epochs."""

    def __init__(
        self,
        rows: TrainingRows,
        core: KernelMap,
        loss: MarginLoss,
        lam: float,
        *,
        n_inner: int | None,
        eta: float | None,
        seed: int,
    ) -> None:
        self.rows, self.core, self.loss, self.lam, self.seed = rows, core, loss, lam, seed
        constant = smoothness(loss, lam)
        self.eta = 0.05 / constant if eta is None else eta
        if n_inner is None:
            n_inner = min(MAX_STEPS, int(np.ceil(100.0 * constant)))
        self.n_inner = n_inner
        self.radius = loss.safe_radius(lam)
        with one_thread():
            self.gram = core.gram()
        max_rows = max(1, SAMPLE_NUMBERS // len(core))
        # All rows, once for all, where they fit; else as many as there are steps.
        self.count = None if rows.n_rows <= max_rows else min(self.n_inner, max_rows)
        self.sample: Sample | None = None

    def evaluate(self, beta: FloatArray, epoch: int, *, table: bool, draw: bool) -> ObjectiveTerms:
        """Read once: objective, full gradient at the core points, rows for the inner steps."""
        draw = draw and not (self.count is None and self.sample is not None)
        query = ObjectiveQuery(
            self.core,
            self.loss,
            self.rows.classes,
            beta,
            gradient="cells",
            table=table,
            draw=self.rows.quotas(self.seed, epoch, self.count) if draw else None,
        )
        return self.rows.evaluate(query)

    def at(self, beta: FloatArray, terms: ObjectiveTerms) -> tuple[FloatArray, FloatArray, float]:
        """Objectives, full gradient, and its norm."""
        factor = self.lam / self.rows.weight
        gradient = beta + factor * terms.gradient
        with one_thread():
            norms = np.einsum("jk,jk->k", beta, self.gram @ beta)
            squares = np.einsum("jk,jk->k", gradient, self.gram @ gradient)
        objectives = 0.5 * norms + factor * terms.losses[0]
        return objectives, gradient, float(np.sqrt(max(0.0, squares.sum())))

    def gaps(self, beta: FloatArray) -> FloatArray:
        """Read once more: how far, at most, objectives are above the least ones in the span."""
        query = ObjectiveQuery(self.core, self.loss, self.rows.classes, beta, gradient="rows")
        terms = self.rows.evaluate(query)
        span = Span.of(self.core)
        with one_thread():
            pull = span.into.T @ terms.gradient
            gradient = span.coordinates(beta) + self.lam / self.rows.weight * pull
        return np.asarray(0.5 * np.square(gradient).sum(axis=0))

    def epoch(
        self,
        beta: FloatArray,
        gradient: FloatArray,
        drawn: Block | None,
        epoch: int,
        option: str,
    ) -> FloatArray:
        """Take the inner steps of all problems."""
        if drawn is not None:
            self.sample = Sample.of(drawn, self.core, self.rows.classes)
        sample = self.sample
        assert sample is not None  # noqa: S101 - the first epoch drew it
        rng = stream(self.seed, Stage.DESCENT, ROOT, _ORDER + epoch)
        order = self._order(sample, rng)
        keep = self.n_inner - 1 if option == "I" else int(rng.integers(self.n_inner))
        return np.stack(
            [
                reduced_steps(
                    sample,
                    k,
                    order,
                    snapshot=np.ascontiguousarray(beta[:, k]),
                    gradient=gradient[:, k],
                    gram=self.gram,
                    loss=self.loss,
                    lam=self.lam,
                    eta=self.eta,
                    radius=self.radius,
                    keep=keep,
                )
                for k in range(beta.shape[1])
            ],
            axis=1,
        )

    def _order(self, sample: Sample, rng: np.random.Generator) -> IndexArray:
        if self.count is None:
            return draw_with_replacement(sample.weights, self.n_inner, rng)
        if self.n_inner <= len(sample):
            return np.asarray(rng.permutation(len(sample))[: self.n_inner], dtype=np.int64)
        return np.asarray(rng.integers(len(sample), size=self.n_inner), dtype=np.int64)
