"""Stored trees of a few leaves, and a reducer that notes every call."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tests.acceptance.face import CoresetTree, Reducer, create_tree


@dataclass(frozen=True)
class Recorder(Reducer):
    """Keep the first rows, with the weight of all, and note every call."""

    calls: ClassVar[list[tuple[str, int, int, int, float]]] = []

    def reduce(self, points: Any, size: int, rng: Any, step: str = "reduce") -> Any:
        first = int(points.indices.min()) if len(points) else -1
        self.calls.append((step, len(points), size, first, float(rng.random())))
        if len(points) <= size:
            return points
        weights = points.weights[:size] * points.total_weight / points.weights[:size].sum()
        return points.take(slice(0, size)).reweighted(weights)

    def thin(self, points: Any, size: int, rng: Any) -> Any:
        return self.reduce(points, size, rng, "thin")

    def finish(self, points: Any, size: int, rng: Any) -> Any:
        return self.reduce(points, size, rng, "finish")


def rows(n: int) -> Any:
    return np.stack([np.arange(n, dtype=float), np.ones(n)], axis=1)


def shapes(calls: Any) -> list[tuple[str, int, int]]:
    return [call[:3] for call in calls]


def days(n: int, size: int = 60) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=(size, 2)) + day for day in range(n)]


def grown(path: Path, parts: list[Any], **options: Any) -> Any:
    tree = create_tree(path, **{"size": 10, "random_state": 0} | options)
    for i, part in enumerate(parts):
        tree.append(part, name=f"d{i}", time=dt.date(2026, 3, 1 + i))
    return tree


def day(number: int, n: int = 60) -> Any:
    rng = np.random.default_rng(number)
    return rng.normal(number % 7, 1.0, size=(n, 2)) * rng.lognormal(size=(n, 1))


def made(path: Any, days: int = 0, **options: Any) -> CoresetTree:
    given_options: dict[str, Any] = {"size": 10, "random_state": 1, **options}
    tree = create_tree(path, **given_options)
    for number in range(days):
        tree.append(day(number), name=f"day {number}")
    return tree
