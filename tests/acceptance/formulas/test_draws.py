"""Draws from blocks of unlike shares, of unknown length, and of growing size."""

from __future__ import annotations

import math
import warnings
from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tests.acceptance import face
from tests.acceptance.tools import readings as read
from tests.acceptance.tools.counting import CountingArray
from tests.acceptance.tools.plain import PlainLogistic


def of_unknown_length(X: Any, u: Any, chunks: Any) -> tuple[Any, Any]:
    kept = da.from_array(np.ones(len(X), dtype=bool), chunks=(chunks,))
    return (
        da.from_array(X, chunks=(chunks, X.shape[1]))[kept],
        da.from_array(u, chunks=(chunks,))[kept],
    )


@pytest.mark.parametrize("sampling", ["systematic", "multinomial"])
def test_build__of_blocks_of_unknown_length(sampling: Any) -> None:
    """All rows with their own weights if they are no more than `size`, and as many as it if not."""
    rng = np.random.default_rng(0)
    X, u = rng.normal(size=(900, 3)) * 5.0, rng.uniform(0.1, 3.0, size=900)
    rows, weights = of_unknown_length(X, u, (500, 100, 300))
    draw = face.Draw(sampling=sampling, passes=1 if sampling == "systematic" else 2)
    for size in (900, 10**9):
        with pytest.warns(face.CoresetWarning):
            c = face.build(rows, sample_weight=weights, size=size, draw=draw, random_state=0)
        assert np.array_equal(c.indices, np.arange(900))
        assert np.array_equal(c.weights, u)
        assert np.array_equal(c.points, X)
        assert c.provenance["complete"]
    c = face.build(rows, sample_weight=weights, size=899, draw=draw, random_state=0)
    assert not c.provenance["complete"]
    c = face.build(rows, sample_weight=weights, size=80, draw=draw, random_state=0)
    q = read.lightweight(X, u)
    p = read.inclusion(q, 80) if sampling == "systematic" else 80 * q
    counts = c.weights * (p / u)[c.indices]
    assert np.allclose(counts, counts.round(), rtol=1e-6)
    assert counts.sum() == pytest.approx(80)
    assert np.array_equal(c.points, X[c.indices])


def test_build__of_unknown_length_reads_again_what_is_not_there() -> None:
    """All rows are taken, of which the long block gave a part."""
    rng = np.random.default_rng(0)
    X, u = rng.normal(size=(6000, 2)), rng.uniform(0.1, 3.0, size=6000)
    rows, weights = of_unknown_length(X, u, (60,) * 5 + (5400,) + (60,) * 5)
    with pytest.warns(face.CoresetWarning):
        c = face.build(rows, sample_weight=weights, size=6000, random_state=0)
    assert c.provenance["blocks_read_again"] == 1
    assert np.array_equal(c.indices, np.arange(6000))
    assert np.array_equal(c.weights, u)
    assert np.array_equal(c.points, X)


@pytest.mark.parametrize("passes", [1, 2])
def test_build__of_one_giant_row_leaves_candidates_of_other_blocks(passes: Any) -> None:
    """A row of nearly all the weight is certain, and all others share what is left of `size`."""
    rng = np.random.default_rng(0)
    X, u = rng.normal(size=(30_000, 2)), rng.uniform(0.5, 1.5, size=30_000)
    u[5] = 1e9
    c = face.build(
        da.from_array(X, chunks=((10_000, 15_000, 5_000), 2)), sample_weight=u, size=3000,
        method=face.Uniform(), draw=face.Draw(passes=passes), random_state=0,
    )  # fmt: skip
    assert len(c) == 3000
    assert c.weights[c.indices == 5].tolist() == [1e9]
    p = read.inclusion(u, 3000)
    factors = (c.weights * (p / u)[c.indices])[c.indices != 5]
    assert np.ptp(factors) < 1e-6
    assert factors[0] == pytest.approx(1.0, abs=0.02)
    found = np.histogram(c.indices, [0, 10_000, 25_000, 30_000])[0]
    assert np.abs(found - [1000, 1500, 500]).max() < 60


