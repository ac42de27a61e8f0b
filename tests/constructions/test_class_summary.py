"""The outline of labelled rows: classes, numbers, and labels that are refused."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

from daskcoreset.constructions.class_summary import summarise_classes
from daskcoreset.errors import InvalidInputError
from daskcoreset.inputs.blocks import row_blocks
from tests.tools.kernel_problems import U, X, Y


def test_outline__numbers_of_all_blocks() -> None:
    found = summarise_classes(row_blocks(X, Y, U, chunks=70))
    assert found.classes.tolist() == [-1, 1]
    assert np.allclose(found.class_weights, [U[Y == -1].sum(), U[Y == 1].sum()])
    assert sum(found.weights.values()) == pytest.approx(found.weight) == pytest.approx(U.sum())
    plain = summarise_classes(row_blocks(X, Y, chunks=70))
    assert plain.variance == pytest.approx(X.var())
    assert plain.total_variance == pytest.approx(X.var(axis=0).sum())
    sparse = summarise_classes(row_blocks(sp.csr_array(X), Y))
    assert sparse.total_variance == pytest.approx(plain.total_variance)


def test_outline__zero_weights_and_text() -> None:
    labels = da.from_array(np.array(["b", "a", "c", "a"], dtype=object), chunks=2)
    blocks = row_blocks(da.from_array(X[:4], chunks=(2, 2)), labels, np.array([1.0, 1, 0, 2]))
    found = summarise_classes(blocks)
    assert found.classes.tolist() == ["a", "b"]
    assert found.class_weights.tolist() == [3.0, 1.0]


def test_outline__numbers_of_a_regression() -> None:
    many = np.arange(12_000.0)
    for chunks in (12_000, 6000):
        with pytest.raises(InvalidInputError, match="classes or more"):
            summarise_classes(row_blocks(many[:, np.newaxis], many, chunks=chunks))
