"""Several builds from the same reads."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any, Protocol

from daskcoreset.constructions.portfolio.summaries import SummaryJob, sample_job
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import package_versions
from daskcoreset.core.portfolio import Portfolio
from daskcoreset.execution.engine import Engine, deferred
from daskcoreset.execution.lazy import Lazy
from daskcoreset.execution.rounds import Steps, name_of, run_together
from daskcoreset.execution.waves import fits_one_graph
from daskcoreset.inputs.blocks import RowBlocks

# Of the provenance of a member: the same for all.
_SHARED = ("n", "n_dropped", "d", "total_weight", "seed", "n_blocks", "source", "columns")


class Job(Protocol):
    """One build, by draws or by a tree."""

    @property
    def reads(self) -> int:
        """Reads of the data."""

    @property
    def n_candidates(self) -> float:
        """Rows that are gathered at the root."""

    def reading(self, engine: Engine) -> Steps[Any]:
        """Ask for all reads; return what `finishing` takes."""

    def finishing(self, results: Any) -> Steps[Any]:
        """Make the coreset; asks for blocks that must be read again."""


class Beside(Enum):
    """What the reads give beside the members."""

    SUMMARY = "summary"
    SAMPLE = "sample"


@dataclass(frozen=True, eq=False)
class PortfolioJob:
    """Builds that share their reads, as a graph or in memory.

    Attributes
    ----------
    blocks : RowBlocks
    jobs : mapping of str to Job
        By the names of the members.
    split_every : int
    summary : SummaryJob or None, default=None
    sample : Job or None, default=None
        Of rows that no member shares.
    """

    blocks: RowBlocks
    jobs: Mapping[str, Job]
    split_every: int
    summary: SummaryJob | None = None
    sample: Job | None = None

    @property
    def _all(self) -> dict[str | Beside, Job]:
        found: dict[str | Beside, Job] = dict(self.jobs.items())
        if self.summary is not None:
            found[Beside.SUMMARY] = self.summary
        if self.sample is not None:
            found[Beside.SAMPLE] = self.sample
        return found

    @property
    def reads(self) -> int:
        """Reads of the data: those of the member that needs most."""
        return max(job.reads for job in self._all.values())

    @property
    def n_candidates(self) -> float:
        """Rows that are gathered at the root, for all members."""
        return sum(job.n_candidates for job in self._all.values())

    @property
    def is_graph(self) -> bool:
        """Whether the build is one graph; not of one block in memory, nor in waves."""
        return Engine.immediate(self.blocks).lazy

    def lazy(self, progress: bool | None = None) -> Lazy[Portfolio]:
        """Define the graph of all builds; of waves one task, which shows its progress."""
        if not fits_one_graph(self.blocks):
            return deferred(partial(self.compute_now, progress))
        engine = Engine(self.blocks, self.split_every, lazy=True)
        graph: Lazy[Any] = engine.apply(_listed, *self._read(engine).values())
        return graph.then(partial(self._finish, engine))

    def compute_now(self, progress: bool | None = False) -> Portfolio:
        """Build at once: from blocks in memory without a scheduler, or in waves."""
        with Engine(self.blocks, self.split_every).shown(progress, self.reads) as engine:
            return self._finish(engine, list(self._read(engine).values()))

    def _read(self, engine: Engine) -> dict[str | Beside, Any]:
        return run_together(
            engine,
            {
                key: job.reading(replace(engine, member=name_of(key)))
                for key, job in self._all.items()
            },
        )

    def _finish(self, engine: Engine, results: list[Any]) -> Portfolio:
        steps = {
            key: job.finishing(value)
            for (key, job), value in zip(self._all.items(), results, strict=True)
        }
        made = run_together(engine, steps)
        members: dict[str, Coreset] = {name: made[name] for name in self.jobs}
        records = [member.provenance for member in members.values()]
        first = records[0]
        return Portfolio(
            members,
            {
                "members": list(members),
                **{key: first[key] for key in _SHARED},
                "passes": self.reads,
                "blocks_read_again": max(record["blocks_read_again"] for record in records),
                "versions": package_versions(),
            },
            made.get(Beside.SUMMARY),
            made.get(Beside.SAMPLE),
        )


def portfolio_job(  # noqa: PLR0917 - all of them are always given
    blocks: RowBlocks,
    jobs: Mapping[str, Job],
    split_every: int,
    beside: Collection[str],
    seed: int,
    passes: int,
) -> PortfolioJob:
    """Return the job of several builds, and of what `summaries` of `daskcoreset.build` names."""
    summary = SummaryJob(blocks) if beside else None
    sample = sample_job(blocks, seed, split_every, passes) if "sample" in beside else None
    return PortfolioJob(blocks, jobs, split_every, summary, sample)


def _listed(*values: Any) -> list[Any]:
    return list(values)
