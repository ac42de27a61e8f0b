"""Comparison of methods and sizes by the costs of their solutions on all rows."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from operator import add, or_
from typing import Any, NamedTuple

import numpy as np

from daskcoreset._build import Methods, default_size, job_of, members_of
from daskcoreset.constructions.draws import Draw
from daskcoreset.constructions.portfolio import PortfolioJob
from daskcoreset.core.block import Block, labels_of
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.linalg import one_thread
from daskcoreset.core.messages import about_member
from daskcoreset.core.random import RandomState, Stage, resolve_seed, stream
from daskcoreset.core.tables import counted, text_table
from daskcoreset.core.validation import as_int
from daskcoreset.errors import CoresetWarning, InvalidInputError
from daskcoreset.execution.engine import map_reduce
from daskcoreset.inputs.blocks import RowBlocks, row_blocks
from daskcoreset.metrics.audit import PARTS, cost_for, is_regression, rows_of
from daskcoreset.objectives import LinearCost, Objective, QuantizationError, total_costs
from daskcoreset.objectives.linear import positives

# Draws by each method of each size, and starts of a solver that depends on its start.
_DRAWS, _STARTS = 3, 3

# The size to try beside the default one.
_SMALL = 1000

# Error of uniform rows up to which nothing else is worth a thought.
_SMALL_ERROR = 1e-3


class Compared(NamedTuple):
    """The coresets of one method and one size.

    Attributes
    ----------
    method : str
    size : int
    errors : tuple of float
        One error per draw. It is the cost over all rows of the solution found on the coreset,
        relative to the lowest cost that any solution had, minus one. Infinite if the coreset
        misses a class.
    passes : int
        Passes over the data that one build needs.
    """

    method: str
    size: int
    errors: tuple[float, ...]
    passes: int

    @property
    def error(self) -> float:
        """Mean error of the draws."""
        return float(np.mean(self.errors))


@dataclass(frozen=True, repr=False)
class Comparison:
    """The methods and sizes that `compare` tried, and their errors.

    Attributes
    ----------
    rows : tuple of Compared
        Sorted by size. Uniform rows come first.
    cost : str
        The cost that was compared.
    solutions : tuple of str
        The solutions that were found on each coreset, such as ``"k=8"``. Errors are means over
        them.
    n_rows : int
        Rows of the data.
    passes : int
        Passes over the data that the comparison took.
    seed : int
    """

    rows: tuple[Compared, ...]
    cost: str
    solutions: tuple[str, ...]
    n_rows: int
    passes: int
    seed: int

    @property
    def verdict(self) -> str:
        """The result at the largest size, in one sentence."""
        largest = max(row.size for row in self.rows)
        uniform, *others = (row for row in self.rows if row.size == largest)
        best = min(others, key=lambda row: row.error, default=uniform)
        size = counted(largest, "row")
        if uniform.error <= max(*best.errors, _SMALL_ERROR):
            return f"Uniform rows are enough: their error is {uniform.error:.2%} with {size}."
        return (
            f"{best.method!r} errs least: {best.error:.2%} with {size}, and uniform rows "
            f"{uniform.error:.2%}."
        )

    def __repr__(self) -> str:
        title = (
            f"{self.cost} ({', '.join(self.solutions)}), {_DRAWS} draws each, "
            f"{counted(self.n_rows, 'row')}, {self.passes} passes"
        )
        table: list[tuple[str, ...]] = [("method", "rows", "error", "from", "to", "passes")]
        for row in self.rows:
            errors = [f"{value:.2%}" for value in (row.error, min(row.errors), max(row.errors))]
            table.append((row.method, f"{row.size:,}", *errors, str(row.passes)))
        return "\n".join([f"Comparison({title})", *text_table(table), self.verdict])


def compare(
    X: Any,
    y: Any = None,
    *,
    methods: Methods | None = None,
    sizes: int | Sequence[int] | None = None,
    n_clusters: int | None = None,
    random_state: RandomState = None,
) -> Comparison:
    """Compare methods and sizes by the errors of their solutions on all rows.

    Three coresets of each method and size are drawn in shared passes. Uniform rows are always
    among the methods. A solution is found on each coreset, and one more pass computes the costs
    of all solutions. :doc:`/choose` and :doc:`/guides/trust` show how to use it.

    Parameters
    ----------
    X : array-like of shape (n, d), path, URL, or Rows
        As in `daskcoreset.build`.
    y : array-like of shape (n,), or column name, optional
        Labels. The solutions are then linear models of them.
    methods : list, or mapping of str to method, optional
        As in `daskcoreset.build_many`. The first method that is not "uniform" decides which cost
        is compared. Default: the methods that suit `y` or `n_clusters`.
    sizes : int or sequence of int, optional
        Numbers of rows. Default: 1,000 and the default of `build`, but at most half of all rows.
    n_clusters : int, optional
        Number of clusters. Default: that of the methods, or 2, 8 and 32.
    random_state : int, Generator, RandomState or None
        Seed of the first draws.

    Returns
    -------
    Comparison
        It prints as a table with a verdict.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If an argument cannot be used.

    Examples
    --------
    >>> import numpy as np, daskcoreset
    >>> X = np.random.default_rng(0).normal(size=(20_000, 3))
    >>> found = daskcoreset.compare(X, n_clusters=3, sizes=500, random_state=0)
    >>> [row.method for row in found.rows], found.passes
    (['uniform', 'lightweight', 'kmeans'], 2)
    >>> print(found)
    Comparison(quantization error (k=3), 3 draws each, 20,000 rows, 2 passes)
    method ...
    """
    seed = resolve_seed(random_state)
    blocks = row_blocks(X, y)
    members = members_of(_default_methods(blocks, y, n_clusters) if methods is None else methods)
    members = {"uniform": "uniform"} | members
    drawn, passes = _drawn(blocks, members, _sizes_of(sizes, blocks, n_clusters), n_clusters, seed)
    example = next((one for key, one in drawn.items() if key.method != "uniform"), None)
    example = example or next(iter(drawn.values()))
    objective = cost_for(example, n_clusters, labelled=example.labels is not None)
    costs = _costs(blocks, objective, drawn, seed)
    least = {name: min(found.values()) for name, found in costs.items()}
    rows: dict[tuple[str, int], list[float]] = {}
    for key in drawn:
        errors = [_excess(found.get(key, np.inf), least[name]) for name, found in costs.items()]
        rows.setdefault((key.method, key.size), []).append(float(np.mean(errors)))
    compared = tuple(
        Compared(method, size, tuple(found), passes[method])
        for (method, size), found in rows.items()
    )
    return Comparison(
        rows=compared,
        cost=objective.name,
        solutions=tuple(costs),
        n_rows=int(next(iter(drawn.values())).provenance["n"]),
        passes=max(passes.values()) + 1,
        seed=seed,
    )


class _Key(NamedTuple):
    """One coreset of a comparison."""

    method: str
    size: int
    draw: int


def _default_methods(blocks: RowBlocks, y: Any, n_clusters: int | None) -> list[str]:
    """Return the methods for clusters, for classes, or for labels that are numbers."""
    if n_clusters is not None:
        return ["lightweight", "kmeans"]
    if not blocks.has_labels:
        return ["lightweight"]
    if isinstance(y, np.ndarray | list | tuple):
        numbers = is_regression(np.asarray(y))
    else:  # a column of a store, or lazy labels, whose kind the first block tells
        numbers = map_reduce(blocks.select([0]), _are_numbers, or_).value
    return ["least_squares", "lightweight"] if numbers else ["logistic", "svm", "lightweight"]


def _are_numbers(block: Block, _index: int, _: None) -> bool:
    return len(block) > 0 and is_regression(labels_of(block))


def _sizes_of(sizes: Any, blocks: RowBlocks, n_clusters: int | None) -> list[int]:
    """Return the numbers of rows to try, in order."""
    if sizes is None:
        n_rows = blocks.n_rows
        most = np.inf if n_rows is None else max(1, n_rows // 2)
        return sorted({int(min(size, most)) for size in (_SMALL, default_size(n_clusters or 0))})
    several = sizes if isinstance(sizes, list | tuple) else [sizes]
    if not several:
        raise InvalidInputError(
            "sizes is empty", argument="sizes", remedy="pass at least one number of rows"
        )
    return sorted({as_int("sizes", size, remedy="pass numbers of rows") for size in several})


def _drawn(
    blocks: RowBlocks,
    members: dict[str, Any],
    sizes: list[int],
    n_clusters: int | None,
    seed: int,
) -> tuple[dict[_Key, Coreset], dict[str, int]]:
    """Draw all coresets in the same passes. Return the passes that each method needs, too."""
    keys = [_Key(*key) for key in product(members, sizes, range(_DRAWS))]
    keys.sort(key=lambda key: key.size)
    jobs: dict[str, Any] = {}
    passes = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoresetWarning)  # the errors are what is found
        for key in keys:
            with about_member(key.method):
                job = job_of(
                    blocks,
                    members[key.method],
                    key.size,
                    n_clusters,
                    random_state=seed + key.draw,
                    draw=Draw(),
                )
            jobs[f"{key}"] = job
            passes[key.method] = job.reads
        portfolio = PortfolioJob(blocks, jobs, Draw().split_every).run(None)
    return dict(zip(keys, portfolio.values(), strict=True)), passes


def _costs(
    blocks: RowBlocks, objective: Objective[Any], drawn: Mapping[_Key, Coreset], seed: int
) -> dict[str, dict[_Key, float]]:
    """Return what the solutions that coresets lead to cost on all rows, by what is solved.

    A coreset leads to the solution that costs least on it, of those that were found on any coreset,
    after centers have moved to the means of its own rows. So the starts of a solver decide little.
    """
    rng = stream(seed, Stage.AUDIT, 0, 3)
    found: dict[str, dict[_Key, Any]] = {}
    for key, coreset in drawn.items():
        for name, solution in _solutions(objective, rows_of(coreset), rng):
            found.setdefault(name, {})[key] = solution
    led: list[tuple[str, _Key, Any]] = []
    for name, solutions in found.items():
        for key in solutions:
            block = rows_of(drawn[key])
            on_coreset = partial(objective.cost, block)
            best = min(solutions.values(), key=on_coreset)
            led.append((name, key, _moved(objective, block, best)))
    broadcast = objective, tuple(solution for *_, solution in led)
    totals = map_reduce(blocks, total_costs, add, broadcast=broadcast).value
    costs: dict[str, dict[_Key, float]] = {name: {} for name in found}
    for (name, key, solution), total in zip(led, totals, strict=True):
        costs[name][key] = objective.constant(solution) + float(total)
    return costs


def _moved(objective: Objective[Any], block: Block, solution: Any) -> Any:
    """Return centers after Lloyd's algorithm on the rows of a coreset. Other solutions as is."""
    if not isinstance(objective, QuantizationError):
        return solution
    from sklearn.cluster import KMeans

    with one_thread():
        model = KMeans(len(solution), init=solution, n_init=1)
        return model.fit(block.points, sample_weight=block.weights).cluster_centers_


def _solutions(
    objective: Objective[Any], block: Block, rng: np.random.Generator
) -> Iterator[tuple[str, Any]]:
    """Yield what is solved on a coreset, and the solution."""
    if isinstance(objective, LinearCost):
        if len(np.unique(labels_of(block))) > 1:  # a draw may miss a class
            for positive in positives(block):
                yield f"{positive!r} or not", objective.fit(block, positive)
        return
    for k in PARTS if objective.n_parts is None else [objective.n_parts]:
        of_parts = objective.with_parts(k)
        starts = [of_parts.solve(block, rng) for _ in range(_STARTS if k > 1 else 1)]
        best = min(starts, key=lambda solution: of_parts.cost(block, solution))
        yield (f"k={k}" if k > 1 else "fitted"), best


def _excess(cost: float, least: float) -> float:
    """Return by how much a cost is above the least one, as a share of it."""
    if cost == least:
        return 0.0
    return (cost - least) / least if least > 0 else math.inf
