"""Streams depend on their address alone, and every kind of ``random_state`` gives a seed."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from daskcoreset.core.random import Stage, resolve_seed, stream

ADDRESSES = list(itertools.product((0, 1, 2**127), Stage, (0, 1, 2, 99_999), (0, 1)))


def numbers_of(address: tuple[int, Stage, int, int]) -> bytes:
    return stream(*address).random(4).tobytes()


def test_stage__values_are_part_of_the_promise() -> None:
    # Another value would be another coreset for the same seed. New stages come after these.
    promised = {
        "CANDIDATES": 0,
        "QUOTAS": 1,
        "DRAWS": 2,
        "ROOT": 3,
        "TOP_UP": 4,
        "SUMMARIES": 5,
        "SETTLING": 7,
    }
    found = {name: stage.value for name, stage in Stage.__members__.items()}
    assert found.items() >= promised.items()
    # Two names for one value would draw the same numbers in two places.
    assert len(set(found.values())) == len(found)


def test_stream__is_the_documented_generator() -> None:
    sequence = np.random.SeedSequence(7, spawn_key=(2, 5, 3))
    expected = np.random.Generator(np.random.PCG64(sequence)).random(10)

    assert (stream(7, Stage.DRAWS, 5, 3).random(10) == expected).all()


def test_stream__independent_of_the_order_and_of_threads() -> None:
    expected = [numbers_of(address) for address in ADDRESSES]

    backwards = [numbers_of(address) for address in reversed(ADDRESSES)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(numbers_of, ADDRESSES))

    assert backwards[::-1] == expected
    assert together == expected


@pytest.mark.statistical
def test_stream__first_numbers_of_blocks_and_seeds_are_uniform() -> None:
    """Seeds 0, 1, 2, ... are what users pass. False-alarm rate: 1e-6, 5e-7 a test."""
    by_block = [stream(0, Stage.ROOT, block).random() for block in range(4000)]
    by_seed = [stream(seed, Stage.ROOT).random() for seed in range(4000)]

    for first in (by_block, by_seed):
        assert scipy.stats.kstest(first, "uniform").pvalue > 2.5e-7
        following = scipy.stats.spearmanr(first[:-1], first[1:])
        assert following.pvalue > 2.5e-7


@given(seed=st.integers(0, 2**128 - 1))
def test_resolve_seed__integer_is_the_seed_itself(seed: int) -> None:
    assert resolve_seed(seed) == seed


def test_resolve_seed__none_takes_fresh_entropy() -> None:
    seeds = [resolve_seed(None) for _ in range(8)]

    assert len(set(seeds)) == 8
    assert all(0 <= seed < 2**128 for seed in seeds)
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
