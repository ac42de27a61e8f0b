from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xarray as xr
import zarr
from dask._task_spec import DataNode, Task
from dask.base import tokenize
from dask.delayed import delayed
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from daskcoreset.build import default_size
from daskcoreset.core.blocks import Block, InvalidRow
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.points import deduplicate
from daskcoreset.core.typing import AnyArray
from daskcoreset.estimators.base import is_in_memory, solver_seed
from daskcoreset.estimators.kmeans import auto_starts
from daskcoreset.execution.engine import map_rows
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.solvers.kmeans import center_distances, check_init, nearest, nearest_labels, solve
from daskcoreset.testing import CountingArray, CountingScheduler

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1000, 3))


def first(block: Block) -> Any:
    return np.asarray(block.points[:, 0])


def two(block: Block) -> Any:
    return np.asarray(block.points[:, :2])


def tasks_of(array: Any) -> int:
    optimize: Any = array.__dask_optimize__
    keys: Any = array.__dask_keys__()
    graph = dict(optimize(array.__dask_graph__(), keys))
    # Bare aliases are names, which no scheduler runs for long.
    return sum(isinstance(node, Task) and not isinstance(node, DataNode) for node in graph.values())


def zarr_of(folder: Path) -> Any:
    array = zarr.create_array(folder / "x.zarr", shape=X.shape, chunks=(50, 3), dtype=X.dtype)
    array[:] = X
    return array


# --- map_rows ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["numpy", "zarr", "from_zarr", "memory", "columns"])
@pytest.mark.parametrize(("function", "columns"), [(first, None), (two, 2)])
def test_map_rows__keeps_rows_in_order(
    kind: str, function: Any, columns: int | None, tmp_path: Path
) -> None:
    kinds: dict[str, Callable[[], Any]] = {
        "numpy": lambda: X,
        "zarr": lambda: zarr_of(tmp_path),
        "from_zarr": lambda: da.from_zarr(zarr_of(tmp_path)),
        "memory": lambda: da.from_array(X, chunks=(300, 3)),
        "columns": lambda: da.from_array(X, chunks=(300, 2)),
    }
    blocks = row_blocks(kinds[kind]())
    mapped = map_rows(blocks, function, dtype=X.dtype, columns=columns)
    assert mapped.chunks[0] == blocks.sizes
    assert mapped.dtype == X.dtype
    wanted = X[:, 0] if columns is None else X[:, :2]
    np.testing.assert_array_equal(mapped.compute(), wanted)
    np.testing.assert_array_equal(mapped[5:700].compute(), wanted[5:700])


@pytest.mark.parametrize("columns", [None, 2])
def test_map_rows__unknown_chunks_stay_unknown(columns: int | None) -> None:
    lazy = da.from_array(X, chunks=(300, 3))
    some = lazy[lazy[:, 0] > 0]
    mapped = map_rows(
        row_blocks(some), first if columns is None else two, dtype=X.dtype, columns=columns
    )
    assert np.isnan(mapped.shape[0])
    wanted = X[X[:, 0] > 0]
    np.testing.assert_array_equal(
        mapped.compute(), wanted[:, 0] if columns is None else wanted[:, :2]
    )


@pytest.mark.parametrize(("function", "columns"), [(first, None), (two, 2)])
def test_map_rows__one_task_a_block(function: Any, columns: int | None, tmp_path: Path) -> None:
    for source in (zarr_of(tmp_path), da.from_zarr(zarr_of(tmp_path / "other"))):
        blocks = row_blocks(source, chunks=50)
        assert tasks_of(map_rows(blocks, function, dtype=X.dtype, columns=columns)) == 20


def test_map_rows__computes_and_reads_nothing_when_defined() -> None:
    rows, scheduler = CountingArray(X), CountingScheduler()
    with dask.config.set(scheduler=scheduler):
        mapped = map_rows(row_blocks(rows, chunks=100), first, dtype=X.dtype)
        assert scheduler.calls == 0
        assert not rows.reads.any()
        mapped.compute()
    assert scheduler.calls == 1


