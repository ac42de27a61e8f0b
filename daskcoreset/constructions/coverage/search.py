"""The reads of a cover, each determined by the results of those before."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.constructions.coverage.farthest_first import (
    CellSummary,
    extend,
    farthest_first,
    merge_summaries,
    n_offered_by_block,
    summarise_cells,
)
from daskcoreset.constructions.coverage.metric import Cells, Metric, Sorted, metric_of
from daskcoreset.constructions.coverage.online import (
    DoublingCover,
    Opened,
    merge_doubling,
    merge_opened,
    open_at_most,
    open_cells,
)
from daskcoreset.constructions.coverage.result import Cover, CoverRows, join
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.execution.engine import BlockResults, map_reduce

if TYPE_CHECKING:
    from daskcoreset.inputs.blocks import RowBlocks

_TRIALS = 6
"""Diameters that are tried at most, from the first that has few enough core points."""

_CLOSE = 1.04
"""Ratio of diameters at which a search for the best stops."""

_ROUGH = 2
"""Core points that a block keeps for each one wanted, where the diameter is to be found."""

_SPARE = 0.02
"""Superfluous core points are kept up to this share of all, rather than reading once more."""

_ROUNDS = 4
"""Reads that thin core points at most; what a further one opens is kept."""


@dataclass(frozen=True, eq=False)
class _Completed:
    """Core points by the online rule, the last read and how many there were after the first."""

    core: CoverRows
    found: BlockResults[Opened]
    reads: int
    fits: bool


@dataclass(frozen=True, eq=False)
class Search:
    """The reads of one cover.

    Attributes
    ----------
    blocks : RowBlocks
    cells : {"euclidean", "chebyshev"}
    max_points : int
        Core points at most.
    split_every : int
    progress : bool or None
    """

    blocks: RowBlocks
    cells: Cells
    max_points: int
    split_every: int
    progress: bool | None

    @property
    def metric(self) -> Metric:
        """How far rows are from core points."""
        return metric_of(self.cells)

    @property
    def n_features(self) -> int:
        """Number of columns, d."""
        return self.blocks.schema.n_features

    def _read(self, work: Any, merge: Any, given: Any = None) -> BlockResults[Any]:
        return map_reduce(
            self.blocks,
            work,
            merge,
            broadcast=given,
            split_every=self.split_every,
            progress=self.progress,
        )

    # --- the online rule

    def online(self, diameter: float) -> Cover:
        """Open cells until all rows are covered, then count."""
        done = self._completed(diameter, self._opened(diameter))
        if not done.fits:
            raise self._too_many(done.core, done.found, diameter)
        return self._counted(done.core, done.found, done.reads + 1, diameter=diameter)

    def _opened(
        self, diameter: float, core: CoverRows | None = None, *, keep: bool = False
    ) -> BlockResults[Opened]:
        """Read once: open cells beside those there are; `keep` all, also superfluous ones."""
        n_core = 0 if core is None else len(core)
        room = self.max_points - n_core
        max_dropped = room if keep else int(_SPARE * n_core)
        options: dict[str, Any] = {
            "radius": diameter / 2,
            "metric": self.metric,
            "max_points": room,
        }
        return self._read(
            partial(open_cells, **options),
            partial(merge_opened, **options, max_dropped=max_dropped),
            None if core is None else core.points,
        )

    def _completed(self, diameter: float, found: BlockResults[Opened]) -> _Completed:
        """Go on from a first read until all rows are covered."""
        core = found.value.core
        for reads in range(_ROUNDS + 1):
            if reads:
                found = self._opened(diameter, core, keep=reads == _ROUNDS)
                core = join([core, found.value.core])
            if found.value.full:
                return _Completed(core, found, reads, fits=False)
            dropped = found.value.dropped
            if dropped is not None and len(core) + len(dropped) <= self.max_points:
                return _Completed(join([core, dropped]), found, reads, fits=True)
        return _Completed(core, found, reads, fits=False)

    def _too_many(
        self, core: CoverRows, found: BlockResults[Any], diameter: float
    ) -> InvalidInputError:
        # Half of the core points, the farthest first, say what diameter would need so many.
        some = core.points[:2048]
        half = farthest_first(some, max(1, len(some) // 2), self.metric)
        wider = diameter + 2 * self.metric.distance(half.remaining)
        last = int(core.indices(_offsets(found)).max()) + 1
        return InvalidInputError(
            f"diameter={diameter:g} needs more than {self.max_points:,} core points: "
            f"{len(core):,} were found among the first {last:,} of {found.n_rows:,} rows. "
            f"Pass a larger diameter (at "
            f"about {wider:.3g} half as many do for these rows), a larger max_points, or "
            f"max_points alone, which finds the diameter."
        )

    # --- a number of points

    def fitting(self) -> Cover:
        """Bound the diameter by doubling, then bisect it with the online rule."""
        options: dict[str, Any] = {"max_points": _ROUGH * self.max_points, "metric": self.metric}
        rough: BlockResults[DoublingCover] = self._read(
            partial(open_at_most, **options), partial(merge_doubling, **options)
        )
        core = rough.value.core
        chosen = farthest_first(core.points, self.max_points, self.metric)
        # One more row than there may be cells, pairwise at least so far apart.
        least = max(rough.value.apart, self.metric.distance(chosen.remaining))
        if not 0.0 < least < np.inf:
            # Every row that differs from others is a core point; or distances overflow.
            return self._counted(core.take(chosen.rows), rough, 1, least=least)
        reads, diameter, found = self._bisected(least)
        for _ in range(_TRIALS):
            done = self._completed(diameter, found)
            reads += done.reads
            if done.fits:
                return self._counted(
                    done.core, done.found, reads + 1, radius=diameter / 2, least=least
                )
            diameter *= _CLOSE
            found = self._opened(diameter)
            reads += 1
        return self._counted(core.take(chosen.rows), rough, reads + 1, least=least)

    def _bisected(self, least: float) -> tuple[int, float, BlockResults[Opened]]:
        """Bisect the diameter, by the number of core points after one read."""
        low, high = least, np.inf
        tried = 2.0 * least  # where the farthest rows, one after another, would be sure to do
        best: BlockResults[Opened] | None = None
        reads = 0
        while high > _CLOSE * low:
            found = self._opened(tried)
            reads += 1
            if found.value.full:
                low = tried
            else:
                high, best = tried, found
            if best is not None and reads >= _TRIALS:
                break
            tried = float(np.sqrt(low * high)) if best is not None else 1.5 * tried
        assert best is not None  # noqa: S101 - with a finite `high` there is one
        return reads, high, best

    # --- the farthest-point rule

    def farthest(self, diameter: float | None) -> Cover:
        """Add the farthest rows until none is too far, or there is no room."""
        radius = np.inf if diameter is None else diameter / 2
        limit = 0.0 if diameter is None else self.metric.limit(radius, self.n_features)
        core: CoverRows | None = None
        known: Sorted | None = None
        reads, gap = 0, np.inf
        while True:
            n_core = 0 if core is None else len(core)
            room = self.max_points - n_core
            n_offered = n_offered_by_block(n_core, self.blocks.n_blocks, room)
            read = self._summarise(known, limit=limit, radius=radius, n_offered=n_offered)
            reads += 1
            if core is not None and (read.value.farthest <= limit or not room):
                break
            core, least = extend(core, known, read.value, room, limit, self.metric)
            core = _in_order(core, read)
            known = Sorted.of(core.points, self.metric)
            gap = min(gap, least)
        assert core is not None  # noqa: S101 - the first read has brought rows
        if diameter is not None and read.value.farthest > limit:
            raise self._too_many(core, read, diameter)
        # With the farthest row, these core points are one row more than cells there may be.
        least = min(self.metric.distance(gap), self.metric.distance(read.value.farthest))
        return self._finished(core, read, reads, diameter=diameter, least=least)

    # --- the end

    def _counted(
        self,
        core: CoverRows,
        before: BlockResults[Any],
        reads: int,
        *,
        diameter: float | None = None,
        radius: float = np.inf,
        least: float = 0.0,
    ) -> Cover:
        """Read once more, to count the rows of every core point and to see the farthest."""
        core = _in_order(core, before)
        known = Sorted.of(core.points, self.metric)
        reach = radius if diameter is None else diameter / 2
        read = self._summarise(known, limit=np.inf, radius=reach, n_offered=0)
        return self._finished(core, read, reads + 1, diameter=diameter, least=least)

    def _summarise(self, known: Sorted | None, **options: Any) -> BlockResults[CellSummary]:
        work = partial(summarise_cells, metric=self.metric, **options)
        return self._read(work, merge_summaries, known)

    def _finished(
        self,
        core: CoverRows,
        read: BlockResults[CellSummary],
        reads: int,
        *,
        diameter: float | None,
        least: float,
    ) -> Cover:
        summary = read.value
        if not np.isfinite(summary.farthest):
            raise InvalidInputError(
                "X has values so large that squared distances overflow; scale the columns, for "
                "example with sklearn.preprocessing.MinMaxScaler."
            )
        if not summary.weights.sum() > 0.0:
            raise InvalidInputError(
                "sample_weight is zero on every row; give at least one row a positive weight."
            )
        farthest = self.metric.distance(summary.farthest)
        if diameter is None:
            diameter = self.metric.outside(2.0 * farthest, self.n_features)
        else:
            least = 0.0
        return Cover(
            points=core.points,
            weights=summary.weights,
            indices=core.indices(_offsets(read)),
            diameter=diameter,
            cells=self.cells,
            n_rows=summary.n_rows,
            reads=reads,
            labels=core.rows.labels,
            radius=farthest,
            least_diameter=least,
            sizes=read.sizes,
        )


def _in_order(core: CoverRows, read: BlockResults[Any]) -> CoverRows:
    return core.take(np.argsort(core.indices(_offsets(read)), kind="stable"))


def _offsets(read: BlockResults[Any]) -> dict[int, int]:
    """Return the number of the first row of every block."""
    blocks = sorted(read.sizes)
    starts = itertools.accumulate((read.sizes[block] for block in blocks), initial=0)
    return dict(zip(blocks, starts, strict=False))
