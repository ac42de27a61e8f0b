"""Pairs of values: each is met, few combinations run always, and all are there."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.pairs import pairs

AXES: dict[str, Any] = {
    "kind": ["dense", "sparse", "frame", "zarr"],
    "method": {"a": object(), "b": object(), "c": object()},
    "dtype": [float, int],
    "passes": [1, 2],
    "weighted": [False, True],
}


def always(mark: pytest.MarkDecorator) -> list[Any]:
    return [case.values for case in mark.args[1] if not case.marks]


def test_pairs__meet_every_pair_of_values_in_few_combinations() -> None:
    mark = pairs(**AXES)
    assert len(mark.args[1]) == 4 * 3 * 2 * 2 * 2
    assert 12 <= len(always(mark)) <= 16
    values = [list(axis.values()) if isinstance(axis, dict) else axis for axis in AXES.values()]
    for (i, first), (j, second) in itertools.combinations(enumerate(values), 2):
        met = {(case[i], case[j]) for case in always(mark)}
        assert met == set(itertools.product(first, second))


def test_pairs__names_and_marks_of_values_stay() -> None:
    skipped = pytest.param(2, id="two", marks=pytest.mark.skip)
    late = pytest.param(3, marks=pytest.mark.nightly)
    mark = pairs(number=[1, skipped, late], text=["x", "x"])
    found = {case.id: [one.name for one in case.marks] for case in mark.args[1]}
    assert found == {
        "1-x": [], "1-x_": [], "two-x": ["skip"], "two-x_": ["skip"], "3-x": ["nightly"],
        "3-x_": ["nightly"],
    }  # fmt: skip
