"""Positive rows for Bregman coresets, and divergences of one's own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from daskcoreset.core.block import Block
from daskcoreset.core.invalid import InvalidRow
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.typing import FloatArray
from daskcoreset.objectives import QuantizationError
from daskcoreset.sensitivities import LightweightBregman, Sensitivity, StrongBregman
from daskcoreset.solvers.divergences import (
    ItakuraSaito,
    KullbackLeibler,
    SquaredEuclidean,
    SquaredMahalanobis,
)

RNG = np.random.default_rng(0)
POSITIVE = RNG.lognormal(size=(60, 3)) + 0.1
WEIGHTS = RNG.uniform(0.5, 2.0, size=60)


def settled(construction: Sensitivity[Any], *blocks: Block) -> tuple[list[Any], Any]:
    summary, parts = None, []
    for fold in range(construction.n_folds):
        parts = [
            construction.block_summary(one, summary, stream(0, Stage.SUMMARIES)) for one in blocks
        ]
        merged = parts[0]
        for part in parts[1:]:
            merged = construction.merge(merged, part)
        summary = construction.finalize(merged, stream(0, Stage.SETTLING, 0, fold))
    return parts, summary


def halves(points: Any = POSITIVE, weights: Any = WEIGHTS) -> list[Block]:
    return [Block(points[:25], weights[:25]), Block(points[25:], weights[25:])]


FULL = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 3.0]])


DIVERGENCES = [
    SquaredEuclidean(),
    SquaredMahalanobis(FULL),
    SquaredMahalanobis([1.0, 4.0, 0.1]),
    SquaredMahalanobis(),
    KullbackLeibler(),
    ItakuraSaito(),
]


class Own(KullbackLeibler):
    """A divergence of the user's, dominated by a full matrix that depends on the box."""

    def dominating(self, low: Any, high: Any) -> SquaredMahalanobis:
        return SquaredMahalanobis(FULL * (1 + high.max() - low.min()))


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
    citation: ClassVar[str] = LightweightBregman.citation

    @property
    def inner(self) -> Sensitivity[Any]:
        if self.n_clusters is None:
            return LightweightBregman(self.divergence)
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
