"""What stochastic gradient methods share: rows in memory, and the order in which steps take them.

The steps themselves are compiled loops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daskcoreset.core.blocks import Block
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.sampling import draw_with_replacement
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.estimators.kernel.kernels import KernelMap
from daskcoreset.estimators.kernel.objective import signs_of
from daskcoreset.estimators.kernel.rows import ROOT

SAMPLE_NUMBERS = 2**23
"""Numbers held for the steps of one read: 64 MiB."""

_ORDER = 2**30
"""Added to the number of a read where the order of steps is drawn."""


def max_sample_rows(width: int) -> int:
    """Rows of so many numbers that are held at most."""
    return max(1, SAMPLE_NUMBERS // width)


def order_stream(seed: int, index: int) -> np.random.Generator:
    """Random numbers for the order of the steps after a read."""
    return stream(seed, Stage.DESCENT, ROOT, _ORDER + index)


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows in memory as the compiled loops need them.

    Attributes
    ----------
    values : ndarray of shape (m, r), float64
        Kernel between rows and core points.
    cells : ndarray of shape (m,), int64
        Nearest core point.
    signs : ndarray of shape (K, m), float64
        In every problem.
    weights : ndarray of shape (m,), float64
    all_rows : bool
        Whether they are all rows of the data, or were drawn in proportion to weights.
    """

    values: FloatArray
    cells: IndexArray
    signs: FloatArray
    weights: FloatArray
    all_rows: bool

    @classmethod
    def of(cls, block: Block, core: KernelMap, classes: AnyArray, *, all_rows: bool) -> Sample:
        """Compute what is needed of a block."""
        values = np.empty((len(block), len(core)))
        cells: Any = np.empty(len(block), dtype=np.int64)
        for part, tile, nearest in core.tiles(block.points, nearest=True):
            values[part] = tile
            cells[part] = nearest.cells  # type: ignore[union-attr] # asked for
        labels: Any = block.labels
        signs = np.ascontiguousarray(signs_of(labels, classes).T)
        return cls(values, cells, signs, block.weights, all_rows)

    def order(self, n_steps: int, rng: np.random.Generator) -> IndexArray:
        """Draw the row of every step; drawn rows serve repeatedly where there are too few."""
        n_rows = len(self.weights)
        if self.all_rows:
            return draw_with_replacement(self.weights, n_steps, rng)
        if n_steps <= n_rows:
            return np.asarray(rng.permutation(n_rows)[:n_steps], dtype=np.int64)
        return np.asarray(rng.integers(n_rows, size=n_steps), dtype=np.int64)
