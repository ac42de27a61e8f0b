"""The largest margin when k rows are left out: Fig. 4 and Lemma 5.2 of Har-Peled et al.

Many hard-margin problems, each on some of the rows, share every read. Each is a core-set loop. A
read finds the worst rows for all of their separators, and all problems may use them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from daskcoreset.constructions.class_summary import ClassSummary
from daskcoreset.constructions.margin.core_set import (
    TOLERANCE,
    Found,
    floors_of,
    grow_core_set,
    signs_of,
)
from daskcoreset.core.block import Block
from daskcoreset.core.linalg import dense_rows, inner_products
from daskcoreset.core.messages import warn_user
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.random import RandomState, Stage, resolve_seed, stream
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.errors import InvalidInputError, NotSeparableError
from daskcoreset.execution.engine import map_reduce
from daskcoreset.execution.select import SelectedRows, row_keys, row_numbers, smallest
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.solvers.hard_margin import HardMargin, hard_margin

Method = Literal["auto", "exact", "random"]

# Rows of each class to start from.
_STARTS = 16

# The epsilon of random subsets.
_EXACT = 1e-9

# Key of a row where there is none.
_NONE = -1


@dataclass(frozen=True, eq=False, repr=False)
class OutlierMargin:
    r"""A separator, and its certificate.

    Attributes
    ----------
    w : ndarray of shape (d,), float64
        Unit normal.
    intercept : float
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
        Rows that determine the separator, with weights of one and labels. They have a coefficient
        in the last problem, which was solved without the k rows.
    core_margin : float
        The largest margin on `core`.
    """

    w: FloatArray
    intercept: float
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


# --- the smallest margins of many separators -------------------------------------------------


@dataclass(frozen=True)
class Subsets:
    """Random subsets of the rows, without a list of them.

    Attributes
    ----------
    salt : int
        Below 2**64.
    share : float
        Every row is in a subset with this probability, on its own.

    Examples
    --------
    >>> Subsets(7, 0.5).hold(np.arange(5), [0, 1]).shape
    (5, 2)
    """

    salt: int
    share: float

    def hold(self, keys: IndexArray, subsets: Sequence[int]) -> Any:
        """Which rows are in which subsets, bool of shape (m, n_subsets)."""
        salts = _mixed(np.array(subsets, dtype=np.uint64) + np.uint64(self.salt))
        numbers = _mixed(_mixed(keys.astype(np.uint64))[..., None] + salts)
        return (numbers >> np.uint64(11)) * 2.0**-53 < self.share


def _mixed(numbers: AnyArray) -> AnyArray:
    """Hash numbers, by the generator SplitMix64 of Steele, Lea and Flood (2014)."""
    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(numbers ^ (numbers >> np.uint64(31)))


@dataclass(frozen=True, eq=False)
class MarginQuery:
    """Separators, and how many of their smallest margins to return.

    Attributes
    ----------
    normals : ndarray of shape (q, d), float64
    classes : ndarray of shape (2,)
        Labels of the classes -1 and +1.
    n_keep : int
        Margins of each class.
    subsets : Subsets or None, default=None
        With it, separator j sees the rows of subset `numbers[j]` only.
    numbers : tuple of int
    """

    normals: FloatArray
    classes: AnyArray
    n_keep: int
    subsets: Subsets | None = None
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class SmallestMargins:
    r"""The smallest margins of every separator in some blocks, and the rows that have them.

    Attributes
    ----------
    values : ndarray of shape (2, n_keep, q), float64
        Smallest :math:`y \langle w, x\rangle` of the classes +1 and -1, increasing. Infinity
        where there are fewer rows.
    keys : ndarray of shape (2, n_keep, q), int64
        Keys of the rows that have them, -1 for none.
    rows : SelectedRows
        These rows, each once.
    """

    values: FloatArray
    keys: IndexArray
    rows: SelectedRows

    def merged(self, other: SmallestMargins) -> SmallestMargins:
        """Return the smallest margins of these blocks and of the next ones."""
        values = np.concatenate([self.values, other.values], axis=1)
        keys = np.concatenate([self.keys, other.keys], axis=1)
        order = np.argsort(values, axis=1, kind="stable")[:, : self.values.shape[1]]
        keys = np.take_along_axis(keys, order, axis=1)
        rows = self.rows.joined(other.rows)
        rows = rows.take(np.flatnonzero(np.isin(rows.keys, keys)))
        return SmallestMargins(np.take_along_axis(values, order, axis=1), keys, rows)


def _smallest_of_block(block: Block, block_index: int, query: MarginQuery) -> SmallestMargins:
    signs, keys = signs_of(block, query.classes), row_keys(block, block_index)
    shape = 2, query.n_keep, len(query.normals)
    values, positions = np.full(shape, np.inf), np.full(shape, _NONE, dtype=np.int64)
    for j, w in enumerate(query.normals):
        products = signs * inner_products(block.points, w[None])[:, 0]
        if query.subsets is not None:
            products[~query.subsets.hold(keys, query.numbers[j : j + 1])[:, 0]] = np.inf
        for group, sign in enumerate((1.0, -1.0)):
            of_class = np.where(signs == sign, products, np.inf)
            chosen = smallest(of_class, query.n_keep)
            chosen = chosen[np.argsort(of_class[chosen], kind="stable")]
            values[group, : len(chosen), j] = of_class[chosen]
            positions[group, : len(chosen), j] = chosen
    used = np.unique(positions[positions >= 0])
    of_rows = np.where(positions >= 0, keys[positions], _NONE) if len(block) else positions
    rows = SelectedRows.of(block, block_index, used, np.zeros(len(used)))
    return SmallestMargins(values, of_rows, rows)


def leave_out(values: FloatArray, k: int, *, intercept: bool) -> tuple[float, float, int]:
    r"""Margin of a separator with k rows left out, :math:`\rho_k(w)`.

    With an intercept, a rows of the class +1 and k - a of the other are left out. The hyperplane
    goes into the middle of the others, and a is the best one.

    Parameters
    ----------
    values : ndarray of shape (2, k + 1), float64
        Smallest :math:`y \langle w, x\rangle` of the classes +1 and -1, increasing.
    k : int
    intercept : bool

    Returns
    -------
    margin : float
    intercept : float
        Zero through the origin.
    n_positive : int
        How many of those left out are of the class +1.

    Examples
    --------
    >>> values = np.array([[-3.0, 1.0], [0.5, 4.0]])
    >>> leave_out(values, 1, intercept=False)
    (0.5, 0.0, 1)
    >>> leave_out(values, 1, intercept=True)
    (0.75, -0.25, 1)
    """
    if not intercept:
        order = np.argsort(values.ravel(), kind="stable")
        margin = float(values.ravel()[order[k]])
        return margin, 0.0, int((order[:k] <= k).sum())
    halves = (values[0] + values[1][::-1]) / 2
    # A class of which nothing remains is no class.
    halves[~np.isfinite(halves)] = -np.inf
    best = int(halves.argmax())
    return float(halves[best]), float(values[1][k - best] - values[0][best]) / 2, best


# --- problems --------------------------------------------------------------------------------


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
    return math.ceil(min(draws, 2.0**62)), share, luck


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A separator, its margin on the data with k rows left out, and the keys of these."""

    w: FloatArray
    intercept: float
    margin: float
    left_out: IndexArray


