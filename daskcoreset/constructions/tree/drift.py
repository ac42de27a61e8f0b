r"""How much better a new solution would be than one that is kept, with an interval.

The saving is :math:`1 - \mathrm{cost}(Q') / \mathrm{cost}(Q)`, of the rows as they are now, with Q
the solution that is kept and Q' a new one. On rows that Q' was fitted to, its cost is too low. So
rows are dealt into parts, and each is judged by a solution that was fitted to the
others, which is a little worse than one that is fitted to all: the saving lies between the two.
The interval reaches from the one less two standard errors to the other plus two. The standard
error is that of a ratio of sums over rows that are drawn independently; rows that are drawn
systematically vary less.

More rows than a coreset has are taken: of the nodes near the root, not of the root alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daskcoreset.constructions.tree.job import Settings, concatenate_parts
from daskcoreset.constructions.tree.reducer import as_block
from daskcoreset.constructions.tree.shape import Part, finer
from daskcoreset.core.blocks import Block
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import InvalidInputError, ignore_overflow
from daskcoreset.core.linalg import one_thread
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.typing import FloatArray, Metric
from daskcoreset.objectives import QuantizationError
from daskcoreset.objectives.base import Objective, require_parts
from daskcoreset.solvers.spherical import unit_centers

# Parts into which rows are dealt.
_N_FOLDS = 5

# Solutions that are tried for each; the one of the lowest cost on the rows that it was fitted to
# counts, so that an unlucky start is no drift.
_N_STARTS = 3

# Standard errors of 95 %.
_Z = 1.96


@dataclass(frozen=True)
class Drift:
    """How much a new solution would save.

    Attributes
    ----------
    saving : float
        Share of the cost of the solution that is kept; below zero where new ones are worse.
    low, high : float
        Interval of about 95 %.
    kept_cost, new_cost : float
        Costs of both, as far as the tree knows them.
    """

    saving: float
    low: float
    high: float
    kept_cost: float
    new_cost: float

    def __repr__(self) -> str:
        return (
            f"Drift(recomputing brings rows {100 * self.saving:.3g} % closer, between "
            f"{100 * self.low:.3g} % and {100 * self.high:.3g} %)"
        )


def drift_of(
    settings: Settings,
    read_node: Callable[[str], WeightedPoints],
    parts: Sequence[Part],
    kept: Any,
    n_clusters: int | None,
) -> Drift:
    """Return the drift of a solution, judged on the nodes of some parts of a tree.

    Raises
    ------
    InvalidInputError
        The construction has no cost, or there are too few rows.
    """
    nodes = [read_node(part.name) for part in finer(parts)]
    points = concatenate_parts(nodes)
    points = points.take(points.weights > 0.0)
    if len(points) < 2 * _N_FOLDS:
        raise InvalidInputError(
            f"leaves has {len(points)} rows of positive weight, too few to judge a solution by; "
            f"pass a window with more."
        )
    block = as_block(points)
    objective, solution = _prepared(settings, block, kept, n_clusters)
    rng = stream(settings.seed, Stage.DRIFT)
    with one_thread(), ignore_overflow():
        return _judged(objective, block, solution, rng, settings.metric)


def solution_of(settings: Settings, coreset: Coreset, n_clusters: int | None) -> Any:
    """Return a solution of a coreset."""
    points = WeightedPoints(coreset.points, coreset.weights, coreset.indices, coreset.labels)
    block = as_block(points)
    objective = _objective(settings).fitted(block)
    if n_clusters is not None or settings.n_clusters is not None:
        objective = objective.with_parts(n_clusters or settings.n_clusters or 1)
    if objective.n_parts is None:
        raise InvalidInputError(
            "kept is missing, and the construction does not say of how many centers a solution of "
            "the version before is; pass a solution as kept, or n_clusters."
        )
    with one_thread(), ignore_overflow():
        return _solved(objective, block, stream(settings.seed, Stage.DRIFT, 1), settings.metric)


def _objective(settings: Settings) -> Objective[Any]:
    objective = settings.reducer.objective
    if objective is None:
        raise InvalidInputError(
            f"method {settings.reducer.name!r} names no cost to judge solutions by; give it an "
            f"objective."
        )
    return objective


def _prepared(
    settings: Settings, block: Block, kept: Any, n_clusters: int | None
) -> tuple[Objective[Any], Any]:
    kept = getattr(kept, "cluster_centers_", kept)
    objective = _objective(settings).fitted(block)
    solution = objective.read(kept, block.points.shape[1], "kept")
    solution = objective.labelled(solution, block, "kept")
    parts = n_clusters or settings.n_clusters
    if parts is None and objective.n_parts is None and isinstance(solution, np.ndarray):
        parts = len(solution)
    if parts is not None:
        objective = objective.with_parts(parts)
    require_parts(objective)
    return objective, solution


def _solved(
    objective: Objective[Any], block: Block, rng: np.random.Generator, metric: Metric
) -> Any:
    found = [objective.solve(block, rng) for _ in range(_N_STARTS)]
    if metric == "cosine" and isinstance(objective, QuantizationError):
        # Of length one, as those that are kept: others are nearer to unit rows.
        found = [unit_centers(block.points, block.weights, centers) for centers in found]
    costs = [objective.cost(block, solution) for solution in found]
    return found[int(np.argmin(costs))]


def _judged(
    objective: Objective[Any], block: Block, kept: Any, rng: np.random.Generator, metric: Metric
) -> Drift:
    old = objective.losses(block, kept)
    fold_of = rng.permutation(len(block)) % _N_FOLDS
    unseen = np.empty(len(block))
    # A penalty counts for every row by its weight, so that folds add up to the cost.
    penalties: list[float] = []
    for fold in range(_N_FOLDS):
        inside, outside = np.flatnonzero(fold_of == fold), np.flatnonzero(fold_of != fold)
        new = _solved(objective, _grown(block, outside), rng, metric)
        unseen[inside] = objective.losses(block.take(inside), new)
        penalties.append(objective.constant(new))
    best = _solved(objective, block, rng, metric)
    seen = objective.losses(block, best)
    constant = objective.constant(kept)
    kept_cost = float((block.weights * old).sum()) + constant
    new_cost = float((block.weights * unseen).sum()) + float(np.mean(penalties))
    seen_cost = float((block.weights * seen).sum()) + objective.constant(best)
    if not np.isfinite(kept_cost):
        raise InvalidInputError(
            f"kept costs {kept_cost}, for it is so far from the rows that the cost overflows; pass "
            f"a solution of these columns, in their units."
        )
    if not kept_cost > 0.0:
        return Drift(0.0, 0.0, 0.0, kept_cost, new_cost)
    lowest = 1.0 - new_cost / kept_cost
    highest = max(lowest, 1.0 - seen_cost / kept_cost)
    low = lowest - _Z * _error(block.weights, unseen, old, 1.0 - lowest, kept_cost)
    high = highest + _Z * _error(block.weights, seen, old, 1.0 - highest, kept_cost)
    return Drift((lowest + highest) / 2, low, min(high, 1.0), kept_cost, new_cost)


def _grown(block: Block, rows: Any) -> Block:
    """Return some rows with the weight of all, so that penalties count alike."""
    taken = block.take(rows)
    factor = block.weights.sum() / taken.weights.sum()
    return replace(taken, weights=taken.weights * factor)


def _error(
    weights: FloatArray, new: FloatArray, old: FloatArray, ratio: float, cost: float
) -> float:
    """Return the standard error of a ratio of weighted sums, by linearisation."""
    residuals = weights * (new - ratio * old)
    n = len(residuals)
    return float(np.sqrt(n / (n - 1) * np.square(residuals - residuals.mean()).sum()) / cost)
