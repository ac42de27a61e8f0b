"""Errors name the argument, the finding and the remedy, and are of the types that one expects."""

from __future__ import annotations

import pickle
import time
from functools import partial
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

from tests.acceptance import face
from tests.acceptance.tools.refusals import refused
from tests.pairs import pairs

X = np.random.default_rng(0).normal(size=(200, 3))
Y = (X[:, 0] > 0).astype(int)


@pytest.fixture
def no_compute() -> Any:
    """Fails on any compute."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("computed at definition time")

    with dask.config.set(scheduler=refuse):
        yield


# --- values of arguments -----------------------------------------------------------------

BAD: list[tuple[str, dict[str, Any], type[Exception]]] = [
    ("size", {"size": 0}, ValueError),
    ("size", {"size": 2.5}, TypeError),
    ("size", {"size": "many"}, TypeError),
    ("size", {"size": True}, TypeError),
    ("method", {"method": "k-means"}, ValueError),
    ("method", {"method": 7}, TypeError),
    ("random_state", {"random_state": "seed"}, TypeError),
    ("random_state", {"random_state": -1}, ValueError),
    ("chunks", {"chunks": 0}, ValueError),
    ("on_invalid", {"on_invalid": "ignore"}, ValueError),
    ("n_clusters", {"n_clusters": 0, "method": "kmeans"}, ValueError),
    ("n_clusters", {"method": "kmeans"}, ValueError),
    ("sampling", {"draw": partial(face.Draw, sampling="random")}, ValueError),  # type: ignore[arg-type]
    ("passes", {"draw": partial(face.Draw, passes=3)}, ValueError),  # type: ignore[arg-type]
    ("normalize", {"draw": partial(face.Draw, normalize="no")}, TypeError),  # type: ignore[arg-type]
    ("split_every", {"draw": partial(face.Draw, split_every=1)}, ValueError),
    ("inner_size", {"draw": face.MergeReduce(inner_size=3), "size": 10}, ValueError),
    ("sample_weight", {"sample_weight": np.ones(3)}, ValueError),
    ("sample_weight", {"sample_weight": -np.ones(200)}, ValueError),
    ("y", {"method": "svm"}, ValueError),
    ("diameter", {"method": partial(face.Coverage, diameter=-1.0)}, ValueError),
    ("n_clusters", {"method": partial(face.StrongKMeans, n_clusters=0)}, ValueError),
    ("divergence", {"method": partial(face.StrongBregman, 3, divergence="none")}, ValueError),
    ("divergence", {"method": partial(face.LightweightBregman, divergence="none")}, ValueError),
    ("n_components", {"method": partial(face.Mixture, n_components=0)}, ValueError),
    ("lam", {"method": partial(face.Logistic, lam=-1.0)}, ValueError),
    ("alpha", {"method": partial(face.LeastSquares, alpha=-1.0)}, ValueError),
]


@pytest.mark.parametrize(("argument", "options", "kind"), BAD)
def test_build__names_the_argument(
    argument: str, options: dict[str, Any], kind: type[Exception]
) -> None:
    for rows in (X, da.from_array(X, chunks=(60, 3))):
        with refused(argument, argument, kind=kind):
            face.build(rows, **options)


PARAMETERS: list[tuple[str, dict[str, Any]]] = [
    ("CoresetKMeans", {"n_clusters": 0}),
    ("CoresetKMeans", {"max_iter": 0}),
    ("CoresetBregman", {"divergence": "hellinger"}),
    ("CoresetGaussianMixture", {"n_components": 0}),
    ("CoresetGaussianMixture", {"covariance_type": "round"}),
    ("CoresetSVC", {"C": 0.0}),
    ("CoresetLogisticRegression", {"C": -1.0}),
    ("CoresetRidge", {"alpha": -1.0}),
    ("CoresetElasticNet", {"l1_ratio": 2.0}),
    ("CoresetKernelClassifier", {"gamma": -1.0}),
    ("CoresetKernelClassifier", {"gamma": "wide"}),
    ("ODMClassifier", {"gamma": np.inf}),
    ("ODMClassifier", {"gamma": True}),
    ("ODMClassifier", {"theta": 1.0}),
    ("ODMClassifier", {"mu": 0.0}),
    ("MaxMarginClassifier", {"epsilon": 0.0}),
    ("MaxMarginClassifier", {"epsilon": 1.0}),
    ("OutlierMaxMarginClassifier", {"k": -1}),
    ("OutlierMaxMarginClassifier", {"confidence": 1.0}),
    ("ActiveMaxMarginClassifier", {"delta": 0.0}),
    ("ActiveMaxMarginClassifier", {"error": 1.5}),
    ("StructuredMaxMargin", {"epsilon": -0.1}),
]


@pytest.mark.parametrize(("name", "options"), PARAMETERS, ids=str)
def test_fit__names_the_parameter(name: str, options: dict[str, Any]) -> None:
    model = getattr(face.estimators, name)(**options)
    with pytest.raises((ValueError, TypeError), match=next(iter(options))):
        model.fit(X, Y)


def test_n_clusters__that_take_too_long_are_refused() -> None:
    size, said = 10**6, "1,000,000 centers of 1,000,000 rows take 5e+12"
    rows = da.zeros((2 * size, 5), chunks=(size, 5))
    with refused("n_clusters", said):
        face.build(rows, size=size, method=face.StrongKMeans(size))
    with refused("n_clusters", "1,000,000 centers of"):
        face.estimators.CoresetKMeans(size).fit(np.arange(5.0 * size).reshape(size, 5))


def test_typing_errors__get_a_suggestion() -> None:
    for name in ("k-means", "K means", "kmean"):
        with refused("method", 'did you mean "kmeans"'):
            face.build(X, method=name)
    with refused("sampling", 'did you mean "systematic"'):
        face.Draw(sampling="systematical")  # type: ignore[arg-type]


def test_errors__come_back_from_a_pickle_with_their_fields() -> None:
    with refused("size") as caught:
        face.build(X, size=0)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    for name in ("problem", "argument", "remedy"):
        assert getattr(again, name) == getattr(caught.value, name)


def test_errors__of_the_library_have_one_base() -> None:
    for name in ("InvalidInputError", "InvalidTypeError", "StoreError", "OutOfTimeError",
                 "MissingDependencyError"):  # fmt: skip
        assert issubclass(getattr(face.errors, name), face.CoresetError)
    assert issubclass(face.errors.InvalidInputError, ValueError)
    assert issubclass(face.errors.InvalidTypeError, TypeError)
    assert issubclass(face.errors.MissingDependencyError, ImportError)
    assert issubclass(face.CoresetWarning, UserWarning)


# --- limits of time ----------------------------------------------------------------------


def test_time_limit__ends_a_read() -> None:
    def slow(block: Any) -> Any:
        time.sleep(0.2)
        return block

    rows = da.from_array(X, chunks=(2, 3)).map_blocks(slow, meta=np.empty((0, 3)))
    begun = time.monotonic()
    with pytest.raises(face.errors.OutOfTimeError) as caught, face.time_limit(0.5):
        face.build(rows, size=20)
    assert isinstance(caught.value, TimeoutError)
    assert time.monotonic() - begun < 8


def test_time_limit__lets_work_end_that_is_in_time() -> None:
    """One of several builds, for a busy machine may have no time for the first."""
    for attempt in range(20):
        try:
            with face.time_limit(0.9):
                assert len(face.build(X, size=20)) == 20
        except face.errors.OutOfTimeError:
            assert attempt < 19
        else:
            break


# --- shapes and types, before anything is read -------------------------------------------

OBJECT = np.array([[1, "a"], [2, "b"]], dtype=object)
GOOD = np.ones((4, 2))
SHAPE, DTYPE, PASS = (
    "must have 2 dimensions, found shape ",
    "must hold real numbers, found dtype ",
    "; pass ",
)

ROWS: list[tuple[Any, type[Exception], tuple[str, ...]]] = [
    (np.ones(4), ValueError, (f"{SHAPE}(4,)", "reshape")),
    (np.ones((2, 2, 2)), ValueError, (f"{SHAPE}(2, 2, 2)", "reshape")),
    (da.ones(5)[da.ones(5) > 0], ValueError, (f"{SHAPE}(nan,)",)),
    (pd.Series([1.0, 2.0]), ValueError, (SHAPE,)),
    (xr.DataArray(np.ones((2, 2, 2))), ValueError, ("X has the dimensions", "sample_dims=(")),
    (np.float64(3), ValueError, (f"{SHAPE}()",)),
    (zarr.array(3.0), ValueError, (f"{SHAPE}()",)),
    (np.ones((0, 3)), ValueError, ("X has no rows", PASS)),
    (np.ones((3, 0)), ValueError, ("X has no columns", PASS)),
    (pd.DataFrame(index=[1, 2]), ValueError, ("X has no columns",)),
    (da.ones((4, 4))[:, da.ones(4) > 0], ValueError, ("unknown number of columns",)),
    (OBJECT, TypeError, (f"{DTYPE}object", "astype")),
    (da.from_array(OBJECT, chunks=1), TypeError, (f"{DTYPE}object",)),
    (np.array([["a"]]), TypeError, (f"{DTYPE}<U1",)),
    (np.ones((2, 2), complex), TypeError, (f"{DTYPE}complex128",)),
    (np.ones((2, 2), "M8[s]"), TypeError, (f"{DTYPE}datetime64",)),
    (np.ones((2, 2), "m8[s]"), TypeError, (f"{DTYPE}timedelta",)),
    (np.zeros((2, 2), "f4,i4"), TypeError, (DTYPE,)),
    (sp.csr_array(GOOD * 1j), TypeError, (f"{DTYPE}complex128",)),
    (pd.DataFrame({"a": [1], "b": ["x"]}), TypeError, ("no real numbers: 'b' (", "drop")),
    (pd.DataFrame({"t": pd.to_datetime(["2020"])}), TypeError, ("no real numbers: 't'", "as y")),
    (dd.from_pandas(pd.DataFrame({"c": pd.Categorical(["u"])})), TypeError, ("numbers: 'c'",)),
    (pa.table({"a": ["x"]}), TypeError, ("no real numbers: 'a' (string",)),
    ([[1, 2], [3]], ValueError, ("X is a list that cannot become an array", "equal length")),
    (xr.Dataset({"a": ("n", [1.0])}), TypeError, ("X is an xarray Dataset", 'X["variable"]')),
    (dask.delayed(GOOD), TypeError, ("X is a Delayed", PASS)),
    (dask.bag.from_sequence([1]), TypeError, ("X is a Bag", PASS)),
    (None, TypeError, ("X is a NoneType", PASS)),
    ({"a": 1}, TypeError, ("X is a dict", PASS)),
]


@pytest.mark.usefixtures("no_compute")
@pytest.mark.parametrize(("rows", "kind", "said"), ROWS)
def test_build__x_that_cannot_be_used(rows: Any, kind: type[Exception], said: Any) -> None:
    with refused("X", *said, kind=kind):
        face.plan(rows, size=1)


BESIDE: list[tuple[Any, type[Exception], tuple[str, ...]]] = [
    (np.ones(5), ValueError, ("{} has 5 entries but X has 4 rows", PASS)),
    (pd.Series(np.ones(3)), ValueError, ("{} has 3 entries but X has 4 rows",)),
    (np.ones((4, 1)), ValueError, ("must have 1 dimension, found shape (4, 1)", "{}.ravel")),
    (np.ones(4, complex), TypeError, ("found dtype complex128", "convert it")),
    (np.ones(4, "M8[s]"), TypeError, ("found dtype datetime64",)),
    (sp.csr_array(np.ones((4, 1))), TypeError, ("{} is sparse", "toarray")),
    (sp.coo_array(np.ones(4)), TypeError, ("{} is sparse", "toarray")),
    ("target", ValueError, ("{} names no file or folder", "target'", "X has no columns")),
    (da.ones(4)[da.ones(4) > 0], ValueError, ("{} has unknown chunk sizes but X has known",)),
    (dd.from_pandas(pd.Series(np.ones(4)), npartitions=2), ValueError,
     ("{}.compute_chunk_sizes() first, or {}.to_dask_array(lengths=True)",)),
    (5, TypeError, ("{} is an int", PASS)),
    ([1, [2]], ValueError, ("{} is a list that cannot become an array",)),
]  # fmt: skip


@pytest.mark.usefixtures("no_compute")
@pairs(
    name=["y", "sample_weight"], beside=BESIDE, rows=[GOOD, da.from_array(GOOD), zarr.array(GOOD)]
)
def test_build__y_and_weights_that_cannot_be_used(name: str, beside: Any, rows: Any) -> None:
    values, kind, said = beside
    with refused(name, *(part.replace("{}", name) for part in said), kind=kind):
        face.build(rows, size=1, **{name: values})


def test_build__dataset_is_named_before_its_labels() -> None:
    cube = xr.Dataset({name: (("time", "place"), np.ones((5, 4))) for name in ("a", "label")})
    with refused("X", "X is an xarray Dataset", "open_rows(X, sample_dims=", kind=TypeError):
        face.build(cube, y="label", size=5)


# --- paths and containers ----------------------------------------------------------------

FILES = {
    "a.bin": ("cannot be opened as a Zarr store: ", "give the path of a Zarr"),
    "a.npy": ("cannot be opened as an array of numbers: ", "give the path of a Zarr"),
    "a.npz": ("cannot be opened as an array of numbers: ", "give the path of a Zarr"),
    "a.h5": ("cannot be opened as an HDF5 file: ", "give the path of a Zarr"),
    "a.csv": ("cannot be opened as ", "a.csv", "dask.dataframe.read_csv"),
    "a.NC": ("cannot be opened as ", "a.NC", "xarray.open_dataset"),
    "a.feather": ("feather", "h5ad", "ZipStore", "readonly_session"),
    "a.h5ad": ("feather", "h5ad", "ZipStore", "readonly_session"),
    "a.zarr.zip": ("feather", "h5ad", "ZipStore", "readonly_session"),
    "folder/": ("cannot be opened as a Zarr store: ", "folder'", "check the path"),
    "ice/snapshots/": ("feather", "h5ad", "ZipStore", "readonly_session"),  # of Icechunk
}


@pytest.mark.parametrize("name", FILES)
def test_build__path_of_something_else(name: str, tmp_path: Path) -> None:
    if name.endswith("/"):
        (tmp_path / name).mkdir(parents=True)
    else:
        (tmp_path / name).write_text("a,b\n1,2\n")
    with refused("X", *FILES[name], kind=ValueError):
        face.build(tmp_path / name.partition("/")[0], size=1)


def test_build__group_without_an_x(tmp_path: Path) -> None:
    arrays: dict[str, Any] = {"a": X, "b": X, "y": X[:, 0]}
    np.savez(tmp_path / "a.npz", **arrays)
    group = zarr.open_group(tmp_path / "a.zarr", mode="w")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, array in arrays.items():
            group.create_array(name, data=array)
            file[name] = array
    for source in (tmp_path / "a.npz", group, tmp_path / "a.zarr", tmp_path / "a.h5"):
        with refused("X", "X is a group of the arrays ['a', 'b', 'y']"):
            face.build(source, size=10)
        with refused("y", "y is 'z', but the group X has"):
            face.build(source, "z", size=10)


def test_build__column_that_is_not_there(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    frame.to_parquet(tmp_path / "a.parquet")
    for rows in (frame, dd.from_pandas(frame), tmp_path / "a.parquet"):
        for name in ("y", "sample_weight"):
            options: dict[str, Any] = {"size": 10, name: "c"}
            with refused(name, f"{name} is 'c', but ", "['a', 'b']"):
                face.build(rows, **options)
        with refused("X", "X has no columns"):
            face.build(rows, "a", sample_weight="b", size=10)


def test_build__stored_coreset_is_refused_for_its_weights_would_be_lost(tmp_path: Path) -> None:
    coreset = face.build(X, size=5, random_state=0)
    coreset.to_zarr(tmp_path / "coreset.zarr")
    with refused("X", "X is a stored coreset", "Coreset.from_zarr"):
        face.build(tmp_path / "coreset.zarr", size=2)
    face.create_tree(tmp_path / "tree", size=5).append(X)
    with refused("X", "X is a stored tree", "CoresetTree.open"):
        face.build(tmp_path / "tree", size=2)
