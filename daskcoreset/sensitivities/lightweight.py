"""Lightweight coresets: half uniform, half by squared distance to the mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from daskcoreset.core.block import Block
from daskcoreset.core.moments import (
    Moments,
    distances_to,
    merge_moments,
    moments_and_costs,
    moments_of,
)
from daskcoreset.core.typing import FloatArray
from daskcoreset.objectives import QuantizationError
from daskcoreset.sensitivities.base import Scored, Sensitivity


@dataclass(frozen=True)
class Lightweight(Sensitivity[Moments]):
    r"""Lightweight coresets for k-means: half uniform, half by squared distance to the mean.

    .. math::

        q(x) = \frac{u(x)}{2U} + \frac{u(x)\, |x - \mu|^2}{2\, \phi_X(\{\mu\})},
        \qquad \phi_X(\{\mu\}) = \sum_x u(x)\, |x - \mu|^2,

    with the weighted mean :math:`\mu` and the total weight U. One coreset serves any number of
    clusters.

    With :math:`m \in \Omega((d k \log k + \log 1/\delta) / \varepsilon^2)` rows, with probability
    at least :math:`1 - \delta`, every set Q of k centers has :math:`|\phi_X(Q) - \phi_C(Q)| \le
    \frac\varepsilon2 \phi_X(Q) + \frac\varepsilon2 \phi_X(\{\mu\})`. The second term is large
    against the cost of many small clusters: see :doc:`/guarantees`. If all rows are equal, they are
    drawn uniformly.

    Examples
    --------
    >>> import numpy as np, daskcoreset
    >>> X = np.vstack([np.zeros((99, 2)), [[100.0, 0.0]]])
    >>> coreset = daskcoreset.build(X, size=20, method=Lightweight(), random_state=0)
    >>> 99 in coreset.indices  # the outlier has nearly half of all scores
    True

    References
    ----------
    Bachem, Lucic and Krause (2018), Algorithm 1, Definition 1 and Theorem 2.
    """

    name: ClassVar[str] = "lightweight"
    citation: ClassVar[str] = "bachem2018scalable, Algorithm 1 and section 4.2"

    @property
    def objective(self) -> QuantizationError:
        """The k-means cost, of any number of centers."""
        return QuantizationError()

    def block_summary(
        self, block: Block, previous: Moments | None, rng: np.random.Generator
    ) -> Any:
        """Return the moments of the block, and scores of its rows by nearly its own mean."""
        del previous, rng
        if not isinstance(block.points, np.ndarray) or not block.weights.any():
            return moments_of(block.points, block.weights)
        moments, costs = moments_and_costs(block.points, block.weights)
        scores = half_uniform(block.weights, costs, moments.weight, float(costs.sum()))
        return Scored(moments, scores)

    def merge(self, first: Moments, second: Moments) -> Moments:
        """Moments of both."""
        return merge_moments(first, second)

    def scores(self, block: Block, summary: Moments) -> FloatArray:
        """Return u / 2U + u d(x, mu)^2 / 2 phi."""
        if summary.weight == 0.0:
            return np.zeros(len(block))
        costs = weighted(block.weights, distances_to(block.points, summary.mean))
        return half_uniform(block.weights, costs, summary.weight, summary.quantization_error)

    def total_scores(self, local: Moments, summary: Moments) -> float:
        """Return U_i / 2U + phi_i({mu}) / 2 phi, as in section 4.2."""
        cost = local.quantization_error_about(summary.mean) if local.weight else 0.0
        return half_uniform_total(local.weight, cost, summary.weight, summary.quantization_error)

    def provenance(self, summary: Moments) -> dict[str, Any]:
        """Return phi_X({mu}), the scale of the additive error."""
        return {"quantization_error": summary.quantization_error}


def weighted(weights: FloatArray, distances: FloatArray) -> FloatArray:
    """Multiply distances by weights. A row without weight costs nothing, however far away."""
    with np.errstate(invalid="ignore"):
        costs: FloatArray = weights * distances
    costs[weights == 0.0] = 0.0  # not infinity by zero
    return costs


def half_uniform(
    weights: FloatArray, costs: FloatArray, total_weight: float, phi: float
) -> FloatArray:
    """Score rows half by their weights, half by their weighted distances to the mean, in place.

    By their weights alone if the sum phi of the weighted distances is zero. `costs`, which are the
    weighted distances, become the scores: new memory takes longer than the arithmetic.

    Examples
    --------
    >>> half_uniform(np.ones(2), np.array([0.0, 4.0]), 2.0, 4.0)
    array([0.25, 0.75])
    """
    if phi > 0.0:
        costs /= 2.0 * phi
    else:
        costs.fill(0.0)  # rounding may leave some
    costs += weights * ((1.0 if phi == 0.0 else 0.5) / total_weight)
    return costs


def half_uniform_total(weight: float, cost: float, total_weight: float, phi: float) -> float:
    """Add up `half_uniform` over rows of a weight whose weighted distances sum to a cost."""
    if phi == 0.0:
        return weight / total_weight
    return weight / (2 * total_weight) + cost / (2 * phi)
