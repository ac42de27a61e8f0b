"""The first row that cannot be used is named, by its number in all the data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
import zarr

from tests.acceptance import face

VALUES = {"nan": np.nan, "infinity": np.inf, "minus infinity": -np.inf}


def data(bad: float) -> tuple[Any, Any]:
    X = np.random.default_rng(0).normal(size=(900, 3))
    X[[700, 412], [0, 2]] = bad
    return X, (X[:, 1] > 0).astype(int)


def formed(X: Any, form: str, tmp_path: Path) -> Any:
    if form == "chunks":
        return da.from_array(X, chunks=(150, 3))
    if form == "sparse":
        return sp.csr_array(X)
    if form == "unknown":
        rows = da.from_array(X, chunks=(150, 3))
        return rows[rows[:, 1] > -1e9]
    if form == "path":
        zarr.create_array(tmp_path / "X.zarr", data=X, chunks=(100, 3))
        return str(tmp_path / "X.zarr")
    return X


PLACES = [
    ("nan", "memory", "lightweight"),
    ("infinity", "chunks", "uniform"),
    ("minus infinity", "path", "kmeans"),
    ("nan", "sparse", "svm"),
    ("infinity", "unknown", "lightweight"),
    ("nan", "chunks", "least_squares"),
]


@pytest.mark.parametrize(("value", "form", "method"), PLACES)
def test_build__names_row_412(value: str, form: str, method: str, tmp_path: Path) -> None:
    X, y = data(VALUES[value])
    options: dict[str, Any] = {"n_clusters": 3} if method == "kmeans" else {}
    labels = y if method in ("svm", "logistic", "least_squares") else None
    with pytest.raises(face.errors.InvalidInputError, match=r"\b412\b") as caught:
        face.build(formed(X, form, tmp_path), labels, method=method, size=30, **options)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, face.CoresetError)
    assert "drop" in str(caught.value)


@pytest.mark.parametrize("what", ["negative", "nan", "infinite", "all zero", "short"])
def test_build__weights_that_cannot_be_used(what: str) -> None:
    X = data(0.0)[0]
    u = np.ones(900)
    expected = {"negative": "333", "nan": "333", "infinite": "333", "all zero": "zero",
                "short": "899"}[what]  # fmt: skip
    if what == "short":
        u = u[:-1]
    elif what == "all zero":
        u[:] = 0.0
    else:
        u[[333, 600]] = {"negative": -1.0, "nan": np.nan, "infinite": np.inf}[what]
    for rows in (X, da.from_array(X, chunks=(200, 3))):
        with pytest.raises(face.errors.InvalidInputError, match=expected):
            face.build(rows, sample_weight=u, size=20)


@pytest.mark.parametrize("divergence", ["kl", "itakura_saito"])
def test_build__rows_outside_the_domain_are_named(divergence: str) -> None:
    X = np.abs(data(0.0)[0]) + 0.1
    X[[500, 240], 1] = -0.5
    rows = da.from_array(X, chunks=(200, 3))
    for method in (face.LightweightBregman(divergence), face.StrongBregman(3, divergence)):
        with pytest.raises(face.errors.InvalidInputError, match="240"):
            face.build(rows, method=method, size=20)


@pytest.mark.parametrize("name", ["CoresetKMeans", "CoresetSVC", "CoresetRidge",
                                  "MaxMarginClassifier", "CoresetKernelClassifier"])  # fmt: skip
def test_fit__names_the_row(name: str) -> None:
    X, y = data(np.nan)
    with pytest.raises(ValueError, match=r"412|NaN"):
        getattr(face.estimators, name)().fit(X, y)
    with pytest.raises(face.CoresetError, match="412"):
        getattr(face.estimators, name)().fit(da.from_array(X, chunks=(200, 3)), y)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_build__names_row_and_column_of_dense_rows(dtype: Any) -> None:
    """NaN, infinity and values whose squares overflow, in memory and in the third block."""
    for value in (np.nan, -np.inf, *((-1e200,) if dtype is np.float64 else ())):
        X = np.ones((3000, 5), dtype=dtype)
        X[2471, 3] = value
        X[2900, 0] = np.nan
        for rows in (X, np.asfortranarray(X), da.from_array(X, chunks=(1000, 5))):
            with pytest.raises(face.errors.InvalidInputError, match="column 3 at row 2471"):
                face.build(rows, size=10)
    c = face.build(X, size=10, on_invalid="drop", random_state=0) if dtype is np.float32 else None
    assert c is None or c.provenance["n_dropped"] == 2
