"""Inner loops of stochastic gradient methods: compiled where numba is at hand, else in NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daskcoreset.core.blocks import Block
from daskcoreset.core.linalg import one_thread
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.estimators.kernel.kernels import KernelMap
from daskcoreset.estimators.kernel.losses import MarginLoss
from daskcoreset.estimators.kernel.objective import signs_of


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows in memory as the inner loops need them.

    Attributes
    ----------
    values : ndarray of shape (m, r), float64
        Kernel between rows and core points.
    cells : ndarray of shape (m,), int64
        Nearest core point.
    signs : ndarray of shape (m, K), float64
    weights : ndarray of shape (m,), float64
    """

    values: FloatArray
    cells: IndexArray
    signs: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, block: Block, core: KernelMap, classes: AnyArray) -> Sample:
        """Compute what is needed of a block."""
        m = len(block)
        values = np.empty((m, len(core)))
        cells: Any = np.empty(m, dtype=np.int64)
        for part, tile, nearest in core.tiles(block.points, nearest=True):
            values[part] = tile
            cells[part] = nearest.cells  # type: ignore[union-attr] # asked for
        labels: Any = block.labels
        return cls(values, cells, signs_of(labels, classes), block.weights)

    def __len__(self) -> int:
        return len(self.weights)


def _shape(loss: MarginLoss) -> FloatArray:
    return np.array([loss.low, loss.high, loss.scale, loss.mu, float(loss.linear)])


def reduced_steps(
    sample: Sample,
    problem: int,
    order: IndexArray,
    *,
    snapshot: FloatArray,
    gradient: FloatArray,
    gram: FloatArray,
    loss: MarginLoss,
    lam: float,
    eta: float,
    radius: float,
    keep: int,
) -> FloatArray:
    r"""Variance-reduced steps of one problem from a snapshot.

    .. math:: h = w + \lambda (a_t - \tilde a_t) \varphi(c_t) + (G - \tilde w), \qquad
              w \leftarrow \Pi(w - \eta h)

    Parameters
    ----------
    sample : Sample
    problem : int
    order : ndarray of shape (n_steps,), int64
        Row of the sample for every step.
    snapshot, gradient : ndarray of shape (r,), float64
        Coefficients of :math:`\tilde w` and of the full gradient G there.
    gram : ndarray of shape (r, r), float64
    loss : MarginLoss
    lam, eta, radius : float
        Lambda, the length of steps, and the ball that iterates are projected onto.
    keep : int
        Step whose iterate is returned.

    Returns
    -------
    ndarray of shape (r,), float64

    References
    ----------
    Tan, Zhang and Wang (2019), Algorithm 1; equation 9 and the listing drop lambda.
    """
    from daskcoreset.estimators.kernel import sgd_numba as loops

    with one_thread():
        z = sample.signs[:, problem] * (sample.values @ snapshot)
    known = sample.signs[:, problem] * loss.slope(z)
    beta = snapshot.copy()
    loops.reduce_variance(
        sample.values,
        sample.cells,
        np.ascontiguousarray(sample.signs[:, problem]),
        known,
        order,
        np.ascontiguousarray(gradient - snapshot),
        gram,
        np.array([lam, eta, radius]),
        _shape(loss),
        keep,
        beta,
    )
    return beta


def averaged_steps(
    sample: Sample,
    problem: int,
    order: IndexArray,
    *,
    gram: FloatArray,
    loss: MarginLoss,
    lam: float,
    radius: float,
    taken: int,
    burn_in: int,
    beta: FloatArray,
    total: FloatArray,
) -> None:
    r"""Take steps of length 1/t of one problem, in place.

    .. math:: w \leftarrow \Pi\left((1 - \tfrac1t) w - \tfrac\lambda t a_t \varphi(c_t)\right)

    Parameters
    ----------
    sample : Sample
    problem : int
    order : ndarray of shape (n_steps,), int64
    gram : ndarray of shape (r, r), float64
    loss : MarginLoss
    lam, radius : float
    taken, burn_in : int
        Steps taken before; iterates after `burn_in` steps are added to `total`.
    beta, total : ndarray of shape (r,), float64
        Overwritten.

    References
    ----------
    Le et al. (2017), Algorithm 2, in the scale of Tan, Zhang and Wang's objective, whose strong
    convexity is one.
    """
    from daskcoreset.estimators.kernel import sgd_numba as loops

    loops.average(
        sample.values,
        sample.cells,
        np.ascontiguousarray(sample.signs[:, problem]),
        order,
        gram,
        np.array([lam, radius, float(taken), float(burn_in)]),
        _shape(loss),
        beta,
        total,
    )
