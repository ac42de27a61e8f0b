"""The largest margin when k rows are left out: Fig. 4 and Lemma 5.2 of Har-Peled et al."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from daskcoreset.constructions.margin.core_set import solve_margin
from daskcoreset.constructions.margin.outlier_problems import (
    Draws,
    MarginProblem,
    ProblemRows,
    SharedProblems,
)
from daskcoreset.constructions.margin.rows import (
    FirstRead,
    find_classes,
    refuse_wide,
    signs_of,
)
from daskcoreset.constructions.margin.separators import Kernel, Separator
from daskcoreset.core.errors import InvalidInputError, warn_user
from daskcoreset.core.linalg import dense_rows
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.core.validation import check_count, check_flag, check_share, is_choice
from daskcoreset.execution.engine import BlockResults
from daskcoreset.inputs.blocks import RowBlocks, row_blocks
from daskcoreset.inputs.cubes import refuse_cube


class InseparableRestError(InvalidInputError):
    """No separator was found even with the rows that may be left out."""


@dataclass(frozen=True, eq=False, repr=False)
class OutlierMargin:
    r"""A separator, and its certificate.

    Attributes
    ----------
    separator : Separator
        Signed distance of a row from the hyperplane; its normal has length one.
    margin : float
        :math:`\rho_k` on all the data, measured by a read: that of the best hyperplane with
        this normal when the k rows are left out.
    outliers : ndarray of shape (k,), int64
        Numbers of the rows left out, those of least margin, in increasing order.
    probability : float
        With which `margin` is at least 1 - epsilon of the largest there is; one for "exact"
        and "subsets".
    classes : ndarray of shape (2,)
    method : {"exact", "random", "subsets"}
    n_problems : int
        Hard-margin problems that were looked into.
    reads : int
    n_rows : int
    epsilon : float
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
    classes: AnyArray
    method: str
    n_problems: int
    reads: int
    n_rows: int
    epsilon: float
    core: WeightedPoints
    core_margin: float

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.method}: margin {self.margin:.6g} without "
            f"{len(self.outliers)} of {self.n_rows:,} rows, probability {self.probability:.4g}, "
            f"{self.n_problems:,} problems, {self.reads} reads)"
        )

    @property
    def w(self) -> FloatArray:
        """Normal of length one, of shape (d,)."""
        assert self.separator.w is not None  # noqa: S101 - no kernels here
        return self.separator.w

    @property
    def b(self) -> float:
        """Intercept; zero through the origin."""
        return self.separator.intercept


# Separators measured by one read.
_PER_READ = 512


def try_all_subsets(shared: SharedProblems, n_used: int, limit: int) -> int:
    r"""Measure the hard margin of every subset of c rows, for c = 1, 2, 4, ...

    It stops when a core set of the clean data has no more than c rows: at the latest with
    d rows (with an intercept d + 1), which determine every separator, and before that where
    :math:`c \ge 32 R^2 / (\rho_k^2 \epsilon)` with the largest :math:`\rho_k` found.

    Parameters
    ----------
    shared : SharedProblems
        Its best candidate improves.
    n_used : int
        Rows with a weight.
    limit : int
        Subsets at most.

    Returns
    -------
    int
        Subsets that were tried.

    Raises
    ------
    InvalidInputError
        If there are more of them than `limit`.

    References
    ----------
    Har-Peled, Roth and Zimak (2007), Fig. 4; its test compares with a guess of the margin,
    here with the margin found.
    """
    # Every row of the data, for there are few; any normal of length one finds them.
    axis = np.eye(1, shared.rows.points.shape[1])
    rows = shared.measure(axis, n_keep=n_used).rows
    radius = float(np.sqrt(np.square(rows.points).sum(axis=1).max()))
    enough = min(n_used, rows.points.shape[1] + int(shared.intercept))
    tried, c = 0, 1
    while True:
        c = min(c, enough)
        tried += math.comb(n_used, c)
        if tried > limit:
            raise InvalidInputError(
                f'method="subsets" has to try {tried:,} subsets of {c} of {n_used} rows and '
                f'max_problems is {limit}; pass method="auto".'
            )
        normals: list[FloatArray] = []
        for subset in map(list, itertools.combinations(range(n_used), c)):
            w = _normal(rows.points[subset], rows.signs[subset], intercept=shared.intercept)
            if w is not None:
                normals.append(w)
        for start in range(0, len(normals), _PER_READ):
            shared.measure(np.array(normals[start : start + _PER_READ]))
        margin = 0.0 if shared.best is None else max(0.0, shared.best.margin)
        fits = margin > 0 and c >= 32 * (radius / margin) ** 2 / shared.epsilon
        if c == enough or fits:
            return tried
        c *= 2