@pytest.mark.parametrize("passes", [1, 2])
def test_build__of_many_rows_has_as_many_as_were_asked_for(passes: Any) -> None:
    """More than the candidates that are enough for a small coreset."""
    rng = np.random.default_rng(0)
    X, u = rng.normal(size=(70_000, 1)), rng.uniform(0.5, 1.5, size=70_000)
    c = face.build(
        da.from_array(X, chunks=(30_000, 1)), sample_weight=u, size=21_000, method=face.Uniform(),
        draw=face.Draw(passes=passes), random_state=0,
    )  # fmt: skip
    assert len(c) == 21_000
    assert np.allclose(c.weights, (u / read.inclusion(u, 21_000))[c.indices], rtol=0.02)


def test_build__normalised_of_all_rows_keeps_their_weights() -> None:
    """To the bit, though the sum of blocks differs from that of all rows by rounding."""
    rng = np.random.default_rng(0)
    draw = face.Draw(normalize=True)
    for n in range(60, 90):
        X, u = rng.normal(size=(n, 2)), rng.uniform(0.1, 3.0, size=n) / 7.0
        with pytest.warns(face.CoresetWarning):
            c = face.build(X, sample_weight=u, size=n, draw=draw, chunks=17)
        assert np.array_equal(c.weights, u)
        part = face.build(X, sample_weight=u, size=n - 1, draw=draw, chunks=17, random_state=0)
        assert part.weights.sum() == pytest.approx(u.sum(), rel=1e-12)


def test_build__of_all_rows_is_complete_and_holds_no_view_of_them() -> None:
    rng = np.random.default_rng(0)
    X, u = rng.normal(size=(60, 2)), rng.uniform(0.5, 2.0, size=60)
    before = X.copy(), u.copy()
    for size in (60, 10**6):
        with pytest.warns(face.CoresetWarning):
            c = face.build(X, sample_weight=u, size=size, method="lightweight", random_state=0)
        X *= 7.0
        u *= 7.0
        assert c.provenance["complete"]
        assert np.array_equal(c.points, before[0])
        assert np.array_equal(c.weights, before[1])
        X[:], u[:] = before


@pytest.mark.parametrize("normalize", [False, True])
def test_grow__is_the_union_of_two_builds_that_agree(normalize: bool) -> None:
    """Rebuilt from the recorded seeds; each with half its weights, a row of both once."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 2)) + 8.0 * rng.integers(0, 3, size=(9000, 1))
    u = rng.uniform(0.5, 2.0, size=9000)
    options: dict[str, Any] = {"sample_weight": u, "draw": face.Draw(normalize=normalize)}
    c = face.grow(X, n_clusters=3, epsilon=0.3, delta=0.2, random_state=4, **options)
    rule = c.provenance["size_rule"]
    assert (rule["rule"], rule["agreed"], rule["n_clusters"]) == ("auto", True, 3)
    assert (rule["epsilon"], rule["delta"], rule["size"]) == (0.3, 0.2, 1000)
    assert c.provenance["size"] == 2000
    assert c.provenance["m"] == len(c)
    wanted = np.zeros(9000)
    assert len(set(rule["seeds"])) == 2
    for seed in rule["seeds"]:
        half = face.build(X, n_clusters=3, size=1000, random_state=seed, **options)
        wanted[half.indices] += half.weights / 2
    assert np.array_equal(c.indices, np.flatnonzero(wanted))
    assert np.allclose(c.weights, wanted[c.indices], rtol=1e-12)
    assert np.array_equal(c.points, X[c.indices])
    (step,) = rule["steps"]
    seedings = next(t for t in range(1, 99) if 0.8**t <= 0.2)
    assert step["solutions"] == 2 + 1 + seedings
    assert step["reads"] == half.provenance["passes"] + 1
    assert 0.0 < step["disagreement"] <= 0.3
    assert 0.0 < step["on_data"] <= 0.3


@pytest.mark.parametrize("passes", [1, 2])
def test_grow__records_the_reads_of_every_step(passes: Any) -> None:
    rng = np.random.default_rng(0)
    rows = CountingArray(rng.normal(size=(9000, 2)) * np.exp(rng.normal(size=(9000, 1))))
    options: dict[str, Any] = {"random_state": 4, "draw": face.Draw(passes=passes)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", face.CoresetWarning)
        c = face.grow(rows.lazy(3000), n_clusters=3, epsilon=0.002, **options)
    steps = c.provenance["size_rule"]["steps"]
    assert len(steps) > 1
    assert set(rows.reads) == {sum(step["reads"] for step in steps)}


def test_grow__doubles_up_to_half_the_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3)) * np.exp(rng.normal(size=(5000, 1)))
    with pytest.warns(face.CoresetWarning, match="epsilon"):
        c = face.grow(X, n_clusters=4, epsilon=1e-4, delta=0.5, random_state=0)
    rule = c.provenance["size_rule"]
    assert not rule["agreed"]
    assert [step["size"] for step in rule["steps"]] == [1000, 2000, 2500]
    for step in rule["steps"]:
        assert step["solutions"] >= 1
        assert max(step["disagreement"], step.get("on_data", 0.0)) > 1e-4
        assert "on_data" in step or step["disagreement"] > 1e-4
    c = face.grow(X, n_clusters=60, epsilon=0.5, delta=0.5, random_state=0)
    assert c.provenance["size_rule"]["steps"][0]["size"] == 20 * 60
    equal = np.ones((3000, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", face.CoresetWarning)
        c = face.grow(equal, n_clusters=2, epsilon=0.1, delta=0.1, random_state=0)
    assert c.provenance["size_rule"]["agreed"]
    assert math.isclose(c.weights.sum(), 3000.0, rel_tol=0.2)
    with pytest.raises(face.errors.InvalidInputError, match="delta"):
        face.grow(X, n_clusters=2, delta=1e-9)


@pytest.mark.parametrize("weights", ["alike", "unlike"])
def test_build__sums_err_less_than_of_independent_draws(weights: str) -> None:
    """Neighbours are alike along the order of the draw: a third of the error for smooth sums."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3)) * [1.0, 4.0, 0.2]
    u = np.ones(4000) if weights == "alike" else rng.uniform(0.5, 2.0, size=4000)
    sums = np.column_stack([np.ones(4000), X[:, :2], (X**2).sum(axis=1), np.maximum(X[:, 1], 0)])
    q, total = read.lightweight(X, u), u @ sums
    own, other = [], []
    for seed in range(12):
        c = face.build(X, sample_weight=u, size=150, random_state=seed)
        own.append(np.abs(c.weights @ sums[c.indices] - total))
        at = np.random.default_rng(seed).choice(4000, 150, p=q)
        other.append(np.abs((u[at] / (150 * q[at])) @ sums[at] - total))
    ratio = np.mean(own, axis=0) / np.mean(other, axis=0)
    assert ratio.mean() < 0.35
    assert ratio.max() < 0.6


