"""Streams depend on their address alone, and every kind of ``random_state`` gives a seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats

from daskcoreset.core.random import Stage, resolve_seed, stream


@pytest.mark.statistical
def test_stream__first_numbers_of_blocks_and_seeds_are_uniform() -> None:
    """Seeds 0, 1, 2, ... are what users pass. False-alarm rate: 1e-6, 5e-7 a test."""
    by_block = [stream(0, Stage.ROOT, block).random() for block in range(4000)]
    by_seed = [stream(seed, Stage.ROOT).random() for seed in range(4000)]

    for first in (by_block, by_seed):
        assert scipy.stats.kstest(first, "uniform").pvalue > 2.5e-7
        following = scipy.stats.spearmanr(first[:-1], first[1:])
        assert following.pvalue > 2.5e-7


def test_resolve_seed__integer_is_the_seed_and_none_takes_fresh_entropy() -> None:
    assert [resolve_seed(seed) for seed in (0, 2**128 - 1)] == [0, 2**128 - 1]
    seeds = {resolve_seed(None) for _ in range(8)}
    assert len(seeds) == 8
    # By chance with probability 2**-512: entropy of 64 bits alone would be too little.
    assert max(seeds) >= 2**64


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_resolve_seed__generator_is_advanced_and_repeatable(make: Any) -> None:
    rng = make(3)
    first, second = resolve_seed(rng), resolve_seed(rng)

    assert first != second
    again = make(3)
    assert (resolve_seed(again), resolve_seed(again)) == (first, second)
    assert type(first) is int
