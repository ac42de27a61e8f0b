"""The separator of a core set of triples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from daskcoreset.solvers.hard import hard_margin
from daskcoreset.constructions.margin.separability import InseparableError
from daskcoreset.core.typing import FloatArray, IndexArray

if TYPE_CHECKING:
    from daskcoreset.constructions.margin.triples import Place, Triples

__all__ = ["Solved", "solve_triples"]


@dataclass(frozen=True, eq=False)
class Solved:
    """The separator of some triples.

    Attributes
    ----------
    w : ndarray of shape (D,), float64
    margin : float
        With slacks.
    dual : ndarray of shape (m,), float64
    slacks : ndarray of shape (m,), float64
        What the example of each triple gains.
    """

    w: FloatArray
    margin: float
    dual: FloatArray
    slacks: FloatArray

    def slack_of(self, core: Triples) -> dict[Place, float]:
        """Return the slack of every example that has one."""
        places = map(tuple, core.places.tolist())
        return {p: s for p, s in zip(places, self.slacks.tolist(), strict=True) if s}


def solve_triples(core: Triples, numbers: IndexArray, C: float) -> Solved:
    """Find the separator of largest margin on some triples.

    Parameters
    ----------
    core : Triples
    numbers : ndarray of shape (m,), int64
        Of the first rows of their examples in the whole data.
    C : float
        As in `structured_margin`.

    Returns
    -------
    Solved

    Raises
    ------
    InseparableError
    """
    D, rows = core.differences.shape[1], core.differences
    slack_columns = np.zeros(len(core), dtype=np.int64)
    if math.isfinite(C):
        _, slack_columns = np.unique(core.places, axis=0, return_inverse=True)
        slack_columns = slack_columns.reshape(-1)
        own = np.equal.outer(slack_columns, np.arange(slack_columns.max() + 1)) / math.sqrt(C)
        rows = np.concatenate([rows, own], axis=1)
    found = hard_margin(rows)  # from scratch: a start with many new rows takes longer
    if not found.separable:
        raise _inseparable(core, numbers, found.dual)
    assert found.w is not None  # noqa: S101 - of explicit rows
    slacks = np.zeros(len(core))
    if math.isfinite(C):
        slacks = found.w[D:][slack_columns] / math.sqrt(C)
    return Solved(found.w[:D], found.margin, found.dual, slacks)


def _inseparable(core: Triples, numbers: IndexArray, dual: FloatArray) -> InseparableError:
    held = np.flatnonzero(dual > 0.0)
    held = held[np.argsort(-dual[held], kind="stable")]
    shown = [
        f"{dual[i]:.3g} for row {numbers[i]}, label {_short(core.answers[i])} against "
        f"{_short(core.rivals[i])}"
        for i in held[:4]
    ]
    more = f", and {len(held) - 4} more" if len(held) > 4 else ""
    return InseparableError(
        f"y cannot be separated from other answers: a convex combination of differences is zero "
        f"({'; '.join(shown)}{more}); correct the labels, add features, or allow errors with a "
        f"finite C.",
        numbers[held],
        dual[held],
    )


def _short(y: IndexArray) -> str:
    return " ".join(map(str, y[:8].tolist())) + (" ..." if len(y) > 8 else "")
