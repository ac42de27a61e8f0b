"""Bregman divergences, and the table of their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from daskcoreset.core.block import Block
from daskcoreset.core.invalid import InvalidRow
from daskcoreset.core.validation import check_choice, check_type
from daskcoreset.solvers.divergences.base import Divergence
from daskcoreset.solvers.divergences.positive import ItakuraSaito, KullbackLeibler
from daskcoreset.solvers.divergences.quadratic import SquaredEuclidean, SquaredMahalanobis

__all__ = [
    "Divergence",
    "ItakuraSaito",
    "KullbackLeibler",
    "SquaredEuclidean",
    "SquaredMahalanobis",
]

# Divergences by the names that a ``divergence`` argument takes.
DIVERGENCES: dict[str, type[Divergence]] = {
    divergence_class.name: divergence_class
    for divergence_class in (SquaredEuclidean, SquaredMahalanobis, KullbackLeibler, ItakuraSaito)
}


def as_divergence(value: Any) -> Divergence:
    """Return the divergence for a name in `DIVERGENCES`, an object or a mapping from JSON.

    Raises
    ------
    InvalidInputError
        For an unknown name. The message lists the known ones.
    InvalidTypeError
        For anything else.

    Examples
    --------
    >>> as_divergence("kl")
    KullbackLeibler()
    >>> as_divergence({"name": "mahalanobis", "precision": [4.0]}).precision
    array([4.])
    """
    if isinstance(value, Divergence):
        return value
    remedy = "pass a name, or a divergence such as KullbackLeibler()"
    check_type("divergence", value, (str, Mapping), remedy)
    options = {"name": value} if isinstance(value, str) else dict(value)
    name = options.pop("name", None)
    check_choice("divergence", name, *DIVERGENCES)
    return DIVERGENCES[name](**options)


def divergence_parameters(divergence: Divergence) -> Any:
    """Return the divergence as plain JSON values, which `as_divergence` reads.

    Examples
    --------
    >>> divergence_parameters(KullbackLeibler())
    'kl'
    >>> divergence_parameters(SquaredMahalanobis([4.0]))
    {'name': 'mahalanobis', 'precision': [4.0]}
    """
    plain = {name: value for name, value in plain_fields(divergence).items() if value is not None}
    return {"name": divergence.name, **plain} if plain else divergence.name


def plain_fields(instance: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name, as plain JSON values.

    Examples
    --------
    >>> plain_fields(SquaredMahalanobis([4.0]))
    {'precision': [4.0]}
    """
    return {field.name: _plain(getattr(instance, field.name)) for field in fields(instance)}


def _plain(value: Any) -> Any:
    if isinstance(value, Divergence):
        return divergence_parameters(value)
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value


def domain_problem(divergence: Divergence, block: Block) -> InvalidRow | None:
    """Return the problem of the first row of positive weight outside the domain, or None.

    A precision of the wrong size is a problem as well.
    """
    if isinstance(divergence, SquaredMahalanobis):
        precision, n_features = divergence.precision, block.points.shape[1]
        if precision is None or len(precision) == n_features:
            return None
        return InvalidRow(
            f"precision has shape {precision.shape} but X has {n_features} columns",
            argument="precision",
            remedy="pass a precision with one row per column",
        )
    if isinstance(divergence, SquaredEuclidean):
        return None  # blocks are finite
    counted = np.flatnonzero(block.weights > 0)
    everything = len(counted) == len(block)
    invalid = divergence.find_invalid_row(block.points if everything else block.points[counted])
    if invalid is None or invalid.row is None:
        return invalid
    return replace(invalid, row=block.number_of(counted[invalid.row]))


class DivergenceParameter:
    """Base of dataclasses with a field `divergence`: a name, a mapping from JSON or an object.

    It is kept as an object.
    """

    divergence: str | Divergence

    def __post_init__(self) -> None:
        object.__setattr__(self, "divergence", as_divergence(self.divergence))

    @property
    def _divergence(self) -> Divergence:
        return as_divergence(self.divergence)

    def find_invalid_row(self, block: Block) -> InvalidRow | None:
        """Return the first row of positive weight outside the domain."""
        return domain_problem(self._divergence, block)
