"""Newton's method on rows in memory whose kernel values are held, in float32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from daskcoreset.core.blocks import Block, labels_of
from daskcoreset.core.deadline import check_time
from daskcoreset.core.errors import scores_error
from daskcoreset.core.linalg import one_thread
from daskcoreset.core.linalg import tiles as slices
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.estimators.kernel.kernels import KernelMap
from daskcoreset.estimators.kernel.losses import MarginLoss
from daskcoreset.estimators.kernel.objective import signs_of

# Kernel values that may be held, 256 MiB.
HELD_NUMBERS = 2**26

# Added to the kernel matrix of the core points: directions with less of an eigenvalue are rounding.
_RIDGE = 1e-6

# Parts of a step that are tried, and the part of the first-order decrease that one must reach.
_LENGTHS = (1.0, 0.5, 0.25, 0.1, 0.03, 0.01, 0.001)
_SUFFICIENT = 1e-4

_MAX_STEPS = 40

# Rows that are added to Hessians at a time.
_PANEL_ROWS = 1024

# Rows over those of the problem that is solved before, for its solution has a smaller Hessian; rows
# of the first one at least, for every core point and in all, and its tolerance at least.
_MORE, _MIN_ROWS_OF_POINT, _MIN_ROWS, _ROUGH = 4, 4, 1000, 3e-2


class HessianSum(NamedTuple):
    """The Hessian in coefficients, and the second derivatives that it was added up with.

    Attributes
    ----------
    matrix : ndarray of shape (r, r), float64
        Its lower triangle.
    curvature : ndarray of shape (n,), float64
        Of the losses at every row, with its weight.
    """

    matrix: FloatArray
    curvature: FloatArray


class HeldSolution(NamedTuple):
    """A solution of one problem.

    Attributes
    ----------
    beta : ndarray of shape (r,), float64
    margins : ndarray of shape (n,), float64
        At every row.
    sums : HessianSum
    factor : tuple
        Its Cholesky factor, for `scipy.linalg.cho_solve`.
    """

    beta: FloatArray
    margins: FloatArray
    sums: HessianSum
    factor: Any


@dataclass(frozen=True, eq=False)
class HeldRows:
    """Rows and the kernel between them and the core points.

    The second derivative of squares is one of few numbers. A step of Newton's method changes it for
    few rows, so that all steps together add up little more than one Hessian.

    Attributes
    ----------
    values : ndarray of shape (n, r), float32
    gram : ndarray of shape (r, r), float64
    signs : ndarray of shape (n, K), float64
    weights : ndarray of shape (n,), float64
        Factors of the losses.
    loss : MarginLoss
        Not the hinge.
    """

    values: AnyArray
    gram: FloatArray
    signs: FloatArray
    weights: FloatArray
    loss: MarginLoss

    @classmethod
    def of(
        cls, core: KernelMap, rows: Block, classes: AnyArray, loss: MarginLoss, factor: float
    ) -> HeldRows:
        """Compute the kernel of rows with labels."""
        signs = signs_of(labels_of(rows), classes)
        return cls(core.held(rows.points), core.gram(), signs, factor * rows.weights, loss)

    def slopes(self, k: int, margins: FloatArray) -> FloatArray:
        """Return derivatives of the losses with respect to decision values."""
        return np.asarray(self.signs[:, k] * self.weights * self.loss.slope(margins))

    @one_thread()
    def solve(self, k: int, beta: FloatArray, tol: float) -> HeldSolution:
        """Solve problem k, until a step promises less than half of `tol` of the objective."""
        gram, weights, loss = self.gram, self.weights, self.loss
        beta, sums = self._begun(k, beta, tol)
        margins = self.signs[:, k] * self._sums(beta)

        def objective(beta: FloatArray, margins: FloatArray) -> float:
            return float(0.5 * beta @ (gram @ beta) + weights @ loss.value(margins))

        value = objective(beta, margins)
        for _ in range(_MAX_STEPS):
            check_time("a kernel machine was being fitted", "pass a smaller size")
            factor = self._added(sums, weights * loss.curvature(margins))
            gradient = gram @ beta + self.products(self.slopes(k, margins))
            move = -scipy.linalg.cho_solve(factor, gradient)
            slope = float(gradient @ move)
            if -slope <= tol * value:
                break
            moved = self.signs[:, k] * self._sums(move)
            for t in _LENGTHS:
                shorter = objective(beta + t * move, margins + t * moved)
                if shorter <= value + _SUFFICIENT * t * slope:
                    break
            else:
                break  # lost in rounding
            beta, margins, value = beta + t * move, margins + t * moved, shorter
        return HeldSolution(beta, margins, sums, factor)

    def _begun(self, k: int, beta: FloatArray, tol: float) -> tuple[FloatArray, HessianSum]:
        """Return where to begin, by fewer rows if nowhere else, and what those add up."""
        prior = self.gram + _RIDGE * np.eye(len(self.gram))
        sums = HessianSum(prior.copy(order="F"), np.zeros(len(self.weights)))
        if beta.any() or len(self.weights) < _MORE * max(
            _MIN_ROWS, _MIN_ROWS_OF_POINT * len(prior)
        ):
            return beta, sums
        rough = self._every(_MORE).solve(k, beta, max(tol, _ROUGH))
        sums.matrix[:] += (rough.sums.matrix - prior) / _MORE
        sums.curvature[::_MORE] = rough.sums.curvature / _MORE
        return rough.beta, sums

    def _added(self, sums: HessianSum, curvature: FloatArray) -> Any:
        """Make the sum one with these second derivatives, and return its Cholesky factor."""
        self._add_products(sums.matrix, curvature - sums.curvature)
        sums.curvature[:] = curvature
        return _factor(sums.matrix)

    def _every(self, step: int) -> HeldRows:
        """Return every so many rows, in whose order there is none of what they say."""
        return HeldRows(
            self.values[::step],
            self.gram,
            self.signs[::step],
            self.weights[::step] * step,
            self.loss,
        )

    def _sums(self, beta: FloatArray) -> FloatArray:
        single, scale = _single(beta)
        return scale * (self.values @ single).astype(np.float64)

    def products(self, factors: FloatArray) -> FloatArray:
        """Return sums over rows of kernel values times factors."""
        sums = np.zeros(self.values.shape[1])
        single, scale = _single(factors)
        # In float32 few rows at a time: of many the digits would be lost.
        for part in slices(*self.values.shape):
            sums += single[part] @ self.values[part]
        return scale * sums

    def _add_products(self, hessian: FloatArray, factors: FloatArray) -> None:
        """Add products of rows with themselves, times factors, to the lower triangle."""
        for sign in (1.0, -1.0):
            chosen = np.flatnonzero(sign * factors > 0.0)
            for first in range(0, len(chosen), _PANEL_ROWS):
                some = chosen[first : first + _PANEL_ROWS]
                panel = self.values[some] * np.sqrt(np.abs(factors[some]))[:, np.newaxis]
                # In place, the lower triangle alone.
                scipy.linalg.blas.dsyrk(sign, panel.T, beta=1.0, c=hessian, lower=1, overwrite_c=1)


def _single(numbers: FloatArray) -> tuple[AnyArray, float]:
    """Numbers in float32, of which the largest is one, and what they were divided by."""
    scale = float(np.abs(numbers).max(initial=0.0)) or 1.0
    return (numbers / scale).astype(np.float32), scale


def _factor(hessian: FloatArray) -> Any:
    """Cholesky factor, with as much on the diagonal as rounding asks for."""
    if not np.isfinite(hessian).all():
        raise scores_error()
    ridge = 0.0
    while True:
        shifted = hessian.copy(order="F")
        shifted[np.diag_indices_from(shifted)] += ridge
        try:
            return scipy.linalg.cho_factor(
                shifted, lower=True, overwrite_a=True, check_finite=False
            )
        except np.linalg.LinAlgError:
            ridge = max(10.0 * ridge, 1e-15 * float(np.trace(hessian)))
