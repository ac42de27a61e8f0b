"""What bad input gets: an error that names the argument, the finding and the remedy.

And what looks bad but is ordinary: constant data, duplicates, empty blocks, large offsets.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.bag
import dask.dataframe as dd
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import xarray as xr
import zarr

from daskcoreset import Coreset, CoresetStream, CoresetTree, MaxMarginCoreset, build
from daskcoreset.constructions.margin.active import ActiveMaxMargin
from daskcoreset.constructions.margin.active_run import KIND
from daskcoreset.core.errors import (
    CoresetError,
    CoresetWarning,
    InvalidInputError,
    InvalidTypeError,
    MissingDependencyError,
)
from daskcoreset.core.moments import merge_moments, moments_of
from daskcoreset.core.typing import AnyArray
from daskcoreset.execution.engine import read_block
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.inputs.containers import _ACTIVE
from daskcoreset.sensitivities import Uniform
from tests.tools.plain_loops import use_plain_loops

N, D, CHUNK = 120, 3, 20
X = np.random.default_rng(0).normal(size=(N, D))
WAYS = list(itertools.product((1, 2), ("systematic", "multinomial")))


def known(array: AnyArray) -> Any:
    return da.from_array(array, chunks=(CHUNK, *array.shape[1:]))


def unknown(array: AnyArray) -> Any:
    """Chunks of unknown sizes."""
    return known(array)[da.ones(len(array), chunks=CHUNK, dtype=bool)]


def in_memory(array: AnyArray) -> Any:
    return array


def as_frame(array: AnyArray) -> Any:
    frame = pd.DataFrame(array) if array.ndim == 2 else pd.Series(array)
    return dd.from_pandas(frame, npartitions=6, sort=False)


FORMS = [in_memory, known, unknown, as_frame]


@pytest.fixture(params=FORMS, ids=lambda form: form.__name__)
def form(request: pytest.FixtureRequest) -> Callable[[AnyArray], Any]:
    made: Callable[[AnyArray], Any] = request.param
    return made


@pytest.fixture
def no_compute() -> Any:
    """Fails on any compute."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("computed at definition time")

    with dask.config.set(scheduler=refuse):
        yield


# --- rows that are not finite ------------------------------------------------------------


@pytest.mark.parametrize(("passes", "sampling"), WAYS)
def test_build__first_bad_row_is_named(
    form: Callable[[AnyArray], Any], passes: Any, sampling: Any
) -> None:
    bad = X.copy()
    bad[[47, 48, 99], [1, 0, 2]] = np.inf, np.nan, np.nan
    with pytest.raises(
        ValueError,
        match=r"^Input X contains infinity \(inf\) in column 1 at row 47; clean .*on_invalid=",
    ):
        build(form(bad), size=10, passes=passes, sampling=sampling)


@pytest.mark.parametrize("size", [10, N])
@pytest.mark.parametrize(("passes", "sampling"), WAYS)
@pytest.mark.filterwarnings("ignore::daskcoreset.errors.CoresetWarning")
def test_build__bad_rows_dropped_and_indices_stay(
    form: Callable[[AnyArray], Any], passes: Any, sampling: Any, size: int
) -> None:
    bad = X.copy()
    bad[:45] = np.nan  # two blocks and a part of one
    bad[70, 0] = -np.inf
    found = build(
        form(bad), size=size, passes=passes, sampling=sampling, on_invalid="drop", random_state=0
    )
    assert found.indices.min() >= 45
    assert 70 not in found.indices
    np.testing.assert_array_equal(found.points, bad[found.indices])
    assert found.provenance["n_dropped"] == 46
    assert found.provenance["n"] == N - 46
    if size == N:
        assert len(found) == N - 46


@pytest.mark.parametrize("size", [10, N])
@pytest.mark.parametrize(("passes", "sampling"), WAYS)
def test_build__no_finite_row(
    form: Callable[[AnyArray], Any], passes: Any, sampling: Any, size: int
) -> None:
    with pytest.raises(InvalidInputError, match=f"none of the {N} rows of X is finite; pass"):
        build(form(X * np.nan), size=size, passes=passes, sampling=sampling, on_invalid="drop")


