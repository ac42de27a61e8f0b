"""Active learning: few labels, and a guarantee that holds."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

from daskcoreset.constructions.margin.active import ActiveMaxMargin
from daskcoreset.constructions.margin.active_run import OracleError
from daskcoreset.constructions.margin.labels import Phase
from daskcoreset.constructions.margin.query_strategy import verification_length
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.solvers.hard_margin import hard_margin, hard_margin_bias
from tests.pairs import each, pairs
from tests.tools.active_pools import W, above, looked_up, same, separable


def circle(n: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Fig. 3: one negative among positives on a circle, which every separator can cut off."""
    angle = 2 * np.pi * np.arange(n) / n
    y = np.ones(n, dtype=int)
    y[n // 3] = -1
    return np.stack([np.cos(angle), np.sin(angle)], axis=1), y


@pairs(strategy=["pool", "stream"], batch=[1, 4], intercept=[True, False])
def test_active__finds_nearly_the_largest_margin_with_few_labels(
    intercept: bool, batch: int, strategy: Any
) -> None:
    X = np.random.default_rng(3).normal(size=(6000, 4)) + (0 if not intercept else 10)
    height = (X - (10 if intercept else 0)) @ W
    X, height = X[np.abs(height) > 0.05], height[np.abs(height) > 0.05]
    y = np.where(height > 0, 1, -1)
    found = ActiveMaxMargin(
        looked_up(y), intercept=intercept, batch=batch, strategy=strategy, random_state=0
    ).run(X, chunks=1500)
    assert found.stopped == "verified"
    assert found.n_labels < len(X) / 15
    assert (found.predict(X) == y).all()
    # On everything, by the solver itself: rows within the margin of the best are what counts.
    near = np.argsort(np.abs(height))[:400]
    whole = (
        hard_margin_bias(X[near], y[near]) if intercept else hard_margin(X[near] * y[near, None])
    )
    least = (y * (X @ found.w + found.b)).min()
    assert np.isclose(np.linalg.norm(found.w), 1.0)
    assert 0.9 * found.margin - 1e-9 <= least <= whole.margin * (1 + 1e-6)
    assert least >= 0.9 * whole.margin * (1 - 1e-6)
    rows = X[found.core_indices]
    reach = np.square(rows - (rows.mean(axis=0) if intercept else 0)).sum(axis=1).max()
    assert len(found.core_indices) <= 2 + 4 * reach / (0.1 * found.margin) ** 2
    assert np.array_equal(found.core_labels, y[found.core_indices])


def test_active__stream_reads_only_as_far_as_it_must() -> None:
    X, read = separable(), []

    def block(i: int) -> Any:
        read.append(i)
        return X[i * 500 : (i + 1) * 500]

    parts = [
        da.from_delayed(dask.delayed(block)(i), (500, 4), X.dtype, meta=X[:0]) for i in range(8)
    ]
    asking = ActiveMaxMargin(strategy="stream", random_state=0).start(da.concatenate(parts))
    with dask.config.set(scheduler="sync"):
        wanted = asking.ask()
        while wanted is not None and wanted.phase is Phase.SEEDING:
            asking.tell(above(wanted.rows))
            wanted = asking.ask()
        assert wanted is not None
        read.clear()
        asking.tell(above(wanted.rows))
        asking.ask()
    assert 1 <= len(read) < 8


@pytest.mark.statistical
def test_active__guarantee_holds_over_seeds() -> None:
    """Error above 0.2 with chance 0.2 at most; 24 runs, false alarm below 1e-6.

    A Binomial(24, 0.2) passes 16 with chance 1e-7. A far group of rows that the first
    separators have on the wrong side is never close to the boundary: only verification sees it.
    """
    rng = np.random.default_rng(0)
    bulk = rng.uniform(-1, 1, size=(400, 3)) * [1, 1, 0]
    bulk = bulk[np.abs(bulk[:, 0]) > 0.05]
    X = np.concatenate([bulk, rng.normal([40, 40, 30], 0.1, (150, 3))])
    y = np.where((X[:, 0] > 0) & (X[:, 2] < 20), 1, -1)
    wrong = 0
    for seed in range(24):
        learner = ActiveMaxMargin(looked_up(y), error=0.2, delta=0.2, random_state=seed)
        found = learner.run(X)
        assert found.stopped == "verified"
        wrong += bool((found.predict(X) != y).mean() > 0.2)
    assert wrong <= 16


def test_nightmare__a_small_error_needs_about_all_labels() -> None:
    # Section 4.3: whoever has not asked for the negative does not know that it is there.
    X, y = circle(100)
    found = ActiveMaxMargin(looked_up(y), error=0.001, delta=0.001, random_state=0).run(X)
    negative = int(np.flatnonzero(found.labels == -1)[0])
    assert (found.predict(X) == y).all()
    # Till then rows are labelled in random order; all of them if nothing but luck helps.
    others = [
        ActiveMaxMargin(looked_up(y), error=0.001, delta=0.001, random_state=seed).run(X)
        for seed in range(8)
    ]
    spent = [run.n_labels_by_phase["seeding"] for run in others]
    assert found.n_labels_by_phase["seeding"] == negative + 1
    assert np.mean(spent) > 30


def test_nightmare__a_larger_error_stops_with_the_guarantee() -> None:
    X, y = circle(1000)
    oracle = looked_up(np.ones(1000, dtype=int))  # the negative is not met
    found = ActiveMaxMargin(oracle, error=0.05, delta=0.05, random_state=1).run(X)
    assert found.stopped == "verified"
    assert found.n_labels <= verification_length(0.05, 0.05, 1, 1) + 1
    assert found.certificate.error <= 0.05
    assert (found.predict(X) != y).mean() <= 0.05
    assert found.margin == math.inf


def test_known__no_label_is_spent_on_a_rare_class() -> None:
    X, y = circle(1000)
    known = (np.flatnonzero(y == -1), [-1])
    found = ActiveMaxMargin(looked_up(y), random_state=0).run(X, known=(known[0], known[1]))
    assert found.n_labels_by_phase["seeding"] <= 1
    assert found.n_labels == len(found.indices) - 1
    with pytest.raises(InvalidInputError, match="X has 1000 rows"):
        ActiveMaxMargin().start(X, known=([1000], [1]))


def test_stalled__no_verification_can_succeed() -> None:
    X = np.append(np.arange(10.0), 100.0)[:, None]
    weights = np.append(np.ones(10), 1e-15)  # never drawn, and never close
    # No separator of some of these is flat: rounding would order the rows by their distance to it.
    y = np.array([0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1])
    found = ActiveMaxMargin(looked_up(y), C=1.0, error=0.01, random_state=0).run(
        X, sample_weight=weights
    )
    assert found.stopped == "stalled"
    assert found.certificate.error == 1.0
    assert sorted(found.indices.tolist()) == list(range(10))


def test_max_labels__says_what_is_certified_by_then() -> None:
    X = separable()
    full = ActiveMaxMargin(above, random_state=0).run(X)
    cut = ActiveMaxMargin(above, random_state=0, max_labels=full.n_labels - 40).run(X)
    assert cut.stopped == "max_labels"
    assert cut.n_labels == full.n_labels - 40
    assert full.certificate.error < cut.certificate.error < 1
    exact = ActiveMaxMargin(above, random_state=0, max_labels=full.n_labels).run(X)
    assert exact.stopped == "verified"  # the last label was the one that was missing
    assert exact.certificate == full.certificate
    assert np.array_equal(cut.indices, full.indices[: cut.n_labels])


@pytest.mark.nightly
def test_soft__wrong_labels_are_forgiven() -> None:
    X = separable(3000)
    y = above(X)
    flipped = np.random.default_rng(1).choice(len(X), 30, replace=False)
    y[flipped] = np.where(y[flipped] == "yes", "no", "yes")
    with pytest.raises(OracleError, match="contradict"):
        ActiveMaxMargin(looked_up(y), error=0.01, random_state=0).run(X)
    found = ActiveMaxMargin(looked_up(y), C=1.0, error=0.05, random_state=0, max_labels=300).run(X)
    assert (found.predict(X) == above(X)).mean() > 0.97


def test_soft__is_the_squared_hinge_loss_of_scikit_learn() -> None:
    from sklearn.svm import LinearSVC

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] + rng.normal(size=60) > 0, 1, -1)
    known = (np.arange(60), y)
    asking = ActiveMaxMargin(C=2.0, intercept=False, epsilon=1e-6).start(X, known=known)
    found = asking.result()
    svc = LinearSVC(C=1.0, loss="squared_hinge", fit_intercept=False, tol=1e-10, max_iter=10**6)
    w = svc.fit(X, y).coef_[0]  # C / 2 of the sum of squares, against C of it
    assert np.allclose(found.w, w / np.linalg.norm(w), atol=1e-4)


