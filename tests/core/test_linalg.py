"""Products, with the same bits on any number of threads; half precision made single."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from daskcoreset.core.linalg import (
    unit_rows,
)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_unit_rows__of_lengths_of_all_orders(dtype: type) -> None:
    info = np.finfo(dtype)
    rows = np.random.default_rng(0).normal(size=(60, 7))
    rows *= np.geomspace(float(info.smallest_normal) * 1e3, float(info.max) / 1e3, 60)[
        :, np.newaxis
    ]
    rows[::7, 2] = 0.0
    rows = rows.astype(dtype)
    found: Any
    found, lengths = unit_rows(rows)
    exact = rows.astype(np.longdouble)
    true = np.sqrt((exact**2).sum(axis=1))
    assert found.dtype == dtype
    np.testing.assert_allclose(lengths, true.astype(float), rtol=1e-12)
    np.testing.assert_allclose(
        found, (exact / true[:, np.newaxis]).astype(dtype), rtol=4 * float(info.eps)
    )
    np.testing.assert_array_equal(unit_rows(found)[0], found)
    sparse: Any
    sparse, again = unit_rows(sp.csr_array(rows))
    np.testing.assert_allclose(sparse.toarray(), found, rtol=4 * float(info.eps))
    np.testing.assert_allclose(again, lengths)


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
