"""Parametrisations that meet every pair of values, in place of every combination."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def pairs(**axes: Iterable[Any]) -> pytest.MarkDecorator:
    """Parametrise a test over combinations of values, and mark most of them as nightly.

    Without that mark are so many combinations that each value of one argument meets each value of
    every other one. Of one argument alone all values run always.

    Parameters
    ----------
    **axes
        The values of each argument. An id comes with ``pytest.param``, or as the key of a dict.

    Examples
    --------
    >>> mark = pairs(dtype=["float32", "float64"], sparse=[False, True], passes=[1, 2])
    >>> [case.id for case in mark.args[1] if not case.marks]
    ['float32-False-1', 'float32-True-2', 'float64-False-2', 'float64-True-1']
    >>> len(mark.args[1])
    8
    """
    return _parametrize(axes, 2)


def each(**axes: Iterable[Any]) -> pytest.MarkDecorator:
    """Parametrise as `pairs` does, but until each value is met in one combination.

    For two arguments that hardly depend on each other: pairs of two are all combinations.

    Examples
    --------
    >>> mark = each(write=["tree", "stream"], place=["disk", "url", "home"])
    >>> [case.id for case in mark.args[1] if not case.marks]
    ['tree-disk', 'tree-home', 'stream-url']
    """
    return _parametrize(axes, 1)


def few(name: str, values: Iterable[Any], always: int = 3) -> pytest.MarkDecorator:
    """Parametrise a test over values of which the first few run always, and the rest nightly.

    For seeds and the like, of which each says nearly as much as all.

    Examples
    --------
    >>> [bool(case.marks) for case in few("seed", range(5), always=2).args[1]]
    [False, False, True, True, True]
    """
    cases = [(value,) for value in _values(name, values)]
    kept: set[tuple[str, ...]] = {(case[0].id,) for case in cases[:always]}
    return pytest.mark.parametrize(name, [_case(case, kept) for case in cases])


def _parametrize(axes: dict[str, Iterable[Any]], together: int) -> pytest.MarkDecorator:
    """Keep combinations until so many values of different arguments meet, whichever they are."""
    cases = list(itertools.product(*(_values(name, axis) for name, axis in axes.items())))
    ids = [tuple(value.id for value in case) for case in cases if not _marked(case)]
    kept = _kept(ids, min(together, len(axes)))
    return pytest.mark.parametrize(list(axes), [_case(case, kept) for case in cases])


def _values(name: str, values: Iterable[Any]) -> list[Any]:
    """The values of one argument, each with an id of its own."""
    named = values.items() if isinstance(values, dict) else ((None, value) for value in values)
    found: list[Any] = []
    for index, (key, value) in enumerate(named):
        case = value if isinstance(value, type(pytest.param())) else pytest.param(value)
        (alone,) = case.values
        text = str(case.id or key or _text(alone) or f"{name}{index}")
        same = sum(text == other.id.rstrip("_") for other in found)
        found.append(pytest.param(alone, id=text + "_" * same, marks=case.marks))
    return found


def _text(value: Any) -> str | None:
    """Name a value as pytest does."""
    if isinstance(value, str | int | float | complex | bool | None):
        return str(value)
    return getattr(value, "__name__", None) or getattr(value, "name", None)


def _marked(case: Sequence[Any]) -> bool:
    """Whether a value is nightly, so that all of its combinations are."""
    return any(mark.name == "nightly" for value in case for mark in value.marks)


def _kept(cases: Sequence[tuple[str, ...]], together: int) -> set[tuple[str, ...]]:
    """Choose combinations, the one with most new groups first, until each group is among them."""
    groups = {case: set(itertools.combinations(enumerate(case), together)) for case in cases}
    left = {group for case in cases for group in groups[case]}
    kept: set[tuple[str, ...]] = set()
    while left:
        best = max(cases, key=lambda case: len(groups[case] & left))
        left -= groups[best]
        kept.add(best)
    return kept


def _case(case: Sequence[Any], kept: set[tuple[str, ...]]) -> Any:
    id_ = tuple(value.id for value in case)
    marks = [mark for value in case for mark in value.marks]
    if id_ not in kept and not _marked(case):
        marks.append(pytest.mark.nightly)
    return pytest.param(*(value.values[0] for value in case), id="-".join(id_), marks=marks)
