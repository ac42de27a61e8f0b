"""Stored trees of a few leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.acceptance.face import CoresetTree, WeightedPoints, create_tree, errors


def day(number: int, n: int = 60) -> Any:
    rng = np.random.default_rng(number)
    return rng.normal(number % 7, 1.0, size=(n, 2)) * rng.lognormal(size=(n, 1))


def made(path: Any, days: int = 0, **options: Any) -> CoresetTree:
    given_options: dict[str, Any] = {"size": 10, "random_state": 1, **options}
    tree = create_tree(path, **given_options)
    for number in range(days):
        tree.append(day(number), name=f"day {number}")
    return tree


def refuse_late_writers(tree: CoresetTree, reopened: Callable[[], CoresetTree]) -> None:
    """Check that a change is refused after that of another writer, on a disk and elsewhere."""
    one, two = reopened(), reopened()
    one.append(day(5), name="one")
    for late in (two, tree):
        with pytest.raises(errors.StoreError, match="another writer has changed it"):
            late.append(day(6), name="two")
        with pytest.raises(errors.StoreError, match="another writer has changed it"):
            late.delete("day 0")
    assert WeightedPoints.equals(two.coreset(), tree.coreset())  # still read as it was
    one.append(day(7))
    one.append(day(8))
    with pytest.raises(errors.StoreError, match="has changed since it was opened; open it again"):
        two.coreset()
