"""Methods for labelled rows whose draws are neither calibrated nor compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from tests.acceptance import face


@dataclass(frozen=True)
class ByWeight(face.Sensitivity[float]):
    """Rows in proportion to their weights, classes as strata."""

    name: ClassVar[str] = "by_weight"
    citation: ClassVar[str] = "none"
    labels: ClassVar[Literal["classes"]] = "classes"
    objective = face.Logistic().objective

    def block_summary(self, block: Any, previous: Any, rng: Any) -> float:
        del previous, rng
        return float(block.weights.sum())

    def merge(self, first: float, second: float) -> float:
        return first + second

    def scores(self, block: Any, summary: float) -> Any:
        del summary
        return block.weights

    def total_scores(self, local: float, summary: float) -> float:
        del summary
        return local


class PlainSVM(face.SVM):
    """Rows by the scores of `SVM`, with the weights of the draw."""

    draw = face.Sensitivity.draw


class PlainLogistic(face.Logistic):
    """Rows by the scores of `Logistic`, with the weights of the draw."""

    draw = face.Sensitivity.draw
