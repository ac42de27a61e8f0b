"""Coresets for logistic regression: roots of leverage scores, and pulls at a pilot."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from daskcoreset.core.block import Block
from daskcoreset.core.linalg import one_thread, product
from daskcoreset.core.moments import Scatter, scatter_of
from daskcoreset.core.sampling import StratifiedSample
from daskcoreset.core.typing import FloatArray, IndexArray
from daskcoreset.core.validation import as_float, check_flag
from daskcoreset.objectives import LinearCost
from daskcoreset.sensitivities.least_squares import whitening
from daskcoreset.sensitivities.pilot import Pilot, PilotMethod, Terms

# Coefficients of all classes up to which Newton's method, with a matrix of their squares, is used.
_NEWTON_COLUMNS = 512

_MAX_ITER = 200


@dataclass(frozen=True)
class Logistic(PilotMethod):
    r"""Coresets for logistic regression.

    They serve the objective :math:`|w|^2/2 + \lambda \sum_x u(x) \ln(1 + e^{-y(x) (\langle x, w
    \rangle + b)})`, or the softmax of more classes. With U the total weight and the leverage
    :math:`\ell(x) = 1/U + (x - \mu)^T S^{-1} (x - \mu)`, the bound of a row is

    .. math::

        s(x) = u(x) \left( \sqrt{\ell(x)} + \frac{\ell(x)}{2} \sqrt{\frac{U}{d + 1}}
        + \frac{1}{U} \right),

    which bounds its sensitivity up to a factor that depends on the data alone. The first pass fits
    a pilot model to up to 4,096 rows. Three fifths of the draws use s and keep the guarantee. Two
    fifths use :math:`u |g| \sqrt{\ell}`, with g the derivative of the loss at the pilot. Class
    totals are exact, and weights are calibrated to class means, and to loss and gradient at the
    pilot. The best of several draws is kept. Uniform rows are kept instead if their model costs
    less by two standard errors, on up to 10,000 other rows. The guide is :doc:`/guides/labels`.

    Parameters
    ----------
    lam : float, default=1.0
        :math:`\lambda`, equal to the C of scikit-learn.
    intercept : bool, default=True
        Whether the model has an intercept. Without it, leverage is about the origin.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If a parameter cannot be used. When building, if labels are missing or of one class.

    Notes
    -----
    ``provenance["calibration"]`` lists the constraints that were met. A block of d features sends d
    x d numbers. A small ridge makes dependent columns possible. ``provenance["rows"]`` is "uniform"
    if uniform rows were kept.

    Examples
    --------
    >>> import daskcoreset
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> y = X[:, 0] + rng.normal(size=2000) > 0
    >>> coreset = daskcoreset.build(X, y, size=100, method="logistic", random_state=0)
    >>> abs(round(float(coreset.weights[coreset.labels].sum() - y.sum()), 6))
    0.0

    References
    ----------
    Munteanu, Schwiegelshohn, Sohler and Woodruff (2018), section 4. Owen and Zhou (2000), for the
    share of the draws that keeps the bound.
    """

    lam: float = 1.0
    intercept: bool = True

    name: ClassVar[str] = "logistic"
    citation: ClassVar[str] = "munteanu2018coresets, section 4"
    activity_share: ClassVar[float] = 0.4
    max_columns: ClassVar[int] = 2**12  # a factor of a d x d matrix takes seconds for every block

    def __post_init__(self) -> None:
        as_float("lam", self.lam, maximum=math.inf)
        check_flag("intercept", self.intercept)

    @property
    def objective(self) -> LinearCost:
        """The cost of logistic regression with this lambda."""
        return LinearCost("logistic", float(self.lam), self.intercept)

    def moments(self, block: Block) -> Scatter:
        """Return the scatter of a block, for leverages."""
        return scatter_of(block.points, block.weights)

    def start(self, sample: StratifiedSample, moments: Scatter, rng: np.random.Generator) -> Pilot:
        """Fit the pilot."""
        del rng
        d, n_classes = len(moments.mean), len(sample.classes)
        p = n_classes if n_classes > 2 else 1
        center, root = whitening(moments, intercept=self.intercept)
        # Rounded, so that the last digits of sums do not decide what is fitted.
        origin = moments.mean.astype(np.float32).astype(np.float64) * self.intercept
        bounds = Leverage(moments.weight, center - origin, root, self.intercept)
        none = Pilot(
            sample.classes,
            origin,
            np.zeros((p, d)),
            np.zeros(p),
            np.arange(n_classes),
            bounds,
        )
        return self.fit(none, sample.points - origin, sample.codes, sample.weights)

    @one_thread()
    def fit(
        self,
        pilot: Pilot,
        points: FloatArray,
        codes: IndexArray,
        weights: FloatArray,
    ) -> Pilot:
        """Return the pilot with the model of these rows. The same one if none can be fitted."""
        from sklearn.linear_model import LogisticRegression

        if len(np.unique(codes)) < max(2, len(pilot.classes)):  # a node of a tree has one class
            return pilot
        total = weights.sum()
        newton = (points.shape[1] + 1) * len(pilot.coef) <= _NEWTON_COLUMNS
        model = LogisticRegression(
            # Weights that add up to one: squares of very large and very small ones are no numbers.
            C=float(np.clip(self.lam * total, 1e-12, 1e12)),
            fit_intercept=self.intercept,
            solver="newton-cholesky" if newton else "lbfgs",
            max_iter=_MAX_ITER,
            tol=1e-10 if newton else 1e-6,
        )
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # any model will do, if not the very best
            try:
                model.fit(points, codes, sample_weight=weights / total)
            except (ValueError, FloatingPointError, np.linalg.LinAlgError):
                return pilot
        coef = model.coef_.astype(np.float64)
        shift = np.broadcast_to(model.intercept_, len(coef)).astype(np.float64)
        if not (np.isfinite(coef).all() and np.isfinite(shift).all()):
            return pilot
        return replace(pilot, coef=coef, intercept=shift)

    def losses(self, codes: IndexArray, decisions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return losses, in the column of the class of the row, and pulls."""
        if decisions.shape[1] == 1:
            signs = 2.0 * (codes[:, np.newaxis] == 1) - 1.0
            margins = signs * decisions
            small = np.exp(-np.abs(margins))
            losses = np.log1p(small) - np.minimum(margins, 0.0)
            # One less the probability of its own class.
            return losses, signs * (np.exp(-np.maximum(margins, 0.0)) / (1.0 + small))
        own = codes[:, np.newaxis] == np.arange(decisions.shape[1])
        values = decisions - decisions.max(axis=1, keepdims=True)
        chances = np.exp(values)
        totals = chances.sum(axis=1, keepdims=True)
        return np.where(own, np.log(totals) - values, 0.0), own - chances / totals

    def terms(
        self, pilot: Pilot, points: FloatArray, codes: IndexArray, decisions: FloatArray
    ) -> Terms:
        r"""Return :math:`s(x)` over u, and :math:`|g| \sqrt{\ell}` with the pulls g."""
        leverages = pilot.bounds.of(points)
        bounds = root_scores(leverages, pilot.bounds.weight, points.shape[1])
        _, pulls = self.losses(codes, decisions)
        lengths = np.sqrt(np.square(pulls).sum(axis=1) * leverages)
        return Terms(bounds, lengths, codes)


