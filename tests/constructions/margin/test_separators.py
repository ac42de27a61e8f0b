"""Kernels against scikit-learn, and equal rows with opposite labels."""

from __future__ import annotations

import numpy as np

from daskcoreset.constructions.margin.separators import opposite_duplicates


def test_opposite_duplicates__are_found_among_many_copies() -> None:
    points = np.array([[1.0], [1.0], [2.0], [2.0], [3.0]])
    signs, indices = np.array([1.0, 1, 1, -1, -1]), np.arange(5) * 10
    assert opposite_duplicates(points, signs, indices) == (20, 30)
    assert opposite_duplicates(points[:3], signs[:3], indices[:3]) is None
