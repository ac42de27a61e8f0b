"""What the demonstration compares, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from daskcoreset.core.coreset import Coreset
from daskcoreset.core.typing import FloatArray


@dataclass(frozen=True)
class Contender:
    """One way to choose rows."""

    name: str
    options: dict[str, Any]


@dataclass(frozen=True)
class Scale:
    """Sizes and repetitions of the demonstration; `n_rows` of the set that is made."""

    sizes: tuple[int, ...]
    n_seeds: int
    n_clusters: int
    n_rows: int


@dataclass(frozen=True, eq=False)
class Cell:
    """Results of one contender at one size, an entry for every seed.

    Errors are costs above `Comparison.best`, in parts of it.
    """

    size: int
    contender: Contender
    errors: FloatArray
    build_seconds: FloatArray
    solve_seconds: FloatArray


@dataclass(frozen=True, eq=False)
class Comparison:
    """Everything the table and the picture show.

    `full_error` and `full_seconds` are of k-means on all rows, None where they do not fit;
    `examples` are coresets of the smallest size, of each contender one, with their solutions, and
    `best_centers` the best solution of all.
    """

    name: str
    shape: tuple[int, int]
    scale: Scale
    best: float
    best_centers: FloatArray
    full_error: float | None
    full_seconds: float | None
    cells: list[Cell]
    examples: dict[str, tuple[Coreset, FloatArray]]
