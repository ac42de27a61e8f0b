"""Costs that coresets promise to keep, and the one that belongs to a construction."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from daskcoreset.errors import InvalidInputError, InvalidTypeError
from daskcoreset.objectives.base import Objective
from daskcoreset.objectives.centers import Distortion, QuantizationError
from daskcoreset.objectives.linear import LinearClassifier, LinearCost
from daskcoreset.objectives.mixtures import MixtureCost
from daskcoreset.sensitivities.spread import as_divergence

if TYPE_CHECKING:
    from daskcoreset.blocks import Block

__all__ = [
    "Distortion",
    "LinearClassifier",
    "LinearCost",
    "MixtureCost",
    "Objective",
    "QuantizationError",
    "objective_for",
    "parts_of",
]


def parts_of(parameters: Mapping[str, Any]) -> int | None:
    """Centers or components that a construction is for, by its parameters; None for any.

    Examples
    --------
    >>> parts_of({"n_clusters": 5}), parts_of({"n_components": 3}), parts_of({})
    (5, 3, None)
    """
    found: int | None = parameters.get("n_clusters", parameters.get("n_components"))
    return found


def objective_for(
    method: str, parameters: Mapping[str, Any], n_clusters: Any, block: Block
) -> Objective[Any]:
    """Return the cost that coresets of a construction are made for.

    Parameters
    ----------
    method : str
        Name of the construction.
    parameters : mapping
        Its parameters, as in the provenance of a coreset.
    n_clusters : int or None
        Centers or components of solutions; those of the construction by default.
    block : Block
        Rows of a coreset, from which a precision that is left open is estimated.

    Returns
    -------
    Objective
        The quantization error, but for constructions that are made for something else.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If no usable number of clusters is known.

    Examples
    --------
    >>> import numpy as np
    >>> from daskcoreset.blocks import Block
    >>> objective_for("mixture", {"n_components": 3}, None, Block(np.ones((9, 2)), np.ones(9)))
    MixtureCost(n_components=3)
    """
    if method == "svm":
        return LinearCost("hinge", float(parameters.get("lam", 1.0)))
    if method == "logistic":
        return LinearCost("logistic")
    k = _checked(parts_of(parameters) if n_clusters is None else n_clusters)
    if method == "mixture":
        return MixtureCost(k)
    if "divergence" in parameters:
        divergence = as_divergence(parameters["divergence"])
        return Distortion(k, divergence.fitted(block.points, block.weights))
    return QuantizationError(k)


def _checked(n_clusters: Any) -> int:
    if n_clusters is None:
        raise InvalidInputError(
            "n_clusters is needed, as the coreset's construction does not say of how many centers "
            "solutions are; pass it, or pass solutions."
        )
    if isinstance(n_clusters, bool) or not isinstance(n_clusters, numbers.Integral):
        raise InvalidTypeError(f"n_clusters must be an integer, got {n_clusters!r}; pass an int.")
    if n_clusters < 1:
        raise InvalidInputError(f"n_clusters must be at least 1, got {n_clusters}; pass more.")
    return int(n_clusters)
