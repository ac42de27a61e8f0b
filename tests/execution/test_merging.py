"""Merging part by part gives the tree of merging all at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from daskcoreset.execution.merging import Merger, levels_below_root


def at_once(parts: Sequence[Any], split_every: int) -> Any:
    """Merge level by level, as it was defined first."""
    while len(parts) > split_every:
        groups = [parts[i : i + split_every] for i in range(0, len(parts), split_every)]
        parts = [group[0] if len(group) == 1 else tuple(group) for group in groups]
    return tuple(parts)


@pytest.mark.parametrize("split_every", [2, 3, 16])
def test_merger__groups_as_level_by_level(split_every: int) -> None:
    for n_parts in range(1, 70):
        merger: Merger[Any] = Merger(tuple, split_every, levels_below_root(n_parts, split_every))
        for part in range(n_parts):
            merger.add(part)
        assert tuple(merger.parts()) == at_once(list(range(n_parts)), split_every)
