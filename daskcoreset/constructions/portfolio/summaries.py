"""Moments, quantiles and a sample of all rows, from the read that builds coresets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np

from daskcoreset.constructions.sampling.final_draw import FinalDraw
from daskcoreset.constructions.sampling.job import SamplingJob
from daskcoreset.core.blocks import Block, ReadBlock, labels_of
from daskcoreset.core.data_summary import MAX_COLUMNS, DataSummary
from daskcoreset.core.errors import InvalidInputError, ignore_overflow
from daskcoreset.core.linalg import dense
from daskcoreset.core.moments import Box, Scatter, box_of, merge_boxes, merge_scatters, scatter_of
from daskcoreset.core.optional import import_optional
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.typing import FloatArray, IndexArray
from daskcoreset.core.validation import shown
from daskcoreset.execution.engine import Engine, Reduction
from daskcoreset.execution.rounds import Request, Steps
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.sensitivities import Uniform

SUMMARIES = ("moments", "quantiles", "sample")

# Rows of the sample: as many as an audit draws at least.
SAMPLE_ROWS = 10_000

# Centroids of a t-digest, about: of 1e6 normal numbers ranks were within 2e-4.
_COMPRESSION = 200

# Groups that the sorted values of a block are put into first: a digest is fed with so many numbers
# and not with all, at a third of the time.
_GROUPS = 1000


def check_summaries(summaries: Any) -> tuple[str, ...]:
    """Check what is asked for beside the coresets.

    Examples
    --------
    >>> check_summaries("all")
    ('moments', 'quantiles', 'sample')
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
    if "quantiles" in names:
        need_digests()
    return tuple(names)


def need_digests() -> Any:
    """Import the class of t-digests."""
    return import_optional(
        "crick", 'quantiles need crick; pip install "daskcoreset[quantiles]" brings it.'
    ).TDigest


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
    digests : tuple of crick.TDigest
        One for every column, or none.
    """

    count: int
    scatter: Scatter
    box: Box
    missing: IndexArray
    digests: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class SummaryJob:
    """Moments and quantiles of all rows, from the first read.

    Attributes
    ----------
    blocks : RowBlocks
    quantiles : bool
    """

    blocks: RowBlocks
    quantiles: bool

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
        chunk = partial(_summarised, self.quantiles)
        return (yield Request(Reduction(chunk, _merged)))

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
        parts = [_centroids(digest) for digest in found.digests]
        bounds = np.cumsum([0, *map(len, parts)])
        return DataSummary(
            found.count,
            found.scatter.weight,
            mean[:d],
            found.box.low,
            found.box.high,
            found.missing,
            scatter,
            of_y,
            np.concatenate(parts) if parts else None,
            bounds if parts else None,
            None if self.blocks.columns is None else tuple(self.blocks.columns),
        )


def _summarised(quantiles: bool, rows: ReadBlock, _broadcast: object) -> _OfRows:
    block = rows.valid_block
    d = int(block.points.shape[1])
    missing = np.zeros(d, dtype=np.int64) if rows.missing is None else rows.missing
    with ignore_overflow():
        scatter = scatter_of(block.points, block.weights, _target(block))
    box = box_of(block.points, block.weights)
    digests = _digests(block) if quantiles else ()
    return _OfRows(int(np.count_nonzero(block.weights)), scatter, box, missing, digests)


def _target(block: Block) -> FloatArray | None:
    """Labels that are numbers, none of them missing."""
    if block.labels is None:
        return None
    labels = labels_of(block)
    if labels.dtype.kind not in "biuf":
        return None
    return labels.astype(np.float64)


def _digests(block: Block) -> tuple[Any, ...]:
    """Digest every column, of rows of positive weight."""
    digest_of = need_digests()
    counts = np.flatnonzero(block.weights)
    u = block.weights[counts]
    equal = not len(u) or bool((u == u[0]).all())
    # By a few columns at a time, that no block is copied whole.
    digests = []
    for j in range(block.points.shape[1]):
        digest = digest_of(_COMPRESSION)
        digests.append(digest)
        if not len(u):
            continue
        column = block.points[:, [j]]
        values = dense(column).ravel()[counts]
        if equal:
            values.sort()
            ordered = u
        else:
            order = np.argsort(values, kind="stable")
            values, ordered = values[order], u[order]
        bounds = _bounds(len(values))
        weights = np.add.reduceat(ordered, bounds)
        sums = np.add.reduceat(values * ordered, bounds)
        digest.update(sums / weights, weights)
    return tuple(digests)


def _bounds(n: int) -> IndexArray:
    """Where groups of sorted values begin, the narrower the nearer they are to the ends."""
    ends = (1.0 - np.cos(np.linspace(0.0, np.pi, _GROUPS + 1))) / 2
    return np.unique((ends[:-1] * n).astype(np.int64))


def _merged(parts: Sequence[_OfRows]) -> _OfRows:
    if len(parts) == 1:
        return parts[0]
    counted = [part.scatter for part in parts if part.scatter.weight] or [parts[0].scatter]
    width = min(len(scatter.mean) for scatter in counted)  # text in one block, numbers in another
    with ignore_overflow():
        scatter = reduce(merge_scatters, [_narrow(scatter, width) for scatter in counted])
    digests = []
    for of_column in zip(*[part.digests for part in parts], strict=True):
        digest = need_digests()(_COMPRESSION)
        digest.merge(*of_column)
        digests.append(digest)
    return _OfRows(
        sum(part.count for part in parts),
        scatter,
        reduce(merge_boxes, [part.box for part in parts]),
        np.sum([part.missing for part in parts], axis=0),
        tuple(digests),
    )


def _narrow(scatter: Scatter, width: int) -> Scatter:
    return Scatter(scatter.weight, scatter.mean[:width], scatter.matrix[:width, :width])


def _centroids(digest: Any) -> FloatArray:
    found = digest.centroids()
    return np.stack([found["mean"], found["weight"]], axis=1).astype(np.float64)
