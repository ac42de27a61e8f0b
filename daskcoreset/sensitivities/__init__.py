"""One file per sensitivity, and the table of their names."""

from __future__ import annotations

from dataclasses import MISSING
from typing import Any

from daskcoreset.errors import InvalidInputError, InvalidTypeError
from daskcoreset.sensitivities.base import Sensitivity
from daskcoreset.sensitivities.bregman import BregmanLightweight
from daskcoreset.sensitivities.bregman_strong import StrongBregman
from daskcoreset.sensitivities.kmeans import StrongKMeans
from daskcoreset.sensitivities.lightweight import Lightweight
from daskcoreset.sensitivities.logistic import Logistic
from daskcoreset.sensitivities.mixture import MixtureCoreset
from daskcoreset.sensitivities.svm import SVM
from daskcoreset.sensitivities.uniform import Uniform

__all__ = [
    "CONSTRUCTIONS",
    "SVM",
    "BregmanLightweight",
    "Lightweight",
    "Logistic",
    "MixtureCoreset",
    "Sensitivity",
    "StrongBregman",
    "StrongKMeans",
    "Uniform",
    "resolve_method",
]

CONSTRUCTIONS: dict[str, type[Sensitivity[Any]]] = {
    BregmanLightweight.name: BregmanLightweight,
    Lightweight.name: Lightweight,
    Logistic.name: Logistic,
    MixtureCoreset.name: MixtureCoreset,
    StrongBregman.name: StrongBregman,
    StrongKMeans.name: StrongKMeans,
    SVM.name: SVM,
    Uniform.name: Uniform,
}
"""What ``build(method=...)`` knows by name."""


def resolve_method(
    method: str | Sensitivity[Any], n_clusters: int | None = None
) -> Sensitivity[Any]:
    """Return the construction that a ``method`` argument stands for.

    Parameters
    ----------
    method : str or Sensitivity
        A name in `CONSTRUCTIONS`, or a construction with its parameters.
    n_clusters : int or None, default=None
        For a name whose construction has this parameter, its value.

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
        return _construct(CONSTRUCTIONS[method], n_clusters)
    raise InvalidTypeError(
        f"method must be a name or a construction such as Lightweight(), got {method!r}; the "
        f"known names are {known}."
    )


def _construct(construction: type[Sensitivity[Any]], n_clusters: int | None) -> Sensitivity[Any]:
    # Frozen dataclasses, all of them: their fields are their parameters.
    parameters: dict[str, Any] = construction.__dataclass_fields__  # type: ignore[attr-defined]
    given = {"n_clusters": n_clusters} if n_clusters is not None else {}
    unwanted = [name for name in given if name not in parameters]
    if unwanted:
        raise InvalidInputError(
            f"method {construction.name!r} takes no {unwanted[0]}; leave it out."
        )
    missing = [
        name for name, field in parameters.items() if name not in given and field.default is MISSING
    ]
    if missing:
        raise InvalidInputError(
            f"method {construction.name!r} needs {missing[0]}; pass an object, for example "
            f"{construction.__name__}({missing[0]}=...)."
        )
    return construction(**given)
