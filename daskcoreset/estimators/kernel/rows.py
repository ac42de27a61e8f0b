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
from daskcoreset.execution.fold import map_reduce

if TYPE_CHECKING:
    from daskcoreset.inputs.blocks import RowBlocks

__all__ = ["PAST", "ROOT", "TrainingRows"]

PAST, ROOT = 2**31, 2**31 + 1
"""Numbers of the block that stands for the past and of the root; no other block has them."""


def _merge(first: ObjectiveTerms, second: ObjectiveTerms) -> ObjectiveTerms:
    return first.merged(second)


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
        What `note` was told, with "reads" and "seconds" so far.
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

    def ask(self, asked: ObjectiveQuery) -> ObjectiveTerms:
        """Read all rows once.

        Parameters
        ----------
        asked : Question

        Returns
        -------
        Answer
        """
        found: ObjectiveTerms = map_reduce(self.blocks, evaluate_block, _merge, given=asked).value
        if self.past is not None:
            found = found.merged(evaluate_block(self.past, PAST, asked))
        self.reads += 1
        return found

    def note(self, **facts: float) -> None:
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
        wanted = self.quotas(seed, fold, count)
        found: Block = map_reduce(self.blocks, _draw, _joined, given=wanted).value
        if self.past is not None:
            found = concatenate([found, wanted.of(self.past, PAST)])
        self.reads += 1
        return found

    def quotas(self, seed: int, fold: int, count: int | None) -> Draw:
        """Split draws over the blocks; None takes all rows."""
        if count is None:
            return Draw(seed, fold, None)
        numbers = sorted(self.block_weights)
        masses = np.array([[self.block_weights[number]] for number in numbers])
        counts = split_quota(count, masses, stream(seed, Stage.DESCENT, ROOT, fold))[:, 0]
        return Draw(seed, fold, dict(zip(numbers, counts.tolist(), strict=True)))


def _draw(block: Block, number: int, wanted: Draw) -> Block:
    return wanted.of(block, number)


def _joined(first: Block, second: Block) -> Block:
    return concatenate([first, second])
