r"""The final draw: from the candidates that the blocks sent to the rows of a coreset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from daskcoreset.constructions.sampling.block_steps import DrawRequested
from daskcoreset.constructions.sampling.held_out import HeldOut, hold_out
from daskcoreset.constructions.sampling.messages import (
    BlockReport,
    DrawRequest,
    SentRows,
    check_report,
    merge_reports,
)
from daskcoreset.core.block import Block, concatenate
from daskcoreset.core.labels import check_classes
from daskcoreset.core.linalg import one_thread
from daskcoreset.core.messages import check_total_scores, ignore_overflow
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.sampling import merge_duplicates, split_quota
from daskcoreset.core.typing import FloatArray, IndexArray, Sampling
from daskcoreset.errors import CoresetError
from daskcoreset.execution.engine import BlockResults, Reduction
from daskcoreset.execution.steps import Request, Steps
from daskcoreset.sensitivities import Sensitivity
from daskcoreset.sensitivities.draw import Candidates

# Candidates per row of the coreset. The share of the variance that the first stage adds is 1 / 4.
OVERSAMPLING = 4

# Candidates gathered at least: 1.6 MB at 20 float32 features, and the root takes 20 ms.
MIN_CANDIDATES = 20_000

Results = BlockResults[BlockReport]

# What blocks sent, by their indices, in order.
Sent = Mapping[int, SentRows]


@dataclass(frozen=True, eq=False)
class Selection:
    """Rows that were drawn, their weights and their origin.

    Attributes
    ----------
    rows : Block
    weights : ndarray of shape (m,), float64
    indices : ndarray of shape (m,), int64
        Row numbers in the whole data set, increasing.
    results : BlockResults
        Results of the pass that summarised.
    rereads : int
        Blocks that were read once more.
    complete : bool
        Whether these are all rows with their own weights.
    facts : dict
        Facts on the draw for the provenance.
    held_out : HeldOut or None, default=None
        Candidates that were not drawn, where they were asked for and are there.
    """

    rows: Block
    weights: FloatArray
    indices: IndexArray
    results: Results
    rereads: int = 0
    complete: bool = False
    facts: dict[str, Any] = field(default_factory=dict)
    held_out: HeldOut | None = None

    def without_candidates(self) -> Selection:
        """Return the same, with no rows but those drawn."""
        known = self.results.value
        report = BlockReport(known.weights, classes=known.classes)
        return replace(self, results=replace(self.results, value=report))


@dataclass(frozen=True)
class FinalDraw:
    """The draw of the rows of a coreset from candidates, and the requests that it makes.

    Attributes
    ----------
    construction : Sensitivity
    size : int
        Rows of the coreset, m.
    sampling : {"systematic", "multinomial"}
    seed : int
    n_held_out : int, default=0
        Candidates that are not drawn to be kept beside the rows that are, at most.
    """

    construction: Sensitivity[Any]
    size: int
    sampling: Sampling
    seed: int
    n_held_out: int = 0

    @property
    def n_candidates(self) -> float:
        """Candidates to gather in all."""
        return float(max(OVERSAMPLING * self.size, MIN_CANDIDATES))

    def reduction(self, chunk: Any) -> Reduction[BlockReport]:
        """Return the reduction of the reports that `chunk` makes of blocks."""
        return Reduction(chunk, partial(merge_reports, self.construction))

    def request_chunk(self, stage: Stage = Stage.DRAWS) -> DrawRequested:
        """Return the work on the blocks in a read that answers a `DrawRequest`."""
        return DrawRequested(self.construction, self.sampling, self.seed, stage)

    def finalize(self, results: Results, fold: int = 0) -> Results:
        """Check a read and finalize its summary."""
        check_report(results)
        report = results.value
        rng = stream(self.seed, Stage.SETTLING, 0, fold)
        if self.construction.labels == "classes":
            check_classes(np.array(sorted(report.classes)), sum(report.classes.values()))
        with ignore_overflow():
            summary = self.construction.finalize(report.summary, rng)
        return replace(results, value=replace(report, summary=summary))

    def request(self, results: Results) -> DrawRequest:
        """Return the request for the second read."""
        if results.n_kept <= self.size:
            return DrawRequest(None, None)
        blocks, total_scores = self._total_scores(results)
        summary = results.value.summary
        if self.sampling == "systematic":
            # By the scores, but no block below its share of the rows: one row may hold most of
            # the scores, and once it is certain those of other blocks are all that count.
            rows = np.array([results.kept[block] for block in blocks], dtype=np.float64)
            shares = np.maximum(total_scores / total_scores.sum(), rows / rows.sum())
            # A share that rounding puts above a whole number adds no row.
            targets = np.ceil(self.n_candidates * shares - 1e-6)
            return DrawRequest(summary, dict(zip(blocks, targets.tolist(), strict=True)))
        quotas = split_quota(self.size, total_scores, stream(self.seed, Stage.QUOTAS))
        return DrawRequest(summary, dict(zip(blocks, quotas.tolist(), strict=True)))

    def draw_if_enough(self, results: Results) -> Selection | Results:
        """Draw from the candidates of the last fold, and leave them where they are.

        Returns
        -------
        Selection, or BlockResults
            The results for `draw_proposed` where it will read blocks again, or raise.
        """
        try:
            next(self.draw_proposed(results))
        except StopIteration as end:
            drawn: Selection = end.value
            return drawn.without_candidates()
        except CoresetError:
            return results
        return results

    @one_thread()
    def draw_requested(self, results: Results, request: DrawRequest, second: Results) -> Selection:
        """Draw from the candidates of the second read, and leave them where they are."""
        check_report(second)
        sent = second.value.sent
        if request.targets is None:
            drawn = self.everything(second, sent)
        elif self.sampling == "systematic":
            drawn = self._drawn(results, sent)
        else:
            drawn = self._weighted(results, sent)
        return drawn.without_candidates()

    def draw_proposed(self, results: Results) -> Steps[Selection]:
        """Draw from the candidates that the blocks proposed in the last fold.

        Blocks that have sent too few are read again.
        """
        results = self.finalize(results, self.construction.n_folds - 1)
        sent = results.value.sent
        # Known only now, where Dask does not know the number of rows before reading.
        complete = results.n_kept <= self.size
        if complete:
            short = [block for block, own in sent.items() if len(own.rows) < results.kept[block]]
            request = DrawRequest(None, None)
        else:
            blocks, total_scores = self._total_scores(results)
            shares = dict(zip(blocks, total_scores / total_scores.sum(), strict=True))
            # By the number requested of the block, not the number drawn: that would be biased.
            short = [block for block in blocks if self.size * shares[block] > sent[block].target]
            targets = {block: np.ceil(self.n_candidates * shares[block]) for block in short}
            request = DrawRequest(results.value.summary, targets)
        if short:
            chunk = self.request_chunk(Stage.TOP_UP)
            again = yield Request(self.reduction(chunk), request, short)
            again.check()
            sent = {**sent, **again.value.sent}
        if complete:
            return self.everything(results, sent, len(short))
        return self._drawn(results, sent, len(short))

    def _total_scores(self, results: Results) -> tuple[list[int], FloatArray]:
        """Blocks, and the sums of their scores."""
        report, total_scores = results.value, self.construction.total_scores
        sums: Mapping[int, float] = report.total_scores
        with ignore_overflow():
            if not sums:
                known = report.summaries.items()
                sums = {block: total_scores(local, report.summary) for block, local in known}
            blocks = sorted(sums)
            found = np.array([sums[block] for block in blocks])
            check_total_scores(found.sum(), self.construction.name)
        return blocks, found

    def _drawn(self, results: Results, sent: Sent, rereads: int = 0) -> Selection:
        r"""Draw m candidates with :math:`\pi_2 \propto s / \pi_1`, systematically."""
        rows, indices, first = _gather(sent, results.offsets())
        # Every candidate came with chance first; s / first makes the chance of a row in the
        # coreset proportional to s again, whichever block it is from.
        return self._selected(results, Candidates(rows, first), indices, self.size, rereads)

    def _weighted(self, results: Results, sent: Sent) -> Selection:
        r"""Weigh independent draws by :math:`u / (m q)` and merge rows drawn twice."""
        rows, indices, scores = _gather(sent, results.offsets())
        q = scores / self._total_scores(results)[1].sum()
        places, weights = merge_duplicates(indices, rows.weights / (self.size * q))
        rows = rows.take(places)
        # All of them are taken, with the weights that the construction gives them.
        candidates = Candidates(rows, rows.weights / weights)
        return self._selected(results, candidates, indices[places], len(rows))

    def _selected(
        self,
        results: Results,
        candidates: Candidates,
        indices: IndexArray,
        size: int,
        rereads: int = 0,
    ) -> Selection:
        summary = results.value.summary
        with ignore_overflow():
            drawn = self.construction.draw(candidates, summary, size, stream(self.seed, Stage.ROOT))
        held_out = None
        if self.n_held_out:
            rng = stream(self.seed, Stage.HELD_OUT)
            held_out = hold_out(candidates, drawn, results.value.weight, self.n_held_out, rng)
        return Selection(
            candidates.rows.take(drawn.chosen),
            drawn.weights,
            indices[drawn.chosen],
            results,
            rereads,
            facts={**self.construction.provenance(summary), **drawn.facts},
            held_out=held_out,
        )

    def everything(self, results: Results, sent: Sent, rereads: int = 0) -> Selection:
        """Take all rows that blocks sent, which are all there are."""
        rows, indices, _ = _gather(sent, results.offsets())
        if any(rows is own.rows for own in sent.values()):
            rows = rows.take(np.arange(len(rows)))  # a coreset must be no view of the data
        return Selection(rows, rows.weights, indices, results, rereads, complete=True)


def _gather(sent: Sent, offsets: Mapping[int, int]) -> tuple[Block, IndexArray, FloatArray]:
    """Return rows of all blocks, their row numbers in all the data, and their probabilities."""
    rows = concatenate([own.rows for own in sent.values()])
    starts = np.repeat([offsets[i] for i in sent], [len(own.rows) for own in sent.values()])
    assert rows.rows is not None  # noqa: S101 - blocks number what they send
    return rows, starts + rows.rows, np.concatenate([own.probability for own in sent.values()])
