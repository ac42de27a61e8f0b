r"""Active learning: the query strategy, and runs of requests for labels and answers.

The strategy is Fig. 2 of Har-Peled, Roth and Zimak (2007).

`ActiveState` holds all of a run. `next_request` reads the pool until rows are known whose
labels are needed, `add_labels` takes their labels. Both return a new value and leave the old one as
it is, so that whatever fails between them loses nothing.

Where the listing starts from an empty set, here random rows are labelled until there are two
classes. That is the verification phase of the rule "all rows are of one class": it may end
the run. The other phases are those of the listing:

- *querying*: the row of least :math:`|\langle w, x\rangle + b|` in the pool, if that is below
  :math:`(1 - \epsilon)\rho_C`, is labelled and added to the core set C;
- *verifying*: random rows are labelled until one is misclassified, which is added, or
  :math:`T_j` in a row are right, which ends the run.

Rows that have their label and leave the strip empty are never paid for twice. If a later
separator comes closer to them than :math:`(1 - \epsilon)\rho_C`, they join C without being
asked for, as in Fig. 1.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from daskcoreset.constructions.margin.active_state import (
    ActiveMargin,
    ActiveOptions,
    ActiveState,
    Labelled,
    Phase,
    Step,
    plain_labels,
    result_of,
    separate,
)
from daskcoreset.constructions.margin.core_set import first_few
from daskcoreset.constructions.margin.pool import Pool
from daskcoreset.core.linalg import dense_rows
from daskcoreset.core.messages import warn_user
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.typing import AnyArray, IndexArray
from daskcoreset.core.validation import as_numbers, shown
from daskcoreset.errors import InvalidInputError, InvalidTypeError, NotSeparableError

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
    :math:`\delta \ln |C|` and not to :math:`\delta`. With :math:`j(j+1)` they do, as
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
        With `requested` rows, or at its end. For such a state, the same.
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
    """Choose the closest row, then the one farthest from those chosen, and so on. None twice."""
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


# ``oracle(rows)`` gives one label per row; one with a parameter `indices` gets their numbers.
#
# `rows` is an ndarray of shape (q, d), of the dtype of the data, and ``indices=`` an int64 ndarray
# of shape (q,): the numbers of the rows in the whole pool.
Oracle: TypeAlias = Callable[..., Any]


def answer(oracle: Oracle, rows: AnyArray, indices: IndexArray) -> Any:
    """Ask an oracle for labels; it gets copies of the rows."""
    try:
        parameters = list(inspect.signature(oracle).parameters)
    except (TypeError, ValueError):  # built in, without a signature
        parameters = []
    if "indices" in parameters:
        return oracle(rows.copy(), indices=indices.copy())
    return oracle(rows.copy())


@dataclass(frozen=True, eq=False)
class LabelRequest:
    """Rows whose labels are requested.

    Attributes
    ----------
    indices : ndarray of shape (q,), int64
        Their numbers in the pool.
    rows : ndarray of shape (q, d), float32 or float64
    phase : Phase
        Purpose of the labels.
    """

    indices: IndexArray
    rows: AnyArray
    phase: Phase

    def __len__(self) -> int:
        return len(self.indices)


class ActiveRun:
    """A run in progress, from `daskcoreset.estimators.ActiveMaxMarginClassifier.start`.

    `ask` and `tell` are for people and labelling tools, `run` is for oracles that are called.
    They can take turns. The labels are all of its state: keep ``result().indices`` and
    ``result().labels`` to go on another day, with ``start(X, known=(indices, labels))``.

    Attributes
    ----------
    state : ActiveState
    """

    def __init__(self, state: ActiveState, pool: Pool) -> None:
        self.state = state
        self._pool = pool

    @property
    def done(self) -> bool:
        """Whether the run has ended; `ask` finds out."""
        return self.state.phase is Phase.DONE

    @property
    def n_labels(self) -> int:
        """Labels asked for so far."""
        return self.state.paid

    def ask(self) -> LabelRequest | None:
        """Return the rows whose labels are requested now, or None at the end.

        Reads the pool if it has to. Until `tell`, it returns the same rows each time.
        """
        state = self.state = next_request(self.state, self._pool)
        if state.phase is Phase.DONE:
            return None
        rows = state.requested
        return LabelRequest(state.queue[rows], state.queue_rows[rows], state.phase)

    def tell(self, labels: Any) -> None:
        """Give the labels of the rows that `ask` returned, in the same order.

        Parameters
        ----------
        labels : array-like of shape (q,), or one label for one row
            Two values in all: text, or numbers, or truth values.

        Raises
        ------
        InvalidInputError
            If nothing was asked for, or the labels are not one class for each row.
        NotSeparableError
            If no separator agrees with the labels, and `on_inseparable` is "raise".

        Warns
        -----
        CoresetWarning
            If no separator agrees with the labels, and errors are allowed from here on.

        Notes
        -----
        If it raises, the state is the one before the call.
        """
        if not len(self.state.requested):
            raise InvalidInputError(
                "no rows wait for labels", remedy="call ask() first, and again after each tell()"
            )
        self.state = _told(self.state, labels)

    def run(self, oracle: Oracle, *, report: Callable[[Step], None] | None = None) -> ActiveMargin:
        """Ask a callable until the end.

        Parameters
        ----------
        oracle : callable
            ``oracle(rows)`` or ``oracle(rows, indices=...)``, which returns one label per row.
        report : callable or None, default=None
            Gets every new `Step` of the trace.

        Returns
        -------
        ActiveMargin

        Raises
        ------
        OracleError
            If the oracle raises, or its answer cannot be used. Its attribute `asking` is this
            run, with all labels told before.
        """
        if report is not None and not callable(report):
            raise InvalidTypeError(
                f"report is {shown(report)}", remedy="pass a function of one step"
            )
        n_reported = len(self.state.trace)
        while True:
            request = self.ask()
            if report is not None:
                for step in self.state.trace[n_reported:]:
                    report(step)
            n_reported = len(self.state.trace)
            if request is None:
                return self.result()
            self._ask_oracle(oracle, request)

    def _ask_oracle(self, oracle: Oracle, request: LabelRequest) -> None:
        try:
            labels = answer(oracle, request.rows, request.indices)
        except Exception as error:
            cause = f"raised {type(error).__name__} ({error})."
            raise self._oracle_error(cause, request) from error
        try:
            self.tell(labels)
        except InvalidInputError as error:
            raise self._oracle_error(f"gave what cannot be used: {error}", request) from error

    def _oracle_error(self, cause: str, request: LabelRequest) -> OracleError:
        return OracleError(
            f"the oracle, asked for row {first_few(request.indices, 5)}, {cause} The "
            f"{len(self.state.labelled)} labels told before are kept in the attribute `asking` of "
            f"this error",
            argument="oracle",
            remedy="mend the oracle and call asking.run(oracle)",
            asking=self,
        )

    def result(self) -> ActiveMargin:
        """Return the result so far."""
        return result_of(self.state)


def start_run(
    pool: Pool,
    options: ActiveOptions,
    *,
    known: tuple[Any, Any] | None = None,
    classes: Any = None,
) -> ActiveRun:
    """Start on a pool that is open.

    Parameters
    ----------
    pool : Pool
    options : ActiveOptions
    known : pair of array-likes or None, default=None
        Numbers of rows and their labels that are there already, at no cost.
    classes : pair of labels or None, default=None
        The two classes. None takes the first two values that are given, so that a slip may
        become a class.

    Returns
    -------
    ActiveRun

    Raises
    ------
    InvalidInputError
        If the known labels or the classes cannot be used.
    """
    none = np.empty(0, dtype=np.int64)
    rows = np.empty((0, pool.n_features), dtype=pool.blocks.schema.dtype)
    pair = () if classes is None else tuple(_pair_of(classes))
    labelled = Labelled(none, rows, none, none, pair, classes is not None)
    state = ActiveState(options, labelled, queue_rows=rows)
    if known is not None:
        state = _with_known_labels(state, pool, known)
    return ActiveRun(state, pool)


def _pair_of(classes: Any) -> list[Any]:
    is_vector = isinstance(classes, np.ndarray) and classes.ndim == 1
    if not is_vector and not isinstance(classes, tuple | list):
        raise InvalidTypeError(
            f"classes is {shown(classes)}", argument="classes", remedy="pass a pair of labels"
        )
    pair = plain_labels(list(classes), 2)
    if pair[0] == pair[1] or isinstance(pair[0], str) != isinstance(pair[1], str):
        raise InvalidInputError(
            f"classes is {shown(classes)}",
            argument="classes",
            remedy="pass two different values of one type",
        )
    return pair


def _told(state: ActiveState, labels: Any) -> ActiveState:
    """Take labels. Soften the margin if they contradict each other and the options allow it."""
    try:
        return add_labels(state, labels)
    except NotSeparableError as error:
        C = state.options.fallback
        if C is None:
            raise
        warn_user(
            f"no separator agrees with the labels of rows {first_few(error.indices, 5)}; errors "
            f"are allowed from here on, with C={C}. Scale the features, choose C, or pass "
            f'on_inseparable="raise" to stop instead.'
        )
    options = replace(state.options, C=C, fallback=None)
    fit = state.fit
    if fit is not None:
        fit = separate(state.labelled, None, fit.core, options)
    state = add_labels(replace(state, options=options, fit=fit), labels)
    return replace(state.queued(None), phase=Phase.QUERYING, needed=0, right=0)


def _with_known_labels(state: ActiveState, pool: Pool, known: Any) -> ActiveState:
    """Add labels that are known already."""
    if not isinstance(known, tuple | list) or len(known) != 2:
        raise InvalidTypeError(
            f"known is {shown(known)}",
            argument="known",
            remedy="pass a pair of numbers of rows and their labels",
        )
    as_numbers("known[0]", known[0])
    given = np.asarray(known[0])
    if given.ndim != 1 or given.dtype.kind not in "iu" or len(np.unique(given)) < len(given):
        raise InvalidInputError(
            f"known[0] is {shown(known[0])}, but it must contain distinct row numbers",
            argument="known",
            remedy="pass a vector of integers",
        )
    indices = given.astype(np.int64)
    if len(indices) and not 0 <= indices.min() <= indices.max() < pool.n_rows:
        raise InvalidInputError(
            f"known[0] goes from {indices.min()} to {indices.max()}, but X has {pool.n_rows} rows",
            argument="known",
            remedy="pass row numbers of X",
        )
    rows = pool.fetch(indices)
    if len(rows) < len(indices):
        raise InvalidInputError(
            "known[0] contains rows with NaN or infinity, which were dropped from X",
            argument="known",
            remedy="leave them out",
        )
    state = replace(state.queued(rows), phase=Phase.GIVEN, requested=np.arange(len(indices)))
    state = _told(state, known[1])
    if state.fit is None:
        state = replace(state.queued(None), phase=Phase.SEEDING)
    return state


class OracleError(InvalidInputError):
    """An oracle failed, or its labels cannot be used. All earlier labels are kept.

    Attributes
    ----------
    asking : ActiveRun
        The run as it was before the call: ``asking.run(oracle)`` goes on from there.
    """

    def __init__(
        self,
        problem: str = "",
        *,
        argument: str | None = None,
        remedy: str | None = None,
        asking: ActiveRun | None = None,
    ) -> None:
        super().__init__(problem, argument=argument, remedy=remedy)
        self.asking = asking
