"""The contract of sensitivities for Bregman and mixture coresets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

from daskcoreset.core.blocks import Block, InvalidRow
from daskcoreset.core.typing import FloatArray
from daskcoreset.objectives import QuantizationError
from daskcoreset.sensitivities import (
    BregmanLightweight,
    MixtureCoreset,
    Sensitivity,
    StrongBregman,
)
from daskcoreset.testing import SensitivityContract


def as_rows(points: Any) -> Any:
    """Positive rows made of any: the contract's are of both signs."""
    rows = points if isinstance(points, np.ndarray) else points.toarray()
    rows = np.abs(rows) + rows.dtype.type(0.5)
    return rows if isinstance(points, np.ndarray) else sp.csr_array(rows)


@dataclass(frozen=True)
class OnPositive(Sensitivity[Any]):
    """A construction for positive data, on the absolute values of any rows."""

    divergence: str
    n_clusters: int | None = None

    name: ClassVar[str] = "on_positive"
    citation: ClassVar[str] = BregmanLightweight.citation

    @property
    def inner(self) -> Sensitivity[Any]:
        if self.n_clusters is None:
            return BregmanLightweight(self.divergence)
        return StrongBregman(self.n_clusters, self.divergence)

    @property
    def objective(self) -> QuantizationError:
        return QuantizationError(self.n_clusters)  # of any rows

    @property
    def randomised(self) -> bool:  # type: ignore[override]
        return self.inner.randomised

    @property
    def total_scores_exact(self) -> bool:  # type: ignore[override]
        return self.inner.total_scores_exact

    def _on(self, block: Block) -> Block:
        return replace(block, points=as_rows(block.points))

    def find_invalid_row(self, block: Block) -> InvalidRow | None:
        return self.inner.find_invalid_row(self._on(block))

    def block_summary(self, block: Block, previous: Any, rng: np.random.Generator) -> Any:
        return self.inner.block_summary(self._on(block), previous, rng)

    def merge(self, first: Any, second: Any) -> Any:
        return self.inner.merge(first, second)

    def finalize(self, summary: Any, rng: np.random.Generator) -> Any:
        return self.inner.finalize(summary, rng)

    def scores(self, block: Block, summary: Any) -> FloatArray:
        return self.inner.scores(self._on(block), summary)

    def total_scores(self, local: Any, summary: Any) -> FloatArray:
        return self.inner.total_scores(local, summary)

    def provenance(self, summary: Any) -> dict[str, Any]:
        return self.inner.provenance(summary)


class Light(SensitivityContract):
    n_seeds = 200


class TestLightweightEuclidean(Light):
    def construction(self) -> BregmanLightweight:
        return BregmanLightweight()


@pytest.mark.nightly  # the code of the Euclidean one, with another divergence
class TestLightweightKullbackLeibler(Light):
    def construction(self) -> OnPositive:
        return OnPositive("kl")


@pytest.mark.nightly  # likewise
class TestStrongKullbackLeibler(Light):
    def construction(self) -> OnPositive:
        return OnPositive("kl", 3)


class TestMixture(Light):
    def construction(self) -> MixtureCoreset:
        return MixtureCoreset(3)
