"""Sums over all rows are exact: moments, costs and totals, whatever the blocks and offsets."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

from tests.acceptance import face
from tests.acceptance.tools import readings as read
from tests.pairs import each


def data(n: int = 5000, d: int = 4) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * np.array([1.0, 30.0, 0.01, 2.0])[:d]
    u = rng.uniform(0.1, 4.0, size=n)
    u[::11] = 0.0
    return X, u


FORMS = ["memory", "chunks", "float32", "sparse", "sparse chunks"]


def formed(X: Any, form: str) -> Any:
    if form == "memory":
        return X
    if form == "float32":
        return X.astype(np.float32)
    if form == "sparse":
        return sp.csr_array(X)
    blocks = (700, 1, 1299, 3000)
    if form == "chunks":
        return da.from_array(X, chunks=(blocks, X.shape[1]))
    return da.from_array(X, chunks=(blocks, X.shape[1])).map_blocks(sp.csr_array)


@each(form=FORMS, offset=[1e4, 0.0])
def test_build__quantization_error_is_exact(form: str, offset: float) -> None:
    """Also far from the origin, where sums of squares lose all digits."""
    X, u = data()
    if "sparse" in form:
        X[np.abs(X) < 0.5] = 0.0
        X[:, 2] = 0.0
        X[1::2, 0] = 0.0
    X = np.where(X != 0.0, X + offset, X) if "sparse" in form else X + offset
    rows = formed(X, form)
    X = X.astype(np.float32).astype(float) if form == "float32" else X
    c = face.build(rows, sample_weight=u, size=100, random_state=0)
    facts = c.provenance
    exact = np.trace(read.scatter_of(X, u))
    assert facts["quantization_error"] == pytest.approx(exact, rel=1e-8)
    assert facts["total_weight"] == pytest.approx(u.sum(), rel=1e-12)
    assert facts["n"] == 5000
    assert facts["d"] == 4
    q = read.lightweight(X, u)
    p = read.inclusion(q, 100)
    assert np.allclose(c.weights, u[c.indices] / p[c.indices], rtol=1e-5)


@pytest.mark.parametrize("form", ["memory", "chunks", "float32", "sparse chunks"])
def test_build__light_and_heavy_rows_keep_their_digits(form: str) -> None:
    """Weights of 1e-9 and 1e9 beside one another, the first block without any."""
    X, u = data()
    u[:700] = 0.0
    u[700:3000] *= 1e-9
    u[700] = 1.0  # the weight of a block of one row
    u[-2] = 1e9
    rows = formed(X, form)
    X = X.astype(np.float32).astype(float) if form == "float32" else X
    facts = face.build(rows, sample_weight=u, size=50, random_state=0).provenance
    exact = np.trace(read.scatter_of(X, u))
    assert facts["quantization_error"] == pytest.approx(exact, rel=1e-7)
    assert facts["total_weight"] == pytest.approx(u.sum(), rel=1e-12)


def test_build__rows_without_weight_may_hold_anything_large() -> None:
    X, u = data()
    X[::11] = 1e20
    kept = u > 0
    c = face.build(da.from_array(X, chunks=(900, 4)), sample_weight=u, size=80, random_state=0)
    exact = np.trace(read.scatter_of(X[kept], u[kept]))
    assert c.provenance["quantization_error"] == pytest.approx(exact, rel=1e-8)
    assert (u[c.indices] > 0).all()


@pytest.mark.parametrize("chunked", [False, True])
def test_build__sparse_columns_keep_their_digits(chunked: bool) -> None:
    """A full column far from zero, zeros elsewhere, light rows, and 1e20 without weight."""
    X, u = data()
    X[np.abs(X) < 0.5] = 0.0
    X[:, 3] = 1e8 + np.arange(5000) % 7
    u[1::3] *= 1e-12
    u[-5:] = 1e-12
    X[::11] = 1e20
    rows = formed(X, "sparse chunks" if chunked else "sparse")
    kept = u > 0
    c = face.build(rows, sample_weight=u, size=100, random_state=0)
    exact = np.trace(read.scatter_of(X[kept], u[kept]))
    assert c.provenance["quantization_error"] == pytest.approx(exact, rel=1e-7)
    p = np.zeros(5000)
    p[kept] = read.inclusion(read.lightweight(X[kept], u[kept]), 100)
    assert np.allclose(c.weights, u[c.indices] / p[c.indices], rtol=1e-5)


def test_covariance__of_rows_with_weight_alone() -> None:
    X, u = data()
    X[::11] = 1e20
    method = face.LightweightBregman("mahalanobis")
    for rows in (X, formed(X, "chunks")):
        c = face.build(rows, sample_weight=u, size=60, method=method, random_state=0)
        assert c.provenance["quantization_error"] == pytest.approx(4 * u.sum(), rel=1e-6)


@pytest.mark.parametrize("form", ["memory", "chunks", "sparse"])
def test_covariance__is_exact_in_dominating_distances(form: str) -> None:
    """The Mahalanobis distance sums up to d times the weight, with the inverse of all scatter."""
    X, u = data()
    X[:, 1] += 3.0 * X[:, 0]
    X = X + np.array([0.0, 1e3, 0.0, -5.0]) * (form != "sparse")
    method = face.LightweightBregman("mahalanobis")
    c = face.build(formed(X, form), sample_weight=u, size=60, method=method, random_state=0)
    assert c.provenance["quantization_error"] == pytest.approx(4 * u.sum(), rel=1e-6)
    gaps = X - read.mean_of(X, u)
    inverse = np.linalg.inv(read.scatter_of(X, u) / u.sum())
    p = read.inclusion(read.half_and_half(u, np.einsum("ij,jk,ik->i", gaps, inverse, gaps)), 60)
    assert np.allclose(c.weights, u[c.indices] / p[c.indices], rtol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_kmeans_cost__is_exact(form: str) -> None:
    X, u = data()
    rows = formed(X, form)
    X = X.astype(np.float32).astype(float) if form == "float32" else X
    centers = [X[:1], X[5:12] + 0.5]
    for one in centers:
        found = face.metrics.kmeans_cost(rows, one, sample_weight=u)
        assert float(found) == pytest.approx(read.kmeans_cost(X, u, one), rel=1e-6)
    plain = face.metrics.kmeans_cost(rows, centers[1])
    assert float(plain) == pytest.approx(read.kmeans_cost(X, np.ones(5000), centers[1]), rel=1e-6)


def test_coreset_cost__is_the_formula() -> None:
    X, u = data(600)
    c = face.build(X, sample_weight=u, size=90, random_state=0)
    centers = X[3:7]
    on_coreset = read.kmeans_cost(c.points, c.weights, centers)
    assert c.cost(centers) == pytest.approx(on_coreset)


@pytest.mark.parametrize("name", ["squared_euclidean", "kl", "itakura_saito", "mahalanobis"])
def test_divergences__are_the_formulas(name: str) -> None:
    rng = np.random.default_rng(0)
    X, Q = rng.uniform(0.5, 3.0, size=(40, 3)), rng.uniform(0.5, 3.0, size=(4, 3))
    precision = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.1], [0.0, 0.1, 3.0]])
    x, q = X[:, np.newaxis], Q[np.newaxis]
    wanted = {
        "squared_euclidean": ((x - q) ** 2).sum(axis=2),
        "kl": (x * np.log(x / q) - x + q).sum(axis=2),
        "itakura_saito": (x / q - np.log(x / q) - 1).sum(axis=2),
        "mahalanobis": np.einsum("abi,ij,abj->ab", x - q, precision, x - q),
    }[name]
    divergence: Any = name
    if name == "mahalanobis":
        divergence = face.divergences.SquaredMahalanobis(precision)
    u = rng.uniform(0.5, 2.0, size=40)
    with pytest.warns(face.CoresetWarning):
        c = face.build(X, sample_weight=u, size=40)
    cost = c.cost(Q, face.objectives.Distortion(4, divergence))
    assert cost == pytest.approx(u @ wanted.min(axis=1))
    one = c.cost(Q[:1], face.objectives.Distortion(1, divergence))
    assert one == pytest.approx(u @ wanted[:, 0])


def test_many__members_are_the_builds_and_their_sums_are_exact() -> None:
    X, u = data(800)
    rows = da.from_array(X, chunks=(300, 4))
    many = face.build_many(
        rows, sample_weight=u, methods=["uniform", "lightweight"], sizes=50, random_state=4
    )
    for name in ("uniform", "lightweight"):
        alone = face.build(rows, sample_weight=u, method=name, size=50, random_state=4)
        assert np.array_equal(many[name].indices, alone.indices)
        assert np.array_equal(many[name].weights, alone.weights)


@pytest.mark.parametrize("n_batches", [1, 3])
def test_stream__of_float32_refuses_more_digits(n_batches: int) -> None:
    """Also if there is room for the rows; a stream of float64 takes both."""
    X = np.random.default_rng(0).normal(size=(50, 2))
    short = face.CoresetStream(size=50, leaf_size=200, random_state=0)
    long = face.CoresetStream(size=50, leaf_size=200, random_state=0).partial_fit(X[:10])
    for start in range(0, 10 * n_batches, 10):
        short.partial_fit(X[start : start + 10].astype(np.float32))
        long.partial_fit(X[start : start + 10].astype(np.float32))
    with pytest.raises(face.errors.InvalidInputError, match="float64 instead of float32"):
        short.partial_fit(X[:10])
    assert short.n_rows == 10 * n_batches
    long.partial_fit(X[:10])
    assert long.n_rows == 10 * n_batches + 20
    points: Any = long.coreset().points
    assert points.dtype == np.float64
    assert np.array_equal(points[:10], X[:10])
    assert np.array_equal(points[-10:], X[:10])
    assert np.array_equal(points[10:20], X[:10].astype(np.float32))
