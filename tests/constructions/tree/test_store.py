"""`CoresetTree`: changes that are refused, and coresets after changes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daskcoreset import CoresetTree
from daskcoreset.errors import CoresetError, InvalidInputError
from daskcoreset.testing import assert_mean
from tests.acceptance.tools.trees import day, made


@pytest.mark.nightly
@pytest.mark.statistical
@pytest.mark.usefixtures("quick_disk")
def test_coreset__is_unbiased_after_changes(tmp_path: Path) -> None:
    """Total weight and a cost of what is left after replacing and deleting; 1e-6."""
    left = np.concatenate([day(0), day(9, 90), day(2)])
    found = []
    for seed in range(200):
        tree = made(tmp_path / str(seed), 4, size=15, random_state=seed)
        tree.replace("day 1", day(9, 90))
        tree.delete("day 3")
        c = tree.coreset()
        found.append([c.weights.sum(), c.weights @ (c.points**2).sum(axis=1)])
        shutil.rmtree(tmp_path / str(seed))
    assert_mean(np.array(found), np.array([len(left), (left**2).sum()]))


def test_coreset__of_rows_that_were_all_left_out(tmp_path: Path) -> None:
    tree = CoresetTree.create(tmp_path / "t", size=5, random_state=0, on_invalid="drop")
    tree.append(np.full((3, 2), np.nan))
    with pytest.raises(InvalidInputError, match="all rows were dropped"):
        tree.coreset()


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
        with pytest.raises(CoresetError, match=match):
            call()
    assert tree.version == 3
    assert before.equals(CoresetTree.open(tmp_path / "t").coreset())
