"""Moments and a sample of all rows, from the read that builds coresets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from daskcoreset.constructions.sampling.final_draw import FinalDraw
from daskcoreset.constructions.sampling.job import SamplingJob
from daskcoreset.core.blocks import Block, ReadBlock, labels_of
from daskcoreset.core.data_summary import MAX_COLUMNS, DataSummary
from daskcoreset.core.errors import InvalidInputError, ignore_overflow
from daskcoreset.core.moments import Box, Scatter, box_of, merge_boxes, merge_scatters, scatter_of
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.typing import FloatArray, IndexArray
from daskcoreset.core.validation import shown
from daskcoreset.execution.engine import Engine, Reduction
from daskcoreset.execution.rounds import Request, Steps
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.sensitivities import Uniform

SUMMARIES = ("moments", "sample")

# Rows of the sample: as many as an audit draws at least.
SAMPLE_ROWS = 10_000


def check_summaries(summaries: Any) -> tuple[str, ...]:
    """Check what is asked for beside the coresets.

    Examples
    --------
    >>> check_summaries("all")
    ('moments', 'sample')
    """
    names = SUMMARIES if isinstance(summaries, str) and summaries == "all" else summaries
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise InvalidInputError(
            f'summaries is {shown(summaries)}; pass "all", or a list of {", ".join(SUMMARIES)}.'
        )
    for name in names:
        if not isinstance(name, str) or name not in SUMMARIES:
            raise InvalidInputError(
                f'summaries has {shown(name)}; pass "all", or a list of {", ".join(SUMMARIES)}.'
            )
    return tuple(names)


def sample_job(blocks: RowBlocks, seed: int, split_every: int, passes: int) -> SamplingJob:
    """Return the job of a uniform sample whose draws no member shares."""
    own = int(stream(seed, Stage.AUDIT, 0, 3).integers(2**63))
    draw = FinalDraw(Uniform(), SAMPLE_ROWS, "systematic", own)
    return SamplingJob(blocks, draw, passes, split_every, warns=False)


@dataclass(frozen=True, eq=False)
class _OfRows:
    """Summary of the rows of some blocks.

    Attributes
    ----------
    count : int
    scatter : Scatter
        With y as the last column, where it is numbers.
    box : Box
    missing : ndarray of shape (d,), int64
    """

    count: int
    scatter: Scatter
    box: Box
    missing: IndexArray


@dataclass(frozen=True, eq=False)
class SummaryJob:
    """Moments of all rows, from the first read.

    Attributes
    ----------
    blocks : RowBlocks
    """

    blocks: RowBlocks

    reads = 1
    n_candidates = 0.0

    def __post_init__(self) -> None:
        d = self.blocks.schema.n_features
        if d > MAX_COLUMNS:
            raise InvalidInputError(
                f"X has {d:,} columns, and the covariance of more than {MAX_COLUMNS:,} is not "
                f"gathered; leave summaries out, or pass fewer columns."
            )

    def reading(self, engine: Engine) -> Steps[Any]:
        """Ask for the read; return the summary of all rows."""
        del engine
        return (yield Request(Reduction(_summarised, _merged)))

    def finishing(self, results: Any) -> Steps[DataSummary]:
        """Make the summary of what was read."""
        yield from ()  # nothing is read again
        results.check()
        found: _OfRows = results.value
        d = len(found.missing)
        mean, scatter = found.scatter.mean, found.scatter.matrix
        of_y = float(mean[d]) if len(mean) > d and np.isfinite(scatter[d]).all() else None
        if of_y is None:
            scatter = scatter[:d, :d]
        return DataSummary(
            found.count,
            found.scatter.weight,
            mean[:d],
            found.box.low,
            found.box.high,
            found.missing,
            scatter,
            of_y,
            None if self.blocks.columns is None else tuple(self.blocks.columns),
        )


def _summarised(rows: ReadBlock, _broadcast: object) -> _OfRows:
    block = rows.valid_block
    d = int(block.points.shape[1])
    missing = np.zeros(d, dtype=np.int64) if rows.missing is None else rows.missing
    with ignore_overflow():
        scatter = scatter_of(block.points, block.weights, _target(block))
    box = box_of(block.points, block.weights)
    return _OfRows(int(np.count_nonzero(block.weights)), scatter, box, missing)


def _target(block: Block) -> FloatArray | None:
    """Labels that are numbers, none of them missing."""
    if block.labels is None:
        return None
    labels = labels_of(block)
    if labels.dtype.kind not in "biuf":
        return None
    return labels.astype(np.float64)


def _merged(parts: Sequence[_OfRows]) -> _OfRows:
    if len(parts) == 1:
        return parts[0]
    counted = [part.scatter for part in parts if part.scatter.weight] or [parts[0].scatter]
    width = min(len(scatter.mean) for scatter in counted)  # text in one block, numbers in another
    with ignore_overflow():
        scatter = reduce(merge_scatters, [_narrow(scatter, width) for scatter in counted])
    return _OfRows(
        sum(part.count for part in parts),
        scatter,
        reduce(merge_boxes, [part.box for part in parts]),
        np.sum([part.missing for part in parts], axis=0),
    )


def _narrow(scatter: Scatter, width: int) -> Scatter:
    return Scatter(scatter.weight, scatter.mean[:width], scatter.matrix[:width, :width])
