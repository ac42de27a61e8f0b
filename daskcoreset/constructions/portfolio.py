"""Several coresets, and the exact moments of all rows, from the same passes over the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from daskcoreset.constructions.job import Job
from daskcoreset.core.block import Block, ReadBlock, labels_of
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.messages import ignore_overflow, package_versions
from daskcoreset.core.moments import Scatter, merge_scatters, scatter_of
from daskcoreset.core.portfolio import MAX_COLUMNS, DataSummary, Portfolio
from daskcoreset.core.typing import FloatArray
from daskcoreset.execution.engine import Engine, Reduction
from daskcoreset.execution.steps import Request, Steps, listed, names_of, run_together
from daskcoreset.inputs.blocks import RowBlocks

# Entries of the provenance that all members share.
_SHARED = ("n", "n_dropped", "d", "total_weight", "seed", "n_blocks", "source", "columns")

# Key of the moments among the members, whose keys are text.
_MOMENTS = None


@dataclass(frozen=True, eq=False)
class PortfolioJob(Job[Portfolio]):
    """Builds that share their passes over the data, as a graph or in memory.

    Attributes
    ----------
    blocks : RowBlocks
    jobs : mapping of str to Job
        By the names of the members.
    split_every : int
        Results that one task of the reduction merges.
    """

    blocks: RowBlocks
    jobs: Mapping[str, Job[Any]]
    split_every: int

    @property
    def _all(self) -> dict[str | None, Job[Any]]:
        jobs: dict[str | None, Job[Any]] = dict(self.jobs.items())
        if self.blocks.schema.n_features <= MAX_COLUMNS:
            jobs[_MOMENTS] = MomentsJob(self.blocks)
        return jobs

    @property
    def reads(self) -> int:
        """Passes over the data: those of the member that needs most."""
        return max(job.reads for job in self.jobs.values())

    @property
    def n_candidates(self) -> float:
        """Rows that are gathered at the root, for all members."""
        return sum(job.n_candidates for job in self.jobs.values())

    def read(self, engine: Engine) -> Any:
        """Read for all members, or define the graph of it with a lazy engine."""
        names = names_of(self._all)
        steps = {
            key: job.reading(replace(engine, member=names[key])) for key, job in self._all.items()
        }
        return engine.apply(listed, *run_together(engine, steps).values())

    def finish(self, engine: Engine, results: list[Any]) -> Portfolio:
        """Make all members."""
        jobs = zip(self._all.items(), results, strict=True)
        made = run_together(engine, {key: job.finishing(value) for (key, job), value in jobs})
        members: dict[str, Coreset] = {name: made[name] for name in self.jobs}
        records = [member.provenance for member in members.values()]
        shared = {
            "members": list(members),
            **{key: records[0][key] for key in _SHARED},
            "passes": self.reads,
            "blocks_read_again": max(record["blocks_read_again"] for record in records),
            "versions": package_versions(),
        }
        return Portfolio(members, shared, made.get(_MOMENTS))


# --- moments ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MomentsJob(Job[DataSummary]):
    """Exact moments of all rows, from the first pass.

    Attributes
    ----------
    blocks : RowBlocks
        With at most `MAX_COLUMNS` columns.
    """

    blocks: RowBlocks

    reads = 1
    n_candidates = 0.0

    def reading(self, engine: Engine) -> Steps[Any]:
        """Ask for the pass. Return the number of rows and their scatter."""
        del engine
        return (yield Request(Reduction(_counted_scatter, _merged)))

    def finishing(self, results: Any) -> Steps[DataSummary]:
        """Make the moments of what was read."""
        yield from ()  # nothing is read again
        results.check()
        count, found = results.value
        d, mean, matrix = self.blocks.schema.n_features, found.mean, found.matrix
        y_mean = float(mean[d]) if len(mean) > d and np.isfinite(matrix[d]).all() else None
        if y_mean is None:
            matrix = matrix[:d, :d]
        columns = None if self.blocks.columns is None else tuple(self.blocks.columns)
        return DataSummary(count, found.weight, mean[:d], matrix, y_mean, columns)


def _counted_scatter(rows: ReadBlock, _broadcast: object) -> tuple[int, Scatter]:
    """Return the number of rows with weight, and the scatter of X and of y if y holds numbers."""
    block = rows.valid_block
    with ignore_overflow():
        scatter = scatter_of(block.points, block.weights, _target(block))
    return int(np.count_nonzero(block.weights)), scatter


def _target(block: Block) -> FloatArray | None:
    """Return labels that are numbers."""
    if block.labels is None:
        return None
    labels = labels_of(block)
    return labels.astype(np.float64) if labels.dtype.kind in "biuf" else None


def _merged(parts: Sequence[tuple[int, Scatter]]) -> tuple[int, Scatter]:
    if len(parts) == 1:
        return parts[0]
    weighed = [scatter for _, scatter in parts if scatter.weight] or [parts[0][1]]
    width = min(len(scatter.mean) for scatter in weighed)  # text in one block, numbers in another
    with ignore_overflow():
        scatter = reduce(merge_scatters, [_narrow(scatter, width) for scatter in weighed])
    return sum(count for count, _ in parts), scatter


def _narrow(scatter: Scatter, width: int) -> Scatter:
    return Scatter(scatter.weight, scatter.mean[:width], scatter.matrix[:width, :width])
