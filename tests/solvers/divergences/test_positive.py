"""Divergences of positive rows, and their domains."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from daskcoreset.errors import InvalidInputError
from daskcoreset.solvers.divergences import ItakuraSaito, KullbackLeibler


def test_between__overflows_only_to_infinity() -> None:
    found = ItakuraSaito().between(np.array([[1e300]]), np.array([1e-300]))

    assert found[0] == np.inf


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        ([0.0, 1.0], [1.0, 1.0], r"low is 0\.0 and high 1\.0 in column 0"),
        ([1.0, 3.0], [1.0, 2.0], r"low is 3\.0 and high 2\.0 in column 1"),
        ([1.0, np.nan], [1.0, 2.0], "low is nan"),
        ([1.0], [np.inf], "high inf in column 0"),
        ([1.0, 1.0], [1.0], r"low has shape \(2,\) and high \(1,\)"),
        ([[1.0]], [[1.0]], r"low has shape \(1, 1\)"),
        ([1e-200], [1.0], "no float64 holds the factor"),
        ([1e-100], [1e100], "no float64 holds the factor"),
    ],
)
def test_dominating__refuses_a_box_outside_the_domain(low: Any, high: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        ItakuraSaito().dominating(low, high)
    with pytest.raises(InvalidInputError, match=message):
        ItakuraSaito().similarity(low, high)


def test_check_domain__counts_the_zeros_of_sparse_rows() -> None:
    points = sp.csr_array(np.array([[1.0, 2.0], [3.0, 0.0]]))

    assert KullbackLeibler().check_domain(points) == 1
    problem = KullbackLeibler().find_invalid_row(points, "points")
    assert problem is not None
    assert str(problem.error(0)).startswith("points is 0.0 in column 1 at row 1, and the ")
    assert "add a constant to data with zeros" in str(problem.error(0))
