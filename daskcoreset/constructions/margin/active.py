r"""Active learning: Fig. 2 of Har-Peled, Roth and Zimak (2007), as requests for labels and answers.

The listing starts from an empty set. Here random rows are labelled until there are two classes.
That is the verification phase of the rule "all rows are of one class", and it may end the run. The
other phases are those of the listing:

- *querying*: the row of least :math:`|\langle w, x\rangle + b|` in the pool is labelled and added
  to the core set C, if that is below :math:`(1 - \epsilon)\rho_C`.
- *verifying*: random rows are labelled. A misclassified row is added to C. If :math:`T_j` rows in
  succession are right, the run ends.

Rows that have their label and leave the strip empty are never paid for twice. If a later
separator comes closer to them than :math:`(1 - \epsilon)\rho_C`, they join C without being
asked for, as in Fig. 1.

The answers are all of the state. The separator follows from them, and a verification that is
repeated costs no label that is known.
"""

from __future__ import annotations

import enum
import inspect
import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from daskcoreset.constructions.margin.core_set import first_few, not_separable
from daskcoreset.constructions.margin.pool import Pool
from daskcoreset.core.linalg import dense_rows, inner_products
from daskcoreset.core.messages import warn_user
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.core.validation import as_numbers, shown
from daskcoreset.errors import InvalidInputError, InvalidTypeError, NotSeparableError
from daskcoreset.execution.select import SelectedRows
from daskcoreset.solvers.hard_margin import hard_margin

# What a class may be: text, a finite number, or a truth value.
Label: TypeAlias = "str | int | float | bool"

# ``oracle(rows)`` gives one label per row. One with a parameter `indices` gets their numbers.
#
# `rows` is an ndarray of shape (q, d), of the dtype of the data, and ``indices=`` an int64 ndarray
# of shape (q,): the numbers of the rows in the whole pool.
Oracle: TypeAlias = Callable[..., Any]

# Rows looked at for each that is asked for, where several are asked for at a time.
_CANDIDATES = 8

# Random rows drawn at a time.
_MAX_DRAWN = 2048

# Verifications in a row that needed no new label and still failed, after which to stop.
_STALLED = 20


# --- answers ---------------------------------------------------------------------------------


class Phase(enum.IntEnum):
    """Purpose of a request for labels."""

    GIVEN = 0
    SEEDING = 1
    QUERYING = 2
    VERIFYING = 3


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


@dataclass(frozen=True, eq=False)
class Answers:
    """Rows with labels, in the order in which they were given.

    Attributes
    ----------
    indices : ndarray of shape (m,), int64
        Numbers of the rows in the pool.
    rows : ndarray of shape (m, d)
    labels : ndarray of shape (m,), object
    phases : ndarray of shape (m,), int64
        Purpose of the request for each.
    declared : tuple of Label
        The two classes, if they are known beforehand.
    """

    indices: IndexArray
    rows: AnyArray
    labels: AnyArray
    phases: IndexArray
    declared: tuple[Label, ...] = ()

    def __len__(self) -> int:
        return len(self.indices)

    @cached_property
    def position_of(self) -> dict[int, int]:
        """Position of every row by its number in the pool."""
        return {index: i for i, index in enumerate(self.indices.tolist())}

    @cached_property
    def signs(self) -> FloatArray:
        """+1 for the greater of two classes, -1 for the other."""
        known: set[Any] = {*self.declared, *self.labels}
        return np.where(self.labels == max(known, default=None), 1.0, -1.0)

    @property
    def both(self) -> bool:
        """Whether both classes have rows."""
        return len(np.unique(self.signs)) == 2

    def margins(self, fit: CoreFit) -> FloatArray:
        """Margin of every row, without slacks, negative if it is misclassified."""
        products = inner_products(self.rows, fit.w[None])[:, 0]
        return np.asarray(self.signs * (products + fit.intercept))

    def with_labels(self, request: LabelRequest, labels: Any) -> Answers:
        """Return these answers and that to a request, with labels as users give them."""
        new = _plain_labels(labels, len(request))
        _check_classes([*self.declared, *self.labels, *new])
        return Answers(
            np.concatenate([self.indices, request.indices]),
            np.concatenate([self.rows, request.rows]),
            np.concatenate([self.labels, np.array(new, dtype=object)]),
            np.concatenate([self.phases, np.full(len(new), request.phase)]),
            self.declared,
        )


