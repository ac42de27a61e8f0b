"""Many hard-margin problems, each on some of the rows, that share every read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from daskcoreset.constructions.margin.core_set import floors_of, margin_of_levels, solve_margin
from daskcoreset.constructions.margin.rows import rows_of_block, signs_of
from daskcoreset.core.block import Block
from daskcoreset.core.labels import plain_labels
from daskcoreset.core.linalg import dense_rows, inner_products
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.execution.engine import map_reduce
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.solvers.hard_margin import HardMargin

# Products formed at a time, 4 MiB.
_TILE_NUMBERS = 2**19

# Number of a row where there is none.
_NONE = -1


@dataclass(frozen=True)
class Draws:
    """Random subsets of the rows, without a list of them.

    Attributes
    ----------
    seed : int
    share : float
        Every row is in a subset with this probability, on its own.
    subsets : tuple of int
        Numbers of the subsets.
    """

    seed: int
    share: float
    subsets: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ProblemRows:
    """Rows that take part in some problem.

    Attributes
    ----------
    points : ndarray of shape (m, d), float64
    signs : ndarray of shape (m,), float64
    indices : ndarray of shape (m,), int64
        Row numbers in the whole data.
    members : ndarray of shape (m, n_subsets), bool
        Random subsets that each row is in.
    """

    points: FloatArray
    signs: FloatArray
    indices: IndexArray
    members: Any

    def take(self, positions: Any) -> ProblemRows:
        """Return some of the rows."""
        return ProblemRows(
            self.points[positions],
            self.signs[positions],
            self.indices[positions],
            self.members[positions],
        )

    def with_rows(self, further: ProblemRows) -> ProblemRows:
        """Return these rows, and those of others that are not among them."""
        new = further.take(~np.isin(further.indices, self.indices))
        return ProblemRows(
            np.concatenate([self.points, new.points]),
            np.concatenate([self.signs, new.signs]),
            np.concatenate([self.indices, new.indices]),
            np.concatenate([self.members, new.members]),
        )


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
    starts : dict of int to int
        Number of the first row of every block.
    draws : Draws or None
        Separator j sees the rows of subset j only. None where all see all.
    """

    normals: FloatArray
    classes: AnyArray
    n_keep: int
    starts: dict[int, int]
    draws: Draws | None = None


@dataclass(frozen=True, eq=False)
class SmallestMargins:
    r"""The smallest margins of every separator in some blocks, and the rows that have them.

    Attributes
    ----------
    values : ndarray of shape (2, n_keep, q), float64
        Smallest :math:`y \langle w, x\rangle` of the classes +1 and -1, increasing. Infinity
        where there are fewer rows.
    indices : ndarray of shape (2, n_keep, q), int64
        Numbers of the rows that have them, -1 for none.
    rows : ProblemRows
        These rows, each once. Their `members` are of the subsets of the query.
    """

    values: FloatArray
    indices: IndexArray
    rows: ProblemRows


def find_smallest(blocks: RowBlocks, query: MarginQuery) -> SmallestMargins:
    """Read all rows once for the smallest margins of several separators."""
    return map_reduce(blocks, _smallest_of_block, _merge, broadcast=query).value


