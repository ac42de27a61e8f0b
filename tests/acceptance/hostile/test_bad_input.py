"""What bad input gets: an error that names the argument, the finding and the remedy.

And what looks bad but is ordinary: constant data, duplicates, empty blocks, large offsets.
"""

from __future__ import annotations

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
import pytest
import scipy.sparse as sp
import xarray as xr
import zarr

from tests.acceptance.face import (
    CoresetWarning,
    Draw,
    MergeReduce,
    build,
    create_tree,
    errors,
    estimators,
    plan,
)
from tests.pairs import pairs

N, D, CHUNK = 120, 3, 20
X = np.random.default_rng(0).normal(size=(N, D))
WAYS: list[Any] = [
    Draw(),
    Draw(passes=2),
    Draw("multinomial", 2),
    MergeReduce(),
]


def known(array: Any) -> Any:
    return da.from_array(array, chunks=(CHUNK, *array.shape[1:]))


def unknown(array: Any) -> Any:
    """Chunks of unknown sizes."""
    return known(array)[da.ones(len(array), chunks=CHUNK, dtype=bool)]


def in_memory(array: Any) -> Any:
    return array


def as_frame(array: Any) -> Any:
    frame = pd.DataFrame(array) if array.ndim == 2 else pd.Series(array)
    return dd.from_pandas(frame, npartitions=6, sort=False)


FORMS = [in_memory, known, unknown, as_frame]


