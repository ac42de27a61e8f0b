r"""The rows that a kernel machine is trained on: all, or some drawn from every class.

Core points are drawn from every class, too. Whatever the core points are, they are a delta-cover,
with delta twice the largest distance of a row from the nearest. A cover with the least delta has
its core points at the rim of the data; drawn ones lie where rows are, so that most rows are nearer
to one, and on skewed classes half of them lie in the small class.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np

from daskcoreset.constructions.class_summary import ClassSummary
from daskcoreset.constructions.coverage.cover import cover
from daskcoreset.constructions.coverage.metric import Cells
from daskcoreset.core.blocks import Block, concatenate
from daskcoreset.core.linalg import dense_rows
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.sampling import (
    StratifiedReservoir,
    merge_reservoirs,
    sample_strata,
    split_quota,
)
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.estimators.kernel.kernels import KernelMap
from daskcoreset.estimators.kernel.losses import MarginLoss
from daskcoreset.estimators.kernel.objective import (
    Draw,
    ObjectiveQuery,
    ObjectiveTerms,
    draw_rows,
    evaluate_block,
    squared_norms,
)
from daskcoreset.execution.engine import map_reduce
from daskcoreset.inputs.blocks import RowBlocks, row_blocks

T = TypeVar("T")

# Indices of the block of past rows and of the root; no block of the data has them.
PAST, ROOT = 2**31, 2**31 + 1


@dataclass(frozen=True, eq=False)
class LabelledBlocks:
    """Labelled data, after the read that summarises them.

    Attributes
    ----------
    blocks : RowBlocks
    classes : ndarray of shape (n_classes,)
        All labels there may be in the blocks.
    summary : ClassSummary
    as_given : callable
        Returns rows of the blocks with the labels, and the numbers, that they were given with.
    """

    blocks: RowBlocks
    classes: AnyArray
    summary: ClassSummary
    as_given: Callable[[Block], Block]


@dataclass(eq=False)
class TrainingRows:
    """The rows that a model is trained on, and how often they were read.

    Attributes
    ----------
    blocks : RowBlocks
        With labels.
    classes : ndarray of shape (n_classes,)
    weight : float
        Total weight M, of the past too.
    n_rows : int
    block_weights : dict of int to float
        Weight of every block by its number; that of the past under `PAST`.
    past : Block or None
        Weighted rows in memory that represent the rows of earlier calls.
    whole : Block or None
        All rows, where they are in memory.
    report : callable or None
        Called with every entry of `trace`.
    reads : int
    trace : list of dict
        What `record` was passed, with "reads" and "seconds" so far.
    table : ndarray of shape (r, n_classes), float64, or None
        Weight of every class in the cell of every core point, after the first evaluation.
    radius : float
        Largest distance of a row from its nearest core point, likewise.
    """

    blocks: RowBlocks
    classes: AnyArray
    weight: float
    n_rows: int
    block_weights: dict[int, float] = field(default_factory=dict)
    past: Block | None = None
    whole: Block | None = None
    report: Callable[[dict[str, Any]], None] | None = None
    reads: int = 0
    trace: list[dict[str, Any]] = field(default_factory=list)
    table: FloatArray | None = None
    radius: float = 0.0
    started: float = field(default_factory=time.perf_counter)

    @classmethod
    def of(cls, data: LabelledBlocks, drawn: Block | None, past: Block | None) -> TrainingRows:
        """Return all rows of the data, or the sample drawn from them, and the past."""
        blocks, summary = data.blocks, data.summary
        n_rows, weights = summary.n_rows, dict(summary.weights)
        if drawn is not None:
            n_rows, weights = len(drawn), {0: summary.weight}
            blocks = row_blocks(drawn.points, drawn.labels, drawn.weights, chunks=n_rows)
        if past is not None:
            n_rows, weights[PAST] = n_rows + len(past), float(past.weights.sum())
        whole = drawn if past is None else None
        return cls(blocks, data.classes, sum(weights.values()), n_rows, weights, past, whole)

    @classmethod
    def of_block(cls, block: Block, classes: AnyArray) -> TrainingRows:
        """Return weighted rows in memory."""
        n_rows, weight = len(block), float(block.weights.sum())
        blocks = row_blocks(block.points, block.labels, block.weights, chunks=n_rows)
        return cls(blocks, classes, weight, n_rows, {0: weight}, whole=block)

    def evaluate(self, query: ObjectiveQuery) -> ObjectiveTerms:
        """Read all rows once."""
        # The core points stay the same: one read suffices for the contents of their cells.
        query = replace(query, table=self.table is None)
        terms: ObjectiveTerms = map_reduce(
            self.blocks, evaluate_block, ObjectiveTerms.merged, broadcast=query
        ).value
        if self.past is not None:
            terms = terms.merged(evaluate_block(self.past, PAST, query))
        if query.table:
            self.table, self.radius = terms.table, float(np.sqrt(terms.farthest))
        self.reads += 1
        return terms

    def record(self, **facts: float) -> None:
        """Add an entry to the trace, and report it."""
        seconds = time.perf_counter() - self.started
        self.trace.append({**facts, "reads": self.reads, "seconds": seconds})
        if self.report is not None:
            self.report(self.trace[-1])

    def draw(self, seed: int, fold: int, count: int | None) -> Block:
        """Draw rows with replacement in proportion to their weights, in one read.

        Parameters
        ----------
        seed, fold : int
            Address of the random numbers.
        count : int or None
            None for all rows.

        Returns
        -------
        Block
            In the order of the blocks. Of drawn rows each stands for as much as any other,
            whatever its weight; of all rows each for its weight.
        """
        return self.work_on_draw(_same, seed, fold, count)

    def work_on_draw(
        self, work: Callable[[Block], T], seed: int, fold: int, count: int | None
    ) -> T:
        """Return ``work(rows)`` of rows as of `draw`, made where they are: only it travels."""
        draw = self.quotas(seed, fold, count)
        past = None if self.past is None else draw_rows(self.past, PAST, draw)
        made: Any = map_reduce(
            self.blocks,
            draw_rows,
            _concatenate_two,
            broadcast=draw,
            then=partial(_work_with, work, past),
        )
        self.reads += 1
        value: T = made.value
        return value

    def quotas(self, seed: int, fold: int, count: int | None) -> Draw:
        """Split draws over the blocks; None takes all rows."""
        if count is None:
            return Draw(seed, fold, None)
        indices = sorted(self.block_weights)
        masses = np.array([[self.block_weights[index]] for index in indices])
        counts = split_quota(count, masses, stream(seed, Stage.DESCENT, ROOT, fold))[:, 0]
        return Draw(seed, fold, dict(zip(indices, counts.tolist(), strict=True)))


def _same(rows: Block) -> Block:
    return rows


def _work_with(work: Callable[[Block], T], past: Block | None, rows: Block) -> T:
    return work(rows if past is None else concatenate([rows, past]))


def _concatenate_two(first: Block, second: Block) -> Block:
    return concatenate([first, second])


@dataclass(frozen=True, eq=False)
class KernelProblem:
    r"""The objective over the combinations of the core points, for every class.

    .. math:: f(w) = \frac12 |w|^2 + \frac{\lambda}{M} \sum_i u_i\, l(z_i)

    Attributes
    ----------
    rows : TrainingRows
    core : KernelMap
    loss : MarginLoss
    lam : float
        Lambda.
    """

    rows: TrainingRows
    core: KernelMap
    loss: MarginLoss
    lam: float

    @property
    def factor(self) -> float:
        """Factor of the sum of losses."""
        return self.lam / self.rows.weight

    def evaluate(
        self, beta: FloatArray, gradient: str = "none", draw: Draw | None = None
    ) -> ObjectiveTerms:
        """Read all rows once; see `ObjectiveQuery`."""
        query = ObjectiveQuery(self.core, self.loss, self.rows.classes, beta, gradient=gradient)
        return self.rows.evaluate(replace(query, draw=draw))

    def objectives(self, gram: FloatArray, beta: FloatArray, losses: FloatArray) -> FloatArray:
        """Objective of every problem, from the sums of losses."""
        return 0.5 * squared_norms(gram, beta) + self.factor * losses


@dataclass(frozen=True, eq=False)
class Solution:
    """Coefficients of the core points, and how they were found.

    Attributes
    ----------
    beta : ndarray of shape (r, K), float64
    objectives : ndarray of shape (K,), float64
        Of the K problems, at `beta`.
    gaps : ndarray of shape (K,), float64, or None
        How far the objectives are, at most, above the least ones in the span.
    n_iter : int
    converged : bool or None
        Whether they are within the tolerance of the solver; None for a solver with a fixed number
        of steps.
    """

    beta: FloatArray
    objectives: FloatArray
    gaps: FloatArray | None
    n_iter: int
    converged: bool | None


@dataclass(frozen=True, eq=False)
class CorePoints:
    """Core points to train, with results of earlier reads.

    Attributes
    ----------
    rows : Block
        The core points, with labels and numbers as given.
    diameter : float
        Bound for the rows of earlier calls, or of a cover.
    measured : bool
        Whether the distances of the training rows count for the diameter.
    shares : ndarray of shape (r,), float64, or None
        Weights by which drawn core points stand for all rows; None for those of the cells.
    beta : ndarray of shape (r, K), float64, or None
        Coefficients to begin with; None for zeros.
    table : ndarray of shape (r, n_classes), float64, or None
        Weight of every class in the cell of a core point, of rows of earlier calls.
    drawn : Block or None
        Rows to train on that were drawn in the same read.
    """

    rows: Block
    diameter: float = 0.0
    measured: bool = True
    shares: FloatArray | None = None
    beta: Any = None
    table: Any = None
    drawn: Block | None = None

    @property
    def points(self) -> AnyArray:
        """Core points, of shape (r, d)."""
        return np.asarray(self.rows.points)

    def thinned(self, max_points: int, cells: Cells) -> tuple[CorePoints, float]:
        """Cover the core points by fewer of them.

        Returns
        -------
        CorePoints
            With coefficients and weights of those left out added to the nearest one.
        diameter : float
            Of the cells.
        """
        coverage = cover(row_blocks(self.points), max_points=max_points, cells=cells)
        nearest = coverage.nearest(self.points)[0]

        def moved(values: FloatArray) -> FloatArray:
            sums = np.zeros((len(coverage), values.shape[1]))
            np.add.at(sums, nearest, values)
            return sums

        fewer = replace(
            self,
            rows=self.rows.take(coverage.indices),
            diameter=self.diameter + coverage.diameter,
            beta=moved(self.beta),
            table=moved(self.table),
        )
        return fewer, coverage.diameter

    def past(self, classes: AnyArray) -> Block | None:
        """Return core points in place of the rows of earlier calls, weighted by `table`."""
        if self.table is None:
            return None
        positions, codes = np.nonzero(self.table)
        points = np.asarray(self.points, dtype=np.float64)
        return Block(points[positions], self.table[positions, codes], classes[codes]).all_rows()


# A sample of every class, by its label.
Strata: TypeAlias = dict[Any, StratifiedReservoir]

# Address of the keys of rows.
_FOLD = 2**30 - 2

# Candidates for every core point: equal rows count once.
_SPARE = 2


# Rows of a block at most, where the number of the block stands before that of a row in it.
_BLOCK_ROWS = 2**32


def _sample_block(
    block: Block, block_index: int, _broadcast: object, *, sizes: dict[Any, int], seed: int
) -> Strata:
    strata = sample_strata(block, sizes, stream(seed, Stage.DESCENT, block_index, _FOLD))
    return {label: _renumbered(part, block_index * _BLOCK_ROWS) for label, part in strata.items()}


def _renumbered(part: StratifiedReservoir, added: Any) -> StratifiedReservoir:
    numbers: Any = part.rows.rows
    return replace(part, rows=replace(part.rows, rows=numbers + added))


def quotas_of(size: int, classes: AnyArray, weights: FloatArray) -> dict[Any, int]:
    """Split rows to train on over the classes: half evenly, half in proportion to weights.

    On skewed classes the loss on further rows of what is trained on them is lower than with
    either alone, on even ones it is the same (w8a, ijcnn1, htru2 and credit, cod_rna).

    Examples
    --------
    >>> quotas_of(100, np.array(["a", "b"]), np.array([9.0, 1.0]))
    {'a': 70, 'b': 30}
    """
    shares = 0.5 / len(weights) + 0.5 * weights / weights.sum()
    counts = np.maximum(1, np.round(size * shares)).astype(np.int64)
    return dict(zip(classes.tolist(), counts.tolist(), strict=True))


def sample_classes(
    blocks: RowBlocks,
    classes: AnyArray,
    *,
    points: int = 0,
    quotas: dict[Any, int] | None = None,
    seed: int,
) -> Strata:
    """Sample every class in one read, for core points and for rows to train on.

    Within its class a row is drawn without replacement in proportion to its weight: it has an
    exponential key with its weight for a rate, and the smallest keys win.

    Parameters
    ----------
    blocks : RowBlocks
        With labels.
    classes : ndarray of shape (k,)
        All labels there are.
    points : int, default=0
        Core points to be taken by `sample_core_points`.
    quotas : dict of label to int, optional
        Rows to be taken by `training_rows`.
    seed : int

    Returns
    -------
    dict of label to StratifiedReservoir
        Rows are numbered as in the whole data.

    References
    ----------
    Efraimidis and Spirakis (2006), Weighted random sampling with a reservoir.
    """
    n_rows = quotas or {}
    sizes = {label: max(_SPARE * points, n_rows.get(label, 0)) for label in classes.tolist()}
    sample_block = partial(_sample_block, sizes=sizes, seed=seed)
    found = map_reduce(blocks, sample_block, partial(merge_reservoirs, size=sizes))
    firsts, strata = found.offsets(), {}
    for label, part in found.value.items():
        numbers: Any = part.rows.rows
        owners = numbers // _BLOCK_ROWS
        strata[label] = _renumbered(part, firsts.at(owners) - owners * _BLOCK_ROWS)
    return strata


def sample_core_points(strata: Strata, count: int, *, beside: AnyArray | None = None) -> Block:
    """Return distinct rows, as many of every class unless one has fewer.

    Parameters
    ----------
    strata : dict of label to StratifiedReservoir
    count : int
        Rows to return.
    beside : ndarray of shape (s, d), optional
        Core points that there are; no row is equal to one of them.

    Returns
    -------
    Block
        Dense rows in the order of class and key; `count` unless fewer are distinct. Their weights
        add up to that of the class in every class: of equal rows that were drawn one stands for
        all of them.

    Examples
    --------
    >>> from daskcoreset.inputs.blocks import row_blocks
    >>> X, classes = np.arange(100.0).reshape(-1, 1), np.array([False, True])
    >>> strata = sample_classes(row_blocks(X, X[:, 0] < 10), classes, points=8, seed=0)
    >>> rows = sample_core_points(strata, 8)
    >>> rows.points.shape, int((rows.points < 10).sum()), rows.weights[[0, -1]].tolist()
    ((8, 1), 4, [22.5, 2.5])
    """
    n_before = 0 if beside is None else len(beside)
    n_candidates = _SPARE * (count + n_before)
    few = [strata[label].smallest(n_candidates).rows for label in sorted(strata)]
    candidates = concatenate(few)
    candidates = replace(candidates, points=dense_rows(candidates.points))
    of_class = np.repeat(np.arange(len(few)), [len(rows) for rows in few])
    points = np.asarray(candidates.points)
    points = points if beside is None else np.concatenate([beside, points])
    # Of equal rows, whatever their class, the first counts.
    _, first, owners = np.unique(points, axis=0, return_index=True, return_inverse=True)
    owners = first[owners.reshape(-1)] - n_before
    first = np.sort(first)
    first = first[first >= n_before] - n_before
    codes = of_class[first]
    quotas = split_evenly(count, np.bincount(codes, minlength=len(few)))
    rows = [first[codes == k][:quota] for k, quota in enumerate(quotas)]
    weights, start = np.zeros(len(candidates)), 0
    for label, part, taken in zip(sorted(strata), few, rows, strict=True):
        # Candidates up to the last that was taken are a sample of the class.
        n_drawn = len(part) if not len(taken) else int(taken[-1]) - start + 1
        shares = strata[label].stand_ins(n_drawn)
        stands = owners[n_before:][start : start + n_drawn]
        known = np.isin(stands, taken)
        np.add.at(weights, stands[known], shares[known])
        if len(taken):
            weights[taken] *= strata[label].weight / weights[taken].sum()
        start += len(part)
    chosen = np.concatenate(rows)
    return replace(candidates.take(chosen), weights=weights[chosen])


def training_rows(strata: Strata, quotas: dict[Any, int]) -> Block:
    """Return a weighted sample: in every class, weights add up to that of the class.

    Parameters
    ----------
    strata : dict of label to StratifiedReservoir
        Sampled with these quotas.
    quotas : dict of label to int
        Rows of every class, or all there are.

    Returns
    -------
    Block
        In the order of class and key.

    Examples
    --------
    >>> from daskcoreset.inputs.blocks import row_blocks
    >>> X, classes = np.arange(1000.0).reshape(-1, 1), np.array([False, True])
    >>> quotas = {False: 40, True: 20}
    >>> strata = sample_classes(row_blocks(X, X[:, 0] < 100), classes, quotas=quotas, seed=0)
    >>> rows = training_rows(strata, quotas)
    >>> len(rows), int(rows.labels.sum()), round(float(rows.weights[rows.labels].sum()))
    (60, 20, 100)
    """
    taken = []
    for label in sorted(strata):
        part, quota = strata[label], quotas[label]
        rows = part.rows.take(np.arange(min(quota, len(part.rows))))
        taken.append(replace(rows, weights=part.stand_ins(quota)))
    return concatenate(taken)


def split_evenly(count: int, limits: IndexArray) -> IndexArray:
    """Split a number as evenly as upper limits allow.

    Examples
    --------
    >>> split_evenly(10, np.array([2, 100, 100]))
    array([2, 4, 4])
    """
    shares = np.zeros(len(limits), dtype=np.int64)
    count = min(count, int(limits.sum()))
    while True:
        remainder, free = count - int(shares.sum()), np.flatnonzero(shares < limits)
        if remainder <= 0 or not len(free):
            return shares
        if remainder < len(free):
            shares[free[:remainder]] += 1
            return shares
        shares[free] = np.minimum(limits[free], shares[free] + remainder // len(free))
