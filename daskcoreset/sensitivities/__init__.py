"""Sensitivities, one file for those that share their scores. Each registers itself by its name."""

from __future__ import annotations

from dataclasses import MISSING
from typing import Any

from daskcoreset.core.validation import a_type, as_int, is_choice, shown, suggestion
from daskcoreset.errors import InvalidInputError, InvalidTypeError
from daskcoreset.sensitivities.base import CONSTRUCTIONS, Sensitivity
from daskcoreset.sensitivities.bregman import LightweightBregman
from daskcoreset.sensitivities.bregman_strong import StrongBregman
from daskcoreset.sensitivities.kmeans import StrongKMeans
from daskcoreset.sensitivities.least_squares import LeastSquares
from daskcoreset.sensitivities.lightweight import Lightweight
from daskcoreset.sensitivities.logistic import Logistic
from daskcoreset.sensitivities.mixture import Mixture
from daskcoreset.sensitivities.svm import SVM
from daskcoreset.sensitivities.uniform import Uniform

__all__ = [
    "CONSTRUCTIONS",
    "SVM",
    "LeastSquares",
    "Lightweight",
    "LightweightBregman",
    "Logistic",
    "Mixture",
    "Sensitivity",
    "StrongBregman",
    "StrongKMeans",
    "Uniform",
    "construction_for",
    "default_method",
    "resolve_method",
    "takes_parts",
]


def resolve_method(
    method: str | Sensitivity[Any], n_clusters: int | None = None
) -> Sensitivity[Any]:
    """Return the construction for a ``method`` argument.

    Parameters
    ----------
    method : str or Sensitivity
        A name in `CONSTRUCTIONS`, or a construction with its parameters.
    n_clusters : int or None, default=None
        For a name whose construction has this parameter, or `n_components`, its value.

    Returns
    -------
    Sensitivity

    Raises
    ------
    InvalidInputError
        For an unknown name. The message lists the known ones.
    InvalidTypeError
        For anything else.

    Examples
    --------
    >>> resolve_method("uniform")
    Uniform()
    """
    if isinstance(method, Sensitivity):
        return method
    names = ", ".join(map(repr, sorted(CONSTRUCTIONS)))
    if isinstance(method, str):
        if not is_choice(method, CONSTRUCTIONS):
            raise InvalidInputError(
                f"method is {method!r}, which is unknown{suggestion(method, CONSTRUCTIONS)}",
                argument="method",
                remedy=f"pass one of {names}",
            )
        return _construct(CONSTRUCTIONS[method], n_clusters)
    raise _no_construction(method, names)


def _no_construction(method: Any, names: str) -> InvalidTypeError:
    """Say what may be passed in place of an object; those of the largest margin draw no rows."""
    if isinstance(method, type):
        return InvalidTypeError(
            f"method is the class {method.__name__}, not an object",
            argument="method",
            remedy=f"write {method.__name__}(...)",
        )
    if callable(getattr(method, "run", None)):
        return InvalidTypeError(
            f"method is {a_type(method)}, which reads the data itself",
            argument="method",
            remedy=f"call {type(method).__name__}(...).run(X, y)",
        )
    return InvalidTypeError(
        f"method must be a name, a method such as Lightweight() or a Reducer, got {shown(method)}",
        argument="method",
        remedy=f"pass one of {names}",
    )


def default_method(method: Any, n_clusters: int | None) -> Any:
    """Return the method, by default the one for clusters if their number is given.

    Examples
    --------
    >>> default_method(None, 10), default_method(None, None), default_method("svm", None)
    ('kmeans', 'lightweight', 'svm')
    """
    if method is not None:
        return method
    return Lightweight.name if n_clusters is None else StrongKMeans.name


def takes_parts(construction: Sensitivity[Any], n_clusters: int) -> bool:
    """Whether solutions may have this number of parts.

    Examples
    --------
    >>> takes_parts(Lightweight(), 5), takes_parts(StrongKMeans(4), 5), takes_parts(SVM(), 1)
    (True, False, False)
    """
    objective = construction.objective
    with_parts = objective.with_parts(n_clusters)
    if objective.n_parts is None:
        return with_parts.n_parts is not None
    # Where any number gives the same, there are no parts.
    return with_parts == objective and objective.with_parts(n_clusters + 1) != objective


def construction_for(
    method: str | Sensitivity[Any], n_clusters: int | None = None
) -> Sensitivity[Any]:
    """Resolve the method. `n_clusters` need not be a parameter of it.

    Where it is none, it says of how many parts the solutions are that the coreset is for, which
    the provenance remembers: where the construction leaves that open, or says the same.

    Examples
    --------
    >>> construction_for("lightweight", 4).name, construction_for("kmeans", 4).n_clusters
    ('lightweight', 4)
    """
    if n_clusters is None:
        return resolve_method(method)
    as_int("n_clusters", n_clusters)
    refusal = InvalidInputError(
        f"n_clusters={n_clusters} has no effect with the method {method!r}",
        argument="n_clusters",
        remedy="leave it out",
    )
    if isinstance(method, str):
        try:
            return resolve_method(method, n_clusters)
        except InvalidInputError as error:  # perhaps it leaves the number of parts open
            refusal = error
    construction = resolve_method(method)
    if takes_parts(construction, n_clusters):
        return construction
    raise refusal


def _construct(construction: type[Sensitivity[Any]], n_clusters: int | None) -> Sensitivity[Any]:
    # The fields of a frozen dataclass are its parameters.
    parameters: dict[str, Any] = getattr(construction, "__dataclass_fields__", {})
    name = "n_components" if "n_components" in parameters else "n_clusters"
    values = {} if n_clusters is None else {name: n_clusters}
    if values.keys() - parameters.keys():
        raise InvalidInputError(
            f"method {construction.name!r} takes no {name}",
            argument="method",
            remedy="leave it out",
        )
    for parameter, field in parameters.items():
        if parameter not in values and field.default is MISSING:
            raise InvalidInputError(
                f"method {construction.name!r} needs {parameter}",
                argument=name,
                remedy="pass n_clusters, or an object, for example "
                f"{construction.__name__}({parameter}=...)",
            )
    return construction(**values)
