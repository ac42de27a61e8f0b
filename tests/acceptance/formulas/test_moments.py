"""Moments of all rows against sums in extended precision, and what is solved from them."""

from __future__ import annotations

import warnings
from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import (  # type: ignore[import-untyped] # no annotations
    threadpool_info,
    threadpool_limits,
)

from tests.acceptance import face
from tests.acceptance.tools import readings as read
from tests.pairs import each

BLOCKS = (1200, 0, 4096, 1, 1, 0, 1700, 2)
VARY = [0, 1, 2, 4]  # columns that are not constant


def hostile() -> tuple[Any, Any]:
    """Blocks of no rows, of no weight, of a weight of exactly one, of one row, and far apart."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(7000, 5)) * np.array([1.0, 30.0, 1e-3, 0.0, 2.0]) + [0, 0, 0.1, 0.7, 0]
    X[1200:5296] += [3.0, -50.0, 0.0, 0.0, 0.0]
    u = rng.uniform(0.1, 4.0, size=7000)
    u[:1200] = 0.0
    u[1200:5296] = 2.0**-12
    u[5296], u[5297] = 1.0, 0.0
    u[5310::7] = 0.0
    u[-2:] = 0.0
    X[u == 0.0] = 1e20
    return X, u


def exact(X: Any, u: Any) -> tuple[float, Any, Any]:
    """Weight, mean and scatter of rows with weight, in extended precision."""
    X, u = X[u > 0].astype(np.longdouble), u[u > 0].astype(np.longdouble)
    mean = u @ X / u.sum()
    return float(u.sum()), mean.astype(float), ((X - mean).T * u @ (X - mean)).astype(float)


@each(form=["dense", "float32", "sparse"], offset=[1e7, 0.0])
def test_moments__are_exact_over_blocks_of_any_weight(form: str, offset: float) -> None:
    X, u = hostile()
    if form == "sparse":
        X[np.abs(X) < 0.4] = 0.0
    X[:, :2] += offset
    X = X.astype(np.float32) if form == "float32" else X
    rows = da.from_array(X, chunks=(BLOCKS, 5))
    if form == "sparse":
        rows = rows.map_blocks(sp.csr_array)
    weights = da.from_array(u, chunks=(BLOCKS,))
    found = face.moments(rows, sample_weight=weights)
    weight, mean, scatter = exact(X, u)
    counted = int((u > 0).sum())
    spread = np.sqrt(np.diag(scatter))[VARY]
    assert found.count == counted
    assert found.weight == pytest.approx(weight, rel=1e-12)
    assert np.allclose(found.mean, mean, rtol=1e-12)
    wanted = scatter[np.ix_(VARY, VARY)] / (weight * (1 - 1 / counted))
    gaps = np.abs(found.covariance[np.ix_(VARY, VARY)] - wanted)
    assert (gaps <= 1e-8 * np.outer(spread, spread) / weight).all()
    assert (found.covariance[3] == 0.0).all()
    facts = face.build(rows, sample_weight=weights, size=100, random_state=0).provenance
    assert facts["quantization_error"] == pytest.approx(np.trace(scatter), rel=1e-9)
    plain = face.build(rows[1200:5296], size=100, random_state=0).provenance
    _, _, scatter = exact(X[1200:5296], np.ones(4096))
    assert plain["quantization_error"] == pytest.approx(np.trace(scatter), rel=1e-9)


def test_moments__of_equal_rows_are_exactly_zero() -> None:
    """Whatever the weights; sparse with zeros beside and explicit ones, too."""
    rng = np.random.default_rng(0)
    u = rng.uniform(0.1, 7.0, size=3000) * 10.0 ** rng.integers(-9, 9, size=3000)
    X = np.tile([0.1, 1 / 3, 0.0], (3000, 1))
    stored = sp.csr_array((X.ravel(), np.tile([0, 1, 2], 3000), np.arange(0, 9001, 3)))
    for rows in (X, X.astype(np.float32), sp.csr_array(X), stored):
        facts = face.build(rows, sample_weight=u, size=50, random_state=0).provenance
        assert facts["quantization_error"] == 0.0
    assert (face.moments(X, sample_weight=u).covariance == 0.0).all()


@pytest.mark.parametrize(
    ("kind", "spread", "far", "light"),
    [("dense", 1e-6, 1e8, 1e-32), ("sparse", 1e-6, 1e8, 1e-32), ("dense", 1e-9, 1e20, 1e-75)],
)
def test_moments__of_a_light_row_far_away_leave_digits_of_the_others(
    kind: str, spread: float, far: float, light: float
) -> None:
    rng = np.random.default_rng(0)
    X = 0.1 + spread * rng.normal(size=(3000, 3))
    X[-1] = X[0] = far
    u = rng.uniform(0.5, 1.0, size=3000)
    u[-1] = u[0] = light
    _, _, scatter = exact(X, u)
    rows: Any = sp.csr_array(X) if kind == "sparse" else X
    facts = face.build(rows, sample_weight=u, size=50, random_state=0).provenance
    assert facts["quantization_error"] == pytest.approx(np.trace(scatter), rel=1e-6, abs=0.0)


def test_moments__of_rows_longer_than_a_tile() -> None:
    """More columns than numbers are gone through at a time."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 9000)) + 50.0
    for rows in (X, X.astype(np.float32)):
        facts = face.build(rows, size=20, random_state=0).provenance
        wanted = ((X - X.mean(axis=0)) ** 2).sum()
        assert facts["quantization_error"] == pytest.approx(wanted, rel=1e-6)


