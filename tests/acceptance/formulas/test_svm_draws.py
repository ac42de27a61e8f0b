"""Coresets for support vector machines: scores, pilots, order, calibration, choice and error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from tests.acceptance import face
from tests.acceptance.tools import readings as read
from tests.acceptance.tools.hinge import mixed, problems, quiet, solved, two_classes
from tests.acceptance.tools.plain import PlainSVM
from tests.pairs import each, pairs

BOTH = ("class means", "class totals", "gradient")
GRADIENT = ("class totals", "gradient")
NEITHER = ("class totals",)


def three_classes(n: int = 400, d: int = 2, seed: int = 3) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = 1.6 * rng.normal(size=(n, d))
    X[:, :2] += np.array([[0.0, 3.0], [3.0, -1.0], [-2.0, -2.0]])[y][:, :d]
    return X, y, rng.uniform(0.5, 1.5, size=n)


def wanted(coreset: face.Coreset) -> tuple[str, ...]:
    return tuple(sorted(coreset.provenance["calibration"]["wanted"]))


def met(coreset: face.Coreset) -> tuple[str, ...]:
    return tuple(sorted(coreset.provenance["calibration"]["met"]))


# --- scores ------------------------------------------------------------------------------------


@each(classes=[2, 3], lam=[1e-5, 0.02, 30.0])
def test_scores__are_half_the_bound_and_half_the_pull(classes: int, lam: float) -> None:
    X, y, u = two_classes() if classes == 2 else three_classes()
    blocks = [face.block(X[at], u[at], y[at]) for at in (slice(0, 90), slice(90, len(X)))]
    for intercept in (True, False) if lam < 1 else (True,):
        bound, halves, _ = mixed(X, y, u, lam, intercept=intercept)
        cases: list[tuple[Any, Any]] = [("pilot", halves), ("paper", bound)]
        for variant, one in cases:
            method = face.SVM(lam=lam, variant=variant, n_clusters=1, intercept=intercept)
            found = face.scores(method, *blocks)
            assert np.allclose(np.concatenate(found) / one, 1.0, atol=0.02)
            sums = face.total_scores(method, *blocks)
            assert np.allclose(sums, [part.sum() for part in found], rtol=1e-7)
            assert np.sum(sums) == pytest.approx(one.sum(), rel=1e-3)


@each(
    unit=[2.0**-20, 2.0**20],
    variant=["pilot", "paper"],
)
def test_build__does_not_depend_on_the_unit_of_weights(variant: Any, unit: float) -> None:
    """Weights in another unit, with lambda in its inverse, are the same problem."""
    for X, y, u in (two_classes(), three_classes()):
        size = 120 if variant == "paper" else 40
        first, second = (
            quiet(X, y, sample_weight=u * by, size=size, method=face.SVM(lam / by, 2, variant))
            for lam, by in ((0.5, 1.0), (0.5, unit))
        )
        assert np.array_equal(first.indices, second.indices)
        assert np.allclose(first.weights, second.weights / unit, rtol=1e-7)
        for name in ("total_sensitivity", "rough_cost", "cells"):
            assert second.provenance[name] == pytest.approx(first.provenance[name], rel=1e-9)
        found, other = (one.provenance.get("estimated_error") for one in (first, second))
        if found is not None and other is not None:
            assert found["error"] == pytest.approx(other["error"], abs=1e-7)
            none = found["of_none"]["error"]
            assert none == pytest.approx(other["of_none"]["error"], abs=1e-7)


def test_scores__of_rows_that_cost_nothing_stay_numbers() -> None:
    """A far gap and a large lambda: opt is a billionth of what all rows may cost."""
    X, y, u = two_classes()
    X[:, 1] += 1e5 * y
    for lam in (1e3, 1e6):
        found = face.scores(face.SVM(lam=lam, variant="paper", n_clusters=1), face.block(X, u, y))
        one = read.svm_scores(X, u, y, opt=1e-9 * lam * u.sum(), lam=lam, easy=3)
        assert np.allclose(found[0], one, rtol=1e-5)


def test_scores__of_one_class_take_every_row_for_lost() -> None:
    """In a leaf of a stream that holds one class only; one row lies at the mean."""
    X, _, u = two_classes()
    X[7] = 0.0
    X[7] = read.mean_of(X, np.where(np.arange(300) == 7, 0.0, u))
    y = np.ones(300, dtype=int)
    for lam in (0.01, 2.0):
        method = face.SVM(lam=lam, variant="paper", n_clusters=1)
        found = face.scores(method, face.block(X, u, y))[0]
        one = read.svm_scores(X, u, y * 0, opt=lam * u.sum(), lam=lam, easy=3)
        assert np.allclose(found, one, rtol=1e-6)


def test_scores__of_blocks_of_one_class_or_of_no_weight() -> None:
    X, y, u = two_classes()
    order = np.argsort(y, kind="stable")
    X, y, u = X[order], y[order], u[order]
    *_, opt = solved(X, y, u, 0.1, tol=1e-5)
    one = read.svm_scores(X, u, y, opt=opt, lam=0.1, easy=3)
    blocks = [face.block(X[:5] * 9.0, np.zeros(5), np.full(5, 1))]
    blocks += [
        face.block(X[at], u[at], y[at]) for at in map(slice, (0, 40, 100, 170), (40, 100, 170, 300))
    ]
    method = face.SVM(lam=0.1, variant="paper", n_clusters=1)
    first, *found = face.scores(method, *blocks)
    assert not first.any()
    assert np.allclose(np.concatenate(found), one, rtol=2e-3)
    sums = face.total_scores(method, *blocks)
    assert np.allclose(sums, [0.0, *(part.sum() for part in found)], rtol=1e-9)
    c = quiet(X, y, sample_weight=u, size=30, chunks=40, method="svm")
    assert c.provenance["passes"] == 2
    draw = face.Draw(sampling="multinomial", passes=2)
    c = quiet(X, y, sample_weight=u, size=30, method=method, draw=draw)
    assert c.provenance["passes"] == 4  # scores are summed up before rows are drawn by them


def test_scores__cells_are_the_clusters_of_a_class() -> None:
    X, y, u = two_classes()
    side = np.arange(300) // 2 % 2
    cells = side + 2 * y
    X = X + np.array([[0.0, 0.0], [0.0, 90.0]])[side]
    *_, opt = solved(X, y, u, 0.5)
    method = face.SVM(lam=0.5, variant="paper", n_clusters=2)
    found = face.scores(method, face.block(X, u, y))[0]
    assert np.allclose(found, read.svm_scores(X, u, cells, opt=opt, lam=0.5, easy=3), rtol=2e-3)


def test_scores__as_many_cells_as_the_logarithm_says() -> None:
    """And no more than there are distinct rows of a class."""
    X, y, _ = two_classes(500)
    c = quiet(X, y, size=50, method=face.SVM(variant="paper"))
    assert c.provenance["cells"] == 2 * int(np.ceil(np.log(500)))
    X = np.repeat(X[:3], [100, 200, 200], axis=0)
    labels = np.repeat([0, 1, 1], [100, 200, 200])
    found = face.scores(face.SVM(variant="paper"), face.block(X, np.ones(500), labels))[0]
    masses = np.repeat([100.0, 200.0, 200.0], [100, 200, 200])
    alpha = (500 - masses) / (2 * 500 * masses)
    assert np.allclose(found, 1 / masses + 3 * alpha, rtol=1e-6)


def test_scores__without_intercept_are_about_the_origin() -> None:
    from scipy.optimize import minimize

    X, y, u = two_classes()
    signs = np.where(y, 1.0, -1.0)
    start = minimize(
        lambda w: read.svm_cost(X, signs, u, w, 0.0, lam=0.1),
        np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-10},
    )  # fmt: skip
    method = face.SVM(lam=0.1, variant="paper", n_clusters=1, intercept=False)
    found = face.scores(method, face.block(X, u, y))[0]
    wanted = read.svm_scores(X, u, y, opt=start.fun, lam=0.1, easy=3)
    assert np.allclose(found, wanted, rtol=2e-3)


# --- the pilot ---------------------------------------------------------------------------------


def pilots(d: int, classes: int, rows: int, lam: float) -> list[Any]:
    """Scores by two seeds, which hang on no seed but by the cost of the rough classifier."""
    rng = np.random.default_rng(d)
    y = np.repeat(np.arange(classes), [rows] + [rows if classes == 2 else 2] * (classes - 1))
    X = rng.normal(size=(len(y), d)) + y[:, np.newaxis] % 7
    u = rng.uniform(0.5, 2.0, size=len(y))
    method = face.SVM(lam=lam, variant="paper", n_clusters=1)
    return [face.scores(method, face.block(X, u, y), seed=seed)[0] for seed in range(2)]


@pytest.mark.parametrize(
    ("d", "classes", "rows", "lam"),
    [
        (2, 2, 2048, 0.01),
        (1024, 2, 256, 1e-5),
        pytest.param(4500, 2, 128, 1e-5, marks=pytest.mark.nightly),
        pytest.param(20, 40, 102, 0.01, marks=pytest.mark.nightly),
    ],
)
def test_pilot__holds_so_many_rows_of_a_class(d: int, classes: int, rows: int, lam: float) -> None:
    """Its classifier hangs on no seed until there are more rows than that."""
    first, second = pilots(d, classes, rows, lam)
    assert np.allclose(first, second, rtol=1e-9)
    first, second = pilots(d, classes, rows + 2, lam)
    assert not np.allclose(first, second, rtol=1e-7)


def test_pilot__of_a_part_of_the_rows_bounds_the_cost_from_below() -> None:
    """Scores rest on its dual solution, not on the cost of its classifier; 20,000 are kept."""
    X, y, _ = two_classes(24_000, 25)
    u = np.ones(len(X))
    method = face.SVM(variant="paper", n_clusters=1)
    found = face.scores(method, face.block(X, u, y))[0]
    masses = np.bincount(y).astype(float)
    means = np.stack([X[y == one].mean(axis=0) for one in (0, 1)])
    far = ((X - means[y]) ** 2).sum(axis=1)
    alpha = ((len(X) - masses) / (2 * len(X) * masses))[y]
    steep = (found - 1 / masses[y]) / 4.5 + 2 * alpha
    opt = np.median(2 * far / (9 * (steep**2 - 4 * alpha**2)))
    c = quiet(X, y, size=100, method=method, chunks=8000)
    cost = c.provenance["rough_cost"][0]
    assert 0.95 * cost < opt < 0.99 * cost
    assert c.provenance["estimated_error"]["held_out"] == pytest.approx(19_900, rel=0.02)


# --- order and probabilities -------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
def test_draw__is_even_along_labels_and_margins(classes: int) -> None:
    """As many rows up to every place as the probabilities sum to."""
    X, y, u = two_classes(600) if classes == 2 else three_classes(600)
    _, halves, margins = mixed(X, y, u, 1.0)
    own = margins[np.arange(600), y if classes == 3 else 0]
    order = np.lexsort((own, y))
    p = read.inclusion(halves, 80)
    method, seen = face.SVM(n_clusters=1), 0
    for seed in range(6):
        c = quiet(X, y, sample_weight=u, size=80, method=method, random_state=seed)
        if "rows" in c.provenance:
            continue  # uniform rows were better
        seen += 1
        taken = np.isin(np.arange(600), c.indices)
        assert np.abs(np.cumsum(taken[order] - p[order])).max() < 1.9
    assert seen >= 2


# --- calibration -------------------------------------------------------------------------------


def test_calibration__leaves_out_more_sums_than_rows() -> None:
    """A gradient of 32 sums, and with class means 92."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 30))
    y = (X[:, 0] + rng.normal(size=200) > 0.0).astype(int)
    found: dict[int, set[Any]] = {size: set() for size in (32, 33, 92, 93)}
    for size, seen in found.items():
        for seed in range(3):
            c = quiet(X, y, size=size, method="svm", random_state=seed)
            if "rows" not in c.provenance:
                seen.add(wanted(c))
    assert found[32] <= {NEITHER}
    assert found[33] | found[92] <= {GRADIENT}
    assert found[93] == {BOTH}


