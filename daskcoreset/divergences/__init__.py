"""Bregman divergences, and the table of their names."""

from __future__ import annotations

from daskcoreset.divergences.base import Divergence
from daskcoreset.divergences.positive import ItakuraSaito, KullbackLeibler
from daskcoreset.divergences.quadratic import SquaredEuclidean, SquaredMahalanobis
from daskcoreset.errors import InvalidInputError, InvalidTypeError

__all__ = [
    "DIVERGENCES",
    "Divergence",
    "ItakuraSaito",
    "KullbackLeibler",
    "SquaredEuclidean",
    "SquaredMahalanobis",
    "resolve_divergence",
]

DIVERGENCES: dict[str, type[Divergence]] = {
    SquaredEuclidean.name: SquaredEuclidean,
    SquaredMahalanobis.name: SquaredMahalanobis,
    KullbackLeibler.name: KullbackLeibler,
    ItakuraSaito.name: ItakuraSaito,
}
"""What a ``divergence`` argument knows by name."""


def resolve_divergence(divergence: str | Divergence) -> Divergence:
    """Return the divergence that a ``divergence`` argument stands for.

    Parameters
    ----------
    divergence : str or Divergence
        A name in `DIVERGENCES`, or a divergence with its parameters.

    Returns
    -------
    Divergence

    Raises
    ------
    InvalidInputError
        For an unknown name; the message lists the known ones.
    InvalidTypeError
        For anything else.

    Examples
    --------
    >>> resolve_divergence("kl")
    KullbackLeibler()
    """
    if isinstance(divergence, Divergence):
        return divergence
    known = ", ".join(repr(name) for name in DIVERGENCES)
    if isinstance(divergence, str):
        if divergence not in DIVERGENCES:
            raise InvalidInputError(
                f"divergence {divergence!r} is unknown; the known ones are {known}."
            )
        return DIVERGENCES[divergence]()
    raise InvalidTypeError(
        f"divergence must be a name or a divergence such as KullbackLeibler(), got "
        f"{divergence!r}; the known names are {known}."
    )
