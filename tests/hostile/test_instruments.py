"""Intervals, agreements and `converged_` on instances that are made to fool them."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse
import scipy.special
import scipy.stats
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture

import daskcoreset
from daskcoreset.core.blocks import Block
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import CoresetWarning, InvalidInputError, InvalidTypeError
from daskcoreset.core.typing import FloatArray
from daskcoreset.datasets import load_bundled
from daskcoreset.estimators import CoresetGaussianMixture, CoresetKMeans, CSVRGClassifier
from daskcoreset.metrics import advice_intervals as intervals
from daskcoreset.metrics.advice_tasks import TASKS, block_of, of_all_classes
from daskcoreset.metrics.costs import kmeans_cost
from daskcoreset.metrics.sizing import auto_size
from daskcoreset.objectives import LinearClassifier, LinearCost, MixtureCost, QuantizationError
from daskcoreset.sensitivities import Lightweight, SamplingDesign
from tests.tools.threads import one_thread

__all__ = ["one_thread"]

HOSTILE = [
    "one row, 99 % of the cost",
    "heavy tails",
    "clusters near the mean",
    "loss on 1 row in 10,000",
    "separable classes",
    "0.4 % positives",
]


@pytest.fixture(scope="module")
def benchmark_module() -> ModuleType:
    """The benchmark of the intervals, whose instances are these."""
    path = Path(__file__).parents[2] / "benchmarks" / "audit_coverage.py"
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.syspath_prepend(path.parent)  # benchmarks import what they share
    spec = importlib.util.spec_from_file_location("audit_coverage", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look themselves up
    spec.loader.exec_module(module)
    monkeypatch.undo()
    return module


# --- intervals ---------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["clusters", "divergence", *HOSTILE])
@pytest.mark.nightly
def test_interval__holds_as_often_as_promised(name: str, benchmark_module: ModuleType) -> None:
    """Of 30 audits with 95 % so many hold, for every solution, that the promise is not refuted.

    The probability of fewer is below 1e-6 for each of some five solutions: false-alarm rate
    5e-6. The whole table is benchmarks/results/audit_coverage.md.
    """
    n_runs = 30
    case = benchmark_module.CASES[name](10_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of solvers that stop, and of coresets that are small
        found = benchmark_module.repeat(case, n_runs, 300, 400)
    least = scipy.stats.binom.ppf(1e-6, n_runs, 0.95) / n_runs
    for solution, runs in found.items():
        covered, _, width = benchmark_module.summary(runs)
        assert covered >= least, (solution, covered)
        assert np.isfinite(width), solution
        # An audited solution has its cost, whatever the sample holds.
        if solution == "audited":
            assert covered == 1.0
            assert width == 0.0


def rare_losses(n: int = 60_000) -> tuple[FloatArray, Any]:
    """Two classes that a line separates, but for six rows."""
    rng = np.random.default_rng(7)
    y = rng.integers(2, size=n)
    X = rng.normal(size=(n, 3)) + 12.0 * y[:, None] * np.array([1.0, 0, 0])
    wrong = rng.choice(n, 6, replace=False)
    y[wrong] = 1 - y[wrong]
    return X, y


@pytest.mark.filterwarnings("ignore::daskcoreset.errors.CoresetWarning")
def test_interval__never_of_no_width_where_the_sample_has_no_loss() -> None:
    """A sample without a single loss says nothing of six rows: the upper end must."""
    X, y = rare_losses()
    rows = Block(X, np.ones(len(X)), y)
    coreset = daskcoreset.build(X, y, size=300, method="svm", random_state=0)
    rng = np.random.default_rng(0)
    for seed in range(5):
        own = LinearCost("hinge").seed(Block(coreset.points, coreset.weights, coreset.labels), rng)
        report = coreset.audit(X, y, solutions=[own], random_state=seed, sample_size=500)
        true = LinearCost("hinge").cost(rows, own)
        np.testing.assert_allclose(report.interval(own), true)
        other = type(own)(own.coef * 1.1, own.intercept * 1.1, own.positive)
        true = LinearCost("hinge").cost(rows, other)
        estimate, low, high = report.interval(other)
        assert low <= true <= high
        assert high > low
        assert low <= estimate <= high


def test_interval__says_what_may_be_hidden_where_coreset_and_sample_have_no_loss() -> None:
    X, y = rare_losses()
    coreset = daskcoreset.build(X, y, size=300, method="uniform", random_state=0)
    cost, coef = LinearCost("hinge"), np.array([10.0, 0.0, 0.0])
    one, near = (LinearClassifier(coef * f, -60.0 * f, 1) for f in (1.0, 1.01))
    own = Block(coreset.points, coreset.weights, coreset.labels)
    assert cost.total(own, one) == 0.0  # it has none of the six
    report = coreset.audit(X, y, objective=cost, solutions=[near], random_state=0, sample_size=300)
    true = cost.cost(Block(X, np.ones(len(X)), y), one)
    estimate, low, high = report.interval(one)
    assert 1.5 * true < high < np.inf
    assert low <= min(estimate, true)


# --- size="auto" -------------------------------------------------------------------------


def near_the_mean(n: int = 40_000) -> tuple[FloatArray, int]:
    """Two far clusters, and ten of two rows near the mean, of which lightweight draws none."""
    rng = np.random.default_rng(1)
    X: FloatArray = rng.normal(0.0, 0.05, size=(n, 3))
    X += np.where(np.arange(n)[:, None] % 2, 100.0, -100.0)
    X[:20] = np.repeat(rng.normal(size=(10, 3)) * 15, 2, axis=0)
    rng.shuffle(X)
    return X, 12


def one_far(n: int = 40_000) -> tuple[FloatArray, int]:
    """A row that holds nearly all of the cost, and that no uniform coreset has."""
    X = np.random.default_rng(2).normal(size=(n, 2))
    X[777] = 1e5
    return X, 3


def in_turns(n: int = 40_000) -> tuple[FloatArray, int]:
    """Fifty values in turns, which steps of a constant length see few of."""
    return np.tile(np.arange(50.0), n // 50)[:, np.newaxis], 5


@pytest.mark.filterwarnings("ignore:size='auto':daskcoreset.errors.CoresetWarning")
@pytest.mark.parametrize(
    ("rows", "method"),
    [
        pytest.param(near_the_mean, "lightweight", marks=pytest.mark.nightly),
        (one_far, "uniform"),
        (in_turns, "uniform"),
    ],
)
def test_auto__does_not_agree_on_what_both_coresets_miss(
    rows: Any, method: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it says that all is well, it is; and the two coresets alone had said so before."""
    monkeypatch.setattr("daskcoreset.constructions.sampling.auto_size._MIN_START", 400)
    X, k = rows()
    refuted = []
    for seed in range(3):
        found = auto_size(X, method=method, n_clusters=k, epsilon=0.1, delta=0.3, random_state=seed)
        own = Block(found.coreset.points, found.coreset.weights)
        centers = QuantizationError(k).solve(own, np.random.default_rng(seed))
        cost = QuantizationError(k).cost(own, centers)
        wrong = abs(cost / kmeans_cost(X, centers) - 1)
        assert not found.agreed or wrong <= 0.2
        refuted += [s for s in found.steps if s.on_data is not None and s.on_data > 1.0]
    assert all(step.disagreement <= 0.1 for step in refuted)
    assert refuted or rows is in_turns


