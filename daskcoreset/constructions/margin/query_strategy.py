r"""Which label to ask for next: Fig. 2 of Har-Peled, Roth and Zimak as a value and two steps.

`ActiveState` is all that a run knows. `next_request` reads the pool until rows are known whose
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
from typing import TYPE_CHECKING

import numpy as np

from daskcoreset.constructions.margin.active_state import ActiveState, Phase, separate
from daskcoreset.core.random import Stage, stream

if TYPE_CHECKING:
    from daskcoreset.constructions.margin.pool import Pool, PoolRows
    from daskcoreset.core.typing import IndexArray

__all__ = ["add_labels", "next_request", "verification_length"]

_CANDIDATES = 8
"""Rows looked at for each that is asked for, where several are asked for at a time."""

_MOST_DRAWN = 2048
"""Random rows drawn at a time; they are kept with the run."""

_STALLED = 20
"""Verifications in a row that needed no new label and still failed, after which to stop."""


def verification_length(error: float, delta: float, n_core: int, phase: int) -> int:
    r"""Random rows in a row that must be right for a separator to pass.

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
    return math.ceil((math.log(max(n_core, phase * (phase + 1))) - math.log(delta)) / error)


def next_request(state: ActiveState, pool: Pool) -> ActiveState:
    """Read the pool until it is known which labels are needed.

    Parameters
    ----------
    state : Queries
    pool : Pool

    Returns
    -------
    Queries
        With `wanted`, or at its end. Asked again, it is the same.
    """
    while state.phase is not Phase.DONE and not len(state.wanted):
        if len(state.queue):
            state = _look(state)
        elif state.phase is Phase.SEEDING:
            state = _seed(state, pool)
        elif state.phase is Phase.QUERYING:
            state = _query(state, pool)
        else:
            state = _verify(state, pool)
    return state


def add_labels(state: ActiveState, codes: IndexArray, classes: tuple[object, ...]) -> ActiveState:
    """Take the labels of the wanted rows.

    Parameters
    ----------
    state : Queries
    codes : ndarray of shape (p,), int64
        Number, in `classes`, of the label of each wanted row.
    classes : tuple
        The values of labels told so far, at most two, in the order of their appearance.

    Returns
    -------
    Queries

    Raises
    ------
    daskcoreset.constructions.margin.active_state.InseparableError
        If no separator agrees with all labels, and the rule has no finite C.
    """
    indices, rows = state.queue[state.wanted], state.queue_rows[state.wanted]
    labelled = state.labelled.with_rows(indices, rows, codes, state.phase, classes)
    before, rule = state.separator, state.rule
    new = np.arange(len(labelled) - len(indices), len(labelled))
    state = replace(state, labelled=labelled, wanted=state.wanted[:0], idle=0)
    if not labelled.both:
        return state.noted()
    add = new
    if before is not None and state.phase is Phase.VERIFYING:
        add = new[labelled.heights(before)[new] <= 0.0]
    if before is None or len(add):
        separator = separate(labelled, before, add, rule)
        state = replace(state, separator=separator)
    if before is None:  # the second class ends the search for it
        state = replace(state.queued(None), phase=Phase.QUERYING, needed=0, right=0)
    elif state.phase is Phase.QUERYING:
        state = state.queued(None)
    elif len(add):
        state = replace(state.queued(None), phase=Phase.QUERYING, needed=0, right=0)
    return state.noted()


def _look(state: ActiveState) -> ActiveState:
    """Go through the queue up to rows without labels, and ask for these."""
    known = state.labelled.position_of
    for i, index in enumerate(state.queue.tolist()):
        if index not in known:
            limit = state.rule.max_labels
            if limit is not None and state.paid >= limit:
                return state.ended("max_labels")
            rest = replace(state, queue=state.queue[i:], queue_rows=state.queue_rows[i:])
            return replace(rest, wanted=_unknown(rest))
        if state.phase is Phase.VERIFYING and not _is_right(state, index):
            # Only with a finite C: nothing to pay for, nothing to add, so draw again.
            state = replace(state.queued(None), needed=0, right=0, idle=state.idle + 1)
            return state.ended("stalled") if state.idle >= _STALLED else state
        state = replace(state, right=state.right + 1)
    return state.queued(None)


