"""Builds by sampling: how often they read, and that they are right on average."""

from __future__ import annotations

from typing import Any, Literal

import dask
import numpy as np
import pytest

import daskcoreset
from daskcoreset.core.typing import Sampling
from daskcoreset.sensitivities import Lightweight, Sensitivity, Uniform
from daskcoreset.testing import CountingArray, CountingScheduler, cut_rows, draw
from tests.tools.draws import modes

METHODS: list[Sensitivity[Any]] = [Lightweight(), Uniform()]
methods = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)


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


@methods
@pytest.mark.parametrize("sampling", ["systematic", "multinomial"])
def test_build__two_passes_read_every_row_twice(
    method: Sensitivity[Any], sampling: Sampling
) -> None:
    reads, _, again = read_counts(1000, size=50, passes=2, sampling=sampling, method=method)

    assert (reads == 2).all()
    assert again == 0


@methods
@pytest.mark.parametrize("sampling", ["systematic", "multinomial"])
def test_build__one_pass_reads_every_row_once(method: Sensitivity[Any], sampling: Sampling) -> None:
    reads, coreset, again = read_counts(1000, size=50, passes=1, sampling=sampling, method=method)

    assert reads.min() == 1
    assert (reads - 1).sum() == again
    assert coreset.provenance["passes"] == 1
    if sampling == "systematic" or method.name == "uniform":
        assert again == 0


def test_build__one_pass_reads_short_blocks_once_more() -> None:
    # Half of the 500 draws fall on the last block, which has 200 candidates.
    reads, _, again = read_counts(1000, size=500, passes=1, sampling="multinomial")

    assert again > 0
    assert reads[-1] == 2
    assert set(reads) == {1, 2}
    assert (reads == 2).sum() == again


def test_build__all_rows_are_read_once() -> None:
    with pytest.warns(daskcoreset.errors.CoresetWarning, match="size=1000 is not below"):
        reads, coreset, again = read_counts(1000, size=1000, passes=2)

    assert (reads == 1).all()
    assert again == 0
    assert len(coreset) == 1000


@modes
def test_build__draws_what_blocks_in_memory_draw(sampling: Sampling, passes: Literal[1, 2]) -> None:
    # The graph and `draw` are the same algorithm: what is proven of one holds for the other.
    X = np.random.default_rng(0).normal(size=(300, 2))
    coreset = daskcoreset.build(
        X, size=20, chunks=100, sampling=sampling, passes=passes, random_state=3, split_every=2
    )
    selection = draw(
        cut_rows(X, [100] * 3), Lightweight(), 20, sampling=sampling, passes=passes, seed=3
    )

    assert (coreset.indices == selection.indices).all()
    assert (coreset.weights == selection.weights).all()


@pytest.mark.parametrize("sampling", ["systematic", "multinomial"])
@pytest.mark.parametrize("passes", [1, 2])
def test_normalize__total_weight_is_that_of_the_data(sampling: Any, passes: Any) -> None:
    rng = np.random.default_rng(0)
    X, u = rng.normal(size=(500, 2)), rng.random(500)
    options: dict[str, Any] = {"size": 40, "sampling": sampling, "passes": passes}

    plain = daskcoreset.build(X, sample_weight=u, random_state=3, **options)
    scaled = daskcoreset.build(X, sample_weight=u, random_state=3, normalize=True, **options)

    np.testing.assert_allclose(scaled.weights.sum(), u.sum(), rtol=1e-12)
    np.testing.assert_array_equal(scaled.indices, plain.indices)
    ratio = scaled.weights / plain.weights
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-12)
    assert scaled.provenance["normalized"]
    assert not plain.provenance["normalized"]