@pytest.mark.nightly
def test_calibration__leaves_out_what_takes_too_long() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(3300) % 40
    X = rng.normal(size=(3300, 19)) + (y[:, np.newaxis] == np.arange(19))
    assert wanted(quiet(X, y, size=3200, method=face.SVM(lam=1e-3))) == NEITHER


@pytest.mark.parametrize("classes", [2, 3])
def test_calibration__sums_are_those_of_all_rows(classes: int) -> None:
    """Hinges, slopes of hinges that are rounded by a tenth on either side, and class means."""
    X, y, u = two_classes(1200, 2) if classes == 2 else three_classes(1200)
    c = quiet(X, y, sample_weight=u, size=150, method="svm")
    plain = quiet(X, y, sample_weight=u, size=150, method=PlainSVM())
    assert met(c) == BOTH
    gaps: dict[str, list[float]] = {"met": [], "plain": []}
    for own in problems(y):
        w, b, _ = solved(X, own, u, 1.0)
        signs = np.where(own, 1.0, -1.0)
        slope = np.clip((1.1 - signs * (X @ w + b)) / 0.2, 0.0, 1.0)
        loss = np.maximum(1.0 - signs * (X @ w + b), 0.0)
        terms = np.column_stack([loss, slope * signs, (slope * signs)[:, np.newaxis] * X])
        spread = np.sqrt(u @ (terms - read.mean_of(terms, u)) ** 2 * u.mean() / 150 * 1200)
        for name, coreset in (("met", c), ("plain", plain)):
            gap = (coreset.weights @ terms[coreset.indices] - u @ terms) / spread
            gaps[name].append(float(np.abs(gap).max()))
    assert max(gaps["met"]) < 0.1
    assert max(gaps["plain"]) > 2 * max(gaps["met"])
    for one in range(classes):
        own = y[c.indices] == one
        assert np.allclose(c.weights[own] @ c.points[own], u[y == one] @ X[y == one], rtol=1e-5)
        assert c.weights[own].sum() == pytest.approx(u[y == one].sum(), rel=1e-9)


