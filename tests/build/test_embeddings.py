"""Rows of 768 and 1,536 columns of float16: what they take of memory, and the metric cosine."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

from daskcoreset import Coreset, StrongKMeans, build, metrics, open_rows
from daskcoreset.core.block import Block
from daskcoreset.errors import InvalidInputError
from daskcoreset.estimators import CoresetGaussianMixture, CoresetKMeans

MIB = 2**20

RNG = np.random.default_rng(0)

# Rows of ten directions, whose lengths say nothing.
DIRECTIONS = RNG.normal(size=(10, 24))

ROWS = DIRECTIONS[RNG.integers(0, 10, 6000)] + 0.4 * RNG.normal(size=(6000, 24))

ROWS = (ROWS * RNG.lognormal(0.0, 2.0, size=(6000, 1))).astype(np.float32)

UNIT = ROWS / np.linalg.norm(ROWS.astype(np.float64), axis=1, keepdims=True)


def lazy(X: Any) -> Any:
    return da.from_array(X, chunks=(1300, X.shape[1]))


def shifted(table: Any, n_blocks: int) -> Any:
    """Return an array of blocks that are made when they are read."""

    def block(block_id: tuple[int, ...]) -> Any:
        return np.roll(table, block_id[0], axis=1)

    n_rows, columns = table.shape
    chunks, meta = ((n_rows,) * n_blocks, (columns,)), np.empty((0, 0), table.dtype)
    return da.map_blocks(block, chunks=chunks, dtype=table.dtype, meta=meta)


def peak(function: Callable[[], Any]) -> float:
    """Return the MiB that NumPy holds at most while a function runs, beyond what it held."""
    gc.collect()
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1] / MIB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("columns", [768])
def test_scores__of_wide_rows_take_no_matrix_of_rows_by_centers(columns: int) -> None:
    n_rows, k = 8192, 128
    points = RNG.standard_normal((n_rows, columns), dtype=np.float32)
    block, rng = Block(points, np.ones(n_rows)), np.random.default_rng(0)
    strong = StrongKMeans(k)
    cells, _, _ = strong.block_summary(block.take(np.arange(256)), None, rng)
    strong.scores(block, cells)  # compiles, which takes memory as well
    assert peak(lambda: strong.scores(block, cells)) < 0.75 * n_rows * k * 4 / MIB


@pytest.mark.parametrize(("columns", "metric"), [(768, "cosine")])
def test_predict__of_wide_float16_takes_a_few_blocks(columns: int, metric: Any) -> None:
    k, n_rows = 2048, 256
    X = shifted(RNG.standard_normal((n_rows, columns)).astype(np.float16), 2)
    model = CoresetKMeans(2, size=50, metric=metric, random_state=0).fit(X)
    model.cluster_centers_ = centers = RNG.standard_normal((k, columns))
    block, matrix = n_rows * columns * 4 / MIB, n_rows * k * 4 / MIB
    with dask.config.set(scheduler="sync"):
        labels = model.predict(X[:5]).compute()
        # Rows are assigned in tiles of a MiB.
        assert peak(lambda: model.predict(X).compute()) < 3 * block + 0.5 * matrix + 1
    rows = X[:5].compute().astype(np.float64)
    if metric == "cosine":
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    gaps = np.square(rows).sum(axis=1)[:, np.newaxis] - 2.0 * rows @ centers.T
    gaps += np.square(centers).sum(axis=1)
    np.testing.assert_array_equal(labels, gaps.argmin(axis=1))


KINDS: dict[str, Callable[[Any], Any]] = {
    "memory": lambda X: X,
    "dask": lazy,
    "sparse": sp.csr_array,
}


@pytest.mark.parametrize("kind", KINDS)
def test_fit__by_cosine_is_spherical_kmeans(kind: str) -> None:
    X = KINDS[kind](ROWS)
    options: dict[str, Any] = {"size": 800, "random_state": 0}
    model = CoresetKMeans(10, metric="cosine", **options).fit(X)
    centers = model.cluster_centers_
    np.testing.assert_allclose(np.linalg.norm(centers, axis=1), 1.0)
    cosines = UNIT @ centers.T
    np.testing.assert_array_equal(np.asarray(model.predict(X)), cosines.argmax(axis=1))
    distances = (2.0 - 2.0 * cosines).clip(0.0)
    cost = distances.min(axis=1).sum()
    np.testing.assert_allclose(float(model.inertia_), cost, rtol=1e-5)
    np.testing.assert_allclose(-model.score(X), cost, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(model.transform(X)) ** 2, distances, atol=1e-5)
    assert abs(model.coreset_inertia_ / cost - 1.0) < 0.1
    # As good as the ten directions that the rows were made of.
    own = DIRECTIONS / np.linalg.norm(DIRECTIONS, axis=1, keepdims=True)
    assert cost < 1.1 * (2.0 - 2.0 * (UNIT @ own.T).max(axis=1)).sum()
    plain = CoresetKMeans(10, **options).fit(X)
    assert metrics.kmeans_cost(open_rows(X, unit_length=True), plain.cluster_centers_) > 1.5 * cost


def test_build__by_cosine_says_so() -> None:
    coreset = build(open_rows(lazy(ROWS), unit_length=True), size=300, random_state=0)
    assert coreset.metric == "cosine"
    assert build(ROWS, size=300, random_state=0).metric == "euclidean"
    np.testing.assert_array_equal(coreset.source_rows(X=ROWS), ROWS[coreset.indices])


def test_build__by_cosine_is_audited_by_cosine() -> None:
    coreset = build(open_rows(ROWS, unit_length=True), size=1000, random_state=0)
    found = coreset.audit(ROWS, n_clusters=4, random_state=0)
    assert found.distortion < 0.2
    solution = found.solutions[0]
    np.testing.assert_allclose(
        found.on_data[0], metrics.kmeans_cost(open_rows(ROWS, unit_length=True), solution)
    )


def test_fit__takes_coresets_by_its_own_metric_only() -> None:
    model = CoresetKMeans(10, size=500, metric="cosine", random_state=0).fit(ROWS)
    coreset = model.coreset_
    again = CoresetKMeans(10, metric="cosine", random_state=0).fit(coreset)
    np.testing.assert_allclose(again.coreset_inertia_, model.coreset_inertia_, rtol=0.05)
    np.testing.assert_allclose(-again.score(coreset), again.inertia_)
    for other in (CoresetKMeans(10), CoresetGaussianMixture(2)):
        with pytest.raises(InvalidInputError, match="for the metric 'cosine'"):
            other.fit(coreset)
    plain = build(ROWS, size=100, random_state=0)
    with pytest.raises(InvalidInputError, match="for the metric 'euclidean'"):
        CoresetKMeans(3, metric="cosine").fit(plain)
    rows = build(open_rows(ROWS, unit_length=True), size=100, random_state=0)
    with pytest.raises(InvalidInputError, match="different metric"):
        rows.merge(plain)
    assert rows.merge(rows).metric == "cosine"
    assert Coreset(rows.points, rows.weights, rows.indices).metric == "euclidean"


def test_fit__by_cosine_refuses_rows_of_zeros_or_drops_them() -> None:
    X = ROWS.copy()
    X[[7, 4000]] = 0.0
    options: dict[str, Any] = {"size": 300, "random_state": 0}
    with pytest.raises(InvalidInputError, match=r"zero in all columns at row 7, .*drop"):
        CoresetKMeans(10, metric="cosine", **options).fit(X)
    model = CoresetKMeans(10, metric="cosine", on_invalid="drop", **options).fit(X)
    assert model.coreset_.provenance["n_dropped"] == 2
    assert np.flatnonzero(model.labels_ == -1).tolist() == [7, 4000]
    with pytest.raises(InvalidInputError, match="zero in all columns"):
        np.asarray(model.predict(X))
    CoresetKMeans(10).fit(X)  # which has a place for them
