"""The state of a run of active learning: labels, separator, requests; and its result."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from daskcoreset.constructions.margin.core_set import (
    Separator,
    evidence_of,
    first_few,
    solve_margin,
)
from daskcoreset.constructions.margin.rows import SelectedRows
from daskcoreset.core.linalg import dense_rows
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.errors import InvalidInputError, NotSeparableError

# What a class may be: text, a finite number, or a truth value.
Label: TypeAlias = "str | int | float | bool"


class Phase(enum.IntEnum):
    """Purpose of a request for labels."""

    GIVEN = 0
    SEEDING = 1
    QUERYING = 2
    VERIFYING = 3
    DONE = 4


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows with labels, in the order in which they were given.

    Attributes
    ----------
    indices : ndarray of shape (m,), int64
        Numbers of the rows in the pool.
    rows : ndarray of shape (m, d)
    codes : ndarray of shape (m,), int64
        Number of the label in `classes`.
    phases : ndarray of shape (m,), int64
        Purpose of the request for each.
    classes : tuple of Label
        Values of labels in the order of their appearance, at most two.
    declared : bool
        Whether the user fixed the classes.
    """

    indices: IndexArray
    rows: AnyArray
    codes: IndexArray
    phases: IndexArray
    classes: tuple[Label, ...] = ()
    declared: bool = False

    def __len__(self) -> int:
        return len(self.indices)

    @cached_property
    def position_of(self) -> dict[int, int]:
        """Position of every row by its number in the pool."""
        return {index: i for i, index in enumerate(self.indices.tolist())}

    @property
    def both(self) -> bool:
        """Whether both classes have rows."""
        return bool(len(self.codes)) and bool((self.codes != self.codes[0]).any())

    @property
    def signs(self) -> FloatArray:
        """+1 for the greater of two classes, -1 for the other."""
        classes: tuple[Any, ...] = self.classes
        positive = int(len(classes) > 1 and classes[1] > classes[0])
        return np.where(self.codes == positive, 1.0, -1.0)

    def encode(self, labels: Any, count: int) -> tuple[IndexArray, tuple[Label, ...]]:
        """Return labels of rows as numbers of classes, and the classes with those that are new.

        Parameters
        ----------
        labels : array-like of shape (count,), or one label
        count : int

        Returns
        -------
        codes : ndarray of shape (count,), int64
        classes : tuple of Label

        Raises
        ------
        InvalidInputError
            For another number of labels, for a value that is not a class, for a third class, or for
            values that do not compare.

        Examples
        --------
        >>> none = np.empty(0, np.int64)
        >>> Labelled(none, none, none, none, ("spam",)).encode(["ham", "spam"], 2)
        (array([1, 0]), ('spam', 'ham'))
        """
        codes, classes = np.empty(count, dtype=np.int64), self.classes
        for i, label in enumerate(plain_labels(labels, count)):
            if label not in classes:
                _check_new(label, i, classes, declared=self.declared)
                classes = (*classes, label)
            codes[i] = classes.index(label)
        return codes, classes

    def with_rows(self, indices: IndexArray, rows: AnyArray, labels: Any, phase: Phase) -> Labelled:
        """Return these rows and further ones, with labels as users give them."""
        codes, classes = self.encode(labels, len(indices))
        return Labelled(
            np.concatenate([self.indices, indices]),
            np.concatenate([self.rows, rows]),
            np.concatenate([self.codes, codes]),
            np.concatenate([self.phases, np.full(len(indices), int(phase), dtype=np.int64)]),
            classes,
            self.declared,
        )

    def margins(self, separator: Separator) -> FloatArray:
        """Margin of every row, without slacks: negative where it is misclassified."""
        return np.asarray(self.signs * separator(self.rows))


