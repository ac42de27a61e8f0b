"""Reads of a pool of unlabelled rows: what is closest to a boundary, and rows at random.

Every answer is a few rows, whatever the size of the pool, found by one fold. Products with
the separator are formed by loops of one thread (`numpy.einsum`), so that which row is asked
for depends on no number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.execution.gathering import gather
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.constructions.margin.pool_reads import (
    BestOf,
    Closest,
    FirstBelow,
    Found,
    Request,
    Take,
    TakeRequest,
    join,
    take_survey,
    unite,
)
from daskcoreset.core.typing import FloatArray, IndexArray

if TYPE_CHECKING:
    from daskcoreset.inputs.blocks import RowBlocks

__all__ = ["Pool", "open_pool"]


@dataclass(frozen=True, eq=False)
class Pool:
    """Rows out of core, with what one read has told about them.

    Attributes
    ----------
    blocks : RowBlocks
    sizes : ndarray of shape (n_blocks,), int64
        Rows of every block as read.
    weights : ndarray of shape (n_blocks,), float64
        Weight of the usable rows of every block; rows without weight are never asked for.
    n_usable : int
        Rows that may be asked for: finite, and with a weight.
    """

    blocks: RowBlocks
    sizes: IndexArray
    weights: FloatArray
    n_usable: int

    @property
    def n_rows(self) -> int:
        """Rows in all."""
        return int(self.sizes.sum())

    @property
    def n_features(self) -> int:
        """Columns."""
        return self.blocks.rules.n_features

    @property
    def starts(self) -> IndexArray:
        """Number of the first row of every block."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64)

    def closest(self, w: FloatArray, b: float, known: IndexArray, count: int) -> Found:
        """Return the `count` rows of least distance to the boundary; one read.

        Parameters
        ----------
        w : ndarray of shape (d,), float64
        b : float
        known : ndarray of int64
            Numbers of rows to leave out, sorted.
        count : int

        Returns
        -------
        Found
            The closest first; rows at one distance in the order of the pool.
        """
        request = Request(self.starts, w, b, known)
        return gather(self.blocks, Closest(count), BestOf(count), given=request).value

    def first_below(
        self, w: FloatArray, b: float, known: IndexArray, count: int, *, below: float, after: int
    ) -> Found | None:
        """Return the first rows closer than `below` that follow row `after`, going round once.

        Blocks are read one at a time until one holds such a row; None if none does. The rows
        up to `after` come last.
        """
        starts, n_blocks = self.starts, len(self.sizes)
        first = int(np.searchsorted(starts, after, side="right")) - 1 if after >= 0 else 0
        turns = [(first + i) % n_blocks for i in range(n_blocks)]
        # At the end the first block again, for its rows up to `after`.
        for number, beyond in [(first, after), *((turn, -1) for turn in [*turns[1:], first])]:
            if not self.weights[number]:
                continue
            request = Request(starts, w, b, known, below, beyond)
            found = gather(
                self.blocks.select([number]), FirstBelow(count), join, given=request
            ).value
            if len(found.indices):
                return found
        return None

    def fetch(self, indices: IndexArray) -> Found:
        """Return rows by their numbers, reading only the blocks that hold them.

        Rows that the blocks leave out, such as those with NaN, are missing from what is
        returned; the others come in the order asked for.
        """
        indices = np.asarray(indices, dtype=np.int64)
        numbers = np.searchsorted(self.starts, indices, side="right") - 1
        found = self._take(numbers, indices - self.starts[numbers], by_weight=False)
        where = {int(index): i for i, index in enumerate(found.indices)}
        return found.take([where[i] for i in indices.tolist() if i in where])

    def draw(self, rng: np.random.Generator, count: int) -> Found:
        """Draw rows in proportion to their weights, each on its own; reads only their blocks."""
        edges = np.cumsum(self.weights)
        at = rng.random(count) * edges[-1]
        numbers = np.searchsorted(edges, at, side="right")
        last = int(np.flatnonzero(self.weights)[-1])
        numbers = np.minimum(numbers, last)
        within = at - (edges[numbers] - self.weights[numbers])
        found = self._take(numbers, within, by_weight=True)
        order = np.lexsort((np.arange(count), numbers))
        back = np.empty(count, dtype=np.int64)
        back[order] = np.arange(count)
        return found.take(back)

    def _take(self, numbers: IndexArray, values: Any, *, by_weight: bool) -> Found:
        of_block: dict[int, FloatArray] = {
            int(number): np.asarray(values[numbers == number], dtype=np.float64)
            for number in np.unique(numbers)
        }
        wanted = TakeRequest(self.starts, of_block)
        blocks = self.blocks.select(sorted(of_block))
        return gather(blocks, Take(by_weight), join, given=wanted).value


def open_pool(X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Pool:
    """Open data and read it once: rows and weight of every block, bad rows found.

    Parameters
    ----------
    X, y, sample_weight, **options
        As in `daskcoreset.inputs.blocks.row_blocks`.

    Returns
    -------
    Pool

    Raises
    ------
    InvalidInputError, InvalidTypeError
        As `daskcoreset.inputs.blocks.row_blocks`, or if no row has a weight.
    """
    blocks = row_blocks(X, y, sample_weight, **options)
    found = gather(blocks, take_survey, unite)
    numbers = [spec.number for spec in blocks.specs]
    weights = np.array([found.value[number][0] for number in numbers])
    n_usable = sum(found.value[number][1] for number in numbers)
    if not weights.sum():
        raise InvalidInputError(
            "no row of X can be asked for: all are invalid or have sample_weight zero; pass at "
            "least one usable row."
        )
    sizes = np.array([found.sizes[number] for number in numbers], dtype=np.int64)
    return Pool(blocks, sizes, weights, n_usable)