def test_calibration__gives_up_what_the_rows_drawn_cannot_meet() -> None:
    """A column that no row of the draw has forbids the means, and few active rows the gradient."""
    X, y, u = two_classes(1500, 3)
    X[:, 0] *= 3.0
    w, b, _ = solved(X, y, u, 1.0)
    calm = np.flatnonzero(np.where(y, 1, -1) * (X @ w + b) > 3.0)
    found = {}
    for seed in range(6):
        lonely = calm[np.random.default_rng(seed).integers(len(calm))]
        rows = X.copy()
        rows[:, 1] = 0.0
        rows[lonely, 1] = 0.2
        c = quiet(rows, y, sample_weight=u, size=60, method="svm")
        found[lonely in c.indices] = met(c)
        assert wanted(c) == BOTH
    assert found[False] == GRADIENT
    X, y, u = two_classes(1500, 3)
    X[:, 0] += np.where(y, 4.0, -4.0)
    X[np.random.default_rng(0).random(1500) < 0.02] *= 8.0
    for size in (65, 40):
        seen = set()
        for seed in range(10):
            method = face.SVM(lam=1e-3)
            c = quiet(X, y, sample_weight=u, size=size, method=method, random_state=seed)
            seen |= {met(c)}
            for one in (0, 1):
                own = y[c.indices] == one
                assert c.weights[own].sum() == pytest.approx(u[y == one].sum(), rel=1e-9)
                if "class means" in met(c):
                    sums = c.weights[own] @ c.points[own]
                    assert np.allclose(sums, u[y == one] @ X[y == one], rtol=1e-5)
        assert seen - {BOTH}


