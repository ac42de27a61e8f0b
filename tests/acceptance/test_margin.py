"""Maximum margins: batch, active and outliers, against brute force."""

from __future__ import annotations

import itertools
import math
from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

from tests.acceptance import face
from tests.acceptance.tools import readings as read
from tests.acceptance.tools.margins import best_without, through_zero, two_classes

es = face.estimators


def decisions(model: Any, X: Any) -> Any:
    """Signed distances by coefficients alone."""
    w, b = model.coef_[0], float(model.intercept_[0])
    return (X @ w + b) / np.linalg.norm(w)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("epsilon", [0.5, 0.1, 0.01])
def test_batch__margin_and_certificate_are_what_brute_force_finds(
    epsilon: float, intercept: bool
) -> None:
    for seed in range(3):
        X, y = (two_classes if intercept else through_zero)(seed=seed)
        signs = np.where(y, 1.0, -1.0)
        best = read.largest_margin(X, signs, intercept=intercept)
        model = es.MaxMarginClassifier(epsilon, fit_intercept=intercept).fit(X, y)
        on_data, on_core = face.margins(model)
        assert on_data == pytest.approx((signs * decisions(model, X)).min(), rel=1e-7)
        assert model.margin_ == on_data
        assert (1 - epsilon) * best <= on_data <= best * (1 + 1e-5)
        assert on_data >= (1 - epsilon) * on_core * (1 - 1e-12)
        core = model.coreset_
        of_core = np.where(core.labels, 1.0, -1.0)
        on_rows = read.largest_margin(core.points, of_core, intercept=intercept)
        assert on_core == pytest.approx(on_rows, rel=1e-5)
        assert on_core >= best * (1 - 1e-5)
        assert np.array_equal(core.points, X[core.indices])
        assert (core.weights == 1).all()
        assert np.allclose(model.decision_function(X), decisions(model, X))
        facts = core.provenance
        assert facts["factor"] == pytest.approx(on_data / on_core)
        assert facts["converged"]
        shorter = [step["core_margin"] for step in facts["passes"]]
        assert all(a >= b * (1 - 1e-9) for a, b in itertools.pairwise(shorter))
        if not intercept:
            assert facts["radius"] == pytest.approx(np.linalg.norm(X, axis=1).max())
        assert facts["reads"] == 1 + len(facts["passes"])


def test_batch__a_loose_certificate_stops_before_a_tight_one() -> None:
    """As soon as the margin is within epsilon, and never later."""
    X, y = two_classes(4000, 10, 0.3, 5)
    rows, labels = da.from_array(X, chunks=(500, 10)), da.from_array(y, chunks=500)
    reads = []
    for epsilon in (0.5, 0.1, 0.001):
        model = es.MaxMarginClassifier(epsilon).fit(rows, labels)
        passes = model.coreset_.provenance["passes"]
        shares = [step["margin"] / step["core_margin"] for step in passes]
        assert shares[-1] >= 1 - epsilon
        assert all(share < 1 - epsilon for share in shares[:-1])
        facts = model.coreset_.provenance
        bound = 1 + 4 * (facts["radius"] / facts["core_margin"]) ** 2 / epsilon**2
        assert facts["passes_bound"] == pytest.approx(bound)
        reads.append(len(passes))
    assert reads[0] <= reads[1] <= reads[2] < 15
    assert reads[0] < reads[2]
    assert len(model.coreset_) < 150


def test_batch__sparse_rows_change_nothing() -> None:
    X, _ = two_classes(300, 4)
    X[np.abs(X) < 0.6] = 0.0
    side = X @ [1.0, 0.5, -0.2, 0.3] - 0.2
    X, y = X[np.abs(side) > 0.15], side[np.abs(side) > 0.15] > 0
    plain = es.MaxMarginClassifier(0.001).fit(X, y)
    sparse = es.MaxMarginClassifier(0.001).fit(sp.csr_array(X), y)
    radii = [model.coreset_.provenance["radius"] for model in (plain, sparse)]
    assert radii[1] == pytest.approx(radii[0])
    assert sparse.margin_ == pytest.approx(plain.margin_, rel=1e-3)
    assert (sparse.predict(X) == y).all()


