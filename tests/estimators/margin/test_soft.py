"""Soft margins at their least, on rows drawn uniformly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskcoreset.estimators.margin.soft import draw_uniform, soft_margin
from daskcoreset.inputs.blocks import row_blocks


def test_draw_uniform__numbers_rows_of_the_whole_data() -> None:
    X = np.arange(1000.0)[:, None]
    X[5] = np.nan
    drop: Any = "drop"
    blocks = row_blocks(X, np.arange(1000) % 2, np.full(1000, 2.0), chunks=300, on_invalid=drop)
    drawn = draw_uniform(blocks, 50, 0)
    numbers: Any = drawn.rows.rows
    np.testing.assert_array_equal(numbers, drawn.rows.points[:, 0])
    assert (np.diff(numbers) > 0).all()
    assert (drawn.n_rows, drawn.n_dropped, drawn.weight) == (999, 1, 1998.0)


def test_soft_margin__takes_many_columns_and_constant_ones() -> None:
    X = np.zeros((6, 2100))
    X[:, 0] = [0, 1, 2, 3, 4, 5]
    y = np.array([-1.0, 1, -1, -1, 1, 1])
    few = soft_margin(X[:, :2], y, np.ones(6), 1.0, intercept=True)
    many = soft_margin(X, y, np.ones(6), 1.0, intercept=True)
    assert many[0][:2] == pytest.approx(few[0], abs=1e-5)
    assert many[1] == pytest.approx(few[1], abs=1e-5)
