"""Advice: chosen by trials, refused where it cannot be given, and honest about uniform samples."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from daskcoreset import advise, build
from daskcoreset.core.blocks import Block
from daskcoreset.core.errors import CoresetError, CoresetWarning
from daskcoreset.core.tables import size_in_bytes
from daskcoreset.core.typing import AnyArray
from daskcoreset.metrics import advice as advisor
from daskcoreset.metrics import advice_intervals as intervals
from daskcoreset.metrics import advice_trials
from daskcoreset.metrics.advice_tasks import TASKS, Candidate, Drawn, block_of
from daskcoreset.objectives import MixtureCost
from daskcoreset.solvers.mixture.model import Mixture, mixture_from_covariances
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


def test_advise__does_not_choose_a_row_that_would_hold_the_cost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Though all its trials were good, by chance."""
    X = np.random.default_rng(0).normal(size=(5000, 2))
    X[7] = 300.0  # no center of its own: one center for all
    cost = advice_trials.Trials._cost

    def lucky(self: Any, candidate: Candidate, trial: int) -> float:
        found = cost(self, candidate, trial)
        return self.least_cost * 1.0001 if candidate.name == "uniform" else 2 * found

    monkeypatch.setattr(advice_trials.Trials, "_cost", lucky)
    advice = advise(X, n_clusters=1, budget=100, random_state=0)
    assert advice.name != "uniform"
    assert "one row would have" in advice.compared[-1].remark
    assert not advice.uniform_is_enough


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
def test_advise__foretells_what_starts_miss() -> None:
    """Where clusters lie apart, five starts leave some of them without a center."""
    rng = np.random.default_rng(0)
    X = 3 * rng.normal(size=(40, 6))[rng.integers(0, 40, 4000)] + rng.normal(size=(4000, 6))
    advice = advise(X, n_clusters=40, budget=800, random_state=0)
    own = next(one.coreset_error for one in advice.compared if one.name == advice.name)
    assert own < 0.6 * advice.error
    task = TASKS["clustering"]
    objective, every = task.objective(40), Block(X, np.ones(len(X)))
    costs = []
    for seed in range(4):
        coreset = build(X, method=advice.method, size=800, n_clusters=40, random_state=seed)
        rows = block_of(coreset)
        solution = task.solve(objective, Drawn(rows), np.random.default_rng(seed))
        costs.append(objective.cost(every, solution))
    best = objective.cost(every, task.solve(objective, Drawn(every), rng))
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


def mixture_of(weights: list[float], means: list[float], variances: list[float]) -> Mixture:
    columns = [np.array(one) for one in (weights, means, variances)]
    return mixture_from_covariances(
        "full", columns[0], columns[1][:, None], columns[2][:, None, None]
    )


@pytest.mark.nightly
def test_mixtures__are_told_apart_by_their_likelihoods() -> None:
    """The cost has a normaliser of each mixture, which is larger where a component is narrow."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=500), 0.01 * rng.normal(size=500)])[:, np.newaxis]
    weights = rng.integers(1, 3, 1000).astype(float)
    fine = mixture_of([0.5, 0.5], [0.0, 0.0], [1.0, 1e-4])
    coarse = mixture_of([0.5, 0.5], [0.0, 0.0], [1.0, 0.5])
    rows, objective, task = Block(X, weights), MixtureCost(2), TASKS["mixture"]
    found = [task.cost(objective, rows, one) for one in (fine, coarse)]
    for cost, spreads in zip(found, [(1.0, 0.01), (1.0, np.sqrt(0.5))], strict=True):
        density = sum(0.5 * stats.norm.pdf(X[:, 0], scale=spread) for spread in spreads)
        assert cost == pytest.approx(-np.log(density) @ weights)
    assert found[0] < found[1]
    assert objective.cost(rows, fine) > objective.cost(rows, coarse)  # the other way round


@pytest.mark.nightly
def test_mixtures__start_from_the_best_one_known() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(300, 1)), 50.0 + rng.normal(size=(300, 1))])
    rows, objective, task = Block(X, np.ones(600)), MixtureCost(2), TASKS["mixture"]
    start = mixture_of([0.5, 0.5], [0.5, 49.5], [1.0, 1.0])
    near = task.solve(objective, Drawn(rows), rng, start)
    assert near.means.ravel() == pytest.approx([X[:300].mean(), X[300:].mean()], abs=1e-6)
    assert near.means[0, 0] < near.means[1, 0]  # in the order of the start
    # From a mixture of another number of components nothing can go on.
    three = task.solve(MixtureCost(3), Drawn(rows), rng, start)
    assert len(three.means) == 3
    few = task.solve(MixtureCost(3), Drawn(rows.take(np.array([0, 599]))), rng, three)
    assert len(few.means) == 2


@pytest.mark.nightly
def test_advise__mixtures_of_sparse_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4)) + np.repeat([0.0, 9.0], 300)[:, np.newaxis]
    asked: Any = {"task": "mixture", "n_clusters": 2, "budget": 100, "random_state": 0}
    sparse, dense = advise(sp.csr_array(X), **asked), advise(X, **asked)
    assert sparse.name == dense.name
    assert sparse.error == pytest.approx(dense.error, rel=0.1)


@pytest.mark.nightly
def test_advise__errors_of_mixtures_are_nats_a_row() -> None:
    """They do not depend on the units of the data, nor on the total of weights."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2)) + np.repeat([0.0, 9.0], 1500)[:, np.newaxis]
    asked: Any = {"task": "mixture", "n_clusters": 2, "budget": 100, "random_state": 0}
    advice = advise(X, **asked)
    assert f"expected error {advice.error:.3g} nats" in repr(advice)
    assert " %" not in repr(advice).split("construction")[1]
    # Eleven parameters on a hundred rows, which are drawn better than independently.
    assert 1e-4 < advice.error < 11 / 2 / 100
    other = advise(1000.0 * X, sample_weight=np.full(3000, 7.0), **asked)
    assert other.error == pytest.approx(advice.error, rel=0.05)
    assert " nats" in advice._repr_html_()


