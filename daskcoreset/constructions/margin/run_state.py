"""All that a run of active learning knows, as a value."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from daskcoreset.constructions.margin.labelled import Labelled, Phase, Rule, Separator
from daskcoreset.core.typing import AnyArray, IndexArray

if TYPE_CHECKING:
    from daskcoreset.constructions.margin.pool_reads import Found

__all__ = ["Queries", "Step", "Trace"]


@dataclass(frozen=True)
class Step:
    """One look at the run: after labels were told, or after a read of the pool.

    Attributes
    ----------
    n_labels, n_core : int
        Labels told, and rows of the core set, so far.
    margin : float
        On the core set; infinite before there are two classes.
    closest : float
        Least distance of an unlabelled row of the pool from the boundary; NaN if this step
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
class Queries:
    """All that a run knows.

    Attributes
    ----------
    rule : Rule
    labelled : Labelled
        Rows with labels, in the order in which they were told.
    separator : Separator or None
        None before there are two classes.
    phase : Phase
    queue : ndarray of shape (q,), int64
        Rows to be looked at in order, some of which may have labels.
    queue_rows : ndarray of shape (q, d)
    wanted : ndarray of shape (p,), int64
        Positions in the queue whose labels are asked for now.
    draws : int
        Times that rows were drawn from the pool.
    verifications : int
        Verifications begun, that of one class included.
    right : int
        Rows in a row that were right in this verification.
    idle : int
        Verifications in a row that failed without a new label.
    needed : int
        Rows in a row that this verification needs; zero outside one.
    cursor : int
        Last row that a stream has given.
    reads : int
        Reads of the whole pool.
    stopped : str
        Why the run has ended; empty before.
    trace : tuple of Step
    """

    rule: Rule
    labelled: Labelled
    separator: Separator | None = None
    phase: Phase = Phase.SEEDING
    queue: IndexArray = field(default_factory=lambda: np.empty(0, np.int64))
    queue_rows: AnyArray = field(default_factory=lambda: np.empty((0, 0)))
    wanted: IndexArray = field(default_factory=lambda: np.empty(0, np.int64))
    draws: int = 0
    verifications: int = 0
    right: int = 0
    idle: int = 0
    needed: int = 0
    cursor: int = -1
    reads: int = 0
    stopped: str = ""
    trace: Trace = ()

    @property
    def paid(self) -> int:
        """Labels that were asked for."""
        return int((self.labelled.phases != Phase.GIVEN).sum())

    def queued(self, found: Found | None) -> Queries:
        """Return the run with rows to look at next, or none."""
        none = np.empty(0, np.int64)
        if found is None:
            return replace(self, queue=none, queue_rows=self.queue_rows[:0], wanted=none)
        return replace(self, queue=found.indices, queue_rows=found.rows, wanted=none)

    def noted(self, closest: float = math.nan) -> Queries:
        """Return the run with one more step in its trace."""
        rule = self.separator
        step = Step(
            len(self.labelled),
            len(rule.core) if rule else 0,
            rule.margin if rule else math.inf,
            closest,
            self.phase,
        )
        return replace(self, trace=(*self.trace, step))

    def ended(self, why: str) -> Queries:
        """Return the run at its end."""
        return replace(self.queued(None), phase=Phase.DONE, stopped=why)
