"""Covers and kernel machines on core points, against plain readings of the objective."""

from __future__ import annotations

import math
import warnings
from typing import Any

import dask.array as da
import numpy as np
import pytest

from tests.acceptance import face
from tests.acceptance.tools import readings as read

es = face.estimators


def data(n: int = 300, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 2))
    y = (np.sin(6 * X[:, 0]) > 1.2 * X[:, 1] + 0.15 * rng.normal(size=n)).astype(int)
    return X, y, rng.uniform(0.3, 2.0, size=n)


def online(X: Any, radius: float) -> list[int]:
    """AVM's rule: a row outside every ball opens a new one."""
    core: list[int] = []
    for i, x in enumerate(X):
        if not core or ((X[core] - x) ** 2).sum(axis=1).min() > radius**2:
            core.append(i)
    return core


@pytest.mark.parametrize("diameter", [0.2, 0.5, 3.0])
def test_cover__opens_a_ball_for_a_row_outside_of_all(diameter: float) -> None:
    X, _, u = data()
    c = face.build(X, sample_weight=u, method=face.Coverage(diameter=diameter))
    assert c.indices.tolist() == online(X, diameter / 2)
    gaps = np.sqrt(read.distances(X, X[c.indices]))
    assert c.provenance["radius"] == pytest.approx(gaps.min(axis=1).max())
    assert c.provenance["diameter"] == diameter
    counts = np.bincount(gaps.argmin(axis=1), u, minlength=len(c))
    assert np.allclose(c.weights, counts)


@pytest.mark.parametrize("kind", ["float32", "chunks", "weightless"])
def test_cover__of_blocks_holds_every_row(kind: str) -> None:
    X, _, u = data(2000)
    X = X.astype(np.float32) if kind == "float32" else X
    if kind == "weightless":
        u[::3] = 0.0
    rows = da.from_array(X, chunks=(300, 2))
    c = face.build(rows, sample_weight=u, method=face.Coverage(diameter=0.3))
    used = u > 0
    gaps = np.sqrt(read.distances(X[used].astype(float), c.points.astype(float)))
    assert gaps.min(axis=1).max() <= 0.15 * (1 + 1e-6)
    assert c.provenance["radius"] == pytest.approx(gaps.min(axis=1).max(), rel=1e-5)
    assert c.weights.sum() == pytest.approx(u.sum())
    assert np.allclose(c.weights, np.bincount(gaps.argmin(axis=1), u[used], len(c)), rtol=1e-5)
    between = np.sqrt(read.distances(c.points.astype(float), c.points.astype(float)))
    assert (between + np.eye(len(c)) * 9).min() > 0.15 * 0.999


def greedy(X: Any, size: int) -> float:
    """Radius of farthest-first traversal, which is at most twice the least."""
    gaps = np.sqrt(((X - X[0]) ** 2).sum(axis=1))
    for _ in range(size - 1):
        gaps = np.minimum(gaps, np.sqrt(((X - X[gaps.argmax()]) ** 2).sum(axis=1)))
    return float(gaps.max())


@pytest.mark.parametrize("size", [1, 7, 40, 100])
def test_cover__of_a_size_has_a_diameter_near_the_least(size: int) -> None:
    X, _, _ = data(600)
    c = face.build(da.from_array(X, chunks=(170, 2)), method=face.Coverage(size=size))
    assert len(c) <= size
    gaps = np.sqrt(read.distances(X, c.points)).min(axis=1).max()
    facts = c.provenance
    assert facts["radius"] == pytest.approx(gaps)
    assert facts["diameter"] >= 2 * gaps * (1 - 1e-9)
    assert gaps <= 1.3 * greedy(X, size)
    assert facts["least_diameter"] <= facts["diameter"]
    assert facts["least_diameter"] <= 2 * greedy(X, size)


def loss_of(name: str, z: Any, theta: float = 0.4, mu: float = 0.4) -> Any:
    if name == "hinge":
        return np.maximum(1 - z, 0)
    if name == "squared_hinge":
        return np.maximum(1 - z, 0) ** 2
    short, long = np.maximum(1 - theta - z, 0), np.maximum(z - 1 - theta, 0)
    return (short**2 + mu * long**2) / (1 - theta) ** 2


def reading(model: Any, rows: Any, beta: Any, loss: str) -> float:
    """Half the squared norm, and lambda times the weighted mean of the losses."""
    X, y, u = rows
    core = model.core_points_ if hasattr(model, "core_points_") else model.support_vectors_
    gram = np.exp(-model.gamma_ * read.distances(core, core))
    values = np.exp(-model.gamma_ * read.distances(X, core)) @ beta
    z = np.where(y == model.classes_[1], 1.0, -1.0) * values
    return float(beta @ gram @ beta / 2 + model.lam_ / u.sum() * (u @ loss_of(loss, z)))


def fitted(solver: str, loss: str, core_points: str = "drawn", **options: Any) -> Any:
    X, y, u = data()
    given = {"gamma": 4.0, "lam": 40.0, "max_points": 20, "random_state": 0} | options
    model = es.CoresetKernelClassifier(core_points, solver, loss, **given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y, sample_weight=u)


