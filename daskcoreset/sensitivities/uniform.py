"""Uniform sampling, the baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from daskcoreset.core.block import Block
from daskcoreset.core.typing import FloatArray
from daskcoreset.objectives import QuantizationError
from daskcoreset.sensitivities.base import Sensitivity


@dataclass(frozen=True)
class Uniform(Sensitivity[float]):
    """Draw rows uniformly, in proportion to their input weights: :math:`q(x) = u(x) / U`.

    Costs are unbiased, without a guarantee: small clusters far away are missed. It is the baseline
    of :doc:`/choose`.

    Examples
    --------
    >>> import numpy as np, daskcoreset
    >>> X = np.arange(200.0).reshape(100, 2)
    >>> daskcoreset.build(X, size=10, method=Uniform(), random_state=0)
    Coreset(uniform: 10 of 100 rows, 2 features, no labels, seed 0)

    References
    ----------
    Bachem, Lucic and Krause (2018), section 7, the method UNIFORM.
    """

    name: ClassVar[str] = "uniform"
    citation: ClassVar[str] = "bachem2018scalable, section 7"

    @property
    def objective(self) -> QuantizationError:
        """The k-means cost. Audits accept other costs as well."""
        return QuantizationError()

    def block_summary(
        self, block: Block, previous: float | None, rng: np.random.Generator
    ) -> float:
        """Total weight U of the block."""
        del previous, rng
        return float(block.weights.sum())

    def merge(self, first: float, second: float) -> float:
        """Total weight of both."""
        return first + second

    def scores(self, block: Block, summary: float) -> FloatArray:
        """Return u / U."""
        if summary == 0.0:
            return np.zeros(len(block))
        return np.asarray(block.weights / summary)

    def total_scores(self, local: float, summary: float) -> float:
        """Return the weight of the block over U."""
        return local / summary
