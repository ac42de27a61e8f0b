"""The loop of Fig. 1: solve on the core set, read, add violators, until the margins meet."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.classes import MOST_LABELS
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.constructions.margin.classes import find_classes
from daskcoreset.constructions.margin.core import Core, Fit, fit_core
from daskcoreset.constructions.margin.picked import Picked, joined, least, row_numbers
from daskcoreset.constructions.margin.result import MarginCoreset, Pass
from daskcoreset.constructions.margin.separability import NotSeparableError
from daskcoreset.constructions.margin.twins import find_twins
from daskcoreset.constructions.margin.violators import Question, Worst, ask_worst
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.surroundings import warn_caller

if TYPE_CHECKING:
    from daskcoreset.execution.gathering import Gathered
    from daskcoreset.inputs.blocks import RowBlocks
    from daskcoreset.constructions.margin.batch import MaxMarginCoreset
    from daskcoreset.constructions.margin.classes import Found
    from daskcoreset.constructions.margin.kernelised import Kernel
    from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

__all__ = ["Run"]


class Run:
    """One run of the loop."""

    def __init__(self, options: MaxMarginCoreset, blocks: RowBlocks, kernel: Kernel) -> None:
        self.options = options
        self.blocks = blocks
        self.kernel = kernel
        n_blocks, d = blocks.n_blocks, blocks.rules.n_features
        wanted = options.violators
        if wanted == "auto":
            wanted = max(20, min(2 * d, 1000))
        elif wanted == "block":
            wanted = n_blocks
        self.in_all = int(wanted)
        # Twice its share from each block, for blocks are not alike.
        share = -(-2 * self.in_all // n_blocks) if n_blocks > 1 else self.in_all
        self.per_block = 1 if options.violators == "block" else min(share, self.in_all)

    def result(self, survey: Gathered[Found] | None = None) -> MarginCoreset:
        """Run it, from what a first read found."""
        core = self._first(survey)
        trace: list[Pass] = []
        best: tuple[Core, Fit, float] | None = None
        upper = np.inf
        ended = ""
        while True:
            fit = self._fit(core)
            upper = min(upper, fit.hard.length)
            if best is not None and best[2] >= (1.0 - self.options.epsilon) * upper:
                break
            if len(trace) == self.options.max_passes:
                ended = f"max_passes={len(trace)} is reached; pass a larger one"
                break
            answer = self._ask(core, fit, measure=not trace)
            levels = answer.value.levels
            margin = float(levels.sum()) / 2 if self.options.intercept else float(levels.min())
            if best is None or margin > best[2]:
                best = (core, self._centred(fit, levels), margin)
            if not trace:
                self.radius = float(np.sqrt(answer.value.square))
            trace.append(Pass(len(trace) + 2, len(core), fit.hard.margin, margin, best[2]))
            self._tell(trace[-1])
            if best[2] >= (1.0 - self.options.epsilon) * upper:
                break
            larger = self._grown(core, fit, answer)
            if larger is core:
                ended = "the margin is too small for double precision; scale the columns"
                break
            core = larger
        assert best is not None  # noqa: S101 - max_passes is at least one
        if ended:
            warn_caller(
                f"the margin is certified to {best[2] / upper:.3g} of the largest and not to "
                f"{1 - self.options.epsilon:.3g}: {ended}."
            )
        return self._pack(core, best, upper, tuple(trace), converged=not ended)

    def _first(self, survey: Gathered[Found] | None) -> Core:
        """Take the classes and rows to start from, of each class as many."""
        keep = 1 if self.options.violators == 1 else max(1, self.in_all // 2)
        positive = self.options.positive
        most = 2 if positive is None else MOST_LABELS
        gathered = survey or find_classes(self.blocks, most=most, keep=keep)
        found = gathered.value
        if positive is None:
            side = found.classes == found.classes[1]
        else:
            side = found.classes == positive
            if not side.any():
                raise InvalidInputError(
                    f"positive is {positive!r}, but y has the labels "
                    f"{found.classes[:10].tolist()}; pass one of them."
                )
        # Labels that are not the second one are on the negative side.
        self.classes: AnyArray = found.classes[[int((~side).argmax()), int(side.argmax())]]
        self.n_rows = gathered.n_rows
        parts = [
            Picked(part.block, part.numbers, np.full(len(part), 1.0 if up else -1.0), part.values)
            for part, up in zip([least(one, keep) for one in found.firsts], side, strict=True)
        ]
        rows = joined(parts)
        core = Core(rows, self._numbers(gathered, rows), self.kernel, self.options.intercept)
        # The radius of rows about their own middle, not about a distant origin.
        self.center: FloatArray | None = None
        if self.options.intercept:
            points: Any = core.points
            self.center = np.asarray(points.mean(axis=0, dtype=np.float64)).ravel()
        return core.start()

    def _fit(self, core: Core) -> Fit:
        try:
            return fit_core(core)
        except NotSeparableError as error:
            if error.duplicates is None:
                held = core.take(np.flatnonzero(np.isin(core.indices, error.indices)))
                twins = find_twins(self.blocks, held, self.classes)
                if twins is not None:
                    raise NotSeparableError(
                        error.indices,
                        error.labels,
                        error.coefficients,
                        error.norm,
                        intercept=error.intercept,
                        duplicates=twins,
                    ) from None
            raise

    def _ask(self, core: Core, fit: Fit, *, measure: bool) -> Gathered[Worst]:
        del core
        hard, share = fit.hard, 1.0 - self.options.epsilon
        floors = np.full(2, share * hard.length)
        if self.options.intercept:
            # Together twice the share of the margin: some row is below unless it is reached.
            floors = hard.levels + (hard.length - hard.margin) - self.options.epsilon * hard.length
        return ask_worst(
            self.blocks,
            Question(
                fit.separator,
                self.classes,
                floors,
                hard.length,
                share,
                self.per_block,
                self.in_all,
                fit.middle,
                self.center,
                measure,
            ),
        )

    def _centred(self, fit: Fit, levels: FloatArray) -> Fit:
        """Move the hyperplane into the middle of the strip that the data leave."""
        if not self.options.intercept:
            return fit
        middle = float(levels[1] - levels[0]) / 2
        return replace(fit, separator=replace(fit.separator, intercept=middle))

    def _grown(self, core: Core, fit: Fit, answer: Gathered[Worst]) -> Core:
        rows = answer.value.rows
        # Without new violators rounding has the last word.
        if rows is None or np.isin(self._numbers(answer, rows), core.indices).all():
            return core
        indices = self._numbers(answer, rows)
        if self.options.drop:
            core = core.take(np.flatnonzero(fit.hard.dual > 0.0))
        return core.with_rows(rows, indices)

    @staticmethod
    def _numbers(gathered: Gathered[Any], rows: Picked) -> IndexArray:
        within: Any = rows.block.rows
        return row_numbers(gathered, rows.numbers, within)

    def _tell(self, done: Pass) -> None:
        progress = self.options.progress
        if callable(progress):
            progress(done)
        elif progress:
            sys.stderr.write(
                f"read {done.reads}: margin {done.core_margin:.6g} on {done.size:,} rows, "
                f"{done.margin:.6g} on all\n"
            )

    def _pack(
        self,
        core: Core,
        best: tuple[Core, Fit, float],
        upper: float,
        trace: tuple[Pass, ...],
        *,
        converged: bool,
    ) -> MarginCoreset:
        of, fit, margin = best
        if self.options.drop:
            core = of  # rows of the separator may have been dropped since
        dual = np.zeros(len(core))
        place = {int(row): i for i, row in enumerate(core.indices)}
        dual[[place[int(row)] for row in of.indices]] = fit.hard.dual
        block = core.rows.block
        return MarginCoreset(
            WeightedPoints(block.points, np.ones(len(core)), core.indices, block.labels),
            dual,
            core.rows.signs,
            self.classes,
            fit.separator,
            margin,
            float(upper),
            self.options.epsilon,
            converged,
            self.options.intercept,
            self.radius,
            len(trace) + 1,
            self.n_rows,
            trace,
        )