@pytest.mark.parametrize("intercept", [True, False])
def test_batch__inseparable_rows_are_proved_so(intercept: bool) -> None:
    """A convex combination of rows of either class meets, or is zero."""
    X, y = (two_classes if intercept else through_zero)(60)
    y = y.copy()
    y[[3, 9]] = ~y[[3, 9]]
    model = es.MaxMarginClassifier(fit_intercept=intercept, on_inseparable="raise")
    with pytest.raises(face.NotSeparableError) as caught:
        model.fit(X, y)
    rows, parts = caught.value.indices, caught.value.coefficients
    signs = np.where(y[rows], 1.0, -1.0)
    total = (parts * signs) @ X[rows]
    assert np.abs(total).max() < 1e-6 * np.abs(X).max()
    assert (parts > 0).all()
    sums = [parts[signs > 0].sum(), parts[signs < 0].sum()] if intercept else [parts.sum()]
    assert np.allclose(sums, 1.0)


def with_outliers(k: int, seed: int = 0) -> tuple[Any, Any]:
    X, y = two_classes(16, 2, 0.6, seed)
    wrong = np.argsort(-np.abs(X).sum(axis=1))[:k]
    y = y.copy()
    y[wrong] = ~y[wrong]
    return X, y


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("k", "method"), [(1, "exact"), (2, "auto"), (1, "random"), (2, "random")])
def test_outliers__best_k_rows_are_left_out(k: int, method: str, intercept: bool) -> None:
    X, y = with_outliers(k)
    if not intercept:
        X = X - 0.7 * X.mean(axis=0)
        y = X @ [1.0, 0.3] > 0
        y[[2, 5][:k]] = ~y[[2, 5][:k]]
    signs = np.where(y, 1.0, -1.0)
    options = {"epsilon": 0.05, "fit_intercept": intercept, "random_state": 0, "method": method}
    model = es.OutlierMaxMarginClassifier(k, **options).fit(X, y)
    best = best_without(X, signs, k, intercept=intercept)
    assert 0.95 * best * (1 - 1e-9) <= model.margin_ <= best * (1 + 1e-5)
    products = signs * decisions(model, X)
    left = np.setdiff1d(np.arange(len(X)), model.outliers_)
    assert len(model.outliers_) <= k
    assert products[left].min() == pytest.approx(model.margin_, rel=1e-6)
    assert face.margins(model)[1] >= best * 0.95 * (1 - 1e-6)
    if method == "random":
        # A row is kept with chance f, and a lucky draw has s rows and no outlier.
        s = 2 + intercept
        share = s / (s + k)
        luck = share**s * (1 - share) ** k
        draws = math.ceil(math.log1p(-0.99) / math.log1p(-luck))
        assert model.probability_ == pytest.approx(1 - (1 - luck) ** draws)
    else:
        assert model.probability_ == 1.0


@pytest.mark.parametrize("options", [{}, {"error": 0.2, "delta": 0.01}, {"epsilon": 0.5}], ids=str)
def test_active__asks_the_nearest_row_until_a_streak_is_right(options: dict[str, Any]) -> None:
    """Each query is the unlabelled row nearest to the widest strip of what is known."""
    X, y = two_classes(400, 2, 0.3, 7)
    asked: list[int] = []

    def oracle(rows: Any, indices: Any) -> Any:
        assert np.array_equal(rows, X[indices])
        asked.extend(indices.tolist())
        return y[indices]

    model = es.ActiveMaxMarginClassifier(random_state=0, **options).fit(X, oracle=oracle)
    phases = model.n_labels_by_phase_
    assert model.n_labels_ == len(asked) == len(set(asked)) == sum(phases.values())
    core = model.coreset_
    on_core = face.margins(model)[1]
    signs = np.where(core.labels, 1.0, -1.0)
    assert on_core == pytest.approx(read.largest_margin(core.points, signs, intercept=True), 1e-5)
    distances = decisions(model, X)
    epsilon = options.get("epsilon", 0.1)
    left = np.setdiff1d(np.arange(400), asked)
    assert np.abs(distances[left]).min() >= (1 - epsilon) * on_core * (1 - 1e-9)
    known = np.array(asked)
    of_known = np.where(y[known], 1.0, -1.0) * distances[known]
    assert of_known.min() >= (1 - epsilon) * on_core * (1 - 1e-9)
    found = model.certificate_
    error, delta = options.get("error", 0.05), options.get("delta", 0.05)
    needed = read.streak(error, delta, len(core), found.verifications)
    assert found.verified == needed
    reached = (math.log(max(len(core), found.verifications * (found.verifications + 1)))
               - math.log(delta)) / needed  # fmt: skip
    assert found.error == pytest.approx(min(1.0, reached))
    assert found.probability == 1 - delta
    first = phases["seeding"]
    assert len(set(y[asked[:first]])) == 2
    assert len(set(y[asked[: first - 1]])) == 1
