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
