"""Kernels, their widths, and what they span."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.typing import FloatArray
from daskcoreset.estimators.kernel.kernels import (
    Isotropic,
    KernelMap,
    Span,
    resolve_gamma,
    resolve_kernel,
)
from tests.pairs import pairs
from tests.tools.kernel_problems import X


def cauchy(squares: FloatArray) -> FloatArray:
    return np.asarray(1.0 / (1.0 + squares))


@pairs(dtype=[np.float32, np.float64], offset=[0.0, 1e6], kernel=["rbf", "laplacian", cauchy])
def test_tiles__kernel_of_plain_distances(kernel: Any, offset: float, dtype: Any) -> None:
    rows = (np.random.default_rng(0).normal(size=(700, 3)) * 2 + offset).astype(dtype)
    core = KernelMap(resolve_kernel(kernel, 0.7), rows[::20].astype(np.float64))
    gaps = rows[:, np.newaxis].astype(np.float64) - core.points
    squares = (gaps**2).sum(axis=2)
    expected = {
        "rbf": np.exp(-0.7 * squares),
        "laplacian": np.exp(-0.7 * np.sqrt(squares)),
    }.get(kernel, 1 / (1 + squares))
    for part, values, nearest in core.tiles(rows, nearest=True):
        assert np.allclose(values, expected[part], atol=1e-6 if kernel == "laplacian" else 1e-10)
        assert nearest is not None
        # At a large offset float32 has few values: of two as near as each other either is right.
        found = np.take_along_axis(squares[part], nearest.cells[:, np.newaxis], axis=1)[:, 0]
        assert np.allclose(found, squares[part].min(axis=1), rtol=0, atol=1e-10)
        assert nearest.farthest == pytest.approx(squares[part].min(axis=1).max(), abs=1e-10)
    assert np.allclose(np.diag(core.gram()), 1.0, atol=0, rtol=0)


def test_resolve_gamma__as_in_svc() -> None:
    X = np.random.default_rng(0).normal(size=(50, 4)) * 3 + 1
    assert resolve_gamma("scale", 4, float(X.var())) == pytest.approx(1 / (4 * X.var()))
    assert resolve_gamma("scale", 4, 0.0) == 1.0
    for bad in ("large", 0.0, -1.0, np.inf, True, None):
        with pytest.raises(InvalidInputError, match="gamma must be"):
            resolve_gamma(bad, 4, 1.0)


def two(first: FloatArray, second: FloatArray) -> FloatArray:
    return first @ second.T


def test_span__equal_core_points_and_false_kernels() -> None:
    twice = KernelMap(Isotropic("rbf"), np.repeat(X[:5], 2, axis=0))
    assert Span.of(twice).into.shape == (10, 5)

    def cosine(squares: FloatArray) -> FloatArray:
        return np.asarray(np.cos(3 * squares))

    with pytest.raises(InvalidInputError, match="not positive semi-definite"):
        Span.of(KernelMap(Isotropic("callable", profile=cosine), X[:30]))


@pytest.mark.parametrize(("gamma", "triangular"), [(500.0, True), (0.05, False)])
def test_span__orthonormal(gamma: float, triangular: bool) -> None:
    # By the Cholesky factor where K is well-conditioned, by eigenvectors elsewhere.
    core = KernelMap(Isotropic("rbf", gamma), X[:30])
    span = Span.of(core)
    assert (np.abs(np.tril(span.into, -1)).max() == 0.0) == triangular
    inner = span.into.T @ core.gram() @ span.into
    np.testing.assert_allclose(inner, np.eye(span.into.shape[1]), atol=1e-4)
    beta = np.linspace(-1.0, 1.0, 30)[:, np.newaxis]
    norm = float(np.square(span.coordinates(beta)).sum())
    assert norm == pytest.approx((beta.T @ core.gram() @ beta).item(), rel=1e-6)


@pytest.mark.parametrize("far", [0.0, 1e4, 1e30, 1e100])
def test_held__as_in_float64_however_far_rows_are(far: float) -> None:
    rows = np.random.default_rng(0).normal(size=(400, 4))
    core = KernelMap(Isotropic("rbf", 0.5), rows[:30].copy())
    rows[100:] += far
    exact = np.concatenate([each for _, each, _ in core.tiles(rows)])
    assert core.held(rows).dtype == np.float32
    np.testing.assert_allclose(core.held(rows), exact, atol=1e-5)
    wide = KernelMap(core.kernel, rows[80:130])  # of core points that are far apart, too
    exact = np.concatenate([each for _, each, _ in wide.tiles(rows)])
    np.testing.assert_allclose(wide.held(rows), exact, atol=1e-5)
