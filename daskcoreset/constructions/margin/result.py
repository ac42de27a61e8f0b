"""What the core-set loop returns: rows, separator, and the certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.constructions.margin.bounds import any_violator_bound, worst_violator_bound

if TYPE_CHECKING:
    from daskcoreset.constructions.margin.kernelised import Separator
    from daskcoreset.core.points import WeightedPoints
    from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points

__all__ = ["MarginCoreset", "Pass"]


@dataclass(frozen=True)
class Pass:
    """One solution on the core set, and what one read said of it.

    Attributes
    ----------
    reads : int
        Reads of the data so far.
    size : int
        Rows in the core set.
    core_margin : float
        The largest margin on the core set, which no margin on the data can pass.
    margin : float
        Margin of the same separator on the data; negative where it errs.
    best : float
        The largest margin on the data of any separator so far.
    """

    reads: int
    size: int
    core_margin: float
    margin: float
    best: float


@dataclass(frozen=True, eq=False, repr=False)
class MarginCoreset:
    r"""A core set for the maximum margin, its separator, and the certificate.

    Attributes
    ----------
    core : WeightedPoints
        Rows of the core set with weights of one, row numbers and labels.
    dual : ndarray of shape (m,), float64
        Convex coefficients: the normal is in proportion to :math:`\sum_i a_i y_i x_i`; with
        an intercept their sum is one over each class. Rows with zero add nothing.
    signs : ndarray of shape (m,), float64
        +1 for ``classes[1]`` and -1 for ``classes[0]``.
    classes : ndarray of shape (2,)
    separator : Separator
        Signed distance of a row from the hyperplane; its normal has length one.
    margin : float
        On all the data, measured by a read: :math:`\min y f(x)`.
    core_margin : float
        The largest on the core set, hence not below the largest on the data.
    epsilon : float
    converged : bool
        Whether ``margin >= (1 - epsilon) * core_margin``.
    intercept : bool
    radius : float
        R, the largest distance of a row from the origin; with an intercept and without a
        kernel, from a center.
    reads : int
        Reads of all the data, the one that finds the classes included.
    n_rows : int
        Rows of the data.
    trace : tuple of Pass
    """

    core: WeightedPoints
    dual: FloatArray
    signs: FloatArray
    classes: AnyArray
    separator: Separator
    margin: float
    core_margin: float
    epsilon: float
    converged: bool
    intercept: bool
    radius: float
    reads: int
    n_rows: int
    trace: tuple[Pass, ...]

    def __len__(self) -> int:
        return len(self.core)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({len(self):,} of {self.n_rows:,} rows, margin "
            f"{self.margin:.6g} >= {self.factor:.4g} x the largest, {self.reads} reads)"
        )

    @property
    def factor(self) -> float:
        r"""Certified share of the largest margin that is reached, :math:`\rho / \rho_C`."""
        return self.margin / self.core_margin

    @property
    def w(self) -> FloatArray | None:
        """Normal of length one, of shape (d,); None with a kernel."""
        return self.separator.w

    @property
    def b(self) -> float:
        """Intercept; zero through the origin."""
        return self.separator.intercept

    @property
    def indices(self) -> IndexArray:
        """Row numbers of the core set."""
        return self.core.indices

    @property
    def support(self) -> IndexArray:
        """Positions, within the core set, of rows with a coefficient."""
        return np.flatnonzero(self.dual > 0.0)

    @property
    def passes_bound(self) -> float:
        """Passes that are enough (Corollary 3.2), however many rows each of them adds."""
        return any_violator_bound(self.radius, self.core_margin, self.epsilon)

    @property
    def size_bound(self) -> float:
        """Rows that are enough where one violator is added at a time (Corollary 3.2)."""
        return self.passes_bound + 1.0

    @property
    def size_bound_worst(self) -> float:
        """Rows that are enough where only the worst of all is added (Lemma 3.1)."""
        return worst_violator_bound(self.radius, self.core_margin, self.epsilon)

    def decision_function(self, points: Points) -> FloatArray:
        """Signed distance of every row from the hyperplane.

        Parameters
        ----------
        points : ndarray of shape (n, d) or csr_array, float32 or float64

        Returns
        -------
        ndarray of shape (n,), float64
        """
        return self.separator(points)

    def predict(self, points: Points) -> AnyArray:
        """Class of every row.

        Parameters
        ----------
        points : ndarray of shape (n, d) or csr_array, float32 or float64

        Returns
        -------
        ndarray of shape (n,)
        """
        found: AnyArray = self.classes[(self.separator(points) > 0.0).astype(np.intp)]
        return found

    def describe(self) -> dict[str, Any]:
        """Facts for a provenance, plain JSON."""
        return {
            "margin": self.margin,
            "core_margin": self.core_margin,
            "factor": self.factor,
            "converged": self.converged,
            "radius": self.radius,
            "passes_bound": self.passes_bound,
            "reads": self.reads,
            "passes": [
                {"size": one.size, "core_margin": one.core_margin, "margin": one.margin}
                for one in self.trace
            ],
        }