def _smallest_of_block(block: Block, block_index: int, query: MarginQuery) -> SmallestMargins:
    q, n = len(query.normals), len(block)
    signs = signs_of(block, query.classes)
    values = np.full((2, query.n_keep, q), np.inf)
    positions = np.full((2, query.n_keep, q), _NONE, dtype=np.int64)
    draws = query.draws
    streams, share = [], 1.0
    if draws is not None:
        share = draws.share
        streams = [
            stream(draws.seed, Stage.SUBSETS, block_index, subset) for subset in draws.subsets
        ]
    # Of the rows that are kept alone: for all rows of a block they would not fit in memory.
    members: dict[int, AnyArray] = {}
    tile = max(1, _TILE_NUMBERS // q)
    for start in range(0, n, tile):
        within = slice(start, min(n, start + tile))
        products = inner_products(block.points[within], query.normals) * signs[within, None]
        inside = np.ones((len(products), len(streams)), dtype=bool)
        for j, rng in enumerate(streams):
            inside[:, j] = rng.random(len(products)) < share
            products[~inside[:, j], j] = np.inf
        for group, sign in enumerate((1.0, -1.0)):
            of_class = np.flatnonzero(signs[within] == sign)
            _insert(values[group], positions[group], products[of_class], of_class + start)
        kept = np.unique(positions[positions >= start])
        members |= {int(row): inside[row - start].copy() for row in kept}
    used = np.unique(positions[positions >= 0])
    numbers = rows_of_block(block, query.starts[block_index])
    in_subsets = np.array([members[int(row)] for row in used], dtype=bool)
    in_subsets = in_subsets.reshape(len(used), len(streams))
    rows = ProblemRows(
        dense_rows(block.points[used]).astype(np.float64), signs[used], numbers[used], in_subsets
    )
    indices = np.full(positions.shape, _NONE)
    indices[positions >= 0] = numbers[positions[positions >= 0]]
    return SmallestMargins(values, indices, rows)


def _insert(values: FloatArray, positions: IndexArray, products: FloatArray, rows: Any) -> None:
    """Insert new rows among the smallest so far; of equal ones the earlier comes first."""
    n_keep = len(values)
    if not len(rows):
        return
    if len(rows) > n_keep:
        # Nearly all rows are above the largest kept; one comparison clears them.
        limit = np.minimum(values[-1], np.partition(products, n_keep - 1, axis=0)[n_keep - 1])
        near = (products <= limit).any(axis=1)
        products, rows = products[near], rows[near]
    both = np.concatenate([values, products])
    both_rows = np.concatenate([positions, np.broadcast_to(rows[:, None], products.shape)])
    order = np.argsort(both, axis=0, kind="stable")[:n_keep]
    values[:] = np.take_along_axis(both, order, axis=0)
    chosen = np.take_along_axis(both_rows, order, axis=0)
    positions[:] = np.where(np.isfinite(values), chosen, _NONE)


def _merge(first: SmallestMargins, second: SmallestMargins) -> SmallestMargins:
    values = np.concatenate([first.values, second.values], axis=1)
    indices = np.concatenate([first.indices, second.indices], axis=1)
    order = np.argsort(values, axis=1, kind="stable")[:, : first.values.shape[1]]
    indices = np.take_along_axis(indices, order, axis=1)
    rows = first.rows.with_rows(second.rows)
    rows = rows.take(np.isin(rows.indices, indices))
    return SmallestMargins(np.take_along_axis(values, order, axis=1), indices, rows)


def leave_out(values: FloatArray, k: int, *, intercept: bool) -> tuple[float, float, int]:
    r"""Margin of a separator with k rows left out, :math:`\rho_k(w)`.

    With an intercept a rows of the class +1 and k - a of the other are left out, and the
    hyperplane goes into the middle of what remains, for the best a.

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


@dataclass(eq=False)
class MarginProblem:
    """One hard-margin problem.

    Attributes
    ----------
    removed : frozenset of int
        Numbers of rows that are left out.
    subset : int or None
        Number of its random subset. None for all rows.
    state : {"open", "solved", "inseparable", "beaten"}
    support : ndarray of shape (s,), int64
        Row numbers with a coefficient; of inseparable ones, the evidence. Of a subset without
        one of the classes, empty.
    w : ndarray of shape (d,), float64, or None
        Unit normal of the last solution.
    """

    removed: frozenset[int] = frozenset()
    subset: int | None = None
    state: str = "open"
    support: IndexArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    w: FloatArray | None = None

    def allowed(self, rows: ProblemRows) -> Any:
        """Which of some rows take part, bool of shape (m,)."""
        if self.subset is not None:
            return rows.members[:, self.subset]
        return ~np.isin(rows.indices, list(self.removed))


@dataclass(frozen=True, eq=False)
class Candidate:
    r"""A separator and its margin with k rows left out.

    Attributes
    ----------
    w : ndarray of shape (d,), float64
        Unit normal.
    intercept : float
    margin : float
        :math:`\rho_k(w)` on all the data, measured by a read.
    left_out : ndarray of shape (k,), int64
        Row numbers of those left out, in increasing order.
    """

    w: FloatArray
    intercept: float
    margin: float
    left_out: IndexArray


@dataclass(eq=False)
class SharedProblems:
    r"""The data, the rows known, and the best separator, which all problems share.

    Attributes
    ----------
    blocks : RowBlocks
    classes : ndarray of shape (2,)
    starts : dict of int to int
        Number of the first row of every block.
    k : int
        Rows left out.
    intercept : bool
    epsilon : float
    rows : ProblemRows
        Rows known, on which problems are solved.
    best : Candidate or None
        The candidate of largest :math:`\rho_k` so far.
    reads : int
    """

    blocks: RowBlocks
    classes: AnyArray
    starts: dict[int, int]
    k: int
    intercept: bool
    epsilon: float
    rows: ProblemRows
    best: Candidate | None = None
    reads: int = 0

    def measure(self, normals: FloatArray, draws: Draws | None = None) -> SmallestMargins:
        """Read once, for the smallest margins of every separator on the rows of its problem.

        Parameters
        ----------
        normals : ndarray of shape (q, d), float64
            Unit vectors.
        draws : Draws or None, default=None
            Random subsets, one a separator. With None each is measured on all rows, and the
            best is kept.
        """
        n_keep = 1 if draws is not None else self.k + 1
        query = MarginQuery(normals, self.classes, n_keep, self.starts, draws)
        read = find_smallest(self.blocks, query)
        self.reads += 1
        if draws is None:
            for j, w in enumerate(normals):
                self._propose(w, read.values[:, :, j], read.indices[:, :, j])
        return read

    def _propose(self, w: FloatArray, values: FloatArray, indices: IndexArray) -> None:
        """Keep a separator if it is the best so far."""
        margin, intercept, positive = leave_out(
            values[:, : self.k + 1], self.k, intercept=self.intercept
        )
        if self.best is None or margin > self.best.margin:
            out = [indices[0, :positive], indices[1, : self.k - positive]]
            self.best = Candidate(w, intercept, margin, np.sort(np.concatenate(out)))

    def solve(
        self, problems: list[MarginProblem], *, max_passes: int, draws: Draws | None = None
    ) -> None:
        """Solve problems to a share 1 - epsilon of their margins, by reads that all share.

        Parameters
        ----------
        problems : list of MarginProblem
            Their states are set. Those that are open at the end ran out of passes.
        max_passes : int
        draws : Draws or None, default=None
            The random subsets. Problems on them are given up as soon as they cannot be
            better than the best candidate.
        """
        # One read a turn, whatever the number of problems: each returns its own worst rows, and the
        # rows that any of them needs are known to all.
        for _ in range(max_passes):
            active = [problem for problem in problems if problem.state == "open"]
            remaining = []
            for problem in active:
                fit = self._fit(problem)
                self._update_state(problem, fit)
                if problem.state == "open" and fit is not None:
                    remaining.append((problem, fit))
            if not remaining:
                return
            self._improve(remaining, draws)

    def core_without(self, left_out: IndexArray) -> tuple[WeightedPoints, float]:
        """Return the rows that determine the margin of those known without some, and it."""
        rows = self.rows.take(~np.isin(self.rows.indices, left_out))
        hard = solve_margin(rows.points, rows.signs, intercept=self.intercept, tol=1e-10)
        rows = rows.take(np.flatnonzero(hard.dual > 0.0))
        labels = self.classes[(rows.signs > 0).astype(np.int64)]
        weights = np.ones(len(rows.indices))
        core = WeightedPoints(rows.points, weights, rows.indices, plain_labels(labels))
        return core, float(hard.length)

    def _fit(self, problem: MarginProblem) -> HardMargin | None:
        """Solve on the rows known; None without two classes."""
        rows = self.rows.take(problem.allowed(self.rows))
        if len(np.unique(rows.signs)) < (2 if self.intercept else 1):
            return None
        return solve_margin(rows.points, rows.signs, intercept=self.intercept, tol=1e-10)

    def _update_state(self, problem: MarginProblem, fit: HardMargin | None) -> None:
        """Mark problems that are inseparable or whose bound is below the best margin."""
        if fit is None:
            problem.state = "inseparable"
            return
        problem.support = self.rows.indices[problem.allowed(self.rows)][fit.dual > 0.0]
        problem.w = fit.w
        if not fit.separable:
            problem.state = "inseparable"
        elif (
            problem.subset is not None
            and self.best is not None
            # A subset that holds all that matters has no smaller margin than any that was found.
            and fit.length < self.best.margin
        ):
            problem.state = "beaten"

    def _improve(
        self, remaining: list[tuple[MarginProblem, HardMargin]], draws: Draws | None
    ) -> None:
        """Read once for all problems that are open. Mark those that are solved, and add rows."""
        if draws is not None:
            draws = replace(
                draws, subsets=tuple(int(problem.subset or 0) for problem, _ in remaining)
            )
        read = self.measure(np.array([fit.w for _, fit in remaining]), draws)
        violators: list[int] = []
        for j, (problem, fit) in enumerate(remaining):
            indices = read.indices[:, :, j]
            unseen = np.isin(indices, [_NONE, *problem.removed])
            values = np.where(unseen, np.inf, read.values[:, :, j])
            margin = margin_of_levels(values.min(axis=1), intercept=self.intercept)
            if margin >= (1.0 - self.epsilon) * fit.length:
                problem.state = "solved"
                continue
            in_problem = self.rows.indices[problem.allowed(self.rows)]
            floors = floors_of(fit, self.epsilon, intercept=self.intercept)
            new = np.setdiff1d(indices[values < floors[:, None]], in_problem)
            if not len(new):
                problem.state = "solved"  # all that double precision can tell
            violators.extend(new.tolist())
        rows = read.rows.take(np.isin(read.rows.indices, violators))
        if draws is not None:
            members = np.zeros((len(rows.indices), self.rows.members.shape[1]), dtype=bool)
            members[:, list(draws.subsets)] = rows.members
            rows = replace(rows, members=members)
        self.rows = self.rows.with_rows(rows)
