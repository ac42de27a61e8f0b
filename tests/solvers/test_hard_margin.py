"""The hard-margin problem in memory: exact against other solvers and closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import linprog

from daskcoreset.core.typing import FloatArray
from daskcoreset.solvers.hard_margin import hard_margin
from tests.tools.margins import separable


def is_separable(z: FloatArray) -> bool:
    """Whether some w has z @ w >= 1, by linear programming."""
    found = linprog(np.zeros(z.shape[1]), A_ub=-z, b_ub=-np.ones(len(z)), bounds=(None, None))
    return bool(found.status == 0)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 40),
    d=st.integers(1, 8),
    gap=st.sampled_from([1.0, 1e-2, 1e-4]),
    scale=st.sampled_from([1.0, 1e-6, 1e8]),
)
def test_hard_margin__is_certified_from_both_sides(
    seed: int, n: int, d: int, gap: float, scale: float
) -> None:
    rng = np.random.default_rng(seed)
    X, y = separable(rng, max(n, 2), d, gap)
    z = X * y[:, None] * scale
    found = hard_margin(z)
    assert found.separable
    assert found.w is not None
    assert np.linalg.norm(found.w) == pytest.approx(1.0)
    assert found.margin == pytest.approx((z @ found.w).min(), rel=1e-12)
    # The primal and the dual solution, each by its own formula.
    assert found.dual.min() >= 0
    assert found.dual.sum() == pytest.approx(1.0)
    dual = np.linalg.norm(found.dual @ z)
    assert found.length == pytest.approx(dual, rel=1e-9)
    assert (1 - 1e-8) * dual <= found.margin <= (1 + 1e-8) * dual


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 30), d=st.integers(1, 6))
def test_hard_margin_bias__is_certified_from_both_sides(seed: int, n: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = separable(rng, n, d, 0.1)
    offset = rng.normal(size=d) * 100
    found = hard_margin(X + offset, y, intercept=True)
    assert found.separable
    assert found.w is not None
    reached = y * ((X + offset) @ found.w + found.intercept)
    assert found.margin == pytest.approx(reached.min(), rel=1e-8)
    gap = (found.dual * y) @ (X + offset)
    assert np.bincount((y < 0).astype(int), found.dual) == pytest.approx([1.0, 1.0])
    assert found.margin == pytest.approx(np.linalg.norm(gap) / 2, rel=1e-8)
    assert found.margin >= hard_margin(X, y).margin * (1 - 1e-9)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 25), d=st.integers(1, 5))
def test_hard_margin__tells_what_is_not_separable(seed: int, n: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    z = rng.integers(-3, 4, size=(n, d)).astype(float)
    found = hard_margin(z)
    assert found.separable == is_separable(z)
    if not found.separable:
        # The evidence, by hand: a convex combination that is nothing.
        assert found.dual.min() >= 0
        assert found.dual.sum() == pytest.approx(1.0)
        assert np.linalg.norm(found.dual @ z) <= 1e-9 * max(1.0, np.abs(z).max())
        assert found.w is not None
        assert not found.w.any()
        assert found.margin == 0.0


@pytest.mark.parametrize("ratio", [1e2, 1e4, 1e6])
def test_hard_margin__keeps_its_digits_for_small_margins(ratio: float) -> None:
    rng = np.random.default_rng(7)
    X, y = separable(rng, 500, 10, 1.0)
    z = X * y[:, None]
    found = hard_margin(z)
    z = z / np.linalg.norm(z, axis=1).max()
    # Only along the normal do rows come close: the rest of them is as long as before.
    z -= np.outer(z @ found.w, found.w) * (1 - 1 / ratio)
    near = hard_margin(z)
    assert near.separable
    assert 1 - near.margin / near.length < 1e-8


def test_shortest_vector__gets_there_without_a_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    def gives_up(*_: Any) -> None:
        raise RuntimeError("Maximum number of iterations reached.")

    X, y = separable(np.random.default_rng(10), 100, 5, 0.1)
    z = X * y[:, None]
    guessed = hard_margin(z).margin
    monkeypatch.setattr("scipy.optimize.nnls", gives_up)
    assert hard_margin(z).margin == pytest.approx(guessed, rel=1e-9)
