"""Batches of rows that are uncertain, lie apart from one another, and stand for the pool."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from daskcoreset.constructions.margin.active_state import ActiveState
from daskcoreset.constructions.margin.labels import Phase
from daskcoreset.constructions.margin.pool import Pool
from daskcoreset.constructions.margin.rows import SelectedRows, concatenate_rows
from daskcoreset.core.linalg import dense_rows, product
from daskcoreset.core.typing import AnyArray, FloatArray

# Rows of the strip looked at, and at least so many for each that is asked for. They are many, so
# that a batch stands for the strip and not for its middle.
_CANDIDATES, _CANDIDATES_OF_EACH = 640, 4

# Rows among which distances are held at a time.
_MOST_DISTANCES = 2048

# Squared distances below this share of the squared lengths are rounding.
_ROUNDING = 1e-12

# Times that rows cover the pool before random ones alone seek a second class.
_COVERS = 3

# One of so many rows of a batch is a random one: where the classes overlap, rows near the
# boundary alone mislead (uncertainty sampling on covtype needs more labels than random rows).
_RANDOM_SHARE = 5

# Random rows, and numbers in them, which the first batch covers, with at least so many rows.
_MAX_SAMPLE, _MAX_NUMBERS, _LEAST_COVER = 2000, 2**23, 5


def candidates_of(batch: int, n_features: int) -> int:
    """Return how many of the closest rows a batch is chosen from; of wide rows fewer."""
    return max(min(_CANDIDATES, _MAX_NUMBERS // n_features), _CANDIDATES_OF_EACH * batch)


def cover_pool(state: ActiveState, pool: Pool) -> ActiveState:
    """Request rows that cover the pool; one read.

    Parameters
    ----------
    state : ActiveState
        Before there are two classes.
    pool : Pool

    Returns
    -------
    ActiveState
        Rows that stand for a random sample: `batch` of them, or five, and, while all labels are
        of one class, again so many in turns with random rows, and twice so many; then random
        rows are next, which can certify that there is one class.
    """
    options = state.options
    if state.reads >= _COVERS:
        return replace(state, phase=Phase.SEEDING)
    n_cells = max(options.batch, _LEAST_COVER) * 2 ** max(state.reads - 1, 0)
    fits = _MAX_NUMBERS // pool.n_features
    count = max(8 * n_cells, min(_MAX_SAMPLE, fits))
    labelled = np.sort(state.labelled.indices)
    sample = pool.random(labelled, count, seed=options.seed, fold=state.reads)
    state = replace(state, reads=state.reads + 1)
    if not len(sample):
        return replace(state, phase=Phase.SEEDING)
    cells = _covering(state, sample, n_cells)
    if state.reads == 1:
        return state.queued(cells)
    # A class of a tenth that lies among the other is found sooner at random than in cells.
    others = sample.take(np.flatnonzero(~np.isin(sample.indices, cells.indices))[:n_cells])
    order = np.argsort(
        np.concatenate([np.arange(len(cells)), np.arange(len(others))]), kind="stable"
    )
    return state.queued(concatenate_rows(cells, others).take(order))


def cover_strip(state: ActiveState, within: SelectedRows, drawn: SelectedRows) -> SelectedRows:
    """Choose rows to be asked for: those that stand for the strip, and random ones.

    Parameters
    ----------
    state : ActiveState
    within : SelectedRows
        Rows in the strip, the closest first.
    drawn : SelectedRows
        Random rows of the pool, in random order.

    Returns
    -------
    SelectedRows
        At most `batch`; fewer where rows of the strip are equal. A fifth of all that is asked
        for in this way is random.
    """
    batch = state.options.batch
    asked = int((state.labelled.phases == Phase.QUERYING).sum())
    n_random = (asked + batch) // _RANDOM_SHARE - asked // _RANDOM_SHARE
    chosen = within.take(np.empty(0, np.int64))
    if batch > n_random:
        chosen = _covering(state, within, batch - n_random)
    others = np.flatnonzero(~np.isin(drawn.indices, chosen.indices))[:n_random]
    return concatenate_rows(chosen, drawn.take(others))


def _covering(state: ActiveState, rows: SelectedRows, count: int) -> SelectedRows:
    """Take rows that stand for the others where rows with labels do not; none twice.

    One after another, the row is taken that lowers the sum of squared distances to the nearest
    row with a label, or taken before, the most. The order is that of importance, so that a
    batch of one row is as good as any.
    """
    points = dense_rows(rows.block.points)
    known = state.labelled.rows
    n_parts = math.ceil(len(points) / _MOST_DISTANCES)
    chosen: list[int] = []
    for part in range(n_parts):
        places = np.arange(part, len(points), n_parts)
        wanted = count * (part + 1) // n_parts - count * part // n_parts
        near = np.concatenate([known, points[chosen]])
        chosen.extend(places[_greedy_cover(points[places], near, wanted)].tolist())
    # Where all rows are equal to rows with labels, the closest is as good as any.
    return rows.take(np.array(chosen or [0], dtype=np.int64))


def _greedy_cover(points: AnyArray, known: AnyArray, count: int) -> list[int]:
    """Positions of rows that lower the distances to the nearest of them and of `known`."""
    center = points.mean(axis=0, dtype=np.float64)
    points, known = points - center, known - center
    gaps = _squared_distances(points, points)
    nearest = np.full(len(points), gaps.max(initial=0.0))
    if len(known):
        nearest = _squared_distances(points, known).min(axis=1)
    chosen: list[int] = []
    for _ in range(min(count, len(points))):
        gains = np.maximum(nearest[:, None] - gaps, 0.0).sum(axis=0)
        best = int(gains.argmax())
        if best in chosen or gains[best] <= 0.0:
            break
        chosen.append(best)
        nearest = np.minimum(nearest, gaps[:, best])
    return chosen


def _squared_distances(points: FloatArray, others: FloatArray) -> FloatArray:
    lengths = np.square(points).sum(axis=1)[:, None] + np.square(others).sum(axis=1)
    squares: FloatArray = np.maximum(lengths - 2.0 * product(points, others.T), 0.0)
    squares[squares < _ROUNDING * lengths] = 0.0  # equal rows
    return squares
