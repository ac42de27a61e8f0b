"""Many hard-margin problems, each on some of the rows, that share every read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.constructions.margin.classes import signs_of
from daskcoreset.constructions.margin.core_set import row_numbers
from daskcoreset.core.linalg import dense_rows, inner_products
from daskcoreset.core.random import Stage, stream
from daskcoreset.execution.fold import BlockResults, map_reduce
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.solvers.hard_margin import HardMargin, hard_margin, hard_margin_bias

if TYPE_CHECKING:
    from daskcoreset.core.blocks import Block
    from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
    from daskcoreset.inputs.blocks import RowBlocks

__all__ = [
    "Candidate",
    "Draws",
    "MarginProblem",
    "MarginQuery",
    "Pool",
    "ReadResult",
    "SharedProblems",
    "SmallestMargins",
    "find_smallest",
    "leave_out",
    "solve_problems",
]


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
    numbers : tuple of int
        Numbers of the subsets.
    """

    seed: int
    share: float
    numbers: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class MarginQuery:
    """What every block is asked.

    Attributes
    ----------
    normals : ndarray of shape (q, d), float64
    classes : ndarray of shape (2,)
        Labels of the classes -1 and +1.
    most : int
        Margins wanted of each class.
    draws : Draws or None
        Separator j sees the rows of subset j only; None where all see all.
    """

    normals: FloatArray
    classes: AnyArray
    most: int
    draws: Draws | None = None


@dataclass(frozen=True, eq=False)
class SmallestMargins:
    r"""What some blocks answer.

    Attributes
    ----------
    values : ndarray of shape (2, most, q), float64
        Smallest :math:`y \langle w, x\rangle` of the classes +1 and -1, increasing; infinity
        where there are fewer rows.
    numbers, positions : ndarray of shape (2, most, q), int64
        Block and row within it.
    rows : ndarray of shape (r, d), float64
        Every row named above, once.
    keys : ndarray of shape (r, 2), int64
        Its block and its row within it.
    signs : ndarray of shape (r,), float64
    members : ndarray of shape (r, q), bool
        Which subsets it is in.
    """

    values: FloatArray
    numbers: IndexArray
    positions: IndexArray
    rows: FloatArray
    keys: IndexArray
    signs: FloatArray
    members: Any


def find_smallest(
    blocks: RowBlocks, question: MarginQuery, *, split_every: int = 16
) -> BlockResults[SmallestMargins]:
    """Read all rows once for the smallest margins of several separators.

    Parameters
    ----------
    blocks : RowBlocks
    question : ManyQuestion
    split_every : int, default=16

    Returns
    -------
    Gathered of Smallest
    """
    return map_reduce(blocks, _answer, _merge, given=question, split_every=split_every)