@pytest.fixture
def no_compute() -> Any:
    """Fails on any compute."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("computed at definition time")

    with dask.config.set(scheduler=refuse):
        yield


# --- rows that are not finite ------------------------------------------------------------


@pairs(form=FORMS, draw=WAYS)
def test_build__first_bad_row_is_named(form: Callable[[Any], Any], draw: Any) -> None:
    bad = X.copy()
    bad[[47, 48, 99], [1, 0, 2]] = np.inf, np.nan, np.nan
    with pytest.raises(
        ValueError,
        match=r"^Input X contains infinity \(inf\) in column 1 at row 47; clean .*on_invalid=",
    ):
        build(form(bad), size=10, draw=draw)


@pairs(form=FORMS, draw=WAYS, size=[10, N])
@pytest.mark.filterwarnings("ignore::daskcoreset.errors.CoresetWarning")
def test_build__bad_rows_dropped_and_indices_stay(
    form: Callable[[Any], Any], draw: Any, size: int
) -> None:
    bad = X.copy()
    bad[:45] = np.nan  # two blocks and a part of one
    bad[70, 0] = -np.inf
    found = build(
        form(bad),
        size=size,
        on_invalid="drop",
        random_state=0,
        draw=draw,
    )
    assert found.indices.min() >= 45
    assert 70 not in found.indices
    np.testing.assert_array_equal(found.points, bad[found.indices])
    assert found.provenance["n_dropped"] == 46
    assert found.provenance["n"] == N - 46
    if size == N:
        assert len(found) == N - 46


@pairs(form=FORMS, draw=WAYS, size=[10, N])
def test_build__no_finite_row(form: Callable[[Any], Any], draw: Any, size: int) -> None:
    with pytest.raises(
        errors.InvalidInputError, match=f"none of the {N} rows of X is finite; pass"
    ):
        build(
            form(X * np.nan),
            size=size,
            on_invalid="drop",
            draw=draw,
        )


# --- shapes and types, before anything is read -------------------------------------------

OBJECT = np.array([[1, "a"], [2, "b"]], dtype=object)
GOOD = np.ones((4, 2))


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (np.ones(4), ValueError, r"X must have 2 dimensions, found shape \(4,\); .*reshape"),
        (np.ones((2, 2, 2)), ValueError, r"X must have 2 dimensions.*\(2, 2, 2\); .*reshape"),
        (da.ones(5)[da.ones(5) > 0], ValueError, r"X must have 2 dimensions, found shape \(nan,\)"),
        (pd.Series([1.0, 2.0]), ValueError, "X must have 2 dimensions"),
        (xr.DataArray(np.ones((2, 2, 2))), ValueError, r"X has the dimensions .*sample_dims=\("),
        (np.float64(3), ValueError, r"X must have 2 dimensions, found shape \(\)"),
        (zarr.array(3.0), ValueError, r"X must have 2 dimensions, found shape \(\)"),
        (np.ones((0, 3)), ValueError, "X has no rows; pass at least one"),
        (np.ones((3, 0)), ValueError, "X has no columns; pass at least one"),
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
        (dd.from_pandas(pd.DataFrame({"c": pd.Categorical(["u"])})), TypeError, "numbers: 'c'"),
        ([[1, 2], [3]], ValueError, "X is a list that cannot become an array.*equal length"),
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
def test_build__x_that_cannot_be_used(
    rows: Any, error: type[Exception], message: str, no_compute: None
) -> None:
    del no_compute
    with pytest.raises(error, match=message) as raised:
        plan(rows, size=1)
    assert isinstance(raised.value, errors.CoresetError)


@pytest.mark.parametrize("name", ["y", "sample_weight"])
@pytest.mark.parametrize(
    ("beside", "error", "message"),
    [
        (np.ones(5), ValueError, "{} has 5 entries but X has 4 rows; pass one entry per row"),
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
        ("target", ValueError, "{} names no file or folder: .*target'; .*X has no columns"),
        (da.ones(4)[da.ones(4) > 0], ValueError, "{} has unknown chunk sizes but X has known"),
        (
            dd.from_pandas(pd.Series(np.ones(4)), npartitions=2),
            ValueError,
            r"{}.compute_chunk_sizes\(\) first, or {}.to_dask_array\(lengths=True\)",
        ),
        (5, TypeError, "{} is an int; pass an array of NumPy"),
        ([1, [2]], ValueError, "{} is a list that cannot become an array"),
    ],
)
def test_build__y_and_weights_that_cannot_be_used(
    name: str, beside: Any, error: type[Exception], message: str, no_compute: None
) -> None:
    del no_compute
    for rows in (GOOD, known(GOOD), zarr.array(GOOD)):
        with pytest.raises(error, match=message.replace("{}", name)):
            build(rows, size=1, **{name: beside})


def test_build__dataset_is_named_before_its_labels() -> None:
    cube = xr.Dataset({name: (("time", "place"), np.ones((5, 4))) for name in ("a", "label")})
    with pytest.raises(TypeError, match=r"^X is an xarray Dataset; .*open_rows\(X, sample_dims="):
        build(cube, y="label", size=5)


# --- lengths that only the blocks know ---------------------------------------------------


@pairs(draw=WAYS, size=[10, N], name=["y", "sample_weight"])
def test_build__lengths_differ_in_a_block(name: str, size: int, draw: Any) -> None:
    short = np.arange(N) != 50
    for beside in (
        da.ones(N, chunks=CHUNK)[da.from_array(short, chunks=CHUNK)],
        da.ones(N - 1, chunks=((20, 20, 19, 20, 20, 20),)),
    ):
        with pytest.raises(
            errors.InvalidInputError,
            match=rf"{name} has shape \(19,\) in block .*\(20,\); make",
        ):
            build(unknown(X), size=size, **{name: beside}, draw=draw)


def test_build__unknown_sizes_and_known_partners(no_compute: None) -> None:
    del no_compute
    remedy = r"call X.compute_chunk_sizes\(\) first, or X.to_dask_array\(lengths=True\)"
    for rows in (unknown(X), as_frame(X)):
        for y in (np.ones(N), zarr.array(np.ones(N)), pd.Series(np.ones(N))):
            with pytest.raises(errors.InvalidInputError, match=f"rows of y; {remedy}"):
                build(rows, y, size=10)
        with pytest.raises(
            errors.InvalidInputError, match=r"X has 6 blocks of unknown chunk sizes.* rows of y;"
        ):
            build(rows, da.ones(N, chunks=N // 2), size=10)
        with pytest.raises(
            errors.InvalidInputError, match=f"chunks=7, but X has unknown.*{remedy}"
        ):
            build(rows, size=10, chunks=7)
    assert plan(unknown(X), known(np.ones(N)), size=10) is not None


def test_build__blocks_of_another_width() -> None:
    wrong = da.map_blocks(lambda b: b[:, :2], known(X), chunks=(CHUNK, D), dtype=X.dtype)
    with pytest.raises(
        errors.InvalidInputError, match=r"X has shape \(20, 2\) in block .*\(20, 3\)"
    ):
        build(wrong, size=10)


# --- weights -----------------------------------------------------------------------------


@pairs(form=FORMS, draw=WAYS, size=[10, N])
def test_build__all_weights_zero(form: Callable[[Any], Any], draw: Any, size: int) -> None:
    options = {"size": size, "draw": draw}
    with pytest.raises(
        errors.InvalidInputError, match="sample_weight is zero on every row; give at least"
    ):
        build(form(X), sample_weight=form(np.zeros(N)), **options)


def test_build__weights_that_sum_to_infinity() -> None:
    # In one block, or only in all of them together.
    for weight in (1e307, 5e306):
        for size in (10, N):
            with pytest.raises(errors.InvalidInputError, match=r"sample_weight sums to .*scale"):
                build(known(X), sample_weight=np.full(N, weight), size=size)


# --- size and the other options ----------------------------------------------------------


@pairs(form=FORMS, draw=WAYS, size=[N, N + 1, 10**9], method=["lightweight", "uniform"])
def test_build__size_not_below_n_returns_everything(
    form: Callable[[Any], Any], draw: Any, size: int, method: str
) -> None:
    weight = np.linspace(0, 3, N)
    with pytest.warns(
        errors.CoresetWarning, match=f"size={size} is not below .*, {N}\\. .*own weight"
    ):
        found = build(
            form(X),
            form(np.arange(N)),
            sample_weight=form(weight),
            size=size,
            method=method,
            draw=draw,
        )
    np.testing.assert_array_equal(found.points, X)
    np.testing.assert_array_equal(found.weights, weight)
    np.testing.assert_array_equal(found.indices, np.arange(N))
    np.testing.assert_array_equal(found.labels, np.arange(N))
    assert found.provenance["m"] == found.provenance["n"] == N


# --- paths and containers ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.bin", "cannot be opened as a Zarr store: .*give the path of a Zarr"),
        ("a.npy", "cannot be opened as an array of numbers: .*give the path of a Zarr"),
        ("a.npz", "cannot be opened as an array of numbers: .*give the path of a Zarr"),
        ("a.h5", "cannot be opened as an HDF5 file: .*give the path of a Zarr"),
        ("a.csv", r"cannot be opened as .*a\.csv.*dask\.dataframe\.read_csv"),
        ("a.NC", r"cannot be opened as .*a\.NC.*xarray\.open_dataset"),
        ("folder", "cannot be opened as a Zarr store: .*folder'.*; check the path"),
    ],
)
def test_build__path_of_something_else(name: str, message: str, tmp_path: Path) -> None:
    if name == "folder":
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=f"X {message}"):
        build(tmp_path / name, size=1)


def containers(folder: Path, arrays: dict[str, Any]) -> list[Any]:
    """Groups with these arrays."""
    np.savez(folder / "a.npz", **arrays)
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


# --- ordinary, though it looks bad -------------------------------------------------------


@pairs(form=FORMS, draw=WAYS, value=[0.0, 1e6, 1e100])
def test_build__constant_data_is_sampled_uniformly(
    form: Callable[[Any], Any], draw: Draw, value: float
) -> None:
    found = build(form(np.full((N, D), value)), size=30, random_state=0, draw=draw)
    assert found.total_weight == pytest.approx(N)
    if draw.sampling == "systematic":
        np.testing.assert_allclose(found.weights, N / 30)


@pairs(form=FORMS, draw=WAYS)
def test_build__values_whose_squares_overflow(form: Callable[[Any], Any], draw: Any) -> None:
    with pytest.raises(
        errors.InvalidInputError, match="squared distances overflow; scale the columns"
    ):
        build(form(X * 1e200), size=10, draw=draw)
    with pytest.raises(errors.InvalidInputError, match="overflow; scale"):
        build(form(np.sign(X) * 1.7e308), size=10, draw=draw)
    found = build(form((X * 1e30).astype(np.float32)), size=10, draw=draw)
    assert found.points.dtype == np.float32


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_kernels__warn_of_columns_of_other_scales(form: Callable[[Any], Any]) -> None:
    with pytest.warns(CoresetWarning, match="features are not scaled"):
        estimators.CoresetKernelClassifier(size=30).fit(form(abs(X) * [1, 1, 1e6]), X[:, 0] > 0)


def test_build__stored_coreset_is_refused_for_its_weights_would_be_lost(tmp_path: Path) -> None:
    coreset = build(np.arange(40.0).reshape(20, 2), size=5, random_state=0)
    coreset.to_zarr(tmp_path / "coreset.zarr")

    with pytest.raises(
        errors.InvalidInputError, match=r"X is a stored coreset.*Coreset\.from_zarr"
    ):
        build(tmp_path / "coreset.zarr", size=2)
    tree = create_tree(tmp_path / "tree", method="lightweight", size=5)
    tree.append(coreset.points)
    with pytest.raises(errors.InvalidInputError, match=r"X is a stored tree.*CoresetTree\.open"):
        build(tmp_path / "tree", size=2)