def plain_labels(labels: Any, count: int) -> list[Label]:
    """Bring labels to plain Python values.

    Parameters
    ----------
    labels : array-like of shape (count,), or one label
        One label alone will do for one row.
    count : int
        How many there must be.

    Returns
    -------
    list
        Its values are str, int, finite float or bool.

    Raises
    ------
    InvalidInputError
        For another number of labels, or one that is not a class, such as None or NaN.

    Examples
    --------
    >>> plain_labels(np.array([1.0, 0.0]), 2), plain_labels("spam", 1)
    ([1.0, 0.0], ['spam'])
    """
    try:
        alone = isinstance(labels, str) or np.ndim(labels) == 0
    except ValueError as error:
        raise InvalidInputError(
            f"labels cannot be used: {error}",
            argument="labels",
            remedy="give a flat list of labels",
        ) from error
    values = [labels] if alone else list(labels)
    if np.ndim(labels) > 1 or len(values) != count:
        shape = np.shape(labels) if not alone else (1,)
        raise InvalidInputError(
            f"labels has shape {shape}, but {count} rows were asked for",
            argument="labels",
            remedy="pass one label per row, in the same order",
        )
    return [_plain(value, i) for i, value in enumerate(values)]


def _plain(value: Any, i: int) -> Label:
    if isinstance(value, np.generic):
        value = value.item()
    is_plain = isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value))
    if not is_plain:
        raise InvalidInputError(
            f"labels[{i}] is {value!r}, which is not a class label",
            argument="labels",
            remedy="pass text, a finite number or a bool for every row. Give a row "
            "that cannot be labeled sample_weight zero",
        )
    return value  # type: ignore[no-any-return] # one of the types of Label


def _check_new(label: Label, i: int, classes: tuple[Label, ...], *, declared: bool) -> None:
    if declared or len(classes) == 2:
        origin = "were declared" if declared else "are known"
        raise InvalidInputError(
            f"labels[{i}] is {label!r}, but the two classes {classes[0]!r} and {classes[1]!r} "
            f"{origin}",
            argument="labels",
            remedy="give one of these",
        )
    if classes and isinstance(label, str) != isinstance(classes[0], str):
        raise InvalidInputError(
            f"labels[{i}] is {label!r}, but the class told before is {classes[0]!r}",
            argument="labels",
            remedy="use text for both classes, or numbers for both",
        )


@dataclass(frozen=True)
class ActiveOptions:
    """Parameters of a run, as in `daskcoreset.estimators.ActiveMaxMarginClassifier`.

    Attributes
    ----------
    C : float
        Weight of the squared hinge loss on the core set. Infinite for a hard margin.
    fallback : float or None
        The C from the first contradiction on. None to raise an error.
    """

    epsilon: float
    error: float
    delta: float
    intercept: bool
    batch: int
    max_labels: int | None
    seed: int
    C: float = math.inf
    fallback: float | None = None


@dataclass(frozen=True, eq=False)
class CoreFit:
    """The separator of the core set.

    Attributes
    ----------
    separator : Separator
        Its normal is of length one, or less with a finite C, for the slacks of the core rows are
        coordinates of the same vector.
    margin : float
        On the core set, its slacks included.
    core : ndarray of shape (m,), int64
        Positions of the core rows among the labelled ones.
    dual : ndarray of shape (m,), float64
        Their dual coefficients.
    """

    separator: Separator
    margin: float
    core: IndexArray
    dual: FloatArray


def separate(
    labelled: Labelled,
    before: CoreFit | None,
    add: IndexArray,
    options: ActiveOptions,
) -> CoreFit:
    r"""Add rows to the core set, and then labelled rows that its separator comes too close to.

    Parameters
    ----------
    labelled : Labelled
        With both classes.
    before : CoreFit or None
        None for a first core set.
    add : ndarray of int64
        Positions of the rows to add.
    options : ActiveOptions
        Rows of margin below ``1 - epsilon`` times that on the core set are too close. With a
        finite C every core row has a coordinate of its own with the value ``1 / sqrt(C)``, in
        which all rows are separable: the squared hinge loss.

    Returns
    -------
    CoreFit

    Raises
    ------
    NotSeparableError
    """
    signs = labelled.signs
    if before is None:
        firsts = np.array([int((signs == s).argmax()) for s in (1.0, -1.0)])
        core = np.unique(np.concatenate([firsts, add]))
    else:
        core = np.concatenate([before.core, add])
    while True:
        fit = _solve(labelled, core, options)
        margins = labelled.margins(fit.separator)
        margins[core] = np.inf
        worst = int(margins.argmin())
        if margins[worst] >= (1.0 - options.epsilon) * fit.margin:
            return fit
        core = np.append(core, worst)


