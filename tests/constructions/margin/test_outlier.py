"""The largest margin without k rows: against brute force, and at the promised probability."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskcoreset.constructions.margin.outlier import OutlierMaxMargin
from daskcoreset.core.errors import CoresetWarning, InvalidInputError
from daskcoreset.solvers.hard_margin import hard_margin
from tests.tools.margins import planted


def test_auto__goes_over_to_random_draws() -> None:
    X, y, _, _ = planted(2, 100, 3, 3)
    options: dict[str, Any] = {"max_problems": 30, "random_state": 0, "chunks": 30}
    with pytest.raises(InvalidInputError, match="the exact search needs more"):
        OutlierMaxMargin(3, method="exact", **options).run(X, y)
    with pytest.warns(CoresetWarning, match="draws were made"):
        assert OutlierMaxMargin(3, **options).run(X, y).method == "random"


def test_run__a_class_that_may_vanish() -> None:
    """With one row of a class and k = 1 nothing may be left of it, which is no separator."""
    X = np.array([[0.0], [1.0], [2.0], [3.0], [7.0]])
    found = OutlierMaxMargin(1, intercept=True).run(X, [0, 0, 0, 0, 1])
    assert found.margin == pytest.approx(2.5)
    assert found.outliers.tolist() == [3]
    for seed in range(5):
        with pytest.warns(CoresetWarning, match="draws were made"):
            drawn = OutlierMaxMargin(
                1, intercept=True, method="random", max_problems=2, random_state=seed
            ).run(X, [0, 0, 0, 0, 1])
        assert drawn.margin <= 2.5 + 1e-12


def test_subsets__a_small_margin_needs_larger_subsets() -> None:
    # Of one row alone the third has the largest margin on all, and less than there is.
    z = np.array([[4.0, 0.2], [-4.0, 0.2], [0.004, 0.1]])
    y = np.array([1, -1, 1])
    found = OutlierMaxMargin(0, method="subsets").run(z * y[:, None], y)
    assert found.margin == pytest.approx(hard_margin(z).margin, rel=1e-6)


@pytest.mark.parametrize("method", ["exact", "random"])
def test_outliers__are_numbered_as_in_the_data_where_rows_are_dropped(method: Any) -> None:
    X, y, bad, _ = planted(3, 60, 2, 2)
    clean = OutlierMaxMargin(2, method=method, confidence=0.9, random_state=0).run(X, y)
    assert clean.outliers.tolist() == bad.tolist()
    X, y = np.insert(X, [0, 30], np.nan, axis=0), np.insert(y, [0, 30], 1.0)
    search = OutlierMaxMargin(
        2, method=method, confidence=0.9, random_state=0, chunks=20, on_invalid="drop"
    )
    found = search.run(X, y)
    assert found.outliers.tolist() == [row + 1 + (row >= 30) for row in bad.tolist()]
