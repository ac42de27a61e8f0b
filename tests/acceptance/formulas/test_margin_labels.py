"""Active learning: every question, count and bound against a plain reading of Fig. 2."""

from __future__ import annotations

import math
from typing import Any

import dask.array as da
import numpy as np
import pytest

from tests.acceptance import face
from tests.acceptance.tools import readings as read
from tests.acceptance.tools.counting import CountingArray
from tests.acceptance.tools.margins import through_zero, two_classes

es = face.estimators


def fitted(X: Any, signs: Any, C: float, *, intercept: bool) -> tuple[Any, float, float]:
    """Normal, intercept and margin of the squared hinge loss with C, or of the largest margin."""
    d = X.shape[1]
    if math.isfinite(C):
        X = np.column_stack([X, np.diag(signs / math.sqrt(C))])
    Z = X * signs[:, np.newaxis]
    if intercept:
        Z = (X[signs > 0][:, np.newaxis] - X[signs < 0][np.newaxis]).reshape(-1, X.shape[1])
    w = read.hard_margin(Z)[1]
    products = X @ w
    low, high = products[signs > 0].min(), products[signs < 0].max()
    if not intercept:
        return w[:d], 0.0, float((products * signs).min())
    return w[:d], float(-(low + high) / 2), float((low - high) / 2)


class Reading:
    """Fig. 2 in plain NumPy, from rows of both classes on."""

    def __init__(self, X: Any, y: Any, known: list[int], options: dict[str, Any]) -> None:
        self.X, self.signs, self.labelled = X, np.where(y, 1.0, -1.0), list(known)
        self.C, self.intercept = options.get("C", math.inf), options["intercept"]
        self.epsilon, self.batch = options["epsilon"], options["batch"]
        self.core = list(known)
        self.separate()

    def separate(self) -> None:
        """Add the worst labelled row while it is too close."""
        while True:
            core = np.array(self.core)
            self.w, self.b, self.margin = fitted(
                self.X[core], self.signs[core], self.C, intercept=self.intercept
            )
            rest = [i for i in self.labelled if i not in self.core]
            margins = self.signs[rest] * (self.X[rest] @ self.w + self.b)
            if not rest or margins.min() >= (1 - self.epsilon) * self.margin:
                return
            self.core.append(rest[int(margins.argmin())])

    def question(self) -> tuple[list[int], float]:
        """Return the closest row, those in the strip far from it, and the least distance."""
        gaps = np.abs(self.X @ self.w + self.b)
        gaps[self.labelled] = np.inf
        order = np.argsort(gaps, kind="stable")
        strip = order[gaps[order] < (1 - self.epsilon) * self.margin]
        chosen = [int(i) for i in strip[:1]]
        while strip.size and len(chosen) < self.batch:
            far = ((self.X[strip][:, np.newaxis] - self.X[chosen]) ** 2).sum(axis=2).min(axis=1)
            if far.max() == 0:
                break
            chosen.append(int(strip[far.argmax()]))
        return chosen, float(gaps.min())


def check_result(result: Any, plain: Reading, y: Any, reads: int, closest: float) -> None:
    """Compare all that is known of a run that queried with a plain reading."""
    X, length, n_asked = plain.X, np.linalg.norm(plain.w), len(plain.labelled) - 2
    assert result.core.indices.tolist() == plain.core
    assert np.array_equal(result.core.points, X[plain.core])
    assert np.array_equal(result.core.labels, y[plain.core])
    assert np.allclose(result.w, plain.w / length, atol=1e-4)
    assert result.b == pytest.approx(plain.b / length, abs=1e-3)
    assert result.core_margin == pytest.approx(plain.margin / length, rel=1e-3)
    assert result.closest == pytest.approx(closest, rel=1e-3)
    assert result.indices.tolist() == plain.labelled
    assert np.array_equal(result.labels, y[plain.labelled])
    assert result.reads == reads
    assert (result.n_labels, result.stopped) == (n_asked, "")
    assert result.n_labels_by_phase == {"seeding": 0, "querying": n_asked, "verifying": 0}
    assert np.allclose(result.decision_function(X), X @ result.w + result.b)
    assert np.array_equal(result.predict(X), X @ result.w + result.b > 0)
    assert (result.dual >= 0).all()
    assert result.dual.sum() == pytest.approx(2.0 if plain.intercept else 1.0)


