"""How many core points and distances a diameter needs, foretold from a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from daskcoreset.constructions.coverage.grid import compared_per_row
from daskcoreset.constructions.coverage.metric import Metric, Sorted
from daskcoreset.constructions.coverage.online import online
from daskcoreset.constructions.coverage.result import CoverRows, join, take_rows
from daskcoreset.core.blocks import Block
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.typing import AnyArray, IndexArray
from daskcoreset.execution.engine import map_reduce
from daskcoreset.inputs.blocks import RowBlocks

# Core points from which on there is a look: so many take a second and more to find.
_FEW = 10_000

# Rows drawn for it, of so many times as many rows as there may be core points.
_SAMPLE, _MULTIPLE = 8192, 16

# The estimate is a lower bound, and was a half to a quarter of the truth in trials: what is more by
# it is refused, and a diameter that is to do has room for so many times as many.
_SHORT = 4.0

# Diameters tried for the remedy, each larger by half; by an eighth where distances are too many.
_TRIALS = 12
_FINER = 1.125

# Distances between rows and core points that a read may compute: 10 ** 10 took a minute of 20
# columns, and of more rows so many a row, which is linear.
MAX_DISTANCES, _MAX_COMPARED = 1e10, 4096


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
    n_distances : float or None
        Distances in the read that counts rows, where these are too many and not the core points.
    """

    n_core: float
    n_rows: int
    n_sampled: int
    alone: int
    diameter: float | None
    n_distances: float | None = None


def foretell(
    blocks: RowBlocks,
    diameter: float,
    max_points: int,
    metric: Metric,
    split_every: int,
    *,
    bounded: bool = False,
) -> Forecast | None:
    """Foretell that a diameter needs more than `max_points` core points; None where it may not.

    With `bounded` also that the read that counts the rows of core points takes more than
    `MAX_DISTANCES` distances, and more than 4,096 a row.

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
        return _work(some, diameter, metric, sum(sizes), n_rows, alone) if bounded else None
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
    sizes = np.bincount(labels, minlength=len(rows))
    return _species(sizes, n_rows), int(np.count_nonzero(sizes == 1))


def _species(sizes: IndexArray, n_rows: int) -> float:
    """Lower bound of the species in so many rows, from the sizes of those in a sample."""
    alone, pairs = (float(np.count_nonzero(sizes == size)) for size in (1, 2))
    unseen = alone * (alone - 1.0) / (2.0 * (pairs + 1.0))
    if not unseen:
        return float(len(sizes))
    # The chance that a further row meets a given one of those.
    n_sampled = int(sizes.sum())
    rate = alone / (n_sampled * unseen + alone)
    further = unseen * -np.expm1((n_rows - n_sampled) * np.log1p(-rate))
    return float(len(sizes) + further)


def _work(  # noqa: PLR0917 - the sample, the cover, and what is known of it
    some: AnyArray, diameter: float, metric: Metric, n_rows: int, n_near: int, alone: int
) -> Forecast | None:
    """Foretell too many distances; None where they are not. `n_near` rows are in these blocks."""
    most = max(MAX_DISTANCES, float(_MAX_COMPARED) * n_rows)
    n_core, compared = grown(some, diameter, metric, n_near)
    if compared * n_rows <= most:
        return None
    wider: float | None = None
    for trial in diameter * _FINER ** np.arange(1, 4 * _TRIALS + 1):
        if grown(some, float(trial), metric, n_near)[1] * n_rows <= most / 2:
            wider = float(trial)
            break
    return Forecast(n_core, n_rows, len(some), alone, wider, compared * n_rows)


def grown(some: AnyArray, diameter: float, metric: Metric, n_rows: int) -> tuple[float, float]:
    """Expect core points of `n_rows` rows, and those that a row is compared with.

    Balls of a cover are no species: every further row may open one between others, and their
    number goes on growing, by a power of the number of rows that falls slowly. The powers of the
    last three doublings of the sample are continued along a line, to zero at most, and not beyond
    the number of distinct rows.
    """
    rows, _ = online(some, diameter / 2, metric, max_points=len(some))
    n = len(some)
    counts = np.searchsorted(rows, [n >> 3, n >> 2, n >> 1, n])
    powers = np.diff(np.log2(np.maximum(counts, 1)))
    slope, last = np.polyfit([-2.0, -1.0, 0.0], powers, 1)
    if slope > 0.0:
        slope, last = 0.0, float(powers.mean())
    doublings = max(0.0, float(np.log2(n_rows / n)))
    steps = np.arange(1, int(np.ceil(doublings)) + 1)
    shares = np.minimum(1.0, doublings - (steps - 1.0))
    gained = float(np.clip(last + slope * steps, 0.0, 1.0) @ shares)
    n_core = min(len(rows) * 2.0**gained, _distinct(some, n_rows))
    return n_core, compared_per_row(some[rows].astype(np.float64), n_core, diameter / 2)


def _distinct(some: AnyArray, n_rows: int) -> float:
    """Expect distinct rows, four times the lower bound; all where there are no copies."""
    counts = np.unique(some, axis=0, return_counts=True)[1]
    if len(counts) == len(some):
        return float(n_rows)
    return min(float(n_rows), _SHORT * _species(counts, n_rows))


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
