"""The kernel between rows and core points, and its width."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskcoreset.estimators.kernel.kernels import KernelMap, nearest
from tests.pairs import pairs
from tests.tools.kernel_problems import kernel_values


@pairs(dtype=[np.float32, np.float64], offset=[0.0, 1e6])
def test_squares__kernel_of_plain_distances(offset: float, dtype: Any) -> None:
    rows = (np.random.default_rng(0).normal(size=(700, 3)) * 2 + offset).astype(dtype)
    core = KernelMap(0.7, rows[::20].astype(np.float64))
    expected = kernel_values(core, rows.astype(np.float64))
    squares = ((rows[:, np.newaxis].astype(np.float64) - core.points) ** 2).sum(axis=2)
    for part, found in core.squares(rows):
        cells, farthest = nearest(found)
        # At a large offset float32 has few values: of two as near as each other either is right.
        own = np.take_along_axis(squares[part], cells[:, np.newaxis], axis=1)[:, 0]
        assert np.allclose(own, squares[part].min(axis=1), rtol=0, atol=1e-10)
        assert farthest == pytest.approx(squares[part].min(axis=1).max(), abs=1e-10)
        assert np.allclose(core.values(found), expected[part], atol=1e-10)
    assert np.allclose(np.diag(core.gram()), 1.0, atol=0, rtol=0)