def _solve(labelled: Labelled, core: IndexArray, options: ActiveOptions) -> CoreFit:
    C = options.C
    signs, d = labelled.signs[core], labelled.rows.shape[1]
    rows = labelled.rows[core].astype(np.float64)
    if np.isfinite(C):
        rows = np.concatenate([rows, np.diag(signs / np.sqrt(C))], axis=1)
    hard = solve_margin(rows, signs, intercept=options.intercept)
    if not hard.separable:
        raise _inseparable(labelled, core, hard.dual)
    separator = Separator(hard.w[:d], hard.intercept)
    return CoreFit(separator, hard.margin, core, hard.dual)


def _inseparable(labelled: Labelled, core: IndexArray, dual: FloatArray) -> NotSeparableError:
    evidence = evidence_of(dual)
    positions, indices = core[evidence], labelled.indices[core[evidence]]
    shown = [
        f"{index} ({labelled.classes[code]!r})"
        for index, code in zip(indices, labelled.codes[positions], strict=True)
    ]
    equal = len(positions) == 2 and np.array_equal(*labelled.rows[positions])
    why = "are equal" if equal else "hold a convex combination that no separator can tell apart"
    return NotSeparableError(
        f"the labels contradict each other: rows {first_few(shown, 6)} {why}",
        argument="labels",
        remedy='start again with the right labels as known, or with on_inseparable="soft"',
        indices=indices,
        coefficients=dual[evidence],
        intercept=len(np.unique(labelled.codes[positions])) == 2,
        duplicates=(int(indices.min()), int(indices.max())) if equal else None,
    )


@dataclass(frozen=True)
class Certificate:
    """Bound on the error over the pool, by the random rows of the last verification.

    Attributes
    ----------
    error : float
        Bound on the share (by weight) of the pool that is misclassified; 0 if every row has
        its label and is right, and 1 if nothing is known.
    probability : float
        With which it holds, over the draws of the run: 1 - delta, or 1 where all is known.
    verified : int
        Random rows in a row that were right.
    verifications : int
        Separators that were put to the test.
    """

    error: float
    probability: float
    verified: int
    verifications: int


@dataclass(frozen=True, eq=False)
class ActiveMargin:
    """The result of active learning.

    Attributes
    ----------
    w : ndarray of shape (d,), float64
        Unit normal. Zeros if only one class was seen.
    b : float
        ``w @ x + b`` is positive for the greater class.
    margin : float
        On the core set. Infinite if only one class was seen. With a finite C the distance at
        which a row without slack lies.
    data_margin : float
        On all rows: the least margin of the labelled rows and distance of the others from the
        boundary. NaN if the pool was not read since the separator changed, infinite for one class.
    closest : float
        Least distance from the boundary of a row of the pool that had no label, when it was
        last looked for. NaN if never.
    classes : tuple
        The two values of labels, the smaller first; or one, or none.
    core_indices : ndarray of shape (m,), int64
        Numbers of the rows of the core set.
    core_rows : ndarray of shape (m, d)
    core_labels : ndarray of shape (m,)
    dual : ndarray of shape (m,), float64
        Their dual coefficients, with sum one (with a bias: over each class).
    indices : ndarray of shape (n_labelled,), int64
        Numbers of all rows with labels, in the order told.
    labels : ndarray of shape (n_labelled,)
    n_labels : int
        Labels paid for.
    n_labels_by_phase : dict of str to int
        Their purposes: "seeding", "querying", "verifying".
    certificate : Certificate
    stopped : str
        "verified"; "max_labels"; "exhausted" (every row has a label); "stalled" (with a finite
        C: rows with labels stay misclassified, so that no verification can succeed); or empty
        if the run goes on.
    reads : int
        Reads of the whole pool for queries.
    trace : tuple of Step
    """

    w: FloatArray
    b: float
    margin: float
    data_margin: float
    closest: float
    classes: tuple[Any, ...]
    core_indices: IndexArray
    core_rows: AnyArray
    core_labels: AnyArray
    dual: FloatArray
    indices: IndexArray
    labels: AnyArray
    n_labels: int
    n_labels_by_phase: dict[str, int]
    certificate: Certificate
    stopped: str
    reads: int
    trace: Trace

    def decision_function(self, X: Any) -> FloatArray:
        """Signed distance of rows in memory from the boundary, positive for the greater class.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n,), float64
        """
        separator = Separator(self.w, self.b)
        return separator(X if hasattr(X, "tocsr") else np.asarray(X))

    def predict(self, X: Any) -> AnyArray:
        """Class of rows in memory. The smaller one on the boundary itself.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n,)

        Raises
        ------
        InvalidInputError
            If no label was given yet.
        """
        if not self.classes:
            raise InvalidInputError("there are no labels yet", remedy="call ask() and tell() first")
        values = np.array(self.classes)
        if len(values) == 1:
            return np.full(X.shape[0] if hasattr(X, "shape") else len(X), values[0])
        return values[(self.decision_function(X) > 0).astype(np.int64)]


