"""One build as a value: which reads, which leaves, which end, on a scheduler or without one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from daskcoreset.constructions.sampling.block_steps import (
    DrawRequested,
    ProposeCandidates,
    SummariseBlock,
    SumScores,
)
from daskcoreset.constructions.sampling.final_draw import FinalDraw, Selection
from daskcoreset.constructions.sampling.messages import BlockReport, DrawRequest, MergeReports
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import (
    InvalidInputError,
    package_versions,
    warn_complete,
    warn_few,
    warn_lost,
    warn_user,
)
from daskcoreset.execution.fold import Leaf, apply, tree_reduce, tree_reduce_in_memory
from daskcoreset.execution.lazy import Lazy
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.objectives import recorded
from daskcoreset.sensitivities.estimated_error import remark_on

__all__ = ["SamplingJob"]


@dataclass(frozen=True, eq=False)
class SamplingJob:
    """One build: the same leaves and the same root, on a scheduler or without one.

    Attributes
    ----------
    blocks : RowBlocks
    root : Root
    passes : {1, 2}
        1 for candidates from the last fold, which for most constructions is the only read; 2
        for as many folds as the construction needs and a read that draws.
    split_every : int
    normalize : bool, default=False
        Whether weights are scaled to the total weight of the data.
    size_given : bool, default=True
        Whether the size is the caller's and not the default.
    n_clusters : int or None, default=None
        Centers of the solutions that the coreset is for, where the construction does not say.
    """

    blocks: RowBlocks
    root: FinalDraw
    passes: int
    split_every: int
    normalize: bool = False
    size_given: bool = True
    n_clusters: int | None = None

    def __post_init__(self) -> None:
        construction = self.root.construction
        if construction.needs_labels and not self.blocks.has_labels:
            raise InvalidInputError(
                f"y is missing, and {construction.name!r} needs labels; pass one for every row of "
                f"X."
            )
        if not self.takes_all:
            rows, d = self.blocks.block_rows, self.blocks.rules.n_features
            self.blocks.refuse(construction.name, construction.too_much(rows, d))

    @property
    def takes_all(self) -> bool:
        """Whether it is known before reading that every row is wanted."""
        rows = self.blocks.n_rows
        return rows is not None and rows <= self.root.size

    @property
    def runs_here(self) -> bool:
        """Whether the build runs without a scheduler."""
        return self.blocks.need_no_scheduler

    @property
    def reads(self) -> int:
        """Reads of the data."""
        if self.takes_all:
            return 1
        folds = self.root.construction.n_folds
        return folds if self.passes == 1 else folds + self._weighs + 1

    @property
    def _weighs(self) -> bool:
        """Whether a read must add scores up before draws can be split exactly."""
        exact = self.root.construction.total_scores_exact
        return self.root.sampling == "multinomial" and not exact

    @property
    def _combine(self) -> MergeReports:
        return MergeReports(self.root.construction)

    @property
    def _harvest(self) -> ProposeCandidates:
        root = self.root
        return ProposeCandidates(
            root.construction,
            root.sampling,
            root.seed,
            root.candidates,
            self.blocks.n_rows,
            self.blocks.n_blocks,
        )

    def _summarise(self, i: int) -> SummariseBlock:
        return SummariseBlock(self.root.construction, self.root.seed, i)

    @property
    def _take(self) -> DrawRequested:
        return DrawRequested(self.root.construction, self.root.sampling, self.root.seed)

    def lazy(self) -> Lazy[Coreset]:
        """Define the graph of the whole build."""

        def read(leaf: Leaf[BlockReport], given: Any = None) -> Lazy[BlockReport]:
            return tree_reduce(
                self.blocks, leaf, self._combine, given=given, split_every=self.split_every
            )

        value, finish = self._procedure(read, apply)
        lazy: Lazy[Any] = value
        return lazy.then(finish)

    def run_here(self) -> Coreset:
        """Run without a scheduler, on blocks in memory."""
        value, finish = self._procedure(partial(self._fold_here, self.blocks), _call)
        return finish(value)

    def _procedure(
        self, read: Callable[..., Any], at_root: Callable[..., Any]
    ) -> tuple[Any, Callable[[Any], Coreset]]:
        """Go through the reads; return what the last one gives, and what makes it a coreset.

        Parameters
        ----------
        read : callable
            ``read(leaf, given)``: one fold over all blocks, now or later.
        at_root : callable
            ``at_root(function, *values)``: work at the root, now or later.
        """
        root = self.root
        if self.takes_all:
            return read(self._take), self.finish_all
        # The last of several folds draws candidates, where one pass is all that is wanted.
        folds = root.construction.n_folds - (self.passes == 1)
        census, summary = None, None
        for i in range(folds):
            census = at_root(partial(root.finalize, fold=i), read(self._summarise(i), summary))
            summary = at_root(_summary_of, census)
        if self.passes == 1:
            return read(self._harvest, summary), self.finish_harvest
        if self._weighs:
            sums = read(SumScores(root.construction), at_root(_summary_of, census))
            census = at_root(_with_masses, census, sums)
        plan = at_root(root.plan, census)
        return at_root(_triple, census, plan, read(self._take, plan)), self.finish_planned

    def _fold_here(
        self, blocks: RowBlocks, leaf: Leaf[BlockReport], given: Any = None
    ) -> BlockReport:
        return tree_reduce_in_memory(
            blocks, leaf, self._combine, given=given, split_every=self.split_every
        )

    def _reread(self, numbers: list[int], leaf: DrawRequested, plan: DrawRequest) -> BlockReport:
        some = self.blocks.select(numbers)
        if self.runs_here:
            return self._fold_here(some, leaf, plan)
        return tree_reduce(
            some, leaf, self._combine, given=plan, split_every=self.split_every
        ).compute()

    # The three ends: what the blocks sent becomes a Coreset on the caller's side.

    def finish_all(self, census: BlockReport) -> Coreset:
        """Finish after a read of all rows."""
        return self._coreset(self.root.finish_planned(census, DrawRequest(None, None), census))

    def finish_harvest(self, census: BlockReport) -> Coreset:
        """Finish after one read that gave candidates."""
        return self._coreset(self.root.finish_harvest(census, self._reread))

    def finish_planned(self, results: tuple[BlockReport, DrawRequest, BlockReport]) -> Coreset:
        """Finish after a read that gave what the plan asked for."""
        return self._coreset(self.root.finish_planned(*results))

    def _coreset(self, selection: Selection) -> Coreset:
        root, rows = self.root, selection.rows
        if selection.complete:
            warn_complete(root.size, len(rows), given=self.size_given)
        else:
            for remark in root.construction.remarks(selection.census.summary, root.size):
                warn_user(remark)
            said = remark_on(selection.facts.get("estimated_error"), root.size)
            if said is not None:
                warn_user(said)
            if root.sampling == "systematic" and len(rows) < root.size:
                warn_few(root.size, len(rows))
            classes = root.construction.classes(selection.census.summary)
            if classes is not None and rows.labels is not None:
                warn_lost(classes, rows.labels)
        weights = selection.weights
        if self.normalize and not selection.complete:
            weights = weights * (selection.census.weight / weights.sum())
        return Coreset(
            points=rows.points,
            weights=weights,
            indices=selection.indices,
            labels=rows.labels,
            provenance=self._provenance(selection),
        )

    def _provenance(self, selection: Selection) -> dict[str, Any]:
        root, census = self.root, selection.census
        summary = census.summary
        facts = {} if summary is None else root.construction.describe(summary)
        return {
            "method": root.construction.name,
            "parameters": root.construction.parameters(),
            "citation": root.construction.citation,
            "objective": recorded(root.construction.objective, self.n_clusters),
            "sampling": root.sampling,
            "normalized": self.normalize,
            "passes": self.reads,
            "blocks_read_again": selection.rereads,
            "size": root.size,
            **({} if self.size_given else {"size_rule": {"rule": "default"}}),
            "complete": selection.complete,
            "m": len(selection.rows),
            "n": census.n_rows,
            "n_dropped": sum(census.read.values()) - census.n_rows,
            "d": self.blocks.rules.n_features,
            "n_blocks": self.blocks.n_blocks,
            "total_weight": census.weight,
            **facts,
            **selection.facts,
            "seed": root.seed,
            "source": self.blocks.name,
            "columns": None if self.blocks.columns is None else list(self.blocks.columns),
            "versions": package_versions(),
        }


def _call(function: Callable[..., Any], *values: Any) -> Any:
    return function(*values)


def _summary_of(census: BlockReport) -> Any:
    return census.summary


def _with_masses(census: BlockReport, sums: BlockReport) -> BlockReport:
    return replace(census, masses=sums.masses)


def _triple(
    census: BlockReport, plan: DrawRequest, second: BlockReport
) -> tuple[BlockReport, DrawRequest, BlockReport]:
    return census, plan, second