class RemarkingDesign(SamplingDesign[Any]):
    def warnings_for(self, summary: Any, size: int) -> tuple[str, ...]:
        return (f"{size} rows of {summary.quantization_error / np.pi:.17g}",)


@dataclass(frozen=True)
class Remarking(Lightweight):
    """A construction that warns in every build, in other numbers each time."""

    name: ClassVar[str] = "remarking"

    @property
    def design(self) -> SamplingDesign[Any]:
        return RemarkingDesign()


def test_auto__warns_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskcoreset.constructions.sampling.auto_size._MIN_START", 40)
    X = np.random.default_rng(0).normal(size=(3000, 2))
    with pytest.warns(CoresetWarning) as said:
        found = auto_size(X, method=Remarking(), n_clusters=5, epsilon=0.02, random_state=0)
    assert len(found.steps) > 1
    texts = [str(one.message) for one in said]
    assert len(texts) == 1
    assert texts[0].startswith(f"{found.size} rows of ")
    assert said[0].filename == __file__


# --- converged_ --------------------------------------------------------------------------


def test_csvrg__has_not_converged_where_epochs_merely_change_little() -> None:
    """An objective a fifth above the least one, where one more epoch changes nothing."""
    rng = np.random.default_rng(0)
    X = rng.random((5000, 2))
    y = ((X - 0.5) ** 2).sum(axis=1) < 0.1
    options: dict[str, Any] = {"gamma": 10.0, "max_points": 40, "lam": 2000.0, "random_state": 0}
    best = CSVRGClassifier(solver="exact", **options).fit(X, y)
    with pytest.warns(ConvergenceWarning, match=r"may be up to .* above the least one"):
        found = CSVRGClassifier(solver="csvrg", stand_ins="core_points", **options).fit(X, y)
    assert found.objective_ > 1.1 * best.objective_
    assert found.converged_ is False
    assert found.gap_ is not None
    assert found.gap_[0] >= found.objective_ - best.objective_


