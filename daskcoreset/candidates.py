"""Candidate solutions on which a coreset is held against its data."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.clusters import cluster, seed_clusters
from daskcoreset.errors import InvalidInputError, InvalidTypeError
from daskcoreset.randomness import Stage, stream

if TYPE_CHECKING:
    from daskcoreset.coreset import Coreset
    from daskcoreset.typing import FloatArray

__all__ = ["solutions_for"]


def solutions_for(
    coreset: Any, solutions: Any, n_clusters: int | None, seed: int
) -> tuple[tuple[str, ...], tuple[FloatArray, ...]]:
    """Name and return the solutions given, or k-means, k-means++ and random rows.

    Parameters
    ----------
    coreset : Coreset
    solutions : array-like, sequence or mapping of such, or None
    n_clusters : int or None
        Centers of solutions that are made here; by default as the coreset's construction.
    seed : int

    Returns
    -------
    names : tuple of str
    solutions : tuple of ndarray of shape (k, d), float64

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If no usable number of clusters is known.

    Examples
    --------
    >>> solutions_for(None, {"origin": [[0, 0]]}, None, 0)[0]
    ('origin',)
    """
    if solutions is None:
        return _default_solutions(coreset, _clusters_of(coreset, n_clusters), seed)
    if isinstance(solutions, Mapping):
        names, several = [str(name) for name in solutions], list(solutions.values())
    else:
        single = not isinstance(solutions, Sequence) or np.ndim(solutions[0]) != 2
        several = [solutions] if single and np.ndim(solutions) == 2 else list(solutions)
        names = [f"solution {i}" for i in range(len(several))]
    return tuple(names), tuple(np.array(one, dtype=np.float64) for one in several)


def _clusters_of(coreset: Coreset, n_clusters: Any) -> int:
    if n_clusters is None:
        n_clusters = coreset.provenance.get("parameters", {}).get("n_clusters")
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


def _default_solutions(
    coreset: Coreset, k: int, seed: int
) -> tuple[tuple[str, ...], tuple[FloatArray, ...]]:
    rng = stream(seed, Stage.AUDIT, 0, 1)
    points, weights = coreset.points, coreset.weights
    found = {"k-means": cluster(points, weights, k, rng).centers}
    for i in range(1, 4):
        found[f"k-means++ {i}"] = seed_clusters(points, weights, k, rng).centers
    for i in range(1, 4):
        rows = rng.choice(len(coreset), k, p=weights / weights.sum())
        drawn = points[np.unique(rows)]
        dense = drawn if isinstance(drawn, np.ndarray) else drawn.toarray()
        found[f"random rows {i}"] = dense.astype(np.float64)
    return tuple(found), tuple(found.values())
