"""What active learning has found: a separator, what it cost, and what is promised of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.constructions.margin.labelled import Phase
from daskcoreset.constructions.margin.pool_reads import heights

if TYPE_CHECKING:
    from daskcoreset.constructions.margin.run_state import Queries, Trace
    from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

__all__ = ["ActiveMargin", "Certificate", "result_of"]


@dataclass(frozen=True)
class Certificate:
    """What the random rows of the last verification say about all rows of the pool.

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
        Unit normal; zeros if only one class was seen.
    b : float
        ``w @ x + b`` is positive for the greater class.
    margin : float
        On the core set; infinite if only one class was seen. With a finite C the distance at
        which a row without slack lies.
    closest : float
        Least distance from the boundary of a row of the pool that had no label, when it was
        last looked for; NaN if never.
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
        What they were for: "seeding", "querying", "verifying".
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
        return heights(X if hasattr(X, "tocsr") else np.asarray(X), self.w, self.b)

    def predict(self, X: Any) -> AnyArray:
        """Class of rows in memory; the smaller one on the boundary itself.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n,)

        Raises
        ------
        InvalidInputError
            If no label was told yet.
        """
        if not self.classes:
            raise InvalidInputError("no label was told yet; call ask() and tell() first.")
        values = np.array(self.classes)
        if len(values) == 1:
            return np.full(X.shape[0] if hasattr(X, "shape") else len(X), values[0])
        return values[(self.decision_function(X) > 0).astype(np.int64)]


def result_of(state: Queries) -> ActiveMargin:
    """Put together what a run knows.

    Parameters
    ----------
    state : Queries

    Returns
    -------
    ActiveMargin
    """
    labelled, separator = state.labelled, state.separator
    d = labelled.rows.shape[1]
    seen = sorted({labelled.classes[code] for code in labelled.codes.tolist()})
    values = np.array([labelled.classes[code] for code in labelled.codes.tolist()])
    core = np.empty(0, dtype=np.int64)
    # Of one class alone the sign says which of the two it is.
    b = 1.0 if seen and seen[-1] == max(labelled.classes) and len(labelled.classes) > 1 else -1.0
    w, margin, dual = np.zeros(d), math.inf, np.empty(0)
    if separator is not None:
        length = float(np.linalg.norm(separator.w)) or 1.0
        w, b = separator.w / length, separator.b / length
        margin, core, dual = separator.margin / length, separator.core, separator.dual
    looked = [step.closest for step in state.trace if not math.isnan(step.closest)]
    phases = (Phase.SEEDING, Phase.QUERYING, Phase.VERIFYING)
    return ActiveMargin(
        w=w,
        b=b,
        margin=margin,
        closest=looked[-1] if looked else math.nan,
        classes=tuple(seen),
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


def _certificate(state: Queries) -> Certificate:
    r"""Say what r right rows in a row prove: :math:`e \leq \ln(\max(|C|, j(j+1))/\delta) / r`.

    A separator of error e reaches a streak of r with chance :math:`(1 - e)^r`, so that the
    bound fails with no more chance than in a verification of full length, whatever r is.
    """
    rule, j = state.rule, max(state.verifications, 1)
    if state.stopped == "exhausted":
        wrong = 0
        if state.separator is not None:
            wrong = int((state.labelled.heights(state.separator) <= 0.0).sum())
        if not wrong:
            return Certificate(0.0, 1.0, 0, state.verifications)
    seeded = state.separator is None and len(state.labelled) > 0
    # The first random row chose the class, so that it proves nothing.
    right = max(state.right - 1, 0) if seeded else state.right
    n_core = 1 if state.separator is None else len(state.separator.core)
    error = 1.0
    if right:
        error = min(1.0, (math.log(max(n_core, j * (j + 1))) - math.log(rule.delta)) / right)
    return Certificate(error, 1.0 - rule.delta, right, state.verifications)