@pytest.mark.parametrize(
    ("options", "seed"),
    [
        ({"intercept": True, "epsilon": 0.1, "batch": 1}, 0),
        ({"intercept": False, "epsilon": 0.2, "batch": 1}, 1),
        ({"intercept": True, "epsilon": 0.5, "batch": 3}, 2),
        ({"intercept": True, "epsilon": 0.2, "batch": 1, "C": 3.0}, 3),
        ({"intercept": False, "epsilon": 0.5, "batch": 4, "C": 2.0}, 4),
    ],
)
def test_questions__are_those_of_a_plain_reading(options: dict[str, Any], seed: int) -> None:
    X, y = two_classes(60, 2, 0.2, seed) if options["intercept"] else through_zero(60, 2, seed)
    y = y.copy()
    if "C" in options:
        y[[5, 30]] = ~y[[5, 30]]
    known = [int(y.argmax()), int((~y).argmax())]
    plain = Reading(X, y, known, options)
    source = CountingArray(X)
    run = face.ask_labels(source.lazy(25), known=(known, y[known]), random_state=0, **options)
    n_asked, reads = 0, 0
    before = source.reads[0]
    while True:
        expected, closest = plain.question()
        request = run.ask()
        reads += 1
        assert source.reads[0] >= before + reads
        if not expected:
            break
        assert request.phase.name == "QUERYING"
        assert request.indices.tolist() == expected
        assert np.array_equal(request.rows, X[expected])
        assert run.ask().indices.tolist() == expected
        step = run.trace[-1]
        assert step.closest == pytest.approx(closest, abs=1e-4)
        run.tell(y[expected].tolist())
        n_asked += len(expected)
        plain.labelled += expected
        plain.core += expected
        plain.separate()
        step = run.trace[-1]
        assert step.n_labels == len(plain.labelled)
        assert step.n_core == len(plain.core)
        assert step.core_margin == pytest.approx(plain.margin, rel=1e-4)
        assert math.isnan(step.closest)
    assert n_asked == run.n_labels >= 3
    check_result(run.result(), plain, y, reads, closest)
    end = run.run(lambda _, indices: y[indices])
    assert end.stopped in {"verified", "stalled", "exhausted"}
    assert len(set(end.indices)) == len(end.indices)
    assert end.n_labels == sum(end.n_labels_by_phase.values()) == len(end.indices) - 2


@pytest.mark.parametrize("greater", [True, False])
def test_verification__of_one_class_asks_as_many_as_the_lemma_says(greater: bool) -> None:
    """The first row chooses the class, so that it proves nothing."""
    X = np.random.default_rng(0).normal(size=(20_000, 2))
    y = np.full(20_000, greater)
    y[777] = not greater
    model = es.ActiveMaxMarginClassifier(random_state=1, error=0.0012, batch=500)
    with pytest.warns(face.CoresetWarning, match="predicted"):
        model.fit(X, y)
    needed = read.streak(0.0012, 0.05, 1, 1)
    assert needed > 2500
    found = model.certificate_
    assert (found.verified, found.verifications) == (needed, 1)
    assert found.error == pytest.approx(math.log(2 / 0.05) / needed)
    assert model.n_labels_ <= needed + 1
    assert model.n_labels_by_phase_ == {"seeding": model.n_labels_, "querying": 0, "verifying": 0}
    assert (model.predict(X[:9]) == greater).all()
    assert (model.result_.predict(X[:9]) == greater).all()
    assert model.result_.classes == (greater,)
    assert model.classes_.tolist() == [False, True]
    assert model.result_.stopped == "verified"
    assert math.isinf(model.margin_)
    assert math.isnan(model.result_.closest)
    assert not hasattr(model, "coreset_")


