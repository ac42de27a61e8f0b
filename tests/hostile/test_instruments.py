"""Intervals, agreements and `converged_` on instances that are made to fool them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse
import scipy.special
import scipy.stats
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

import daskcoreset
from daskcoreset.core.blocks import Block
from daskcoreset.core.errors import CoresetWarning
from daskcoreset.core.typing import FloatArray
from daskcoreset.datasets import load_bundled
from daskcoreset.estimators import CoresetKMeans, CSVRGClassifier
from daskcoreset.metrics.costs import kmeans_cost
from daskcoreset.metrics.sizing import auto_size
from daskcoreset.objectives import QuantizationError
from daskcoreset.sensitivities import Lightweight, SamplingDesign
from tests.tools.threads import one_thread

__all__ = ["one_thread"]


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
