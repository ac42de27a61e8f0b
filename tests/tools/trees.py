"""Stored trees of a few leaves."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskcoreset import CoresetTree


def day(number: int, n: int = 60) -> Any:
    rng = np.random.default_rng(number)
    return rng.normal(number % 7, 1.0, size=(n, 2)) * rng.lognormal(size=(n, 1))


def made(path: Any, days: int = 0, **options: Any) -> CoresetTree:
    given_options: dict[str, Any] = {"size": 10, "random_state": 1, **options}
    tree = CoresetTree.create(path, **given_options)
    for number in range(days):
        tree.append(day(number), name=f"day {number}")
    return tree