def test_build__bad_row_of_sparse() -> None:
    bad = sp.lil_array((N, 50))
    bad[33, 7] = np.nan
    with pytest.raises(InvalidInputError, match="X contains NaN in column 7 at row 33"):
        build(bad.tocsc(), size=10, chunks=CHUNK)


# --- shapes and types, before anything is read -------------------------------------------

OBJECT = np.array([[1, "a"], [2, "b"]], dtype=object)
GOOD = np.ones((4, 2))


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (np.ones(4), ValueError, r"X must have 2 dimensions, found shape \(4,\); .*reshape"),
        (np.ones((2, 2, 2)), ValueError, r"X must have 2 dimensions.*\(2, 2, 2\); .*reshape"),
        (da.ones((2, 2, 2)), ValueError, r"X must have 2 dimensions"),
        (da.ones(5)[da.ones(5) > 0], ValueError, r"X must have 2 dimensions, found shape \(nan,\)"),
        (pd.Series([1.0, 2.0]), ValueError, "X must have 2 dimensions"),
        (xr.DataArray(np.ones((2, 2, 2))), ValueError, r"X has the dimensions .*sample_dims=\("),
        (np.float64(3), ValueError, r"X must have 2 dimensions, found shape \(\)"),
        (zarr.array(3.0), ValueError, r"X must have 2 dimensions, found shape \(\)"),
        (np.ones((0, 3)), ValueError, "X has no rows; pass at least one"),
        (da.ones((0, 3)), ValueError, "X has no rows"),
        (pd.DataFrame({"a": []}, dtype=float), ValueError, "X has no rows"),
        (np.ones((3, 0)), ValueError, "X has no columns; pass at least one"),
        (da.ones((3, 0)), ValueError, "X has no columns"),
        (pd.DataFrame(index=[1, 2]), ValueError, "X has no columns"),
        (da.ones((4, 4))[:, da.ones(4) > 0], ValueError, "unknown number of columns; call"),
        (OBJECT, TypeError, "X must hold real numbers, found dtype object; .*astype"),
        (
            da.from_array(OBJECT, chunks=1),
            TypeError,
            "X must hold real numbers, found dtype object",
        ),
        (np.array([["a"]]), TypeError, "X must hold real numbers, found dtype <U1"),
        (np.ones((2, 2), complex), TypeError, "X must hold real numbers, found dtype complex128"),
        (np.ones((2, 2), "M8[s]"), TypeError, r"X must hold real numbers, found dtype datetime64"),
        (np.ones((2, 2), "m8[s]"), TypeError, r"X must hold real numbers, found dtype timedelta"),
        (np.zeros((2, 2), "f4,i4"), TypeError, "X must hold real numbers, found dtype"),
        (sp.csr_array(GOOD * 1j), TypeError, "X must hold real numbers, found dtype complex128"),
        (
            pd.DataFrame({"a": [1], "b": ["x"]}),
            TypeError,
            r"hold no real numbers: 'b' \((str|object)\); drop",
        ),
        (pd.DataFrame({"a": [1], "t": pd.to_datetime(["2020"])}), TypeError, "numbers: 't'.*as y"),
        (pd.DataFrame({"a": [1], "z": [1j]}), TypeError, "no real numbers: 'z'"),
        (dd.from_pandas(pd.DataFrame({"c": pd.Categorical(["u"])})), TypeError, "numbers: 'c'"),
        ([[1, 2], [3]], ValueError, "X is a list that makes no array.*equal length"),
        (xr.Dataset({"a": ("n", [1.0])}), TypeError, r'X is an xarray Dataset; .*X\["variable"\]'),
        (dask.delayed(GOOD), TypeError, r"X is a Delayed\w*; pass a Dask array"),
        (dask.bag.from_sequence([1]), TypeError, "X is a Bag; pass a Dask array"),
        (None, TypeError, "X is a NoneType; pass an array of NumPy"),
        ({"a": 1}, TypeError, "X is a dict; pass an array of NumPy"),
        (
            pa.table({"a": ["x"]}),
            TypeError,
            r"X has columns that hold no real numbers: 'a' \(string",
        ),
    ],
)
@pytest.mark.parametrize("compute", [True, False])
def test_build__x_that_cannot_be_used(
    rows: Any, error: type[Exception], message: str, compute: bool, no_compute: None
) -> None:
    del no_compute
    options: dict[str, Any] = {"size": 1, "compute": compute}
    with pytest.raises(error, match=message) as raised:
        build(rows, **options)
    assert isinstance(raised.value, CoresetError)


