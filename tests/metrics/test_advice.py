"""Advice: chosen by trials, refused where it cannot be given, and honest about uniform samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskcoreset import advise, build
from daskcoreset.core.blocks import Block
from daskcoreset.core.tables import size_in_bytes
from daskcoreset.core.typing import AnyArray
from daskcoreset.metrics import advice as advisor
from daskcoreset.metrics.advice_tasks import TASKS, Drawn, block_of
from daskcoreset.testing.tools import CountingArray


@pytest.fixture(autouse=True)
def few_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """The choice of so many takes a second or two of every test."""
    monkeypatch.setattr(advisor, "_TRIALS", 3)
    monkeypatch.setattr(advisor, "_MOST_TRIALS", 3)


def with_outliers(n: int, d: int = 4) -> AnyArray:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    X[rng.choice(n, 3, replace=False)] += 1e4 * np.eye(d)[:3]
    return X


def labelled(n: int) -> tuple[AnyArray, AnyArray]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 4))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 1.0, 1, -1)


def test_advise__never_a_uniform_sample_where_few_rows_hold_the_cost() -> None:
    advice = advise(with_outliers(5000), n_clusters=5, budget=500, random_state=0)
    assert advice.name != "uniform"
    assert not advice.uniform_is_enough
    compared = {one.name: one for one in advice.compared}
    assert compared["uniform"].error > 10 * compared["kmeans"].error


@pytest.mark.nightly
def test_advise__says_that_uniform_is_enough_for_large_clusters() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 2)) + 20 * rng.integers(0, 4, size=(5000, 1))
    advice = advise(X, n_clusters=4, budget=1000, random_state=1)
    found = {one.name: one.error for one in advice.compared}
    assert advice.uniform_is_enough == (found["uniform"] <= 1.05 * advice.error)
    assert advice.error < 0.02
    assert ("is enough" in repr(advice)) == advice.uniform_is_enough


@pytest.mark.nightly
def test_advise__of_fewer_rows_than_the_size_takes_all() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    advice = advise(X, n_clusters=2, budget=1000, random_state=0)
    assert f"{advice.name}, all of 60 rows, expected error 0 %" in repr(advice)


@pytest.mark.nightly
@pytest.mark.parametrize("n", [4000, 12_000])
def test_advise__reads_once_and_foretells_the_error(
    n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advisor, "_PILOT", 5000)
    rows = with_outliers(n)
    X = CountingArray(rows)
    advice = advise(X, n_clusters=5, budget=500, random_state=0, chunks=3000)
    assert (X.reads == 1).all()
    assert advice.pilot_rows == min(n, 5000)
    assert advice.n_rows == n
    every = Block(rows, np.ones(n))
    task = TASKS["clustering"]
    objective = task.objective(5)
    costs = []
    for seed in range(4):
        coreset = build(rows, method=advice.method, size=500, n_clusters=5, random_state=seed)
        solution = task.solve(objective, Drawn(block_of(coreset)), np.random.default_rng(seed))
        costs.append(objective.cost(every, solution))
    best = objective.cost(every, task.solve(objective, Drawn(every), np.random.default_rng(0)))
    errors = np.array(costs) / min(best, *costs) - 1.0
    assert np.mean(errors <= advice.high) >= 0.75


@pytest.mark.nightly
@pytest.mark.parametrize("task", ["mixture", "classification", "svm", "regression"])
def test_advise__for_every_task(task: Any) -> None:
    X, y = labelled(1500)
    parts = 2 if TASKS[task].clusters else None
    with_labels = y if TASKS[task].labels else None
    advice = advise(X, with_labels, task=task, n_clusters=parts, budget=300, random_state=0)
    assert [one.name for one in advice.compared] == [one.name for one in TASKS[task].candidates]
    assert 0.0 <= advice.low <= advice.error <= advice.high
    assert advice.reads == advice.plan.reads >= 1
    assert advice.bytes_read == advice.reads * (
        X.nbytes + (y.nbytes if with_labels is not None else 0)
    )
    cost = f"{size_in_bytes(advice.bytes_read)} in all, about {advice.seconds:.2g} s"
    assert cost in repr(advice)
    assert cost in advice._repr_html_()
    table = advice._repr_html_()
    assert all(one.name in table for one in advice.compared)
    again = advise(X, with_labels, task=task, n_clusters=parts, budget=300, random_state=0)
    assert again.compared == advice.compared


@pytest.mark.nightly
def test_advise__the_smallest_size_that_meets_epsilon() -> None:
    X = with_outliers(5000)
    small = advise(X, n_clusters=5, budget=2000, epsilon=0.5, random_state=0)
    assert small.size == 250
    assert small.high <= 0.5
    large = advise(X, n_clusters=5, budget=2000, epsilon=1e-6, random_state=0)
    assert large.size == 2000


# --- method="auto"


@pytest.mark.nightly
def test_build__by_advice_is_the_build_by_the_method_advised() -> None:
    X = with_outliers(5000)
    coreset = build(X, method="auto", n_clusters=5, size=300, random_state=3)
    advice = advise(X, n_clusters=5, budget=300, random_state=3)
    plain = build(X, method=advice.method, n_clusters=5, size=300, random_state=3)
    np.testing.assert_array_equal(coreset.indices, plain.indices)
    assert coreset.provenance["advice"]["chosen"] == advice.name
    assert len(coreset.provenance["advice"]["errors"]) == 4


@pytest.mark.nightly
@pytest.mark.parametrize(("kind", "task"), [(int, "classification"), (float, "regression")])
def test_build__by_advice_takes_the_task_from_the_labels(kind: Any, task: str) -> None:
    X, y = labelled(2000)
    for labels in (y.astype(kind), y.astype(kind).tolist()):
        coreset = build(X, labels, method="auto", size=200, random_state=0)
        assert coreset.provenance["advice"]["task"] == task
