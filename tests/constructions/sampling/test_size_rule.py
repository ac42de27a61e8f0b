"""The rule for the rows that are taken if no size is given."""

from __future__ import annotations

import pytest

from daskcoreset.constructions.sampling.size_rule import SizeRule


@pytest.mark.parametrize(
    ("shape", "k", "rows"),
    [
        ((100_000, 2), 100, (100_000, 100_000)),
        ((100_000, 2), 501, (50_100, 100_200)),
        ((100_001, 2), 8, (10_000, 20_000)),
        ((60_000, 170), 8, (10_000, 20_000)),
    ],
)
def test_rule__in_rows_columns_and_clusters(
    shape: tuple[int, int], k: int, rows: tuple[int, int]
) -> None:
    of_build = SizeRule(max(10_000, 100 * k), k)
    of_model = SizeRule(max(20_000, 200 * k), k, several_runs=True)
    assert (of_build.rows(*shape), of_model.rows(*shape)) == rows
