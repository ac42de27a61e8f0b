"""Factors of columns in distances, learned from the gradient of a pilot."""

from __future__ import annotations

import numpy as np

from daskcoreset.core.blocks import Block
from daskcoreset.core.linalg import dense_rows, product, thin_product
from daskcoreset.core.moments import moments_of
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.estimators.kernel.kernels import Isotropic, KernelMap
from daskcoreset.estimators.kernel.losses import MarginLoss
from daskcoreset.estimators.kernel.newton import solve_exact
from daskcoreset.estimators.kernel.objective import n_problems
from daskcoreset.estimators.kernel.rows import KernelProblem, TrainingRows

# Rows and core points of the pilot at most.
PILOT_ROWS, PILOT_POINTS = 5_000, 300

# Width of its kernel: gamma over one by the sum of the variances. In a narrow kernel all columns
# have a slope, for every row is far from the core points.
_WIDTH = 0.5

# Tolerance of the pilot, whose gradient is averaged.
_TOL = 1e-2


def learned_scales(
    rows: Block,
    points: AnyArray,
    loss: MarginLoss,
    *,
    classes: AnyArray,
    lam: float,
    seed: int,
) -> FloatArray:
    r"""Factor of every column: the root of its mean squared slope of a pilot's decision values.

    The decision values of a pilot, fitted to few rows with all factors equal, change along the
    columns that tell classes apart and not along the others. Of several problems, every one counts
    the same, also that of a rare class. The sum of the variances of the columns stays as it was,
    so that gamma means the same as before.

    Parameters
    ----------
    rows : Block
        Weighted rows that stand for all, with labels.
    points : ndarray of shape (r, d)
        Core points.
    loss : MarginLoss
    classes : ndarray of shape (n_classes,)
    lam : float
    seed : int

    Returns
    -------
    ndarray of shape (d,), float64
        Ones where the pilot is constant.

    References
    ----------
    Radhakrishnan, Beaglehole, Pandit and Belkin (2024), Mechanism for feature learning in neural
    networks and backpropagation-free machine learning models: one round of their recursion with a
    diagonal matrix. Trivedi, Wang, Kpotufe and Shakhnarovich (2014), A consistent estimator of the
    expected gradient outerproduct.

    Examples
    --------
    >>> X = np.random.default_rng(0).random((2000, 3))
    >>> rows = Block(X, np.ones(2000), X[:, 1] > 0.5)
    >>> from daskcoreset.estimators.kernel.losses import LOSSES
    >>> scales = learned_scales(
    ...     rows, X[:100], LOSSES["odm"], classes=np.array([False, True]), lam=2000.0, seed=0
    ... )
    >>> bool(scales[1] > 5 * max(scales[0], scales[2]))
    True
    """
    weight = float(rows.weights.sum())
    variances = moments_of(rows.points, rows.weights).m2 / weight
    if not variances.sum() > 0.0:
        return np.ones(len(variances))
    kernel = Isotropic("rbf", _WIDTH / float(variances.sum()))
    core = KernelMap(kernel, np.asarray(points, dtype=np.float64))
    start = np.zeros((len(core), n_problems(len(classes))))
    problem = KernelProblem(TrainingRows.of_block(rows, classes), core, loss, lam)
    beta = solve_exact(problem, beta=start, tol=_TOL, seed=seed).beta
    squares = _squared_slopes(core, beta, rows)
    # Of every problem the part of its slope that each column has, whatever its unit.
    shares = squares * variances
    totals = shares.sum(axis=1, keepdims=True)
    squares = (squares / np.where(totals > 0.0, totals, 1.0)).sum(axis=0)
    spread = float((squares * variances).sum())
    if not spread > 0.0:
        return np.ones(len(variances))
    return np.asarray(np.sqrt(squares * (variances.sum() / spread)))


def _squared_slopes(core: KernelMap, beta: FloatArray, rows: Block) -> FloatArray:
    """Weighted means of the squared slopes of every problem, of shape (n_problems, d)."""
    sums = np.zeros((beta.shape[1], core.points.shape[1]))
    shift = core.points.mean(axis=0)
    centers = core.points - shift
    for part, values, _ in core.tiles(rows.points):
        points = dense_rows(rows.points[part]).astype(np.float64) - shift
        u = rows.weights[part]
        for k in range(beta.shape[1]):
            # The gradient is - 2 gamma times the sum of beta k (x - c).
            pulls = values * beta[:, k]
            ahead = points * pulls.sum(axis=1)[:, np.newaxis] - product(pulls, centers)
            sums[k] += thin_product(np.square(ahead).T, u[:, np.newaxis])[:, 0]
    return np.asarray(4.0 * core.kernel.gamma**2 * sums / rows.weights.sum())
