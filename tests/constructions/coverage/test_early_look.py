"""Core points foretold: never more than there are, and refused before the search."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest

import daskcoreset
from daskcoreset.constructions.coverage import early_look, search
from daskcoreset.constructions.coverage.cover import Coverage, Strategy
from daskcoreset.constructions.coverage.early_look import estimated
from daskcoreset.constructions.coverage.metric import Metric
from daskcoreset.constructions.coverage.online import online
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.typing import FloatArray
from daskcoreset.testing.tools import CountingArray
from tests.pairs import each

BALLS = Metric(boxes=False)


@pytest.mark.parametrize("strategy", ["online", "farthest"])
def test_build__refuses_early_a_diameter_that_keeps_every_row(
    monkeypatch: pytest.MonkeyPatch, strategy: Strategy
) -> None:
    for first_read in ("_opened", "_summary"):
        monkeypatch.setattr(search.Search, first_read, None)
    X = CountingArray(np.random.default_rng(0).normal(size=(200_000, 20)).astype(np.float32))
    with pytest.raises(InvalidInputError, match="foretold for 200,000 rows") as caught:
        daskcoreset.build(X, method=Coverage(1.0, strategy=strategy), chunks=50_000)
    assert (X.reads == 1).all()
    assert "needs more than 100,000 core points" in str(caught.value)
    assert "they are enough), or size" in str(caught.value)


@pytest.mark.nightly
@pytest.mark.parametrize(("d", "diameter"), [(2, 0.1), (3, 0.2), (10, 3.0), (20, 6.0)])
def test_estimated__is_below_the_number_of_core_points(d: int, diameter: float) -> None:
    rng = np.random.default_rng(d)
    X = rng.normal(size=(20_000, d))
    X[:10_000] = X[:100].repeat(100, axis=0)  # copies, which need no core points
    true = len(online(X, diameter / 2, BALLS, max_points=20_000)[0])
    some = X[rng.choice(20_000, 2000, replace=False)]
    foretold, _ = estimated(some, diameter, BALLS, 20_000)
    assert 0.1 * true < foretold < 1.1 * true


@pytest.mark.nightly
def test_build__refuses_early_a_diameter_that_takes_too_many_distances(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There are 40,000 core points, fewer than there may be, and every row is near to all."""
    monkeypatch.setattr(search.Search, "_opened", None)  # the first read of the search
    rows = np.random.default_rng(0).standard_normal((1_000_000, 20), dtype=np.float32)
    X = CountingArray(rows)
    with pytest.raises(InvalidInputError, match="distances, more than 1e") as caught:
        daskcoreset.build(X, method="coverage", diameter=8.0, chunks=250_000)
    assert (X.reads == 1).all()
    assert "are foretold for 1,000,000 rows" in str(caught.value)
    assert "it is quick), or size" in str(caught.value)


def _far_rows(n: int) -> FloatArray:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 3))
    far = rng.choice(n, n // 80, replace=False)
    X[far] = rng.uniform(-1e6, 1e6, size=(len(far), 3))
    return X


@pytest.mark.nightly
@each(kind=["cauchy", "far rows", "log-normal", "normal"], bounded=[False, True])
def test_build__names_a_diameter_that_does_for_all_rows(
    kind: str, bounded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Core points of heavy tails go on growing, beyond the blocks that were looked at."""
    rng, n, limit = np.random.default_rng(1), 300_000, 1000
    kinds: dict[str, tuple[Callable[[], FloatArray], float]] = {
        "cauchy": (lambda: rng.standard_cauchy((n, 3)), 2.0),
        "far rows": (lambda: _far_rows(n), 0.5),
        "log-normal": (lambda: np.exp(3.0 * rng.normal(size=(n, 4))), 50.0),
        "normal": (lambda: rng.normal(size=(n, 3)), 0.5),
    }
    make, diameter = kinds[kind]
    X = make()
    monkeypatch.setattr(early_look, "_FEW", limit)
    module = sys.modules[Coverage.__module__]  # the package has a function of this name
    monkeypatch.setattr(module, "MAX_POINTS", limit)
    if bounded:
        monkeypatch.setattr(early_look, "MAX_DISTANCES", 1e6)
        monkeypatch.setattr(early_look, "_MAX_COMPARED", 10)
    size = None if bounded else limit
    with pytest.raises(InvalidInputError, match="foretold") as caught:
        daskcoreset.build(X, method="coverage", diameter=diameter, size=size, chunks=5000)
    assert bounded or f"size={limit}" not in str(caught.value)
    wider = float(str(caught.value).split("(at about ")[1].split()[0])
    found = daskcoreset.build(X, method="coverage", diameter=wider, size=size, chunks=5000)
    assert len(found.points) <= limit
