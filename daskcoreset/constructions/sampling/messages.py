"""Messages between the blocks and the final draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from daskcoreset.core.blocks import Block
from daskcoreset.core.errors import InvalidInputError, ignore_overflow
from daskcoreset.core.typing import FloatArray
from daskcoreset.execution.engine import BlockResults
from daskcoreset.sensitivities import Sensitivity


@dataclass(frozen=True, eq=False)
class Candidates:
    """Rows that one block sent to the final draw.

    Attributes
    ----------
    block_index : int
    rows : Block
        The rows, in the order of the draws.
    probability : ndarray of shape (k,), float64
        Of inclusion (systematic), or per draw (multinomial).
    coins : ndarray of shape (k,), float64, or None
        Uniform numbers for rejection, drawn where the rows were.
    target : float
        Rows requested of the block; infinite where it gave all that have a score, so
        that nothing was left to chance.
    """

    block_index: int
    rows: Block
    probability: FloatArray
    coins: FloatArray | None = None
    target: float = np.inf


@dataclass(frozen=True, eq=False)
class BlockReport:
    """Report of one block, or of several neighbouring ones.

    Attributes
    ----------
    weights : dict of int to float
        Total weight of every block.
    summary : object or None
        Merged summary.
    summaries : dict of int to object
        Summary of every block in the last fold; none where the sums of scores are sent instead.
    total_scores : dict of int to ndarray
        Sums of the scores of every block by component, where a read added them up.
    candidates : tuple of Candidates
    """

    weights: dict[int, float]
    summary: Any = None
    summaries: dict[int, Any] = field(default_factory=dict)
    total_scores: dict[int, FloatArray] = field(default_factory=dict)
    candidates: tuple[Candidates, ...] = ()

    @property
    def weight(self) -> float:
        """Total weight U of the rows."""
        return float(sum(self.weights[index] for index in sorted(self.weights)))


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
        tuple(candidates for report in reports for candidates in report.candidates),
    )


def check_report(results: BlockResults[Any]) -> None:
    """Raise an error for the first invalid row, or a total weight of zero or infinity."""
    results.check()
    weight = results.value.weight
    if not np.isfinite(weight):
        raise InvalidInputError("sample_weight sums to infinity; scale it down.")
    if weight == 0.0:
        raise InvalidInputError(
            "sample_weight is zero on every row; give at least one row a positive weight."
        )


@dataclass(frozen=True, eq=False)
class DrawRequest:
    """Request of the final draw to the blocks, for a further read.

    Attributes
    ----------
    summary : object
        Finalized summary of all the data.
    targets : dict of int to (float or ndarray), or None
        By block: candidates (systematic) or draws by component (multinomial); None asks for
        all rows.
    """

    summary: Any
    targets: dict[int, Any] | None