def _plain_labels(labels: Any, count: int, name: str = "labels") -> list[Label]:
    """Bring labels to str, int, finite float or bool. One label alone will do for one row."""
    given = np.atleast_1d(np.array(labels, dtype=object))
    if given.shape != (count,):
        raise InvalidInputError(
            f"{name} has shape {given.shape}, but {count} labels are needed",
            argument=name,
            remedy="pass a flat list, with one label per row in the same order",
        )
    values = [value.item() if isinstance(value, np.generic) else value for value in given]
    for i, value in enumerate(values):
        finite = isinstance(value, float) and math.isfinite(value)
        if not isinstance(value, (str, int)) and not finite:
            raise InvalidInputError(
                f"{name}[{i}] is {value!r}, which is not a class label",
                argument=name,
                remedy="pass text, a finite number or a bool for every row. Give a row "
                "that cannot be labeled sample_weight zero",
            )
    return values


def _check_classes(labels: list[Label], name: str = "labels") -> None:
    """Check that labels, in the order in which they were given, are of two classes at most."""
    first, *others = dict.fromkeys(labels)
    for label in others[1:]:
        raise InvalidInputError(
            f"{name} has {label!r}, but the two classes are {first!r} and {others[0]!r}",
            argument=name,
            remedy="give one of these",
        )
    if others and isinstance(others[0], str) != isinstance(first, str):
        raise InvalidInputError(
            f"{name} has {others[0]!r}, but another class is {first!r}",
            argument=name,
            remedy="use text for both classes, or numbers for both",
        )


# --- the separator ---------------------------------------------------------------------------


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
    w : ndarray of shape (d,), float64
        Its length is one. With a finite C it is less, because the slacks of the core rows are
        coordinates of the same vector.
    intercept : float
    margin : float
        On the core set, its slacks included.
    core : ndarray of shape (m,), int64
        Positions of the core rows among the labelled ones.
    dual : ndarray of shape (m,), float64
        Their dual coefficients.
    """

    w: FloatArray
    intercept: float
    margin: float
    core: IndexArray
    dual: FloatArray


def separate(answers: Answers, core: IndexArray, options: ActiveOptions) -> CoreFit:
    """Separate a core set, and add labelled rows that its separator comes too close to.

    Parameters
    ----------
    answers : Answers
        With both classes.
    core : ndarray of int64
        Positions of the rows of the core set, of both classes.
    options : ActiveOptions
        Rows of margin below ``1 - epsilon`` times that on the core set are too close. With a
        finite C every core row has its own coordinate with the value ``1 / sqrt(C)``, so that all
        rows are separable. That is the squared hinge loss.

    Returns
    -------
    CoreFit

    Raises
    ------
    NotSeparableError
    """
    signs, d = answers.signs, answers.rows.shape[1]
    while True:
        rows = answers.rows[core].astype(np.float64)
        if math.isfinite(options.C):
            rows = np.concatenate([rows, np.diag(signs[core] / math.sqrt(options.C))], axis=1)
        hard = hard_margin(rows, signs[core], intercept=options.intercept)
        if not hard.separable:
            numbers, labels = answers.indices[core], answers.labels[core]
            raise not_separable(
                "the labels contradict each other",
                hard.dual,
                numbers,
                [f"{i} ({label!r})" for i, label in zip(numbers, labels, strict=True)],
                argument="labels",
                remedy='start again with the right labels as known, or with on_inseparable="soft"',
                points=answers.rows[core],
                intercept=options.intercept,
            )
        fit = CoreFit(hard.w[:d], hard.intercept, hard.margin, core, hard.dual)
        margins = answers.margins(fit)
        margins[core] = np.inf
        worst = int(margins.argmin())
        if margins[worst] >= (1.0 - options.epsilon) * fit.margin:
            return fit
        core = np.append(core, worst)


# --- the result ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Certificate:
    """Bound on the error over the pool, by the random rows of the last verification.

    Attributes
    ----------
    error : float
        Bound on the share (by weight) of the pool that is misclassified. It is 0 if every row has
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