def test_map_rows__names_the_bad_row() -> None:
    bad = X.copy()
    bad[777, 1] = np.nan
    lazy = da.from_array(bad, chunks=(100, 3))
    # Rows left out would shift all that follow, so that the rule of the blocks does not count.
    mapped = map_rows(row_blocks(lazy, on_invalid="drop"), first, dtype=X.dtype)
    with pytest.raises(InvalidInputError, match="column 1 at row 777"):
        mapped.compute()
    np.testing.assert_array_equal(mapped[:300].compute(), X[:300, 0])
    unknown = map_rows(row_blocks(lazy[lazy[:, 0] > -99]), first, dtype=X.dtype)
    with pytest.raises(InvalidInputError, match="column 1 at row 77 of block 7"):
        unknown.compute()


def test_map_rows__function_may_find_a_problem() -> None:
    def judge(block: Block) -> Any:
        bad = np.flatnonzero(np.asarray(block.points[:, 0]) == 501)
        return InvalidRow("too large{row}", int(bad[0])) if len(bad) else first(block)

    rows = np.arange(1000.0).reshape(-1, 1)
    mapped = map_rows(row_blocks(rows, chunks=100), judge, dtype=float)
    np.testing.assert_array_equal(mapped[:500].compute(), rows[:500, 0])
    with pytest.raises(InvalidInputError, match="too large at row 501"):
        mapped.compute()


def test_map_rows__wrong_columns_in_a_block_of_unknown_size() -> None:
    broken: Any = da.from_delayed(delayed(np.ones)((4, 2)), shape=(np.nan, 3), dtype=float)
    with pytest.raises(InvalidInputError, match="3 columns are expected"):
        map_rows(row_blocks(broken), first, dtype=float).compute()


def test_map_rows__tasks_pickle_with_a_sure_token() -> None:
    from daskcoreset.execution.engine import _row_values, _run_block

    schema = row_blocks(X).schema
    task = partial(_run_block, partial(_row_values, first), schema, ("X",))
    again = partial(_run_block, partial(_row_values, first), schema, ("X",))
    assert tokenize(task) == tokenize(again)
    assert tokenize(pickle.loads(pickle.dumps(task))) == tokenize(task)


# --- canonical ---------------------------------------------------------------------------

SMALL = arrays(
    np.float64, st.tuples(st.integers(1, 12), st.integers(1, 4)), elements=st.integers(-1, 1)
)


def bits(part: Any) -> bytes:
    plain: AnyArray = part.toarray() if sp.issparse(part) else part
    return plain.tobytes()


@given(SMALL, st.data())
def test_canonical__weights_and_repeats_are_the_same(rows: AnyArray, data: Any) -> None:
    n = len(rows)
    counts = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    labels = np.array(data.draw(st.lists(st.sampled_from("ab"), min_size=n, max_size=n)))
    order = np.array(data.draw(st.permutations(range(n))))
    repeated = order.repeat(counts[order])
    signed = np.where(rows == 0, -0.0, rows)
    for make in (np.asarray, sp.csr_array):
        one = deduplicate(make(rows), counts.astype(float), labels)
        ones = np.ones(len(repeated))
        other = deduplicate(make(signed[repeated]), ones, labels[repeated])
        assert [bits(part) for part in one] == [bits(part) for part in other]


@given(SMALL)
def test_canonical__is_lexicographic_and_distinct(rows: AnyArray) -> None:
    points, weights, labels = deduplicate(rows, np.ones(len(rows)))
    wanted, counts = np.unique(rows, axis=0, return_counts=True)
    np.testing.assert_array_equal(points, wanted)
    np.testing.assert_array_equal(weights, counts)
    assert labels is None


def test_canonical__adds_weights_in_an_order_of_their_own() -> None:
    weights = np.array([1e16, 1.0, 1.0, 1.0, 1.0])
    sums = {
        float(deduplicate(np.zeros((5, 1)), weights[order])[1][0])
        for order in (np.arange(5), np.arange(5)[::-1], np.array([1, 0, 2, 3, 4]))
    }
    assert sums == {1e16 + 4}


def test_canonical__result_may_be_written_to() -> None:
    rows = np.ones((2, 2))
    rows.flags.writeable = False
    points, _, _ = deduplicate(rows, np.ones(2))
    assert isinstance(points, np.ndarray)
    assert points.flags.writeable
    wide = sp.csr_array((np.ones(2), np.array([0, 1], dtype=np.int64), np.array([0, 1, 2])))
    found: Any = deduplicate(wide, np.ones(2))[0]
    assert found.indices.dtype == np.int32


# --- small parts -------------------------------------------------------------------------


