"""Kernels against scikit-learn, and equal rows with opposite labels."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels

from daskcoreset.constructions.margin.separators import Kernel, opposite_duplicates


def test_kernels__equal_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(7, 3)), rng.normal(size=(5, 3))
    for name, options in [
        ("linear", {}),
        ("rbf", {"gamma": 0.7}),
        ("poly", {"gamma": 0.7, "degree": 2, "coef0": 0.3}),
        ("sigmoid", {"gamma": 0.7, "coef0": 0.3}),
    ]:
        kernel = Kernel(name, **options)  # type: ignore[arg-type]
        expected = pairwise_kernels(X, Y, metric=name, **options)
        for left in (X, sp.csr_array(X)):
            assert kernel(left, Y) == pytest.approx(expected)
        full = np.diag(pairwise_kernels(X, X, metric=name, **options))
        assert kernel.diagonal(X) == pytest.approx(full)
        assert Kernel(kernel).diagonal(X) == pytest.approx(full)


def test_opposite_duplicates__are_found_among_many_copies() -> None:
    points = np.array([[1.0], [1.0], [2.0], [2.0], [3.0]])
    signs, indices = np.array([1.0, 1, 1, -1, -1]), np.arange(5) * 10
    assert opposite_duplicates(points, signs, indices) == (20, 30)
    assert opposite_duplicates(points[:3], signs[:3], indices[:3]) is None