def test_ridge__of_columns_that_say_the_same_is_the_shortest_solution() -> None:
    """Columns of all units, some sums of others, one constant, and no penalty."""
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, 900, 1))
    u = rng.uniform(0.2, 2.0, size=900)
    X = np.hstack([30 * a, 60 * a, 1e-3 * b, np.full((900, 1), 7.0), c, 2 * c - 30 * a])
    y = (a + 2 * b - c)[:, 0] + 0.1 * rng.normal(size=900)
    root = np.sqrt(u)[:, np.newaxis]
    gaps, y_gap = X - read.mean_of(X, u), y - u @ y / u.sum()
    for columns in (slice(0, 6), slice(2, 5)):
        model = face.estimators.CoresetRidge(alpha=0.0, size=100)
        model.fit(X[:, columns], y, sample_weight=u)
        wanted = np.linalg.lstsq(root * gaps[:, columns], root[:, 0] * y_gap, rcond=1e-10)[0]
        assert np.allclose(model.coef_, wanted, rtol=1e-6, atol=1e-9)
    units = np.array([1e-120, 1e-7, 1.0, 1e9, 1e110])
    Z = rng.normal(size=(900, 5))
    y = Z @ np.arange(1.0, 6.0)
    model = face.estimators.CoresetRidge(alpha=0.0, size=100).fit(Z * units, y + 4.0)
    assert np.allclose(model.coef_ * units, np.arange(1.0, 6.0), rtol=1e-8)


@pytest.mark.parametrize("form", [np.float64, np.float32, sp.csr_array])
def test_unit_length__divides_rows_by_their_lengths(form: Any) -> None:
    """Of any length; rows that have length one to rounding stay as they are, to the bit."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    X[::5, 1] = 0.0
    X *= 10.0 ** rng.integers(*((-30, 30) if form is np.float32 else (-290, 290)), size=(400, 1))
    rows = X.astype(np.float32) if form is np.float32 else form(X)
    X = X.astype(np.float32).astype(float) if form is np.float32 else X
    largest = np.abs(X).max(axis=1, keepdims=True)
    wanted = X / largest / np.linalg.norm(X / largest, axis=1, keepdims=True)
    c = face.build(face.open_rows(rows, unit_length=True), size=200, random_state=0)
    points: Any = c.points
    found = points.toarray() if form is sp.csr_array else points
    assert np.allclose(found, wanted[c.indices], rtol=1e-6 if form is np.float32 else 1e-13)
    again = face.build(face.open_rows(c.points, unit_length=True), size=100, random_state=0)
    points = again.points
    same = points.toarray() if form is sp.csr_array else points
    assert np.array_equal(same, found[again.indices])


def test_build__of_half_numbers_keeps_every_value() -> None:
    """More numbers than are worth a loop: subnormal, signed, and the largest."""
    X = np.tile(np.arange(2**16, dtype=np.uint16).view(np.float16), 5).reshape(-1, 4)
    X = np.where(np.isfinite(X), X, np.float16(1.5))
    for rows in (X, np.asfortranarray(X)):
        c = face.build(rows, size=2000, random_state=0)
        assert np.array_equal(c.points, X[c.indices].astype(np.float32))
        _, _, scatter = exact(X.astype(float), np.ones(len(X)))
        assert c.provenance["quantization_error"] == pytest.approx(np.trace(scatter), rel=1e-9)


def test_divergence__takes_bounds_from_rows_with_weight_alone() -> None:
    """The ends of a column, over blocks: of rows without weight they do not count."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3.0, size=(900, 3))
    u = rng.uniform(0.5, 2.0, size=900)
    u[:300], u[-2:] = 0.0, 0.0
    X[0], X[-1], X[-2] = 1e-6, 1e-7, 1e7
    rows = [da.from_array(X, chunks=(300, 3)), X, sp.csr_array(X)]
    kept = u > 0
    gaps = (X - read.mean_of(X, u)) ** 2 / (2 * X[kept].min(axis=0))
    p = np.ones(900)
    p[kept] = read.inclusion(read.half_and_half(u, gaps.sum(axis=1))[kept], 60)
    for one in rows:
        c = face.build(one, sample_weight=u, method=face.LightweightBregman("kl"), size=60)
        assert np.allclose(c.weights, (u / p)[c.indices], rtol=1e-6)
        similarity = (X[kept].min(axis=0) / X[kept].max(axis=0)).min()
        assert c.provenance["similarity"] == pytest.approx(similarity, rel=1e-9)


def test_threads__of_linear_algebra_are_as_before() -> None:
    """After builds and errors, in memory and by Dask."""

    def threads() -> list[int]:
        return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]

    X = np.random.default_rng(0).normal(size=(600, 3))
    with threadpool_limits(2, user_api="blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore", face.CoresetWarning)
        before = threads()
        for rows in (X, da.from_array(X, chunks=(200, 3))):
            face.build(rows, size=50, method=face.LeastSquares(), y=rows[:, 0])
            with pytest.raises(face.CoresetError):
                face.build(rows, sample_weight=np.zeros(600), size=50)
            assert threads() == before
