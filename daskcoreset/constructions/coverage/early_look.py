"""How many core points and distances a diameter needs, foretold from a sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from daskcoreset.constructions.coverage.grid import compared_per_row
from daskcoreset.constructions.coverage.metric import Metric, Sorted
from daskcoreset.constructions.coverage.online import online
from daskcoreset.constructions.coverage.result import CoverRows, join, take_rows
from daskcoreset.core.blocks import Block
from daskcoreset.core.deadline import check_time
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.typing import AnyArray, IndexArray
from daskcoreset.execution.engine import map_reduce
from daskcoreset.inputs.blocks import RowBlocks

# Core points from which on there is a look: so many take a second and more to find.
_FEW = 10_000

# Rows drawn for it at most, of so many times as many rows as there may be core points.
_SAMPLE, _MULTIPLE = 16_384, 16

# Values compared where every row drawn is compared with every other one: 0.03 to 0.15 s, and up to
# three times that where half of them are core points and the others look for the nearest. A look
# makes ten such covers at most, so that it takes about a second however many columns there are.
# 20 columns leave 8,192 rows.
_COMPARED = 20.0 * 8192**2

# A diameter that is to do is one of so many at most, each larger by an eighth where they reach
# from the one refused to twice the extent of the rows; bisection tries nine of them.
_FINER, _LADDER = 1.125, 256

# Chance that a number of cells with one row, or with two, is beyond its limit.
_CHANCE = 1e-4

# The bound of species was a half to a quarter of the truth in trials, so that a diameter that is to
# do has room for so many times as many.
_SHORT = 4.0

# Distances between rows and core points that a read may compute: 10 ** 10 took a minute of 20
# columns, and of more rows so many a row, which is linear.
MAX_DISTANCES, _MAX_COMPARED = 1e10, 4096


@dataclass(frozen=True)
class Forecast:
    """Core points foretold, and what to do.

    Attributes
    ----------
    n_core : float
        Core points that the rows of the blocks looked at need at least, but for the chance of the
        sample; those expected where `n_distances` is a number.
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
    n_drawn = min(_SAMPLE, int(np.sqrt(_COMPARED / max(1, blocks.schema.n_features))))
    draw = partial(_sampled, share=min(1.0, n_drawn / n_rows))
    some = map_reduce(
        blocks.select(chosen), draw, _both, split_every=split_every, progress=False
    ).value.points
    if not len(some):  # none is kept
        return None
    # Any order of the rows will do but one in which neighbours are alike.
    some = some[stream(0, Stage.SIZING, 0, 1).permutation(len(some))]
    look = _Look(some, diameter, metric)
    most = max(MAX_DISTANCES, float(_MAX_COMPARED) * sum(sizes)) if bounded else np.inf
    n_core = _species(look.sizes, n_rows, safe=True)
    n_distances: float | None = None
    if n_core <= max_points:
        if not bounded:
            return None
        n_core, compared = look.grown(n_rows)
        n_distances = compared * sum(sizes)
        if n_distances <= most:
            return None
    alone = int(np.count_nonzero(look.sizes == 1))
    wider = _wider(some, diameter, metric, lambda trial: trial.does(sum(sizes), max_points, most))
    return Forecast(n_core, n_rows, len(some), alone, wider, n_distances)


def _wider(
    some: AnyArray, diameter: float, metric: Metric, does: Callable[[_Look], bool]
) -> float | None:
    """Find by bisection a wider diameter that does; None where distances overflow.

    Estimates fall with the diameter, all but monotonously. At twice the largest distance from the
    first row one cell has all rows looked at, which is the most that these can say.
    """
    farthest = float(Sorted.of(some[:1], metric).nearest(some)[1].max())
    if not 0.0 < farthest < np.inf:
        return None
    reach = np.log(2.0 * metric.distance(farthest)) - np.log(diameter)
    step = max(float(np.log(_FINER)), reach / (_LADDER - 1))
    low, high = 0, max(1, int(np.ceil(reach / step)) + 1)
    while high - low > 1:
        check_time(
            f"diameter={diameter:g} is too small, and a larger one was looked for",
            "a larger diameter",
        )
        middle = (low + high) // 2
        if does(_Look(some, diameter * float(np.exp(step * middle)), metric)):
            high = middle
        else:
            low = middle
    return float(diameter * np.exp(step * high))