def test_is_held__knows_memory_from_the_rest(tmp_path: Path) -> None:
    frame = pd.DataFrame(X)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for part in (X, X.tolist(), frame, frame[0], sp.csr_array(X), None, 3.0):
        assert is_in_memory(part)
    for part in (
        da.from_array(X),
        zarr_of(tmp_path),
        mapped,
        str(tmp_path),
        tmp_path,
        xr.DataArray(X),
        delayed(X),
        CountingArray(X),
    ):
        assert not is_in_memory(part)
        assert not is_in_memory(X, part)


def test_solver_seed__depends_on_the_seed_alone() -> None:
    assert solver_seed(7) == solver_seed(7)
    assert len({solver_seed(seed) for seed in range(100)}) == 100
    assert 0 <= solver_seed(2**128 - 1) < 2**32


def test_auto__grows_with_the_clusters() -> None:
    assert default_size(1) == 10_000
    assert default_size(1000) == 100_000
    assert [auto_starts(k) for k in (1, 50, 51, 100, 10_000)] == [10, 10, 9, 5, 3]


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_nearest__agrees_with_plain_numpy(
    threads: bool, sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daskcoreset.solvers.kmeans._TILE_NUMBERS", 256)
    centers = X[:7].copy()
    rows: Any = sp.csr_array(X) if sparse else X
    wanted = ((X[:, None] - centers) ** 2).sum(axis=2)
    labels, distances = nearest(rows, centers, threads=threads)
    np.testing.assert_array_equal(labels, wanted.argmin(axis=1))
    np.testing.assert_allclose(distances, wanted.min(axis=1), atol=1e-14)
    all_of_them = center_distances(rows, centers, threads=threads)
    np.testing.assert_allclose(all_of_them, np.sqrt(wanted), atol=1e-7)
    np.testing.assert_array_equal(nearest_labels(rows, centers), labels)
    np.testing.assert_array_equal(center_distances(rows, centers), all_of_them)


def test_nearest__error_in_a_thread_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskcoreset.solvers.kmeans._TILE_NUMBERS", 256)
    with pytest.raises(ValueError, match=r".+"):
        center_distances(X, np.ones((2, 5)), threads=True)


OPTIONS: dict[str, Any] = {"n_init": 2, "max_iter": 50, "tol": 1e-4, "seed": 0}


def test_solve__float32_far_from_the_origin() -> None:
    near = np.repeat(np.eye(3), 20, axis=0) * 64 + np.random.default_rng(0).integers(
        0, 4, size=(60, 3)
    )
    far = (near + 1e6).astype(np.float32)
    weights = np.ones(60)
    found = [solve(rows, weights, 3, init="k-means++", **OPTIONS).centers for rows in (near, far)]
    np.testing.assert_allclose(
        np.sort(found[1], axis=0) - 1e6, np.sort(found[0], axis=0), rtol=1e-5
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_solve__init_is_where_the_user_put_it(sparse: bool) -> None:
    rows = np.array([[100.0], [101.0], [110.0], [111.0]])
    made: Any = sp.csr_array(rows) if sparse else rows
    seen: list[Any] = []

    def start(X: Any, n_clusters: int, *, random_state: Any) -> Any:
        del random_state
        seen.append(X)
        return np.array([[100.0], [111.0]])[:n_clusters]

    for init in (start, np.array([[100.0], [111.0]])):
        centers = solve(made, np.ones(4), 2, init=init, **OPTIONS).centers
        np.testing.assert_allclose(centers, [[100.5], [110.5]])
    if not sparse:
        np.testing.assert_allclose(seen[0], rows)


def test_solve__tol_is_relative_to_the_weighted_variance() -> None:
    # Far rows of little weight widen a coreset, but must not end the search early.
    rng = np.random.default_rng(0)
    rows = np.r_[rng.normal(size=(500, 2)), rng.normal(size=(50, 2)) * 1e4]
    weights = np.r_[np.ones(500), np.full(50, 1e-9)]
    early = solve(rows, weights, 5, init="k-means++", **OPTIONS | {"tol": 1e-2})
    alone = solve(rows[:500], weights[:500], 5, init="k-means++", **OPTIONS | {"tol": 1e-2})
    assert early.n_iter > 1
    assert alone.n_iter > 1


def test_check_init__names_both_shapes() -> None:
    check_init(np.ones((3, 2)), 3, 2)
    with pytest.raises(InvalidInputError, match=r"init has shape \(2, 2\); pass 3 centers of 2"):
        check_init(np.ones((2, 2)), 3, 2)