CASES = [
    ("newton", "odm", "drawn"),
    ("newton", "squared_hinge", "cover"),
    ("csvrg", "odm", "cover"),
    ("csvrg", "squared_hinge", "drawn"),
    ("avm", "odm", "cover"),
    ("avm", "hinge", "drawn"),
]


@pytest.mark.parametrize(("solver", "loss", "core_points"), CASES)
def test_machine__objective_and_decisions_are_the_formula(
    solver: str, loss: str, core_points: str
) -> None:
    X, y, u = data()
    model = fitted(solver, loss, core_points)
    beta = model.dual_coef_[0]
    core = model.core_points_
    values = np.exp(-4.0 * read.distances(X, core)) @ beta
    assert np.allclose(model.decision_function(X), values)
    assert (model.predict(X) == (values > 0)).all()
    at = reading(model, (X, y, u), beta, loss)
    assert model.objective_ == pytest.approx(at, rel=1e-5)
    gram = np.exp(-4.0 * read.distances(core, core))
    safe = 40.0 if loss == "hinge" else 20.0
    assert beta @ gram @ beta <= safe * 1.05
    assert at < 0.7 * reading(model, (X, y, u), 0 * beta, loss)
    assert model.score(X, y) > 0.85
    if solver == "newton":
        rng = np.random.default_rng(0)
        for _ in range(30):
            move = rng.normal(size=len(beta)) * np.abs(beta).mean() * 0.02
            assert reading(model, (X, y, u), beta + move, loss) >= at * (1 - 1e-4)
    elif loss != "hinge":
        best = fitted("newton", loss, core_points)
        here = reading(best, (X, y, u), best.dual_coef_[0], loss)
        if len(best.core_points_) == len(core) and np.allclose(best.core_points_, core):
            assert here * 0.999 <= at <= here * 1.15


@pytest.mark.parametrize("solver", ["csvrg", "avm"])
def test_machine__with_every_row_as_core_point_is_that_of_all_rows(solver: str) -> None:
    X, y, u = data(60)
    own: dict[str, Any] = {"max_points": 60, "diameter": 1e-6}
    made, best = (
        es.CoresetKernelClassifier("cover", way, gamma=4.0, lam=40.0, random_state=0, **own)
        for way in (solver, "newton")
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made.fit(X, y, sample_weight=u)
        least = best.fit(X, y, sample_weight=u).objective_
    assert len(made.core_points_) == 60
    assert least * 0.999 <= reading(made, (X, y, u), made.dual_coef_[0], "odm") <= least * 1.02


@pytest.mark.parametrize("options", [{"theta": 0.2, "mu": 0.8}, {"lam": 4.0}, {"gamma": 16.0}])
def test_machine__parameters_are_those_of_the_formula(options: dict[str, Any]) -> None:
    X, y, u = data()
    model = fitted("newton", "odm", **options)
    beta = model.dual_coef_[0]
    core = model.core_points_
    gram = np.exp(-model.gamma_ * read.distances(core, core))
    z = np.where(y, 1.0, -1.0) * (np.exp(-model.gamma_ * read.distances(X, core)) @ beta)
    terms = {"theta": 0.4, "mu": 0.4} | {k: v for k, v in options.items() if k in ("theta", "mu")}
    lam = options.get("lam", 40.0)
    at = beta @ gram @ beta / 2 + lam / u.sum() * (u @ loss_of("odm", z, **terms))
    assert model.objective_ == pytest.approx(at, rel=1e-6)


def test_machine__csvrg_is_the_mean_of_blocks_and_weights_are_rows() -> None:
    """One machine of repeated rows, or of weights; in memory, or in chunks."""
    X, y, _ = data(120)
    counts = 1 + np.arange(120) % 3
    options: dict[str, Any] = {"gamma": 4.0, "lam": 40.0, "diameter": 0.2, "random_state": 0}

    def make() -> Any:
        return es.CoresetKernelClassifier("cover", "newton", "odm", **options)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weighted = make().fit(X, y, sample_weight=counts)
        repeated = make().fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
        lazy = make().fit(da.from_array(X, chunks=(50, 2)), y, sample_weight=counts)
    assert np.allclose(weighted.core_points_, repeated.core_points_)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)
    grid = data(50, 9)[0]
    assert np.allclose(
        weighted.decision_function(grid), repeated.decision_function(grid), atol=1e-4
    )
    assert lazy.objective_ == pytest.approx(weighted.objective_, rel=0.05)


def test_machine__three_classes_are_three_problems() -> None:
    X, _, u = data()
    y = np.digitize(X[:, 0] + 0.3 * X[:, 1], [0.4, 0.8])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = es.CoresetKernelClassifier(gamma=4.0, lam=40.0, max_points=25, random_state=0)
        model.fit(X, y, sample_weight=u)
    core = model.core_points_
    values = np.exp(-4.0 * read.distances(X, core)) @ model.dual_coef_.T
    assert np.allclose(model.decision_function(X), values)
    assert (model.predict(X) == values.argmax(axis=1)).all()
    assert model.score(X, y) > 0.9
    gram = np.exp(-4.0 * read.distances(core, core))
    total = 0.0
    for k, beta in enumerate(model.dual_coef_):
        z = np.where(y == k, 1.0, -1.0) * values[:, k]
        total += beta @ gram @ beta / 2 + 40.0 / u.sum() * (u @ loss_of("odm", z))
    assert np.sum(model.objective_) == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