def test_logistic_audit__says_nothing_of_the_solver() -> None:
    """Candidates need not be the very best: no warning of a solver reaches who audits."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3000, 4)) * np.array([1.0, 1e4, 1e-3, 1.0])
    y = X[:, 0] > 0
    coreset = daskcoreset.build(X, y, size=300, method="logistic", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        coreset.audit(X, y, random_state=0)


def groups_apart() -> FloatArray:
    X: FloatArray = np.random.default_rng(5).normal(size=(6000, 6))
    X[::2, 0] += 1e6
    return X


@pytest.mark.parametrize("kind", ["far row", "groups", "sparse"])
def test_kmeans__tolerance_is_not_that_of_rows_far_out(kind: str) -> None:
    """Relative to the variance all moves are small, and runs ended 3 to 5 % above the optimum."""
    X: Any = groups_apart() if kind == "groups" else far_row()
    rows = scipy.sparse.csr_array(X) if kind == "sparse" else X
    size = 10_000  # all rows: what is left is the solver's
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CoresetKMeans(20, size=size, n_init=1, random_state=0).fit(rows)
    found, middle = kmeans_cost(X, model.cluster_centers_), X.mean(axis=0)
    start = model.cluster_centers_ - middle
    ended = KMeans(20, init=start, n_init=1, tol=0.0, max_iter=1000).fit(X - middle)
    assert found < 1.01 * kmeans_cost(X, ended.cluster_centers_ + middle)
    assert 10 < model.n_iter_ <= 300


# --- a row far away that weighs too much in every coreset -----------------------------------


def giant_row(seed: int) -> FloatArray:
    """Hold 99.9 % of the cost of the mean, and nothing of that of several centers."""
    X = np.random.default_rng(seed).normal(size=(20_000, 3))
    X[77] = [3e4, 0.0, 0.0]
    return X


@pytest.mark.parametrize("seed", range(20))
def test_auto_size__a_wrong_weight_of_a_giant_row_is_not_silent(seed: int) -> None:
    """Solutions of several centers have one at the giant, where its weight costs nothing."""
    X = giant_row(seed)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = daskcoreset.build(X, size="auto", n_clusters=5, method="uniform", random_state=seed)
    true = np.square(X).sum()
    cost = (found.weights * np.square(found.points).sum(axis=1)).sum()
    assert said or abs(cost / true - 1) <= 0.05


def test_audit__tells_a_wrong_weight_of_a_giant_row() -> None:
    X = giant_row(0)
    rows = np.append(77, np.arange(1000, 2000))
    weights = np.append(2.5, np.full(1000, 20.0))
    for name, objective in (("mean", QuantizationError(5)), ("one component", MixtureCost(3))):
        report = Coreset(X[rows], weights, rows).audit(X, objective=objective, random_state=0)
        assert abs(report.differences[report.names.index(name)]) > 0.1


# --- classifiers of other labels ---------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.int64, object, str])
def test_audit__of_a_classifier_finds_its_labels_again(kind: Any) -> None:
    """A coreset keeps labels of dtype object as text; the classifier was fitted on numbers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=4000) > 0.5).astype(int)
    signs = np.where(y == 1, 1.0, -1.0)
    one, other = (LogisticRegression(C=c).fit(X, y) for c in (1.0, 1e-3))
    truth = [
        0.5 * float((model.coef_**2).sum())
        + float(np.maximum(1.0 - signs * model.decision_function(X), 0.0).sum())
        for model in (one, other)
    ]
    labels = y.astype(kind)
    coreset = daskcoreset.build(X, labels, size=500, method="svm", random_state=0)
    report = coreset.audit(X, labels, solutions={"mine": one}, random_state=0)
    assert report.on_data[0] == pytest.approx(truth[0])
    found = report.interval(other)
    assert found.low <= truth[1] * (1 + 1e-9)
    assert truth[1] <= found.high * (1 + 1e-9)


