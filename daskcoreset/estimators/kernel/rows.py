"""The rows that a kernel machine is trained on, read as often as it takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.blocks import Block, concatenate
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.sampling import split_quota
from daskcoreset.core.typing import AnyArray
from daskcoreset.estimators.kernel.objective import (
    Draw,
    ObjectiveQuery,
    ObjectiveTerms,
    evaluate_block,
)
from daskcoreset.execution.engine import map_reduce

if TYPE_CHECKING:
    from daskcoreset.inputs.blocks import RowBlocks

PAST, ROOT = 2**31, 2**31 + 1
"""Numbers of the block that stands for the past and of the root; no other block has them."""


@dataclass(eq=False)
class TrainingRows:
    """The rows that a model is trained on, and how often they were read.

    Attributes
    ----------
    blocks : RowBlocks
        With labels.
    classes : ndarray of shape (n_classes,)
    weight : float
        Total weight M, of the past too.
    n_rows : int
    past : Block or None
        Weighted rows in memory that stand for what is no longer at hand.
    block_weights : dict of int to float
        Weight of every block by its number; that of the past under `PAST`.
    report : callable or None
        Called with every entry of `trace`.
    reads : int
    trace : list of dict
        What `record` was passed, with "reads" and "seconds" so far.
    """

    blocks: RowBlocks
    classes: AnyArray
    weight: float
    n_rows: int
    block_weights: dict[int, float] = field(default_factory=dict)
    past: Block | None = None
    report: Callable[[dict[str, Any]], None] | None = None
    reads: int = 0
    trace: list[dict[str, Any]] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)

    def evaluate(self, query: ObjectiveQuery) -> ObjectiveTerms:
        """Read all rows once."""
        terms: ObjectiveTerms = map_reduce(
            self.blocks, evaluate_block, ObjectiveTerms.merged, broadcast=query
        ).value
        if self.past is not None:
            terms = terms.merged(evaluate_block(self.past, PAST, query))
        self.reads += 1
        return terms

    def record(self, **facts: float) -> None:
        """Add an entry to the trace, and report it."""
        seconds = time.perf_counter() - self.started
        self.trace.append({**facts, "reads": self.reads, "seconds": seconds})
        if self.report is not None:
            self.report(self.trace[-1])

    def draw(self, seed: int, fold: int, count: int | None) -> Block:
        """Draw rows with replacement in proportion to their weights, in one read.

        Parameters
        ----------
        seed, fold : int
            Address of the random numbers.
        count : int or None
            None for all rows.

        Returns
        -------
        Block
            In the order of the blocks. Of drawn rows each stands for as much as any other,
            whatever its weight; of all rows each for its weight.
        """
        draw = self.quotas(seed, fold, count)
        rows: Block = map_reduce(self.blocks, _draw, _concatenate_two, broadcast=draw).value
        if self.past is not None:
            rows = concatenate([rows, draw.of(self.past, PAST)])
        self.reads += 1
        return rows

    def quotas(self, seed: int, fold: int, count: int | None) -> Draw:
        """Split draws over the blocks; None takes all rows."""
        if count is None:
            return Draw(seed, fold, None)
        indices = sorted(self.block_weights)
        masses = np.array([[self.block_weights[index]] for index in indices])
        counts = split_quota(count, masses, stream(seed, Stage.DESCENT, ROOT, fold))[:, 0]
        return Draw(seed, fold, dict(zip(indices, counts.tolist(), strict=True)))


def _draw(block: Block, block_index: int, draw: Draw) -> Block:
    return draw.of(block, block_index)


def _concatenate_two(first: Block, second: Block) -> Block:
    return concatenate([first, second])
