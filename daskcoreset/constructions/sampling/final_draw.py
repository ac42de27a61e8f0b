r"""The root: turns what the blocks sent into the final draw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from daskcoreset.constructions.sampling.block_steps import CLASS_SHARE, DrawRequested
from daskcoreset.constructions.sampling.messages import BlockReport, Candidates, DrawRequest
from daskcoreset.core.blocks import Block, class_codes, concatenate
from daskcoreset.core.errors import InvalidInputError, ignore_overflow, overflow_error
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.sampling import (
    class_inclusion,
    inclusion_probabilities,
    merge_duplicates,
    split_quota,
    systematic,
)
from daskcoreset.core.typing import FloatArray, IndexArray, Sampling
from daskcoreset.sensitivities.estimated_error import estimated_error

if TYPE_CHECKING:
    from daskcoreset.core.sampling import Calibrated
    from daskcoreset.sensitivities import Sensitivity

__all__ = ["Draw", "FinalDraw", "Selection", "draw_systematically"]

OVERSAMPLING = 4
"""Candidates per row wanted. The share of the variance that the first stage adds is 1 / 4."""

FEWEST_CANDIDATES = 20_000
"""Candidates gathered at least: 1.6 MB at 20 float32 features, and the root takes 20 ms."""

Reread = Callable[[list[int], DrawRequested, DrawRequest], BlockReport]
"""``reread(numbers, leaf, plan)``: reads some blocks again and returns their census."""


@dataclass(frozen=True, eq=False)
class Selection:
    """The final draw: rows, weights and where they come from.

    Attributes
    ----------
    rows : Block
    weights : ndarray of shape (m,), float64
    indices : ndarray of shape (m,), int64
        Row numbers in the whole data set, increasing.
    census : Census
        Of the read that summarised.
    rereads : int
        Blocks that were read once more.
    complete : bool
        Whether these are all rows with their own weights.
    facts : dict
        What belongs into the provenance of how they were drawn.
    """

    rows: Block
    weights: FloatArray
    indices: IndexArray
    census: BlockReport
    rereads: int = 0
    complete: bool = False
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FinalDraw:
    """The work of the root.

    Attributes
    ----------
    construction : Sensitivity
    size : int
        Rows wanted, m.
    sampling : {"systematic", "multinomial"}
    seed : int
    """

    construction: Sensitivity[Any]
    size: int
    sampling: Sampling
    seed: int

    @property
    def candidates(self) -> float:
        """Candidates to gather in all."""
        if self.sampling == "multinomial":
            return float(OVERSAMPLING * self.size)
        return float(max(OVERSAMPLING * self.size, FEWEST_CANDIDATES))

    def finalize(self, census: BlockReport, fold: int = 0) -> BlockReport:
        """Check a read and settle its summary."""
        census.check()
        rng = stream(self.seed, Stage.SETTLING, 0, fold)
        if fold == 0:
            self.construction.check_early(census.summary)
        with ignore_overflow():
            summary = self.construction.finalize(census.summary, rng)
        self.construction.check(summary)
        return replace(census, summary=summary)

    def plan(self, census: BlockReport) -> DrawRequest:
        """Decide what every block gives in the second read."""
        if census.n_rows <= self.size:
            return DrawRequest(None, None)
        numbers, masses = self._masses(census)
        if self.sampling == "systematic":
            # By the scores, but no block below its share of the rows: one row may hold most of
            # the scores, and once it is certain those of other blocks are all that count.
            rows = np.array([census.kept[number] for number in numbers], dtype=np.float64)
            shares = np.maximum(masses.sum(axis=1) / masses.sum(), rows / rows.sum())
            targets = np.ceil(self.candidates * shares - 1e-6)  # rounding asks for no row more
            return DrawRequest(census.summary, dict(zip(numbers, targets, strict=True)))
        quotas = split_quota(self.size, masses, stream(self.seed, Stage.QUOTAS))
        return DrawRequest(census.summary, dict(zip(numbers, quotas, strict=True)))

    def finish_planned(
        self, census: BlockReport, plan: DrawRequest, second: BlockReport
    ) -> Selection:
        """Draw from what the blocks gave in the second read."""
        second.check()
        if plan.wanted is None:
            return self._everything(second)
        if self.sampling == "systematic":
            return self._reweighted(census, list(second.drawn))
        _, masses = self._masses(census)
        return self._weighted(census, list(second.drawn), masses.sum())

    def finish_harvest(self, census: BlockReport, reread: Reread) -> Selection:
        """Turn the candidates of the last fold into the final draw."""
        census = self.finalize(census, self.construction.n_folds - 1)
        if census.n_rows <= self.size:
            leaf = DrawRequested(self.construction, self.sampling, self.seed)
            everything = reread(sorted(census.read), leaf, DrawRequest(None, None))
            return self._everything(everything, rereads=len(census.read))
        if self.sampling == "systematic":
            return self._refined(census, reread)
        return self._rejected(census, reread)

    def _masses(self, census: BlockReport) -> tuple[list[int], FloatArray]:
        numbers = sorted(census.masses or census.locals)
        with ignore_overflow():
            masses = np.array(
                [
                    census.masses[i]
                    if census.masses
                    else self.construction.masses(census.locals[i], census.summary)
                    for i in numbers
                ]
            )
        if not np.isfinite(masses).all():
            raise overflow_error()
        return numbers, masses

    def _refined(self, census: BlockReport, reread: Reread) -> Selection:
        numbers, masses = self._masses(census)
        shares = dict(zip(numbers, masses.sum(axis=1) / masses.sum(), strict=True))
        drawn = {part.number: part for part in census.drawn}
        # By what the block was asked for, not by what it drew: that would be biased.
        short = [
            number for number, part in drawn.items() if self.size * shares[number] > part.target
        ]
        if short:
            wanted = {number: np.ceil(self.candidates * shares[number]) for number in short}
            leaf = DrawRequested(self.construction, self.sampling, self.seed, Stage.TOP_UP)
            again = reread(short, leaf, DrawRequest(census.summary, wanted))
            drawn.update({part.number: part for part in again.drawn})
        return self._reweighted(census, [drawn[i] for i in sorted(drawn)], len(short))

    def _reweighted(
        self, census: BlockReport, drawn: list[Candidates], rereads: int = 0
    ) -> Selection:
        r"""Draw m candidates with :math:`\pi_2 \propto s / \pi_1`, systematically."""
        rows, indices = _gather(drawn, census.offsets())
        first = np.concatenate([part.probability for part in drawn])
        rng = stream(self.seed, Stage.ROOT)
        with ignore_overflow():
            draw = draw_systematically(
                self.construction, census.summary, rows, first, self.size, rng
            )
            kept = rows.take(draw.chosen)
            found = self.construction.fitted(kept, draw.weights, rows, census.summary)
        facts = draw.calibrated.describe()
        if found is not None:
            u, second = rows.weights, draw.second
            facts["estimated_error"] = estimated_error(
                found, draw.chosen, draw.weights, u, first, second
            )
        return Selection(kept, draw.weights, indices[draw.chosen], census, rereads, facts=facts)

    def _rejected(self, census: BlockReport, reread: Reread) -> Selection:
        """Keep each block's first v_i accepted candidates; draw what is missing anew."""
        numbers, masses = self._masses(census)
        by_component = split_quota(self.size, masses, stream(self.seed, Stage.QUOTAS))
        bound = self.construction.proposal_bound
        assert bound is not None  # noqa: S101 - the front door has checked it
        total = masses.sum()
        drawn = {part.number: part for part in census.drawn}
        kept: list[Candidates] = []
        missing: dict[int, IndexArray] = {}
        for number, quota, mass in zip(numbers, by_component, masses, strict=True):
            part = drawn[number]
            scores = self.construction.scores(part.rows, census.summary)
            ratio = scores.sum(axis=0) / (bound * mass.sum() * part.probability)
            accepted = np.flatnonzero(part.coins < ratio)[: quota.sum()]
            rows = part.rows.take(accepted)
            kept.append(Candidates(number, rows, scores.sum(axis=0)[accepted]))
            if len(accepted) < quota.sum():
                # The draws that are missing are independent of those that were accepted, so
                # the components may be split afresh.
                count = int(quota.sum()) - len(accepted)
                rng = stream(self.seed, Stage.QUOTAS, 1 + number)
                missing[number] = split_quota(count, mass[np.newaxis], rng)[0]
        if missing:
            leaf = DrawRequested(self.construction, self.sampling, self.seed, Stage.TOP_UP)
            again = reread(list(missing), leaf, DrawRequest(census.summary, dict(missing)))
            kept += again.drawn
        return self._weighted(census, kept, total, len(missing))

    def _weighted(
        self, census: BlockReport, drawn: list[Candidates], total: float, rereads: int = 0
    ) -> Selection:
        r"""Weigh independent draws by :math:`u / (m q)` and merge rows drawn twice."""
        rows, indices = _gather(drawn, census.offsets())
        q = np.concatenate([part.probability for part in drawn]) / total
        first, weights = merge_duplicates(indices, rows.weights / (self.size * q))
        rows = rows.take(first)
        found = self.construction.calibrate(rows, weights, census.summary)
        return Selection(
            rows, found.weights, indices[first], census, rereads, facts=found.describe()
        )

    def _everything(self, census: BlockReport, rereads: int = 0) -> Selection:
        census.check()
        rows, indices = _gather(list(census.drawn), census.offsets())
        return Selection(rows, rows.weights, indices, census, rereads, complete=True)


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
        Settled summary of all the data.
    rows : Block
        Candidates.
    first : ndarray of shape (k,), float64
        Probabilities :math:`\pi_1` with which they became candidates.
    size : int
    rng : numpy.random.Generator
        Asked for a number a row drawn, and one more, by each of
        ``construction.n_draws(size, summary)`` draws.

    Returns
    -------
    Draw
        Of several tries that of the least loss.

    Raises
    ------
    InvalidInputError
        If `size` is below two rows for every class that must have some.
    """
    scores = construction.scores(rows, summary).sum(axis=0)
    second = _inclusion(construction, summary, rows, scores / first, size)
    order = construction.order(rows, summary, second)
    # With every row certain all draws are the same.
    tries = construction.n_draws(size, summary) if ((second > 0.0) & (second < 1.0)).any() else 1
    best: Draw | None = None
    least = np.inf
    for attempt in range(tries):
        chosen = np.sort(order[systematic(second[order], rng)])
        kept = rows.take(chosen)
        weights = kept.weights / (first[chosen] * second[chosen])
        calibrated = construction.calibrate(kept, weights, summary, attempt)
        loss = 0.0
        if tries > 1:
            loss = construction.loss(kept, calibrated.weights, rows, rows.weights / first, summary)
        if best is None or loss < least:
            best, least = Draw(chosen, calibrated, second), loss
    assert best is not None  # noqa: S101 - there is at least one try
    return best


def _inclusion(
    construction: Sensitivity[Any], summary: Any, rows: Block, scores: FloatArray, size: int
) -> FloatArray:
    """Inclusion probabilities of the final draw, in which no class is left out."""
    labels = construction.classes(summary)
    if labels is None:
        return inclusion_probabilities(scores, size)
    codes = class_codes(rows, labels)
    held = np.bincount(codes[scores > 0.0], minlength=len(labels))
    needed = int(np.minimum(held, 2).sum())
    if size < needed:
        raise InvalidInputError(
            f"size={size} is too small for {len(labels)} classes, of which each must keep two "
            f"rows; pass at least {needed}."
        )
    least = max(2, size // (CLASS_SHARE * len(labels)))
    return class_inclusion(scores, size, codes, np.full(len(labels), least))


def _gather(drawn: list[Candidates], offsets: dict[int, int]) -> tuple[Block, IndexArray]:
    """Concatenate rows of all blocks; return them with their global row numbers."""
    rows = concatenate([part.rows for part in drawn])
    starts = np.repeat(
        np.array([offsets[part.number] for part in drawn], dtype=np.int64),
        [len(part.rows) for part in drawn],
    )
    assert rows.rows is not None  # noqa: S101 - leaves number what they send
    return rows, starts + rows.rows
