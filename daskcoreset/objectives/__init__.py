"""Objectives: the costs that coresets preserve."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from daskcoreset.core.blocks import Block
from daskcoreset.core.coreset import Coreset, thaw
from daskcoreset.core.errors import InvalidInputError, warn_user
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.validation import is_choice
from daskcoreset.objectives.base import Objective
from daskcoreset.objectives.clustering import Distortion, QuantizationError
from daskcoreset.objectives.linear import LinearClassifier, LinearCost
from daskcoreset.objectives.mixture import MixtureCost
from daskcoreset.objectives.regression import LeastSquaresCost, LinearPredictor
from daskcoreset.solvers import divergences
from daskcoreset.solvers.divergences import SquaredEuclidean, resolve_divergence

__all__ = [
    "OBJECTIVES",
    "Distortion",
    "LeastSquaresCost",
    "LinearClassifier",
    "LinearCost",
    "LinearPredictor",
    "MixtureCost",
    "Objective",
    "QuantizationError",
    "cost_on",
    "divergences",
    "objective_for",
    "recorded",
]

# The record of rows that keep a margin, or a solution, and no sum of costs.
MARGIN: dict[str, Any] = {"name": "margin"}

# Objectives by their names in the provenance of a coreset.
OBJECTIVES: dict[str, type[Objective[Any]]] = {
    objective.name: objective
    for objective in (
        Distortion,
        LeastSquaresCost,
        LinearCost,
        MixtureCost,
        QuantizationError,
    )
}


def objective_for(
    provenance: Mapping[str, Any], n_clusters: int | None, block: Block
) -> Objective[Any]:
    """Return the objective that the provenance of a coreset records.

    Parameters
    ----------
    provenance : mapping
        Of the coreset; ``provenance["objective"]`` is the `Objective.record` of the cost that
        its construction names.
    n_clusters : int or None
        Centers or components of solutions; by default those of the record, where it has any. Of
        a coreset that names no cost, such as one of coverage, centers of the quantization error.
    block : Block
        Rows of the coreset, from which a precision that is left open is estimated.

    Returns
    -------
    Objective

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If the coreset names no cost, and `n_clusters` is not given, or one that is not of the
        library: no other is taken in its place. Or if `n_clusters` is no number of clusters.

    Examples
    --------
    >>> import numpy as np
    >>> from daskcoreset.core.blocks import Block
    >>> rows = Block(np.ones((9, 2)), np.ones(9))
    >>> objective_for({"objective": {"name": "mixture cost", "n_components": 3}}, None, rows)
    MixtureCost(n_components=3)
    """
    record = provenance.get("objective")
    remedy = "objective, for example daskcoreset.objectives.QuantizationError(10)."
    keeps_margin = record is not None and dict(record) == MARGIN
    if n_clusters is not None and (record is None or keeps_margin):
        return QuantizationError(n_clusters)
    if keeps_margin:
        raise InvalidInputError(
            f"the coreset (method {provenance.get('method')!r}) keeps a margin, the least distance "
            f"of a row, which is no sum of costs: audit(X, y) of the estimator compares it; or "
            f"pass {remedy}"
        )
    if record is None:
        raise InvalidInputError(
            f"the coreset (method {provenance.get('method')!r}) does not say what cost it is "
            f"made for; pass n_clusters to judge by centers, or {remedy}"
        )
    parameters = dict(record)
    name = parameters.pop("name", None)
    if not is_choice(name, OBJECTIVES):
        raise InvalidInputError(
            f"the coreset is made for the cost {name!r}, which is not one of the library; pass "
            f"{remedy}"
        )
    objective = OBJECTIVES[name](**parameters)
    if n_clusters is not None:
        objective = objective.with_parts(n_clusters)
    return objective.fitted(block)


def recorded(objective: Objective[Any] | None, n_clusters: int | None) -> dict[str, Any] | None:
    """Return the entry of the provenance that `objective_for` reads.

    Examples
    --------
    >>> recorded(QuantizationError(), 10)
    {'name': 'quantization error', 'n_clusters': 10}
    """
    if objective is None:
        return None
    if objective.n_parts is None and n_clusters is not None:
        objective = objective.with_parts(n_clusters)
    return objective.record()


def cost_on(coreset: WeightedPoints, objective: Objective[Any], solution: Any) -> float:
    r"""Return the cost of a solution on a coreset: an estimate of that on the data.

    The weighted cost of the rows, and of centroids the cost in their cells besides, less an
    estimate of what rows of a cell save that are nearer to another center than its centroid is:
    for the center :math:`q_i` nearest to the centroid, and a row :math:`x_i` of weight
    :math:`v_i` drawn from the cell,

    .. math:: \sum_i v_i \left(d(x_i, q_i) - \min_{q \in Q} d(x_i, q)\right) .

    Of a solution that does not depend on the draw this is unbiased, as long as something is left
    above zero. Where cells hold several clusters that the solution tells apart, it varies far more
    than on as many rows of the data, and there may be nothing left: one row of a cell says little
    of what the others save.

    Raises
    ------
    InvalidInputError
        If the coreset is of centroids for another cost.

    Warns
    -----
    CoresetWarning
        If what rows save is known poorly; where what is left is not above zero, the cost is the
        weighted one of the rows drawn from cells.

    Examples
    --------
    >>> import numpy as np, daskcoreset
    >>> X = np.random.default_rng(0).normal(size=(10_000, 2))
    >>> method = daskcoreset.StrongKMeans(3, representatives="centroids")
    >>> coreset = daskcoreset.build(X, size=500, method=method, random_state=0)
    >>> others, cost = X[:50], QuantizationError()
    >>> on_all = cost.cost(Block(X, np.ones(len(X))), others)
    >>> bool(abs(cost_on(coreset, cost, others) / on_all - 1) < 0.1)
    True

    References
    ----------
    Sarndal, Swensson and Wretman (1992), Model Assisted Survey Sampling, section 6.3: the
    difference estimator.
    """
    rows = Block(coreset.points, coreset.weights, coreset.labels)
    if not isinstance(coreset, Coreset):
        return objective.cost(rows, solution)
    check_centroids(coreset, objective)
    if coreset.cell_rows is None:
        return objective.cost(rows, solution) + coreset.constant
    drawn = Block(coreset.cell_rows.points, coreset.cell_rows.weights)
    at_points, at_drawn, saved = objective.losses_in_cells(rows, drawn, solution)
    cost = float((rows.weights * at_points).sum()) + coreset.constant
    if not math.isfinite(cost):
        return cost
    saved = drawn.weights * saved
    left, error = cost - float(saved.sum()), math.sqrt(float(saved @ saved))
    if error > _SURE * left:
        warn_user(
            "the centers tell clusters apart that lie together in cells of the centroids, and the "
            f"cost of {cost:.4g}, less {cost - left:.4g} that rows of the cells save, is off by "
            f'some {error:.4g}; build with a larger size, or with representatives="rows".'
        )
    return left if left > 0.0 else float((drawn.weights * at_drawn).sum())


# Error of what rows of cells save, as a share of the cost, up to which nothing is said of it.
_SURE = 0.25


def check_centroids(coreset: Coreset, objective: Objective[Any]) -> None:
    """Raise an error if a coreset is of centroids for another cost."""
    record, asked = coreset.provenance.get("objective") or {}, objective.record()
    if coreset.of_centroids and _kind(record) != _kind(asked):
        raise InvalidInputError(
            f"the rows of the coreset are centroids for {_named(record)}, and say nothing of "
            f'{_named(asked)}; build it with representatives="rows".'
        )


def _named(record: Mapping[str, Any]) -> str:
    """Return the name of a cost, with its divergence."""
    if "name" not in record:
        return "a cost that its provenance does not name"
    divergence = record.get("divergence")
    by = divergence.get("name") if isinstance(divergence, Mapping) else divergence
    return f"the {record['name']}" + ("" if by is None else f" by {by}")


def _kind(record: Mapping[str, Any]) -> Any:
    """Return what tells costs of centers apart, whatever their number."""
    divergence = record.get("divergence")
    euclidean = isinstance(divergence, str) and isinstance(
        resolve_divergence(divergence), SquaredEuclidean
    )
    if record.get("name") == QuantizationError.name or euclidean:
        return QuantizationError.name
    return {name: value for name, value in thaw(record).items() if name != "n_clusters"}