def test_verification__random_rows_follow_the_weights() -> None:
    X, y = two_classes(3000, 2, 0.3, 1)
    u = np.full(3000, 1e-9)
    heavy = np.arange(1000, 1040)
    u[heavy], u[::7] = 5.0, 0.0
    asked: list[int] = []

    def oracle(_: Any, indices: Any) -> Any:
        asked.extend(indices.tolist())
        return y[indices]

    lazy = da.from_array(X, chunks=(700, 2))
    result = face.ask_labels(lazy, random_state=0, error=0.2, sample_weight=u).run(oracle)
    assert result.stopped == "verified"
    assert not (np.array(asked) % 7 == 0).any()
    phases = result.n_labels_by_phase
    assert set(asked[: phases["seeding"]]) <= set(heavy)
    wrong = result.predict(X) != y
    assert u[wrong].sum() <= 0.2 * u.sum()
    # All that is left out has no weight: every other row gets its label.
    few = np.where(np.arange(3000) % 100 == 3, 1.0, 0.0)
    options = {"random_state": 0, "error": 1e-6, "batch": 7}
    every = face.ask_labels(X, sample_weight=few, **options).run(oracle)
    assert every.stopped == "exhausted"
    assert sorted(every.indices) == np.flatnonzero(few).tolist()
    found = every.certificate
    assert (found.error, found.probability, found.verified) == (0.0, 1.0, 0)


def test_labels__that_contradict_are_named_and_may_be_softened() -> None:
    X, y = two_classes(80, 2, 0.0, 3)
    X[40], y[40] = X[7], ~y[7]
    run = face.ask_labels(X, known=([7, 5], y[[7, 5]]), random_state=0, classes=[False, True])

    def answer_all() -> None:
        while (request := run.ask()) is not None:
            run.tell(y[request.indices])

    with pytest.raises(face.CoresetError, match="contradict") as caught:
        answer_all()
    error: Any = caught.value
    rows, parts = error.indices, error.coefficients
    sums = [parts[y[rows] == sign] @ X[rows[y[rows] == sign]] for sign in (True, False)]
    assert np.allclose(*sums)
    assert [parts[y[rows] == sign].sum() for sign in (True, False)] == pytest.approx([1.0, 1.0])
    assert len(run.ask()) == 1
    known = run.result()
    soft = face.ask_labels(X, known=(known.indices, known.labels), random_state=0, C=0.5)
    result = soft.run(lambda _, indices: y[indices])
    assert result.stopped in {"stalled", "verified"}
    model = es.ActiveMaxMarginClassifier(random_state=0, C=0.5)
    with pytest.warns(face.CoresetWarning, match="errors are allowed"):
        model.fit(X, y)
    assert "core_margin" not in model.coreset_.provenance
    assert (model.predict(X) == y).mean() > 0.9
    with pytest.raises(face.CoresetError, match="contradict") as caught:
        es.ActiveMaxMarginClassifier(random_state=0, on_inseparable="raise").fit(X, y)
    failed: Any = caught.value
    assert failed.asking.n_labels > 2


def test_labels__of_two_equal_heavy_rows_stall_a_verification() -> None:
    """Twenty verifications in succession end at the same wrong row, and need no new label."""
    X, y = two_classes(80, 2, 0.5, 3)
    X[40], y[40] = X[7], ~y[7]
    u = np.ones(80)
    u[[7, 40]] = 1e9
    result = face.ask_labels(
        X, known=([int(y.argmax()), int((~y).argmax())], [True, False]), sample_weight=u, C=1.0,
        random_state=0,
    ).run(lambda _, indices: y[indices])  # fmt: skip
    assert result.stopped == "stalled"
    assert {7, 40} <= set(result.indices.tolist())
    assert result.n_labels < 78
    assert result.certificate.verifications >= 20
    assert (result.certificate.verified, result.certificate.error) == (0, 1.0)


