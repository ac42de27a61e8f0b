"""Stored and bundled sets, and what is said where there is none."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import scipy.sparse as sp

from daskcoreset import datasets
from daskcoreset.core.errors import (
    StoreError,
)

if TYPE_CHECKING:
    from pathlib import Path


# Files


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DASKCORESET_DATA", str(tmp_path))
    return tmp_path


def test_load__dense(folder: Path) -> None:
    X = np.arange(6, dtype=np.float32).reshape(3, 2)
    y = np.array([1, -1, 1], dtype=np.int8)
    np.savez_compressed(folder / "small.npz", X=X, y=y, columns=["a", "b"], n_train=2)
    dataset = datasets.load("small")
    assert isinstance(dataset.X, np.ndarray)
    np.testing.assert_array_equal(dataset.X, X)
    assert dataset.y is not None
    np.testing.assert_array_equal(dataset.y, y)
    assert dataset.columns == ("a", "b")
    assert dict(dataset.extras) == {"n_train": 2}
    assert repr(dataset) == "Dataset('small', 3 x 2 float32, labels int8)"


def test_load__sparse(folder: Path) -> None:
    matrix = sp.random_array((5, 4), density=0.5, format="csr", dtype=np.float32, rng=0)
    np.savez(
        folder / "thin.npz",
        data=matrix.data,
        indices=matrix.indices,
        indptr=matrix.indptr,
        shape=np.array(matrix.shape),
        y=np.ones(5, np.int8),
    )
    dataset = datasets.load("thin")
    assert isinstance(dataset.X, sp.csr_array)
    np.testing.assert_array_equal(dataset.X.toarray(), matrix.toarray())
    assert "float32 sparse" in repr(dataset)
    assert pickle.loads(pickle.dumps(dataset)).X.shape == (5, 4)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.zeros(3)}, "X has 1 dimensions"),
        ({"X": np.zeros((3, 2)), "y": np.zeros(2)}, r"y has the shape \(2,\), not \(3,\)"),
        ({"X": np.zeros((3, 2)), "columns": ["a"]}, r"columns has the shape \(1,\), not \(2,\)"),
        ({"X": np.array([[None]])}, "allow_pickle=False"),
        ({"data": np.zeros(3)}, "indices"),
        (
            {
                "data": np.ones(1, np.float32),
                "indices": np.array([7]),
                "indptr": np.array([0, 1]),
                "shape": np.array([1, 2]),
            },
            "indices",
        ),
    ],
)
def test_load__damaged(folder: Path, arrays: dict[str, Any], message: str) -> None:
    np.savez(folder / "bad.npz", **arrays)
    with pytest.raises(StoreError, match=f"name='bad' .*{message}.*replace the file"):
        datasets.load("bad")


@pytest.mark.parametrize(
    ("name", "shape", "positive"), [("htru2", (17_898, 8), 1_639), ("a9a", (48_842, 123), 11_687)]
)
def test_load__real_sets(name: str, shape: tuple[int, int], positive: int) -> None:
    if name not in datasets.available():
        pytest.skip(f"DASKCORESET_DATA has no {name}")
    dataset = datasets.load(name)
    assert dataset.X.shape == shape
    assert dataset.X.dtype == np.float32
    assert dataset.y is not None
    assert (dataset.y == 1).sum() == positive


# What scikit-learn carries


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("breast_cancer", (569, 30)),
        ("diabetes", (442, 10)),
        ("digits", (1797, 64)),
        ("iris", (150, 4)),
        ("wine", (178, 13)),
    ],
)
def test_load_bundled__tables(name: str, shape: tuple[int, int]) -> None:
    dataset = datasets.load_bundled(name)
    assert isinstance(dataset.X, np.ndarray)
    assert (dataset.X.shape, dataset.X.dtype) == (shape, np.float32)
    assert dataset.X.flags.c_contiguous
    assert dataset.y is not None
    assert dataset.y.shape == shape[:1]
    assert dataset.columns is not None
    assert len(dataset.columns) == shape[1]