@pytest.mark.parametrize("name", ["y", "sample_weight"])
@pytest.mark.parametrize(
    ("beside", "error", "message"),
    [
        (np.ones(5), ValueError, "{} has 5 entries but X has 4 rows; pass one entry for every row"),
        (da.ones(5), ValueError, "{} has 5 entries but X has 4 rows"),
        (pd.Series(np.ones(3)), ValueError, "{} has 3 entries but X has 4 rows"),
        (
            np.ones((4, 1)),
            ValueError,
            r"{} must have 1 dimension, found shape \(4, 1\); .*{}.ravel",
        ),
        (np.ones(4, complex), TypeError, "{} must hold .*found dtype complex128; convert it"),
        (np.ones(4, "M8[s]"), TypeError, "{} must hold .*found dtype datetime64"),
        (sp.csr_array(np.ones((4, 1))), ValueError, "{} must have 1 dimension"),
        (sp.coo_array(np.ones(4)), TypeError, "{} is sparse; pass a dense vector.*toarray"),
        ("target", ValueError, "{} is 'target', which is no file, and X has no columns"),
        (da.ones(4)[da.ones(4) > 0], ValueError, "{} has unknown chunk sizes but X has known"),
        (
            dd.from_pandas(pd.Series(np.ones(4)), npartitions=2),
            ValueError,
            r"{}.compute_chunk_sizes\(\) first, or of a .* Series {}.to_dask_array\(lengths=True\)",
        ),
        (5, TypeError, "{} is an int; pass an array of NumPy"),
        ([1, [2]], ValueError, "{} is a list that makes no array"),
    ],
)
def test_build__y_and_weights_that_cannot_be_used(
    name: str, beside: Any, error: type[Exception], message: str, no_compute: None
) -> None:
    del no_compute
    for rows in (GOOD, known(GOOD), zarr.array(GOOD)):
        with pytest.raises(error, match=message.replace("{}", name)):
            build(rows, size=1, **{name: beside})


def test_build__names_the_stream_for_batches_of_a_generator() -> None:
    batches = (np.ones((10, 2)) for _ in range(3))
    with pytest.raises(InvalidTypeError, match=r"X is a generator; feed batches .* CoresetStream"):
        build(batches)


def test_build__weights_of_text() -> None:
    with pytest.raises(InvalidTypeError, match=r"sample_weight must hold real numbers, found .*U1"):
        build(GOOD, size=1, sample_weight=np.array(list("abcd")))


# --- lengths that only the blocks know ---------------------------------------------------


@pytest.mark.parametrize("name", ["y", "sample_weight"])
@pytest.mark.parametrize("size", [10, N])
@pytest.mark.parametrize(("passes", "sampling"), WAYS)
def test_build__lengths_differ_in_a_block(name: str, size: int, passes: Any, sampling: Any) -> None:
    short = np.arange(N) != 50
    for beside in (
        da.ones(N, chunks=CHUNK)[da.from_array(short, chunks=CHUNK)],
        da.ones(N - 1, chunks=((20, 20, 19, 20, 20, 20),)),
    ):
        with pytest.raises(
            InvalidInputError, match=rf"{name} has a block of shape \(19,\) beside .* 20 rows; give"
        ):
            build(unknown(X), size=size, passes=passes, sampling=sampling, **{name: beside})


