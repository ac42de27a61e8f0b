"""Messages between the blocks and the final draw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from daskcoreset.core.block import Block, concatenate
from daskcoreset.core.invalid import no_weight_error
from daskcoreset.core.messages import ignore_overflow
from daskcoreset.core.typing import FloatArray, IndexArray
from daskcoreset.errors import InvalidInputError
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
        Probability of inclusion (systematic), or per draw (multinomial).
    target : float
        Rows requested of the block. Infinite where it gave all that have a score, so
        that nothing was left to chance.
    """

    block_index: int
    rows: Block
    probability: FloatArray
    target: float = np.inf


@dataclass(frozen=True, eq=False)
class CandidatesOfBlocks:
    """Candidates of several blocks, as arrays that go on from block to block.

    Attributes
    ----------
    blocks, counts : ndarray of shape (n,), int64
        Indices of the blocks, and how many rows each has sent.
    targets : ndarray of shape (n,), float64
    rows : Block
    probability : ndarray of shape (k,), float64
    """

    blocks: IndexArray
    counts: IndexArray
    targets: FloatArray
    rows: Block
    probability: FloatArray

    @classmethod
    def joined(cls, parts: Iterable[Candidates | CandidatesOfBlocks]) -> CandidatesOfBlocks:
        """Put candidates of one or more blocks after one another."""
        if isinstance(parts, cls):
            return parts
        each = [
            cls(
                np.array([part.block_index]),
                np.array([len(part.rows)]),
                np.array([part.target], dtype=np.float64),
                part.rows,
                part.probability,
            )
            if isinstance(part, Candidates)
            else part
            for part in parts
        ]
        if len(each) == 1:
            return each[0]
        return cls(
            np.concatenate([part.blocks for part in each]),
            np.concatenate([part.counts for part in each]),
            np.concatenate([part.targets for part in each]),
            concatenate([part.rows for part in each]),
            np.concatenate([part.probability for part in each]),
        )

    def __len__(self) -> int:
        return len(self.blocks)

    def __iter__(self) -> Iterator[Candidates]:
        """Give the candidates of one block after another; views."""
        stops = np.cumsum(self.counts)
        for i, (block, stop) in enumerate(zip(self.blocks.tolist(), stops.tolist(), strict=True)):
            part = slice(stop - int(self.counts[i]), stop)
            yield Candidates(
                block,
                self.rows.take(part),
                self.probability[part],
                float(self.targets[i]),
            )

    def replaced(self, parts: Iterable[Candidates]) -> CandidatesOfBlocks:
        """Return the same with other candidates of some blocks."""
        by_block = {part.block_index: part for part in parts}
        return self.joined(by_block.get(part.block_index, part) for part in self)


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
    candidates : tuple of Candidates, or CandidatesOfBlocks
    classes : mapping of label to int
        Rows of positive weight of every class, where labels are classes.
    """

    weights: Mapping[int, float]
    summary: Any = None
    summaries: dict[int, Any] = field(default_factory=dict)
    total_scores: Mapping[int, float] = field(default_factory=dict)
    candidates: tuple[Candidates, ...] | CandidatesOfBlocks = ()
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
    candidates: list[Candidates | CandidatesOfBlocks] = []
    for report in reports:
        sent = report.candidates
        candidates += [sent] if isinstance(sent, CandidatesOfBlocks) else sent
    return BlockReport(
        {index: weight for report in reports for index, weight in report.weights.items()},
        summary,
        {index: local for report in reports for index, local in report.summaries.items()},
        {index: sums for report in reports for index, sums in report.total_scores.items()},
        CandidatesOfBlocks.joined(candidates) if candidates else (),
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
