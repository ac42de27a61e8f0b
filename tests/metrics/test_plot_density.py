"""Frames and histograms of all rows against plain NumPy."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

from daskcoreset.core.typing import FloatArray
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.metrics.plot_density import data_frame, histogram, rows_frame

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3000, 4)) * [5.0, 1.0, 3.0, 0.5] + [1e3, 0.0, 0.0, -7.0]


pytestmark = pytest.mark.usefixtures("agg")


def exact_axes(rows: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    values, vectors = np.linalg.eigh(np.cov(rows.T, aweights=u, ddof=0))
    return vectors[:, ::-1][:, :2], values[::-1][:2] / values.sum()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_rows_frame__is_principal_axes_of_weighted_rows(form: Any) -> None:
    rows, u = X[:300] - [1e3, 0, 0, 0], np.random.default_rng(0).random(300)
    frame = rows_frame(form(rows), u)
    axes, shares = exact_axes(rows, u)
    np.testing.assert_allclose(np.abs(frame.axes), np.abs(axes), atol=1e-6)
    assert frame.shares == pytest.approx(tuple(shares), rel=1e-6)
    shown = frame.of(form(rows))
    np.testing.assert_allclose(np.average(shown, axis=0, weights=u), 0.0, atol=1e-8)
    assert (frame.axes[np.abs(frame.axes).argmax(axis=0), [0, 1]] > 0).all()


@pytest.mark.parametrize("form", [np.asarray, np.float32, sp.csr_array])
@pytest.mark.parametrize("m", [5, 50, 3000])
def test_rows_frame__axes_without_variance_show_no_rounding(form: Any, m: int) -> None:
    rows, u = np.full((m, 4), 0.1), np.full(m, 0.3)
    frame = rows_frame(form(rows), u)
    assert frame.shares == (0.0, 0.0)
    assert not frame.of(form(rows)).any()
    rows[:, 0] += np.arange(m)
    line = rows_frame(form(rows), u)
    shown = line.of(form(rows))
    assert np.array(line.shares) == pytest.approx([1.0, 0.0])
    assert line.shares is not None
    assert line.shares[1] == 0.0
    assert np.ptp(shown[:, 0]) == pytest.approx(m - 1)
    assert not shown[:, 1].any()


def test_rows_frame__few_rows_and_equal_rows() -> None:
    two = rows_frame(np.array([[0.0, 0, 0], [3.0, 4, 0]]), np.ones(2))
    np.testing.assert_allclose(two.axes[:, 0], [0.6, 0.8, 0.0], atol=1e-12)
    assert two.shares == pytest.approx((1.0, 0.0))
    assert rows_frame(np.ones((1, 5)), np.ones(1)).of(np.ones((1, 5))) == pytest.approx(0.0)


@pytest.mark.parametrize("chunks", ["auto", 700])
def test_data_frame__is_principal_axes_of_all_rows_under_an_offset(chunks: Any) -> None:
    u = np.random.default_rng(0).random(len(X))
    blocks = row_blocks(X.astype(np.float32), None, u, chunks=chunks)
    frame = data_frame(blocks)
    axes, shares = exact_axes(X.astype(np.float32).astype(np.float64), u)
    np.testing.assert_allclose(np.abs(frame.axes), np.abs(axes), atol=1e-6)
    assert frame.shares == pytest.approx(tuple(shares), rel=1e-6)
    np.testing.assert_allclose(frame.center, np.average(X, axis=0, weights=u), atol=1e-4)


def test_histogram__is_that_of_numpy_over_all_blocks() -> None:
    u = np.random.default_rng(0).random(len(X))
    frame = rows_frame(X[:, :2], u)
    edges = [np.linspace(990, 1010, 21), np.linspace(-2, 2, 21)]  # and some rows outside
    found = histogram(row_blocks(da.from_array(X[:, :2], chunks=(700, 2)), None, u), frame, edges)
    expected, _, _ = np.histogram2d(X[:, 0], X[:, 1], edges, weights=u)
    np.testing.assert_allclose(found, expected)
    assert 0 < found.sum() < u.sum()


def test_folds__empty_blocks_add_nothing() -> None:
    rows = X[np.argsort(X[:, 0])]
    lazy = da.from_array(rows, chunks=(700, 4))
    above = lazy[lazy[:, 0] > 1e3]  # the first block has none
    kept = rows[rows[:, 0] > 1e3]
    frame = data_frame(row_blocks(above))
    np.testing.assert_allclose(frame.center, kept.mean(axis=0))
    edges = [np.linspace(-99, 99, 21)] * 2
    assert histogram(row_blocks(above), frame, edges).sum() == len(kept)
