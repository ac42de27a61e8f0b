"""How many core points a diameter needs, foretold from a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from daskcoreset.constructions.coverage.metric import Metric, Sorted
from daskcoreset.constructions.coverage.online import online
from daskcoreset.constructions.coverage.result import CoverRows, join, take_rows
from daskcoreset.core.blocks import Block
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.typing import AnyArray
from daskcoreset.execution.engine import map_reduce
from daskcoreset.inputs.blocks import RowBlocks

# Core points from which on there is a look: so many take a second and more to find.
_FEW = 10_000

# Rows drawn for it, of so many times as many rows as there may be core points.
_SAMPLE, _MULTIPLE = 8192, 16

# The estimate is a lower bound, and was a half to a quarter of the truth in trials: what is more by
# it is refused, and a diameter that is to do has room for so many times as many.
_SHORT = 4.0

# Diameters tried for the remedy, each larger by half.
_TRIALS = 12


@dataclass(frozen=True)
class Forecast:
    """Core points foretold, and what to do.

    Attributes
    ----------
    n_core : float
        Core points that the rows looked at, and those of the same blocks, are expected to need.
    n_rows : int
        Rows of these blocks.
    n_sampled : int
        Rows looked at.
    alone : int
        Those with no other of the rows looked at in their cell.
    diameter : float or None
        One that is expected to do.
    """

    n_core: float
    n_rows: int
    n_sampled: int
    alone: int
    diameter: float | None


def foretell(
    blocks: RowBlocks, diameter: float, max_points: int, metric: Metric, split_every: int
) -> Forecast | None:
    """Foretell that a diameter needs more than `max_points` core points; None where it may not.

    Blocks are looked at that have sixteen times as many rows as there may be core points; whether
    there are more in other blocks is not guessed.
    """
    sizes = blocks.sizes
    if sizes is None or max_points < _FEW or sum(sizes) <= max_points:
        return None
    chosen = _chosen(sizes, _MULTIPLE * max_points)
    n_rows = sum(sizes[i] for i in chosen)
    draw = partial(_sampled, share=min(1.0, _SAMPLE / n_rows))
    some = map_reduce(
        blocks.select(chosen), draw, _both, split_every=split_every, progress=False
    ).value.points
    # Any order of the rows will do but one in which neighbours are alike.
    some = some[stream(0, Stage.SIZING, 0, 1).permutation(len(some))]
    n_core, alone = estimated(some, diameter, metric, n_rows)
    if n_core <= max_points:
        return None
    wider: float | None = None
    for trial in diameter * 1.5 ** np.arange(1, _TRIALS + 1):
        if _SHORT * estimated(some, float(trial), metric, n_rows)[0] <= max_points:
            wider = float(trial)
            break
    return Forecast(n_core, n_rows, len(some), alone, wider)


def estimated(some: AnyArray, diameter: float, metric: Metric, n_rows: int) -> tuple[float, int]:
    r"""Estimate the core points of `n_rows` rows from a sample of them.

    Cells are species, and a lower bound of those not seen is :math:`f_1 (f_1 - 1) / (2 (f_2 + 1))`
    for f1 cells with one row of the sample and f2 with two (Chao 1984, bias-corrected), of which
    further rows meet a part.

    Returns
    -------
    n_core : float
    alone : int
        Cells with one row.

    References
    ----------
    Colwell et al. (2012), Models and estimators linking individual-based and sample-based
    rarefaction, extrapolation and comparison of assemblages, equation 9.
    """
    rows, _ = online(some, diameter / 2, metric, max_points=len(some))
    labels, _ = Sorted.of(some[rows], metric).nearest(some, diameter / 2)
    counts = np.bincount(np.bincount(labels, minlength=len(rows)), minlength=3)
    alone, pairs = float(counts[1]), float(counts[2])
    unseen = alone * (alone - 1.0) / (2.0 * (pairs + 1.0))
    if not unseen:
        return float(len(rows)), int(alone)
    # The chance that a further row meets a given cell of those.
    rate = alone / (len(some) * unseen + alone)
    further = unseen * -np.expm1((n_rows - len(some)) * np.log1p(-rate))
    return float(len(rows) + further), int(alone)


def _chosen(sizes: Sequence[int], n_rows: int) -> list[int]:
    """Choose blocks all over the data that have so many rows together."""
    n_blocks = min(len(sizes), -(-len(sizes) * n_rows // sum(sizes)))
    return sorted({int(i) for i in (np.arange(n_blocks) + 0.5) * len(sizes) / n_blocks})


def _sampled(block: Block, block_index: int, _: object, *, share: float) -> CoverRows:
    # No seed: a cover has none, and the same rows are looked at every time.
    rng = stream(0, Stage.SIZING, block_index)
    count = rng.binomial(len(block), share)
    return take_rows(block, block_index, np.sort(rng.choice(len(block), count, replace=False)))


def _both(first: CoverRows, second: CoverRows) -> CoverRows:
    return join([first, second])