def _answer(block: Block, number: int, question: MarginQuery) -> SmallestMargins:
    q, most = len(question.normals), question.most
    signs = signs_of(block, question.classes)
    n = len(signs)
    values = np.full((2, most, q), np.inf)
    places = np.full((2, most, q), _NONE, dtype=np.int64)
    draws = question.draws
    coins = [] if draws is None else [_coins(draws, number, one) for one in draws.numbers]
    members: dict[int, AnyArray] = {}
    tile = max(1, _TILE_NUMBERS // q)
    for start in range(0, n, tile):
        within = slice(start, min(n, start + tile))
        products = inner_products(block.points[within], question.normals) * signs[within, None]
        inside = None
        if draws is not None:
            size = within.stop - start
            inside = np.stack([one.random(size) < draws.share for one in coins], axis=1)
            products[~inside] = np.inf
        for group, sign in enumerate((1.0, -1.0)):
            rows = np.flatnonzero(signs[within] == sign)
            _compete(values[group], places[group], products[rows], rows + start)
        if inside is not None:
            held = np.unique(places[(places >= start) & (places < within.stop)])
            members |= {int(row): inside[row - start] for row in held}
    held = np.unique(places[places >= 0])
    every = np.ones((len(held), q), dtype=bool)
    found = [members[int(row)] for row in held] if draws is not None else every
    return SmallestMargins(
        values,
        np.where(places >= 0, number, _NONE),
        places,
        dense_rows(block.points[held]).astype(np.float64),
        np.stack([np.full(len(held), number), held], axis=1),
        signs[held],
        np.array(found, dtype=bool).reshape(len(held), q),
    )


def _coins(draws: Draws, number: int, subset: int) -> np.random.Generator:
    return stream(draws.seed, Stage.SUBSETS, number, subset)


def _compete(values: FloatArray, places: IndexArray, products: FloatArray, rows: Any) -> None:
    """Let new rows into the smallest so far; of equal ones the earlier stays ahead."""
    most = len(values)
    if not len(rows):
        return
    if len(rows) > most:
        # Nearly all rows are above the largest held; one comparison clears them.
        limit = np.minimum(values[-1], np.partition(products, most - 1, axis=0)[most - 1])
        some = (products <= limit).any(axis=1)
        products, rows = products[some], rows[some]
    both = np.concatenate([values, products])
    place = np.concatenate([places, np.broadcast_to(rows[:, None], products.shape)])
    order = np.argsort(both, axis=0, kind="stable")[:most]
    values[:] = np.take_along_axis(both, order, axis=0)
    places[:] = np.where(np.isfinite(values), np.take_along_axis(place, order, axis=0), _NONE)


def _merge(first: SmallestMargins, second: SmallestMargins) -> SmallestMargins:
    most = first.values.shape[1]
    both = np.concatenate([first.values, second.values], axis=1)
    order = np.argsort(both, axis=1, kind="stable")[:, :most]

    def taken(one: Any, two: Any) -> Any:
        return np.take_along_axis(np.concatenate([one, two], axis=1), order, axis=1)

    numbers = taken(first.numbers, second.numbers)
    positions = taken(first.positions, second.positions)
    keys = np.concatenate([first.keys, second.keys])
    # Blocks are neighbours and rows are in order within them, so that no row comes twice.
    named = set(zip(numbers.ravel().tolist(), positions.ravel().tolist(), strict=True))
    held = np.array(
        [i for i, key in enumerate(map(tuple, keys.tolist())) if key in named], dtype=int
    )
    return SmallestMargins(
        np.take_along_axis(both, order, axis=1),
        numbers,
        positions,
        np.concatenate([first.rows, second.rows])[held],
        keys[held],
        np.concatenate([first.signs, second.signs])[held],
        np.concatenate([first.members, second.members])[held],
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


_SOLVED_TOGETHER = 16

"""Problems solved by one task."""


@dataclass(frozen=True, eq=False)
class Pool:
    """Rows that some problem met.

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

    def with_rows(self, other: Pool) -> Pool:
        """Return a pool with the rows of another that this one has not."""
        new = ~np.isin(other.indices, self.indices)
        if not new.any():
            return self
        members = None
        if self.members is not None:
            members = np.concatenate([self.members, other.members[new]])
        return Pool(
            np.concatenate([self.rows, other.rows[new]]),
            np.concatenate([self.signs, other.signs[new]]),
            np.concatenate([self.indices, other.indices[new]]),
            members,
        )


@dataclass(eq=False)
class MarginProblem:
    """One hard-margin problem.

    Attributes
    ----------
    removed : frozenset of int
        Numbers of rows it does without.
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
        """Which rows of a pool it sees, bool of shape (m,)."""
        if self.subset is not None:
            return pool.members[:, self.subset]
        return self.sees(pool.indices)

    def sees(self, indices: IndexArray) -> Any:
        """Which of some rows it does not do without."""
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
    r"""What all problems share: the data, the pool, and the best that was found.

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

    def ask(
        self, normals: FloatArray, draws: Draws | None = None, *, most: int | None = None
    ) -> ReadResult:
        """Read once, for the smallest margins of every separator on the rows it may see.

        Parameters
        ----------
        normals : ndarray of shape (q, d), float64
            Of length one.
        draws : Draws or None, default=None
            Random subsets, one a separator; with None each is measured on all rows, and the
            best is kept.
        most : int or None, default=None
            Margins wanted of each class: k + 1, and one on a subset.
        """
        if most is None:
            most = 1 if draws is not None else self.k + 1
        question = MarginQuery(normals, self.classes, most, draws)
        gathered = find_smallest(self.blocks, question)
        self.reads += 1
        found = gathered.value
        indices = row_numbers(gathered, found.keys[:, 0], found.keys[:, 1])
        of_values = np.full(found.numbers.shape, -1, dtype=np.int64)
        there = found.numbers >= 0
        of_values[there] = row_numbers(gathered, found.numbers[there], found.positions[there])
        if draws is None:
            for j, w in enumerate(normals):
                self._propose(w, found.values[:, :, j], of_values[:, :, j])
        return ReadResult(found, indices, of_values)

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
    """What a read gave.

    Attributes
    ----------
    found : Smallest
    indices : ndarray of shape (r,), int64
        Row numbers of its rows.
    of_values : ndarray of shape (2, most, q), int64
        Row numbers of its values, -1 for none.
    """

    found: SmallestMargins
    indices: IndexArray
    of_values: IndexArray


@dataclass(frozen=True, eq=False)
class _Given:
    pool: Pool
    allowed: Any
    intercept: bool


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
    shared : Shared
        Its pool grows, and its best candidate improves.
    problems : list of Problem
        Their states are set. Those that are open at the end ran out of passes.
    max_passes : int
    draws : Draws or None, default=None
        What the random subsets are. Problems on them are given up as soon as they cannot be
        better than the best candidate.
    """
    for _ in range(max_passes):
        active = [one for one in problems if one.state == "open"]
        fits = _solve_all(shared, active) if active else []
        left = []
        for problem, fit in zip(active, fits, strict=True):
            _note(shared, problem, fit)
            if problem.state == "open" and fit is not None:
                left.append((problem, fit))
        if not left:
            return
        _improve(shared, left, draws)


def _note(shared: SharedProblems, problem: MarginProblem, fit: HardMargin | None) -> None:
    """Tell inseparable problems, and those that cannot win any more."""
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
    shared: SharedProblems, left: list[tuple[MarginProblem, HardMargin]], draws: Draws | None
) -> None:
    """Read once for all problems that are not done; solved ones are told, rows are added."""
    if draws is not None:
        draws = replace(draws, numbers=tuple(int(one.subset or 0) for one, _ in left))
    answer = shared.ask(np.array([fit.w for _, fit in left]), draws)
    wanted: set[int] = set()
    for j, (problem, fit) in enumerate(left):
        values, indices = answer.found.values[:, :, j], answer.of_values[:, :, j]
        seen = np.where(problem.sees(indices) & (indices >= 0), values, np.inf)
        smallest = seen.min(axis=1)
        margin = float(smallest.sum()) / 2 if shared.intercept else float(smallest.min())
        if margin >= (1.0 - shared.epsilon) * fit.length:
            problem.state = "solved"
            continue
        known = shared.pool.indices[problem.allowed(shared.pool)]
        floors = _floors(shared, fit)
        new = np.setdiff1d(indices[seen < floors[:, None]], known)
        if not len(new):
            problem.state = "solved"  # all that double precision can tell
        wanted |= set(new.tolist())
    _extend(shared, answer, wanted, None if draws is None else draws.numbers)


def _floors(shared: SharedProblems, fit: HardMargin) -> FloatArray:
    if not shared.intercept:
        return np.full(2, (1.0 - shared.epsilon) * fit.length)
    floors: FloatArray = fit.levels + (fit.length - fit.margin) - shared.epsilon * fit.length
    return floors


def _extend(
    shared: SharedProblems, answer: ReadResult, wanted: set[int], numbers: tuple[int, ...] | None
) -> None:
    held = np.flatnonzero(np.isin(answer.indices, np.array(sorted(wanted), dtype=np.int64)))
    found, members = answer.found, None
    if numbers is not None:
        members = np.zeros((len(held), shared.pool.members.shape[1]), dtype=bool)
        members[:, list(numbers)] = found.members[held]
    more = Pool(found.rows[held], found.signs[held], answer.indices[held], members)
    shared.pool = shared.pool.with_rows(more)


def _solve_all(shared: SharedProblems, active: list[MarginProblem]) -> list[HardMargin | None]:
    """Solve on the pool; on the scheduler where there are many."""
    allowed = np.stack([one.allowed(shared.pool) for one in active])
    given = _Given(shared.pool, allowed, shared.intercept)
    numbers = np.arange(len(active), dtype=np.float64)[:, None]
    tasks = row_blocks(numbers, chunks=_SOLVED_TOGETHER)
    found: list[HardMargin | None] = map_reduce(tasks, _solve_some, add, given=given).value
    return found


def _solve_some(block: Block, number: int, given: _Given) -> list[HardMargin | None]:
    del number
    points: Any = block.points
    fits: list[HardMargin | None] = []
    pool = given.pool
    for one in points[:, 0].astype(int):
        held = given.allowed[one]
        rows, signs = pool.rows[held], pool.signs[held]
        if len(np.unique(signs)) < (2 if given.intercept else 1):
            fits.append(None)
        elif given.intercept:
            fits.append(hard_margin_bias(rows, signs, tol=1e-10))
        else:
            fits.append(hard_margin(rows * signs[:, None], tol=1e-10))
    return fits