@dataclass(frozen=True)
class Step:
    """A trace entry: after labels were given, or after a read of the pool.

    Attributes
    ----------
    n_labels, n_core : int
        Labels told, and rows of the core set, so far.
    core_margin : float
        Infinite before there are two classes.
    closest : float
        Least distance of an unlabelled row of the pool from the boundary. NaN if this step
        did not read the pool.
    phase : Phase
    """

    n_labels: int
    n_core: int
    core_margin: float
    closest: float
    phase: Phase


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
        On all rows: the least margin of the labelled rows and distance of the others from the
        boundary. NaN if the pool was not read since the separator changed, infinite for one class.
    core_margin : float
        On the core set. Infinite if only one class was seen. With a finite C the distance at
        which a row without slack lies.
    closest : float
        Least distance of an unlabelled row from the boundary, in the last read of the pool. NaN
        without a read.
    classes : tuple
        The values of labels so far, the smaller first.
    core : WeightedPoints
        Rows of the core set with weights of one, row numbers and labels.
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
        "verified", "max_labels", "exhausted" (every row has a label), or "stalled" (with a finite
        C, labelled rows stay misclassified, so that no verification succeeds). Empty if the run
        goes on.
    reads : int
        Reads of the whole pool for queries.
    trace : tuple of Step
    """

    w: FloatArray
    b: float
    margin: float
    core_margin: float
    closest: float
    classes: tuple[Any, ...]
    core: WeightedPoints
    dual: FloatArray
    indices: IndexArray
    labels: AnyArray
    n_labels: int
    n_labels_by_phase: dict[str, int]
    certificate: Certificate
    stopped: str
    reads: int
    trace: tuple[Step, ...]

    def decision_function(self, X: Any) -> FloatArray:
        """Signed distance of rows in memory from the boundary, positive for the greater class."""
        points = X if hasattr(X, "tocsr") else np.asarray(X)
        return inner_products(points, self.w[None])[:, 0] + self.b

    def predict(self, X: Any) -> AnyArray:
        """Class of rows in memory. The smaller one on the boundary itself.

        Raises
        ------
        InvalidInputError
            If no label was given yet.
        """
        if not self.classes:
            raise InvalidInputError("there are no labels yet", remedy="call ask() and tell() first")
        greater = self.decision_function(X) > 0
        return np.array(self.classes)[greater.astype(np.int64) * (len(self.classes) - 1)]


# --- the run ---------------------------------------------------------------------------------


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


class ActiveRun:
    """A run in progress, from `daskcoreset.estimators.ActiveMaxMarginClassifier.start`.

    `ask` and `tell` are for people and labelling tools, `run` is for oracles that are called.
    They can take turns. The labels are all of its state: keep ``result().indices`` and
    ``result().labels`` to go on another day, with ``start(X, known=(indices, labels))``.

    Attributes
    ----------
    answers : Answers
    options : ActiveOptions
    trace : tuple of Step
    """

    def __init__(self, pool: Pool, options: ActiveOptions, answers: Answers) -> None:
        self.answers, self.options = answers, options
        self.trace: tuple[Step, ...] = ()
        self._pool = pool
        self._fit: CoreFit | None = None
        self._request: LabelRequest | None = None
        self._requests = self._questions()
        self._closest = math.nan  # distance of the closest row from the boundary, once known
        self._draws = self._reads = self._verifications = 0
        self._right = 0  # random rows in a row that were right
        self._idle = 0  # verifications in a row that failed without a new label
        self._stopped = ""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_requests"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._requests = self._questions()

    @property
    def done(self) -> bool:
        """Whether the run has ended, as the last `ask` found."""
        return bool(self._stopped)

    @property
    def n_labels(self) -> int:
        """Labels asked for so far."""
        return int((self.answers.phases != Phase.GIVEN).sum())

    def ask(self) -> LabelRequest | None:
        """Return the rows whose labels are requested now, or None at the end.

        Reads the pool if it has to. Until `tell`, it returns the same rows each time.
        """
        if self._request is None and not self._stopped:
            try:
                self._request = next(self._requests)
            except StopIteration as end:
                self._stopped = end.value
            except BaseException:
                self._requests = self._questions()  # begun anew, from the answers
                raise
        return self._request

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
        if self._request is None:
            raise InvalidInputError(
                "no rows wait for labels", remedy="call ask() first, and again after each tell()"
            )
        self._take(self._request, labels)
        self._request = None

    def run(self, oracle: Oracle) -> ActiveMargin:
        """Ask a callable until the end.

        Parameters
        ----------
        oracle : callable
            ``oracle(rows)`` or ``oracle(rows, indices=...)``, which returns one label per row.

        Returns
        -------
        ActiveMargin

        Raises
        ------
        OracleError
            If the oracle raises, or its answer cannot be used. Its attribute `asking` is this
            run, with all labels told before.
        """
        while (request := self.ask()) is not None:
            try:
                labels = answer(oracle, request.rows, request.indices)
            except Exception as error:
                cause = f"raised {type(error).__name__} ({error})."
                raise self._oracle_error(cause, request) from error
            try:
                self.tell(labels)
            except InvalidInputError as error:
                raise self._oracle_error(f"gave what cannot be used: {error}", request) from error
        return self.result()

    def _oracle_error(self, cause: str, request: LabelRequest) -> OracleError:
        error = OracleError(
            f"the oracle, asked for row {first_few(request.indices, 5)}, {cause} The "
            f"{len(self.answers)} labels told before are kept in the attribute `asking` of "
            f"this error",
            argument="oracle",
            remedy="mend the oracle and call asking.run(oracle)",
        )
        error.asking = self
        return error

    def _take(self, request: LabelRequest, labels: Any) -> None:
        """Take labels. Soften the margin if they contradict each other and the options allow it."""
        answers, options, fit = self.answers.with_labels(request, labels), self.options, self._fit
        new = np.arange(len(self.answers), len(answers))
        if fit is not None and request.phase is Phase.VERIFYING:
            new = new[answers.margins(fit)[new] <= 0.0]
        if answers.both and len(new):
            core = np.unique(np.append(np.unique(answers.signs, return_index=True)[1], new))
            core = core if fit is None else np.concatenate([fit.core, new])
            try:
                fit = separate(answers, core, options)
            except NotSeparableError as error:
                if options.fallback is None:
                    raise
                options = replace(options, C=options.fallback, fallback=None)
                warn_user(
                    f"no separator agrees with the labels of rows {first_few(error.indices, 5)}; "
                    f"errors are allowed from here on, with C={options.C}. Scale the features, "
                    f'choose C, or pass on_inseparable="raise" to stop instead.'
                )
                fit = separate(answers, core, options)
        phase = request.phase
        if fit is not self._fit:
            phase, self._right, self._closest = Phase.QUERYING, 0, math.nan
        self.answers, self.options, self._fit, self._idle = answers, options, fit, 0
        self._note(phase)

    def _note(self, phase: Phase, closest: float = math.nan) -> None:
        n_core, margin = 0, math.inf
        if self._fit is not None:
            n_core, margin = len(self._fit.core), self._fit.margin
        self.trace += (Step(len(self.answers), n_core, margin, closest, phase),)

    def _questions(self) -> Generator[LabelRequest, None, str]:
        """Fig. 2: request labels until the end. Return why it ended."""
        while True:
            if end := (yield from self._query()):
                return end
            fit = self._fit
            while self._fit is fit:
                if end := (yield from self._verify(fit)):
                    return end

    def _query(self) -> Generator[LabelRequest, None, str]:
        """Request the labels of the closest rows until the strip is empty."""
        options = self.options
        count = options.batch if options.batch == 1 else _CANDIDATES * options.batch
        while (fit := self._fit) is not None:
            closest = self._pool.closest(fit.w, fit.intercept, self.answers.indices, count)
            self._reads += 1
            if not len(closest):
                return "exhausted"
            self._closest = float(closest.values[0])
            self._note(Phase.QUERYING, self._closest)
            within = np.flatnonzero(closest.values < (1.0 - options.epsilon) * fit.margin)
            if not len(within):
                break
            if not self._n_left:
                return "max_labels"
            rows = closest.take(within)
            spread = _spread(dense_rows(rows.block.points), options.batch)
            yield self._request_for(rows.take(spread), Phase.QUERYING)
        return ""

    def _verify(self, fit: CoreFit | None) -> Generator[LabelRequest, None, str]:
        """Draw random rows, until one is wrong or enough are right in a row.

        Without a separator the rule is "all rows are of one class".
        """
        if self._is_exhausted():
            return "exhausted"
        options, phase, n_core = self.options, Phase.VERIFYING, 1
        if fit is None:
            phase, self._verifications = Phase.SEEDING, 1
        else:
            n_core, self._verifications = len(fit.core), self._verifications + 1
        needed = verification_length(options.error, options.delta, n_core, self._verifications)
        needed += not len(self.answers)  # the first row chooses the class
        self._right = 0
        while self._right < needed:
            if self._is_exhausted():
                return "exhausted"
            # Of the rows that this verification still needs, as many as fit in memory.
            rng = stream(options.seed, Stage.LABELS, fold=self._draws)
            drawn = self._pool.draw(rng, min(needed - self._right, _MAX_DRAWN))
            self._draws += 1
            for i, index in enumerate(drawn.keys.tolist()):
                if index not in self.answers.position_of:
                    if not self._n_left:
                        return "max_labels"
                    # The others of them that have no label, each once.
                    _, first = np.unique(drawn.keys[i:], return_index=True)
                    rest = drawn.take(i + np.sort(first))
                    new = np.flatnonzero(~np.isin(rest.keys, self.answers.indices))
                    yield self._request_for(rest.take(new), phase)
                    if self._fit is not fit:  # a row was wrong, or of another class
                        return ""
                elif fit and self.answers.margins(fit)[self.answers.position_of[index]] <= 0.0:
                    # Only with a finite C: nothing to pay for, nothing to add, so draw again.
                    self._right, self._idle = 0, self._idle + 1
                    return "stalled" if self._idle >= _STALLED else ""
                self._right += 1
        return "verified"

    def _is_exhausted(self) -> bool:
        """Whether every row has its label."""
        return len(self.answers) >= self._pool.n_usable

    @property
    def _n_left(self) -> int:
        """Labels that may still be asked for, of one request at most."""
        batch, most = self.options.batch, self.options.max_labels
        return batch if most is None else min(batch, most - self.n_labels)

    def _request_for(self, rows: SelectedRows, phase: Phase) -> LabelRequest:
        first = slice(self._n_left)
        return LabelRequest(rows.keys[first], dense_rows(rows.block.points[first]), phase)

    def result(self) -> ActiveMargin:
        """Return the result so far."""
        answers, fit = self.answers, self._fit
        values = np.array(answers.labels.tolist())
        classes = sorted({*answers.labels})
        core, dual = np.empty(0, dtype=np.int64), np.empty(0)
        w, margin, core_margin = np.zeros(answers.rows.shape[1]), math.inf, math.inf
        # Of one class alone the sign says which of the two declared ones it is.
        b = 1.0 if answers.declared and (answers.signs > 0.0).any() else -1.0
        if fit is not None:
            length = float(np.linalg.norm(fit.w)) or 1.0
            w, b, core_margin = fit.w / length, fit.intercept / length, fit.margin / length
            core, dual = fit.core, fit.dual
            margin = float(answers.margins(fit).min()) / length
            if self._stopped != "exhausted":  # some rows have no label
                margin = float(np.minimum(margin, self._closest / length))
        distances = [step.closest for step in self.trace if not math.isnan(step.closest)]
        phases = (Phase.SEEDING, Phase.QUERYING, Phase.VERIFYING)
        return ActiveMargin(
            w=w,
            b=b,
            margin=margin,
            core_margin=core_margin,
            closest=distances[-1] if distances else math.nan,
            classes=tuple(classes),
            core=WeightedPoints(
                answers.rows[core], np.ones(len(core)), answers.indices[core], values[core]
            ),
            dual=dual,
            indices=answers.indices,
            labels=values,
            n_labels=self.n_labels,
            n_labels_by_phase={
                phase.name.lower(): int((answers.phases == phase).sum()) for phase in phases
            },
            certificate=self._certificate(),
            stopped=self._stopped,
            reads=self._reads,
            trace=self.trace,
        )

    def _certificate(self) -> Certificate:
        r"""Bound the error by r right rows: :math:`e \leq \ln(\max(|C|, j(j+1))/\delta) / r`.

        A separator of error e reaches a streak of r with chance :math:`(1 - e)^r`. So for any r,
        the bound fails with no more chance than in a verification of full length.
        """
        answers, fit, delta = self.answers, self._fit, self.options.delta
        wrong = fit is not None and bool((answers.margins(fit) <= 0.0).any())
        if self._stopped == "exhausted" and not wrong:
            return Certificate(0.0, 1.0, 0, self._verifications)
        right, j = self._right, max(self._verifications, 1)
        if fit is None and bool((answers.phases[:1] == Phase.SEEDING).any()):
            right = max(right - 1, 0)  # the first random row chose the class, which proves nothing
        n_core = 1 if fit is None else len(fit.core)
        error = 1.0
        if right:
            error = min(1.0, (math.log(max(n_core, j * (j + 1))) - math.log(delta)) / right)
        return Certificate(error, 1.0 - delta, right, self._verifications)


def answer(oracle: Oracle, rows: AnyArray, indices: IndexArray) -> Any:
    """Call an oracle with copies of the rows."""
    try:
        parameters = list(inspect.signature(oracle).parameters)
    except (TypeError, ValueError):  # built in, without a signature
        parameters = []
    if "indices" in parameters:
        return oracle(rows.copy(), indices=indices.copy())
    return oracle(rows.copy())


def _spread(rows: AnyArray, count: int) -> IndexArray:
    """Choose the closest row, then the one farthest from those chosen, and so on. None twice."""
    rows = rows.astype(np.float64)
    chosen = [0]
    gaps = np.square(rows - rows[0]).sum(axis=1)
    while len(chosen) < count and gaps.max() > 0.0:
        chosen.append(int(gaps.argmax()))
        gaps = np.minimum(gaps, np.square(rows - rows[chosen[-1]]).sum(axis=1))
    return np.array(chosen, dtype=np.int64)


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
    pair = [] if classes is None else _plain_labels(classes, 2, "classes")
    if pair:
        _check_classes(pair, "classes")
    if len(pair) != len({*pair}):
        raise InvalidInputError(
            f"classes is {shown(classes)}",
            argument="classes",
            remedy="pass two different values of one type",
        )
    none, schema = np.empty(0, dtype=np.int64), pool.blocks.schema
    rows = np.empty((0, schema.n_features), dtype=schema.dtype)
    answers = Answers(none, rows, none.astype(object), none, tuple(pair))
    run = ActiveRun(pool, options, answers)
    if known is not None:
        run._take(_known_rows(pool, known), known[1])  # noqa: SLF001
    return run


def _known_rows(pool: Pool, known: Any) -> LabelRequest:
    """Return the rows whose labels are known already."""
    if not isinstance(known, tuple | list) or len(known) != 2:
        raise InvalidTypeError(
            f"known is {shown(known)}",
            argument="known",
            remedy="pass a pair of numbers of rows and their labels",
        )
    as_numbers("known[0]", known[0])
    indices, n_rows = np.asarray(known[0]), pool.n_rows
    is_vector = indices.ndim == 1 and indices.dtype.kind in "iu"
    if not is_vector or len(np.unique(indices[(indices >= 0) & (indices < n_rows)])) < len(indices):
        raise InvalidInputError(
            f"known[0] is {shown(known[0])}, but it must contain distinct row numbers, and X has "
            f"{n_rows} rows",
            argument="known",
            remedy="pass a vector of integers",
        )
    found = pool.fetch(indices)
    if len(found) < len(indices):
        raise InvalidInputError(
            "known[0] contains rows with NaN or infinity, which were dropped from X",
            argument="known",
            remedy="leave them out",
        )
    return LabelRequest(found.keys, dense_rows(found.block.points), Phase.GIVEN)


class OracleError(InvalidInputError):
    """An oracle failed, or its labels cannot be used. All earlier labels are kept.

    Attributes
    ----------
    asking : ActiveRun
        The run as it was before the call: ``asking.run(oracle)`` goes on from there.
    """

    asking: ActiveRun | None = None