@pytest.mark.distributed
@pytest.mark.nightly
def test_schedulers__same_bits(cluster: Any) -> None:
    from distributed import Client

    X = da.from_array(separable(), chunks=(1000, 4))
    learner = ActiveMaxMargin(above, batch=2, random_state=4)
    runs = []
    for scheduler in ("sync", "threads"):
        with dask.config.set(scheduler=scheduler):
            runs.append(learner.run(X))
    with Client(cluster):
        runs.append(learner.run(X))
    assert all(same(runs[0], run) for run in runs[1:])


def test_inputs__agree(tmp_path: Path) -> None:
    import zarr

    X = separable(2000)
    learner = ActiveMaxMargin(above, random_state=0)
    whole = learner.run(X)
    stored = zarr.create_array(tmp_path / "X.zarr", shape=X.shape, chunks=(300, 4), dtype="f8")
    stored[:] = X
    unknown = da.from_array(X, chunks=(300, 4))
    unknown = unknown[unknown[:, 0] > -np.inf]
    empty = da.concatenate([da.zeros((0, 4)), unknown])
    spoilt = np.insert(X, 5, np.nan, axis=0)
    inputs: list[tuple[Any, dict[str, Any]]] = [
        (str(tmp_path / "X.zarr"), {}),
        (unknown, {}),
        (empty, {}),
        (sp.csr_array(X), {}),
        (X, {"chunks": 77}),
    ]
    for data, options in inputs:
        found = learner.run(data, **options)
        assert np.array_equal(found.indices, whole.indices)
        assert np.allclose(found.w, whole.w)
    found = learner.run(spoilt, on_invalid="drop", chunks=100)
    shifted = whole.indices + (whole.indices >= 5)
    assert np.array_equal(found.indices, shifted)


