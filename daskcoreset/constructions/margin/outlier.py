"""The largest margin when k rows are left out: Fig. 4 and Lemma 5.2 of Har-Peled et al."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from daskcoreset.constructions.margin.core_set import Separator
from daskcoreset.constructions.margin.outlier_problems import (
    Draws,
    MarginProblem,
    ProblemRows,
    SharedProblems,
)
from daskcoreset.constructions.margin.rows import FirstRead, signs_of
from daskcoreset.core.linalg import dense_rows
from daskcoreset.core.messages import warn_user
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.typing import FloatArray, IndexArray
from daskcoreset.errors import InvalidInputError, NotSeparableError
from daskcoreset.execution.engine import BlockResults
from daskcoreset.inputs.blocks import RowBlocks

Method = Literal["auto", "exact", "random"]

# Rows of each class to start from.
_STARTS = 16


@dataclass(frozen=True, eq=False, repr=False)
class OutlierMargin:
    r"""A separator, and its certificate.

    Attributes
    ----------
    separator : Separator
        Signed distance of a row from the hyperplane. Its normal has length one.
    margin : float
        :math:`\rho_k` on all the data, measured by a read: that of the best hyperplane with
        this normal when the k rows are left out.
    outliers : ndarray of shape (k,), int64
        Numbers of the rows left out, those of least margin, in increasing order.
    probability : float
        With which `margin` is at least 1 - epsilon of the largest there is. One for "exact".
    method : {"exact", "random"}
    n_problems : int
        Hard-margin problems that were solved.
    reads : int
    n_rows : int
    core : WeightedPoints
        Rows that determine the separator: those with a coefficient in the last problem that was
        solved without the k rows, with weights of one and labels.
    core_margin : float
        The largest margin on `core`.
    """

    separator: Separator
    margin: float
    outliers: IndexArray
    probability: float
    method: str
    n_problems: int
    reads: int
    n_rows: int
    core: WeightedPoints
    core_margin: float

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.method}: margin {self.margin:.6g} without "
            f"{len(self.outliers)} of {self.n_rows:,} rows, probability {self.probability:.4g}, "
            f"{self.n_problems:,} problems, {self.reads} reads)"
        )


@dataclass(frozen=True)
class OutlierOptions:
    """Parameters of a search, as in `daskcoreset.estimators.OutlierMaxMarginClassifier`."""

    k: int
    epsilon: float
    intercept: bool
    method: Method
    confidence: float
    max_problems: int
    max_passes: int
    random_state: RandomState


def n_draws(n_support: int, k: int, confidence: float) -> tuple[int, float, float]:
    r"""Draws of which at least one has no outlier with probability `confidence`.

    Parameters
    ----------
    n_support : int
        Rows that must be in a subset, s.
    k : int
        Rows that must not.
    confidence : float

    Returns
    -------
    draws : int
    share : float
        Probability f with which a row is in a subset.
    luck : float
        Probability :math:`f^s (1-f)^k` of one draw.

    Examples
    --------
    >>> n_draws(3, 2, 0.99)
    (131, 0.6, 0.03456)
    """
    share = n_support / (n_support + k)
    luck = share**n_support * (1.0 - share) ** k
    if luck >= 1.0:
        return 1, share, 1.0
    draws = math.log1p(-confidence) / math.log1p(-luck) if luck > 0 else math.inf
    return (math.ceil(draws) if draws < 2**62 else 2**62), share, luck


class Search:
    """One search for the rows to leave out."""

    def __init__(
        self, blocks: RowBlocks, first: BlockResults[FirstRead], options: OutlierOptions
    ) -> None:
        self.options = options
        n_used, classes = first.value.n_used, first.value.classes
        if options.k > n_used - 2:
            raise InvalidInputError(
                f"k is {options.k}, but X has {n_used} rows of positive weight",
                argument="k",
                remedy="pass a smaller k",
            )
        rows = first.value.first_rows(_STARTS)
        points = dense_rows(rows.block.points).astype(np.float64)
        signs, no_subsets = signs_of(rows.block, classes), np.empty((len(rows), 0), bool)
        start = ProblemRows(points, signs, rows.indices, no_subsets)
        self.n_rows = first.n_rows
        self.n_problems = 0
        self.shared = SharedProblems(
            blocks,
            classes,
            dict(first.offsets()),
            options.k,
            options.intercept,
            options.epsilon,
            start,
            reads=1,
        )
        # So that without any k rows something of each class is left.
        self.direction = _direction(start)
        self.shared.rows = start.with_rows(self.shared.measure(self.direction[None]).rows)

    def result(self) -> OutlierMargin:
        """Run the search that the options define."""
        method, probability = self._find()
        self._improve()
        best = self.shared.best
        if best is None or best.margin <= 0:
            k = self.options.k
            raise NotSeparableError(
                f"X and y are not separable when {k} rows are left out"
                + ("" if probability == 1.0 else f" (found with probability {probability:.3g})"),
                argument="k",
                remedy="pass a larger k, or fit a soft margin",
            )
        return OutlierMargin(
            Separator(best.w, best.intercept),
            best.margin,
            best.left_out,
            probability,
            method,
            self.n_problems,
            self.shared.reads,
            self.n_rows,
            *self.shared.core_without(best.left_out),
        )

    def _find(self) -> tuple[str, float]:
        method = self.options.method
        if method != "random" and self._remove():
            return "exact", 1.0
        if method == "exact":
            raise InvalidInputError(
                f"the exact search needs more than max_problems={self.options.max_problems} "
                f"problems or max_passes={self.options.max_passes}",
                remedy='raise these limits, or pass method="random"',
            )
        return "random", self._draw()

    def _remove(self) -> bool:
        """Leave rows out one by one, wherever they may matter. False if there are too many ways."""
        level, depth = [MarginProblem()], 0
        while True:
            self._solve(level)
            if any(problem.state == "open" for problem in level):
                return False
            if depth == self.options.k:
                return True
            depth += 1
            children = {
                problem.removed | {int(row)} for problem in level for row in problem.support
            }
            if self.n_problems + len(children) > self.options.max_problems:
                return False
            level = [MarginProblem(removed) for removed in sorted(children, key=sorted)]

    def _solve(self, problems: list[MarginProblem], draws: Draws | None = None) -> None:
        self.n_problems += len(problems)
        self.shared.solve(problems, max_passes=self.options.max_passes, draws=draws)

    def _draw(self) -> float:
        """Solve on random subsets. Return the probability that one of them had no outlier."""
        options, shared = self.options, self.shared
        # The nearest point of a hull is a combination of d points, of two hulls of d + 1.
        n_support = shared.blocks.schema.n_features + int(options.intercept)
        n_needed, share, luck = n_draws(n_support, options.k, options.confidence)
        count = min(n_needed, options.max_problems)
        seed = resolve_seed(options.random_state)
        self._improve()
        draws = Draws(seed, share, tuple(range(count)))
        rows = shared.rows
        shared.rows = shared.measure(np.tile(self.direction, (count, 1)), draws).rows
        # The probability holds for exact solutions only: those of a subset up to epsilon
        # depend on rows outside of it.
        epsilon, shared.epsilon = shared.epsilon, 1e-9
        problems = [MarginProblem(subset=subset) for subset in range(count)]
        self._solve(problems, draws)
        ended = [problem for problem in problems if problem.state in ("solved", "open")]
        normals = [problem.w for problem in ended if problem.w is not None]
        if normals:
            shared.measure(np.array(normals))
        shared.rows, shared.epsilon = rows, epsilon
        done = sum(problem.state != "open" for problem in problems)
        probability = -math.expm1(done * math.log1p(-luck)) if luck < 1.0 else 1.0
        if probability < options.confidence:
            warn_user(
                f"{done} of {n_needed:,} draws were made, so the probability is "
                f"{probability:.3g} instead of {options.confidence}; pass a larger "
                "max_problems."
            )
        return probability

    def _improve(self) -> None:
        """Leave out the worst rows of the best separator and solve again, while it helps.

        The margin never falls, for the separator itself has it on the rows that are left.
        """
        shared = self.shared
        while True:
            before = shared.best
            removed = frozenset() if before is None else frozenset(before.left_out.tolist())
            self._solve([MarginProblem(removed)])
            after = shared.best
            if after is before or (before and after and after.margin <= before.margin * (1 + 1e-9)):
                return


def _direction(rows: ProblemRows) -> FloatArray:
    """Of length one, from the mean of one class to that of the other."""
    means = [rows.points[rows.signs == sign].mean(axis=0) for sign in (1.0, -1.0)]
    gap: FloatArray = means[0] - means[1]
    length = float(np.linalg.norm(gap))
    return gap / length if length else np.eye(len(gap))[0]


def outlier_margin(
    blocks: RowBlocks, first: BlockResults[FirstRead], options: OutlierOptions
) -> OutlierMargin:
    """Find the largest margin that is left when at most k rows are left out.

    Parameters
    ----------
    blocks : RowBlocks
        With labels of two classes.
    first : BlockResults of FirstRead
        Result of `find_classes`.
    options : OutlierOptions

    Returns
    -------
    OutlierMargin

    Raises
    ------
    InvalidInputError
        If k rows would leave nothing of a class.
    NotSeparableError
        If no separator was found without k rows.

    Warns
    -----
    CoresetWarning
        If the probability wanted is not reached.

    Notes
    -----
    The probability of "random" is that some draw is lucky. Besides, the best separator is improved
    by leaving out its k worst rows and solving again until nothing changes, which can only help.

    References
    ----------
    Har-Peled, Roth and Zimak (2007), Fig. 4 and Lemma 5.2. For "exact", Matousek (1995), On
    geometric optimization with few violated constraints.
    """
    return Search(blocks, first, options).result()
