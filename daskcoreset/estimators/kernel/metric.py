"""Factors of columns in distances, learned by the descent of a pilot's objective."""

from __future__ import annotations

import numpy as np

from daskcoreset.core.blocks import Block, labels_of
from daskcoreset.core.deadline import check_time
from daskcoreset.core.linalg import dense, one_thread, tiles
from daskcoreset.core.moments import moments_of
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.estimators.kernel.held import HeldRows, HeldSolution
from daskcoreset.estimators.kernel.kernels import Isotropic, KernelMap
from daskcoreset.estimators.kernel.losses import LOSSES, MarginLoss
from daskcoreset.estimators.kernel.objective import signs_of

# Rows and core points of the pilot at most; half of the rows judge.
PILOT_ROWS, PILOT_POINTS = 8_000, 300

# Gamma times the sum of the variances where it begins.
_WIDTH = 2.0

# Steps in the logarithms of the factors at most, their length at first and in the end, and those
# after which there is an end unless the rows that judge have less loss.
_N_STEPS, _FIRST, _LAST, _PATIENCE = 16, 0.4, 0.1, 2

# Adam: how long gradients and their squares count, and what is added to their root.
_KEPT, _KEPT_SQUARES, _FLAT = 0.8, 0.9, 1e-3

# Tolerance of the pilot.
_TOL = 1e-2


def learned_scales(
    rows: Block, points: AnyArray, loss: MarginLoss, *, classes: AnyArray, lam: float
) -> tuple[FloatArray, float]:
    r"""Factor of every column, by which a pilot's least objective becomes smaller.

    The objective of a kernel machine at its solution has a simple derivative with respect to the
    factors: that at fixed coefficients. Steps go along it in the logarithms of the factors, on one
    half of the rows; the factors of the step with the least loss on the other half are taken, which
    may be the first, of equal ones. Of several problems every one counts the same, also that
    of a rare class.

    Parameters
    ----------
    rows : Block
        Weighted rows that stand for all, with labels, in an order of classes.
    points : ndarray of shape (r, d)
        Core points.
    loss : MarginLoss
        The squared hinge is taken for the hinge.
    classes : ndarray of shape (n_classes,)
    lam : float

    Returns
    -------
    scales : ndarray of shape (d,), float64
        They leave the sum of the variances of the columns as it is; zero for a constant column.
    gamma : float
        That of the kernel "rbf" with these factors.

    References
    ----------
    Chapelle, Vapnik, Bousquet and Mukherjee (2002), Choosing multiple parameters for support
    vector machines. Kingma and Ba (2015), Adam: a method for stochastic optimization.

    Examples
    --------
    >>> X = np.random.default_rng(0).random((2000, 3))
    >>> y = X[:, 1] > 0.5
    >>> rows = Block(X, np.ones(2000), y).take(np.argsort(y, kind="stable"))
    >>> scales, gamma = learned_scales(
    ...     rows, X[:100], LOSSES["odm"], classes=np.array([False, True]), lam=2000.0
    ... )
    >>> bool(scales[1] > 5 * max(scales[0], scales[2])), gamma > 0
    (True, True)
    """
    variances = moments_of(rows.points, rows.weights).m2 / float(rows.weights.sum())
    total = float(variances.sum())
    if not total > 0.0:
        return np.ones(len(variances)), 1.0
    pilot = _Pilot(rows, np.asarray(points, dtype=np.float64), loss, classes, lam)
    found = _descended(pilot, np.where(variances > 0.0, np.sqrt(_WIDTH / total), 0.0))
    gamma = float(found**2 @ variances) / total
    return found / np.sqrt(gamma), gamma


