"""Core points foretold: never more than there are, and refused before the search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import daskcoreset
from daskcoreset.constructions.coverage import early_look, search
from daskcoreset.constructions.coverage.early_look import estimated
from daskcoreset.constructions.coverage.metric import Metric
from daskcoreset.constructions.coverage.online import online
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.testing.tools import CountingArray

BALLS = Metric(boxes=False)


def test_build__refuses_early_a_diameter_that_keeps_every_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search.Search, "_opened", None)  # the first read of the search
    X = CountingArray(np.random.default_rng(0).normal(size=(200_000, 20)).astype(np.float32))
    with pytest.raises(InvalidInputError, match="foretold for 200,000 rows") as caught:
        daskcoreset.build(X, method="coverage", diameter=1.0, chunks=50_000)
    assert (X.reads == 1).all()
    assert "needs more than 100,000 core points" in str(caught.value)
    assert "they are enough), or size" in str(caught.value)


@pytest.mark.parametrize(("size", "looks"), [(None, True), (200_000, False), (5000, False)])
def test_build__looks_only_where_there_is_something_to_foretell(
    size: int | None, looks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[int] = []
    sampled = early_look._sampled

    def watched(block: Any, index: int, *args: Any, **options: Any) -> Any:
        drawn.append(index)
        return sampled(block, index, *args, **options)

    monkeypatch.setattr(early_look, "_sampled", watched)
    X = np.random.default_rng(0).random((150_000, 2))
    found = daskcoreset.build(X, method="coverage", diameter=0.1, size=size, chunks=30_000)
    assert sorted(drawn) == ([0, 1, 2, 3, 4] if looks else [])
    assert len(found.points) < 1000


@pytest.mark.parametrize(("d", "diameter"), [(2, 0.1), (3, 0.2), (10, 3.0), (20, 6.0)])
def test_estimated__is_below_the_number_of_core_points(d: int, diameter: float) -> None:
    rng = np.random.default_rng(d)
    X = rng.normal(size=(20_000, d))
    X[:10_000] = X[:100].repeat(100, axis=0)  # copies, which need no core points
    true = len(online(X, diameter / 2, BALLS, max_points=20_000)[0])
    some = X[rng.choice(20_000, 2000, replace=False)]
    foretold, _ = estimated(some, diameter, BALLS, 20_000)
    assert 0.1 * true < foretold < 1.1 * true


def test_estimated__of_rows_that_are_all_alike() -> None:
    assert estimated(np.ones((500, 3)), 1.0, BALLS, 10**6) == (1.0, 0)
