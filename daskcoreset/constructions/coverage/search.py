"""The reads of a cover, each determined by the results of those before."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from daskcoreset.constructions.coverage.early_look import MAX_DISTANCES, Forecast, foretell
from daskcoreset.constructions.coverage.farthest_first import (
    CellSummary,
    extend,
    farthest_first,
    merge_summaries,
    n_offered_by_block,
    summarise_cells,
)
from daskcoreset.constructions.coverage.metric import Cells, Metric, Sorted, metric_of
from daskcoreset.constructions.coverage.online import DoublingRule, OnlineRule, Opened
from daskcoreset.constructions.coverage.result import Cover, CoverRows, join
from daskcoreset.core.blocks import no_weight_error
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.execution.engine import BlockResults, map_reduce
from daskcoreset.inputs.blocks import RowBlocks

# Diameters that are tried at most, from the first that has few enough core points.
_TRIALS = 6

# Ratio of diameters at which a search for the best stops.
_CLOSE = 1.04

# Core points that a block keeps for each one of `max_points`, where there is no diameter.
_ROUGH = 2

# Superfluous core points are kept up to this share of all, rather than reading once more.
_SPARE = 0.02

# Reads that thin core points at most; what a further one opens is kept.
_ROUNDS = 4


@dataclass(eq=False)
class Search:
    """The reads of one cover.

    Attributes
    ----------
    blocks : RowBlocks
    cells : {"euclidean", "chebyshev"}
    diameter : float or None
        Of the cells; None finds the one for `max_points`.
    max_points : int
        Core points at most.
    split_every : int
    progress : bool or None
    given : CoverRows or None
        Rows that are core points whatever is found, fewer than `max_points`.
    bounded : bool
        Whether the distances are bounded as well, see `foretell`.
    reads : int
        Reads so far.
    last_read : BlockResults
        Of the latest one.
    """

    blocks: RowBlocks
    cells: Cells
    diameter: float | None
    max_points: int
    split_every: int
    progress: bool | None
    given: CoverRows | None = None
    bounded: bool = False
    reads: int = 0
    last_read: BlockResults[Any] = field(init=False)

    @property
    def metric(self) -> Metric:
        """The distance of rows from core points."""
        return metric_of(self.cells)

    @property
    def n_features(self) -> int:
        """Number of columns, d."""
        return self.blocks.schema.n_features

    def _read(self, chunk: Any, merge: Any, broadcast: Any = None) -> Any:
        self.last_read = map_reduce(
            self.blocks,
            chunk,
            merge,
            broadcast=broadcast,
            split_every=self.split_every,
            progress=self.progress,
        )
        self.reads += 1
        return self.last_read.value

    def _indices(self, core: CoverRows) -> Any:
        """Return the numbers of rows in the whole data."""
        return core.indices(self.last_read.offsets())

    def _in_order(self, core: CoverRows) -> CoverRows:
        return core.take(np.argsort(self._indices(core), kind="stable"))

    def _look(self, diameter: float) -> None:
        """Refuse a diameter that a sample of the rows foretells to be too small."""
        look = foretell(
            self.blocks, diameter, self.max_points, self.metric, self.split_every,
            bounded=self.bounded,
        )  # fmt: skip
        if look is not None:
            raise self._foretold(look)

    # --- the online rule

    def online(self) -> Cover:
        """Open cells until all rows are covered, then count their rows."""
        if self.diameter is None:
            return self._fitting()
        self._look(self.diameter)
        core, fits = self._completed(self.diameter, self._opened(self.diameter))
        if not fits:
            raise self._too_many(core, self.diameter)
        return self._counted(core, self.diameter / 2)

    def _opened(
        self, diameter: float, core: CoverRows | None = None, *, keep: bool = False
    ) -> Opened:
        """Read once: open cells beside those there are; `keep` all, also superfluous ones."""
        core = self.given if core is None else core
        n_core = 0 if core is None else len(core)
        room = self.max_points - n_core
        max_dropped = room if keep else int(_SPARE * n_core)
        rule = OnlineRule(diameter / 2, self.metric, room, max_dropped)
        points = None if core is None else core.points
        opened: Opened = self._read(rule.open_cells, rule.merge, points)
        return opened

    def _completed(self, diameter: float, opened: Opened) -> tuple[CoverRows, bool]:
        """Go on from a first read until all rows are covered; return whether there was room."""
        core = self._beside_given(opened.core)
        for extra_reads in range(_ROUNDS + 1):
            if extra_reads:
                opened = self._opened(diameter, core, keep=extra_reads == _ROUNDS)
                core = join([core, opened.core])
            if opened.full:
                break
            # Without those that were dropped, rows that only they cover would need a read more.
            dropped = opened.dropped
            if dropped is not None and len(core) + len(dropped) <= self.max_points:
                return join([core, dropped]), True
        return core, False

    def _too_many(self, core: CoverRows, diameter: float) -> InvalidInputError:
        # Covered by half as many core points, the farthest first: the diameter that needs so many.
        some = core.points[:2048]
        half = farthest_first(some, max(1, len(some) // 2), self.metric)
        wider = diameter + 2 * self.metric.distance(half.remaining)
        last = int(self._indices(core).max()) + 1
        return InvalidInputError(
            f"diameter={diameter:g} needs more than {self.max_points:,} core points: "
            f"{len(core):,} were found among the first {last:,} of {self.last_read.n_rows:,} rows. "
            f"Pass a larger diameter (at "
            f"about {wider:.3g} half as many do for these rows), a larger max_points, or "
            f"max_points alone, which finds the diameter."
        )

    def _foretold(self, look: Forecast) -> InvalidInputError:
        if look.n_distances is not None:
            wider = "" if look.diameter is None else f" (at about {look.diameter:.3g} it is quick)"
            return InvalidInputError(
                f"diameter={self.diameter:g} takes about {look.n_distances:.1e} distances, more "
                f"than {MAX_DISTANCES:.0e}: of {look.n_sampled:,} rows looked at, {look.alone:,} "
                f"are alone in their cell, so that about {look.n_core:,.0f} core points are "
                f"foretold for {look.n_rows:,} rows. Pass a larger diameter{wider}, or size "
                f"(max_points of Coverage): with the diameter the core points that there may be, "
                f"whatever they take, alone the number to find a diameter for."
            )
        wider = "" if look.diameter is None else f" (at about {look.diameter:.3g} they are enough)"
        return InvalidInputError(
            f"diameter={self.diameter:g} needs more than {self.max_points:,} core points: of "
            f"{look.n_sampled:,} rows looked at, {look.alone:,} are alone in their cell, so that "
            f"at least about {look.n_core:,.0f} are foretold for {look.n_rows:,} rows. Pass a "
            f"larger diameter{wider}, or size (max_points of Coverage): with a diameter the core "
            f"points that there may be, alone the number to find a diameter for."
        )

    def _fitting(self) -> Cover:
        """Bound the diameter by doubling, then bisect it with the online rule."""
        rule = DoublingRule(_ROUGH * self.max_points, self.metric)
        rough = self._read(rule.open_cells, rule.merge)
        farthest = farthest_first(rough.core.points, self.max_points, self.metric)
        # One more row than there may be cells, pairwise at least so far apart.
        least_diameter = max(rough.apart, self.metric.distance(farthest.remaining))
        # Else every row that differs from others is a core point, or distances overflow.
        if 0.0 < least_diameter < np.inf:
            diameter, opened = self._bisected(least_diameter)
            for _ in range(_TRIALS):
                core, fits = self._completed(diameter, opened)
                if fits:
                    return self._counted(core, diameter / 2, least_diameter)
                diameter *= _CLOSE
                opened = self._opened(diameter)
        if self.given is not None:
            measures = Sorted.of(self.given.points, self.metric).nearest(rough.core.points)[1]
            room = self.max_points - len(self.given)
            farthest = farthest_first(rough.core.points, room, self.metric, measures=measures)
        core = self._beside_given(rough.core.take(farthest.rows))
        return self._counted(core, np.inf, least_diameter)

    def _beside_given(self, core: CoverRows) -> CoverRows:
        return core if self.given is None else join([self.given, core])

    def _bisected(self, least_diameter: float) -> tuple[float, Opened]:
        """Bisect the diameter, by the number of core points after one read."""
        low, high = least_diameter, np.inf
        # Where the farthest rows, one after another, would be sure to do.
        trial = 2.0 * least_diameter
        best: Opened | None = None
        trials = 0
        while high > _CLOSE * low:
            opened = self._opened(trial)
            trials += 1
            if opened.full:
                low = trial
            else:
                high, best = trial, opened
            if best is not None and trials >= _TRIALS:
                break
            trial = float(np.sqrt(low * high)) if best is not None else 1.5 * trial
        assert best is not None  # noqa: S101 - with a finite `high` there is one
        return high, best

    # --- the farthest-point rule

    def farthest(self) -> Cover:
        """Add the farthest rows until all are covered or the largest number is reached."""
        radius, limit = np.inf, 0.0
        if self.diameter is not None:
            # It foretells those of the online rule, which are fewer at one diameter.
            self._look(self.diameter)
            radius = self.diameter / 2
            limit = self.metric.limit(radius, self.n_features)
        core = self.given
        core_points = None if core is None else Sorted.of(core.points, self.metric)
        # Those that are given may be near one another, which bounds nothing.
        gap = np.inf if core is None else 0.0
        while True:
            n_core = 0 if core is None else len(core)
            room = self.max_points - n_core
            n_offered = n_offered_by_block(n_core, self.blocks.n_blocks, room)
            summary = self._summary(core_points, radius, limit, n_offered)
            if core is not None and (summary.farthest <= limit or not room):
                break
            core, new_gap = extend(core, core_points, summary, room, limit, self.metric)
            core = self._in_order(core)
            core_points = Sorted.of(core.points, self.metric)
            gap = min(gap, new_gap)
        if self.diameter is not None and summary.farthest > limit:
            raise self._too_many(core, self.diameter)
        # With the farthest row, these core points are one row more than cells there may be.
        least_diameter = self.metric.distance(min(gap, summary.farthest))
        return self._finished(core, summary, least_diameter)

    # --- the end

    def _counted(self, core: CoverRows, radius: float, least_diameter: float = 0.0) -> Cover:
        """Read once more, for the rows of every core point and the farthest row."""
        core = self._in_order(core)
        summary = self._summary(Sorted.of(core.points, self.metric), radius)
        return self._finished(core, summary, least_diameter)

    def _summary(
        self, core_points: Sorted | None, radius: float, limit: float = np.inf, n_offered: int = 0
    ) -> CellSummary:
        """Read once: count rows by their nearest core point, and get rows far from any."""
        chunk = partial(
            summarise_cells, metric=self.metric, radius=radius, limit=limit, n_offered=n_offered
        )
        summary: CellSummary = self._read(chunk, merge_summaries, core_points)
        return summary

    def _finished(self, core: CoverRows, summary: CellSummary, least_diameter: float) -> Cover:
        if not np.isfinite(summary.farthest):
            raise InvalidInputError(
                "X has values so large that squared distances overflow; scale the columns, for "
                "example with sklearn.preprocessing.MinMaxScaler."
            )
        if not summary.weights.sum() > 0.0:
            raise no_weight_error()
        farthest = self.metric.distance(summary.farthest)
        diameter = self.diameter
        if diameter is None:
            diameter = self.metric.outside(2.0 * farthest, self.n_features)
        else:  # the bound is for a number of core points
            least_diameter = 0.0
        return Cover(
            points=core.points,
            weights=summary.weights,
            indices=self._indices(core),
            diameter=diameter,
            cells=self.cells,
            n_rows=self.last_read.n_kept,
            reads=self.reads,
            labels=core.rows.labels,
            radius=farthest,
            least_diameter=least_diameter,
            sizes=dict(self.last_read.sizes),
        )