def _descended(pilot: _Pilot, scales: FloatArray) -> FloatArray:
    """Take steps, and return the factors that were judged best."""
    logs = np.log(np.where(scales > 0.0, scales, 1.0))
    mean, squares = np.zeros(len(logs)), np.zeros(len(logs))
    best, least, since = scales, np.inf, 0
    for step in range(_N_STEPS):
        check_time("a metric was being learned", "pass a smaller size")
        judged, slopes = pilot.evaluate(scales)
        since += 1
        if judged < least:
            best, least, since = scales, judged, 0
        if since >= _PATIENCE or not slopes.any():
            break
        mean = _KEPT * mean + (1.0 - _KEPT) * slopes
        squares = _KEPT_SQUARES * squares + (1.0 - _KEPT_SQUARES) * slopes**2
        root = np.sqrt(squares / (1.0 - _KEPT_SQUARES ** (step + 1)))
        direction = mean / (1.0 - _KEPT ** (step + 1)) / (root + _FLAT * np.abs(slopes).max())
        logs = logs - (_FIRST + (_LAST - _FIRST) * step / _N_STEPS) * direction
        scales = np.where(scales > 0.0, np.exp(logs), 0.0)
    return best


class _Pilot:
    """A machine of few rows and core points, solved anew for every set of factors."""

    def __init__(
        self, rows: Block, points: FloatArray, loss: MarginLoss, classes: AnyArray, lam: float
    ) -> None:
        # In an order of classes every second row has its share of each.
        self.rows, self.judges = (rows.take(np.arange(i, len(rows), 2)) for i in (0, 1))
        self.points = points
        self.loss = LOSSES["squared_hinge"] if loss.linear else loss
        self.classes, self.factor = classes, lam / float(self.rows.weights.sum())
        n_problems = signs_of(classes[:1], classes).shape[1]
        self.beta = np.zeros((n_problems, len(points)))
        self.first: FloatArray | None = None  # losses of the first evaluation

    def evaluate(self, scales: FloatArray) -> tuple[float, FloatArray]:
        """Solve, and return the loss of the other rows and the slopes of the objective."""
        core = KernelMap(Isotropic("rbf", 1.0), self.points, scales)
        held = HeldRows.of(core, self.rows, self.classes, self.loss, self.factor)
        found = [held.solve(k, beta, _TOL) for k, beta in enumerate(self.beta)]
        self.beta = np.stack([one.beta for one in found])
        losses = self._judged(core)
        if self.first is None:
            self.first = np.maximum(losses, np.finfo(np.float64).tiny)
        slopes = np.zeros(len(scales))
        for k, one in enumerate(found):
            slopes += self._slopes(core, held, k, one) / self.first[k]
        return float((losses / self.first).sum()), slopes

    def _judged(self, core: KernelMap) -> FloatArray:
        """Losses of the rows that judge."""
        rows = self.judges
        with one_thread():
            values = core.held(rows.points) @ self.beta.T.astype(np.float32)
        margins = signs_of(labels_of(rows), self.classes) * values
        return np.asarray(rows.weights @ self.loss.value(margins))

    def _slopes(self, core: KernelMap, held: HeldRows, k: int, found: HeldSolution) -> FloatArray:
        """Slopes of the objective along the logarithms of the factors, at fixed coefficients.

        The kernel of a row and a core point has the slope ``- 2 k s^2 (x - c)^2``.
        """
        beta, slopes = found.beta, held.slopes(k, found.margins)
        centers, decided = core.centers, held.signs[:, k] * found.margins
        of_gram = held.gram * np.outer(beta, beta)
        with one_thread():
            of_points = of_gram.sum(axis=1) + beta * held.products(slopes)
            sums = of_points @ np.square(centers)
            sums -= np.einsum("ij,ij->j", centers, of_gram @ centers)
            ahead = (beta[:, np.newaxis] * centers).astype(np.float32)
            for part in tiles(*self.rows.points.shape):
                inner = dense(self.rows.points[part]) - self.points.mean(axis=0)
                inner *= core.scales
                u = slopes[part]
                sums += (u * decided[part]) @ np.square(inner)
                sums -= 2.0 * (u @ (inner * (held.values[part] @ ahead)))
        return np.asarray(-2.0 * sums)
