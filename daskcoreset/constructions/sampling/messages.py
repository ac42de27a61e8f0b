"""What blocks send to the root and what it asks of them: a census, rows, and a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.errors import InvalidInputError, ignore_overflow
from daskcoreset.core.typing import FloatArray

if TYPE_CHECKING:
    from daskcoreset.core.blocks import Block, InvalidRow
    from daskcoreset.sensitivities import Sensitivity

__all__ = [
    "BlockReport",
    "Candidates",
    "DrawRequest",
    "MergeReports",
]


@dataclass(frozen=True, eq=False)
class Candidates:
    """Rows that one block sent to the root.

    Attributes
    ----------
    number : int
        Number of the block.
    rows : Block
        The rows, in the order of the draws.
    probability : ndarray of shape (k,), float64
        Of inclusion (systematic), or per draw (multinomial).
    coins : ndarray of shape (k,), float64, or None
        Uniform numbers for rejection, drawn where the rows were.
    target : float
        Rows that the block was asked for; infinite where it gave all that have a score, so
        that nothing was left to chance.
    """

    number: int
    rows: Block
    probability: FloatArray
    coins: FloatArray | None = None
    target: float = np.inf


@dataclass(frozen=True, eq=False)
class BlockReport:
    """What a fold brings to the root: per block, and merged.

    Attributes
    ----------
    read, kept : dict of int to int
        Rows of every block as read, and after invalid ones were dropped.
    weights : dict of int to float
        Total weight of every block.
    problem : tuple of (int, Problem) or None
        The first block with a problem.
    summary : object or None
        Merged summary.
    locals : dict
        Summary of every block in the last fold; none where the sums of scores are sent instead.
    masses : dict
        Sums of the scores of every block by component, where a read added them up.
    drawn : tuple of Drawn
    """

    read: dict[int, int]
    kept: dict[int, int]
    weights: dict[int, float] = field(default_factory=dict)
    problem: tuple[int, InvalidRow] | None = None
    summary: Any = None
    locals: dict[int, Any] = field(default_factory=dict)
    masses: dict[int, FloatArray] = field(default_factory=dict)
    drawn: tuple[Candidates, ...] = ()

    @property
    def n_rows(self) -> int:
        """Rows kept in all."""
        return sum(self.kept.values())

    @property
    def weight(self) -> float:
        """Total weight U of the rows kept."""
        return float(sum(self.weights[number] for number in sorted(self.weights)))

    def offsets(self) -> dict[int, int]:
        """Return the number of the first row of every block."""
        starts: dict[int, int] = {}
        total = 0
        for number in sorted(self.read):
            starts[number] = total
            total += self.read[number]
        return starts

    def check(self) -> None:
        """Raise the first problem found, with the row counted over all blocks."""
        if self.problem is not None:
            number, problem = self.problem
            raise problem.error(self.offsets()[number])
        if self.n_rows == 0:
            dropped = sum(self.read.values())
            found = f"none of the {dropped} rows of X is finite" if dropped else "X has no rows"
            raise InvalidInputError(f"{found}; pass at least one usable row.")
        if not np.isfinite(self.weight):
            raise InvalidInputError("sample_weight sums to infinity; scale it down.")
        if self.weight == 0.0:
            raise InvalidInputError(
                "sample_weight is zero on every row; give at least one row a positive weight."
            )


@dataclass(frozen=True)
class MergeReports:
    """Merges neighbouring parts of a census."""

    construction: Sensitivity[Any]

    def __call__(self, parts: Sequence[BlockReport]) -> BlockReport:
        """Merge neighbouring parts, in the order of the blocks."""
        problems = [part.problem for part in parts if part.problem is not None]
        summaries = [part.summary for part in parts if part.summary is not None]
        with ignore_overflow():
            summary = reduce(self.construction.merge, summaries) if summaries else None
        return BlockReport(
            read={number: rows for part in parts for number, rows in part.read.items()},
            kept={number: rows for part in parts for number, rows in part.kept.items()},
            weights={number: u for part in parts for number, u in part.weights.items()},
            problem=min(problems, key=lambda found: found[0]) if problems else None,
            summary=summary,
            locals={number: local for part in parts for number, local in part.locals.items()},
            masses={number: sums for part in parts for number, sums in part.masses.items()},
            drawn=tuple(drawn for part in parts for drawn in part.drawn),
        )


@dataclass(frozen=True, eq=False)
class DrawRequest:
    """What the root asks of the blocks in a further read.

    Attributes
    ----------
    summary : object
        Settled global summary.
    wanted : dict of int to (float or ndarray), or None
        By block: candidates (systematic) or draws by component (multinomial); None asks for
        all rows.
    """

    summary: Any
    wanted: dict[int, Any] | None
