"""The core set of the largest margin: its rows, its separator, its result and its bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daskcoreset.constructions.margin.rows import SelectedRows, concatenate_rows, signs_of
from daskcoreset.constructions.margin.separators import (
    Kernel,
    NotSeparableError,
    Separator,
    opposite_duplicates,
)
from daskcoreset.core.linalg import dense_rows
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points
from daskcoreset.solvers.hard_margin import (
    HardMargin,
    hard_margin,
    hard_margin_bias,
    hard_margin_gram,
)

# Up to which hard-margin problems are solved.
_TOLERANCE = 1e-9


def any_violator_bound(radius: float, margin: float, epsilon: float) -> float:
    r"""Bound where every pass adds some violator (Corollary 3.2).

    The passes are at most :math:`1 + 4R^2/(\epsilon\rho)^2`, however many violators each of
    them adds. Let x be the shortest vector of the hull, :math:`|x| = \rho_i`, and z a violator,
    :math:`\langle x, z\rangle < (1-\epsilon)\rho_i^2`. The segment from x to z, of length at
    most 2R, holds a point of squared length at most
    :math:`\rho_i^2 (1 - \epsilon^2\rho_i^2/4R^2)`, and so does the next hull. Hence
    :math:`1/\rho_{i+1}^2 \ge 1/\rho_i^2 + \epsilon^2/4R^2`, which can happen
    :math:`4R^2/(\epsilon\rho)^2` times before :math:`\rho_i < \rho`. Only x enters, so that
    rows without a coefficient may be dropped at any time: x stays in the hull, and the
    lengths go on falling, for which no set of rows comes twice.

    With an intercept x joins the nearest points of two hulls, :math:`|x| = 2\rho_i`, a step
    within one of them is at most 2R long, R about any center, and the same follows.

    Parameters
    ----------
    radius, margin, epsilon : float

    Returns
    -------
    float

    Examples
    --------
    >>> round(any_violator_bound(10.0, 1.0, 0.1))
    40001
    """
    if margin <= 0:
        return math.inf
    return 1.0 + 4.0 * (radius / margin) ** 2 / epsilon**2


def worst_violator_bound(radius: float, margin: float, epsilon: float) -> float:
    r"""Bound of Lemma 3.1, where the worst violator is added: :math:`64 (R/\rho)^2/\epsilon`.

    Parameters
    ----------
    radius, margin, epsilon : float

    Returns
    -------
    float

    Examples
    --------
    >>> worst_violator_bound(10.0, 1.0, 0.1)
    64000.0

    References
    ----------
    Har-Peled, Roth and Zimak (2007), Lemma 3.1, with the constant of its proof.
    """
    return math.inf if margin <= 0 else 64.0 * (radius / margin) ** 2 / epsilon


def solve_margin(
    rows: FloatArray, signs: FloatArray, *, intercept: bool, **options: Any
) -> HardMargin:
    """Separate rows with the largest margin, with an intercept or through the origin."""
    if intercept:
        return hard_margin_bias(rows, signs, **options)
    return hard_margin(rows * signs[:, None], **options)


def margin_of_levels(levels: FloatArray, *, intercept: bool) -> float:
    """Margin of a separator, from the smallest products of the classes +1 and -1.

    With an intercept the hyperplane goes into the middle of the strip between the classes.
    """
    return float(levels.sum()) / 2 if intercept else float(levels.min())


def floors_of(hard: HardMargin, epsilon: float, *, intercept: bool) -> FloatArray:
    """Products of the classes +1 and -1 below which a row violates the margin of a core set."""
    if not intercept:
        return np.full(2, (1.0 - epsilon) * hard.length)
    # Together twice the share of the margin: some row is below unless it is reached.
    return np.asarray(hard.levels + (hard.length - hard.margin) - epsilon * hard.length)


def evidence_of(dual: FloatArray) -> IndexArray:
    """Positions of the rows of a convex combination, the largest coefficients first."""
    rows = np.flatnonzero(dual > 0.0)
    return rows[np.argsort(-dual[rows], kind="stable")]


@dataclass(frozen=True)
class Pass:
    """One solution on the core set, and its margin on the data, measured by one read.

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
        return np.asarray(self.classes[(self.separator(points) > 0.0).astype(np.intp)])

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
                {"size": step.size, "core_margin": step.core_margin, "margin": step.margin}
                for step in self.trace
            ],
        }


