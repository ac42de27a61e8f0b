"""Lightweight coresets for Bregman clustering."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np

from daskcoreset.core.block import Block
from daskcoreset.core.moments import (
    Box,
    Moments,
    Scatter,
    box_of,
    merge_boxes,
    merge_moments,
    merge_scatters,
    moments_of,
    scatter_of,
)
from daskcoreset.core.typing import FloatArray, Points
from daskcoreset.errors import InvalidInputError
from daskcoreset.objectives import Distortion
from daskcoreset.sensitivities.base import Sensitivity
from daskcoreset.sensitivities.lightweight import half_uniform, half_uniform_total, weighted
from daskcoreset.solvers.divergences import (
    Divergence,
    DivergenceParameter,
    ItakuraSaito,
    KullbackLeibler,
    SquaredEuclidean,
    SquaredMahalanobis,
)

# A dominating distance, with nothing left to be estimated.
Metric: TypeAlias = SquaredEuclidean | SquaredMahalanobis


@dataclass(frozen=True, eq=False)
class BregmanStatistics:
    """Weight, mean and spread of rows, from which any quadratic distance to the mean follows.

    Attributes
    ----------
    about : Moments or Scatter
        Weight, mean, and second moments by column or for all pairs of columns.
    box : Box or None
        Smallest box of the rows of positive weight, where A depends on it.
    metric : SquaredEuclidean or SquaredMahalanobis, or None
        The dominating distance, once it is finalized for all data.
    """

    about: Moments | Scatter
    box: Box | None
    metric: Metric | None = None

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
        gap: Any = metric.whiten((self.about.mean - center)[np.newaxis])
        return self.error(metric) + self.about.weight * float((gap * gap).sum())


def statistics_of(divergence: Divergence, points: Points, weights: FloatArray) -> BregmanStatistics:
    """Statistics of one block that the divergence needs.

    Examples
    --------
    >>> spread = statistics_of(KullbackLeibler(), np.array([[1.0], [3.0]]), np.ones(2))
    >>> spread.error(dominating_distance(KullbackLeibler(), spread))
    1.0
    """
    box = None if isinstance(divergence, Metric) else box_of(points, weights)
    about = moments_of if is_diagonal(divergence) else scatter_of
    return BregmanStatistics(about(points, weights), box)


def merge_statistics(first: BregmanStatistics, second: BregmanStatistics) -> BregmanStatistics:
    """Statistics of the union of two disjoint sets of rows. Associative up to rounding."""
    merge: Any = merge_moments if isinstance(first.about, Moments) else merge_scatters
    box = None
    if first.box is not None and second.box is not None:
        box = merge_boxes(first.box, second.box)
    return BregmanStatistics(merge(first.about, second.about), box)


def dominating_distance(divergence: Divergence, spread: BregmanStatistics) -> Metric:
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


def proposal_distance(divergence: Divergence, spread: BregmanStatistics) -> Metric:
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


@dataclass(frozen=True)
class LightweightBregman(DivergenceParameter, Sensitivity[BregmanStatistics]):
    r"""Lightweight coresets for hard and soft clustering by a Bregman divergence.

    For a divergence with :math:`\mu\, d_A \le d_\phi \le d_A`, the squared Mahalanobis distance
    :math:`d_A` takes the place of the squared Euclidean distance:

    .. math::

        q(x) = \frac{u(x)}{2U} + \frac{u(x)\, d_A(x, \bar x)}{2 \sum_{x'} u(x')\,
        d_A(x', \bar x)}

    with the weighted mean :math:`\bar x`, which is the best single center for every divergence.
    With :math:`m \in \Omega((d k \log k + \log 1/\delta) / (\mu^2 \varepsilon^2))` rows, the cost
    of every set of k centers is kept, up to :math:`\varepsilon` of itself and of the cost of the
    mean. The guide is :doc:`/guides/clusters`.

    For the Kullback-Leibler and Itakura-Saito divergences, A follows from the smallest value of
    every column. One pass finds them together with the moments. For squared Euclidean distances the
    method equals `Lightweight`.

    Parameters
    ----------
    divergence : str or Divergence, default="squared_euclidean"
        A name such as "kl", or an object of `daskcoreset.objectives.divergences`. For "mahalanobis"
        the precision is the inverse of the covariance of all rows.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If `divergence` is unknown. When building, if a row with positive weight is outside the
        domain (the message names the first one), or if the covariance is singular.

    Examples
    --------
    >>> import numpy as np, daskcoreset
    >>> X = np.vstack([np.ones((99, 2)), [[1.0, 100.0]]])
    >>> coreset = daskcoreset.build(X, size=20, method=LightweightBregman("kl"), random_state=0)
    >>> 99 in coreset.indices  # the outlier has nearly half of all scores
    True

    References
    ----------
    Bachem, Lucic and Krause (2018), section 6.
    """

    divergence: str | Divergence = "squared_euclidean"

    name: ClassVar[str] = "lightweight_bregman"
    citation: ClassVar[str] = "bachem2018scalable, section 6"

    @property
    def objective(self) -> Distortion:
        """The cost of Bregman hard clustering, of any number of centers."""
        return Distortion(None, self.divergence)

    def block_summary(
        self, block: Block, previous: BregmanStatistics | None, rng: np.random.Generator
    ) -> BregmanStatistics:
        """Moments of the block, and its box if A depends on it."""
        del previous, rng
        return statistics_of(self._divergence, block.points, block.weights)

    def merge(self, first: BregmanStatistics, second: BregmanStatistics) -> BregmanStatistics:
        """Statistics of both."""
        return merge_statistics(first, second)

    def finalize(self, summary: BregmanStatistics, rng: np.random.Generator) -> BregmanStatistics:
        """Fix the dominating distance."""
        del rng
        return replace(summary, metric=dominating_distance(self._divergence, summary))

    def scores(self, block: Block, summary: BregmanStatistics) -> FloatArray:
        """Return u / 2U + u d_A(x, mean) / 2 sum u d_A."""
        if summary.about.weight == 0.0:
            return np.zeros(len(block))
        metric = proposal_distance(self._divergence, summary)
        about, phi = summary.about, summary.error(metric)
        costs = weighted(block.weights, metric.to_mean(block.points, about.mean))
        return half_uniform(block.weights, costs, about.weight, phi)

    def total_scores(self, local: BregmanStatistics, summary: BregmanStatistics) -> float:
        """Return the share of the block, as section 4.2 does for k-means."""
        metric = _finalized_metric(summary)
        weight, about = local.about.weight, summary.about
        cost = local.error_about(metric, about.mean) if weight else 0.0
        return half_uniform_total(weight, cost, about.weight, summary.error(metric))

    def provenance(self, summary: BregmanStatistics) -> dict[str, Any]:
        r"""Return the sum of d_A, the scale of the additive error, and mu."""
        facts: dict[str, Any] = {"quantization_error": summary.error(_finalized_metric(summary))}
        if summary.box is not None:
            similarity = self._divergence.similarity(summary.box.low, summary.box.high)
            facts["similarity"] = float(similarity.min())
        return facts


def _finalized_metric(summary: BregmanStatistics) -> Metric:
    assert summary.metric is not None  # noqa: S101 - the root finalizes before blocks are scored
    return summary.metric
