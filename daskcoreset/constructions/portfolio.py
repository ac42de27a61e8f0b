"""Several builds from the same reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import package_versions
from daskcoreset.core.portfolio import Portfolio
from daskcoreset.execution.engine import Engine, deferred
from daskcoreset.execution.lazy import Lazy
from daskcoreset.execution.rounds import Steps, run_together
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

    def finishing(self, results: Any) -> Steps[Coreset]:
        """Make the coreset; asks for blocks that must be read again."""


@dataclass(frozen=True, eq=False)
class PortfolioJob:
    """Builds that share their reads, as a graph or in memory.

    Attributes
    ----------
    blocks : RowBlocks
    jobs : mapping of str to Job
        By the names of the members.
    split_every : int
    """

    blocks: RowBlocks
    jobs: Mapping[str, Job]
    split_every: int

    @property
    def reads(self) -> int:
        """Reads of the data: those of the member that needs most."""
        return max(job.reads for job in self.jobs.values())

    @property
    def n_candidates(self) -> float:
        """Rows that are gathered at the root, for all members."""
        return sum(job.n_candidates for job in self.jobs.values())

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

    def _read(self, engine: Engine) -> dict[str, Any]:
        return run_together(
            engine,
            {name: job.reading(replace(engine, member=name)) for name, job in self.jobs.items()},
        )

    def _finish(self, engine: Engine, results: list[Any]) -> Portfolio:
        steps = {
            name: job.finishing(value)
            for (name, job), value in zip(self.jobs.items(), results, strict=True)
        }
        members = run_together(engine, steps)
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
        )


def _listed(*values: Any) -> list[Any]:
    return list(values)
