r"""The query strategy: Fig. 2 of Har-Peled, Roth and Zimak.

`ActiveState` holds all of a run. `next_request` reads the pool until rows are known whose
labels are needed, `add_labels` takes their labels; both return a new value and leave the old one as
it is, so that whatever fails between them loses nothing.

Where the listing starts from an empty set, here random rows are labelled until there are two
classes. That is the verification phase of the rule "all rows are of one class": it may end
the run. The other phases are those of the listing:

- *querying*: the row of least :math:`|\langle w, x\rangle + b|` in the pool, if that is below
  :math:`(1 - \epsilon)\rho_C`, is labelled and added to the core set C;
- *verifying*: random rows are labelled until one is misclassified, which is added, or
  :math:`T_j` in a row are right, which ends the run.

Rows that have their label and leave the strip empty are never paid for twice; if a later
separator comes closer to them than :math:`(1 - \epsilon)\rho_C`, they join C without being
asked for, as in Fig. 1.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from daskcoreset.constructions.margin.active_state import ActiveState, Phase, separate
from daskcoreset.constructions.margin.pool import Pool
from daskcoreset.core.linalg import dense_rows
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.typing import AnyArray, IndexArray

# Rows looked at for each that is asked for, where several are asked for at a time.
_CANDIDATES = 8

# Random rows drawn at a time; they are kept with the run.
_MAX_DRAWN = 2048

# Verifications in a row that needed no new label and still failed, after which to stop.
_STALLED = 20


def verification_length(error: float, delta: float, n_core: int, phase: int) -> int:
    r"""Random rows in succession that a separator must get right to pass.

    Parameters
    ----------
    error, delta : float
        Error e, and chance to pass a separator that has more, over the whole run.
    n_core : int
        Rows in the core set, |C|.
    phase : int
        Number j of the verification, from one.

    Returns
    -------
    int
        :math:`\lceil (\ln \max(|C|, j(j+1)) + \ln(1/\delta)) / e \rceil`.

    Notes
    -----
    Lemma 4.1 has :math:`\ln |C|`, where a separator of error e passes with chance
    :math:`(1 - e)^T \leq \delta/|C|`. While C grows, these chances add up to
    :math:`\delta \ln |C|` and not to :math:`\delta`; with :math:`j(j+1)` they do, as
    :math:`\sum_j 1/(j(j+1)) = 1`. The lemma's number is the larger one nearly always: most
    rows of C come from queries.

    Examples
    --------
    >>> verification_length(0.1, 0.05, 20, 2)  # (ln 20 + ln 20) / 0.1
    60
    """
    steps = (math.log(max(n_core, phase * (phase + 1))) - math.log(delta)) / error
    return math.ceil(min(steps, 2.0**53))  # more rows than any pool has, as a finite number


def next_request(state: ActiveState, pool: Pool) -> ActiveState:
    """Return the next request for labels, after reads of the pool.

    Returns
    -------
    ActiveState
        With `requested` rows, or at its end; for such a state, the same.
    """
    while state.phase is not Phase.DONE and not len(state.requested):
        if len(state.queue):
            state = _advance(state)
        elif state.phase is Phase.QUERYING:
            state = _query(state, pool)
        else:
            state = _verify(state, pool)
    return state


def add_labels(state: ActiveState, labels: Any) -> ActiveState:
    """Take the labels of the requested rows.

    Parameters
    ----------
    state : ActiveState
    labels : array-like of shape (p,), or one label for one row

    Returns
    -------
    ActiveState

    Raises
    ------
    InvalidInputError
        If they are not one class for each row.
    NotSeparableError
        If no separator agrees with all labels, and C is infinite.
    """
    indices, rows = state.queue[state.requested], state.queue_rows[state.requested]
    labelled = state.labelled.with_rows(indices, rows, labels, state.phase)
    before = state.fit
    new = np.arange(len(labelled) - len(indices), len(labelled))
    state = replace(state, labelled=labelled, requested=state.requested[:0], idle=0)
    if not labelled.both:
        return state.noted()
    add = new
    if before is not None and state.phase is Phase.VERIFYING:
        add = new[labelled.margins(before.separator)[new] <= 0.0]
    if before is None or len(add):
        state = replace(state, fit=separate(labelled, before, add, state.options))
    if state.phase is Phase.QUERYING:
        state = state.queued(None)
    elif before is None or len(add):  # the second class ends the search for it
        state = replace(state.queued(None), phase=Phase.QUERYING, needed=0, right=0)
    return state.noted()


def _advance(state: ActiveState) -> ActiveState:
    """Check the queue up to the first rows without labels, and request these."""
    positions = state.labelled.position_of
    for i, index in enumerate(state.queue.tolist()):
        if index not in positions:
            limit = state.options.max_labels
            if limit is not None and state.paid >= limit:
                return state.ended("max_labels")
            shortened = replace(state, queue=state.queue[i:], queue_rows=state.queue_rows[i:])
            return replace(shortened, requested=_unlabelled(shortened))
        if state.phase is Phase.VERIFYING and not _is_right(state, index):
            # Only with a finite C: nothing to pay for, nothing to add, so draw again.
            state = replace(state.queued(None), needed=0, right=0, idle=state.idle + 1)
            return state.ended("stalled") if state.idle >= _STALLED else state
        if state.phase is not Phase.QUERYING:
            state = replace(state, right=state.right + 1)
    return state.queued(None)


def _unlabelled(state: ActiveState) -> IndexArray:
    """Positions of the first rows of the queue that have no label, each row once."""
    count, limit = state.options.batch, state.options.max_labels
    if limit is not None:
        count = min(count, limit - state.paid)
    chosen: dict[int, int] = {}
    for i, index in enumerate(state.queue.tolist()):
        if len(chosen) < count and index not in state.labelled.position_of:
            chosen.setdefault(index, i)
    return np.array(list(chosen.values()), dtype=np.int64)


def _is_right(state: ActiveState, index: int) -> bool:
    assert state.fit is not None  # noqa: S101 - there is one while verifying
    margins = state.labelled.margins(state.fit.separator)
    return bool(margins[state.labelled.position_of[index]] > 0.0)


def _query(state: ActiveState, pool: Pool) -> ActiveState:
    fit, batch = state.fit, state.options.batch
    assert fit is not None  # noqa: S101 - there are two classes
    labelled = np.sort(state.labelled.indices)
    below = (1.0 - state.options.epsilon) * fit.margin
    count = batch if batch == 1 else _CANDIDATES * batch
    closest = pool.closest(fit.separator, labelled, count)
    state = replace(state, reads=state.reads + 1)
    if not len(closest):
        return state.ended("exhausted")
    state = state.noted(float(closest.values[0]))
    within = closest.take(np.flatnonzero(closest.values < below))
    if not len(within):
        return replace(state, phase=Phase.VERIFYING)
    return state.queued(within.take(_spread(dense_rows(within.block.points), batch)))


def _spread(rows: AnyArray, count: int) -> IndexArray:
    """Choose the closest row, then the one farthest from those chosen, and so on; none twice."""
    rows = rows.astype(np.float64)
    chosen = [0]
    gaps = np.square(rows - rows[0]).sum(axis=1)
    while len(chosen) < count and gaps.max() > 0.0:
        chosen.append(int(gaps.argmax()))
        gaps = np.minimum(gaps, np.square(rows - rows[chosen[-1]]).sum(axis=1))
    return np.array(chosen, dtype=np.int64)


def _verify(state: ActiveState, pool: Pool) -> ActiveState:
    """Draw random rows for a verification, at first of the rule "all rows are of one class"."""
    if state.needed and state.right >= state.needed:
        return state.ended("verified")
    if len(state.labelled) >= pool.n_usable:
        return state.ended("exhausted")
    options = state.options
    if not state.needed:
        if state.fit is None:
            verification, n_core = 1, 1
        else:
            verification, n_core = state.verifications + 1, len(state.fit.core)
        needed = verification_length(options.error, options.delta, n_core, verification)
        if not len(state.labelled):
            needed += 1  # the first row chooses the class
        state = replace(state, verifications=verification, right=0, needed=needed)
    # Of the rows that this verification still needs, as many as fit in memory.
    count = min(state.needed - state.right, _MAX_DRAWN)
    drawn = pool.draw(stream(options.seed, Stage.LABELS, fold=state.draws), count)
    return replace(state.queued(drawn), draws=state.draws + 1)