def test_build__unknown_sizes_and_known_partners(no_compute: None) -> None:
    del no_compute
    remedy = r"call X.compute_chunk_sizes\(\) first, or X.to_dask_array\(lengths=True\)"
    for rows in (unknown(X), as_frame(X)):
        for y in (np.ones(N), zarr.array(np.ones(N)), pd.Series(np.ones(N))):
            with pytest.raises(InvalidInputError, match=f"in-memory or stored y .*{remedy}"):
                build(rows, y, size=10)
        with pytest.raises(InvalidInputError, match="y has 2 blocks but X has 6, of unknown"):
            build(rows, da.ones(N, chunks=N // 2), size=10)
        with pytest.raises(InvalidInputError, match=f"chunks=7, but X has unknown.*{remedy}"):
            build(rows, size=10, chunks=7)
    assert build(unknown(X), known(np.ones(N)), size=10, compute=False) is not None


def test_build__blocks_of_another_width() -> None:
    wrong = da.map_blocks(lambda b: b[:, :2], known(X), chunks=(CHUNK, D), dtype=X.dtype)
    with pytest.raises(
        InvalidInputError, match=r"X has a block of shape \(20, 2\) where 3 columns"
    ):
        build(wrong, size=10)


def test_build__first_problem_is_named_whatever_it_is() -> None:
    bad, weight = X.copy(), np.ones(N)
    bad[90], weight[60] = np.nan, -1
    with pytest.raises(InvalidInputError, match=r"sample_weight is -1\.0 at row 60; weights"):
        build(unknown(bad), sample_weight=unknown(weight), size=10)
    bad[30] = np.nan
    with pytest.raises(InvalidInputError, match="X contains NaN in column 0 at row 30"):
        build(unknown(bad), sample_weight=unknown(weight), size=10)


# --- weights -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "found"),
    [(-0.5, "-0.5 at row 77"), (np.nan, "nan at row 77"), (np.inf, "inf at row 77")],
)
@pytest.mark.parametrize("size", [10, N])
def test_build__bad_weight(
    form: Callable[[AnyArray], Any], value: float, found: str, size: int
) -> None:
    weight = np.ones(N)
    weight[77] = value
    with pytest.raises(
        InvalidInputError, match=f"^sample_weight is {found}; weights must be finite"
    ):
        build(form(X), sample_weight=form(weight), size=size, on_invalid="drop")


@pytest.mark.parametrize("size", [10, N])
@pytest.mark.parametrize(("passes", "sampling"), WAYS)
def test_build__all_weights_zero(
    form: Callable[[AnyArray], Any], passes: Any, sampling: Any, size: int
) -> None:
    options = {"size": size, "passes": passes, "sampling": sampling}
    with pytest.raises(
        InvalidInputError, match="sample_weight is zero on every row; give at least"
    ):
        build(form(X), sample_weight=form(np.zeros(N)), **options)


@pytest.mark.parametrize(("passes", "sampling"), WAYS)
def test_build__rows_of_weight_zero_never_come_back(
    form: Callable[[AnyArray], Any], passes: Any, sampling: Any
) -> None:
    weight = np.where(np.arange(N) < 50, 0.0, 1.0)
    found = build(
        form(X),
        sample_weight=form(weight),
        size=30,
        passes=passes,
        sampling=sampling,
        random_state=0,
    )
    assert found.indices.min() >= 50


def test_build__weights_that_sum_to_infinity() -> None:
    # In one block, or only in all of them together.
    for weight in (1e307, 5e306):
        for size in (10, N):
            with pytest.raises(InvalidInputError, match=r"sample_weight sums to .*scale"):
                build(known(X), sample_weight=np.full(N, weight), size=size)


# --- size and the other options ----------------------------------------------------------


@pytest.mark.parametrize("size", [True, 10.0, "10", np.float64(3), [3], np.array([3])])
def test_build__size_that_is_no_integer(size: Any) -> None:
    with pytest.raises(InvalidTypeError, match=r"^size must be an integer, got .*; pass an int"):
        build(X, size=size)


@pytest.mark.parametrize("size", [0, -3, np.int64(0)])
def test_build__size_below_one(size: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^size must be at least 1, got .*; pass a larger"):
        build(X, size=size)


def test_build__size_of_any_integer_type() -> None:
    size: Any = np.uint8(7)
    assert len(build(X, size=size)) == 7


@pytest.mark.parametrize("size", [N, N + 1, 10**9])
@pytest.mark.parametrize(("passes", "sampling"), WAYS)
@pytest.mark.parametrize("method", ["lightweight", "uniform"])
def test_build__size_not_below_n_returns_everything(
    form: Callable[[AnyArray], Any], passes: Any, sampling: Any, size: int, method: str
) -> None:
    weight = np.linspace(0, 3, N)
    with pytest.warns(CoresetWarning, match=f"size={size} is not below .*, {N}: .*own weight"):
        found = build(
            form(X),
            form(np.arange(N)),
            sample_weight=form(weight),
            size=size,
            method=method,
            passes=passes,
            sampling=sampling,
        )
    np.testing.assert_array_equal(found.points, X)
    np.testing.assert_array_equal(found.weights, weight)
    np.testing.assert_array_equal(found.indices, np.arange(N))
    np.testing.assert_array_equal(found.labels, np.arange(N))
    assert found.provenance["m"] == found.provenance["n"] == N


def test_build__one_row() -> None:
    with pytest.warns(CoresetWarning, match="size=1 is not below the number of rows, 1"):
        found = build(X[:1], size=1)
    np.testing.assert_array_equal(found.points, X[:1])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"chunks": 2.5}, TypeError, 'chunks must be a number of rows or "auto", got 2.5; pass'),
        ({"chunks": True}, TypeError, "chunks must be a number of rows"),
        ({"chunks": "big"}, TypeError, "chunks must be a number of rows .*got 'big'"),
        ({"chunks": 0}, ValueError, "chunks must be at least 1 row, got 0; pass a larger"),
        ({"on_invalid": "skip"}, ValueError, 'on_invalid must be "raise" or "drop", got .skip'),
    ],
)
def test_build__bad_options(options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        build(X, size=10, **options)


# --- paths and containers ----------------------------------------------------------------


def test_build__path_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"X names no file or folder: .*nix.zarr.*check the path"):
        build(tmp_path / "nix.zarr", size=1)
    with pytest.raises(ValueError, match="y names no file or folder"):
        build(X, tmp_path / "y.npy", size=1)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.bin", "cannot be opened as a Zarr store: .*give the path of a Zarr"),
        ("a.npy", "cannot be opened as an array of numbers: .*give the path of a Zarr"),
        ("a.npz", "cannot be opened as an array of numbers: .*give the path of a Zarr"),
        ("a.h5", "cannot be opened as an HDF5 file: .*give the path of a Zarr"),
        ("a.csv", r"is a \.csv file, which is not read here: .*with dask\.dataframe\.read_csv"),
        ("a.NC", r"is a \.nc file, which is not read here: .*with xarray\.open_dataset"),
        ("folder", "is an empty folder: .*folder'; check the path"),
    ],
)
def test_build__path_of_something_else(name: str, message: str, tmp_path: Path) -> None:
    if name == "folder":
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=f"X {message}"):
        build(tmp_path / name, size=1)


