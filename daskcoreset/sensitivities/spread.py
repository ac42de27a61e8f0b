r"""Sums of a dominating distance about a mean, of blocks and of all data.

A divergence that is :math:`\mu`-similar is dominated by a squared Mahalanobis distance
:math:`d_A`, whose matrix A may depend on the data. What blocks send holds enough to form
:math:`\sum_x u(x)\, d_A(x, c)` exactly for every A that may come of it: second moments by
column where A is diagonal whatever the data, the whole scatter matrix otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np

from daskcoreset.solvers.divergences import (
    Divergence,
    ItakuraSaito,
    KullbackLeibler,
    SquaredEuclidean,
    SquaredMahalanobis,
)
from daskcoreset.core.summaries import (
    Box,
    Scatter,
    box_of,
    merge_boxes,
    merge_scatters,
    scatter_of,
)
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.moments import Moments, merge_moments, moments_of
from daskcoreset.core.typing import FloatArray, Points

__all__ = [
    "Metric",
    "Spread",
    "depends_on_data",
    "dominating_distance",
    "is_diagonal",
    "merge_spreads",
    "proposal_distance",
    "spread_of",
]

Metric: TypeAlias = SquaredEuclidean | SquaredMahalanobis
"""A dominating distance, with nothing left to be estimated."""


@dataclass(frozen=True, eq=False)
class Spread:
    """Where rows lie and how far about their mean, in terms that any distance can use.

    Attributes
    ----------
    about : Moments or Scatter
        Weight, mean, and second moments by column or for all pairs of columns.
    box : Box or None
        Smallest box of the rows of positive weight, where A depends on it.
    metric : SquaredEuclidean or SquaredMahalanobis, or None
        The dominating distance, once it is settled for all data.
    """

    about: Moments | Scatter
    box: Box | None
    metric: Metric | None = None

    @property
    def weight(self) -> float:
        """Total weight."""
        return self.about.weight

    @property
    def mean(self) -> FloatArray:
        """Weighted mean of the rows."""
        return self.about.mean

    def error(self, metric: Metric) -> float:
        r""":math:`\sum_x u(x)\, d_A(x, \mu)`, with the mean of these rows."""
        if isinstance(self.about, Scatter):
            # A sum of squares, so that nothing cancels however ill-conditioned A is.
            return float(metric.generator(_roots(self.about.matrix)).sum())
        if isinstance(metric, SquaredEuclidean):
            return self.about.quantization_error
        return float((self.about.m2 * metric.precision).sum())

    def error_about(self, metric: Metric, center: FloatArray) -> float:
        r""":math:`\sum_x u(x)\, d_A(x, c) = \sum_x u(x)\, d_A(x, \mu) + U d_A(\mu, c)`."""
        gap: Any = metric.whiten((self.mean - center)[np.newaxis])
        return self.error(metric) + self.weight * float((gap * gap).sum())


def spread_of(divergence: Divergence, points: Points, weights: FloatArray) -> Spread:
    """Spread of one block, as far as the divergence needs it.

    Examples
    --------
    >>> spread = spread_of(KullbackLeibler(), np.array([[1.0], [3.0]]), np.ones(2))
    >>> spread.error(dominating_distance(KullbackLeibler(), spread))
    1.0
    """
    box = None if isinstance(divergence, Metric) else box_of(points, weights)
    if is_diagonal(divergence):
        return Spread(moments_of(points, weights), box)
    return Spread(scatter_of(points, weights), box)


def merge_spreads(first: Spread, second: Spread) -> Spread:
    """Spread of the union of two disjoint sets of rows; associative up to rounding."""
    about: Moments | Scatter
    if isinstance(first.about, Moments):
        about = merge_moments(first.about, cast("Moments", second.about))
    else:
        about = merge_scatters(first.about, cast("Scatter", second.about))
    boxes = first.box is not None and second.box is not None
    return Spread(about, merge_boxes(first.box, second.box) if boxes else None)  # type: ignore[arg-type]


def dominating_distance(divergence: Divergence, spread: Spread) -> Metric:
    """Return the distance that dominates the divergence on the rows of `spread`.

    Raises
    ------
    InvalidInputError
        If a precision is to be estimated and the covariance is singular, or if float64
        cannot hold the distance.
    """
    if spread.metric is not None:
        return spread.metric
    if spread.box is not None:
        return cast("Metric", divergence.dominating(spread.box.low, spread.box.high))
    if isinstance(spread.about, Scatter) and depends_on_data(divergence):
        return SquaredMahalanobis.estimated(spread.about.covariance)
    return cast("Metric", divergence)


def proposal_distance(divergence: Divergence, spread: Spread) -> Metric:
    """Return a distance by which a block may score its own rows for a proposal.

    The dominating distance, or, where the rows of the block are too few or too much alike
    for a precision, that of their variances: proposals may be anything positive.
    """
    try:
        return dominating_distance(divergence, spread)
    except InvalidInputError:
        if spread.box is not None or not isinstance(spread.about, Scatter):
            raise
    variances = spread.about.covariance.diagonal()
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        precision = 1.0 / variances
        usable = np.isfinite(precision) & (precision > 0.0)
    return SquaredMahalanobis(np.where(usable, precision, 1.0))


def depends_on_data(divergence: Divergence) -> bool:
    """Whether the dominating distance is known only after the data were seen."""
    if isinstance(divergence, SquaredMahalanobis):
        return divergence.precision is None
    return not isinstance(divergence, SquaredEuclidean)


def is_diagonal(divergence: Divergence) -> bool:
    """Whether A is diagonal for certain, whatever the data."""
    if isinstance(divergence, SquaredMahalanobis):
        return divergence.precision is not None and divergence.precision.ndim == 1
    # Their own types: a class derived from one may be dominated by another matrix.
    return type(divergence) in (SquaredEuclidean, KullbackLeibler, ItakuraSaito)


def _roots(matrix: FloatArray) -> FloatArray:
    r"""Rows r with :math:`S = \sum r r^T`, formed at unit diagonal: units of columns differ."""
    scale = np.sqrt(matrix.diagonal())
    scale = np.where(scale > 0.0, scale, 1.0)
    if not np.isfinite(matrix).all():
        return np.full_like(matrix, np.inf)  # which the root reports
    values, vectors = np.linalg.eigh(matrix / scale / scale[:, np.newaxis])
    roots: FloatArray = (vectors * np.sqrt(np.maximum(values, 0.0))).T * scale
    return roots
