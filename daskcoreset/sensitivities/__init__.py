"""One file per sensitivity, and the table of their names."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from daskcoreset.errors import InvalidInputError, InvalidTypeError
from daskcoreset.sensitivities.base import Sensitivity
from daskcoreset.sensitivities.kmeans import StrongKMeans
from daskcoreset.sensitivities.lightweight import Lightweight
from daskcoreset.sensitivities.uniform import Uniform

__all__ = [
    "CONSTRUCTIONS",
    "Lightweight",
    "Sensitivity",
    "StrongKMeans",
    "Uniform",
    "resolve_method",
]

CONSTRUCTIONS: dict[str, type[Sensitivity[Any]]] = {
    Lightweight.name: Lightweight,
    StrongKMeans.name: StrongKMeans,
    Uniform.name: Uniform,
}
"""What ``build(method=...)`` knows by name."""


def resolve_method(method: str | Sensitivity[Any]) -> Sensitivity[Any]:
    """Return the construction that a ``method`` argument stands for.

    Parameters
    ----------
    method : str or Sensitivity
        A name in `CONSTRUCTIONS`, or a construction with its parameters.

    Returns
    -------
    Sensitivity

    Raises
    ------
    InvalidInputError
        For an unknown name; the message lists the known ones.
    InvalidTypeError
        For anything else.

    Examples
    --------
    >>> resolve_method("uniform")
    Uniform()
    """
    if isinstance(method, Sensitivity):
        return method
    known = ", ".join(repr(name) for name in CONSTRUCTIONS)
    if isinstance(method, str):
        if method not in CONSTRUCTIONS:
            raise InvalidInputError(f"method {method!r} is unknown; the known ones are {known}.")
        construction = CONSTRUCTIONS[method]
        needed = [field.name for field in fields(construction) if field.default is MISSING]  # type: ignore[arg-type]
        if needed:
            raise InvalidInputError(
                f"method {method!r} needs {', '.join(needed)}; pass an object, for example "
                f"{construction.__name__}({needed[0]}=...)."
            )
        return construction()
    raise InvalidTypeError(
        f"method must be a name or a construction such as Lightweight(), got {method!r}; the "
        f"known names are {known}."
    )
