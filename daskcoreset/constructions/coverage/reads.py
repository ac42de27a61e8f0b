"""The passes over the data that a cover takes, each determined by the results of those before.

Squared distances are sums of differences in float64, so that float32 rows with a large offset
lose nothing. They run in one thread without BLAS, so that their bits are the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.block import Block, concatenate
from daskcoreset.core.invalid import no_weight_error
from daskcoreset.core.linalg import dense_rows, squared_distances
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points
from daskcoreset.errors import InvalidInputError
from daskcoreset.execution.engine import BlockResults, map_reduce
from daskcoreset.execution.select import row_keys, row_numbers
from daskcoreset.inputs.blocks import RowBlocks

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

# Core points at most for a diameter: more would be neither small nor quick to use.
MAX_POINTS = 100_000

# Bytes of sparse rows that are made dense at a time.
_TILE_BYTES = 64 * 2**20

# Superfluous core points are kept up to this share of all, to save a pass.
_SPARE = 0.02

# Passes that remove superfluous core points at most; those of a further pass are kept.
_ROUNDS = 4

# Rows that all blocks together offer at most: 16 MB at 20 float32 features.
_OFFERED = 200_000


def take_rows(block: Block, block_index: int, positions: IndexArray) -> Block:
    """Take rows out of a block, dense, and numbered by `row_keys`."""
    rows = block.take(positions)
    keys = row_keys(rows, block_index)
    return replace(rows, points=dense_rows(rows.points), rows=keys)


def _in_order(*parts: Block | None) -> Block:
    """Put core points together, in the order of the data."""
    rows = concatenate([part for part in parts if part is not None])
    keys: Any = rows.rows
    return rows.take(np.argsort(keys))


@dataclass(frozen=True, eq=False)
class Cover:
    """Core points such that every row, also one without weight, is near one of them.

    Attributes
    ----------
    points : ndarray of shape (r, d)
        Rows of the data, dense, in the data's float32 or float64.
    weights : ndarray of shape (r,), float64
        Input weight of the rows nearest to each. A row as near to several counts for one.
    indices : ndarray of shape (r,), int64
        Row numbers in the whole data, increasing.
    diameter : float
        Every row lies within ``diameter / 2`` of its nearest core point.
    n_rows : int
        Rows covered.
    reads : int
        Passes over the data.
    labels : ndarray of shape (r,) or None
    radius : float
        Largest distance of a row from its nearest core point.
    least_diameter : float
        Other covers of that size have no smaller diameter. Zero if the diameter was given.
    n_dropped : int
        Rows that were left out.
    """

    points: AnyArray
    weights: FloatArray
    indices: IndexArray
    diameter: float
    n_rows: int
    reads: int
    labels: AnyArray | None
    radius: float
    least_diameter: float
    n_dropped: int

    def __len__(self) -> int:
        return len(self.points)


def cover(
    blocks: RowBlocks,
    diameter: float | None = None,
    *,
    max_points: int | None = None,
    progress: bool | None = False,
) -> Cover:
    """Cover all rows with balls of a diameter, or with a number of balls.

    Parameters
    ----------
    blocks : RowBlocks
    diameter : float, optional
        None takes the farthest row again and again, until there are `max_points`.
    max_points : int, optional
        With a diameter: more core points are an error. None allows 100,000.
    progress
        As in `daskcoreset.build`.

    Raises
    ------
    InvalidInputError
        If a cover of this diameter needs more core points than allowed, no row has a weight,
        squared distances overflow, or dense blocks of sparse rows would be too large.

    Examples
    --------
    >>> from daskcoreset.inputs.blocks import row_blocks
    >>> found = cover(row_blocks(np.random.default_rng(0).random((1000, 2))), 0.5)
    >>> found.radius <= 0.25, float(found.weights.sum())
    (True, 1000.0)
    """
    blocks.refuse_zeros()
    reads = _Reads(blocks, progress)
    if diameter is None:
        assert max_points is not None  # noqa: S101 - one of the two is given
        return _of_farthest_rows(reads, max_points)
    return _of_diameter(reads, diameter, MAX_POINTS if max_points is None else max_points)


@dataclass(eq=False)
class _Reads:
    """Passes over the data, and how many there were."""

    blocks: RowBlocks
    progress: bool | None
    count: int = 0
    last: BlockResults[Any] = field(init=False)

    def __call__(self, chunk: Any, merge: Any, broadcast: Any = None) -> Any:
        self.last = map_reduce(
            self.blocks, chunk, merge, broadcast=broadcast, progress=self.progress
        )
        self.count += 1
        return self.last.value

    def numbers(self, core: Block) -> IndexArray:
        """Return the numbers of core points in the whole data."""
        keys: Any = core.rows
        return row_numbers(keys, self.last.offsets())

    def cells(self, core: Block | None, n_offered: int = 0) -> CellSummary:
        """Weigh the cells of core points, and find the rows farthest from all of them."""
        points = None if core is None else core.points
        chunk = partial(summarise_cells, n_offered=n_offered)
        summary: CellSummary = self(chunk, merge_summaries, points)
        return summary

    def finished(
        self, core: Block, cells: CellSummary, diameter: float | None, least: float = 0.0
    ) -> Cover:
        """Return the cover, from the results of the last pass."""
        if not np.isfinite(cells.farthest):
            raise InvalidInputError(
                "X has values so large that squared distances overflow",
                argument="X",
                remedy="scale the columns, for example with sklearn.preprocessing.MinMaxScaler",
            )
        if not cells.weights.sum() > 0.0:
            raise no_weight_error()
        radius = float(np.sqrt(cells.farthest))
        if diameter is None:
            # Larger by the rounding of distances that are computed in another order.
            diameter = 2.0 * radius * (1.0 + (core.points.shape[1] + 8) * 2.0**-50)
        return Cover(
            core.points,
            cells.weights,
            self.numbers(core),
            diameter,
            self.last.n_kept,
            self.count,
            core.labels,
            radius,
            least,
            self.last.n_rows - self.last.n_kept,
        )


# --- the online rule, for a diameter


def _of_diameter(reads: _Reads, diameter: float, max_points: int) -> Cover:
    """Open cells until all rows are covered, then weigh them."""
    core: Block | None = None
    for extra in range(_ROUNDS + 1):
        n_core = 0 if core is None else len(core)
        room = max_points - n_core
        rule = OnlineRule(diameter / 2, room, room if extra == _ROUNDS else int(_SPARE * n_core))
        opened: Opened = reads(rule.open_cells, rule.merge, None if core is None else core.points)
        core = opened.core if core is None else concatenate([core, opened.core])
        if opened.full:
            break
        # Without the dropped ones, rows that only these cover would need another pass.
        if opened.dropped is not None and len(core) + len(opened.dropped) <= max_points:
            core = _in_order(core, opened.dropped)
            return reads.finished(core, reads.cells(core), diameter)
    last = int(reads.numbers(_in_order(core))[-1]) + 1
    raise InvalidInputError(
        f"diameter is {diameter:g}, which needs more than {max_points:,} core points: so many "
        f"were found among the first {last:,} of {reads.last.n_rows:,} rows",
        argument="diameter",
        remedy="pass a larger diameter, or the number of core points alone",
    )


def online(
    points: Points, radius: float, *, earlier: AnyArray | None = None, max_points: int
) -> tuple[IndexArray, bool]:
    r"""Choose core points among rows, in their order.

    Parameters
    ----------
    points : ndarray of shape (n, d) or csr_array
    radius : float
        :math:`\delta / 2`.
    earlier : ndarray of shape (s, d), optional
        Core points that are there already.
    max_points : int
        New core points to stop at.

    Returns
    -------
    rows : ndarray of shape (r,), int64
        Rows that became core points, increasing.
    full : bool
        Whether there would be more than `max_points`.

    Examples
    --------
    >>> rows = np.array([[0.0], [0.9], [3.0], [2.9]])
    >>> online(rows, 1.0, max_points=9)
    (array([0, 2]), False)

    References
    ----------
    Le et al. (2017), Approximation Vector Machines, section 4.
    """
    from daskcoreset.constructions.coverage import loops_numba as loops

    # Below the square of the radius by more than two orders of summation can differ, so that
    # a distance that is computed again in float64 is within the radius.
    limit = float(radius * radius * (1.0 - (points.shape[1] + 8) * 2.0**-50))
    n_earlier = 0 if earlier is None else len(earlier)
    # Room for all, whose pages are in memory once they are written to.
    centers = np.empty((n_earlier + min(max_points, points.shape[0]), points.shape[1]))
    if earlier is not None:
        centers[:n_earlier] = earlier
    rows = np.empty(len(centers), dtype=np.int64)
    count, full = n_earlier, False
    for first, tile in _dense_tiles(points):
        before = count
        count, stop = loops.open_cells(tile, limit, centers, count, rows)
        rows[before:count] += first
        full = stop < len(tile)
        if full:
            break
    return rows[n_earlier:count].copy(), full


@dataclass(frozen=True, eq=False)
class Opened:
    """Core points of some blocks.

    Attributes
    ----------
    core : Block
        At more than the radius from one another, in the order of the blocks.
    dropped : Block or None
        Core points of blocks that others cover. None once there are too many to hold.
    full : bool
        Whether there are more than may be kept, so that rows stay uncovered.
    """

    core: Block
    dropped: Block | None
    full: bool


@dataclass(frozen=True)
class OnlineRule:
    """The reduction that opens cells in every block and merges them, see `online`.

    Attributes
    ----------
    radius : float
    max_points : int
        New core points at most.
    max_dropped : int
        Superfluous ones that are kept aside at most.
    """

    radius: float
    max_points: int
    max_dropped: int

    def open_cells(self, block: Block, block_index: int, earlier: AnyArray | None) -> Opened:
        """Cover the rows of a block, beside the core points there are."""
        rows, full = online(block.points, self.radius, earlier=earlier, max_points=self.max_points)
        core = take_rows(block, block_index, rows)
        return Opened(core, core.take(rows[:0]), full)

    def merge(self, first: Opened, second: Opened) -> Opened:
        """Keep the core points of the first, and those of the second that it does not cover."""
        points, earlier = second.core.points, first.core.points
        room = max(0, self.max_points - len(first.core))
        rows, full = online(points, self.radius, earlier=earlier, max_points=room)
        dropped = None
        if first.dropped is not None and second.dropped is not None:
            covered = np.setdiff1d(np.arange(len(second.core)), rows)
            if len(first.dropped) + len(second.dropped) + len(covered) <= self.max_dropped:
                dropped = concatenate([first.dropped, second.dropped, second.core.take(covered)])
        core = concatenate([first.core, second.core.take(rows)])
        return Opened(core, dropped, first.full or second.full or full)


# --- the farthest rows, for a number of core points


def _of_farthest_rows(reads: _Reads, max_points: int) -> Cover:
    """Add the rows that are farthest from all core points.

    On one block it is the traversal of Gonzalez (1985). Over blocks, every pass asks each for its
    own traversal, and the root goes on among the rows offered as long as no other row could be
    farther. A pass at most quadruples the core points.
    """
    core: Block | None = None
    gap = np.inf
    while True:
        n_core = 0 if core is None else len(core)
        room = max_points - n_core
        cells = reads.cells(core, _n_offered(n_core, reads.blocks.n_blocks, room))
        if core is not None and (not cells.farthest > 0.0 or not room):
            # With the farthest row, core points are one row more than there may be cells.
            least = float(np.sqrt(min(gap, cells.farthest)))
            return reads.finished(core, cells, None, least)
        added, added_gap = _farthest_offered(core, cells, room)
        core, gap = _in_order(core, added), min(gap, added_gap)


def _n_offered(n_core: int, n_blocks: int, room: int) -> int:
    """Return how many rows each block offers, for a number of core points and room for more."""
    if n_blocks == 1:
        return room  # its traversal is that of all rows
    return min(room, max(16, min(3 * n_core, _OFFERED // n_blocks)))


def _farthest_offered(core: Block | None, cells: CellSummary, room: int) -> tuple[Block, float]:
    """Return the next core points, and their least squared distance from those before."""
    points = cells.offered.points
    squares = np.full(len(points), np.inf)
    if core is not None:
        squares = nearest(_tree_of(core.points), points)[1]
    # Below `remaining`, a row that was not offered might be farther; one is always right.
    rows, gaps, _ = farthest_first(points, room, squares=squares.copy(), limit=cells.remaining)
    if not len(rows):
        rows, gaps, _ = farthest_first(points, min(1, room), squares=squares)
    return cells.offered.take(rows), float(gaps.min(initial=np.inf))


def farthest_first(
    points: Points, count: int, *, squares: FloatArray | None = None, limit: float = 0.0
) -> tuple[IndexArray, FloatArray, float]:
    """Take the farthest row, again and again.

    Parameters
    ----------
    points : ndarray of shape (n, d) or csr_array
    count : int
        Rows to take at most.
    squares : ndarray of shape (n,), float64, optional
        Squared distances from core points that are there. Overwritten. Without any, the first row
        is taken first.
    limit : float, default=0.0
        Squared distance at which to stop.

    Returns
    -------
    rows : ndarray of shape (c,), int64
        In the order of their distance from those before.
    gaps : ndarray of shape (c,), float64
        Squared distance of each from those before it. Infinite for the very first.
    remaining : float
        Squared distance of the farthest row that was not taken.

    Examples
    --------
    >>> farthest_first(np.array([[0.0], [1.0], [9.0]]), 2)
    (array([0, 2]), array([inf, 81.]), 1.0)

    References
    ----------
    Gonzalez (1985), Clustering to minimize the maximum intercluster distance, section 2. Tsang,
    Kwok and Cheung (2005), Core vector machines, section 4.1.
    """
    squares = np.full(points.shape[0], np.inf) if squares is None else squares
    rows: list[int] = []
    gaps: list[float] = []
    while len(squares) and len(rows) < count:
        row = int(squares.argmax())
        if not squares[row] > limit:
            break
        rows.append(row)
        gaps.append(float(squares[row]))
        center = dense_rows(points[row : row + 1])[0].astype(np.float64)
        for start, tile in _dense_tiles(points):
            part = squares[start : start + len(tile)]
            np.fmin(part, squared_distances(tile, center), out=part)
    return np.array(rows, dtype=np.int64), np.array(gaps), float(squares.max(initial=0.0))


@dataclass(frozen=True, eq=False)
class CellSummary:
    """Weights of the core points, and rows far from all of them, in some blocks.

    Attributes
    ----------
    weights : ndarray of shape (r,), float64
        Weight of the rows nearest to each.
    farthest : float
        Squared distance of the farthest row.
    offered : Block
        Rows far away.
    remaining : float
        Squared distance of the farthest row not offered, once those offered are core points.
    """

    weights: FloatArray
    farthest: float
    offered: Block
    remaining: float


def summarise_cells(
    block: Block, block_index: int, core: AnyArray | None, *, n_offered: int
) -> CellSummary:
    """Weigh the core points by the rows of a block, and offer the rows farthest from any."""
    weights = np.zeros(0 if core is None else len(core))
    squares = np.full(len(block), np.inf)
    if core is not None:
        tree = _tree_of(core)
        for start, tile in _dense_tiles(block.points):
            part = slice(start, start + len(tile))
            labels, squares[part] = nearest(tree, tile)
            weights += np.bincount(labels, block.weights[part], len(weights))
    farthest = float(squares.max(initial=0.0))
    rows, _, remaining = farthest_first(block.points, n_offered, squares=squares)
    return CellSummary(weights, farthest, take_rows(block, block_index, rows), remaining)


def merge_summaries(first: CellSummary, second: CellSummary) -> CellSummary:
    """Add up the summaries of neighbouring blocks."""
    return CellSummary(
        first.weights + second.weights,
        max(first.farthest, second.farthest),
        concatenate([first.offered, second.offered]),
        max(first.remaining, second.remaining),
    )


def _tree_of(points: AnyArray) -> cKDTree:
    from scipy.spatial import cKDTree  # slow to import

    return cKDTree(points.astype(np.float64))


def nearest(tree: cKDTree, points: AnyArray) -> tuple[IndexArray, FloatArray]:
    """Find the nearest core point of dense rows, and the squared distance, infinite on overflow."""
    rows = points.astype(np.float64)
    _, labels = tree.query(rows)
    labels = np.where(labels < tree.n, labels, 0)  # all distances overflow
    with np.errstate(over="ignore"):
        gaps = rows - tree.data[labels]
        return labels, np.einsum("ij,ij->i", gaps, gaps)


def _dense_tiles(points: Points) -> Iterator[tuple[int, AnyArray]]:
    """Go through rows as arrays in C order, with the number of the first row of each."""
    if isinstance(points, np.ndarray):
        yield 0, dense_rows(points)
        return
    size = max(1, _TILE_BYTES // max(1, points.shape[1] * points.dtype.itemsize))
    for start in range(0, points.shape[0], size):
        yield start, dense_rows(points[start : start + size])