@pytest.mark.nightly
def test_advise__exact_fits_have_no_error() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5))
    advice = advise(X, X @ rng.normal(size=5) + 7.0, task="regression", budget=200, random_state=0)
    assert {one.error for one in advice.compared} == {0.0}
    assert advice.uniform_is_enough


@pytest.mark.nightly
def test_advise__warns_of_mixtures_with_more_parameters_than_rows() -> None:
    X = np.random.default_rng(0).normal(size=(300, 12))
    asked: Any = {"task": "mixture", "n_clusters": 2, "random_state": 0}
    with pytest.warns(CoresetWarning, match="in 12 columns has 181 parameters, more than 180 rows"):
        advise(X, budget=180, **asked)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        advise(X, budget=181, **asked)


@pytest.mark.nightly
@pytest.mark.parametrize("task", ["classification", "svm", "regression"])
def test_advise__warns_of_linear_models_with_more_parameters_than_rows(task: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 40))
    y = X[:, 0] + rng.normal(size=300)
    asked: Any = {"y": y if task == "regression" else y > 0, "task": task, "random_state": 0}
    with pytest.warns(CoresetWarning, match="model in 40 columns has 41 parameters, more than 40 "):
        advise(X, budget=40, **asked)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        advise(X, budget=41, **asked)
        advise(X[:35], **{**asked, "y": asked["y"][:35]})  # all rows


