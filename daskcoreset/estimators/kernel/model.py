"""What kernel classifiers share: the fitted expansion, the scale of the penalty, warnings."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from daskcoreset.constructions.class_summary import ClassSummary
from daskcoreset.core.errors import InvalidInputError, warn_user
from daskcoreset.core.linalg import thin_product
from daskcoreset.core.typing import AnyArray, FloatArray, Points
from daskcoreset.estimators.classifier import DecisionFunction
from daskcoreset.estimators.kernel.kernels import Isotropic, KernelMap

_UNEVEN = 100.0
"""Columns whose ranges differ by more are warned about."""

_VANISHED = 1e-12
"""Kernel values at a usual distance below which rows see nothing of each other."""


KERNEL_CONSTRAINTS: dict[str, list[Any]] = {
    "kernel": [str, callable],
    "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")],
    "lam": [Interval(Real, 0, None, closed="neither"), None],
    "C": [Interval(Real, 0, None, closed="neither"), None],
    "mu": [Real],
    "theta": [Real],
}
"""What the parameters of all kernel classifiers may be."""


@dataclass(frozen=True, eq=False)
class KernelDecision(DecisionFunction):
    """A combination of core points, or one for each of more than two classes.

    Attributes
    ----------
    core : KernelMap
    beta : ndarray of shape (r, K), float64
    classes : ndarray of shape (n_classes,)
    """

    core: KernelMap
    beta: FloatArray
    classes: AnyArray

    def values(self, points: Points) -> FloatArray:
        """Decision values of rows."""
        values = np.empty((points.shape[0], self.beta.shape[1]))
        for part, kernel_values, _ in self.core.tiles(points):
            values[part] = thin_product(kernel_values, self.beta)
        return values


def check_two_classes(classes: AnyArray) -> None:
    """Refuse labels of one class."""
    if len(classes) < 2:
        raise InvalidInputError(
            f"y has one class only, {classes[:1]}, among the rows with a positive weight; pass "
            f"rows of two classes or more."
        )


def resolve_lambda(lam: float | None, C: float | None, weight: float) -> float:
    r"""Return :math:`\lambda = C M`, of which exactly one is given; C is 1 without both.

    Raises
    ------
    InvalidInputError
        If both are given.

    Examples
    --------
    >>> resolve_lambda(None, 0.5, 100.0), resolve_lambda(8.0, None, 100.0)
    (50.0, 8.0)
    """
    if lam is not None and C is not None:
        raise InvalidInputError(
            f"lam={lam} and C={C} are two scales of the same thing, lam = C * n; pass one of them."
        )
    return float(lam) if lam is not None else (1.0 if C is None else float(C)) * weight


def warn_unscaled(summary: ClassSummary, kernel: Isotropic) -> None:
    """Warn where a kernel of the distance sees some columns only, or no rows at all."""
    ranges = (summary.high - summary.low)[summary.high > summary.low]
    advice = (
        "scale the features to [0, 1] as the authors do, for example with "
        "sklearn.preprocessing.MinMaxScaler."
    )
    if len(ranges) and ranges.max() > _UNEVEN * ranges.min():
        warn_user(
            f"features are not scaled: the range of one column is {ranges.max():.3g}, of another "
            f"{ranges.min():.3g}, and only the wide ones count in a distance; {advice}"
        )
        return
    usual = float(kernel(np.array([2.0 * summary.total_variance]))[0])
    if usual < _VANISHED:
        warn_user(
            f"features are not scaled to the kernel, which is {usual:.1e} at the root mean square "
            f"distance of two rows: no row sees another one. Lower gamma, or {advice}"
        )
