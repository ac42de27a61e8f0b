"""Margins between several classes and between sequences, against all wrong answers."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import Any

import dask.array as da
import numpy as np
import pytest

from tests.acceptance import face
from tests.acceptance.tools import readings as read
from tests.acceptance.tools.counting import CountingArray
from tests.acceptance.tools.margins import three_classes
from tests.pairs import few

es = face.estimators


def class_gaps(X: Any, y: Any, k: int, *, intercept: bool) -> tuple[Any, Any]:
    """Differences of every row's joint features, and their rows; centred, with a column."""
    rows = X
    if intercept:
        spread = math.sqrt(((X - X.mean(axis=0)) ** 2).sum() / len(X))
        rows = np.column_stack([X - X.mean(axis=0), np.full(len(X), spread)])
    gaps, owners = [], []
    for i, own in enumerate(y):
        for rival in set(range(k)) - {int(own)}:
            z = np.zeros((k, rows.shape[1]))
            z[own] += rows[i]
            z[rival] -= rows[i]
            gaps.append(z.ravel())
            owners.append(i)
    return np.array(gaps), np.array(owners)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("of_all", [True, False])
def test_classes__certificate_trace_and_core_triples(of_all: bool, intercept: bool) -> None:
    """Blocks lack classes; what is found is what all wrong classes allow."""
    X, y = three_classes(120, 4, 3)
    order = np.argsort(y, kind="stable")
    X, y = X[order] + 20.0 * intercept, y[order]
    names = np.array(["ash", "elm", "fir", "oak"])
    gaps, owners = class_gaps(X, y, 4, intercept=intercept)
    best = read.hard_margin(gaps)[0]
    source = CountingArray(X)
    data = source.lazy(25), da.from_array(names[y], chunks=25)
    if of_all:
        model = es.StructuredMaxMargin(epsilon=0.05, fit_intercept=intercept, per_block=3)
        on_data, on_core = face.margins(model.fit(*data))
        found = model.result_
    else:
        model = es.MaxMarginClassifier(0.05, fit_intercept=intercept).fit(*data)
        on_data, on_core = face.margins(model)
        found = model.result_
        assert model.factor_ == pytest.approx(on_data / on_core)
        assert model.margin_ == on_data
        assert len(model.trace_) == len(found.trace)
    assert 0.95 * on_core <= on_data <= best * (1 + 1e-5)
    assert on_core >= best * (1 - 1e-5)
    assert on_data == pytest.approx((gaps @ found.w).min(), rel=1e-6)
    assert np.linalg.norm(found.w) == pytest.approx(1.0)
    facts = model.coreset_.provenance
    assert (facts["margin"], facts["core_margin"], facts["n"]) == (on_data, on_core, 120)
    # One read finds classes and spread.
    assert facts["reads"] == found.reads == source.reads[0] == 1 + len(found.trace)
    first = found.trace[0]
    assert (first.size, first.core_margin, first.margin) == (0, math.inf, 0.0)
    assert found.trace[-1].margin == on_data
    assert found.trace[-1].core_margin == on_core
    for a, b in itertools.pairwise(found.trace):
        assert 0 < b.size - a.size <= 5 * (3 if of_all else 10)
        assert b.core_margin <= a.core_margin * (1 + 1e-9)
        assert a.core_margin == math.inf or a.margin < 0.95 * a.core_margin
    core_rows = gaps.reshape(len(gaps), -1)
    for row, right, rival, gap in zip(
        found.indices, found.core.answers, found.core.rivals, found.core.differences, strict=True
    ):
        assert right.tolist() == [y[row]]
        assert rival.tolist() != right.tolist()
        assert np.abs(core_rows[owners == row] - gap).max(axis=1).min() < 1e-9
    assert np.array_equal(found.core.block.points, X[found.indices])
    mean = found.dual @ found.core.differences
    assert np.linalg.norm(mean) == pytest.approx(on_core)
    assert np.allclose(mean / np.linalg.norm(mean), found.w, atol=1e-8)
    scores = X @ model.coef_.T + model.intercept_
    assert np.allclose(model.decision_function(X), scores)
    assert (model.predict(X) == names[y]).all()
    core = model.coreset_
    assert core.indices.tolist() == sorted(set(found.indices.tolist()))
    assert np.array_equal(core.labels, names[y[core.indices]])
    assert np.array_equal(core.points, X[core.indices])