def test_build__empty_path() -> None:
    with pytest.raises(InvalidInputError, match="X is an empty path; pass that of a file"):
        build("")


def test_build__pickled_objects_are_not_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", OBJECT, allow_pickle=True)
    with pytest.raises(ValueError, match="X cannot be opened as an array of numbers"):
        build(tmp_path / "a.npy", size=1)


def test_build__url_of_nothing() -> None:
    with pytest.raises(ValueError, match="X cannot be opened as a Zarr store: 'memory://nothing"):
        build("memory://nothing/here.zarr", size=1)


def containers(folder: Path, arrays: dict[str, AnyArray]) -> list[Any]:
    """Groups with these arrays."""
    np.savez(folder / "a.npz", **arrays)  # type: ignore[arg-type]
    group = zarr.open_group(folder / "a.zarr", mode="w")
    with h5py.File(folder / "a.h5", "w") as file:
        for name, array in arrays.items():
            group.create_array(name, data=array)
            file[name] = array
    return [folder / "a.npz", group, folder / "a.zarr", folder / "a.h5"]


def test_build__group_without_an_x(tmp_path: Path) -> None:
    for group in containers(tmp_path, {"a": X, "b": X, "y": X[:, 0]}):
        with pytest.raises(ValueError, match=r"X is a group of the arrays \['a', 'b', 'y'\]; name"):
            build(group, size=10)
        with pytest.raises(ValueError, match=r"y is 'z', but the group X has .*'y'\]; name one"):
            build(group, "z", size=10)


