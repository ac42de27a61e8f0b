"""Every kind of input, the same rows in the same chunks: the same coreset, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from tests.acceptance.face import (
    Coreset,
    Draw,
    WeightedPoints,
    build,
    estimators,
    forecast,
    plan,
)
from tests.acceptance.tools.counting import CountingScheduler
from tests.acceptance.tools.input_kinds import (
    CHUNK,
    EXACT,
    KINDS,
    SIZE,
    WEIGHT,
    D,
    Made,
    N,
    S,
    X,
    Y,
    dask_of_sparse,
    hdf5_datasets,
    memmap_file,
    parquet_file,
    zarr_sharded,
)
from tests.acceptance.tools.processes import shared_pool


def coreset_of(made: Made, passes: Any = 1, call: Callable[..., Any] = build) -> Any:
    rows, y, sample_weight, more = made
    options = {"size": SIZE, "random_state": 7, **more, "draw": Draw(passes=passes)}
    return call(rows, y, sample_weight=sample_weight, **options)


def assert_same(found: Coreset, expected: Coreset) -> None:
    for part in ("points", "weights", "indices", "labels"):
        one, other = getattr(found, part), getattr(expected, part)
        if one is not None and not sp.issparse(one):
            assert one.dtype == other.dtype, part
            np.testing.assert_array_equal(one, other, err_msg=part)
    assert WeightedPoints.equals(found, expected)


@pytest.fixture(scope="module")
def reference() -> dict[int, Coreset]:
    given = (X, Y, WEIGHT, EXACT)
    return {passes: coreset_of(given, passes) for passes in (1, 2)}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_build__same_bits_for_every_kind_in_one_computation(
    kind: Callable[[Path], Made], tmp_path: Path, reference: dict[int, Coreset]
) -> None:
    made = kind(tmp_path)
    scheduler = CountingScheduler()
    with dask.config.set(scheduler=scheduler):
        for passes in (1, 2):
            coreset_of(made, passes, forecast)
            lazy = coreset_of(made, passes, plan)
            assert scheduler.calls == passes - 1
            assert_same(lazy.compute(), reference[passes])
            assert scheduler.calls == passes


@pytest.mark.distributed
@pytest.mark.parametrize("kind", [hdf5_datasets, zarr_sharded, memmap_file, parquet_file])
def test_build__same_bits_on_processes(
    kind: Callable[[Path], Made], tmp_path: Path, reference: dict[int, Coreset]
) -> None:
    with dask.config.set(scheduler="processes", pool=shared_pool()):
        assert_same(coreset_of(kind(tmp_path)), reference[1])


# --- sparse ------------------------------------------------------------------------------


def sparse_with_duplicates() -> Any:
    row = np.r_[S.tocoo().row, S.tocoo().row]
    column = np.r_[S.tocoo().col, S.tocoo().col]
    return sp.coo_array((np.r_[S.data, S.data] / 2, (row, column)), shape=S.shape)


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        (S, EXACT),
        (sp.csr_matrix(S), EXACT),
        (sp.csc_array(S), EXACT),
        (sp.coo_matrix(S), EXACT),
        (sparse_with_duplicates(), EXACT),
        (dask_of_sparse(sp.csr_array, 30), {}),
        (dask_of_sparse(sp.csr_matrix, 30), {}),
        (dask_of_sparse(sp.csc_array, 30), {}),
        (dask_of_sparse(sp.csr_array, 11), {}),
        (dask_of_sparse(sp.csr_array, 30), {"chunks": CHUNK}),
        (dask_of_sparse(sp.coo_matrix, 30, meta=np.empty((0, 0), np.float32)), {}),
    ],
)
def test_build__sparse_stays_sparse(rows: Any, options: dict[str, Any]) -> None:
    expected = coreset_of((S, Y, WEIGHT, EXACT))
    dense = coreset_of((S.toarray(), Y, WEIGHT, EXACT))
    found = coreset_of((rows, Y, WEIGHT, options))
    points: Any = found.points
    assert isinstance(points, sp.csr_array)
    assert points.dtype == np.float32
    assert_same(found, expected)
    # The sums of dense and sparse rows round differently: the draw need not be the same.
    np.testing.assert_array_equal(points.toarray(), S.toarray()[found.indices])
    assert found.total_weight == pytest.approx(dense.total_weight, rel=0.1)


def test_build__sparse_path(tmp_path: Path) -> None:
    square = S[:30]  # a transposed one would have the same shape
    for form in (sp.csr_array, sp.csc_array, sp.coo_array):
        sp.save_npz(tmp_path / "s.npz", form(square))
        found: Any = build(tmp_path / "s.npz", size=10, random_state=0)
        np.testing.assert_array_equal(found.points.toarray(), square.toarray()[found.indices])


def test_build__input_left_as_it_was() -> None:
    unsorted = sp.csr_array(
        (np.array([1.0, 2.0, 3.0]), np.array([2, 0, 0]), np.array([0, 3])), shape=(1, 3)
    )
    before = [part.copy() for part in (unsorted.data, unsorted.indices, unsorted.indptr)]
    rows = sp.vstack([unsorted, unsorted], format="csr")
    kept = rows.indices.copy()
    assert len(build(rows, size=1)) == 1
    np.testing.assert_array_equal(rows.indices, kept)
    for part, was in zip((unsorted.data, unsorted.indices, unsorted.indptr), before, strict=True):
        np.testing.assert_array_equal(part, was)


# --- frames ------------------------------------------------------------------------------


def test_build__mixed_columns_become_float64() -> None:
    frame = pd.DataFrame(
        {
            "int": np.arange(N),
            "small": X[:, 0],
            "yes": np.arange(N) % 2 == 0,
            "nullable": pd.array([None, *range(N - 1)], dtype="Int16"),
            "arrow": pd.array([1.5] * N, dtype="float[pyarrow]"),
        }
    )
    filled = frame.assign(nullable=frame["nullable"].fillna(0)).astype(np.float64)
    for rows in (frame, dd.from_pandas(frame, npartitions=1)):
        found = build(rows, size=SIZE, random_state=7, on_invalid="drop")
        assert found.points.dtype == np.float64
        assert found.provenance["n_dropped"] == 1
        assert found.provenance["columns"] == tuple(frame.columns)
        assert 0 not in found.indices
        np.testing.assert_array_equal(found.points, filled.to_numpy()[found.indices])


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (pd.Series([1, 2, 3], dtype="Int64"), np.array([1, 2, 3])),
        (pd.Series([1, None, 3], dtype="Int64"), np.array([1, np.nan, 3])),
        (pd.Series(["a", "b", "c"], dtype="category"), np.array(["a", "b", "c"])),
        (pd.Series(["a", "bb", "c"]), np.array(["a", "bb", "c"])),
        (np.array([b"a", "\u00e9".encode(), b"c"]), np.array(["a", "\u00e9", "c"])),
        (np.array([b"a", "b", 3], dtype=object), np.array(["a", "b", "3"])),
        (np.array(["a", "b", "c"], dtype=np.dtypes.StringDType()), np.array(["a", "b", "c"])),
        (np.array([1, 2, 3], dtype=np.longdouble), np.array([1.0, 2.0, 3.0])),
        (np.array([True, False, True]), np.array([True, False, True])),
    ],
)
@pytest.mark.filterwarnings("ignore::daskcoreset.errors.CoresetWarning")
def test_build__labels_of_every_kind(labels: Any, expected: Any) -> None:
    found = build(np.eye(3), labels, size=3).labels
    assert found is not None
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


# --- blocks ------------------------------------------------------------------------------


def test_build__rows_that_are_put_together_of_parts_of_one_array() -> None:
    """Tasks of concatenated arrays are aliases, which a second read renames."""
    rows = da.from_array(X, chunks=(N // 8, D))
    cut = N // 8 * 3
    together = da.concatenate([rows[:cut], rows[cut:]])
    found = build(together, size=SIZE, random_state=0, draw=Draw(passes=2))
    assert found.equals(build(rows, size=SIZE, random_state=0, draw=Draw(passes=2)))
    lazy = plan(together, size=SIZE, random_state=0, draw=Draw(passes=2))
    (beside, _) = dask.compute(lazy, together.sum())
    assert found.equals(beside)
    model = estimators.CoresetKMeans(3, size=SIZE, random_state=0).fit(together)
    assert model.score(together) == pytest.approx(model.score(X))
