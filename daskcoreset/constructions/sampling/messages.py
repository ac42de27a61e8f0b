"""Messages between the blocks and the final draw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from daskcoreset.core.block import Block
from daskcoreset.core.invalid import no_weight_error
from daskcoreset.core.messages import ignore_overflow
from daskcoreset.core.typing import FloatArray
from daskcoreset.errors import InvalidInputError
from daskcoreset.execution.engine import BlockResults
from daskcoreset.sensitivities import Sensitivity


@dataclass(frozen=True, eq=False)
class SentRows:
    """Rows that one block sent to the final draw.

    Attributes
    ----------
    rows : Block
        The rows, in the order of the draws.
    probability : ndarray of shape (k,), float64
        Probability of inclusion (systematic), or score (multinomial).
    target : float
        Rows requested of the block. Infinite if it gave all that have a score, so that nothing was
        left to chance.
    """

    rows: Block
    probability: FloatArray
    target: float = np.inf


@dataclass(frozen=True, eq=False)
class BlockReport:
    """Report of one block, or of several neighbouring ones.

    Attributes
    ----------
    weights : mapping of int to float
        Total weight of every block.
    summary : object or None
        Merged summary.
    summaries : dict of int to object
        Summary of every block in the last fold. None where the sums of scores are sent instead.
    total_scores : mapping of int to float
        Sums of the scores of every block, where a read added them up.
    sent : mapping of int to SentRows
        Rows of every block that are candidates for the final draw.
    classes : mapping of label to int
        Rows of positive weight of every class, where labels are classes.
    """

    weights: Mapping[int, float]
    summary: Any = None
    summaries: dict[int, Any] = field(default_factory=dict)
    total_scores: Mapping[int, float] = field(default_factory=dict)
    sent: Mapping[int, SentRows] = field(default_factory=dict)
    classes: Mapping[Any, int] = field(default_factory=dict)

    @property
    def weight(self) -> float:
        """Total weight U of the rows."""
        return float(sum(self.weights.values()))


def merge_reports(construction: Sensitivity[Any], reports: Sequence[BlockReport]) -> BlockReport:
    """Merge the reports of neighbouring blocks, in the order of the blocks."""
    summaries = [report.summary for report in reports if report.summary is not None]
    with ignore_overflow():
        summary = reduce(construction.merge, summaries) if summaries else None
    return BlockReport(
        {index: weight for report in reports for index, weight in report.weights.items()},
        summary,
        {index: local for report in reports for index, local in report.summaries.items()},
        {index: sums for report in reports for index, sums in report.total_scores.items()},
        {index: sent for report in reports for index, sent in report.sent.items()},
        sum((Counter(report.classes) for report in reports), Counter()),
    )


def check_report(results: BlockResults[Any]) -> None:
    """Raise an error for the first invalid row, or a total weight of zero or infinity."""
    results.check()
    weight = results.value.weight
    if not np.isfinite(weight):
        raise InvalidInputError(
            "sample_weight sums to infinity", argument="sample_weight", remedy="scale it down"
        )
    if weight == 0.0:
        raise no_weight_error()


@dataclass(frozen=True, eq=False)
class DrawRequest:
    """Request of the final draw to the blocks, for a further read.

    Attributes
    ----------
    summary : object
        Finalized summary of all the data.
    targets : mapping of int to float, or None
        By block: candidates (systematic) or draws (multinomial). None asks for all rows.
    """

    summary: Any
    targets: Mapping[int, Any] | None