def test_calibration__to_the_gradient_takes_no_class_means_far_away() -> None:
    """From where weights of one over the probability leave them, scaled to the class totals."""
    X, y, u = two_classes(400, 3)
    X[np.random.default_rng(0).random(400) < 0.02] *= 8.0
    method = face.SVM(n_clusters=1)
    p = read.inclusion(mixed(X, y, u, 1.0)[1], 24)
    seen = 0
    for seed in range(8):
        c = quiet(X, y, sample_weight=u, size=24, method=method, random_state=seed)
        if "rows" in c.provenance:
            continue  # uniform rows were better
        seen += 1
        before, gaps = (u / p)[c.indices], []
        for one in (0, 1):
            own = y[c.indices] == one
            before[own] *= u[y == one].sum() / before[own].sum()
            wanted_sums, points, plain = u[y == one] @ X[y == one], c.points[own], before[own]
            spread = np.sqrt(plain**2 @ (points - read.mean_of(points, plain)) ** 2)
            weights = (c.weights[own], plain)
            gaps.append([np.linalg.norm((w @ points - wanted_sums) / spread) for w in weights])
        after, at_first = np.linalg.norm(gaps, axis=0)
        assert after <= 1.2 * at_first
    assert seen >= 2


# --- the estimated error ------------------------------------------------------------------------


