"""How large: the bounds of the papers, and growing until two coresets agree."""

from __future__ import annotations

import math

import pytest

from daskcoreset.metrics.sizing import theory_size


def test_theory_size__is_the_formula() -> None:
    expected = (7 * 20 * math.log(20) + math.log(20)) / 0.1**2
    assert theory_size(20, 7, epsilon=0.1, delta=0.05) == math.ceil(expected)
    strong = theory_size(20, 7, epsilon=0.1, delta=0.05, method="kmeans")
    assert strong == math.ceil(400 * expected)


def test_theory_size__scales_as_the_theorem_says() -> None:
    base = theory_size(50, 10, epsilon=0.1, delta=0.1)
    assert theory_size(50, 10, epsilon=0.05, delta=0.1) == pytest.approx(4 * base, rel=1e-3)
    assert theory_size(50, 10, epsilon=0.1, delta=0.1, constant=3.0) == pytest.approx(
        3 * base, rel=1e-3
    )
    assert theory_size(50, 10, epsilon=0.1, delta=0.01) > base


def test_theory_size__one_center_still_needs_rows_for_its_columns() -> None:
    assert theory_size(1, 100, epsilon=0.1, delta=0.1) > 5 * theory_size(
        1, 10, epsilon=0.1, delta=0.1
    )
