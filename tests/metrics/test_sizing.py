"""How large: the bounds of the papers, and growing until two coresets agree."""

from __future__ import annotations

import math
from typing import Any

import pytest

from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
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


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"n_clusters": 0}, InvalidInputError, "n_clusters must be at least 1, got 0"),
        ({"n_features": 2.5}, InvalidTypeError, "n_features must be an integer, got 2.5"),
        ({"epsilon": 0}, InvalidInputError, "epsilon must lie between 0 and 1, got 0"),
        ({"delta": 1.0}, InvalidInputError, "delta must lie between 0 and 1, got 1.0"),
        ({"delta": "no"}, InvalidTypeError, "delta must be a number"),
        ({"constant": -1}, InvalidInputError, "constant must lie between 0 and inf"),
        ({"method": "uniform"}, InvalidInputError, "'uniform' has no bound .* 'lightweight'"),
    ],
)
def test_theory_size__refuses(change: dict[str, Any], error: type[Exception], message: str) -> None:
    good: dict[str, Any] = {"n_clusters": 3, "n_features": 2, "epsilon": 0.1, "delta": 0.1}
    with pytest.raises(error, match=message):
        theory_size(**(good | change))
