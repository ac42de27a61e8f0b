"""One build by draws: its reads, the work on the blocks, and the coreset."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from daskcoreset.constructions.draws import warn_complete, warn_few
from daskcoreset.constructions.job import Job
from daskcoreset.constructions.sampling.block_steps import (
    SummariseBlock,
    sum_scores,
    take_block,
)
from daskcoreset.constructions.sampling.final_draw import FinalDraw, Results, Selection
from daskcoreset.constructions.sampling.messages import check_report
from daskcoreset.constructions.sampling.size_rule import SizeRule
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.messages import package_versions, warn_user
from daskcoreset.core.points import WeightedPoints, from_checked
from daskcoreset.core.typing import Metric
from daskcoreset.execution.engine import BlockResults, Engine
from daskcoreset.execution.steps import Request, Steps
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.objectives import recorded
from daskcoreset.sensitivities import Sensitivity
from daskcoreset.sensitivities.estimated_error import remark_on


@dataclass(frozen=True, eq=False)
class SamplingJob(Job[Coreset]):
    """One build by draws: the same reads, as a graph or in memory.

    Attributes
    ----------
    blocks : RowBlocks
    final_draw : FinalDraw
    passes : {1, 2}
        1 for candidates from the last fold, which for most constructions is the only read; 2
        for as many folds as the construction needs and a read that draws.
    split_every : int
    normalize : bool, default=False
        Whether weights are scaled to the total weight of the data.
    n_clusters : int or None, default=None
        Centers of the solutions that the coreset is for, where the construction does not say.
    beside : callable or None, default=None
        Called with what was drawn when the coreset is made of it, in the process that asked for it.
    size_rule : SizeRule or None, default=None
        The rule of the size, if none was given.
    """

    blocks: RowBlocks
    final_draw: FinalDraw
    passes: int
    split_every: int
    normalize: bool = False
    n_clusters: int | None = None
    beside: Callable[[Selection], None] | None = None
    size_rule: SizeRule | None = None

    def __post_init__(self) -> None:
        self.blocks.check_method(self.construction, scored=not self.needs_all_rows)

    @property
    def construction(self) -> Sensitivity[Any]:
        """The sensitivity that scores the rows."""
        return self.final_draw.construction

    @property
    def needs_all_rows(self) -> bool:
        """Whether the coreset is all rows, as far as is known before reading."""
        rows = self.blocks.n_rows
        return rows is not None and rows <= self.final_draw.size

    @property
    def n_candidates(self) -> float:
        """Rows that are gathered for the final draw."""
        return self.final_draw.n_candidates

    @property
    def reads(self) -> int:
        """Reads of the data."""
        if self.needs_all_rows:
            return 1
        folds = self.construction.n_folds
        return folds if self.passes == 1 else folds + self._sums_scores + 1

    @property
    def _sums_scores(self) -> bool:
        """Whether a read must add scores up before draws can be split exactly."""
        exact = self.construction.total_scores_exact
        return self.final_draw.sampling == "multinomial" and not exact

    def reading(self, engine: Engine) -> Steps[Any]:
        """Ask for all reads. Return the results of the last, or what was drawn from them."""
        construction, final_draw = self.construction, self.final_draw
        reduction = final_draw.reduction
        if self.needs_all_rows:
            return (yield Request(reduction(partial(take_block, construction))))
        results, summary = None, None
        for fold in range(construction.n_folds):
            # The last of several folds draws candidates, where a build has one pass.
            proposes = self.passes == 1 and fold == construction.n_folds - 1
            wanted = (final_draw.n_candidates, self.blocks.n_rows, self.blocks.n_blocks)
            chunk = SummariseBlock(
                construction, final_draw.seed, fold, *(wanted if proposes else ())
            )
            results = yield Request(reduction(chunk), summary)
            if proposes:
                # Where the candidates are, which are several times the rows that are drawn.
                return engine.apply(final_draw.draw_if_enough, results) if engine.lazy else results
            # The next fold starts when this summary is there: no block is kept for it, and the
            # data are read again.
            results = engine.apply(partial(final_draw.finalize, fold=fold), results)
            summary = engine.apply(_summary_of, results)
        if self._sums_scores:
            # Quotas of independent draws must follow the exact sums, or weights are biased.
            by_block = reduction(partial(sum_scores, construction))
            sums = yield Request(by_block, engine.apply(_summary_of, results))
            results = engine.apply(_with_total_scores, results, sums)
        request = engine.apply(final_draw.request, results)
        second = yield Request(reduction(final_draw.request_chunk()), request)
        return engine.apply(final_draw.draw_requested, results, request, second)

    def finishing(self, results: Any) -> Steps[Coreset]:
        """Make the coreset of what `reading` returned. Asks for blocks that must be read again."""
        return self._coreset((yield from self._selecting(results)))

    def _selecting(self, drawn: Selection | Results) -> Steps[Selection]:
        if isinstance(drawn, Selection):
            return drawn
        if self.needs_all_rows:
            check_report(drawn)
            return self.final_draw.everything(drawn, drawn.value.sent)
        return (yield from self.final_draw.draw_proposed(drawn))

    def _coreset(self, selection: Selection) -> Coreset:
        if self.beside is not None:
            self.beside(selection)
        draw = self.final_draw
        rows = selection.rows
        # What comes of it is checked by the coreset that is made of it.
        points = from_checked(rows.points, selection.weights, selection.indices, rows.labels)
        self._warn(selection)
        record = {
            "sampling": draw.sampling,
            "seed": draw.seed,
            "complete": selection.complete,
            "passes": self.reads,
            "blocks_read_again": selection.rereads,
            "n_blocks": self.blocks.n_blocks,
            **selection.facts,
        }
        if self.size_rule is not None:
            record["size_rule"] = self.size_rule.record(
                selection.results.n_rows, rows.points.shape[1], all_rows=selection.complete
            )
        return make_coreset(
            points,
            self.construction,
            DataFacts.of_read(selection.results, self.blocks),
            draw.size,
            record,
            n_clusters=self.n_clusters,
            normalize=self.normalize,
        )

    def _warn(self, selection: Selection) -> None:
        """Warn of what was drawn."""
        draw, rows = self.final_draw, selection.rows
        if selection.complete:
            if self.size_rule is None:
                warn_complete(draw.size, len(rows))
            return
        remark = remark_on(selection.facts.get("estimated_error"), draw.size)
        if remark is not None:
            warn_user(remark)
        if draw.sampling == "systematic" and len(rows) < draw.size:
            warn_few(draw.size, len(rows))
        classes = sorted(selection.results.value.classes)
        if classes and rows.labels is not None:
            lost = np.setdiff1d(np.array(classes), rows.labels)
            if len(lost):
                warn_user(
                    f"the coreset has no row of {len(lost)} of the {len(classes)} classes of y: "
                    f'{", ".join(map(str, lost[:5]))}; raise size, or use sampling="systematic", '
                    "which keeps rows of every class."
                )


@dataclass(frozen=True)
class DataFacts:
    """Facts of the provenance about the data of a coreset.

    Attributes
    ----------
    n, n_dropped : int
        Rows that it represents, and rows that were left out.
    weight : float
        Total weight of the rows that it represents.
    source : str or None
        Their origin.
    columns : sequence of str or None
    metric : {"euclidean", "cosine"}
    keys : mapping of str to str
        Names of labels and weights, where they are members of the data.
    """

    n: int
    n_dropped: int
    weight: float
    source: str | None
    columns: Sequence[str] | None
    metric: Metric = "euclidean"
    keys: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_read(cls, results: BlockResults[Any], blocks: RowBlocks) -> DataFacts:
        """Return the facts of blocks that were read. The value of the read has their weight."""
        dropped = results.n_rows - results.n_kept
        weight, metric = results.value.weight, blocks.schema.metric
        facts = results.n_kept, dropped, weight, blocks.name, blocks.columns, metric, blocks.keys
        return cls(*facts)


def make_coreset(
    points: WeightedPoints,
    method: Any,
    data: DataFacts,
    size: int,
    facts: dict[str, Any],
    *,
    n_clusters: int | None,
    normalize: bool,
) -> Coreset:
    """Make a coreset of the rows that were drawn; of samples, trees, streams and stores alike.

    Parameters
    ----------
    points : WeightedPoints
    method : Sensitivity or Reducer
    data : DataFacts
    size : int
        Rows that were asked for.
    facts : dict
        Further facts: how the rows were drawn, and of which summary.
    n_clusters : int or None
        Clusters that the coreset is for, where the method does not say.
    normalize : bool
        Whether weights are scaled to the total weight of the data.
    """
    weights = points.weights
    if normalize and data.n > size:  # rows that are all there have their own weights
        weights = weights * (data.weight / weights.sum())
    provenance = {
        "method": method.name,
        "parameters": method.parameters(),
        "citation": method.citation,
        "objective": recorded(method.objective, n_clusters),
        "size": size,
        "normalized": normalize,
        "m": len(points),
        "n": data.n,
        "n_dropped": data.n_dropped,
        "d": points.n_features,
        "total_weight": data.weight,
        **facts,
        "source": data.source,
        "columns": None if data.columns is None else list(data.columns),
        **data.keys,
        "versions": package_versions(),
    }
    if data.metric != "euclidean":
        provenance["metric"] = data.metric
    return Coreset(
        points.points,
        weights,
        points.indices,
        points.labels,
        provenance,
    )


def _summary_of(results: Results) -> Any:
    return results.value.summary


def _with_total_scores(results: Results, sums: Results) -> Results:
    return replace(results, value=replace(results.value, total_scores=sums.value.total_scores))