@pytest.mark.nightly
def test_advise__uniform_is_not_enough_where_no_error_is_finite() -> None:
    """Of fewer rows than columns all are fitted exactly, and no coreset of fewer has that fit."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 120)), rng.normal(size=100)
    with pytest.warns(CoresetWarning, match="has 121 parameters"):
        advice = advise(X, y, task="regression", budget=50, random_state=0)
    assert np.isinf(advice.error)
    assert not advice.uniform_is_enough


@pytest.mark.nightly
@pytest.mark.parametrize("budget", [40, 400])
def test_advise__mixtures_of_equal_rows_have_no_error(budget: int) -> None:
    advice = advise(np.ones((500, 3)), task="mixture", n_clusters=3, budget=budget, random_state=0)
    assert [one.error for one in advice.compared] == [0.0, 0.0, 0.0]
    assert advice.high < 1e-9
    assert advice.uniform_is_enough


@pytest.mark.nightly
def test_advise__tells_mixture_coresets_from_uniform_rows_where_these_miss_a_component() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2))
    X[rng.choice(20_000, 60, replace=False)] += [40.0, 0.0]
    advice = advise(X, task="mixture", n_clusters=3, budget=200, random_state=0)
    assert advice.name != "uniform"
    assert not advice.uniform_is_enough
    compared = {one.name: one for one in advice.compared}
    assert compared["uniform"].error > 3 * compared["mixture"].error


@pytest.mark.nightly
def test_advise__the_smallest_size_that_meets_epsilon() -> None:
    X = with_outliers(5000)
    small = advise(X, n_clusters=5, budget=2000, epsilon=0.5, random_state=0)
    assert small.size == 250
    assert small.high <= 0.5
    large = advise(X, n_clusters=5, budget=2000, epsilon=1e-6, random_state=0)
    assert large.size == 2000


@pytest.mark.nightly
def test_advise__of_all_rows_where_the_budget_allows_it() -> None:
    X = np.random.default_rng(0).normal(size=(300, 2))
    advice = advise(X, n_clusters=3, random_state=0)
    assert advice.name == "uniform"
    assert advice.low <= advice.error <= advice.high < 1e-3  # what starts and tolerance leave
    assert {one.coreset_error for one in advice.compared} == {0.0}
    assert advice.uniform_is_enough


@pytest.mark.nightly
def test_advise__takes_a_new_construction_by_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    task = TASKS["regression"]
    tree = Candidate("two reads", {"method": "least_squares", "passes": 2})
    more = replace(task, candidates=(tree, *task.candidates))
    monkeypatch.setitem(TASKS, "regression", more)
    X, y = labelled(2000)
    advice = advise(X, X @ [1.0, 2, 3, 4] + y, task="regression", budget=200, random_state=0)
    assert advice.compared[0].name == "two reads"
    assert advice.compared[0].reads == 2


@pytest.mark.nightly
def test_advise__for_more_clusters_than_rows_that_are_kept() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    with pytest.warns(CoresetWarning, match="fewer rows than clusters"):
        assert advise(X, n_clusters=100, budget=20, random_state=0).error == np.inf


@pytest.mark.nightly
@pytest.mark.parametrize("n_clusters", [20, 50])
def test_advise__of_rows_that_cost_nothing(n_clusters: int) -> None:
    """As many clusters as distinct rows, and labels that are all the same."""
    X = np.repeat(np.random.default_rng(0).normal(size=(20, 3)), 10, axis=0)
    advice = advise(X, n_clusters=n_clusters, budget=100, random_state=0)
    assert 0.0 <= advice.low <= advice.high
    assert advise(X, np.ones(200), task="regression", budget=50, random_state=0).error == 0.0


class Told:
    """Trials of which the errors are known: with the solver's starts, and from the best ones."""

    def __init__(self, **errors: tuple[list[float], list[float]]) -> None:
        self.found = errors

    def errors(self, name: str, *, of_coreset: bool = False) -> AnyArray:
        return np.array(self.found[name][of_coreset])

    unmet: ClassVar[set[str]] = set()

    def least_spread(self) -> float:
        return 0.0

    def error_of_unknown(self) -> float:
        return 0.0


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("first", "other", "chosen", "n_equals"),
    [
        # What a user will see decides, and not a start that no user has.
        (([0.05, 0.06, 0.05], [0.01, 0.01, 0.01]), ([0.02, 0.03, 0.02], [0.03, 0.04, 0.03]), 1, 0),
        # Apart by chance of the starts, the coresets decide; and where these are alike, the order.
        (([0.05, 0.09, 0.04], [0.02, 0.02, 0.02]), ([0.05, 0.05, 0.06], [0.01, 0.01, 0.01]), 1, 2),
        (([0.05, 0.09, 0.04], [0.01, 0.01, 0.01]), ([0.05, 0.05, 0.06], [0.01, 0.01, 0.01]), 0, 2),
    ],
)
def test_advise__by_errors_first_then_by_the_worst_case(
    first: Any, other: Any, chosen: int, n_equals: int
) -> None:
    candidates = [Candidate(name, {"method": name}) for name in ("first", "other")]
    trials: Any = Told(first=first, other=other)
    found, equals = advisor._safest(trials, candidates)
    assert found is candidates[chosen]
    assert len(equals) == n_equals


