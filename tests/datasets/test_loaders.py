"""Stored and bundled sets, and what is said where there is none."""

from __future__ import annotations

import math
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import scipy.sparse as sp

from daskcoreset import datasets
from daskcoreset.core.errors import (
    DataUnavailableError,
    InvalidInputError,
    MissingDependencyError,
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


def test_load__without_labels(folder: Path) -> None:
    np.savez(folder / "bare.npz", X=np.zeros((3, 2), np.float32))
    dataset = datasets.load("bare")
    assert (dataset.y, dataset.columns, dict(dataset.extras)) == (None, None, {})
    assert repr(dataset) == "Dataset('bare', 3 x 2 float32, no labels)"


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


def test_available__lists_the_folder(folder: Path) -> None:
    for name in ("b", "a"):
        np.savez(folder / f"{name}.npz", X=np.zeros((1, 1)))
    (folder / "README.md").touch()
    assert datasets.available() == ("a", "b")


def test_available__is_empty_without_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DASKCORESET_DATA", raising=False)
    assert datasets.available() == ()
    with pytest.raises(DataUnavailableError, match=r"DASKCORESET_DATA is not set.*set this"):
        datasets.load("htru2")


def test_available__variable_names_no_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASKCORESET_DATA", str(folder / "gone"))
    with pytest.raises(DataUnavailableError, match="DASKCORESET_DATA must name a folder, got"):
        datasets.available()


@pytest.mark.parametrize("name", ["gone", "../small", ""])
def test_load__unknown_name(folder: Path, name: str) -> None:
    np.savez(folder / "small.npz", X=np.zeros((1, 1)))
    with pytest.raises(DataUnavailableError, match=r"\(small\), got") as caught:
        datasets.load(name)
    assert isinstance(caught.value, FileNotFoundError)


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


@pytest.mark.parametrize("content", [b"", b"not an archive", b"PK\x03\x04 cut off"])
def test_load__not_an_archive(folder: Path, content: bytes) -> None:
    (folder / "bad.npz").write_bytes(content)
    with pytest.raises(StoreError, match="cannot be read as a set"):
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


@pytest.mark.parametrize("name", ["china", "flower"])
def test_load_bundled__pictures(name: str) -> None:
    dataset = datasets.load_bundled(name)
    assert isinstance(dataset.X, np.ndarray)
    assert (dataset.X.shape, dataset.X.dtype) == ((273_280, 3), np.float32)
    assert dataset.X.min() >= 0
    assert 200 < dataset.X.max() <= 255
    assert math.prod(dataset.extras["shape"].tolist()) == 273_280
    assert dataset.y is None


def test_load_bundled__unknown_name() -> None:
    with pytest.raises(InvalidInputError, match="name must be one of breast_cancer, china"):
        datasets.load_bundled("mnist")


def test_load_bundled__picture_without_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("sklearn.datasets.load_sample_image", fail)
    with pytest.raises(MissingDependencyError, match="needs Pillow"):
        datasets.load_bundled("china")


def test_bundled__names_are_complete() -> None:
    assert datasets.BUNDLED == (
        "breast_cancer",
        "china",
        "diabetes",
        "digits",
        "flower",
        "iris",
        "wine",
    )
