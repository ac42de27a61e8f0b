"""Which rows to ask for: how many to verify, and how to spread them."""

from __future__ import annotations

import numpy as np

from daskcoreset.constructions.margin.query_strategy import _spread


def test_spread__takes_the_farthest_from_those_chosen_and_none_twice() -> None:
    rows = np.array([[1.0], [2.0], [-1.5], [1.0], [4.0]])
    assert _spread(rows, 1).tolist() == [0]
    assert _spread(rows, 3).tolist() == [0, 4, 2]
    assert sorted(_spread(rows, 5).tolist()) == [0, 1, 2, 4]  # the fourth row is the first