@pairs(classes=[2, 3], intercept=[True, False], lam=[0.02, 3.0])
def test_estimated_error__is_exact_for_every_problem(
    classes: int, intercept: bool, lam: float
) -> None:
    """Costs of all problems are summed up, and divided by those without features, too."""
    X, y, u = two_classes() if classes == 2 else three_classes(300)
    method = face.SVM(lam=lam, intercept=intercept)
    c = quiet(X, y, sample_weight=u, size=40, method=method)
    on_data, on_coreset, none = 0.0, 0.0, 0.0
    for own in problems(y):
        options: Any = {"lam": lam, "intercept": intercept}
        w, b, cost = solved(c.points, own[c.indices], c.weights, **options)
        on_coreset += cost
        on_data += read.svm_cost(X, np.where(own, 1.0, -1.0), u, w, b, lam=lam)
        rest = 2 * min(u[own].sum(), u[~own].sum()) if intercept else u.sum()
        none += lam * rest
    found = c.provenance["estimated_error"]
    assert found["error"] == pytest.approx(on_data / on_coreset - 1, abs=2e-3)
    assert found["of_none"]["error"] == pytest.approx((on_data - on_coreset) / none, abs=1e-3)
    assert found["exact"]


# --- limits ------------------------------------------------------------------------------------


def test_build__rows_without_weight_may_hold_anything() -> None:
    X, y, u = two_classes()
    rows, weights = X.copy(), u.copy()
    weights[[1, 7, 290]] = 0.0
    options: dict[str, Any] = {"sample_weight": weights, "size": 20, "method": "svm"}
    expected = quiet(rows, y, **options)
    rows[[1, 7, 290]] = 1e200
    assert quiet(rows, y, **options).equals(expected)


def test_build__weights_that_vanish_beside_the_penalty() -> None:
    X, y, u = two_classes()
    u /= u.sum()
    for lam, total in ((1.0, 1.1e-150), (1.0, 1e-160), (1e6, 1e-160), (1e-300, 1.0)):
        for method in (face.SVM(lam=lam), face.Logistic(lam=lam)):
            c = quiet(X, y, sample_weight=u * total, size=60, method=method)
            assert c.weights.sum() == pytest.approx(total)
            assert len(c) == 60
    model = face.estimators.CoresetSVC(size=60, random_state=0)
    for parameters in ({"C": 1e-300}, {"C": 1.0, "class_weight": dict.fromkeys(set(y), 1e-160)}):
        assert abs(model.set_params(**parameters).fit(X, y).coef_).max() < 1e-9


def test_build__columns_at_most() -> None:
    y = np.arange(40) % 2
    for d in (2**14, 2**14 + 1):
        X = sp.csr_array((np.ones(40), (np.arange(40), np.arange(40))), shape=(40, d))
        if d > 2**14:
            with pytest.raises(face.CoresetError, match="16,384"):
                quiet(X, y, size=20, method="svm")
        else:
            assert len(quiet(X, y, size=20, method=face.SVM(variant="paper"))) == 20


def test_svm__parameters_that_cannot_be_used() -> None:
    for lam in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(face.errors.InvalidInputError, match="lam"):
            face.SVM(lam=lam)
    wrong: list[tuple[type[Exception], dict[str, Any]]] = [
        (TypeError, {"lam": "1"}),
        (TypeError, {"n_clusters": 1.5}),
        (TypeError, {"intercept": "yes"}),
        (ValueError, {"n_clusters": 0}),
        (ValueError, {"variant": "other"}),
    ]
    for error, options in wrong:
        with pytest.raises(error):
            face.SVM(**options)
    assert face.SVM(lam=0.5, n_clusters=None, variant="paper").lam == 0.5
    X, y, u = two_classes()
    with pytest.raises(face.errors.InvalidInputError, match="one class"):
        face.build(X, y * 0, method="svm", size=20)
    weights = np.where(y, u, 0.0)
    with pytest.raises(face.errors.InvalidInputError, match="one class"):
        face.build(X, y, sample_weight=weights, method="svm", size=20)
