"""Double the size of a coreset until another one and the data agree with it on costs."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from operator import add
from typing import Any

from daskcoreset.constructions.sampling.job import SamplingJob
from daskcoreset.core.block import Block, concatenate
from daskcoreset.core.coreset import Coreset, thaw
from daskcoreset.core.messages import caller_level, warn_user
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.sampling import merge_duplicates
from daskcoreset.core.validation import as_float, as_int
from daskcoreset.execution.engine import Engine, map_reduce
from daskcoreset.execution.steps import listed, run_together
from daskcoreset.objectives import Objective, total_costs

# A step costs reads of the data, and a coreset of a thousand rows costs nothing else.
_MIN_START = 1000

# Below this the solutions on two coresets differ by what they fit to, and never agree.
_ROWS_PER_CLUSTER = 20

# Solutions whose costs over all data are added up: those fitted to either coreset, a poor one where
# the objective has any, and seedings.
_SOLUTIONS_ON_DATA = 6

# Where to give up: a coreset that has to be larger is no help to a solver in memory.
_MAX_ROWS = 2**20

# Below it there would be billions of seedings.
_LEAST_DELTA = 1e-8


@dataclass(frozen=True)
class AutoSize:
    """The rule by which two coresets agree.

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
        as_float("delta", self.delta, minimum=_LEAST_DELTA)

    @property
    def seedings(self) -> int:
        r"""Seedings that must all agree: the least t with :math:`(1 - \delta)^t \le \delta`."""
        return max(1, math.ceil(math.log(self.delta) / math.log1p(-self.delta)))

    @property
    def start(self) -> int:
        """Rows of the first two coresets."""
        return max(_MIN_START, _ROWS_PER_CLUSTER * self.n_clusters)