@dataclass(frozen=True, eq=False)
class CoreRows:
    """Rows of the core set.

    Attributes
    ----------
    rows : SelectedRows
    classes : ndarray of shape (2,)
        Labels of the classes -1 and +1.
    kernel : Kernel
    intercept : bool
    gram : ndarray of shape (m, m), float64, or None
        Kernel values of all pairs; None for the linear kernel.
    """

    rows: SelectedRows
    classes: AnyArray
    kernel: Kernel
    intercept: bool
    gram: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def points(self) -> Points:
        """The rows."""
        return self.rows.block.points

    @property
    def signs(self) -> FloatArray:
        """+1 or -1 for each row, by its class."""
        return signs_of(self.rows.block, self.classes)

    @classmethod
    def start(
        cls, rows: SelectedRows, classes: AnyArray, kernel: Kernel, *, intercept: bool
    ) -> CoreRows:
        """Return a first core set, with its kernel values."""
        points = rows.block.points
        gram = None if kernel.is_linear else _symmetric(kernel(points, points))
        return cls(rows, classes, kernel, intercept, gram)

    def with_rows(self, rows: SelectedRows) -> CoreRows:
        """Return a core set with more rows, those left out that it has already."""
        rows = rows.take(np.flatnonzero(~np.isin(rows.indices, self.rows.indices)))
        gram = None
        if self.gram is not None:
            # Values of the pairs that are known already are not formed again.
            across = self.kernel(self.points, rows.block.points)
            within = _symmetric(self.kernel(rows.block.points, rows.block.points))
            gram = np.block([[self.gram, across], [across.T, within]])
        return replace(self, rows=concatenate_rows(self.rows, rows), gram=gram)

    def take(self, positions: IndexArray) -> CoreRows:
        """Return some of the rows."""
        gram = None if self.gram is None else self.gram[np.ix_(positions, positions)]
        return replace(self, rows=self.rows.take(positions), gram=gram)


@dataclass(frozen=True, eq=False)
class Fit:
    """The separator with the largest margin on a core set.

    Attributes
    ----------
    hard : HardMargin
    separator : Separator
        Of a normal of length one.
    middle : ndarray of shape (d,), float64, or None
        With an intercept and without a kernel, the point midway between the hulls.
    """

    hard: HardMargin
    separator: Separator
    middle: FloatArray | None


def fit_core(core: CoreRows) -> Fit:
    """Solve the hard-margin problem on the rows of a core set.

    Raises
    ------
    NotSeparableError
        With the evidence.
    """
    signs = core.signs
    if core.gram is not None:
        with_bias = signs if core.intercept else None
        hard = hard_margin_gram(core.gram * np.outer(signs, signs), with_bias, tol=_TOLERANCE)
        _check(core, hard)
        normal = 2.0 * hard.length if core.intercept else hard.length
        support = np.flatnonzero(hard.dual > 0.0)
        separator = Separator(
            core.kernel,
            rows=core.points[support],
            coefficients=hard.dual[support] * signs[support] / normal,
            intercept=hard.intercept,
        )
        return Fit(hard, separator, None)
    # Columns that are zero in every row of the core set are zero in the normal.
    points, columns = _used_columns(core.points)
    hard = solve_margin(points, signs, intercept=core.intercept, tol=_TOLERANCE)
    _check(core, hard)
    w = np.zeros(core.points.shape[1])
    w[columns] = hard.w
    middle = None
    if core.intercept:
        middle = np.zeros(len(w))
        middle[columns] = hard.dual @ points / 2.0
    return Fit(hard, Separator(core.kernel, w, intercept=hard.intercept), middle)


def _used_columns(points: Points) -> tuple[FloatArray, Any]:
    """Rows, dense, in the columns that are not zero throughout, and these columns."""
    if isinstance(points, np.ndarray):
        return points.astype(np.float64), slice(None)
    columns = np.unique(points.indices)
    if not len(columns):
        columns = np.zeros(1, dtype=np.int64)
    return dense_rows(points[:, columns]).astype(np.float64), columns


def _symmetric(gram: FloatArray) -> FloatArray:
    return (gram + gram.T) / 2.0


def _check(core: CoreRows, hard: HardMargin) -> None:
    if hard.separable:
        return
    support = np.flatnonzero(hard.dual > 0.0)
    labels: Any = core.rows.block.labels
    points, _ = _used_columns(core.points)
    raise NotSeparableError(
        core.rows.indices[support],
        labels[support],
        hard.dual[support],
        # The length is half of the distance between the hulls where there are two.
        2.0 * hard.length if core.intercept else hard.length,
        intercept=core.intercept,
        duplicates=opposite_duplicates(points, core.signs, core.rows.indices),
    )
