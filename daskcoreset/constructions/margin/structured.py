r"""Maximum margin between the right answer and every other one, for answers of any kind.

A problem says how an example x and an answer y become one vector, :math:`\Phi(x, y)`, and which
wrong answer y' a separator w finds best: two functions. The margin of w is the least
:math:`\langle w, \Phi(x, y) - \Phi(x, y')\rangle` over all examples and all :math:`y' \neq y`.
The core set is made of triples (x, y, y'), and the loop is that of Fig. 1: solve on the core
set, find the worst triple of the data in one read, add it, until it lies within
:math:`1 - \epsilon` of the margin on the core set.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from daskcoreset.core.validation import check_share
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.constructions.margin.triple_solver import solve_triples
from daskcoreset.constructions.margin.triples import Place, Triples, worst_triples
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

if TYPE_CHECKING:
    from daskcoreset.inputs.blocks import RowBlocks
    from daskcoreset.constructions.margin.problem import StructuredProblem

__all__ = [
    "StructuredMargin",
    "StructuredStep",
    "structured_margin",
]


@dataclass(frozen=True)
class StructuredStep:
    """One read of the data.

    Attributes
    ----------
    n_core : int
        Triples in the core set on which the separator was found.
    margin : float
        On the core set; infinite before the first read.
    data_margin : float
        On all data, of the same separator.
    """

    n_core: int
    margin: float
    data_margin: float


@dataclass(frozen=True, eq=False)
class StructuredMargin:
    """A separator of answers, and the core set that it is of.

    Attributes
    ----------
    w : ndarray of shape (D,), float64
        Of length one; with a finite C less, for the slacks of core examples are coordinates of
        the same vector.
    margin : float
        On the core set: no separator has more on all data.
    data_margin : float
        On all data, with slacks.
    examples : ndarray of shape (m,), int64
        Number, in the data, of the first row of the example of each core triple.
    rivals : tuple of m ndarrays of int64
        The wrong answer of each.
    differences : ndarray of shape (m, D), float64
        Its vector, divided by the loss.
    dual : ndarray of shape (m,), float64
    n_examples : int
    converged : bool
        Whether `data_margin` is at least ``(1 - epsilon) * margin``; False after `max_passes`.
    trace : tuple of StructuredStep
        One for every read.
    """

    w: FloatArray
    margin: float
    data_margin: float
    examples: IndexArray
    rivals: tuple[IndexArray, ...]
    differences: FloatArray
    dual: FloatArray
    n_examples: int
    converged: bool
    trace: tuple[StructuredStep, ...]

    @property
    def factor(self) -> float:
        """The certificate: at least this share of the largest margin there is."""
        return self.data_margin / self.margin

    @property
    def passes(self) -> int:
        """Reads of the data."""
        return len(self.trace)

    def size_bound(self, epsilon: float) -> float:
        r"""Most triples that Corollary 3.2 allows when one is added at a time.

        :math:`1 + 4 R^2 / (\\epsilon^2 \\rho^2)`, R the length of the longest one. More at a
        time need fewer reads, at most so many.
        """
        longest = float(np.square(self.differences).sum(axis=1).max())
        return 1.0 + 4.0 * longest / (epsilon * self.margin) ** 2


def structured_margin(
    blocks: RowBlocks,
    problem: StructuredProblem,
    epsilon: float = 0.1,
    *,
    classes: AnyArray | None = None,
    grouped: bool = False,
    C: float = math.inf,
    per_block: int = 10,
    max_passes: int | None = None,
    report: Callable[[StructuredStep], None] | None = None,
) -> StructuredMargin:
    """Find a separator whose margin is within ``1 - epsilon`` of the largest one.

    Parameters
    ----------
    blocks : RowBlocks
        Rows with labels.
    problem : StructuredProblem
    epsilon : float, default=0.1
    classes : ndarray of shape (K,), sorted, or None, default=None
        Labels are numbered by their places in it; None takes whole numbers as they are.
    grouped : bool, default=False
        Whether neighbouring rows of one group are an example; then `blocks` was opened with
        the numbers of groups for `sample_weight`. False for one row an example.
    C : float, default=inf
        Infinite for data that can be separated. Otherwise every core example has a slack of its
        own, which all its wrong answers share, by the squared hinge loss with this C.
    per_block : int, default=10
        Triples that a block may add in a read, of different labels where there are such. With
        one a read, fewer triples are needed, and many more reads.
    max_passes : int or None, default=None
        Reads of the data at most; None for as many as it takes, which the bound of Lemma 3.1
        limits.
    report : callable or None, default=None
        Gets a `StructuredStep` after every read.

    Returns
    -------
    StructuredMargin

    Raises
    ------
    InseparableError
        If no separator has a margin, and C is infinite: with the convex combination that shows
        it. (`daskcoreset.constructions.margin.labelled`)
    InvalidInputError
        If epsilon or a label cannot be used.

    References
    ----------
    Har-Peled, Roth and Zimak (2007), Fig. 1 and the section on structured output; Crammer and
    Singer (2001) for its multi-class form.
    """
    check_share("epsilon", epsilon)
    core = Triples.none(problem.dimension)
    found = None
    w, rho, trace = np.zeros(problem.dimension), math.inf, []
    while True:
        slacks: dict[Place, float] = {} if found is None else found.slack_of(core)
        seen = worst_triples(
            blocks, problem, w, slacks=slacks, classes=classes, grouped=grouped, count=per_block
        )
        trace.append(StructuredStep(len(core), rho, seen.least if found else 0.0))
        if report is not None:
            report(trace[-1])
        enough = found is not None and seen.least >= (1.0 - epsilon) * rho
        new = seen.worst.below((1.0 - epsilon) * rho).missing_from(core)
        spent = max_passes is not None and len(trace) >= max_passes
        if enough or not len(new) or (spent and found is not None):
            break
        core = core.and_also(new)
        found = solve_triples(core, seen.numbers(core.places), C)
        w, rho = found.w, found.margin
    if found is None:
        raise InvalidInputError("X holds no example; pass at least one.")
    return StructuredMargin(
        w=w,
        margin=rho,
        data_margin=seen.least,
        examples=seen.numbers(core.places),
        rivals=core.rivals,
        differences=core.differences,
        dual=found.dual,
        n_examples=seen.n_examples,
        converged=enough,
        trace=tuple(trace),
    )
