"""What was asked of `build`, checked before any data are touched."""

from __future__ import annotations

import numbers
from typing import Any

from daskcoreset.core.validation import check_flag
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.constructions.sampling.auto_size import Rule
from daskcoreset.sensitivities import Sensitivity, construction_for, resolve_method
from daskcoreset.core.surroundings import warn_caller
from daskcoreset.constructions.tree.reducer import Reducer

__all__ = [
    "check_kinds",
    "check_sampling",
    "check_sizes",
    "check_strategy",
    "check_tree",
    "construction_of",
    "default_size",
    "rows_for",
    "rule_of",
]


def check_kinds(epsilon: Any, delta: Any, progress: Any, **flags: Any) -> None:
    """Refuse what would pass for something else, used or not: text is true to Python."""
    Rule(1, epsilon, delta)
    for name, value in flags.items():
        check_flag(name, value)
    if progress is not None:
        check_flag("progress", progress)


def construction_of(
    method: str | Sensitivity[Any] | Reducer, n_clusters: int | None, size: Any
) -> Sensitivity[Any]:
    """Resolve the method, for solutions of so many centers.

    With size="auto" they may be more or fewer than those of the construction.
    """
    if isinstance(method, Reducer):
        raise InvalidInputError(
            f"method {method.name!r} is a Reducer, which reduces rows in memory; pass "
            f'strategy="tree".'
        )
    if n_clusters is None or not isinstance(size, str):
        return construction_for(method, n_clusters)
    try:
        return construction_for(method, n_clusters)
    except InvalidInputError:
        return resolve_method(method)  # whose clusters need not be those of the solutions


def default_size(n_clusters: int) -> int:
    """Return the rows of a coreset whose size nobody gave.

    A hundred rows a cluster tell where its center is, within a tenth of its width; ten
    thousand cost a solver next to nothing, however few clusters there are.

    Examples
    --------
    >>> default_size(8), default_size(500)
    (10000, 50000)
    """
    return max(10_000, 100 * n_clusters)


def rows_for(construction: Any, n_clusters: int | None) -> int:
    """Return the default size for a construction or a reducer, by the clusters it is for.

    Examples
    --------
    >>> rows_for(resolve_method("lightweight"), None)
    10000
    """
    if construction.needs_labels:
        return default_size(0)  # its clusters are cells, and its solutions are classifiers
    objective = construction.objective
    own = None if objective is None else objective.n_parts
    return default_size(max(n_clusters or 0, own or 0))


def rule_of(
    size: Any,
    construction: Sensitivity[Any],
    n_clusters: int | None,
    epsilon: float,
    delta: float,
    *,
    now: bool,
) -> Rule | None:
    """Return how ``size="auto"`` is to grow; None for a size that is given."""
    if not isinstance(size, str) or size != "auto":
        return None
    if not now:
        raise InvalidInputError(
            'size="auto" reads the data to decide what to do next, so it can be neither lazy nor '
            "planned; leave out compute=False and dry_run=True, or pass a number of rows."
        )
    objective = construction.objective
    if n_clusters is not None:
        objective = objective.with_parts(n_clusters)
    if objective.n_parts is None:
        raise InvalidInputError(
            f'size="auto" compares the costs of solutions, and {construction.name!r} does not say '
            f"of how many centers; pass n_clusters."
        )
    return Rule(objective.n_parts, epsilon, delta)


def check_strategy(strategy: Any, inner_size: Any) -> None:
    """Refuse a strategy that there is not, and what belongs to the other one."""
    if strategy not in ("sampling", "tree"):
        raise InvalidInputError(
            f'strategy must be "sampling" or "tree", got {strategy!r}; pass one of these.'
        )
    if strategy == "sampling" and inner_size is not None:
        raise InvalidInputError(
            f"inner_size={inner_size!r} is for the nodes of a tree; leave it out, or pass "
            f'strategy="tree".'
        )


def check_sizes(
    size: Any, split_every: Any, method: Any, inner_size: Any = None, *, auto: bool = True
) -> None:
    """Refuse sizes that are none; warn of a size below the clusters of the method."""
    least = [("size", size, 1), ("split_every", split_every, 2)]
    if inner_size is not None:
        least.append(("inner_size", inner_size, 1))
    for name, value, smallest in least:
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            word = ' or "auto"' if name == "size" and auto else ""
            raise InvalidTypeError(f"{name} must be an integer, got {value!r}; pass an int{word}.")
        if value < smallest:
            raise InvalidInputError(
                f"{name} must be at least {smallest}, got {value}; pass a larger int."
            )
    if inner_size is not None and inner_size < size:
        raise InvalidInputError(
            f"inner_size={inner_size} is below size={size}: a node cannot give more rows than it "
            f"keeps; pass at least {size}, or leave it out."
        )
    wanted = getattr(method, "n_clusters", None) or 1
    if size < wanted:
        warn_caller(
            f"size={size} is below n_clusters={wanted}: fewer rows than clusters cannot stand for "
            f"them; pass a size of at least several rows a cluster."
        )


def check_sampling(construction: Sensitivity[Any], sampling: Any, passes: Any) -> None:
    """Refuse draws and reads that the construction cannot do."""
    _check_draws(sampling)
    if not _is_count(passes) or passes not in (1, 2):
        raise InvalidInputError(f"passes must be 1 or 2, got {passes!r}; pass one of these.")
    if passes == 1 and construction.folds > 1 and not construction.scores_early:
        raise InvalidInputError(
            f"passes=1, but {construction.name!r} needs {construction.folds} folds of the data "
            f'before it can score; pass passes=2, or strategy="tree".'
        )
    if passes == 1 and sampling == "multinomial" and construction.proposal_bound is None:
        raise InvalidInputError(
            f'sampling="multinomial" with passes=1, but {construction.name!r} has no bound for '
            f'rejection; pass passes=2, or sampling="systematic".'
        )


def check_tree(size: Any, sampling: Any, passes: Any) -> None:
    """Refuse what a tree cannot do."""
    if isinstance(size, str) and size == "auto":
        raise InvalidInputError(
            'size="auto" grows a sample; pass a number of rows, or leave out strategy="tree".'
        )
    _check_draws(sampling)
    if not _is_count(passes) or passes != 1:
        raise InvalidInputError(
            f"passes={passes!r}, but a tree reads the data once; leave passes out."
        )


def _is_count(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _check_draws(sampling: Any) -> None:
    if sampling not in ("systematic", "multinomial"):
        raise InvalidInputError(
            f'sampling must be "systematic" or "multinomial", got {sampling!r}; pass one of these.'
        )
