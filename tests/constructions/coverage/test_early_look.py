"""Core points foretold: never more than there are, and refused before the search."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import daskcoreset
from daskcoreset.constructions.coverage import early_look, search
from daskcoreset.constructions.coverage.cover import Coverage, Strategy
from daskcoreset.constructions.coverage.early_look import estimated, foretell, grown
from daskcoreset.constructions.coverage.metric import Metric
from daskcoreset.constructions.coverage.online import online
from daskcoreset.core import deadline
from daskcoreset.core.errors import InvalidInputError, OutOfTimeError
from daskcoreset.core.typing import FloatArray
from daskcoreset.inputs.blocks import row_blocks
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
def test_estimated__of_rows_that_are_all_alike() -> None:
    assert estimated(np.ones((500, 3)), 1.0, BALLS, 10**6) == (1.0, 0)


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


@pytest.mark.nightly
def test_build__counts_distances_only_where_nobody_says_how_many_core_points(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(early_look, "MAX_DISTANCES", 1e7)
    monkeypatch.setattr(early_look, "_MAX_COMPARED", 10)
    X = np.random.default_rng(0).normal(size=(120_000, 20))
    with pytest.raises(InvalidInputError, match="distances") as caught:
        daskcoreset.build(X, method="coverage", diameter=14.0)
    allowed = daskcoreset.build(X, method="coverage", diameter=14.0, size=100_000)
    wider = float(str(caught.value).split("(at about ")[1].split()[0])
    assert wider > 14.0
    assert len(daskcoreset.build(X, method="coverage", diameter=wider)) < len(allowed)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("kind", "diameter"),
    [
        ("normal", 8.0), ("normal", 10.0), ("heavy tails", 4.0), ("square", 0.05),
        ("clusters", 2.0), ("2,000 rows copied", 1.0), ("one far row", 10.0),
    ],
)  # fmt: skip
def test_grown__is_within_a_factor_of_two_of_the_number_of_core_points(
    kind: str, diameter: float
) -> None:
    """The lower bound of species is a fifth of it on normal rows."""
    rng, n = np.random.default_rng(0), 100_000
    kinds: dict[str, Callable[[], FloatArray]] = {
        "normal": lambda: rng.normal(size=(n, 20)),
        "heavy tails": lambda: rng.standard_t(2, size=(n, 5)),
        "square": lambda: rng.random((n, 2)),
        "clusters": lambda: (
            rng.normal(size=(100, 20))[rng.integers(100, size=n)] + 0.05 * rng.normal(size=(n, 20))
        ),
        "2,000 rows copied": lambda: rng.normal(size=(2000, 20))[rng.integers(2000, size=n)],
        "one far row": lambda: rng.normal(size=(n, 20)) + 1e6 * (np.arange(n)[:, None] == 7),
    }
    X = kinds[kind]()
    true = len(online(X, diameter / 2, BALLS, max_points=n)[0])
    some = X[rng.choice(n, 8192, replace=False)]
    n_core, compared = grown(some, diameter, BALLS, n)
    assert 0.5 * true < n_core < 2.0 * true
    assert compared <= n_core


@pytest.mark.nightly
def test_foretell__compares_no_more_values_of_many_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def watched(some: Any, *args: Any, **options: Any) -> Any:
        calls.append(len(some) ** 2 * some.shape[1])
        return online(some, *args, **options)

    monkeypatch.setattr(early_look, "online", watched)
    X = np.random.default_rng(1).normal(size=(12_000, 300)).astype(np.float32)
    look = foretell(row_blocks(X), 1e-4, 10_000, BALLS, 16)
    assert look is not None
    assert max(calls) < 1.5 * early_look._COMPARED  # a random number of rows is drawn
    assert len(calls) <= 10
    # However far from the diameter that was asked for, one that does is found.
    assert look.diameter is not None
    assert len(online(X, look.diameter / 2, BALLS, max_points=12_000)[0]) <= 10_000


@pytest.mark.nightly
def test_foretell__ends_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0])
    calls: list[float] = []

    def slow(*args: Any, **options: Any) -> Any:
        calls.append(now[0])
        now[0] += 10.0
        return online(*args, **options)

    monkeypatch.setattr(early_look, "online", slow)
    monkeypatch.setattr(early_look, "_SAMPLE", 2000)
    blocks = row_blocks(np.random.default_rng(1).normal(size=(200_000, 2)))
    monkeypatch.setattr(deadline, "time", clock)
    with (
        deadline.time_limit(25.0),
        pytest.raises(OutOfTimeError, match="diameter=1e-05 is too small"),
    ):
        foretell(blocks, 1e-5, 10_000, BALLS, 16)
    assert calls == [0.0, 10.0, 20.0]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("n_places", "copies", "refused"),
    [
        (9800, 16, False), (9990, 16, False), (11_500, 16, True), (20_000, 16, True),
        # Of few copies there are fewer pairs than of as many rows drawn anew.
        (90_000, 4, False), (99_000, 4, False), (150_000, 4, True), (95_000, 2, False),
    ],
)  # fmt: skip
def test_foretell__refuses_copies_of_places_where_these_are_too_many(
    n_places: int, copies: int, refused: bool
) -> None:
    limit = 10_000 if copies == 16 else 100_000
    places = np.stack([10.0 * np.arange(n_places), np.zeros(n_places)], axis=1)
    order = np.random.default_rng(0).permutation(copies * n_places)
    look = foretell(row_blocks(np.repeat(places, copies, axis=0)[order]), 2.0, limit, BALLS, 16)
    assert (look is not None) == refused
    if look is not None:
        assert limit < look.n_core <= n_places


@pytest.mark.nightly
@pytest.mark.statistical
@pytest.mark.parametrize("n_drawn", [100, 300, 2000])
def test_estimated__exceeds_the_number_of_places_by_chance_alone_where_it_is_not_safe(
    n_drawn: int,
) -> None:
    """Each of two limits fails with a chance of 1e-4: five times in 400 with one of 3e-8."""
    rng = np.random.default_rng(n_drawn)
    above = {False: 0, True: 0}
    for _ in range(400):
        rows = rng.integers(1000, size=(rng.poisson(n_drawn), 1)).astype(np.float64)
        for safe in above:
            above[safe] += estimated(rows, 0.5, BALLS, 10**9, safe=safe)[0] > 1000.0
    assert above[False] > 100
    assert above[True] < 5


@pytest.mark.nightly
@pytest.mark.parametrize("n", [150, 2000])
def test_estimated__of_rows_that_are_all_alone_is_safe_by_their_pairs(n: int) -> None:
    rows = np.arange(float(n))[:, np.newaxis]
    safe, plain = (estimated(rows, 0.5, BALLS, 10**12, safe=safe)[0] for safe in (True, False))
    # With so many places there is no pair with a chance of 1e-4.
    n_places = n * n / 2 / np.log(1e4)
    assert 0.5 * n_places < safe < n_places + n < plain


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