class _Problem:
    """The core-set loop of one hard-margin problem.

    Attributes
    ----------
    allows : callable
        ``allows(keys)`` tells which rows take part.
    is_open : bool
    core : SelectedRows
        The rows known that take part.
    hard : HardMargin
        Their separator, or the evidence that there is none.
    """

    core: SelectedRows
    hard: HardMargin

    def __init__(
        self,
        known: SelectedRows,
        solve: Callable[[SelectedRows], HardMargin],
        epsilon: float,
        allows: Callable[[IndexArray], AnyArray],
    ) -> None:
        self.allows, self.is_open = allows, True
        core = known.take(np.flatnonzero(allows(known.keys)))
        self._loop = grow_core_set(core, solve, epsilon=epsilon)
        self._advance(None)

    def _advance(self, found: Found[SelectedRows] | None) -> None:
        try:
            self.core, self.hard = self._loop.send(found)  # type: ignore[arg-type] # None starts it
        except StopIteration as end:
            self.core, self.hard, self.is_open = end.value.core, end.value.bound, False

    @property
    def support(self) -> IndexArray:
        """Keys of the rows that determine the separator, or the evidence."""
        return self.core.keys[self.hard.dual > 0.0]

    def violators(
        self, values: FloatArray, keys: IndexArray, epsilon: float
    ) -> tuple[float, IndexArray]:
        """Return the margin of the separator, and the keys of new rows that violate it."""
        values = np.where((keys == _NONE) | ~self.allows(keys), np.inf, values)
        least = values.min(axis=1)
        margin = float(least.sum()) / 2 if len(self.hard.levels) == 2 else float(least.min())
        below = values < floors_of(self.hard, epsilon)[:, None]
        return margin, np.setdiff1d(keys[below], self.core.keys)

    def go_on(self, margin: float, known: SelectedRows) -> None:
        """Add all known rows that take part, and go on to the next separator, or to the end."""
        new = self.allows(known.keys) & ~np.isin(known.keys, self.core.keys)
        self._advance(Found(self.hard, margin, known.take(np.flatnonzero(new))))


def _all_but(removed: frozenset[int]) -> Callable[[IndexArray], AnyArray]:
    return lambda keys: ~np.isin(keys, list(removed))


