"""Pairs of values: each is met, few combinations run always, and all are there."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.pairs import each, few, pairs

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


def test_pairs__of_one_argument_are_all_its_values() -> None:
    assert always(pairs(seed=range(5))) == [(0,), (1,), (2,), (3,), (4,)]


def test_each__meets_every_value_once() -> None:
    assert always(each(left=[1, 2, 3], right="ab")) == [(1, "a"), (2, "b"), (3, "a")]


def test_few__keeps_the_first_ones() -> None:
    mark = few("seed", range(20))
    assert always(mark) == [(0,), (1,), (2,)]
    assert len(mark.args[1]) == 20


@pairs(left=[1, 2], right=[3, 4])
def test_pairs__decorate_a_test(left: int, right: int) -> None:
    assert left < right