@dataclass
class _Search:
    """One search: the size grows, the job stays."""

    job: SamplingJob
    rule: AutoSize
    progress: bool | None
    steps: list[dict[str, float]] = field(default_factory=list)

    def run(self) -> Coreset:
        """Double the size until two coresets agree with each other and with the data."""
        size, limit = self.rule.start, self._limit(self.job.blocks.n_rows)
        while True:
            size = min(size, limit)
            # Warnings about a coreset that is only a step concern nobody.
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                pair = self._pair(size)
            limit = self._limit(int(pair[0].provenance["n"]))
            both = _united(*pair)
            agreed = self._agrees(size, pair, both)
            if agreed or size >= limit:
                break
            size *= 2
        for warning in {str(one.message): one for one in reversed(said)}.values():
            warnings.warn(warning.message, warning.category, stacklevel=caller_level())
        if not agreed:
            self._warn(size)
        return self._union(size, pair, both, agreed=agreed)

    def _limit(self, n_rows: int | None) -> int:
        limit = max(_MAX_ROWS, self.rule.start)
        # Two coresets that together have as many rows as the data save nothing.
        return limit if n_rows is None else min(limit, max(1, n_rows // 2))

    def _pair(self, size: int) -> list[Coreset]:
        """Build two coresets from the same reads, which share nothing but the data."""
        rng = stream(self.job.final_draw.seed, Stage.SIZING, 0, len(self.steps))
        jobs = [
            replace(self.job, final_draw=replace(self.job.final_draw, size=size, seed=int(seed)))
            for seed in rng.integers(2**63, size=2)
        ]
        engine = Engine.immediate(self.job.blocks, self.job.split_every)
        read = run_together(engine, {i: job.reading(engine) for i, job in enumerate(jobs)})
        results = engine.compute(engine.apply(listed, *read.values()), self.progress)
        steps = {i: job.finishing(results[i]) for i, job in enumerate(jobs)}
        return [*run_together(engine, steps).values()]

    def _agrees(self, size: int, pair: list[Coreset], both: Block) -> bool:
        """Compare costs of one solution after another. The first disagreement decides.

        A cluster that both coresets miss shows only in the data, which are read where they agree.
        """
        largest, on_data = 0.0, None
        costs_on_both: list[tuple[Any, float]] = []
        blocks = [_block(coreset) for coreset in pair]
        construction = self.job.construction
        objective = construction.objective.with_parts(self.rule.n_clusters).fitted(both)
        for solution in self._solutions(objective, blocks, both):
            costs = [objective.cost(block, solution) for block in blocks]
            largest = max(largest, _difference(*costs))
            costs_on_both.append((solution, objective.cost(both, solution)))
            if largest > self.rule.epsilon:
                break
        else:
            on_data = self._on_data(objective, costs_on_both[:_SOLUTIONS_ON_DATA])
        step = {"size": size, "disagreement": largest, "solutions": len(costs_on_both)}
        step["reads"] = self.job.reads + (on_data is not None)
        self.steps.append(step if on_data is None else step | {"on_data": on_data})
        return on_data is not None and on_data <= self.rule.epsilon

    def _on_data(self, objective: Objective[Any], costs_on_both: list[tuple[Any, float]]) -> float:
        """Read all data. Return the largest difference of a cost on both coresets from theirs."""
        solutions, costs = zip(*costs_on_both, strict=True)
        totals = map_reduce(
            self.job.blocks,
            total_costs,
            add,
            broadcast=(objective, solutions),
            progress=self.progress,
        ).value
        return max(
            _difference(cost, objective.constant(solution) + float(total))
            for solution, cost, total in zip(solutions, costs, totals, strict=True)
        )

    def _solutions(
        self, objective: Objective[Any], blocks: list[Block], both: Block
    ) -> Iterator[Any]:
        """Solutions where coresets differ most first: those fitted to one of them.

        A row far away has a center of its own in all but the poor one, so that its weight may
        be anything there.
        """
        rng = stream(self.job.final_draw.seed, Stage.SIZING, 1, len(self.steps))
        for block in blocks:
            yield objective.solve(block, rng)
        poor = objective.poor(both)
        if poor is not None:
            yield poor
        for _ in range(self.rule.seedings):
            yield objective.seed(both, rng)

    def _union(self, size: int, pair: list[Coreset], both: Block, *, agreed: bool) -> Coreset:
        """Return the union of both, in which a row of both is one row."""
        assert both.rows is not None  # noqa: S101 - those of the coresets
        chosen, weights = merge_duplicates(both.rows, both.weights)
        rows = both.take(chosen)
        # JSON has no infinity: None where one cost is zero and the other is not.
        steps = [
            {name: value if math.isfinite(value) else None for name, value in step.items()}
            for step in self.steps
        ]
        record = thaw(pair[0].provenance)
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
            "seeds": [coreset.provenance["seed"] for coreset in pair],
            "steps": steps,
        }
        return Coreset(rows.points, weights, both.rows[chosen], rows.labels, record)

    def _warn(self, size: int) -> None:
        last = self.steps[-1]
        differ = f"still differ by {last['disagreement']:.3g}"
        if "on_data" in last:
            differ = f"agree with each other, and differ from all the data by {last['on_data']:.3g}"
        warn_user(
            f"two coresets of {size} rows {differ}, and epsilon is "
            f"{self.rule.epsilon:g}. Larger coresets would save nothing, so the "
            "result is the union of these two. Pass a larger epsilon, or call "
            "build with a size."
        )


def auto_size(job: SamplingJob, rule: AutoSize, *, progress: bool | None = None) -> Coreset:
    r"""Double the size until two independent coresets agree, and return their union.

    Both coresets of a step are unbiased, so that the variance of their difference on a
    solution is twice that of either. The union of both, each with half its weights, has half
    the variance of one, a quarter of that of the difference. Its root mean square error is
    half of what is held against `epsilon`. Where they agree, another read adds up what six
    solutions cost over all data, those that are best for either coreset and a poor one among
    them: a cluster that both have missed, and a row far away that weighs too much in both, show
    there, in whatever order rows stand.

    Parameters
    ----------
    job : SamplingJob
        The build, of any size.
    rule : AutoSize
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


def _block(coreset: Coreset) -> Block:
    return Block(coreset.points, coreset.weights, coreset.labels, coreset.indices)


def _united(*pair: Coreset) -> Block:
    """Unite both with half their weights, which halves the variance."""
    both = concatenate([_block(coreset) for coreset in pair])
    return replace(both, weights=both.weights / 2.0)


def _difference(first: float, second: float) -> float:
    smaller = min(first, second)
    gap = abs(first - second)
    # Rounding leaves something of a cost of zero, and that is no disagreement.
    if gap <= 1e-12 * max(first, second):
        return 0.0
    return gap / smaller if smaller > 0 else math.inf