def cover(y: Any, **options: Any) -> Any:
    options = {"strategy": "cover", "batch": 5, "random_state": 0, **options}
    return ActiveMaxMargin(looked_up(y), **options)


@pytest.mark.nightly
def test_cover__verifies_as_the_others_do_and_begins_in_every_group() -> None:
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0], [50.0, 50.0], [90.0, 0.0]])
    sizes = [2000, 600, 30, 20, 15]  # random rows would meet the small ones late
    X = np.concatenate([c + rng.normal(size=(n, 2)) for c, n in zip(centers, sizes, strict=True)])
    y = np.where(X[:, 0] + X[:, 1] > 45, 1, -1)
    asking = cover(y).start(X, chunks=1000)
    first = asking.ask()
    groups = np.square(first.rows[:, None] - centers).sum(axis=2).argmin(axis=1)
    assert first.phase is Phase.QUERYING
    assert sorted(groups.tolist()) == [0, 1, 2, 3, 4]
    found = asking.run(looked_up(y))
    assert found.stopped == "verified"
    assert found.n_labels_by_phase["seeding"] == 0
    assert (found.predict(X) == y).mean() >= 0.95
    assert found.certificate.error <= 0.05


@pytest.mark.nightly
def test_cover__a_batch_is_of_the_strip_apart_and_one_row_in_five_random() -> None:
    X = separable()
    y = np.where(above(X) == "yes", 1, -1)
    both = [int((y == s).argmax()) for s in (-1, 1)]
    asking = cover(y, batch=10).start(X, known=(both, y[both]), chunks=700)
    before, request = asking.result(), asking.ask()
    gaps = np.abs(before.decision_function(X))
    gaps[both] = np.inf
    near = np.argsort(gaps)[:640]
    close, drawn = request.indices[:8], request.indices[8:]
    assert len(request) == 10
    assert np.isin(close, near).all()
    assert not np.isin(drawn, near).all()
    # Each row of the strip has one that was asked for nearer than the closest rows alone have.
    apart = [
        np.square(X[near][:, None] - X[rows]).sum(axis=2).min(axis=1).sum()
        for rows in (close, near[:8])
    ]
    assert apart[0] < apart[1]