def test_build__group_with_one_matrix(tmp_path: Path) -> None:
    for group in containers(tmp_path, {"rows": X, "y": np.arange(N)}):
        found = build(group, "y", size=10, random_state=0)
        np.testing.assert_array_equal(found.points, X[found.indices])
        np.testing.assert_array_equal(found.labels, found.indices)


def test_build__path_of_labels_with_several_arrays(tmp_path: Path) -> None:
    for path in containers(tmp_path, {"a": X[:, 0], "b": X[:, 1]})[2:]:
        with pytest.raises(ValueError, match=r"y is a group of the arrays \['a', 'b'\]"):
            build(X, path, size=10)
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1]}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"y: .* has the columns \['a', 'b'\]; pass a file with"):
        build(X, tmp_path / "a.parquet", size=10)
    pq.write_table(pa.table({"a": np.arange(N)}), tmp_path / "b.parquet")
    found = build(X, tmp_path / "b.parquet", size=10)
    np.testing.assert_array_equal(found.labels, found.indices)


def test_build__column_that_is_not_there(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    frame.to_parquet(tmp_path / "a.parquet")
    for rows in (frame, dd.from_pandas(frame), tmp_path / "a.parquet"):
        for name in ("y", "sample_weight"):
            options: dict[str, Any] = {"size": 10, name: "c"}
            with pytest.raises(ValueError, match=rf"{name} is 'c', but .*\['a', 'b'\]; name one"):
                build(rows, **options)
        with pytest.raises(ValueError, match="X has no columns"):
            build(rows, "a", sample_weight="b", size=10)


def test_build__parquet_with_text(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2], "city": ["x", "y"]}), tmp_path / "a.parquet")
    with pytest.raises(TypeError, match=r"hold no real numbers: 'city' \(string\); drop"):
        build(tmp_path / "a.parquet", size=1)
    assert build(tmp_path / "a.parquet", "city", size=1).labels is not None


def test_build__missing_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.h5").touch()
    (tmp_path / "a.parquet").touch()
    monkeypatch.setitem(sys.modules, "h5py", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r"X needs .*h5py; .*daskcoreset\[hdf5\]"):
        build(tmp_path / "a.h5", size=1)
    with pytest.raises(MissingDependencyError, match=r"pyarrow; .*daskcoreset\[dataframe\]"):
        build(tmp_path / "a.parquet", size=1)


# --- ordinary, though it looks bad -------------------------------------------------------


@pytest.mark.parametrize(("passes", "sampling"), WAYS)
@pytest.mark.parametrize("value", [0.0, 1e6, 1e100])
def test_build__constant_data_is_sampled_uniformly(
    form: Callable[[AnyArray], Any], passes: Any, sampling: Any, value: float
) -> None:
    found = build(
        form(np.full((N, D), value)), size=30, passes=passes, sampling=sampling, random_state=0
    )
    assert found.total_weight == pytest.approx(N)
    if sampling == "systematic":
        np.testing.assert_allclose(found.weights, N / 30)


