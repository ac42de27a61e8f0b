"""The span of the core points in feature space, and what a solver finds in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskcoreset.estimators.kernel.isotropic import KernelMap
from daskcoreset.core.threads import one_thread
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.typing import FloatArray

__all__ = ["Solution", "Span"]

_CUT = 1e-11
"""Directions of K with a smaller share of its largest eigenvalue are left out: they are below
the rounding errors of kernel values, and nearly equal core points make many."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Coefficients of the core points, and how they were found.

    Attributes
    ----------
    beta : ndarray of shape (r, K), float64
    objectives : ndarray of shape (K,), float64
        Of the K problems, at `beta`.
    gaps : ndarray of shape (K,), float64, or None
        How far the objectives are, at most, above the least ones in the span.
    n_iter : int
    converged : bool or None
        Whether they are as near to those as was asked for, see the solvers; None where a number
        of steps was asked for and nothing else.
    table : ndarray of shape (r, n_classes), float64
        Weight of every class in the cell of every core point.
    radius : float
        Largest distance of a row from its nearest core point.
    """

    beta: FloatArray
    objectives: FloatArray
    gaps: FloatArray | None
    n_iter: int
    converged: bool | None
    table: FloatArray
    radius: float


@dataclass(frozen=True, eq=False)
class Span:
    """Orthonormal coordinates in the span of the core points.

    Attributes
    ----------
    gram : ndarray of shape (r, r), float64
    into : ndarray of shape (r, q), float64
        Coefficients of an orthonormal basis: ``beta = into @ gamma``.
    """

    gram: FloatArray
    into: FloatArray

    @classmethod
    def of(cls, core: KernelMap) -> Span:
        """Find a basis.

        Raises
        ------
        InvalidInputError
            If K has a negative eigenvalue, so that the kernel is none.
        """
        gram = core.gram()
        with one_thread():
            values, vectors = np.linalg.eigh(gram)
        if values[0] < -1e-8 * values[-1]:
            raise InvalidInputError(
                f"kernel is not positive semi-definite: its matrix of the core points has the "
                f"eigenvalue {values[0]:.3g}; pass another one."
            )
        kept = values > _CUT * values[-1]
        return cls(gram, vectors[:, kept] / np.sqrt(values[kept]))

    def coordinates(self, beta: FloatArray) -> FloatArray:
        """Return gamma of coefficients, up to the directions that were left out."""
        return np.asarray(self.into.T @ (self.gram @ beta))