@dataclass(frozen=True, eq=False)
class _Look:
    """Rows of a sample, in an order that says nothing, and the cells that cover them."""

    some: AnyArray
    diameter: float
    metric: Metric

    @cached_property
    def rows(self) -> IndexArray:
        """Rows that are core points."""
        return online(self.some, self.diameter / 2, self.metric, max_points=len(self.some))[0]

    @cached_property
    def sizes(self) -> IndexArray:
        """Rows of every cell, those for which its core point is the nearest."""
        # A core point is the nearest to itself; to find others for the rest is what takes time.
        others = np.delete(self.some, self.rows, axis=0)
        core_points = Sorted.of(self.some[self.rows], self.metric)
        labels, _ = core_points.nearest(others, self.diameter / 2)
        return 1 + np.bincount(labels, minlength=len(self.rows))

    def does(self, n_rows: int, max_points: int, most: float) -> bool:
        """Say whether so many rows have few enough core points, and distances, with room left."""
        if self.at_most(n_rows) > max_points:
            return False
        if np.isfinite(most) and self.grown(n_rows)[1] * n_rows > most / 2:
            return False
        return _SHORT * _species(self.sizes, n_rows) <= max_points

    def at_most(self, n_rows: int) -> float:
        """Bound the core points that are expected of `n_rows` rows.

        What each doubling of the rows opens beyond the one before is continued, and not the
        number of all core points, of which the tails of the rows may be a small part that alone
        grows. The last one and its ratio to the one before are taken with three standard errors.
        The ratio is one at least, so that no number ceases to grow, and two at most, since the
        chance that a row opens a cell falls with every cell that there is.
        """
        n = len(self.some)
        counts = np.searchsorted(self.rows, [n >> 2, n >> 1, n])
        # One more each: what was not met may yet be.
        earlier, later = (np.diff(counts) + 1).tolist()
        error = np.sqrt(1.0 / earlier + 1.0 / later)
        ratio = float(np.clip(later / earlier * np.exp(3.0 * error), 1.0, 2.0))
        doublings = max(0.0, float(np.log2(n_rows / n)))
        steps = np.arange(1, int(np.ceil(doublings)) + 1)
        most = later + 3.0 * np.sqrt(later)
        further = most * ratio**steps @ np.minimum(1.0, doublings - (steps - 1.0))
        return float(min(len(self.rows) + further, _distinct(self.some, n_rows)))

    def grown(self, n_rows: int) -> tuple[float, float]:
        """Expect core points of `n_rows` rows, and those that a row is compared with.

        Balls of a cover are no species: every further row may open one between others, and their
        number goes on growing, by a power of the number of rows that falls slowly. The powers of
        the last three doublings of the sample are continued along a line, to zero at most, and not
        beyond the number of distinct rows.
        """
        n = len(self.some)
        counts = np.searchsorted(self.rows, [n >> 3, n >> 2, n >> 1, n])
        powers = np.diff(np.log2(np.maximum(counts, 1)))
        slope, last = np.polyfit([-2.0, -1.0, 0.0], powers, 1)
        if slope > 0.0:
            slope, last = 0.0, float(powers.mean())
        doublings = max(0.0, float(np.log2(n_rows / n)))
        steps = np.arange(1, int(np.ceil(doublings)) + 1)
        shares = np.minimum(1.0, doublings - (steps - 1.0))
        gained = float(np.clip(last + slope * steps, 0.0, 1.0) @ shares)
        n_core = min(len(self.rows) * 2.0**gained, _distinct(self.some, n_rows))
        core_points = self.some[self.rows].astype(np.float64)
        return n_core, compared_per_row(core_points, n_core, self.diameter / 2)


def estimated(
    some: AnyArray, diameter: float, metric: Metric, n_rows: int, *, safe: bool = False
) -> tuple[float, int]:
    r"""Estimate the core points of `n_rows` rows from a sample of them.

    Cells are species, and a lower bound of those not seen is
    :math:`f_1^2 / (2 f_2 + f_1 p / (1 - p))` for f1 cells with one row of the sample, f2 with two,
    and a sample of a share p of the rows: a cell of K rows has one in it with probability
    :math:`K p (1 - p)^{K - 1}`, so that this is an inequality of Cauchy and Schwarz for any sizes K
    (Chao and Lin 2012). It is the truth where all cells have as many rows.

    That bounds the mean: with few pairs f2 the estimate is as often above the truth as below where
    all cells have about as many rows. With `safe` it takes the least f1 and the largest f2 that
    these numbers allow. Rows are drawn one by one, so that in cells that are given both are sums of
    independent indicators, whose tails are below those of Poisson numbers of the same mean
    (Hoeffding 1956): the limits of these fail with a chance of at most 1e-4 each.

    Parameters
    ----------
    some : ndarray of shape (n, d)
    diameter : float
    metric : Metric
    n_rows : int
    safe : bool, default=False
        Whether to return the limit, and not the estimate.

    Returns
    -------
    n_core : float
    alone : int
        Cells with one row.

    References
    ----------
    Chao and Lin (2012), Nonparametric lower bounds for species richness and shared species richness
    under sampling without replacement.

    Hoeffding (1956), On the distribution of the number of successes in independent trials.
    """
    sizes = _Look(some, diameter, metric).sizes
    return _species(sizes, n_rows, safe=safe), int(np.count_nonzero(sizes == 1))


def _species(sizes: IndexArray, n_rows: int, *, safe: bool = False) -> float:
    """Lower bound of the species in so many rows, from the sizes of those in a sample."""
    alone, pairs = (float(np.count_nonzero(sizes == size)) for size in (1, 2))
    others = n_rows - int(sizes.sum())
    if alone < 2.0 or others <= 0:
        return float(len(sizes))
    squared = alone * (alone - 1.0)  # less biased, as is a pair more
    pairs += 1.0
    if safe:
        from scipy.special import gammainccinv, gammaincinv  # slow to import

        alone, pairs = float(gammaincinv(alone, _CHANCE)), float(gammainccinv(pairs, _CHANCE))
        squared = alone**2
    return float(len(sizes) + squared / (2.0 * pairs + alone * int(sizes.sum()) / others))


def grown(some: AnyArray, diameter: float, metric: Metric, n_rows: int) -> tuple[float, float]:
    """Expect core points of `n_rows` rows, and those that a row is compared with."""
    return _Look(some, diameter, metric).grown(n_rows)


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