@pytest.mark.parametrize(("passes", "sampling"), WAYS)
def test_build__values_whose_squares_overflow(
    form: Callable[[AnyArray], Any], passes: Any, sampling: Any
) -> None:
    with pytest.raises(InvalidInputError, match="squared distances overflow; scale the columns"):
        build(form(X * 1e200), size=10, passes=passes, sampling=sampling)
    with pytest.raises(InvalidInputError, match="overflow; scale"):
        build(form(np.sign(X) * 1.7e308), size=10, passes=passes, sampling=sampling)
    found = build(form((X * 1e30).astype(np.float32)), size=10, passes=passes, sampling=sampling)
    assert found.points.dtype == np.float32


@pytest.mark.parametrize(("passes", "sampling"), WAYS)
def test_build__duplicates_and_one_outlier(
    form: Callable[[AnyArray], Any], passes: Any, sampling: Any
) -> None:
    rows = np.zeros((N, D))
    rows[57] = 100.0
    found = build(form(rows), size=20, passes=passes, sampling=sampling, random_state=0)
    assert 57 in found.indices
    assert len(np.unique(found.indices)) == len(found)


@pytest.mark.parametrize(("passes", "sampling"), WAYS)
def test_build__single_row_blocks(passes: Any, sampling: Any) -> None:
    for rows in (X, known(X)):
        found = build(rows, size=30, chunks=1, passes=passes, sampling=sampling, random_state=0)
        np.testing.assert_array_equal(found.points, X[found.indices])
        assert found.provenance["n_blocks"] == N