def test_calibration__takes_most_of_the_error_near_the_best_model() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6000, 5))
    y = (X[:, 0] + rng.logistic(size=6000) > 0.5).astype(int)
    best = LogisticRegression(C=1e3).fit(X, y)

    def costs(P: Any, labels: Any, w: Any) -> Any:
        margins = np.where(labels == 1, 1.0, -1.0) * best.decision_function(P)
        return [w @ np.log1p(np.exp(-scale * margins)) for scale in (0.8, 1.0, 1.2)]

    exact, errors = np.array(costs(X, y, np.ones(6000))), []
    for method in (PlainLogistic(), face.Logistic()):
        found = []
        for seed in range(8):
            c = face.build(X, y, method=method, size=300, random_state=seed)
            found.append(np.abs(costs(c.points, c.labels, c.weights) / exact - 1.0))
        errors.append(np.mean(found))
    assert errors[1] < 0.05 * errors[0]


@pytest.mark.parametrize("unit", [2.0**-700, 2.0**-60, 2.0**60, 2.0**700])
def test_inclusion__is_the_same_in_any_unit_of_weight(unit: float) -> None:
    """With rows that are certain, beside one that is nearly so, and rows of no weight."""
    rng = np.random.default_rng(0)
    X, u = rng.normal(size=(800, 2)), rng.uniform(0.5, 1.5, size=800)
    u[[3, 500, 501]] = 4000.0, 90.0, 25.0
    u[::9] = 0.0
    for method in (face.Uniform(), face.Lightweight()):
        plain, scaled = (
            face.build(X, sample_weight=w, method=method, size=40, random_state=0)
            for w in (u, u * unit)
        )
        assert np.array_equal(plain.indices, scaled.indices)
        assert np.allclose(scaled.weights / unit, plain.weights, rtol=1e-9)
        assert len(plain) == 40
        assert plain.weights[plain.indices == 3].tolist() == [4000.0]
        assert (u[plain.indices] > 0.0).all()
