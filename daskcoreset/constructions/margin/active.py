"""A run of active learning: requests for labels, and answers."""

from __future__ import annotations

import inspect
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
from daskcoreset.constructions.margin.query_strategy import add_labels, next_request
from daskcoreset.core.errors import (
    InvalidInputError,
    InvalidTypeError,
    NotSeparableError,
    warn_user,
)
from daskcoreset.core.typing import AnyArray, IndexArray
from daskcoreset.core.validation import shown

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
        What for.
    """

    indices: IndexArray
    rows: AnyArray
    phase: Phase

    def __len__(self) -> int:
        return len(self.indices)


class ActiveRun:
    """A run in progress, from `daskcoreset.estimators.ActiveMaxMarginClassifier.start`.

    `ask` and `tell` are for people and labelling tools, `run` is for oracles that are called;
    they can take turns. The labels are all of its state: keep ``result().indices`` and
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
            raise InvalidInputError("nothing is asked for; call ask() first, and again after it.")
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
            raise InvalidTypeError(f"report is {shown(report)}; pass a function of one step.")
        n_reported = len(self.state.trace)
        while True:
            request = self.ask()
            for step in self.state.trace[n_reported:] if report is not None else ():
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
            f"this error; mend the oracle and call asking.run(oracle).",
            self,
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
    if isinstance(classes, str) or np.ndim(classes) != 1:
        raise InvalidTypeError(f"classes is {shown(classes)}; pass two labels.")
    pair = plain_labels(list(classes), 2)
    if pair[0] == pair[1] or isinstance(pair[0], str) != isinstance(pair[1], str):
        raise InvalidInputError(
            f"classes is {shown(classes)}; pass two different values of one type."
        )
    return pair


def _told(state: ActiveState, labels: Any) -> ActiveState:
    """Take labels; soften the margin if they contradict each other and the options allow it."""
    try:
        return add_labels(state, labels)
    except NotSeparableError as error:
        C = state.options.fallback
        if C is None or error.indices is None:
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


def _with_known_labels(state: ActiveState, pool: Pool, known: tuple[Any, Any]) -> ActiveState:
    """Add labels that are known already."""
    indices = np.asarray(known[0])
    if (
        indices.ndim != 1
        or indices.dtype.kind not in "iu"
        or len(set(indices.tolist())) < len(indices)
    ):
        raise InvalidInputError(
            "known[0] must be numbers of rows, each once; pass a vector of integers."
        )
    indices = indices.astype(np.int64)
    if len(indices) and not 0 <= indices.min() <= indices.max() < pool.n_rows:
        raise InvalidInputError(
            f"known[0] goes from {indices.min()} to {indices.max()}, but X has {pool.n_rows} rows; "
            f"pass numbers of rows of X."
        )
    rows = pool.fetch(indices)
    if len(rows) < len(indices):
        raise InvalidInputError(
            "known[0] names rows with NaN or infinity, which X leaves out; leave them out, too."
        )
    state = replace(state.queued(rows), phase=Phase.GIVEN, requested=np.arange(len(indices)))
    state = _told(state, known[1])
    if state.fit is None:
        state = replace(state.queued(None), phase=Phase.SEEDING)
    return state


class OracleError(InvalidInputError):
    """An oracle failed, or its labels cannot be used; all earlier labels are kept.

    Attributes
    ----------
    asking : ActiveRun
        The run as it was before the call: ``asking.run(oracle)`` goes on from there.
    """

    def __init__(self, message: str, asking: ActiveRun | None = None) -> None:
        super().__init__(message)
        self.asking = asking
