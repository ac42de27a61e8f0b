"""Weighted rows as they are made by hand, and the order in which rows are drawn."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest

from tests.acceptance import face
from tests.acceptance.tools import readings as read


def test_weighted_points__names_the_first_weight_that_cannot_be_used() -> None:
    X, at = np.zeros((4, 2)), np.arange(4)
    for weights, match in (
        ([0.0, 1.0, -2.0, -3.0], "-2.0 at row 2"),
        ([0.0, np.nan, 1.0, -3.0], "nan at row 1"),
        ([0.0, 1.0, 1.0, np.inf], "inf at row 3"),
        ([1e308, 1e308, 1.0, 1.0], "sums to inf"),
    ):
        with pytest.raises(face.errors.InvalidInputError, match=match):
            face.WeightedPoints(X, np.array(weights), at)
    for bad in (np.array(["1", "2", "3", "4"]), np.ones(4, dtype=bool)):
        with pytest.raises(face.errors.InvalidTypeError, match="weights"):
            face.WeightedPoints(X, bad, at)
    with pytest.raises(face.CoresetError):
        face.WeightedPoints(X, np.ones(3), at)
    rows = face.WeightedPoints(X, np.array([0, 1, 2, 3]), np.array([3, 5, 8, 9]))
    assert rows.weights.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert rows.weights.dtype == np.float64


@pytest.mark.parametrize(("n_flat", "unit"), [(0, 1.0), (80, 1e4)])
def test_order__is_by_the_columns_that_vary_most(n_flat: int, unit: float) -> None:
    """Among many columns of noise, and constant ones, two that hold nearly all of the spread."""
    rng = np.random.default_rng(0)
    X: Any = rng.normal(size=(3000, 200 + n_flat)) * 0.01
    X[:, :n_flat] = 1.0
    X[:, [-70, -1]] = 5.0 * rng.normal(size=(3000, 2))
    X *= unit
    q, u = read.lightweight(X, np.ones(3000)), np.ones(3000)
    sums = np.column_stack([X[:, -70], X[:, -1], np.maximum(X[:, -1], 0.0)])
    own, other = [], []
    for seed in range(6):
        c = face.build(X, sample_weight=u, size=150, random_state=seed)
        own.append(np.abs(c.weights @ sums[c.indices] - sums.sum(axis=0)))
        at = np.random.default_rng(seed).choice(3000, 150, p=q)
        other.append(np.abs((1 / (150 * q[at])) @ sums[at] - sums.sum(axis=0)))
    assert np.mean(own) < 0.5 * np.mean(other)


@pytest.mark.parametrize("giant", [1.0, 1e6])
def test_build__block_that_gave_all_rows_of_weight_is_not_read_again(giant: float) -> None:
    """Its rows are certain, though they are fewer than its share of the scores."""
    rng = np.random.default_rng(0)
    X, u = rng.normal(size=(30_000, 2)), rng.uniform(0.5, 1.5, size=30_000)
    u[-30:] = 0.0
    u[-30::2] = 1e6
    u[-2] *= giant
    rows = da.from_array(X, chunks=((29_970, 30), 2))
    c = face.build(rows, sample_weight=u, size=400, method=face.Uniform(), random_state=0)
    assert c.provenance["blocks_read_again"] == 0
    assert len(c) == 400
    assert np.array_equal(c.indices[-15:], np.arange(29_970, 30_000, 2))
    assert np.allclose(c.weights[-15:], u[29_970::2], rtol=1e-12)
    p = read.inclusion(u, 400)
    factors = (c.weights * (p / np.maximum(u, 1e-9))[c.indices])[:-15]
    assert np.ptp(factors) < 1e-6
    assert factors[0] == pytest.approx(1.0, abs=0.02)


def test_build__block_of_just_enough_candidates_is_not_read_again() -> None:
    """Half of the weight, 200 of 20,000 candidates, and 200 of 400 rows."""
    X, u = np.random.default_rng(0).normal(size=(40_000, 2)), np.ones(40_000)
    u[:400] = 99.0
    for more, again in ((0.0, 0), (1.0, 1)):
        u[0] += more
        rows = da.from_array(X, chunks=((400, 39_600), 2))
        c = face.build(rows, sample_weight=u, size=400, method=face.Uniform(), random_state=1)
        assert c.provenance["blocks_read_again"] == again
        assert (c.indices < 400).sum() == pytest.approx(200, abs=10)


def test_scores__whose_sum_overflows_on_one_block_are_an_error() -> None:
    class Infinite(face.Uniform):
        def total_scores(self, local: Any, summary: Any) -> Any:
            found = super().total_scores(local, summary)
            return found * np.inf if found < 0.3 else found

    X = da.from_array(np.random.default_rng(0).normal(size=(400, 2)), chunks=((300, 100), 2))
    for draw in (face.Draw(), face.Draw(passes=2), face.Draw(sampling="multinomial", passes=2)):
        with pytest.raises(face.errors.InvalidInputError, match="overflow"):
            face.build(X, method=Infinite(), size=40, draw=draw, random_state=0)
