"""Moments against exact arithmetic, in any bracketing, dense and sparse."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from daskcoreset.core.block import Block
from daskcoreset.core.moments import Moments, merge_moments, moments_of
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.testing import row_sets

EPS = float(np.finfo(np.float64).eps)


def exact_moments(points: AnyArray, u: FloatArray) -> tuple[float, list[float], list[float]]:
    """Moments in rational arithmetic, rounded at the very end."""
    weights = [Fraction(value) for value in u.tolist()]
    total = sum(weights, Fraction(0))
    means, m2s = [], []
    for column in points.T.tolist():
        values = [Fraction(value) for value in column]
        mean = sum((w * x for w, x in zip(weights, values, strict=True)), Fraction(0)) / total
        square = sum(
            (w * (x - mean) ** 2 for w, x in zip(weights, values, strict=True)), Fraction()
        )
        means.append(float(mean))
        m2s.append(float(square))
    return float(total), means, m2s


def joined(blocks: list[Block]) -> tuple[Any, FloatArray]:
    points = np.concatenate([np.asarray(block.points) for block in blocks])
    return points, np.concatenate([block.weights for block in blocks])


def bracketed(parts: list[Moments], rng: np.random.Generator) -> Moments:
    """Merge neighbours in a random order of operations."""
    parts = list(parts)
    while len(parts) > 1:
        i = int(rng.integers(len(parts) - 1))
        parts[i : i + 2] = [merge_moments(parts[i], parts[i + 1])]
    return parts[0]


def assert_close(found: Moments, points: AnyArray, u: FloatArray, unstored: Any = False) -> None:
    weight, mean, m2 = exact_moments(points, u)
    counted = points[u > 0]
    largest = np.abs(counted).max(axis=0).astype(float)
    assert found.count == len(points)
    assert found.weight == pytest.approx(weight, rel=1e-13)
    assert (np.abs(found.mean - mean) <= 32 * EPS * largest).all()
    # A mean that is rounded, as it must be, moves M2 by the square root of its size times that.
    rounding = 32 * EPS * largest * np.sqrt(weight * np.array(m2))
    rounding += weight * (32 * EPS * largest) ** 2 * (counted != counted[0]).any(axis=0)
    # The weight of the zeros of a column is what remains of the whole: rounded as that is.
    rounding += 8 * EPS * weight * largest**2 * unstored
    assert (np.abs(found.m2 - m2) <= 1e-12 * np.array(m2) + rounding).all()
    assert found.quantization_error == pytest.approx(math.fsum(found.m2.tolist()), rel=1e-14)


@given(blocks=row_sets(), seed=st.integers(0, 99))
def test_merge_moments__any_bracketing_is_exact(blocks: list[Block], seed: int) -> None:
    parts = [moments_of(block.points, block.weights) for block in blocks]

    assert_close(bracketed(parts, np.random.default_rng(seed)), *joined(blocks))
    assert_close(reduce(merge_moments, parts), *joined(blocks))
