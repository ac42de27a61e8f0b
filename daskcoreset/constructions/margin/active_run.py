"""A run of active learning: requests for labels, answers, saving and resuming."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, astuple, dataclass, fields, replace
from typing import Any, TypeAlias

import numpy as np

from daskcoreset.constructions.margin.active_state import (
    ActiveMargin,
    ActiveOptions,
    ActiveState,
    CoreFit,
    Step,
    Trace,
    result_of,
    separate,
)
from daskcoreset.constructions.margin.labels import Label, Labelled, Phase
from daskcoreset.constructions.margin.pool import Pool
from daskcoreset.constructions.margin.query_strategy import add_labels, next_request
from daskcoreset.constructions.margin.separators import Kernel, Separator
from daskcoreset.core.contents import JSON
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.linalg import dense_rows
from daskcoreset.core.storage import read_group, write_group
from daskcoreset.core.typing import AnyArray, IndexArray
from daskcoreset.core.validation import shown
from daskcoreset.core.zarr_places import Location
from daskcoreset.execution.progress import count_reads

# ``oracle(rows)`` gives one label a row; one with a parameter `indices` gets their numbers.
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


KIND = "active-max-margin"

VERSION = 1

_COUNTERS = ("draws", "verifications", "right", "idle", "needed", "cursor", "reads", "stopped")


def save_state(
    store: Location, state: ActiveState, facts: dict[str, Any], *, overwrite: bool = True
) -> None:
    """Write a run, whole or not at all, in place of an earlier state of it.

    Parameters
    ----------
    store : str, path-like, zarr Store or StorePath
    state : ActiveState
    facts : dict
        Plain values about the pool, returned by `load_state`.
    overwrite : bool, default=True
        Whether to replace what is there.
    """
    labelled, fit = state.labelled, state.fit
    label_table = np.stack([labelled.indices, labelled.codes, labelled.phases], axis=1)
    columns = [field.name for field in fields(Step)]
    trace = np.array([astuple(step) for step in state.trace], dtype=np.float64)
    # Few arrays: each is a file that is flushed to the disk for every answer.
    arrays: dict[str, tuple[AnyArray, tuple[str, ...]]] = {
        "labelled": (label_table, ("labelled", "index_class_phase")),
        "row": (labelled.rows, ("labelled", "feature")),
        "queue": (state.queue, ("queue",)),
        "queue_row": (state.queue_rows, ("queue", "feature")),
        "trace": (trace.reshape(-1, len(columns)), ("step", "column")),
    }
    if fit is not None and fit.separator.w is not None:
        core = np.stack([fit.core.astype(np.float64), fit.dual, fit.slack], axis=1)
        arrays["w"] = (fit.separator.w, ("feature",))
        arrays["core"] = (core, ("member", "position_dual_slack"))
    # JSON has neither infinity nor integers above 2**53 that every reader keeps.
    C, seed = state.options.C, str(state.options.seed)
    attributes: dict[str, JSON] = {
        "rule": {**asdict(state.options), "C": None if math.isinf(C) else C, "seed": seed},
        "classes": list(labelled.classes),
        "counters": {name: getattr(state, name) for name in _COUNTERS},
        "phase": int(state.phase),
        "wanted": state.requested.tolist(),
        "trace_columns": columns,
        "pool": facts,
        "level": None if fit is None else [fit.separator.intercept, fit.margin],
    }
    write_group(
        store,
        {name: array for name, (array, _) in arrays.items()},
        {name: dims for name, (_, dims) in arrays.items()},
        attributes,
        kind=KIND,
        schema_version=VERSION,
        overwrite=overwrite,
    )


def load_state(store: Location) -> tuple[ActiveState, dict[str, Any]]:
    """Read a run back, bit for bit.

    Parameters
    ----------
    store : str, path-like, zarr Store or StorePath

    Returns
    -------
    state : ActiveState
    facts : dict
        As given to `save_state`.

    Raises
    ------
    StoreError
        If there is no complete, undamaged run.
    """
    arrays, attributes = read_group(store, kind=KIND, schema_version=VERSION)
    fit = None
    if attributes["level"] is not None:
        b, margin = attributes["level"]
        position, dual, slack = np.ascontiguousarray(arrays["core"].T)
        separator = Separator(Kernel(), arrays["w"], intercept=b)
        fit = CoreFit(separator, margin, position.astype(np.int64), dual, slack)
    indices, codes, phases = np.ascontiguousarray(arrays["labelled"].T)
    rule = attributes["rule"]
    C = math.inf if rule["C"] is None else rule["C"]
    state = ActiveState(
        options=ActiveOptions(**{**rule, "C": C, "seed": int(rule["seed"])}),
        labelled=Labelled(
            indices,
            arrays["row"],
            codes,
            phases,
            tuple(attributes["classes"]),
            attributes["pool"]["declared"],
        ),
        fit=fit,
        phase=Phase(attributes["phase"]),
        queue=arrays["queue"],
        queue_rows=arrays["queue_row"],
        requested=np.array(attributes["wanted"], dtype=np.int64),
        trace=tuple(
            Step(int(n_labels), int(n_core), margin, closest, Phase(int(phase)))
            for n_labels, n_core, margin, closest, phase in arrays["trace"].tolist()
        ),
        **attributes["counters"],
    )
    return state, attributes["pool"]


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
    """A run in progress; `daskcoreset.margin.ActiveMaxMargin` starts and resumes one.

    `ask` and `tell` are for people and labelling tools, `run` is for oracles that are called;
    they can take turns.

    Attributes
    ----------
    state : ActiveState
    """

    def __init__(
        self,
        state: ActiveState,
        pool: Pool,
        *,
        store: Location | None = None,
    ) -> None:
        self.state = state
        self._pool = pool
        self._store = store

    @classmethod
    def load(cls, store: Location, pool: Pool) -> ActiveRun:
        """Continue a saved run, if the pool is the same as before."""
        state, facts = load_state(store)
        _check_pool(state, facts, pool)
        return cls(state, pool, store=store)

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

        Reads the pool where it has to. Until `tell`, it returns the same rows each time, also
        after a crash: what is asked follows from the answers, so that only these are stored.
        """
        state = next_request(self.state, self._pool)
        if state.phase is Phase.DONE:
            if state is not self.state:
                self._keep(state)
            return None
        self.state = state
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
        InseparableError
            If no separator agrees with the labels, and C is infinite.
        StoreError
            If the store cannot be written.

        Notes
        -----
        Whatever is raised, the state is the one before the call, in memory and in the store.
        When it returns, the labels are on the disk where the run has a store.
        """
        state = self.state
        if not len(state.requested):
            raise InvalidInputError("nothing is asked for; call ask() first, and again after it.")
        self._keep(add_labels(state, labels))

    def correct(self, labels: Mapping[int, Label]) -> None:
        """Change labels that were wrong.

        Parameters
        ----------
        labels : mapping of int to label
            The right label by the number of the row in the pool.

        Raises
        ------
        InvalidInputError
            If a row has no label yet, or the new one is neither class.
        InseparableError
            As in `tell`. The state is the one before the call.
        """
        labelled = self.state.labelled
        for index, label in labels.items():
            labelled = labelled.corrected(int(index), label)
        self._keep(_separated_anew(replace(self.state, labelled=labelled)))

    def soften(self, C: float) -> None:
        """Allow errors from now on, with all labels so far.

        Parameters
        ----------
        C : float
            Of the squared hinge loss on the core set.

        Raises
        ------
        InvalidInputError
            If C is not positive and finite.
        """
        if not 0 < C < math.inf:
            raise InvalidInputError(f"C must be positive and finite, got {C}; pass such a number.")
        options = replace(self.state.options, C=float(C))
        self._keep(_separated_anew(replace(self.state, options=options)))

    def run(
        self,
        oracle: Oracle,
        *,
        progress: bool | None = False,
        report: Callable[[Step], None] | None = None,
    ) -> ActiveMargin:
        """Ask a callable until the end.

        Parameters
        ----------
        oracle : callable
            ``oracle(rows)`` or ``oracle(rows, indices=...)``, which returns one label a row.
        progress : bool or None, default=False
            Whether to show a bar of labels; None shows one where somebody looks.
        report : callable or None, default=None
            Gets every new `Step` of the trace, so that the gap is seen closing.

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
        limit = self.state.options.max_labels or self._pool.n_usable
        with count_reads(progress, limit, unit="label") as advance:
            advance(self.n_labels)
            n_reported = len(self.state.trace)
            while (request := self.ask()) is not None:
                self._ask_oracle(oracle, request)
                advance(len(request))
                n_reported = _report(report, self.state.trace, n_reported)
            _report(report, self.state.trace, n_reported)
        return self.result()

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
        rows = ", ".join(map(str, request.indices[:5].tolist()))
        rows += "..." if len(request) > 5 else ""
        kept = f" and in {self._store}" if self._store is not None else ""
        return OracleError(
            f"the oracle, asked for row {rows}, {cause} The {len(self.state.labelled)} labels told "
            f"before are kept in the attribute `asking` of this error{kept}; mend the oracle and "
            f"call asking.run(oracle), after asking.correct() where an earlier label was wrong.",
            self,
        )

    def save(self, store: Location, *, overwrite: bool = True) -> None:
        """Save the run to Zarr, and after every change from now on.

        Parameters
        ----------
        store : path-like or Zarr store
        overwrite : bool, default=True
            Whether to replace a run that is there.

        Raises
        ------
        StoreError
            If something else is there, or the disk refuses.
        """
        save_state(store, self.state, _facts(self.state, self._pool), overwrite=overwrite)
        self._store = store

    def result(self) -> ActiveMargin:
        """Return the result so far."""
        return result_of(self.state)

    def _keep(self, state: ActiveState) -> None:
        # On the disk first: what cannot be kept has not been told.
        if self._store is not None:
            save_state(self._store, state, _facts(self.state, self._pool))
        self.state = state


