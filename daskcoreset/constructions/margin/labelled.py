"""Rows whose labels are known, and the separator of the core set among them."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.solvers.hard import hard_margin, hard_margin_bias
from daskcoreset.constructions.margin.pool_reads import heights
from daskcoreset.constructions.margin.separability import InseparableError
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

if TYPE_CHECKING:
    from daskcoreset.solvers.hard import HardMargin

__all__ = ["Labelled", "Phase", "Rule", "Separator", "corrected", "separate"]


class Phase(enum.IntEnum):
    """What a label is, or was, asked for; the numbers are stored."""

    GIVEN = 0
    SEEDING = 1
    QUERYING = 2
    VERIFYING = 3
    DONE = 4


@dataclass(frozen=True)
class Rule:
    """How rows are chosen and when to stop; see `daskcoreset.margin.ActiveMaxMargin`."""

    epsilon: float
    error: float
    delta: float
    intercept: bool
    batch: int
    stream: bool
    max_labels: int | None
    C: float
    seed: int


@dataclass(frozen=True, eq=False)
class Separator:
    """A separator of the core set.

    Attributes
    ----------
    w : ndarray of shape (d,), float64
        The rule is the sign of ``w @ x + b``. Of length one, or less with a finite C, for the
        slacks of the core rows are coordinates of the same vector.
    b : float
    margin : float
        On the core set, its slacks included.
    core : ndarray of shape (m,), int64
        Positions of the core rows among the labelled ones.
    dual : ndarray of shape (m,), float64
        Their dual coefficients.
    slack : ndarray of shape (m,), float64
        What each core row gains by its slack; zeros without a finite C.
    """

    w: FloatArray
    b: float
    margin: float
    core: IndexArray
    dual: FloatArray
    slack: FloatArray


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows with labels, in the order in which they were told.

    Attributes
    ----------
    indices : ndarray of shape (m,), int64
        Numbers of the rows in the pool.
    rows : ndarray of shape (m, d)
    codes : ndarray of shape (m,), int64
        Number of the label in `classes`.
    phases : ndarray of shape (m,), int64
        What each was asked for.
    classes : tuple
        Values of labels in the order of their appearance.
    """

    indices: IndexArray
    rows: AnyArray
    codes: IndexArray
    phases: IndexArray
    classes: tuple[Any, ...] = ()

    def __len__(self) -> int:
        return len(self.indices)

    @cached_property
    def position_of(self) -> dict[int, int]:
        """Position of every row by its number in the pool."""
        return {index: i for i, index in enumerate(self.indices.tolist())}

    @property
    def both(self) -> bool:
        """Whether both classes are there."""
        return bool(len(self.codes)) and bool((self.codes != self.codes[0]).any())

    @property
    def signs(self) -> FloatArray:
        """+1 for the greater of two classes, -1 for the other."""
        positive = int(len(self.classes) > 1 and self.classes[1] > self.classes[0])
        return np.where(self.codes == positive, 1.0, -1.0)

    def with_rows(
        self,
        indices: IndexArray,
        rows: AnyArray,
        codes: IndexArray,
        phase: Phase,
        classes: Sequence[Any],
    ) -> Labelled:
        """Return these rows and more."""
        return Labelled(
            np.concatenate([self.indices, indices]),
            np.concatenate([self.rows, rows]),
            np.concatenate([self.codes, codes]),
            np.concatenate([self.phases, np.full(len(indices), int(phase), dtype=np.int64)]),
            tuple(classes),
        )

    def heights(self, separator: Separator) -> FloatArray:
        """Margin of every row, without slacks: negative where it is misclassified."""
        products = heights(self.rows, separator.w, separator.b)
        margins: FloatArray = self.signs * products
        return margins


def separate(
    labelled: Labelled,
    before: Separator | None,
    add: IndexArray,
    rule: Rule,
) -> Separator:
    r"""Add rows to the core set, and then labelled rows that its separator comes too close to.

    Parameters
    ----------
    labelled : Labelled
        With both classes.
    before : Separator or None
        None for a first core set.
    add : ndarray of int64
        Positions of the rows to add.
    rule : Rule
        Rows of margin below ``1 - epsilon`` times that on the core set are too close. With a
        finite C every core row has a coordinate of its own with the value ``1 / sqrt(C)``, in
        which all rows are separable: the squared hinge loss.

    Returns
    -------
    Separator

    Raises
    ------
    InseparableError
    """
    signs = labelled.signs
    if before is None:
        firsts = np.array([int((signs == s).argmax()) for s in (1.0, -1.0)])
        core, dual = np.unique(np.concatenate([firsts, add])), None
    else:
        core = np.concatenate([before.core, add])
        dual = np.concatenate([before.dual, np.zeros(len(add))])
    while True:
        found = _solve(labelled, core, dual, rule)
        margins = labelled.heights(found)
        margins[core] = np.inf
        worst = int(margins.argmin())
        if margins[worst] >= (1.0 - rule.epsilon) * found.margin:
            return found
        core, dual = np.append(core, worst), np.append(found.dual, 0.0)


def _solve(
    labelled: Labelled,
    core: IndexArray,
    dual: FloatArray | None,
    rule: Rule,
) -> Separator:
    C = rule.C
    signs, d = labelled.signs[core], labelled.rows.shape[1]
    rows = labelled.rows[core].astype(np.float64)
    if np.isfinite(C):
        rows = np.concatenate([rows, np.diag(signs / np.sqrt(C))], axis=1)
    found = (
        hard_margin_bias(rows, signs, start=dual)
        if rule.intercept
        else hard_margin(rows * signs[:, None], start=dual)
    )
    if not found.separable:
        raise _inseparable(labelled, core, found)
    assert found.w is not None  # noqa: S101 - of explicit rows
    slack = found.w[d:] * signs / np.sqrt(C) if np.isfinite(C) else np.zeros(len(core))
    return Separator(found.w[:d], found.intercept, found.margin, core, found.dual, slack)


def _inseparable(labelled: Labelled, core: IndexArray, found: HardMargin) -> InseparableError:
    held = np.flatnonzero(found.dual > 0.0)
    held = held[np.argsort(-found.dual[held], kind="stable")]
    positions = core[held]
    shown = [
        f"{labelled.indices[i]} ({labelled.classes[labelled.codes[i]]!r})" for i in positions[:6]
    ]
    more = f" and {len(positions) - 6} more" if len(positions) > 6 else ""
    twins = len(positions) == 2 and np.array_equal(*labelled.rows[positions])
    why = (
        "are the same row with two labels"
        if twins
        else "hold a convex combination that no separator can tell apart"
    )
    return InseparableError(
        f"the labels contradict each other: rows {', '.join(shown)}{more} {why}; correct a label "
        f"with correct(), or allow errors with soften().",
        labelled.indices[positions],
        found.dual[held],
    )


def corrected(labelled: Labelled, position: int, code: int) -> Labelled:
    """Return the rows with another label for one of them."""
    codes = labelled.codes.copy()
    codes[position] = code
    return replace(labelled, codes=codes)