def test_audit__refuses_classifiers_and_labels_of_other_classes() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    y = (X[:, 0] > 0.5).astype(int)
    words = np.where(y == 1, "yes", "no")
    stranger = LogisticRegression().fit(X, words)
    coreset = daskcoreset.build(X, y, size=200, method="svm", random_state=0)
    with pytest.raises(InvalidInputError, match="positive class 'yes'"):
        coreset.audit(X, y, solutions={"stranger": stranger})
    with pytest.raises(InvalidInputError, match="positive class 'yes'"):
        coreset.audit(X, y, random_state=0).interval(stranger)
    with pytest.raises(InvalidInputError, match="text for text"):
        coreset.audit(X, words, random_state=0)


def test_audit__refuses_other_kinds_of_arguments() -> None:
    X = np.random.default_rng(0).normal(size=(500, 2))
    coreset = daskcoreset.build(X, size=50, random_state=0)
    for options in (
        {"objective": "x"}, {"solutions": "x"}, {"solutions": 5}, {"solutions": np.array(5.0)},
        {"n_clusters": 10**30}, {"progress": "x", "n_clusters": 2},
    ):  # fmt: skip
        with pytest.raises((InvalidInputError, InvalidTypeError)):
            coreset.audit(X, **options)
    with pytest.raises(InvalidTypeError, match="coreset is None"):
        daskcoreset.audit(None, X)  # type: ignore[call-overload]
    report = coreset.audit(X, n_clusters=2, random_state=0)
    wrong: tuple[Any, ...] = (
        "x", {}, 3 + 0j, np.ones((2, 2)) + 1j, np.full((2, 2), 1e200),
        np.ma.array(np.ones((2, 2)), mask=True),
    )  # fmt: skip
    for centers in wrong:
        with pytest.raises((InvalidInputError, InvalidTypeError)):
            report.interval(centers)


# --- advice ------------------------------------------------------------------------------


def far_row() -> FloatArray:
    X: FloatArray = np.random.default_rng(78).normal(size=(6000, 6))
    X[1234] = 1e6
    return X


def bundled() -> FloatArray:
    return np.asarray(load_bundled("iris").X, dtype=np.float64)