@pytest.mark.parametrize(("passes", "sampling"), WAYS)
def test_build__empty_blocks(passes: Any, sampling: Any) -> None:
    sizes = (0, 30, 0, 0, 50, 40, 0)
    rows = da.from_array(X, chunks=(sizes, D))
    keep = (np.arange(N) // CHUNK) % 2 == 1
    holes = known(X)[da.from_array(keep, chunks=CHUNK)]
    for array, whole in ((rows, X), (holes, X[keep])):
        found = build(array, size=20, passes=passes, sampling=sampling, random_state=0)
        np.testing.assert_array_equal(found.points, whole[found.indices])
    nothing = known(X)[known(np.zeros(N, bool))]
    with pytest.raises(InvalidInputError, match="X has no rows; pass at least one usable row"):
        build(nothing, size=20, passes=passes, sampling=sampling)


@pytest.mark.parametrize("numba", [True, False])
def test_row_blocks__offset_of_a_million_costs_nothing(
    numba: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not numba:
        use_plain_loops(monkeypatch)
    rows = (np.random.default_rng(1).normal(size=(20_000, 4)) + 1e6).astype(np.float32)
    weight = np.random.default_rng(2).uniform(size=len(rows))
    blocks = row_blocks(rows, None, weight, chunks=3000)
    summary: Any = None
    for spec in blocks.specs:
        block = read_block(spec, {}, blocks.schema).block
        assert block is not None
        assert block.points.dtype == np.float32
        part = moments_of(block.points, block.weights)
        summary = part if summary is None else merge_moments(summary, part)
    wide = rows.astype(np.float64)
    mean = np.average(wide, axis=0, weights=weight)
    np.testing.assert_allclose(summary.mean, mean, rtol=1e-14)
    spread = (weight[:, None] * (wide - mean) ** 2).sum(axis=0)
    np.testing.assert_allclose(summary.m2, spread, rtol=1e-9)


@pytest.mark.parametrize("passes", [1, 2])
def test_build__offset_of_a_million_gives_right_weights(passes: Any) -> None:
    rows = (np.random.default_rng(1).normal(size=(5000, 4)) + 1e6).astype(np.float32)
    found = build(
        known(rows).rechunk((1000, 4)),
        size=500,
        passes=passes,
        sampling="multinomial",
        random_state=0,
    )
    wide = rows.astype(np.float64)
    distance = ((wide - wide.mean(axis=0)) ** 2).sum(axis=1)
    score = 0.5 / len(rows) + 0.5 * distance / distance.sum()
    expected = 1 / (500 * score[found.indices])
    times = found.weights / expected  # whole numbers: how often a row was drawn
    np.testing.assert_allclose(times, times.round(), rtol=1e-8)
    assert times.round().sum() == 500
    assert found.points.dtype == np.float32
    assert found.provenance["quantization_error"] == pytest.approx(distance.sum(), rel=1e-9)


def test_build__no_warning_for_good_input(form: Callable[[AnyArray], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(build(form(X), size=10), Coreset)


def test_build__stored_coreset_is_refused_for_its_weights_would_be_lost(tmp_path: Path) -> None:
    coreset = build(np.arange(40.0).reshape(20, 2), size=5, random_state=0)
    coreset.to_zarr(tmp_path / "coreset.zarr")

    with pytest.raises(InvalidInputError, match=r"X is a stored coreset.*Coreset\.from_zarr"):
        build(tmp_path / "coreset.zarr", size=2)
    tree = CoresetTree.create(tmp_path / "tree", "lightweight", 5)
    tree.append(coreset.points)
    with pytest.raises(InvalidInputError, match=r"X is a stored tree.*CoresetTree\.open"):
        build(tmp_path / "tree", size=2)
    ActiveMaxMargin(random_state=0).start(coreset.points, store=tmp_path / "run")
    with pytest.raises(InvalidInputError, match=r"X is a stored run.*ActiveMaxMargin\.resume"):
        build(tmp_path / "run", size=2)
    assert _ACTIVE == KIND  # of another layer


def test_overloads__have_every_option_of_build() -> None:
    # `daskcoreset.build` is the function, which hides the module of this name.
    options = importlib.import_module("daskcoreset.build")._Options.__annotations__
    decide = {"X", "y", "compute", "dry_run"}
    assert set(options) == set(inspect.signature(build).parameters) - decide


def test_build__what_stands_in_the_place_of_the_labels() -> None:
    rows = np.ones((10, 2))
    with pytest.raises(InvalidTypeError, match="size is a keyword: pass size=100"):
        build(rows, 100)
    with pytest.raises(InvalidTypeError, match=r"method is a keyword: pass method=Uniform\(\)"):
        build(rows, Uniform())
    with pytest.raises(InvalidInputError, match="'uniform', and 'auto' and 'coverage'"):
        build(rows, method="nonsense")


def test_build__of_a_stream_names_its_coreset() -> None:
    with pytest.raises(InvalidTypeError, match=r"X is a CoresetStream; pass X.coreset\(\)"):
        build(CoresetStream(size=10))


# --- what users pass in the wrong place ----------------------------------------------------

# As a user without a type checker calls it.
WRONGLY: Any = build


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: WRONGLY(X, X[:, 0], 100), InvalidTypeError, r"got 100 .*: pass size=100\.$"),
        (lambda: WRONGLY(X, None, "uniform"), InvalidTypeError, r"pass method='uniform'\.$"),
        (lambda: build(X, 100), InvalidTypeError, r"size is a keyword: pass size=100\.$"),
        (lambda: WRONGLY(X, size=9).merge(5), InvalidTypeError, r"others has an int; pass Coreset"),
        (lambda: WRONGLY(X, method=3), InvalidTypeError, "got 3; .*'uniform', and 'auto' and 'cov"),
        (lambda: build(object()), InvalidTypeError, "X is an object; .*polars.*pyarrow.*path"),
    ],
)
def test_call__names_the_argument(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_build__shows_its_own_signature() -> None:
    assert next(iter(inspect.signature(build).parameters)) == "X"
    assert "args" not in inspect.signature(build).parameters


def test_build__a_construction_of_the_largest_margin_reads_the_data_itself() -> None:
    with pytest.raises(InvalidTypeError, match=r"call MaxMarginCoreset\(\.\.\.\)\.run\(X, y\)"):
        build(np.eye(4), [0, 1, 0, 1], method=MaxMarginCoreset())  # type: ignore[call-overload] # the case
