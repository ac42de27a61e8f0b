r"""The final draw: from the candidates that the blocks sent to the rows of a coreset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from daskcoreset.constructions.sampling.block_steps import CLASS_SHARE, DrawRequested
from daskcoreset.constructions.sampling.held_out import HeldOut, hold_out
from daskcoreset.constructions.sampling.messages import (
    BlockReport,
    Candidates,
    CandidatesOfBlocks,
    DrawRequest,
    check_report,
    merge_reports,
)
from daskcoreset.core.block import Block, class_codes
from daskcoreset.core.linalg import one_thread
from daskcoreset.core.messages import check_total_scores, ignore_overflow
from daskcoreset.core.raking import Calibrated
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.sampling import (
    class_inclusion,
    inclusion_probabilities,
    merge_duplicates,
    split_quota,
    systematic,
)
from daskcoreset.core.typing import FloatArray, IndexArray, Sampling
from daskcoreset.errors import CoresetError, InvalidInputError
from daskcoreset.execution.engine import BlockResults, Reduction
from daskcoreset.execution.steps import Request, Steps
from daskcoreset.sensitivities import Sensitivity
from daskcoreset.sensitivities.estimated_error import estimated_error

# Candidates per row of the coreset. The share of the variance that the first stage adds is 1 / 4.
OVERSAMPLING = 4

# Candidates gathered at least: 1.6 MB at 20 float32 features, and the root takes 20 ms.
MIN_CANDIDATES = 20_000

Results = BlockResults[BlockReport]


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

    @property
    def summary(self) -> Any:
        """Finalized summary of all the data. None where all rows were taken without one."""
        return self.results.value.summary

    def without_candidates(self) -> Selection:
        """Return the same, with what is known of all the data, and no rows but those drawn."""
        report = BlockReport(self.results.value.weights, self.summary)
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
        if fold == 0:
            self.construction.validate_summary(report.summary, finalized=False)
        with ignore_overflow():
            summary = self.construction.finalize(report.summary, rng)
        self.construction.validate_summary(summary, finalized=True)
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
            shares = np.maximum(total_scores.sum(axis=1) / total_scores.sum(), rows / rows.sum())
            # A share that rounding puts above a whole number adds no row.
            targets = np.ceil(self.n_candidates * shares - 1e-6)
            return DrawRequest(summary, dict(zip(blocks, targets.tolist(), strict=True)))
        quotas = split_quota(self.size, total_scores, stream(self.seed, Stage.QUOTAS))
        return DrawRequest(summary, dict(zip(blocks, quotas, strict=True)))

    def draw_where_gathered(
        self, results: Results, request: DrawRequest, second: Results
    ) -> Selection:
        """Draw from the candidates of the second read, and leave them where they are."""
        return self.draw_requested(results, request, second).without_candidates()

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
        """Draw from the candidates of the second read."""
        check_report(second)
        if request.targets is None:
            return self._everything(second)
        if self.sampling == "systematic":
            candidates = CandidatesOfBlocks.joined(second.value.candidates)
            return self._reweighted(results, candidates)
        _, total_scores = self._total_scores(results)
        return self._weighted(results, second.value.candidates, total_scores.sum())

    def draw_proposed(self, results: Results) -> Steps[Selection]:
        """Draw from the candidates that the blocks proposed in the last fold."""
        results = self.finalize(results, self.construction.n_folds - 1)
        if results.n_kept <= self.size:
            # Known only now, where Dask does not know the number of rows before reading.
            return (yield from self._completed(results))
        return (yield from self._refined(results))

    def _completed(self, results: Results) -> Steps[Selection]:
        """Take all rows: read blocks again that did not propose each of theirs."""
        candidates = CandidatesOfBlocks.joined(results.value.candidates)
        lacking = candidates.counts < np.array([results.kept[i] for i in candidates.blocks])
        again = candidates.blocks[lacking].tolist()
        if again:
            every = yield self._again(self.request_chunk(), DrawRequest(None, None), again)
            check_report(every)
            candidates = candidates.replaced(every.value.candidates)
        report = BlockReport(results.value.weights, candidates=candidates)
        return self._everything(replace(results, value=report), rereads=len(again))

    def _again(self, chunk: DrawRequested, request: DrawRequest, blocks: Iterable[int]) -> Request:
        return Request(self.reduction(chunk), request, sorted(blocks))

    def _total_scores(self, results: Results) -> tuple[list[int], FloatArray]:
        """Blocks, and the sums of their scores by component."""
        report = results.value
        blocks = sorted(report.total_scores or report.summaries)
        with ignore_overflow():
            total_scores = (
                np.array([report.total_scores[block] for block in blocks])
                if report.total_scores
                else np.array(
                    [
                        self.construction.total_scores(report.summaries[block], report.summary)
                        for block in blocks
                    ]
                )
            )
        check_total_scores(total_scores.sum(), self.construction.name)
        return blocks, total_scores

    def _refined(self, results: Results) -> Steps[Selection]:
        """Read blocks again whose candidates are too few for their share of the scores."""
        _, total_scores = self._total_scores(results)
        shares = total_scores.sum(axis=1) / total_scores.sum()
        candidates = CandidatesOfBlocks.joined(results.value.candidates)
        # By the number requested of the block, not the number drawn: that would be biased.
        lacking = self.size * shares > candidates.targets
        short = candidates.blocks[lacking].tolist()
        if short:
            requested = np.ceil(self.n_candidates * shares[lacking])
            targets = dict(zip(short, requested.tolist(), strict=True))
            request = DrawRequest(results.value.summary, targets)
            again = yield self._again(self.request_chunk(Stage.TOP_UP), request, short)
            candidates = candidates.replaced(again.value.candidates)
        return self._reweighted(results, candidates, len(short))

    def _reweighted(
        self, results: Results, candidates: CandidatesOfBlocks, rereads: int = 0
    ) -> Selection:
        r"""Draw m candidates with :math:`\pi_2 \propto s / \pi_1`, systematically."""
        rows, indices = _gather(candidates, results.offsets())
        # Every candidate came with chance first; s / first makes the chance of a row in the
        # coreset proportional to s again, whichever block it is from.
        first = candidates.probability
        summary = results.value.summary
        rng = stream(self.seed, Stage.ROOT)
        with ignore_overflow():
            draw = draw_systematically(self.construction, summary, rows, first, self.size, rng)
            kept = rows.take(draw.chosen)
            design = self.construction.design
            fitted = design.fitted(kept, draw.weights, rows, summary)
        facts = draw.calibrated.describe()
        if fitted is not None:
            facts["estimated_error"] = estimated_error(
                fitted, draw.chosen, draw.weights, rows.weights, first, draw.second
            )
        held_out = None
        if self.n_held_out:
            held_out = hold_out(
                rows,
                draw.chosen,
                first,
                draw.second,
                results.value.weight,
                self.n_held_out,
                stream(self.seed, Stage.HELD_OUT),
            )
        numbers = indices[draw.chosen]
        return Selection(kept, draw.weights, numbers, results, rereads, False, facts, held_out)

    def _weighted(self, results: Results, sent: Iterable[Candidates], total: float) -> Selection:
        r"""Weigh independent draws by :math:`u / (m q)` and merge rows drawn twice."""
        candidates = CandidatesOfBlocks.joined(sent)
        rows, indices = _gather(candidates, results.offsets())
        q = candidates.probability / total
        first, weights = merge_duplicates(indices, rows.weights / (self.size * q))
        rows = rows.take(first)
        calibrated = self.construction.design.calibrate(rows, weights, results.value.summary)
        return Selection(
            rows,
            calibrated.weights,
            indices[first],
            results,
            facts=calibrated.describe(),
        )

    def _everything(self, results: Results, rereads: int = 0) -> Selection:
        check_report(results)
        candidates = CandidatesOfBlocks.joined(results.value.candidates)
        rows, indices = _gather(candidates, results.offsets())
        if len(candidates) == 1:  # perhaps views of a block, which a coreset must not be
            rows = rows.take(np.arange(len(rows)))
        return Selection(rows, rows.weights, indices, results, rereads, complete=True)


class Draw(NamedTuple):
    r"""Rows drawn from candidates.

    Attributes
    ----------
    chosen : ndarray of shape (m,), int64
        Positions, increasing.
    calibrated : Calibrated
        :math:`u / (\pi_1 \pi_2)`, calibrated, and how.
    second : ndarray of shape (k,), float64
        :math:`\pi_2` of every candidate.
    """

    chosen: IndexArray
    calibrated: Calibrated
    second: FloatArray

    @property
    def weights(self) -> FloatArray:
        """Calibrated weights."""
        return self.calibrated.weights


def draw_systematically(  # noqa: PLR0917 - all of them are always given
    construction: Sensitivity[Any],
    summary: Any,
    rows: Block,
    first: FloatArray,
    size: int,
    rng: np.random.Generator,
) -> Draw:
    r"""Draw candidates with :math:`\pi_2 \propto s / \pi_1`, in the construction's order.

    Parameters
    ----------
    construction : Sensitivity
    summary : object
        Finalized summary of all the data.
    rows : Block
        Candidates.
    first : ndarray of shape (k,), float64
        Probabilities :math:`\pi_1` with which they became candidates.
    size : int
    rng : numpy.random.Generator
        Asked for a number a row drawn, and one more, by each of
        ``construction.design.n_draws(size, summary)`` draws.

    Returns
    -------
    Draw
        The draw of least loss, if there are several.

    Raises
    ------
    InvalidInputError
        If `size` is below two rows for every class that must have some.
    """
    # One for the whole draw: it may keep what it found out about the candidates.
    design = construction.design
    scores = construction.row_scores(rows, summary)
    if np.count_nonzero(scores) > size:
        scores = design.final_scores(rows, first, scores, summary, size)
    second = _inclusion(construction, summary, rows, scores / first, size)
    order = design.order(rows, summary, second)
    # With every row certain all draws are the same.
    n_draws = design.n_draws(size, summary) if ((second > 0.0) & (second < 1.0)).any() else 1
    best: Draw | None = None
    least_loss = np.inf
    for draw_index in range(n_draws):
        chosen = np.sort(order[systematic(second[order], rng)])
        kept = rows.take(chosen)
        weights = kept.weights / (first[chosen] * second[chosen])
        weights = design.adjust(rows, first, second, chosen, weights, summary)
        calibrated = design.calibrate(kept, weights, summary, draw_index)
        loss = 0.0
        if n_draws > 1:
            loss = design.draw_loss(kept, calibrated.weights, rows, rows.weights / first, summary)
        if best is None or loss < least_loss:
            best, least_loss = Draw(chosen, calibrated, second), loss
    assert best is not None  # noqa: S101 - there is at least one draw
    return best


def _inclusion(
    construction: Sensitivity[Any], summary: Any, rows: Block, scores: FloatArray, size: int
) -> FloatArray:
    """Inclusion probabilities of the final draw, in which no class is left out."""
    labels = construction.design.classes(summary)
    if labels is None:
        return inclusion_probabilities(scores, size)
    codes = class_codes(rows, labels)
    # Two rows of a class, so that its spread shows; of a class of one row, that one.
    n_scored = np.bincount(codes[scores > 0.0], minlength=len(labels))
    needed = int(np.minimum(n_scored, 2).sum())
    if size < needed:
        raise InvalidInputError(
            f"size={size} is too small for {len(labels)} classes, which need two rows each",
            argument="size",
            remedy=f"pass at least {needed}",
        )
    min_rows = max(2, size // (CLASS_SHARE * len(labels)))
    return class_inclusion(scores, size, codes, np.full(len(labels), min_rows))


def _gather(candidates: CandidatesOfBlocks, offsets: Mapping[int, int]) -> tuple[Block, IndexArray]:
    """Return rows of all blocks with their row numbers in all the data."""
    rows = candidates.rows
    starts = np.repeat([offsets[i] for i in candidates.blocks.tolist()], candidates.counts)
    assert rows.rows is not None  # noqa: S101 - blocks number what they send
    return rows, starts + rows.rows
