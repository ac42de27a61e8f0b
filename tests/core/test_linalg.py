"""Products, with the same bits on any number of threads; half precision made single."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from daskcoreset.core import linalg
from daskcoreset.core.linalg import (
    inner_products,
    product,
    squared_lengths,
    unit_rows,
)
from tests.tools.plain_loops import use_plain_loops


def test_products__are_summed_in_float64_compiled_and_in_plain_numpy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(4)
    X = (rng.normal(size=(50, 6)) + 1e6).astype(np.float32)
    W = rng.normal(size=(3, 6))
    expected = X.astype(np.float64) @ W.T
    assert inner_products(X, W) == pytest.approx(expected, rel=1e-12)
    assert inner_products(sp.csr_array(X), W) == pytest.approx(expected, rel=1e-12)
    center = X.mean(axis=0, dtype=np.float64)
    squares = ((X - center) ** 2).sum(axis=1)
    assert squared_lengths(X, center) == pytest.approx(squares)
    assert squared_lengths(sp.csr_array(X), center) == pytest.approx(squares, rel=1e-3)
    use_plain_loops(monkeypatch)
    assert inner_products(X, W) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("beside", [1, 200])
def test_gram_sum__of_rows_that_come_in_pieces(
    beside: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linalg, "_WAITING", 2**16)
    values = np.random.default_rng(0).normal(size=(300, 70))
    total = linalg.GramSum(70, beside)
    # 936, 93 or no rows wait.
    assert total._rows.nbytes <= 8 * 2**16 / beside
    for start, stop in ((0, 0), (0, 5), (5, 200), (200, 300)):
        total.add(values[start:stop])
    assert np.allclose(total.total(), values.T @ values)


@pytest.mark.parametrize(
    ("n", "inner", "width"),
    [
        (5000, 20, 100),
        (33, 700, 700),
        (1, 250_000, 1),  # few products, but for vectors BLAS has other limits
    ],
)
def test_product__has_the_same_bits_on_any_number_of_threads(
    n: int, inner: int, width: int
) -> None:
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(n, inner)), rng.normal(size=(inner, width))
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(product(left, right))

    np.testing.assert_allclose(found[0], left @ right, rtol=1e-9, atol=1e-10)
    np.testing.assert_array_equal(found[0], found[1])


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