@pytest.mark.nightly_beyond(1)
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("rows", "k", "budget"),
    [
        # A tolerance relative to the variance ends after a step, and what ends so is no optimum.
        (far_row, 20, 300),
        # All rows are taken, and starts miss some clusters all the same.
        (bundled, 20, 500),
    ],
)
def test_advise__foretells_errors_over_an_optimum(
    rows: Callable[[], FloatArray], k: int, budget: int
) -> None:
    X = rows()
    advice = daskcoreset.advise(X, n_clusters=k, budget=budget, random_state=0)
    middle = X.mean(axis=0)
    many = 400 if len(X) < 1000 else 10
    other = KMeans(k, n_init=many, tol=0.0, random_state=0).fit(X - middle)
    costs, best = [], kmeans_cost(X, other.cluster_centers_ + middle)
    # Of few rows single ones move to better optima than steps of Lloyd from many starts find.
    for seed in range(40 if len(X) < 1000 else 8):
        kind: Any = "centroids" if advice.name == "centroids" else "rows"
        model = CoresetKMeans(k, size=budget, representatives=kind, random_state=seed).fit(X)
        start = model.cluster_centers_
        costs.append(kmeans_cost(X, start))
        ended = KMeans(k, init=start - middle, n_init=1, tol=0.0, max_iter=1000).fit(X - middle)
        best = min(best, kmeans_cost(X, ended.cluster_centers_ + middle))
    errors = np.array(costs) / min(best, *costs) - 1.0
    assert 0.5 * errors.mean() < advice.error < 2.0 * errors.mean()
    assert np.mean((errors >= advice.low) & (errors <= advice.high)) >= 0.75


def flat_direction() -> FloatArray:
    """Rows of three components that lie close to a plane, as nearly collinear columns do."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 4)) * [1.0, 1.0, 1.0, 0.003]
    X += 3.0 * rng.normal(size=(3, 4))[rng.integers(0, 3, 8000)]
    found: FloatArray = X / X.std(axis=0)
    return found


def many_correlated_columns() -> FloatArray:
    rng = np.random.default_rng(1)
    parts = rng.normal(size=(2500, 5)) @ rng.normal(size=(5, 32))
    return parts + 0.05 * rng.normal(size=(2500, 32))


@pytest.mark.nightly
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("rows", "k", "budget"), [(flat_direction, 3, 600), (many_correlated_columns, 1, 700)]
)
def test_advise__foretells_errors_of_the_mixtures_that_users_fit(
    rows: Callable[[], FloatArray], k: int, budget: int
) -> None:
    """Not of those with a floor under the variances, or diagonal covariances.

    Where builds are held in 93 %, fewer are held than asked for here with probability 1e-6.
    """
    X = rows()
    advice = daskcoreset.advise(X, task="mixture", n_clusters=k, budget=budget, random_state=0)
    fits = [
        CoresetGaussianMixture(k, size=budget, method=advice.method, random_state=seed).fit(X)
        for seed in range(12)
    ]
    scores = np.array([fit.score(X) for fit in fits])
    first = fits[int(scores.argmax())]
    known = GaussianMixture(
        k, weights_init=first.weights_, means_init=first.means_, precisions_init=first.precisions_
    )
    errors = max(known.fit(X).score(X), *scores) - scores
    held = int(((errors >= advice.low) & (errors <= advice.high)).sum())
    assert held >= scipy.stats.binom.ppf(1e-6, 12, 0.93)


@pytest.mark.nightly_beyond(1)
@pytest.mark.parametrize("task", ["classification", "svm"])
def test_advise__judges_classifiers_of_all_classes(task: Any) -> None:
    """The last class is easy, rare and far from the others, which are all the cost."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [2000, 1900, 100])
    X = rng.normal(size=(4000, 3)) + np.array([[0, 0, 0], [1, 0, 0], [0, 40, 0]])[y]
    advice = daskcoreset.advise(X, y, task=task, budget=100, random_state=0)
    errors = {one.name: one.error for one in advice.compared}
    assert errors["uniform"] < 1.0  # of the last class alone hundreds of per cent
    if task == "classification":
        every = LogisticRegression(tol=1e-8, max_iter=1000).fit(X, y)
        costs = []
        for seed in range(8):
            rows = daskcoreset.build(X, y, size=100, method=advice.method, random_state=seed)
            model = LogisticRegression(tol=1e-8, max_iter=1000)
            model.fit(rows.points, rows.labels, sample_weight=rows.weights)
            costs.append(softmax_cost(model, X, y))
        found = np.array(costs) / softmax_cost(every, X, y) - 1.0
        assert np.mean((found >= advice.low) & (found <= advice.high)) >= 0.75


