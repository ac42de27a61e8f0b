"""Which rows to ask for: how many to verify, and how to spread them."""

from __future__ import annotations

import math

import numpy as np

from daskcoreset.constructions.margin.query_strategy import _spread, verification_length


def test_verification_length__is_lemma_4_1() -> None:
    for error, delta, n_core in ((0.05, 0.05, 30), (0.01, 0.1, 200), (0.3, 0.5, 7)):
        lemma = (math.log(n_core) + math.log(1 / delta)) / error
        assert verification_length(error, delta, n_core, 1) == math.ceil(lemma)
    # With j(j + 1) the chances of all phases add up to delta at most; with |C| alone they do not.
    lengths = [verification_length(0.01, 0.05, j + 1, j) for j in range(1, 3000)]
    assert sum(0.99**length for length in lengths) <= 0.05
    assert sum(0.05 / (j + 1) for j in range(1, 3000)) > 0.05


def test_spread__takes_the_farthest_from_those_chosen_and_none_twice() -> None:
    rows = np.array([[1.0], [2.0], [-1.5], [1.0], [4.0]])
    assert _spread(rows, 1).tolist() == [0]
    assert _spread(rows, 3).tolist() == [0, 4, 2]
    assert sorted(_spread(rows, 5).tolist()) == [0, 1, 2, 4]  # the fourth row is the first