def result_of(state: ActiveState) -> ActiveMargin:
    """Return the result of a run, at its end or before."""
    labelled, fit = state.labelled, state.fit
    d = labelled.rows.shape[1]
    classes = sorted({labelled.classes[code] for code in labelled.codes.tolist()})
    values = np.array([labelled.classes[code] for code in labelled.codes.tolist()])
    core = np.empty(0, dtype=np.int64)
    # Of one class alone the sign says which of the two it is.
    b = (
        1.0
        if classes and classes[-1] == max(labelled.classes) and len(labelled.classes) > 1
        else -1.0
    )
    w, margin, dual = np.zeros(d), math.inf, np.empty(0)
    if fit is not None:
        length = float(np.linalg.norm(fit.separator.w)) or 1.0
        w, b = fit.separator.w / length, fit.separator.intercept / length
        margin, core, dual = fit.margin / length, fit.core, fit.dual
    distances = [step.closest for step in state.trace if not math.isnan(step.closest)]
    phases = (Phase.SEEDING, Phase.QUERYING, Phase.VERIFYING)
    return ActiveMargin(
        w=w,
        b=b,
        margin=margin,
        data_margin=_data_margin(state),
        closest=distances[-1] if distances else math.nan,
        classes=tuple(classes),
        core_indices=labelled.indices[core],
        core_rows=labelled.rows[core],
        core_labels=values[core],
        dual=dual,
        indices=labelled.indices,
        labels=values,
        n_labels=state.paid,
        n_labels_by_phase={
            phase.name.lower(): int((labelled.phases == phase).sum()) for phase in phases
        },
        certificate=_certificate(state),
        stopped=state.stopped,
        reads=state.reads,
        trace=state.trace,
    )


def _data_margin(state: ActiveState) -> float:
    fit = state.fit
    if fit is None:
        return math.inf
    least = float(state.labelled.margins(fit.separator).min())
    if state.stopped != "exhausted":  # some rows have no label
        now = (len(fit.core), fit.margin)
        of_fit = [step for step in state.trace if (step.n_core, step.margin) == now]
        measured = [step.closest for step in of_fit if not math.isnan(step.closest)]
        least = min(least, measured[-1]) if measured else math.nan
    return least / (float(np.linalg.norm(fit.separator.w)) or 1.0)


