"""Coresets for linear regression, by leverage scores."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from daskcoreset.core.block import Block
from daskcoreset.core.linalg import dense, inverse_root, product, tiles
from daskcoreset.core.moments import Scatter, merge_scatters, scatter_of
from daskcoreset.core.typing import AnyArray, FloatArray, Points
from daskcoreset.core.validation import as_float, check_flag, is_number
from daskcoreset.objectives.regression import LeastSquaresCost, targets_of
from daskcoreset.sensitivities.base import Sensitivity


def _diagonal(matrix: FloatArray, root: FloatArray) -> FloatArray:
    """Diagonal of R^T M R."""
    return np.asarray((root * product(matrix, root)).sum(axis=0))


@dataclass(frozen=True)
class LeastSquares(Sensitivity[Scatter]):
    r"""Coresets for least squares and ridge regression, by leverage scores.

    With the rows :math:`a = (x, 1, y)` and :math:`S = \sum_a u(a) a a^T`, the score :math:`u(a)\,
    a^T (S + \alpha I)^+ a` is the sensitivity of the row: its largest share in the cost of any w
    and b. Scores add up to the rank of S, at most d + 2. The penalty applies to w alone. Weights
    are unbiased: the expected cost of every w and b equals the cost on the data. For an exact
    solution use `daskcoreset.estimators.CoresetRidge`. The guide is :doc:`/guides/labels`.

    Parameters
    ----------
    intercept : bool, default=True
        Whether your models have an intercept.
    alpha : float, default=0.0
        Penalty in :math:`\sum_x u(x) (y(x) - \langle x, w \rangle - b)^2 + \alpha |w|^2`.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If a parameter cannot be used. When building, if y is missing or holds no numbers.

    Examples
    --------
    >>> import daskcoreset
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 3))
    >>> y = X @ [1.0, -2.0, 0.5] + rng.normal(size=5000)
    >>> coreset = daskcoreset.build(X, y, size=500, method="least_squares", random_state=0)
    >>> coreset.audit(X, y, random_state=0).distortion < 0.2
    True

    References
    ----------
    Drineas, Mahoney and Muthukrishnan (2006), Sampling algorithms for l2 regression and
    applications, section 3.
    """

    intercept: bool = True
    alpha: float = 0.0

    name: ClassVar[str] = "least_squares"
    citation: ClassVar[str] = "drineas2006sampling, section 3"
    labels: ClassVar[Literal["numbers"]] = "numbers"
    max_columns: ClassVar[int] = 2**12  # a matrix of d x d numbers takes 128 MiB for every block

    def __post_init__(self) -> None:
        check_flag("intercept", self.intercept)
        if not (is_number(self.alpha) and self.alpha == 0):
            as_float("alpha", self.alpha, maximum=math.inf)

    @property
    def objective(self) -> LeastSquaresCost:
        """The cost of linear regression."""
        return LeastSquaresCost(self.intercept, float(self.alpha))

    def _penalised(self, summary: Scatter) -> Scatter:
        """Return the scatter with the penalty of the columns of X."""
        if not self.alpha:
            return summary
        added = np.full(len(summary.mean), float(self.alpha))
        added[-1] = 0.0
        return replace(summary, matrix=summary.matrix + np.diag(added))

    def block_summary(
        self, block: Block, previous: Scatter | None, rng: np.random.Generator
    ) -> Scatter:
        """Scatter of the features and y together."""
        del previous, rng
        return scatter_of(with_targets(block), block.weights)

    def merge(self, first: Scatter, second: Scatter) -> Scatter:
        """Scatter of both."""
        return merge_scatters(first, second)

    def scores(self, block: Block, summary: Scatter) -> FloatArray:
        """Return u times the leverages for weight one."""
        if summary.weight == 0.0:
            return np.zeros(len(block))
        penalised = self._penalised(summary)
        points = with_targets(block)
        scores = leverages(points, block.weights, penalised, intercept=self.intercept)
        return np.asarray(scores * block.weights)

    def total_scores(self, local: Scatter, summary: Scatter) -> float:
        """Return the exact sum of `scores` over a block, from its scatter."""
        penalised = self._penalised(summary)
        return total_leverage(local, penalised, intercept=self.intercept)


def leverages(
    points: Points, weights: FloatArray, scatter: Scatter, *, intercept: bool
) -> FloatArray:
    r"""Leverages :math:`a^T S^+ a` of rows, float64 of shape (n,).

    Parameters
    ----------
    points : ndarray of shape (n, d) or csr_array
    weights : ndarray of shape (n,), float64
        Rows of weight zero may hold anything: they count as the mean.
    scatter : Scatter
        Scatter of all rows, of positive weight.
    intercept : bool
        Whether an entry of one is appended to every row.

    Examples
    --------
    >>> rows = np.array([[-1.0], [1.0]])
    >>> leverages(rows, np.ones(2), scatter_of(rows, np.ones(2)), intercept=True).round(5)
    array([1., 1.])
    """
    none = np.empty((0, len(scatter.mean)))
    return leverages_and_products(points, weights, scatter, none, intercept=intercept)[0]


def leverages_and_products(
    points: Points, weights: FloatArray, scatter: Scatter, vectors: FloatArray, *, intercept: bool
) -> tuple[FloatArray, FloatArray]:
    """Leverages, and products with vectors of shape (p, d), of shape (n, p), in one go.

    Products are those of rows less the center of leverages: the mean, or without intercept zero.
    """
    center, root = whitening(scatter, intercept=intercept)
    out, products = np.empty(len(weights)), np.empty((len(weights), len(vectors)))
    columns = np.ascontiguousarray(vectors.T)
    for part, gaps in gaps_of(points, weights, center):
        out[part] = np.square(product(gaps, root)).sum(axis=1)
        if len(vectors):
            products[part] = product(gaps, columns)
    # About the mean the entry of one stands at right angles to all columns.
    return out + 1.0 / scatter.weight if intercept else out, products


def gaps_of(
    points: Any, weights: FloatArray, center: FloatArray
) -> Iterator[tuple[slice, FloatArray]]:
    """Go through rows less a center, some at a time; those of weight zero are at the center."""
    for rows in tiles(len(weights), len(center)):
        gaps = dense(points[rows]) - center
        gaps[weights[rows] == 0.0] = 0.0
        yield rows, gaps


def total_leverage(local: Scatter, scatter: Scatter, *, intercept: bool) -> float:
    """Sum of the `leverages` of the rows of a block, each times its weight, from its scatter."""
    if local.weight == 0.0:
        return 0.0
    center, root = whitening(scatter, intercept=intercept)
    # M is the block's scatter about the center of all rows.
    gap = local.mean - center
    total = float(_diagonal(local.matrix + local.weight * np.outer(gap, gap), root).sum())
    return total + local.weight / scatter.weight if intercept else total


def whitening(scatter: Scatter, *, intercept: bool) -> tuple[FloatArray, FloatArray]:
    r"""Return the center of leverages, and R with :math:`R R^T \approx S^+` about it."""
    if intercept:
        return scatter.mean, inverse_root(scatter.matrix)
    added = scatter.weight * np.outer(scatter.mean, scatter.mean)
    return np.zeros_like(scatter.mean), inverse_root(scatter.matrix + added)


def with_targets(block: Block) -> Any:
    """Return the features with y as the last column."""
    y: AnyArray = targets_of(block)[:, np.newaxis]
    if isinstance(block.points, np.ndarray):
        return np.concatenate([block.points, y], axis=1)
    import scipy.sparse as sp

    return sp.csr_array(sp.hstack([block.points, y], format="csr"))