def test_labels__budget_and_oracle_that_fails() -> None:
    X, y = two_classes(400, 3, 0.02, 4)
    for most in (1, 5, 11):
        result = face.ask_labels(X, max_labels=most, batch=4, random_state=2).run(
            lambda _, indices: y[indices]
        )
        assert (result.n_labels, result.stopped) == (most, "max_labels")
    with pytest.raises(face.CoresetError, match="requires y"):
        es.ActiveMaxMarginClassifier().fit(da.from_array(X, chunks=(100, 3)))
    calls: list[int] = []

    def failing(rows: Any, indices: Any) -> Any:
        calls.extend(indices.tolist())
        if len(calls) == 6:
            raise RuntimeError("gone")
        rows[:] = 0.0  # of its own
        return y[indices]

    run = face.ask_labels(X, random_state=2, max_labels=11)
    with pytest.raises(face.CoresetError, match=r"gone.*5 labels") as caught:
        run.run(failing)
    failed: Any = caught.value
    asking = failed.asking
    assert asking.n_labels == 5
    assert not asking.done
    whole = face.ask_labels(X, random_state=2, max_labels=11).run(lambda _, indices: y[indices])
    again = asking.run(lambda _, indices: y[indices])
    assert asking.done
    assert np.array_equal(again.indices, whole.indices)
    assert np.array_equal(again.w, whole.w)


WRONG_KNOWN: list[tuple[Any, str]] = [
    (([3, 3], [0, 1]), "distinct row numbers"),
    (([3.0, 4.0], [0, 1]), "distinct row numbers"),
    (([3, 80], [0, 1]), "80 rows"),
    (([-1, 4], [0, 1]), "80 rows"),
    (([3, 4], [0, 1, 1]), "2 labels"),
    (([3, 4, 5], [0, 1, 2]), "two classes"),
    (([3, 4], ["a", 1]), "text"),
    (([3, 4], [0, None]), "not a class label"),
    (([3, 9], [0, 1]), "NaN"),
]


@pytest.mark.parametrize(("known", "match"), WRONG_KNOWN, ids=str)
def test_known__what_cannot_be_used_is_refused(known: Any, match: str) -> None:
    X = np.random.default_rng(0).normal(size=(80, 2))
    X[9] = np.nan
    with pytest.raises(face.CoresetError, match=match):
        face.ask_labels(X, known=known, on_invalid="drop")


def test_known__labels_are_no_cost_and_begin_where_they_lead() -> None:
    X, _ = two_classes(300, 2, 0.4, 6)
    names = np.where(X[:, 0] > 0, "right", "left")
    one = face.ask_labels(X, known=([3, 8], ["left", "left"]), random_state=0)
    assert one.n_labels == 0
    assert one.ask().phase.name == "SEEDING"
    both = face.ask_labels(X, known=(np.array([8, 3]), names[[8, 3]]), random_state=0)
    assert both.result().indices.tolist() == [8, 3]
    none = face.ask_labels(X, random_state=0, classes=("left", "right"))
    with pytest.raises(face.CoresetError, match="no label"):
        none.result().predict(X)
    with pytest.raises(face.CoresetError, match="call ask"):
        none.tell("left")
    assert none.result().certificate.error == 1.0
    request = none.ask()
    for wrong in (["left", "left"], "up", 1, []):
        with pytest.raises(face.CoresetError):
            none.tell(wrong)
    assert none.n_labels == 0
    none.tell("left")
    assert none.n_labels == 1
    assert none.result().labels.tolist() == ["left"]
    assert none.result().indices.tolist() == request.indices.tolist()
    assert none.result().predict(X[:2]).tolist() == ["left", "left"]
    for classes in (("a", "a"), ("a", 1), "ab", ("a",), 3):
        with pytest.raises(face.CoresetError):
            face.ask_labels(X, classes=classes)