def _unknown(state: ActiveState) -> IndexArray:
    """Positions of the first rows of the queue that have no label, each row once."""
    limit = state.rule.max_labels
    count = state.rule.batch if limit is None else min(state.rule.batch, limit - state.paid)
    chosen: dict[int, int] = {}
    for i, index in enumerate(state.queue.tolist()):
        if len(chosen) < count and index not in state.labelled.position_of:
            chosen.setdefault(index, i)
    return np.array(list(chosen.values()), dtype=np.int64)


def _is_right(state: ActiveState, index: int) -> bool:
    assert state.separator is not None  # noqa: S101 - there is one while verifying
    position = state.labelled.position_of[index]
    return bool(state.labelled.heights(state.separator)[position] > 0.0)


def _draw(state: ActiveState, pool: Pool) -> ActiveState:
    """Draw random rows, of those that this verification still needs as many as fit in memory."""
    count = min(state.needed - state.right, _MOST_DRAWN)
    found = pool.draw(stream(state.rule.seed, Stage.LABELS, fold=state.draws), count)
    return replace(state.queued(found), draws=state.draws + 1)


def _seed(state: ActiveState, pool: Pool) -> ActiveState:
    if state.needed and state.right >= state.needed:
        # One class throughout. The first row chose it, so that one more was needed.
        return state.ended("verified")
    if len(state.labelled) >= pool.n_usable:
        return state.ended("exhausted")
    if not state.needed:
        first = int(not len(state.labelled))
        length = verification_length(state.rule.error, state.rule.delta, 1, 1)
        state = replace(state, verifications=1, right=0, needed=length + first)
    return _draw(state, pool)


def _query(state: ActiveState, pool: Pool) -> ActiveState:
    rule, separator = state.rule, state.separator
    assert separator is not None  # noqa: S101 - there are two classes
    known = np.sort(state.labelled.indices)
    below = (1.0 - rule.epsilon) * separator.margin
    found: PoolRows | None
    if rule.stream:
        found = pool.first_below(
            separator.w, separator.b, known, rule.batch, below=below, after=state.cursor
        )
        if found is not None:
            state = replace(state, cursor=int(found.indices[-1]))
            return state.queued(found)
        return replace(state, phase=Phase.VERIFYING, reads=state.reads + 1).noted()
    count = rule.batch if rule.batch == 1 else _CANDIDATES * rule.batch
    found = pool.closest(separator.w, separator.b, known, count)
    state = replace(state, reads=state.reads + 1)
    if not len(found.indices):
        return state.ended("exhausted")
    state = state.noted(float(found.keys[0]))
    close = found.take(np.flatnonzero(found.keys < below))
    if not len(close.indices):
        return replace(state, phase=Phase.VERIFYING)
    return state.queued(close.take(_spread(close, rule.batch)))


def _spread(found: PoolRows, count: int) -> IndexArray:
    """Choose the closest row, then the one farthest from those chosen, and so on; none twice."""
    rows = found.rows.astype(np.float64)
    chosen = [0]
    gaps = np.square(rows - rows[0]).sum(axis=1)
    while len(chosen) < count and gaps.max() > 0.0:
        chosen.append(int(gaps.argmax()))
        gaps = np.minimum(gaps, np.square(rows - rows[chosen[-1]]).sum(axis=1))
    return np.array(chosen, dtype=np.int64)


def _verify(state: ActiveState, pool: Pool) -> ActiveState:
    if state.needed and state.right >= state.needed:
        return state.ended("verified")
    if len(state.labelled) >= pool.n_usable:
        return state.ended("exhausted")
    assert state.separator is not None  # noqa: S101 - there are two classes
    if not state.needed:
        rule, number, n_core = state.rule, state.verifications + 1, len(state.separator.core)
        length = verification_length(rule.error, rule.delta, n_core, number)
        state = replace(state, verifications=number, right=0, needed=length)
    return _draw(state, pool)