@pytest.mark.nightly
def test_cover__a_row_at_a_time_stands_for_what_no_label_stands_for() -> None:
    rng = np.random.default_rng(0)  # four groups across the boundary, one of them labelled
    groups = np.array([[0.0, 0.0], [0.0, 30.0], [0.0, 60.0], [0.0, 90.0]])
    X = np.concatenate([center + rng.normal(size=(150, 2)) for center in groups])
    X[:2] = [[-1.0, 0.0], [1.0, 0.0]]
    y, both = np.where(X[:, 0] > 0, 1, -1), [0, 1]
    asking = cover(y, batch=1, C=1.0).start(X, known=(both, y[both]), chunks=250)
    for _ in range(3):
        asking.tell(y[asking.ask().indices])
    asked = asking.result().indices[2:]
    assert sorted((asked // 150).tolist()) == [1, 2, 3]


@pytest.mark.nightly
def test_cover__large_numbers_and_many_parts_of_a_strip() -> None:
    X = separable(3000) + 1e6
    y = np.where((heights := X @ W) > np.median(heights), 1, -1)
    both = [int((y == s).argmax()) for s in (-1, 1)]
    request = cover(y, batch=600, C=1.0).start(X, known=(both, y[both])).ask()
    assert len(set(request.indices.tolist())) == len(request) == 600


def test_cover__one_class_is_certified_by_random_rows_only() -> None:
    X = separable(2000)
    found = cover(np.ones(len(X))).run(X)
    needed = verification_length(0.05, 0.05, 1, 1)
    assert found.stopped == "verified"
    assert found.n_labels_by_phase["querying"] == 5 + 10 + 20
    assert found.certificate.verified == needed
    assert found.certificate.error <= 0.05


@pytest.mark.nightly
@pytest.mark.parametrize("scheduler", ["threads", "sync"])
def test_cover__same_bits_on_every_scheduler_and_after_a_break(
    scheduler: str, tmp_path: Path
) -> None:
    X = separable(800)
    y = np.where(above(X) == "yes", 1, -1)
    whole = cover(y, error=0.2, delta=0.2).run(X, chunks=300)
    with dask.config.set(scheduler=scheduler):
        lazy = da.from_array(X, chunks=(300, 4))
        asking = cover(y, error=0.2, delta=0.2).start(lazy, store=tmp_path / "run")
        for _ in range(2):
            request = asking.ask()
            assert request is not None
            asking.tell(y[request.indices])
        resumed = ActiveMaxMargin.resume(tmp_path / "run", lazy)
        assert same(resumed.run(looked_up(y)), whole)


def _hostile(kind: str) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(1000, 4))
    y = np.where(X[:, 0] + 0.5 * X[:, 1] > 0.2, 1, -1)
    if kind == "duplicates":  # most rows are one of three points on both sides of the boundary
        X[:900] = X[np.arange(900) % 3]
        y = np.where(X[:, 0] + 0.5 * X[:, 1] > 0.2, 1, -1)
    elif kind == "five rows":
        y = np.full(1000, -1)
        X[:5], y[:5] = X[:5] + 30.0, 1
    elif kind == "one column":
        X[:, 3] *= 1e6
    elif kind == "sorted":
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
    elif kind == "noise":
        y = rng.choice([-1, 1], 1000)
    elif kind == "constant":
        X[:] = 1.0
    return X, y


@pytest.mark.nightly
@each(kind=["duplicates", "five rows", "one column", "sorted", "noise", "constant"], batch=[1, 5])
def test_cover__hostile_pools_end_within_the_labels_allowed(kind: str, batch: int) -> None:
    X, y = _hostile(kind)
    learner = cover(y, C=1.0, max_labels=60, batch=batch, error=0.1)
    found = learner.run(X, chunks=500)
    assert found.n_labels <= 60
    assert len(set(found.indices.tolist())) == len(found.indices)
    if found.stopped == "verified":
        assert (found.predict(X) != y).mean() <= found.certificate.error
    if kind in {"duplicates", "sorted"}:
        assert (found.predict(X) == y).mean() > 0.9


def test_cover__weights_say_which_rows_cover_the_pool() -> None:
    X = np.concatenate([np.zeros((500, 2)), np.full((500, 2), 9.0)])
    X += np.random.default_rng(0).normal(size=X.shape)
    y, weights = np.where(X[:, 0] > 9, 1, -1), np.repeat([0.0, 1.0], 500)
    asking = cover(y).start(X, sample_weight=weights)
    while (request := asking.ask()) is not None:
        assert (request.indices >= 500).all()
        asking.tell(y[request.indices])


@pytest.mark.nightly
def test_cover__seeks_a_rare_class_in_cells_before_it_is_certified_away() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(3000, 3)), rng.normal(size=(15, 3)) + 40.0])
    y = np.repeat([-1, 1], [3000, 15])
    runs = [cover(y, batch=2, random_state=seed).run(X) for seed in range(3)]
    assert all(run.n_labels_by_phase["seeding"] == 0 for run in runs)
    assert all((run.predict(X) == y).all() for run in runs)
    # Labels of cells prove nothing: while only they are there, so does the certificate.
    asking = cover(np.full(len(X), -1)).start(X)
    for _ in range(3):
        request = asking.ask()
        assert request is not None
        asking.tell(np.full(len(request), -1))
    assert asking.result().certificate.error == 1.0


def test_known__labels_of_one_class_leave_all_random_rows_to_the_certificate() -> None:
    X = separable(1000)
    asking = ActiveMaxMargin(random_state=0).start(X, known=([0], [1]))
    found = asking.run(lambda rows: np.ones(len(rows)))
    assert found.certificate.error <= 0.05