def test_odm__is_the_optimum_over_all_rows(weighted: bool) -> None:
    X, y, u = data(150)
    u = u if weighted else np.ones(150)
    model = es.ODMClassifier(gamma=4.0, lam=40.0, tol=1e-9, max_iter=10**5)
    model.fit(X, y, sample_weight=u if weighted else None)
    core, coef = model.support_vectors_, model.dual_coef_[0]
    values = np.exp(-4.0 * read.distances(X, core)) @ coef
    assert np.allclose(model.decision_function(X), values)
    at = reading(model, (X, y, u), coef, "odm")
    assert model.objective_ == pytest.approx(at, rel=1e-6)
    # The gradient in the space of the kernel: w + lam / U sum u a phi is zero.
    z = np.where(y, 1.0, -1.0) * values
    slope = 2 / 0.36 * (np.minimum(z - 0.6, 0) + 0.4 * np.maximum(z - 1.4, 0))
    expected = -40.0 / u.sum() * u * slope * np.where(y, 1.0, -1.0)
    assert np.allclose(np.exp(-4.0 * read.distances(X, X)) @ expected, values, atol=2e-3)


def test_papers__core_points_reach_the_machine_of_all_rows() -> None:
    """Accuracy within 3 points of the exact machine with a twentieth of the rows (Table 2)."""
    X, y, _ = data(1200, 3)
    T, t, _ = data(1200, 4)
    options: dict[str, Any] = {"gamma": 4.0, "lam": 256.0}
    exact = es.ODMClassifier(**options).fit(X, y).score(T, t)
    for solver in ("newton", "csvrg"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = es.CoresetKernelClassifier(
                solver=solver, max_points=60, random_state=0, **options
            ).fit(da.from_array(X, chunks=(400, 2)), y)
        assert model.score(T, t) > exact - 0.03
        assert len(model.core_points_) <= 60


def test_gamma__scale_and_auto_are_those_of_scikit_learn() -> None:
    X, _, u = data()
    scaled = fitted("newton", "odm", gamma="scale")
    mean = (u[:, None] * X).sum() / (2 * u.sum())
    variances = [X.var(), (u[:, None] * (X - mean) ** 2).sum() / (2 * u.sum())]
    assert any(math.isclose(scaled.gamma_, 1 / (2 * v), rel_tol=0.05) for v in variances)
    assert fitted("newton", "odm", gamma="auto").gamma_ == 0.5


@pytest.mark.parametrize("solver", ["newton", "csvrg", "avm"])
def test_trace__counts_reads_and_ends_at_the_objective(solver: str) -> None:
    trace = fitted(solver, "odm").trace_
    reads = [step["reads"] for step in trace]
    assert reads[0] > 0
    assert (np.diff(reads) > 0).all()
    assert trace[-1]["objective"] <= trace[0]["objective"]


def test_machine__diameter_is_that_of_the_cells() -> None:
    """A cover keeps the one that was given, and points that were drawn have twice the radius."""
    assert fitted("newton", "odm", "cover", diameter=0.2, max_points=None).diameter_ == 0.2
    drawn = fitted("newton", "odm", max_points=40)
    gaps = np.sqrt(read.distances(data()[0], drawn.core_points_))
    assert drawn.diameter_ == pytest.approx(2 * gaps.min(axis=1).max())


def test_machine__of_a_size_is_trained_on_so_many_rows() -> None:
    """Half of them evenly over the classes, and half in proportion to weights."""
    X, _, _ = data()
    y, u = np.where(np.arange(300) % 5, "a", "b"), np.where(np.arange(300) % 5, 1.0, 1.5)
    model = es.CoresetKernelClassifier(gamma=4.0, max_points=10, size=80, random_state=0)
    kept = model.fit(X, y, sample_weight=u).coreset_
    share = u[y == "b"].sum() / u.sum()
    rare = 80 * (0.25 + share / 2)
    assert np.count_nonzero(kept.labels == "b") == pytest.approx(rare, abs=1)
    assert len(kept) == pytest.approx(80, abs=1)
    assert kept.weights.sum() == pytest.approx(u.sum())


def test_machine__of_fewer_rows_than_classes_is_refused() -> None:
    X, y, _ = data()
    model = es.CoresetKernelClassifier(size=1, random_state=0)
    with pytest.raises(face.errors.InvalidInputError, match=r"size=1 .* 2 classes.*at least 2"):
        model.fit(X, y)
    assert set(model.set_params(size=2).fit(X, y).coreset_.labels) == {0, 1}


def test_cover__of_a_diameter_bounds_no_other() -> None:
    facts = face.build(data()[0], method=face.Coverage(diameter=0.3)).provenance
    assert facts.get("least_diameter", 0.0) == 0.0