@dataclass(frozen=True, eq=False)
class Leverage:
    """Leverages of rows less the origin of a pilot.

    Attributes
    ----------
    weight : float
        Total weight.
    shift : ndarray of shape (d,), float64
        Center of leverages, less the origin.
    root : ndarray of shape (d, d), float64
        Its square, by its transpose, is about the inverse of the scatter.
    intercept : bool
    """

    weight: float
    shift: FloatArray
    root: FloatArray
    intercept: bool

    def of(self, points: FloatArray) -> FloatArray:
        """Return the leverages of rows of weight one."""
        found = np.square(product(points - self.shift, self.root)).sum(axis=1)
        return np.asarray(found + self.intercept / self.weight)


def root_scores(leverage: FloatArray, weight: float, d: int) -> FloatArray:
    r"""Score rows of weight one by the roots of their leverages. Shape (n,).

    Parameters
    ----------
    leverage : ndarray of shape (n,), float64
        Leverages for weight one, which are at least 1/U.
    weight : float
        U, of all rows.
    d : int
        Columns.

    Examples
    --------
    >>> root_scores(np.array([0.01, 0.04, 1.0]), 300.0, 2).round(3).tolist()
    [0.153, 0.403, 6.003]
    """
    # The inverse of the root of a typical leverage.
    root = math.sqrt(weight / (d + 1))
    return np.asarray(np.sqrt(leverage) + root / 2.0 * leverage + 1.0 / weight)
