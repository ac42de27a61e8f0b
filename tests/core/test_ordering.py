"""The order of systematic draws: the compiled loop, plain NumPy, and what defines it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskcoreset.core.ordering import _MAX_ALIGNED, _widest_columns, spatial_order
from daskcoreset.core.typing import FloatArray
from tests.tools.plain_loops import bisection_order, use_plain_loops


def made_with(kind: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    if kind == "numpy":
        use_plain_loops(monkeypatch)
    return spatial_order


@pytest.mark.parametrize("total", [2.5, 50.0, 90.0])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_spatial_order__same_in_plain_numpy(total: float, offset: float) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(150, 3)) + offset
        mass = rng.random(150)
        mass *= total / mass.sum()
        found = bisection_order(X, mass, _MAX_ALIGNED)

        assert sorted(found) == list(range(150))
        assert found.tolist() == spatial_order(X, mass).tolist()


@pytest.mark.parametrize("kind", ["compiled", "numpy"])
def test_spatial_order__first_split_is_across_the_widest_column(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.random.default_rng(0).normal(size=(100, 3)) * [1.0, 30.0, 1.0]
    order = made_with(kind, monkeypatch)(X, np.ones(100))
    low = X[order, 1] <= X[:, 1].mean()
    sides = np.flatnonzero(np.diff(low))

    assert len(sides) < 5  # the axis is not quite that of the column


@pytest.mark.parametrize("kind", ["compiled", "numpy"])
def test_spatial_order__equal_rows_stay_together(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = made_with(kind, monkeypatch)
    values = np.random.default_rng(0).permutation(np.repeat(np.arange(7.0) ** 2 + 0.1, 5))
    mass = np.random.default_rng(1).random(35)
    found = values[order(values[:, np.newaxis], mass)]

    assert (np.diff(found) != 0).sum() == 6
    assert order(np.ones((4, 2)), np.ones(4)).tolist() == [0, 1, 2, 3]
    assert order(np.ones((1, 2)), np.ones(1)).tolist() == [0]
    assert order(np.ones((0, 2)), np.ones(0)).tolist() == []


def corners() -> FloatArray:
    return np.array(np.meshgrid(*[[0.0, 1.0]] * 8)).reshape(8, -1).T


@pytest.mark.parametrize("kind", ["compiled", "numpy"])
def test_spatial_order__rows_of_one_draw_stay_as_they_are(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = made_with(kind, monkeypatch)

    assert order(corners(), np.full(256, 1 / 256)).tolist() == [*range(256)]
    # Cells of a whole draw each: four corners that differ in two columns, in their own order.
    cells = order(corners(), np.full(256, 1 / 4)).reshape(64, 4)
    assert (np.diff(cells, axis=1) > 0).all()
    assert np.ptp(corners()[cells], axis=1).sum(axis=1).tolist() == [2.0] * 64


def test_widest_columns__are_kept_in_their_order() -> None:
    X = np.random.default_rng(0).normal(size=(20, 70)) * (1 + np.arange(70) % 7)
    kept = _widest_columns(X, np.ones(20))
    widest = np.sort(np.argsort(-X.var(axis=0))[:64])

    np.testing.assert_array_equal(kept, X[:, widest])
    np.testing.assert_array_equal(_widest_columns(X[:, :64], np.ones(20)), X[:, :64])