def softmax_cost(model: Any, X: FloatArray, y: Any) -> float:
    chances = model.predict_log_proba(X)
    return float(0.5 * np.square(model.coef_).sum() - chances[np.arange(len(y)), y].sum())


def rare_categories() -> tuple[FloatArray, FloatArray]:
    """Four columns of Zipf categories, one column each: half of them have fewer than 20 rows."""
    rng = np.random.default_rng(0)
    chances = 1.0 / np.arange(1, 51) ** 2.0
    y, columns = 0.1 * rng.normal(size=20_000), []
    for _ in range(4):
        kind = rng.choice(50, len(y), p=chances / chances.sum())
        y = y + rng.normal(size=50)[kind]
        columns.append(np.eye(50)[kind])
    X = np.hstack(columns)
    return X[:, X.any(axis=0)], y


def five_rows() -> tuple[FloatArray, Any]:
    """Two classes that overlap, and one of five rows."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=20_000)
    rare = rng.choice(len(y), 5, replace=False)
    X = rng.normal(size=(len(y), 6))
    X[:, 0] += 2.0 * y
    y[rare] = 2
    X[rare, 1] += 5.0
    return X, y


@pytest.mark.nightly
@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "task", "budget"),
    [(rare_categories, "regression", 500), (five_rows, "classification", 200)],
)
def test_advise__is_not_too_sure_where_builds_meet_sums_by_chance(
    rows: Callable[[], tuple[FloatArray, Any]], task: Any, budget: int
) -> None:
    """Builds meet a quarter to all of the gradient, and their errors differ tenfold.

    Of six trials with alike luck the interval was narrow, and held 17 of 24 builds. Where builds
    are held in 93 %, fewer are held than asked for here with probability 1e-6.
    """
    X, y = rows()
    advice = daskcoreset.advise(X, y, task=task, budget=budget, random_state=3)
    assert advice.high > 8.0 * advice.low
    every = TASKS[task].objective(None)
    block = Block(X, np.ones(len(X)), y)
    cost: Any = of_all_classes(every, block)
    least = cost.cost(block, cost.solve(block, np.random.default_rng(0)))
    held = 0
    for seed in range(24):
        coreset = daskcoreset.build(X, y, size=budget, method=advice.method, random_state=seed)
        solution = cost.solve(block_of(coreset), np.random.default_rng(0))
        held += advice.low <= cost.cost(block, solution) / least - 1.0 <= advice.high
    assert held >= scipy.stats.binom.ppf(1e-6, 24, 0.93)
    remarks = {one.name: one.remark for one in advice.compared}
    assert "in part" in remarks[advice.name] or task == "classification"


@pytest.mark.statistical
@pytest.mark.parametrize("n_parameters", [3, 14])
def test_advise__intervals_seldom_miss_several_builds_at_once(n_parameters: int) -> None:
    """Excess losses of linear models, quadratic forms of as many directions as parameters.

    Of 4,000 intervals from twelve trials at most 1 % hold four or fewer of six builds more:
    false-alarm rate 1e-6. Those of Student alone do so in 5 % and 2 %.
    """
    rng = np.random.default_rng(0)
    least = np.sqrt(scipy.special.polygamma(1, 0.5 * n_parameters))
    poor = 0
    for _ in range(4000):
        values = np.square(rng.normal(size=(18, n_parameters))).sum(axis=1)
        low, high = intervals._interval(values[:12], 0.95, 0.15, least)
        poor += int(np.count_nonzero((values[12:] >= low) & (values[12:] <= high)) <= 4)
    assert poor <= scipy.stats.binom.isf(1e-6, 4000, 0.01)


def test_advise__trials_that_agree_by_chance_make_no_narrow_interval() -> None:
    lucky = np.full(12, 1e-4)
    low, high = intervals._interval(lucky, 0.95, 0.15, 0.5)
    assert low < 0.4e-4
    assert high > 2.5e-4