def test_classes__of_which_there_are_two_have_one_hyperplane() -> None:
    X, y = three_classes(40, 2)
    model = es.StructuredMaxMargin(epsilon=0.02).fit(X, y)
    lead = X @ model.coef_[0] + model.intercept_[0]
    assert np.allclose(model.decision_function(X), lead)
    assert face.margins(model)[0] == pytest.approx(np.where(y == 1, lead, -lead).min(), rel=1e-6)


@pytest.mark.parametrize("C", [0.3, 10.0])
def test_classes__soft_margin_is_that_with_a_slack_for_every_row(C: float) -> None:
    X, y = three_classes(36, 3, 2)
    y = y.copy()
    y[[4, 20]] = (y[[4, 20]] + 1) % 3
    gaps, owners = class_gaps(X, y, 3, intercept=False)
    wide = np.column_stack([gaps, np.equal.outer(owners, np.arange(36)) / math.sqrt(C)])
    best = read.hard_margin(wide)[0]
    model = es.StructuredMaxMargin(C=C, epsilon=0.02, fit_intercept=False)
    with pytest.warns(face.CoresetWarning, match=f"fitted with C={C}"):
        model.fit(da.from_array(X, chunks=(10, 2)), da.from_array(y, chunks=10))
    on_data, on_core = face.margins(model)
    assert on_core >= best * (1 - 1e-5)
    assert 0.98 * on_core <= on_data <= best * (1 + 1e-4)
    assert "margin" not in model.coreset_.provenance
    assert model.coreset_.provenance["converged"]
    hard = es.StructuredMaxMargin(fit_intercept=False, on_inseparable="raise")
    with pytest.raises(face.CoresetError, match="convex combination") as caught:
        hard.fit(X, y)
    error: Any = caught.value
    rows, parts = error.indices, error.coefficients
    assert parts.sum() == pytest.approx(1.0)
    assert {4, 20} & set(rows.tolist())


def test_classes__stop_at_max_passes() -> None:
    X, y = three_classes(3000, 4, 5)
    model = es.StructuredMaxMargin(epsilon=1e-4, max_passes=3, per_block=1)
    with pytest.warns(face.CoresetWarning, match="after 3 passes"):
        model.fit(da.from_array(X, chunks=(1000, 2)), da.from_array(y, chunks=1000))
    found = model.result_
    assert (len(found.trace), found.converged) == (3, False)
    on_data, on_core = face.margins(model)
    assert found.factor == pytest.approx(on_data / on_core)
    assert found.factor < 1 - 1e-4


# --- sequences -----------------------------------------------------------------------------


