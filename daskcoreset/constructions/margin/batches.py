"""Batches of rows that are uncertain, lie apart from one another, and stand for the pool."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from daskcoreset.constructions.margin.active_state import ActiveState
from daskcoreset.constructions.margin.labels import Phase
from daskcoreset.constructions.margin.pool import Pool
from daskcoreset.constructions.margin.rows import SelectedRows, concatenate_rows
from daskcoreset.core.linalg import dense_rows
from daskcoreset.core.random import Stage, stream
from daskcoreset.solvers.centroids import centroids

# Rows of the strip looked at for each that is asked for. With eight, ijcnn1 needed 1.8 times and
# a9a as many labels; with a hundred a9a 1.3 times.
CANDIDATES = 32

# Times that rows cover the pool before random ones alone seek a second class.
_COVERS = 3

# One of so many rows of a batch is a random one: where the classes overlap, rows near the
# boundary alone mislead (uncertainty sampling on covtype needs more labels than random rows).
_RANDOM_SHARE = 5

# Random rows, and numbers in them, whose cells are the first batch.
_MAX_SAMPLE, _MAX_NUMBERS = 2000, 2**23


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
        The rows nearest to the centroids of cells of a random sample: `batch` of them, and,
        while all labels are of one class, again so many in turns with random rows, and twice
        so many; then random rows are next, which can certify that there is one class.
    """
    options = state.options
    if state.reads >= _COVERS:
        return replace(state, phase=Phase.SEEDING)
    n_cells = options.batch * 2 ** max(state.reads - 1, 0)
    fits = _MAX_NUMBERS // pool.n_features
    count = max(8 * n_cells, min(_MAX_SAMPLE, fits))
    labelled = np.sort(state.labelled.indices)
    sample = pool.random(labelled, count, seed=options.seed, fold=state.reads)
    state = replace(state, reads=state.reads + 1)
    if not len(sample):
        return replace(state, phase=Phase.SEEDING)
    cells = _one_of_each_cell(state, sample, n_cells)
    if state.reads == 1:
        return state.queued(cells)
    # A class of a tenth that lies among the other is found sooner at random than in cells.
    others = sample.take(np.flatnonzero(~np.isin(sample.indices, cells.indices))[:n_cells])
    order = np.argsort(
        np.concatenate([np.arange(len(cells)), np.arange(len(others))]), kind="stable"
    )
    return state.queued(concatenate_rows(cells, others).take(order))


def cover_strip(state: ActiveState, within: SelectedRows, drawn: SelectedRows) -> SelectedRows:
    """Choose rows to be asked for: one of each cell of the strip, and random ones.

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
        # The closest of them: with fewer cells fewer rows come into question.
        near = within.take(np.arange(min(len(within), CANDIDATES * (batch - n_random))))
        chosen = _one_of_each_cell(state, near, batch - n_random)
    others = np.flatnonzero(~np.isin(drawn.indices, chosen.indices))[:n_random]
    return concatenate_rows(chosen, drawn.take(others))


def _one_of_each_cell(state: ActiveState, rows: SelectedRows, count: int) -> SelectedRows:
    """Take the rows nearest to the centroids of `count` cells; equal rows share a cell."""
    rng = stream(state.options.seed, Stage.CENTROIDS, fold=state.reads)
    points = dense_rows(rows.block.points)
    return rows.take(centroids(points, np.ones(len(points)), count, rng).rows)
