"""What a read tells of all rows beside coresets: reads, bits, exactness, bad input."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import zarr

import daskcoreset
from daskcoreset import Portfolio
from daskcoreset.testing import CountingArray

ROWS, CHUNK, D = 24_000, 1500, 3
METHODS: dict[str, Any] = {"means": "lightweight", "plain": "uniform"}


def make_rows(seed: int = 0) -> Any:
    """Sorted, far from zero, one column heavy-tailed and one of few values."""
    rng = np.random.default_rng(seed)
    columns = [1e6 + rng.normal(size=ROWS), rng.standard_t(2, ROWS), rng.integers(0, 3, ROWS)]
    X = np.stack(columns, axis=1)
    return X[np.argsort(X[:, 1])]


def built(X: Any, y: Any = None, **options: Any) -> Any:
    shared: dict[str, Any] = {"size": 200, "method": METHODS, "summaries": "all", "random_state": 3}
    return daskcoreset.build(X, y, **(shared | options))


@pytest.mark.nightly
def test_build__reads_no_more_for_summaries_and_changes_no_member() -> None:
    rows = CountingArray(make_rows())
    X = da.concatenate(
        [
            da.from_delayed(
                dask.delayed(rows.__getitem__)(slice(i, i + CHUNK)), (CHUNK, D), rows.dtype
            )
            for i in range(0, ROWS, CHUNK)
        ]
    )
    with dask.config.set(scheduler="synchronous"):
        plain = built(X, summaries=())
        rows.reads[:] = 0
        full = built(X)
    assert rows.reads.max() <= 1 + (full.provenance["blocks_read_again"] > 0)
    assert all(full[name].equals(plain[name]) for name in METHODS)
    assert plain.summary is plain.sample is None
    assert built(X, dry_run=True).reads == 1


@pytest.mark.nightly
def test_sample__shares_no_draw_with_a_member() -> None:
    portfolio = built(make_rows(), size=10_000)
    assert len(portfolio.sample) == 10_000
    both = np.intersect1d(portfolio.sample.indices, portfolio["plain"].indices)
    # Of 10,000 of 24,000 rows each, 4,167 are shared by chance; the bounds are ten deviations off.
    assert 3800 < len(both) < 4500


@pytest.mark.nightly
def test_sample__of_few_rows_is_all_of_them_without_a_warning() -> None:
    portfolio = built(make_rows()[:3000], size=100)
    assert len(portfolio.sample) == 3000


@pytest.mark.nightly
def test_build__counts_missing_values_of_dropped_rows() -> None:
    X = make_rows()
    X[:5, 0] = np.nan
    X[3:9, 2] = np.nan
    X[100, 1] = np.inf
    summary = built(X, chunks=CHUNK, on_invalid="drop").summary
    assert summary.missing.tolist() == [5, 0, 6]
    assert summary.count == ROWS - 10


@pytest.mark.nightly
def test_portfolio__saves_summaries_bit_for_bit() -> None:
    portfolio = built(make_rows(), np.arange(ROWS), chunks=CHUNK)
    store = zarr.storage.MemoryStore()
    portfolio.to_zarr(store)
    loaded = Portfolio.from_zarr(store)
    assert loaded.equals(portfolio)
    assert not loaded.equals(built(make_rows(1), np.arange(ROWS), chunks=CHUNK))
