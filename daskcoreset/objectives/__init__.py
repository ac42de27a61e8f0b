"""Objectives: the costs that coresets preserve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from daskcoreset.core.block import Block
from daskcoreset.core.validation import is_choice
from daskcoreset.errors import InvalidInputError
from daskcoreset.objectives import divergences
from daskcoreset.objectives.base import Objective, total_costs as total_costs
from daskcoreset.objectives.clustering import Distortion, QuantizationError
from daskcoreset.objectives.linear import LinearClassifier, LinearCost
from daskcoreset.objectives.mixture import MixtureCost
from daskcoreset.objectives.regression import LeastSquaresCost, LinearPredictor

__all__ = [
    "Distortion",
    "LeastSquaresCost",
    "LinearClassifier",
    "LinearCost",
    "LinearPredictor",
    "MixtureCost",
    "Objective",
    "QuantizationError",
    "divergences",
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
        Provenance of the coreset. ``provenance["objective"]`` is the `Objective.record` of the cost
        that its method names.
    n_clusters : int or None
        Centers or components of solutions. Default: those of the record, if it has any. For a
        coreset without a cost, such as one of coverage, centers of the quantization error.
    block : Block
        Rows of the coreset, from which a precision that is left open is estimated.

    Returns
    -------
    Objective

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If the coreset has no cost and `n_clusters` is not given, or if its cost is not of the
        library. Also if `n_clusters` is not a number of clusters.

    Examples
    --------
    >>> import numpy as np
    >>> from daskcoreset.core.block import Block
    >>> rows = Block(np.ones((9, 2)), np.ones(9))
    >>> objective_for({"objective": {"name": "mixture cost", "n_components": 3}}, None, rows)
    MixtureCost(n_components=3)
    """
    record = provenance.get("objective")
    remedy = "objective, for example daskcoreset.objectives.QuantizationError(10)"
    keeps_margin = record is not None and dict(record) == MARGIN
    if n_clusters is not None and (record is None or keeps_margin):
        return QuantizationError(n_clusters)
    if keeps_margin:
        raise InvalidInputError(
            f"the coreset (method {provenance.get('method')!r}) keeps a margin, "
            "the least distance of a row, which is not a sum of costs",
            remedy=f"read margin_ of the estimator, or pass {remedy}",
        )
    if record is None:
        raise InvalidInputError(
            f"the coreset (method {provenance.get('method')!r}) records no cost",
            remedy=f"pass n_clusters to compare centers, or {remedy}",
        )
    parameters = dict(record)
    name = parameters.pop("name", None)
    if not is_choice(name, OBJECTIVES):
        raise InvalidInputError(
            f"the coreset is made for the cost {name!r}, which is not one of the library",
            remedy=f"pass {remedy}",
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
