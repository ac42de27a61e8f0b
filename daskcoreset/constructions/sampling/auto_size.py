"""Grow a coreset until an independent one of the same size, and the data, tell the same costs."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from daskcoreset.core.blocks import Block
from daskcoreset.core.coreset import Coreset, thaw
from daskcoreset.core.errors import caller_level, warn_user
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.sampling import merge_duplicates
from daskcoreset.core.validation import as_float, as_int
from daskcoreset.execution.engine import map_reduce
from daskcoreset.execution.progress import show_progress
from daskcoreset.objectives import Objective

if TYPE_CHECKING:
    from daskcoreset.constructions.sampling.job import SamplingJob
    from daskcoreset.core.typing import AnyArray, FloatArray

_LEAST_START = 1000
"""A step costs reads of the data, and a coreset of a thousand rows costs nothing else."""

_ROWS_PER_CLUSTER = 20
"""Below this the solutions on two coresets differ by what they fit to, and never agree."""


_ASKED = 6
"""Solutions whose costs over all data are added up: those fitted to either coreset, a poor one
where the objective has any, and seedings."""

_MOST_ROWS = 2**20
"""Where to give up: a coreset that has to be larger is no help to a solver in memory."""


@dataclass(frozen=True)
class AutoSize:
    """When two coresets agree.

    Attributes
    ----------
    n_clusters : int
        Centers of the candidate solutions.
    epsilon : float
        Relative difference of their costs that is tolerated.
    delta : float
        The share of k-means++ seedings that may disagree, and the probability that more do.
    """

    n_clusters: int
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        as_int("n_clusters", self.n_clusters)
        as_float("epsilon", self.epsilon)
        as_float("delta", self.delta)

    @property
    def seedings(self) -> int:
        r"""Seedings that must all agree: the least t with :math:`(1 - \delta)^t \le \delta`."""
        return max(1, math.ceil(math.log(self.delta) / math.log1p(-self.delta)))

    @property
    def start(self) -> int:
        """Rows of the first two coresets."""
        return max(_LEAST_START, _ROWS_PER_CLUSTER * self.n_clusters)


@dataclass(frozen=True)
class _Step:
    """Two coresets of one size, and the largest disagreement found."""

    size: int
    disagreement: float
    solutions: int
    reads: int
    on_data: float | None = None

    def record(self) -> dict[str, Any]:
        # JSON has no infinity: None where one cost is zero and the other is not.
        told = {"disagreement": self.disagreement}
        if self.on_data is not None:
            told["on_data"] = self.on_data
        finite = {name: v if math.isfinite(v) else None for name, v in told.items()}
        return {"size": self.size, **finite, "solutions": self.solutions, "reads": self.reads}


@dataclass(frozen=True)
class _Costs:
    """Leaf of a read that adds up the costs of some solutions."""

    objective: Objective[Any]
    solutions: tuple[Any, ...]

    def __call__(self, block: Block, number: int, given: object) -> FloatArray:
        del number, given
        return np.array([self.objective.total(block, one) for one in self.solutions])


@dataclass
class _Search:
    """The state of one search: what grows is the size, what stays is the job."""

    job: SamplingJob
    rule: AutoSize
    progress: bool | None
    steps: list[_Step] = field(default_factory=list)
    said: list[warnings.WarningMessage] = field(default_factory=list)

    def run(self) -> Coreset:
        """Double the size until two coresets agree with each other and with the data."""
        size, limit = self.rule.start, self._limit(self.job.blocks.n_rows)
        while True:
            size = min(size, limit)
            pair = self._pair(size)
            limit = self._limit(int(pair[0].provenance["n"]))
            agreed = self._agrees(size, *pair)
            if agreed or size >= limit:
                self._repeat_warnings()
                if not agreed:
                    self._warn(size)
                return self._union(size, *pair, agreed=agreed)
            size *= 2

    def _limit(self, n_rows: int | None) -> int:
        most = max(_MOST_ROWS, self.rule.start)
        # Two coresets that together have as many rows as the data save nothing.
        return most if n_rows is None else min(most, max(1, n_rows // 2))

    def _pair(self, size: int) -> tuple[Coreset, Coreset]:
        """Build two coresets that share nothing but the data."""
        rng = stream(self.job.final_draw.seed, Stage.SIZING, 0, len(self.steps))
        first, second = (
            replace(self.job, final_draw=replace(self.job.final_draw, size=size, seed=int(seed)))
            for seed in rng.integers(2**63, size=2)
        )
        # What is said of a coreset that is only a step concerns nobody.
        with warnings.catch_warnings(record=True) as self.said:
            warnings.simplefilter("always")
            if self.job.in_memory:
                return first.compute_in_memory(), second.compute_in_memory()
            import dask

            builds = first.lazy(), second.lazy()
            with show_progress(self.progress, builds[0]):
                # Of Dask collections, whose blocks both builds read from the same keys, one read.
                one, other = dask.compute(*builds)
            return one, other

    def _repeat_warnings(self) -> None:
        """Give the warnings of the last two builds, each once though its numbers may differ."""
        different = {re.sub(r"[\d.]+", "", str(one.message)): one for one in reversed(self.said)}
        for one in different.values():
            warnings.warn(one.message, one.category, stacklevel=caller_level())

    def _agrees(self, size: int, first: Coreset, second: Coreset) -> bool:
        """Compare costs of one solution after another; the first disagreement decides.

        What both miss, neither can tell: where they agree, the data are asked.
        """
        largest, on_data = 0.0, None
        united: list[tuple[Any, float]] = []
        pair = _block(first), _block(second)
        both = Block(
            _stacked(first.points, second.points),
            _halves(first, second),
            _labels(first, second),
        )
        construction = self.job.construction
        objective = construction.objective.with_parts(self.rule.n_clusters).fitted(both)
        for solution in self._solutions(objective, pair, both):
            costs = [objective.cost(block, solution) for block in pair]
            largest = max(largest, _difference(*costs))
            united.append((solution, objective.cost(both, solution)))
            if largest > self.rule.epsilon:
                break
        else:
            on_data = self._on_data(objective, united[:_ASKED])
        reads = 2 * self.job.reads + (on_data is not None)
        self.steps.append(_Step(size, largest, len(united), reads, on_data))
        return on_data is not None and on_data <= self.rule.epsilon

    def _on_data(self, objective: Objective[Any], united: list[tuple[Any, float]]) -> float:
        """Read all data; return the largest difference of a cost on both coresets from theirs."""
        leaf = _Costs(objective, tuple(solution for solution, _ in united))
        totals = map_reduce(self.job.blocks, leaf, add, progress=self.progress).value
        return max(
            _difference(cost, objective.constant(solution) + float(total))
            for (solution, cost), total in zip(united, totals, strict=True)
        )

    def _solutions(
        self, objective: Objective[Any], pair: tuple[Block, Block], both: Block
    ) -> Iterator[Any]:
        """Solutions where coresets differ most first: those fitted to one of them.

        A row far away has a center of its own in all but the poor one, so that its weight may
        be anything there.
        """
        rng = stream(self.job.final_draw.seed, Stage.SIZING, 1, len(self.steps))
        for block in pair:
            yield objective.solve(block, rng)
        poor = objective.poor(both)
        if poor is not None:
            yield poor
        for _ in range(self.rule.seedings):
            yield objective.seed(both, rng)

    def _union(self, size: int, first: Coreset, second: Coreset, *, agreed: bool) -> Coreset:
        """Unite both with half their weights: half the variance, for rows that are there."""
        indices = np.concatenate([first.indices, second.indices])
        chosen, weights = merge_duplicates(indices, _halves(first, second))
        points: Any = _stacked(first.points, second.points)
        labels = _labels(first, second)
        labels = None if labels is None else labels[chosen]
        record = thaw(first.provenance)
        record["seed"] = self.job.final_draw.seed
        record["size"] = 2 * size
        record["m"] = len(chosen)
        record["size_rule"] = {
            "rule": "auto",
            "n_clusters": self.rule.n_clusters,
            "epsilon": self.rule.epsilon,
            "delta": self.rule.delta,
            "agreed": agreed,
            "size": size,
            "seeds": [first.provenance["seed"], second.provenance["seed"]],
            "steps": [step.record() for step in self.steps],
        }
        return Coreset(points[chosen], weights, indices[chosen], labels, record)

    def _warn(self, size: int) -> None:
        last = self.steps[-1]
        differ = f"still differ by {last.disagreement:.3g}"
        if last.on_data is not None:
            differ = f"agree with each other, and differ from all the data by {last.on_data:.3g}"
        warn_user(
            f"size='auto': two coresets of {size} rows {differ} "
            f"where epsilon is {self.rule.epsilon:g}, and larger ones would save nothing: the "
            f"result is the union of these two. Pass a larger epsilon, or a size."
        )


def auto_size(job: SamplingJob, rule: AutoSize, *, progress: bool | None = None) -> Coreset:
    r"""Double the size until two independent coresets agree, and return their union.

    Both coresets of a step are unbiased, so that the variance of their difference on a
    solution is twice that of either; the union of both, each with half its weights, has half
    the variance of one, a quarter of that of the difference. Its root mean square error is
    half of what is held against `epsilon`. Where they agree, another read adds up what six
    solutions cost over all data, those that are best for either coreset and a poor one among
    them: a cluster that both have missed, and a row far away that weighs too much in both, show
    there, in whatever order rows stand.

    Parameters
    ----------
    job : SamplingJob
        The build, of any size.
    rule : Rule
    progress : bool or None, default=None
        As in `daskcoreset.build`.

    Returns
    -------
    Coreset
        With ``provenance["size_rule"]``: the rule, whether they agreed, and every step.

    Warns
    -----
    CoresetWarning
        If there was no agreement up to half the rows of the data, or 2**20 rows. What builds
        warn of is said once, of the last ones.
    """
    return _Search(job, rule, progress).run()


def _stacked(first: Any, second: Any) -> Any:
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return np.concatenate([first, second])
    return sp.csr_array(sp.vstack([sp.csr_array(first), sp.csr_array(second)], format="csr"))


def _labels(first: Coreset, second: Coreset) -> AnyArray | None:
    if first.labels is None or second.labels is None:
        return None
    return np.concatenate([first.labels, second.labels])


def _halves(first: Coreset, second: Coreset) -> FloatArray:
    return np.concatenate([first.weights, second.weights]) / 2.0


def _block(coreset: Coreset) -> Block:
    return Block(coreset.points, coreset.weights, coreset.labels)


def _difference(first: float, second: float) -> float:
    least = min(first, second)
    gap = abs(first - second)
    # Rounding leaves something of a cost of zero, and that is no disagreement.
    if gap <= 1e-12 * max(first, second):
        return 0.0
    return gap / least if least > 0 else math.inf