def sequences(seed: int, n: int = 7) -> tuple[Any, Any, Any]:
    """Sequences of one to four rows, whose labels their rows and their order tell."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 5, size=n)
    y = np.concatenate([np.sort(rng.integers(0, 3, size=t)) for t in lengths])
    X = np.eye(3)[y][:, :2] * 2.0 + 0.2 * rng.normal(size=(len(y), 2))
    return X, y, np.repeat(np.arange(n) * 3, lengths)


def joint(x: Any, labels: Any, bias: float) -> Any:
    emissions, steps = np.zeros((3, 2 + (bias > 0))), np.zeros((3, 3))
    for row, label in zip(x, labels, strict=True):
        emissions[label] += np.append(row, bias) if bias else row
    for a, b in itertools.pairwise(labels):
        steps[a, b] += 1
    return np.concatenate([emissions.ravel(), steps.ravel()])


def answers(x: Any) -> Any:
    return itertools.product(range(3), repeat=len(x))


def sequence_gaps(X: Any, y: Any, groups: Any, bias: float) -> Any:
    return np.array([
        joint(X[groups == g], y[groups == g], bias) - joint(X[groups == g], other, bias)
        for g in np.unique(groups)
        for other in answers(X[groups == g])
        if tuple(y[groups == g]) != other
    ])  # fmt: skip


@few("seed", [1, 2, 3, 6], always=2)
def test_sequences__are_separated_from_all_wrong_paths(seed: int) -> None:
    X, y, groups = sequences(seed)
    bias = float(seed % 2)
    gaps = sequence_gaps(X, y, groups, bias)
    names = np.array(["a", "b", "c"])
    best = read.hard_margin(gaps)[0]
    model = es.StructuredMaxMargin("sequence", epsilon=0.02, fit_intercept=bool(bias))
    bounds = np.flatnonzero(np.diff(groups))[1::2] + 1
    chunks = tuple(np.diff([0, *bounds, len(X)]).tolist())
    lazy = [da.from_array(X, chunks=(chunks, 2)), *(
        da.from_array(part, chunks=(chunks,)) for part in (names[y], groups))]  # fmt: skip
    for data in ([X, names[y], groups], lazy):
        model.fit(data[0], data[1], groups=data[2])
        found = model.result_
        on_data, on_core = face.margins(model)
        assert on_data == pytest.approx((gaps @ model.w_).min(), rel=1e-6)
        assert best * 0.98 * (1 - 1e-5) <= on_data <= best * (1 + 1e-5)
        assert on_core >= best * (1 - 1e-5)
        assert found.n_rows == len(np.unique(groups))
        starts = [int(np.flatnonzero(groups == g)[0]) for g in np.unique(groups)]
        assert set(found.indices.tolist()) <= set(starts)
        assert np.array_equal(found.core.block.points, X[found.indices])
        for row, right in zip(found.indices, found.core.answers, strict=True):
            assert np.array_equal(right, y[groups == groups[row]])
        # Others, of other lengths, get the best of all paths.
        Z, _, of_new = sequences(seed + 50, 9)
        expected = []
        for g in np.unique(of_new):
            x = Z[of_new == g]
            expected += max(answers(x), key=lambda path: float(model.w_ @ joint(x, path, bias)))
        assert model.predict(Z, groups=of_new).tolist() == names[expected].tolist()
        assert model.score(Z, names[expected], groups=of_new) == 1.0
    predicted = model.predict(data[0], groups=data[2])
    assert isinstance(predicted, da.Array)
    assert np.array_equal(predicted.compute(), names[y])
    wrong = names[y].copy()
    wrong[0] = "c" if y[0] != 2 else "a"
    share = model.score(data[0], da.from_array(wrong, chunks=(chunks,)), groups=data[2])
    assert share == pytest.approx(1 - 1 / len(y))
    if (groups[1:] == groups[:-1]).any():
        inside = int(np.flatnonzero(groups[1:] == groups[:-1])[0]) + 1
        cut = (inside, len(X) - inside)
        with pytest.raises(face.CoresetError, match="1 block boundaries cut"):
            np.asarray(
                model.predict(
                    da.from_array(X, chunks=(cut, 2)), groups=da.from_array(groups, chunks=(cut,))
                )
            )


class Chains(face.StructuredProblem):
    """Sequences, answered by trying all paths; losses count wrong labels."""

    dimension = 15

    def joint_features(self, x: Any, y: Any) -> Any:
        return joint(x, y, 0.0)

    def separation_oracle(self, w: Any, x: Any, y: Any) -> Any:
        paths = [np.array(path) for path in answers(x)]
        scores = np.array([float(w @ joint(x, path, 0.0)) for path in paths])
        if y is None:
            return SimpleNamespace(y=paths[int(scores.argmax())], margin=0.0, loss=1.0)
        losses = np.array([(path != y).sum() for path in paths])
        right = float(w @ joint(x, y, 0.0))
        margins = np.where(losses > 0, (right - scores) / np.maximum(losses, 1), np.inf)
        worst = int(margins.argmin())
        return SimpleNamespace(y=paths[worst], margin=margins[worst], loss=float(losses[worst]))


@pytest.mark.parametrize("made", [True, False])
def test_problem__of_ones_own_is_solved_with_its_losses(made: bool) -> None:
    X, y, groups = sequences(2)
    rows = []
    for g in np.unique(groups):
        x, own = X[groups == g], y[groups == g]
        wrong = [other for other in answers(x) if other != tuple(own)]
        rows += [
            (joint(x, own, 0.0) - joint(x, other, 0.0)) / (np.array(other) != own).sum()
            for other in wrong
        ]
    best = read.hard_margin(np.array(rows))[0]
    problem = (lambda d, k: Chains() if (d, k) == (2, 3) else None) if made else Chains()
    model = es.StructuredMaxMargin(problem, epsilon=0.02).fit(X, y, groups=groups)
    on_data, _ = face.margins(model)
    assert on_data == pytest.approx((np.array(rows) @ model.w_).min())
    assert best * 0.98 * (1 - 1e-5) <= on_data <= best * (1 + 1e-5)
    assert np.array_equal(model.predict(X, groups=groups), y)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.score(X, y, groups=groups) == 1.0


def test_sequences__bad_input_is_refused() -> None:
    X, y, groups = sequences(1)
    model = es.StructuredMaxMargin("sequence")
    with pytest.raises(face.CoresetError, match="groups is None"):
        model.fit(X, y)
    with pytest.raises(face.CoresetError, match="one entry per row") as caught:
        model.fit(X, y, groups=groups[1:])
    assert caught.value.argument == "groups"
    with pytest.raises(face.CoresetError):
        model.fit(X, np.zeros(len(y)), groups=groups)
    model.fit(X, y, groups=groups)
    with pytest.raises(face.CoresetError, match="scores every class"):
        model.decision_function(X)
    with pytest.raises(face.CoresetError, match="pass y"):
        model.score(X, y, np.ones(len(y)), groups=groups)
    assert not hasattr(model, "coef_")
    lazy = da.from_array(X, chunks=(6, 2))
    labels = y.astype(float)
    labels[8] = np.nan
    for problem, of_rows in (("multiclass", None), ("sequence", groups)):
        with pytest.raises(face.CoresetError, match="not finite at row 8"):
            es.StructuredMaxMargin(problem).fit(
                lazy, da.from_array(labels, chunks=6), groups=of_rows
            )
    own = es.StructuredMaxMargin(Chains())
    with pytest.raises(face.CoresetError, match=r"at row 9, which is no class"):
        own.fit(lazy, da.from_array(np.where(np.arange(len(y)) == 9, 0.5, y), chunks=6))
    left = X.copy()
    left[4, 0] = np.nan
    dropped = es.StructuredMaxMargin(on_invalid="drop", epsilon=0.01)
    rest = np.arange(len(X)) != 4
    kept = es.StructuredMaxMargin(epsilon=0.01).fit(X[rest], y[rest])
    for rows in (left, da.from_array(left, chunks=(6, 2))):
        dropped.fit(rows, y)
        assert dropped.margin_ == pytest.approx(kept.margin_, rel=0.011)
        assert 4 not in dropped.result_.indices
    with pytest.raises(face.CoresetError, match="one class"):
        es.StructuredMaxMargin().fit(lazy, da.zeros(len(X), chunks=6))
    with pytest.raises(face.CoresetError, match="return a"):
        es.StructuredMaxMargin(lambda _d, _k: 3).fit(X, y)
