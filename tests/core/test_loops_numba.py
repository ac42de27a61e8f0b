"""The walk of systematic draws takes the rows that its points meet."""

from __future__ import annotations

import numpy as np
import pytest

from daskcoreset.core.sampling import systematic_walk


def test_systematic_walk__certain_rows_are_all_taken() -> None:
    for uniform in (0.0, 0.1, 0.5, 1.0 - 1e-12):
        for lead in ([], [0.3], [0.3, 0.0, 0.3]):
            inclusion = np.array([*lead, *np.ones(50)])
            rows = systematic_walk(inclusion, np.full(52, uniform))
            assert set(range(len(lead), len(inclusion))) <= set(rows.tolist())


def test_systematic_walk__no_row_without_a_share_where_rounding_ends_a_unit() -> None:
    # From the second row on they add up to a little less than one, and with a certain row to two.
    inclusion = np.array([1.0, 0.3, 0.3, 0.1, 0.2, 0.1, 1.0, 0.0, 0.2, 0.7, 0.0])
    assert inclusion[1:6].cumsum()[-1] < 1.0
    assert inclusion[1:7].cumsum()[-1] == 2.0
    uniforms = np.array([0.75, np.nextafter(1.0, 0.0), 0.25, 0.5])
    assert systematic_walk(inclusion, uniforms).tolist() == [0, 6, 8, 9]


@pytest.mark.parametrize(
    ("inclusion", "uniforms", "rows"),
    [
        ([0.5, 0.5 - 1e-12], [1.0 - 1e-13], [1]),  # a whole number, but for rounding
        ([0.5, 0.5 + 1e-12], [0.1, 0.0], [0]),
        ([0.5, 0.5 + 1e-12], [0.1], [0]),
        ([0.5, 0.25], [0.8], []),
        ([0.0, 0.0], [0.0], []),
        ([], [0.0], []),
    ],
)
def test_systematic_walk__ends(
    inclusion: list[float], uniforms: list[float], rows: list[int]
) -> None:
    assert systematic_walk(np.array(inclusion), np.array(uniforms)).tolist() == rows