def _within(subsets: Subsets, subset: int) -> Callable[[IndexArray], AnyArray]:
    return lambda keys: subsets.hold(keys, [subset])[..., 0]


@dataclass(eq=False)
class OutlierSearch:
    """A search for the rows to leave out.

    Attributes
    ----------
    blocks : RowBlocks
        With labels of two classes.
    summary : ClassSummary
        With rows near the boundary.
    k, epsilon, intercept, max_problems, max_passes
        As in `daskcoreset.estimators.OutlierMaxMarginClassifier`.
    n_problems, reads : int
        So far.
    best : _Candidate or None
        The best separator so far.

    Raises
    ------
    InvalidInputError
        If k rows would leave nothing of a class.
    """

    blocks: RowBlocks
    summary: ClassSummary
    k: int
    epsilon: float
    intercept: bool
    max_problems: int
    max_passes: int
    n_problems: int = 0
    reads: int = 1
    best: _Candidate | None = None

    def __post_init__(self) -> None:
        if self.k > self.summary.n_used - 2:
            raise InvalidInputError(
                f"k is {self.k}, but X has {self.summary.n_used} rows of positive weight",
                argument="k",
                remedy="pass a smaller k",
            )
        # Rows on which problems are solved. Of each class something is left without any k rows.
        self.known = self.summary.near_rows(_STARTS)
        points, signs = dense_rows(self.known.block.points), self._signs(self.known)
        means = [points[signs == sign].mean(axis=0, dtype=np.float64) for sign in (1.0, -1.0)]
        gap: FloatArray = means[0] - means[1]
        length = float(np.linalg.norm(gap))
        self.direction = gap / length if length else np.eye(len(gap))[0]
        self._add(self._measure(self.direction[None]).rows)

    def result(self, method: Method, confidence: float, random_state: RandomState) -> OutlierMargin:
        """Find the largest margin that is left when at most k rows are left out.

        Parameters
        ----------
        method, confidence, random_state
            As in `daskcoreset.estimators.OutlierMaxMarginClassifier`.

        Returns
        -------
        OutlierMargin

        Raises
        ------
        NotSeparableError
            If no separator was found without k rows.

        Warns
        -----
        CoresetWarning
            If the probability wanted is not reached.

        Notes
        -----
        The probability of "random" is that some draw is lucky. Besides, the best separator is
        improved by leaving out its k worst rows and solving again until nothing changes, which can
        only help.

        References
        ----------
        Har-Peled, Roth and Zimak (2007), Fig. 4 and Lemma 5.2. For "exact", Matousek (1995), On
        geometric optimization with few violated constraints.
        """
        probability, used = 1.0, "exact"
        if method == "random" or not self._remove():
            if method == "exact":
                raise InvalidInputError(
                    f"the exact search needs more than max_problems={self.max_problems} problems "
                    f"or max_passes={self.max_passes}",
                    remedy='raise these limits, or pass method="random"',
                )
            probability, used = self._draw(confidence, resolve_seed(random_state)), "random"
        self._improve()
        best = self.best
        if best is None or best.margin <= 0:
            raise NotSeparableError(
                f"X and y are not separable when {self.k} rows are left out"
                + ("" if probability == 1.0 else f" (found with probability {probability:.3g})"),
                argument="k",
                remedy="pass a larger k, or fit a soft margin",
            )
        left = self.known.take(np.flatnonzero(~np.isin(self.known.keys, best.left_out)))
        hard = self._separate(left)
        core = left.take(np.flatnonzero(hard.dual > 0.0))
        numbers = row_numbers(core.keys, self.summary.starts)
        return OutlierMargin(
            w=best.w,
            intercept=best.intercept,
            margin=best.margin,
            outliers=row_numbers(best.left_out, self.summary.starts),
            probability=probability,
            method=used,
            n_problems=self.n_problems,
            reads=self.reads,
            n_rows=self.summary.n_read,
            core=WeightedPoints(core.block.points, np.ones(len(core)), numbers, core.block.labels),
            core_margin=hard.length,
        )

    def _signs(self, rows: SelectedRows) -> FloatArray:
        return signs_of(rows.block, self.summary.classes)

    def _separate(self, rows: SelectedRows) -> HardMargin:
        signs = self._signs(rows)
        if len(np.unique(signs)) < 1 + self.intercept:  # nothing is left of a class
            zeros, levels = np.zeros(len(self.direction)), np.zeros(1 + self.intercept)
            return HardMargin(zeros, 0.0, 0.0, 0.0, np.zeros(len(rows)), levels)
        points = dense_rows(rows.block.points)
        return hard_margin(points, signs, intercept=self.intercept, tol=TOLERANCE)

    def _add(self, rows: SelectedRows) -> None:
        new = ~np.isin(rows.keys, self.known.keys)
        self.known = self.known.joined(rows.take(np.flatnonzero(new)))

    def _read(self, query: MarginQuery) -> SmallestMargins:
        self.reads += 1
        merge = SmallestMargins.merged
        return map_reduce(self.blocks, _smallest_of_block, merge, broadcast=query).value

    def _measure(self, normals: FloatArray, _: object = None) -> SmallestMargins:
        """Read once for the margins of separators on all rows. The best one is kept."""
        read = self._read(MarginQuery(normals, self.summary.classes, self.k + 1))
        for j, w in enumerate(normals):
            keys = read.keys[:, :, j]
            margin, intercept, positive = leave_out(
                read.values[:, :, j], self.k, intercept=self.intercept
            )
            if self.best is None or margin > self.best.margin:
                out = np.concatenate([keys[0, :positive], keys[1, : self.k - positive]])
                self.best = _Candidate(w, intercept, margin, np.sort(out))
        return read

    def _solve(
        self,
        allowed: Sequence[Callable[[IndexArray], AnyArray]],
        epsilon: float,
        measure: Callable[[FloatArray, Sequence[int]], SmallestMargins],
    ) -> list[_Problem]:
        """Separate the rows that each of some problems allows, by reads that all share.

        Some problems stay open if there are too few passes.
        """
        problems = [_Problem(self.known, self._separate, epsilon, allows) for allows in allowed]
        self.n_problems += len(problems)
        for _ in range(self.max_passes):
            numbers = [i for i, problem in enumerate(problems) if problem.is_open]
            if not numbers:
                break
            active = [problems[i] for i in numbers]
            read = measure(np.array([problem.hard.w for problem in active]), numbers)
            found = [
                problem.violators(read.values[:, :, j], read.keys[:, :, j], epsilon)
                for j, problem in enumerate(active)
            ]
            of_all = np.isin(read.rows.keys, np.concatenate([new for _, new in found]))
            self._add(read.rows.take(np.flatnonzero(of_all)))
            for problem, (margin, _) in zip(active, found, strict=True):
                problem.go_on(margin, self.known)
        return problems

    def _remove(self) -> bool:
        """Leave rows out one by one, wherever they may matter. False if there are too many ways."""
        level: list[frozenset[int]] = [frozenset()]
        for depth in range(self.k + 1):
            allowed = [_all_but(removed) for removed in level]
            problems = self._solve(allowed, self.epsilon, self._measure)
            if any(problem.is_open for problem in problems):
                return False
            children = {
                removed | {int(key)}
                for removed, problem in zip(level, problems, strict=True)
                for key in problem.support
            }
            if depth < self.k and self.n_problems + len(children) > self.max_problems:
                return False
            level = sorted(children, key=sorted)
        return True

    def _draw(self, confidence: float, seed: int) -> float:
        """Solve on random subsets. Return the probability that one of them had no outlier."""
        # The nearest point of a hull is a combination of d points, of two hulls of d + 1.
        n_support = self.blocks.schema.n_features + int(self.intercept)
        n_needed, share, luck = n_draws(n_support, self.k, confidence)
        count = min(n_needed, self.max_problems)
        self._improve()
        subsets = Subsets(int(stream(seed, Stage.SUBSETS, 0).integers(2**63)), share)

        def measure(normals: FloatArray, numbers: Sequence[int]) -> SmallestMargins:
            query = MarginQuery(normals, self.summary.classes, 1, subsets, tuple(numbers))
            return self._read(query)

        self._add(measure(np.tile(self.direction, (count, 1)), range(count)).rows)
        # The probability holds for exact solutions only: those of a subset up to epsilon
        # depend on rows outside of it.
        allowed = [_within(subsets, subset) for subset in range(count)]
        problems = self._solve(allowed, _EXACT, measure)
        separators = [problem.hard.w for problem in problems if problem.hard.separable]
        if separators:
            self._measure(np.array(separators))
        done = sum(not problem.is_open for problem in problems)
        probability = -math.expm1(done * math.log1p(-luck)) if luck < 1.0 else 1.0
        if probability < confidence:
            warn_user(
                f"{done} of {n_needed:,} draws were made, so the probability is "
                f"{probability:.3g} instead of {confidence}; pass a larger max_problems."
            )
        return probability

    def _improve(self) -> None:
        """Leave out the worst rows of the best separator and solve again, while it helps.

        The margin never falls, for the separator itself has it on the rows that are left.
        """
        while True:
            before = self.best
            left_out = [] if before is None else before.left_out.tolist()
            self._solve([_all_but(frozenset(left_out))], self.epsilon, self._measure)
            after = self.best
            if after is before or (before and after and after.margin <= before.margin * (1 + 1e-9)):
                return
