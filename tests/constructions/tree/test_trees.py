"""`CoresetTree`: few nodes a change, old or new whatever is killed, one of two writers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.acceptance.face import (
    CoresetTree,
    WeightedPoints,
    errors,
)
from tests.acceptance.tools.trees import day, made

# --- bad input -----------------------------------------------------------------------------


def test_changes__bad_input_changes_nothing(tmp_path: Path) -> None:
    tree = made(tmp_path / "t", 3)
    before = tree.coreset()
    loose: Any = tree
    wrong: list[tuple[Callable[[], Any], str]] = [
        (lambda: tree.append(day(1), name=""), "name is ''"),
        (lambda: tree.append(day(1), name="day 1"), "'day 1' already"),
        (lambda: tree.append(day(1), time="monday"), "'monday', which is neither a date"),
        (lambda: tree.append(day(1), time=np.datetime64("NaT", "s")), "NaT.*neither"),
        (lambda: loose.append(day(1), on_invalid="ignore"), "on_invalid"),
        (lambda: tree.replace("day 1", day(1), time="now"), "'now', which is neither"),
        (lambda: tree.append(day(1), np.ones(60)), "y is given"),
        (lambda: tree.append(np.empty((0, 3))), "X has 3 features"),
        (lambda: tree.replace("day 9", day(1)), "there is no leaf 'day 9'"),
        (lambda: tree.delete([]), "holds none"),
        (lambda: tree.delete(None), "None"),
        (lambda: tree.delete("day 7"), "such as 'day 0', 'day 1', 'day 2'"),
        (lambda: tree.coreset(slice("day 0", None, 2)), "slice with step"),
        (lambda: tree.coreset(slice("day 2", "day 0")), "holds none"),
        (lambda: tree.coreset(slice(0, "day 2")), "no leaf 0"),
        (lambda: tree.coreset(slice("2026-04", None)), "day 0"),
        (lambda: loose[[1]], "no leaf 1"),
        (lambda: loose[1.5], "names"),
        (lambda: tree.locate(np.array([180])), "the leaves have 180 rows"),
    ]
    for call, match in wrong:
        with pytest.raises(errors.CoresetError, match=match):
            call()
    assert tree.version == 3
    assert WeightedPoints.equals(before, CoresetTree.open(tmp_path / "t").coreset())


def test_tree__without_leaves(tmp_path: Path) -> None:
    tree = made(tmp_path / "t")
    for opened in (tree, CoresetTree.open(tmp_path / "t")):
        assert len(opened) == opened.depth == opened.version == 0
        with pytest.raises(errors.InvalidInputError, match="has no leaves"):
            opened.coreset()
    tree.append(day(0))
    tree.delete("leaf-0")
    again = CoresetTree.open(tmp_path / "t")
    assert (len(again), again.version) == (0, 2)
    assert again.append(day(0)).name == "leaf-1"