@pytest.mark.nightly
def test_advise__counts_what_starts_miss_in_trials_of_other_constructions() -> None:
    """By chance all trials of one went well."""
    first, other = (Candidate(name, {"method": name}) for name in ("first", "other"))
    own = [0.001, 0.0012, 0.0011, 0.001]
    far: Any = ([3.0, 2.0, 3.0, 2.0], [1.0, 1.0, 1.0, 1.0])  # near to nothing: of the coreset
    trials: Any = Told(first=(own, own), other=([0.02, 0.09, 0.02, 0.02], [0.02] * 4), far=far)
    trials.task, trials.pilot, trials.n_rows = TASKS["clustering"], range(100), 100
    alone = intervals.interval_of_build(trials, first, np.empty(0), 0.95)
    assert alone[1] < 0.01
    every = (first, other, Candidate("far", {"method": "far"}))
    missed = intervals.missed_by_starts(trials, every)
    assert sorted(missed.round(9)) == [0.0] * 7 + [0.07]
    assert intervals.interval_of_build(trials, first, missed, 0.95)[1] == pytest.approx(
        0.07, rel=0.05
    )
    low, high = intervals.interval_of_build(trials, other, missed, 0.95)
    assert low < 0.02
    assert high >= 0.09
    trials.task = TASKS["regression"]
    assert len(intervals.missed_by_starts(trials, every)) == 0


@pytest.mark.nightly
def test_advise__says_which_constructions_err_alike() -> None:
    X = np.random.default_rng(0).normal(size=(600, 2))
    advice = advise(X, n_clusters=1, budget=60, random_state=0, representatives="rows")
    remarks = {one.name: one.remark for one in advice.compared}
    alike = [name for name, remark in remarks.items() if remark]
    assert len(alike) != 1
    for name in alike:
        expected = "and safer" if name == advice.name else "within chance"
        assert remarks[name].endswith(expected)
        assert remarks[name] in repr(advice)


@pytest.mark.nightly
def test_advise__compares_centroids_where_they_can_be() -> None:
    X = 3 * np.random.default_rng(0).normal(size=(12, 6))[np.arange(1500) % 12]
    X += np.random.default_rng(1).normal(size=X.shape)
    options: dict[str, Any] = {"n_clusters": 12, "random_state": 0}
    advice = advise(X, budget=120, **options)
    errors = {one.name: one.error for one in advice.compared}
    assert errors["centroids"] < 0.7 * errors["kmeans"]
    assert advice.name == "centroids"
    assert build(X, method=advice.method, size=120, **options).of_centroids
    labels = np.arange(len(X)) % 2
    for rows, y, asked in (
        (X, None, "rows"), (X, labels, "auto"), (sp.csr_array(X[:400]), None, "auto")
    ):  # fmt: skip
        among: Any = asked
        only = advise(rows, y, budget=120, **options, representatives=among)
        assert [one.name for one in only.compared] == ["kmeans", "lightweight", "uniform"]
    wrong: Any = "centroids"
    with pytest.raises(CoresetError, match='representatives must be "auto" or "rows"'):
        advise(X, **options, representatives=wrong)


@pytest.mark.nightly
def test_trials__of_a_pilot_correct_for_the_rows_drawn() -> None:
    X = np.random.default_rng(0).normal(size=(50_000, 2))
    pilot = build(X, method="uniform", size=40_000, random_state=0)
    task = TASKS["clustering"]
    trials = advice_trials.Trials(pilot, task, 2, 1000, 10**9, 0)
    # All rows are as good as infinitely many: drawn from the pilot, the variance is so much less.
    assert trials._beyond_pilot("uniform") == pytest.approx(40 / 39, rel=1e-3)
    assert trials._beyond_pilot("centroids") == pytest.approx(2.0, rel=1e-3)
    assert replace(trials, n_rows=len(pilot))._beyond_pilot("centroids") == 1.0


@pytest.mark.nightly
def test_trials__allow_for_a_solution_that_none_of_them_found() -> None:
    """Below the two least of uniform values the end lies within four gaps in four of five cases.

    The share of 4,000 cases deviates by .0063; four of them are a false alarm in 16,000.
    """
    rng = np.random.default_rng(0)
    rows = build(rng.normal(size=(300, 2)), method="uniform", size=200, random_state=0)
    trials = advice_trials.Trials(rows, TASKS["clustering"], 2, 100, 300, 0)
    within = []
    for _ in range(4000):
        found = rng.random(6)
        trials.costs = {"kmeans": found[:3].tolist(), "uniform": found[3:].tolist()}
        within.append(found.min() <= trials.error_of_unknown() * trials.scale)
    assert abs(np.mean(within) - 0.8) < 4 * 0.0063
    trials.costs = {"kmeans": [1.0, np.inf]}
    assert trials.error_of_unknown() == 0.0
    # Of those that ended on all rows, where there are several.
    trials.finalists = [advice_trials.Finalist(9.0, None, ended) for ended in (2.0, None, 1.5)]
    assert trials.error_of_unknown() * trials.scale == pytest.approx(2.0)
    exact = replace(trials.task, by_chance=False)
    trials.costs, trials.task = {"kmeans": [1.0, 2.0]}, exact
    assert trials.error_of_unknown() == 0.0