def _separated_anew(state: ActiveState) -> ActiveState:
    """Separate the labels as they are now, and request further ones."""
    labelled, before = state.labelled, state.fit
    fit, phase = None, Phase.SEEDING
    if labelled.both:
        add = np.empty(0, np.int64) if before is None else before.core
        fit = separate(labelled, None, add, state.options)
        phase = Phase.QUERYING
    fresh = replace(state.queued(None), fit=fit, phase=phase, needed=0, right=0)
    return replace(fresh, idle=0, stopped="").noted()


def _report(report: Callable[[Step], None] | None, trace: Trace, n_reported: int) -> int:
    if report is not None:
        for step in trace[n_reported:]:
            report(step)
    return len(trace)


def _facts(state: ActiveState, pool: Pool) -> dict[str, Any]:
    """Return facts that identify a pool, and whether its classes were declared."""
    return {
        "n_rows": pool.n_rows,
        "n_features": pool.n_features,
        "n_usable": pool.n_usable,
        "declared": state.labelled.declared,
    }


def _check_pool(state: ActiveState, facts: dict[str, Any], pool: Pool) -> None:
    """Check that the pool is the same as before: labels belong to its rows by number."""
    same = _facts(state, pool) == facts
    indices, rows = state.labelled.indices[:16], state.labelled.rows[:16]
    if same and len(indices):
        fetched = pool.fetch(indices)
        points = dense_rows(fetched.block.points)
        same = np.array_equal(fetched.indices, indices) and np.array_equal(points, rows)
    if not same:
        raise InvalidInputError(
            f"X has {pool.n_rows} rows of {pool.n_features} columns, {pool.n_usable} of them "
            f"usable, and is not the pool that the labels belong to ({facts['n_rows']}, "
            f"{facts['n_features']} and {facts['n_usable']}, and the same rows); pass the same "
            f"data in the same order, or start in another store."
        )


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
