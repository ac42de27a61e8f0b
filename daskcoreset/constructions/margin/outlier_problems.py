"""Many hard-margin problems, each on some of the rows, that share every read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.constructions.margin.classes import signs_of
from daskcoreset.constructions.margin.core_set import (
    floors_of,
    margin_of_levels,
    row_numbers,
    solve_margin,
)
from daskcoreset.core.linalg import dense_rows, inner_products
from daskcoreset.core.random import Stage, stream
from daskcoreset.execution.engine import BlockResults, map_reduce
from daskcoreset.inputs.blocks import row_blocks

if TYPE_CHECKING:
    from daskcoreset.core.blocks import Block
    from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
    from daskcoreset.inputs.blocks import RowBlocks
    from daskcoreset.solvers.hard_margin import HardMargin

_TILE_NUMBERS = 2**19

"""Products formed at a time, 4 MiB."""

_NONE = -1

"""Number of a block where there is no row."""


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
class MarginQuery:
    """Separators, and how many of their smallest margins to return.

    Attributes
    ----------
    normals : ndarray of shape (q, d), float64
    classes : ndarray of shape (2,)
        Labels of the classes -1 and +1.
    n_keep : int
        Margins of each class.
    draws : Draws or None
        Separator j sees the rows of subset j only; None where all see all.
    """

    normals: FloatArray
    classes: AnyArray
    n_keep: int
    draws: Draws | None = None


@dataclass(frozen=True, eq=False)
class SmallestMargins:
    r"""The smallest margins of every separator in some blocks, and the rows that have them.

    Attributes
    ----------
    values : ndarray of shape (2, n_keep, q), float64
        Smallest :math:`y \langle w, x\rangle` of the classes +1 and -1, increasing; infinity
        where there are fewer rows.
    block_indices, positions : ndarray of shape (2, n_keep, q), int64
        Block and row within it.
    rows : ndarray of shape (r, d), float64
        Every row of these, once.
    keys : ndarray of shape (r, 2), int64
        Its block and its row within it.
    signs : ndarray of shape (r,), float64
    members : ndarray of shape (r, q), bool
        Which subsets it is in.
    """

    values: FloatArray
    block_indices: IndexArray
    positions: IndexArray
    rows: FloatArray
    keys: IndexArray
    signs: FloatArray
    members: Any


def find_smallest(blocks: RowBlocks, query: MarginQuery) -> BlockResults[SmallestMargins]:
    """Read all rows once for the smallest margins of several separators."""
    return map_reduce(blocks, _smallest_of_block, _merge, broadcast=query)


def _smallest_of_block(block: Block, block_index: int, query: MarginQuery) -> SmallestMargins:
    q, n_keep = len(query.normals), query.n_keep
    signs = signs_of(block, query.classes)
    n = len(signs)
    values = np.full((2, n_keep, q), np.inf)
    positions = np.full((2, n_keep, q), _NONE, dtype=np.int64)
    draws = query.draws
    coins = []
    if draws is not None:
        coins = [stream(draws.seed, Stage.SUBSETS, block_index, one) for one in draws.subsets]
    members: dict[int, AnyArray] = {}
    tile = max(1, _TILE_NUMBERS // q)
    for start in range(0, n, tile):
        within = slice(start, min(n, start + tile))
        products = inner_products(block.points[within], query.normals) * signs[within, None]
        inside = None
        if draws is not None:
            size = within.stop - start
            inside = np.stack([one.random(size) < draws.share for one in coins], axis=1)
            products[~inside] = np.inf
        for group, sign in enumerate((1.0, -1.0)):
            rows = np.flatnonzero(signs[within] == sign)
            _insert(values[group], positions[group], products[rows], rows + start)
        if inside is not None:
            rows = np.unique(positions[(positions >= start) & (positions < within.stop)])
            members |= {int(row): inside[row - start] for row in rows}
    rows = np.unique(positions[positions >= 0])
    in_subsets = np.ones((len(rows), q), dtype=bool)
    if draws is not None:
        in_subsets = np.array([members[int(row)] for row in rows], bool).reshape(len(rows), q)
    return SmallestMargins(
        values,
        np.where(positions >= 0, block_index, _NONE),
        positions,
        dense_rows(block.points[rows]).astype(np.float64),
        np.stack([np.full(len(rows), block_index), rows], axis=1),
        signs[rows],
        in_subsets,
    )


def _insert(values: FloatArray, positions: IndexArray, products: FloatArray, rows: Any) -> None:
    """Let new rows into the smallest so far; of equal ones the earlier stays ahead."""
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
    n_keep = first.values.shape[1]
    values = np.concatenate([first.values, second.values], axis=1)
    order = np.argsort(values, axis=1, kind="stable")[:, :n_keep]

    def chosen(one: Any, two: Any) -> Any:
        return np.take_along_axis(np.concatenate([one, two], axis=1), order, axis=1)

    block_indices = chosen(first.block_indices, second.block_indices)
    positions = chosen(first.positions, second.positions)
    keys = np.concatenate([first.keys, second.keys])
    # Blocks are neighbours and rows are in order within them, so that no row comes twice.
    used = set(zip(block_indices.ravel().tolist(), positions.ravel().tolist(), strict=True))
    is_used = np.array([tuple(key) in used for key in keys.tolist()], dtype=bool)
    rows = np.flatnonzero(is_used)
    return SmallestMargins(
        np.take_along_axis(values, order, axis=1),
        block_indices,
        positions,
        np.concatenate([first.rows, second.rows])[rows],
        keys[rows],
        np.concatenate([first.signs, second.signs])[rows],
        np.concatenate([first.members, second.members])[rows],
    )


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


_PER_TASK = 16

"""Problems solved by one task."""


@dataclass(frozen=True, eq=False)
class Pool:
    """Rows that take part in some problem.

    Attributes
    ----------
    rows : ndarray of shape (m, d), float64
    signs : ndarray of shape (m,), float64
    indices : ndarray of shape (m,), int64
        Row numbers in the whole data.
    members : ndarray of shape (m, n_subsets), bool, or None
        Random subsets that each row is in; None where there are none.
    """

    rows: FloatArray
    signs: FloatArray
    indices: IndexArray
    members: Any = None

    def take(self, positions: Any) -> Pool:
        """Return some of the rows."""
        members = None if self.members is None else self.members[positions]
        return Pool(self.rows[positions], self.signs[positions], self.indices[positions], members)

    def with_rows(self, other: Pool) -> Pool:
        """Return a pool with the rows of another that this one has not."""
        new = other.take(~np.isin(other.indices, self.indices))
        members = None
        if self.members is not None:
            members = np.concatenate([self.members, new.members])
        return Pool(
            np.concatenate([self.rows, new.rows]),
            np.concatenate([self.signs, new.signs]),
            np.concatenate([self.indices, new.indices]),
            members,
        )


@dataclass(eq=False)
class MarginProblem:
    """One hard-margin problem.

    Attributes
    ----------
    removed : frozenset of int
        Numbers of rows that are left out.
    subset : int or None
        Number of its random subset; None for all rows.
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

    def allowed(self, pool: Pool) -> Any:
        """Which rows of a pool take part, bool of shape (m,)."""
        if self.subset is not None:
            return pool.members[:, self.subset]
        return self.sees(pool.indices)

    def sees(self, indices: IndexArray) -> Any:
        """Which of some rows are not left out."""
        return ~np.isin(indices, np.array(sorted(self.removed), dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Candidate:
    r"""A separator and what it reaches with k rows left out.

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
    k : int
        Rows left out.
    intercept : bool
    epsilon : float
    pool : Pool
    best : Candidate or None
        Of largest :math:`\rho_k` so far.
    reads : int
    """

    blocks: RowBlocks
    classes: AnyArray
    k: int
    intercept: bool
    epsilon: float
    pool: Pool
    best: Candidate | None = None
    reads: int = 0

    def measure(
        self, normals: FloatArray, draws: Draws | None = None, *, n_keep: int | None = None
    ) -> ReadResult:
        """Read once, for the smallest margins of every separator on the rows it may see.

        Parameters
        ----------
        normals : ndarray of shape (q, d), float64
            Of length one.
        draws : Draws or None, default=None
            Random subsets, one a separator; with None each is measured on all rows, and the
            best is kept.
        n_keep : int or None, default=None
            Margins of each class: by default k + 1, and one on a subset.
        """
        if n_keep is None:
            n_keep = 1 if draws is not None else self.k + 1
        read = find_smallest(self.blocks, MarginQuery(normals, self.classes, n_keep, draws))
        self.reads += 1
        margins = read.value
        indices = row_numbers(read, margins.keys[:, 0], margins.keys[:, 1])
        of_values = np.full(margins.values.shape, -1, dtype=np.int64)
        some = margins.positions >= 0
        of_values[some] = row_numbers(read, margins.block_indices[some], margins.positions[some])
        if draws is None:
            for j, w in enumerate(normals):
                self._propose(w, margins.values[:, :, j], of_values[:, :, j])
        members = None if draws is None else margins.members
        pool = Pool(margins.rows, margins.signs, indices, members)
        return ReadResult(margins.values, of_values, pool)

    def _propose(self, w: FloatArray, values: FloatArray, indices: IndexArray) -> None:
        """Keep a separator if it is the best so far."""
        margin, intercept, positive = leave_out(
            values[:, : self.k + 1], self.k, intercept=self.intercept
        )
        if self.best is None or margin > self.best.margin:
            out = [indices[0, :positive], indices[1, : self.k - positive]]
            self.best = Candidate(w, intercept, margin, np.sort(np.concatenate(out)))


@dataclass(frozen=True, eq=False)
class ReadResult:
    """The smallest margins of every separator on all the data.

    Attributes
    ----------
    values : ndarray of shape (2, n_keep, q), float64
        Of the classes +1 and -1, increasing; infinity where there are fewer rows.
    of_values : ndarray of shape (2, n_keep, q), int64
        Numbers of the rows that have them, -1 for none.
    pool : Pool
        These rows; their `members` are of the subsets of the read.
    """

    values: FloatArray
    of_values: IndexArray
    pool: Pool


def solve_problems(
    shared: SharedProblems,
    problems: list[MarginProblem],
    *,
    max_passes: int,
    draws: Draws | None = None,
) -> None:
    """Solve problems to a share 1 - epsilon of their margins, by reads that all share.

    Parameters
    ----------
    shared : SharedProblems
        Its pool grows, and its best candidate improves.
    problems : list of MarginProblem
        Their states are set. Those that are open at the end ran out of passes.
    max_passes : int
    draws : Draws or None, default=None
        What the random subsets are. Problems on them are given up as soon as they cannot be
        better than the best candidate.
    """
    for _ in range(max_passes):
        active = [one for one in problems if one.state == "open"]
        fits = _solve_all(shared, active) if active else []
        remaining = []
        for problem, fit in zip(active, fits, strict=True):
            _update_state(shared, problem, fit)
            if problem.state == "open" and fit is not None:
                remaining.append((problem, fit))
        if not remaining:
            return
        _improve(shared, remaining, draws)


def _update_state(shared: SharedProblems, problem: MarginProblem, fit: HardMargin | None) -> None:
    """Mark inseparable problems, and those that cannot win any more."""
    if fit is None:
        problem.state = "inseparable"
        return
    problem.support = shared.pool.indices[problem.allowed(shared.pool)][fit.dual > 0.0]
    problem.w = fit.w
    if not fit.separable:
        problem.state = "inseparable"
    elif (
        problem.subset is not None
        and shared.best is not None
        # A subset that holds all that matters has no smaller margin than any that was found.
        and fit.length < shared.best.margin
    ):
        problem.state = "beaten"


def _improve(
    shared: SharedProblems, remaining: list[tuple[MarginProblem, HardMargin]], draws: Draws | None
) -> None:
    """Read once for all problems that are open; mark those that are solved, and add rows."""
    if draws is not None:
        draws = replace(draws, subsets=tuple(int(one.subset or 0) for one, _ in remaining))
    read = shared.measure(np.array([fit.w for _, fit in remaining]), draws)
    violators: set[int] = set()
    for j, (problem, fit) in enumerate(remaining):
        values, indices = read.values[:, :, j], read.of_values[:, :, j]
        seen = np.where(problem.sees(indices) & (indices >= 0), values, np.inf)
        margin = margin_of_levels(seen.min(axis=1), intercept=shared.intercept)
        if margin >= (1.0 - shared.epsilon) * fit.length:
            problem.state = "solved"
            continue
        known = shared.pool.indices[problem.allowed(shared.pool)]
        floors = floors_of(fit, shared.epsilon, intercept=shared.intercept)
        new = np.setdiff1d(indices[seen < floors[:, None]], known)
        if not len(new):
            problem.state = "solved"  # all that double precision can tell
        violators |= set(new.tolist())
    rows = read.pool.take(np.isin(read.pool.indices, np.array(sorted(violators), dtype=np.int64)))
    if draws is not None:
        members = np.zeros((len(rows.indices), shared.pool.members.shape[1]), dtype=bool)
        members[:, list(draws.subsets)] = rows.members
        rows = replace(rows, members=members)
    shared.pool = shared.pool.with_rows(rows)


def _solve_all(shared: SharedProblems, active: list[MarginProblem]) -> list[HardMargin | None]:
    """Solve on the pool; on the scheduler where there are many."""
    allowed = np.stack([one.allowed(shared.pool) for one in active])
    problems = np.arange(len(active), dtype=np.float64)[:, None]
    fits: list[HardMargin | None] = map_reduce(
        row_blocks(problems, chunks=_PER_TASK),
        partial(_solve_some, intercept=shared.intercept),
        add,
        broadcast=(shared.pool, allowed),
    ).value
    return fits


def _solve_some(
    block: Block, _: int, broadcast: tuple[Pool, Any], *, intercept: bool
) -> list[HardMargin | None]:
    """Solve the problems of one task, whose numbers are its rows; None without two classes."""
    pool, allowed = broadcast
    problems: Any = block.points
    fits: list[HardMargin | None] = []
    for problem in problems[:, 0].astype(int):
        rows, signs = pool.rows[allowed[problem]], pool.signs[allowed[problem]]
        if len(np.unique(signs)) < (2 if intercept else 1):
            fits.append(None)
        else:
            fits.append(solve_margin(rows, signs, intercept=intercept, tol=1e-10))
    return fits