def _normal(rows: FloatArray, signs: FloatArray, *, intercept: bool) -> FloatArray | None:
    if intercept and abs(signs.sum()) == len(signs):
        return None  # one class
    hard = solve_margin(rows, signs, intercept=intercept)
    return hard.w if hard.separable else None


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
    """One search."""

    def __init__(
        self, options: OutlierMaxMargin, blocks: RowBlocks, read: BlockResults[FirstRead]
    ) -> None:
        self.options = options
        first = read.value
        if options.k > first.n_used - 2:
            raise InvalidInputError(
                f"k is {options.k}, but X has {first.n_used} rows with a weight; pass a smaller k."
            )
        rows = first.first_rows(_STARTS)
        points = dense_rows(rows.block.points).astype(np.float64)
        signs, no_subsets = signs_of(rows.block, first.classes), np.empty((len(rows), 0), bool)
        start = ProblemRows(points, signs, rows.indices, no_subsets)
        self.n_rows = read.n_rows
        self.n_used = first.n_used
        self.n_problems = 0
        self.shared = SharedProblems(
            blocks,
            first.classes,
            dict(read.offsets()),
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
            raise InseparableRestError(
                f"X and y are not separable when {k} rows are left out"
                + ("" if probability == 1.0 else f" (found with probability {probability:.3g})")
                + "; pass a larger k, or fit a soft margin."
            )
        separator = Separator(Kernel(), best.w, intercept=best.intercept)
        return OutlierMargin(
            separator,
            best.margin,
            best.left_out,
            probability,
            self.shared.classes,
            method,
            self.n_problems,
            self.shared.reads,
            self.n_rows,
            self.options.epsilon,
            *self.shared.core_without(best.left_out),
        )

    def _find(self) -> tuple[str, float]:
        method = self.options.method
        if method == "subsets":
            self.n_problems = try_all_subsets(self.shared, self.n_used, self.options.max_problems)
            return "subsets", 1.0
        if method != "random" and self._remove():
            return "exact", 1.0
        if method == "exact":
            raise InvalidInputError(
                f"the exact search needs more than max_problems={self.options.max_problems} "
                f'problems or max_passes={self.options.max_passes}; pass more, or method="random".'
            )
        return "random", self._draw()

    def _remove(self) -> bool:
        """Leave rows out one by one, wherever they may matter; False if there are too many ways."""
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
        """Solve on random subsets; return the probability that one of them had no outlier."""
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
                f"{done} of {n_needed:,} draws were made, for a probability of {probability:.3g} "
                f"and not {options.confidence}; pass a larger max_problems."
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


Method = Literal["auto", "exact", "random", "subsets"]

# Names of the methods.
METHODS = ("auto", "exact", "random", "subsets")

# Rows of each class to start from.
_STARTS = 16


@dataclass(frozen=True)
class OutlierMaxMargin:
    r"""The largest margin that is left when at most k rows are left out.

    Parameters
    ----------
    k : int, default=1
        Rows left out.
    epsilon : float, default=0.1
        As in `MaxMarginCoreset`, against the best choice of k rows.
    intercept : bool, default=False
        As in `MaxMarginCoreset`.
    method : {"auto", "exact", "random", "subsets"}, default="auto"
        "auto" takes "exact" where it gets by with `max_problems`, else "random".
    confidence : float, default=0.99
        Probability required of "random".
    max_problems : int, default=2000
        Hard-margin problems at most. Where "random" needs more draws, it makes these, warns,
        and the result has the probability that is left.
    max_passes : int, default=100
        Reads for each batch of problems, at most.
    random_state : int, Generator, RandomState or None, default=None
        For "random".
    chunks : int or "auto", default="auto"
    on_invalid : {"raise", "drop"}, default="raise"
        As in `daskcoreset.build`.

    Raises
    ------
    InvalidInputError
        If a parameter is out of range.

    Notes
    -----
    The probability of "random" is that some draw is lucky. Besides, the
    best separator is improved by leaving out its k worst rows and solving again until nothing
    changes, which can only help.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [-1.0, 0.0], [-2.0, 1.0], [-3.0, 0.0]])
    >>> found = OutlierMaxMargin(k=1).run(X, [1, 1, 0, 0, 1])
    >>> found.outliers, round(found.margin, 6)
    (array([4]), 1.0)

    References
    ----------
    Har-Peled, Roth and Zimak (2007), Fig. 4 and Lemma 5.2; for "exact", Matousek (1995), On
    geometric optimization with few violated constraints.
    """

    k: int = 1
    epsilon: float = 0.1
    intercept: bool = False
    method: Method = "auto"
    confidence: float = 0.99
    max_problems: int = 2000
    max_passes: int = 100
    random_state: RandomState = None
    chunks: int | Literal["auto"] = "auto"
    on_invalid: Literal["raise", "drop"] = "raise"

    def __post_init__(self) -> None:
        check_count("k", self.k, 0)
        check_share("epsilon", self.epsilon)
        check_share("confidence", self.confidence)
        check_flag("intercept", self.intercept)
        check_count("max_problems", self.max_problems)
        check_count("max_passes", self.max_passes)
        if not is_choice(self.method, METHODS):
            raise InvalidInputError(f"method is {self.method!r}; pass one of {', '.join(METHODS)}.")

    def run(self, X: Any, y: Any, sample_weight: Any = None) -> OutlierMargin:
        """Find the separator.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            Any input of `daskcoreset.build`.
        y : array-like of shape (n,), or str
            Two labels of any kind; the greater one is on the positive side.
        sample_weight : array-like of shape (n,), or str, optional
            Rows of weight zero are left out, and do not count among the k.

        Returns
        -------
        OutlierMargin

        Raises
        ------
        InvalidInputError
            If there are not two classes, if k rows would leave nothing of a class, or if no
            separator was found without k rows.

        Warns
        -----
        CoresetWarning
            If the probability wanted is not reached.
        """
        refuse_cube("a margin coreset", X)
        blocks = row_blocks(X, y, sample_weight, chunks=self.chunks, on_invalid=self.on_invalid)
        return self.run_blocks(blocks)

    def run_blocks(
        self, blocks: RowBlocks, survey: BlockResults[FirstRead] | None = None
    ) -> OutlierMargin:
        """Find the separator for rows that are opened already.

        Parameters
        ----------
        blocks : RowBlocks
            With labels.
        survey : BlockResults of FirstRead, optional
            The result of `find_classes`; saves a read.

        Returns
        -------
        OutlierMargin
        """
        refuse_wide(blocks)
        return Search(self, blocks, survey or find_classes(blocks, n_keep=_STARTS)).result()
