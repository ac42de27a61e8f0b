"""Builds by sampling: how often they read, and that they are right on average."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np

import daskcoreset
from daskcoreset import Draw
from daskcoreset.core.typing import Sampling
from daskcoreset.sensitivities import Lightweight, Sensitivity, Uniform
from tests.acceptance.tools.counting import CountingArray, CountingScheduler
from tests.pairs import each

METHODS: list[Sensitivity[Any]] = [Lightweight(), Uniform()]


def read_counts(n_rows: int, **options: Any) -> tuple[Any, Any, int]:
    """Build from rows that count their reads: reads by row and by block, blocks read again."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 2))
    X[-n_rows // 10 :] *= 100.0  # the last block has nearly half of the scores
    rows, weights = CountingArray(X), CountingArray(rng.lognormal(size=n_rows))
    scheduler = CountingScheduler()
    with dask.config.set(scheduler=scheduler):
        coreset = daskcoreset.build(
            rows, sample_weight=weights, chunks=n_rows // 10, random_state=0, **options
        )
    assert (weights.reads == rows.reads).all()
    blocks = rows.reads.reshape(10, -1)
    assert (blocks == blocks[:, :1]).all()
    again = int(coreset.provenance["blocks_read_again"])
    assert scheduler.calls == 1 + (again > 0)
    return blocks[:, 0], coreset, again


@each(method=METHODS, sampling=["systematic", "multinomial"])
def test_build__two_passes_read_every_row_twice(
    method: Sensitivity[Any], sampling: Sampling
) -> None:
    draw = Draw(sampling, passes=2)
    reads, _, again = read_counts(1000, size=50, draw=draw, method=method)

    assert (reads == 2).all()
    assert again == 0


@each(method=METHODS)
def test_build__one_pass_reads_every_row_once(method: Sensitivity[Any]) -> None:
    reads, coreset, again = read_counts(1000, size=50, method=method)

    assert (reads == 1).all()
    assert again == 0
    assert coreset.provenance["passes"] == 1