@pytest.mark.nightly
@pytest.mark.parametrize(("task", "several"), [("clustering", 1), ("mixture", 3)])
def test_trials__go_on_from_the_best_with_all_rows(task: str, several: int) -> None:
    rng = np.random.default_rng(0)
    pilot = build(rng.normal(size=(2500, 3)), method="uniform", size=2000, random_state=0)
    trials = advice_trials.Trials(pilot, TASKS[task], 3, 100, 2500, 0)
    solved = []
    for count in (2, 1):
        trials.run(trials.task.candidates[:2], count)
        costs = sorted(cost for found in trials.costs.values() for cost in found)
        assert [one.cost for one in trials.finalists] == costs[:several]
        ended = [one.ended for one in trials.finalists if one.ended is not None]
        assert len(ended) == several
        assert all(end < cost for end, cost in zip(ended, costs, strict=False))
        assert trials.least_cost <= min(ended)
        solved.append(trials.least_cost)
    assert solved[1] <= solved[0]


@pytest.mark.nightly
@pytest.mark.parametrize("task", ["clustering", "mixture"])
def test_advise__high_ends_allow_for_an_unknown_solution(
    monkeypatch: pytest.MonkeyPatch, task: Any
) -> None:
    X, ends = np.random.default_rng(0).normal(size=(400, 2)), []
    for unknown in (0.0, 7.0):
        monkeypatch.setattr(advice_trials.Trials, "error_of_unknown", lambda _, gap=unknown: gap)
        found = advise(X, task=task, n_clusters=2, budget=80, random_state=0).compared
        ends.append(np.array([(one.low, one.high) for one in found]))
    np.testing.assert_allclose(ends[1] - ends[0], [[0.0, 7.0]] * len(ends[0]))


@pytest.mark.nightly
@pytest.mark.parametrize("budget", [60, 2000])
def test_advise__of_values_too_small_for_squares(budget: int) -> None:
    X = 1e-160 * np.random.default_rng(0).normal(size=(2000, 2))
    with pytest.raises(CoresetError, match="so small that quotients by them do; scale"):
        advise(X, n_clusters=2, budget=budget, random_state=0)


# --- method="auto"


@pytest.mark.nightly
def test_build__by_advice_gives_rows_where_these_are_needed() -> None:
    X, y = labelled(2000)
    options: dict[str, Any] = {"method": "auto", "n_clusters": 5, "size": 100, "random_state": 0}
    for coreset in (build(X, y, **options), build(X, strategy="tree", **options)):
        assert not coreset.of_centroids
        assert "centroids" not in coreset.provenance["advice"]["errors"]


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


@pytest.mark.nightly
@pytest.mark.parametrize("labels", [None, int, float])
def test_build__by_advice_draws_independently_in_the_reads_that_takes(labels: Any) -> None:
    X, y = (with_outliers(5000), None) if labels is None else labelled(3000)
    options: dict[str, Any] = {"size": 200, "random_state": 0, "sampling": "multinomial"}
    if y is None:
        options["n_clusters"] = 5
    else:
        y = y.astype(labels)
    coreset = build(X, y, method="auto", **options)
    record = coreset.provenance
    assert record["sampling"] == "multinomial"
    assert record["method"] not in ("lightweight", "uniform")  # which alone know a bound
    advice = advise(
        X,
        y,
        task=record["advice"]["task"],
        n_clusters=options.get("n_clusters"),
        budget=200,
        random_state=0,
    )
    plain = build(X, y, method=advice.method, passes=2, **options)
    np.testing.assert_array_equal(coreset.points, plain.points)
    assert record["passes"] == plain.provenance["passes"]


@pytest.mark.nightly
def test_build__by_advice_draws_once_where_that_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    X = labelled(2000)[0]
    only = replace(TASKS["clustering"], candidates=TASKS["clustering"].candidates[-1:])
    monkeypatch.setitem(TASKS, "clustering", only)
    coreset = build(X, method="auto", n_clusters=2, size=99, sampling="multinomial", random_state=0)
    assert (coreset.provenance["method"], coreset.provenance["passes"]) == ("uniform", 1)
