"""Products, with the same bits on any number of threads; half precision made single."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskcoreset.core.linalg import (
    unit_rows,
)


def test_unit_rows__of_no_direction_stay_as_they_are() -> None:
    rows = np.array([[0.0, -0.0], [np.nan, 1.0], [np.inf, 2.0], [5e-324, 0.0], [1e308, 1e308]])
    before = rows.copy()
    found: Any
    found, lengths = unit_rows(rows)
    np.testing.assert_array_equal(rows, before)
    np.testing.assert_array_equal(found[:3], rows[:3])
    np.testing.assert_allclose(found[3:], [[1.0, 0.0], [0.5**0.5, 0.5**0.5]])
    assert np.isnan(lengths[1:3]).all()
    assert lengths[0] == 0.0
    assert unit_rows(np.empty((0, 3)))[0].shape == (0, 3)