def _certificate(state: ActiveState) -> Certificate:
    r"""Bound the error by r right rows in a row: :math:`e \leq \ln(\max(|C|, j(j+1))/\delta) / r`.

    A separator of error e reaches a streak of r with chance :math:`(1 - e)^r`, so that the
    bound fails with no more chance than in a verification of full length, whatever r is.
    """
    delta, j = state.options.delta, max(state.verifications, 1)
    if state.stopped == "exhausted":
        wrong = 0
        if state.fit is not None:
            wrong = int((state.labelled.margins(state.fit.separator) <= 0.0).sum())
        if not wrong:
            return Certificate(0.0, 1.0, 0, state.verifications)
    drawn_first = bool((state.labelled.phases[:1] == Phase.SEEDING).all())
    seeded = state.fit is None and len(state.labelled) > 0 and drawn_first
    # The first random row chose the class, so that it proves nothing.
    right = max(state.right - 1, 0) if seeded else state.right
    n_core = 1 if state.fit is None else len(state.fit.core)
    error = 1.0
    if right:
        error = min(1.0, (math.log(max(n_core, j * (j + 1))) - math.log(delta)) / right)
    return Certificate(error, 1.0 - delta, right, state.verifications)


@dataclass(frozen=True)
class Step:
    """A trace entry: after labels were given, or after a read of the pool.

    Attributes
    ----------
    n_labels, n_core : int
        Labels told, and rows of the core set, so far.
    margin : float
        On the core set. Infinite before there are two classes.
    closest : float
        Least distance of an unlabelled row of the pool from the boundary. NaN if this step
        did not read the pool.
    phase : Phase
    """

    n_labels: int
    n_core: int
    margin: float
    closest: float
    phase: Phase


Trace = tuple[Step, ...]


@dataclass(frozen=True, eq=False)
class ActiveState:
    """Options, labelled rows, separator, requests and counters of a run.

    Attributes
    ----------
    options : ActiveOptions
    labelled : Labelled
        Rows with labels, in the order in which they were told.
    fit : CoreFit or None
        None before there are two classes.
    phase : Phase
    queue : ndarray of shape (q,), int64
        Rows to be looked at in order, some of which may have labels.
    queue_rows : ndarray of shape (q, d)
    requested : ndarray of shape (p,), int64
        Positions in the queue whose labels are requested now.
    draws : int
        Times that rows were drawn from the pool.
    verifications : int
        Verifications begun, that of one class included.
    right : int
        Rows in a row that were right in this verification.
    idle : int
        Verifications in a row that failed without a new label.
    needed : int
        Rows in a row that this verification needs. Zero outside one.
    reads : int
        Reads of the whole pool.
    stopped : str
        Why the run has ended. Empty before.
    trace : tuple of Step
    """

    options: ActiveOptions
    labelled: Labelled
    fit: CoreFit | None = None
    phase: Phase = Phase.SEEDING
    queue: IndexArray = field(default_factory=lambda: np.empty(0, np.int64))
    queue_rows: AnyArray = field(default_factory=lambda: np.empty((0, 0)))
    requested: IndexArray = field(default_factory=lambda: np.empty(0, np.int64))
    draws: int = 0
    verifications: int = 0
    right: int = 0
    idle: int = 0
    needed: int = 0
    reads: int = 0
    stopped: str = ""
    trace: Trace = ()

    @property
    def paid(self) -> int:
        """Labels that the oracle gave."""
        return int((self.labelled.phases != Phase.GIVEN).sum())

    def queued(self, rows: SelectedRows | None) -> ActiveState:
        """Return the run with rows to look at next, or none."""
        none = np.empty(0, np.int64)
        if rows is None:
            return replace(self, queue=none, queue_rows=self.queue_rows[:0], requested=none)
        points = dense_rows(rows.block.points)
        return replace(self, queue=rows.indices, queue_rows=points, requested=none)

    def noted(self, closest: float = math.nan) -> ActiveState:
        """Return the run with one more step in its trace."""
        n_core, margin = 0, math.inf
        if self.fit is not None:
            n_core, margin = len(self.fit.core), self.fit.margin
        step = Step(len(self.labelled), n_core, margin, closest, self.phase)
        return replace(self, trace=(*self.trace, step))

    def ended(self, why: str) -> ActiveState:
        """Return the run at its end."""
        return replace(self.queued(None), phase=Phase.DONE, stopped=why)
