"""The search for a start: what it asks, what it never does, and how often it finds the best."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.typing import FloatArray
from daskcoreset.solvers.mixture import em, search
from daskcoreset.solvers.mixture.em import fit_mixture
from daskcoreset.solvers.mixture.init import start_mixture
from daskcoreset.solvers.mixture.model import Mixture, mixture_from_covariances, score_samples
from daskcoreset.solvers.mixture.search import Steps, best_starts, possible


def survey(n: int, seed: int = 0) -> FloatArray:
    """Five columns of answers, one of four each, and two skewed ones, of ten kinds of rows."""
    rng = np.random.default_rng(0)
    answers = rng.dirichlet(np.full(4, 0.4), size=(10, 5)).cumsum(axis=2)
    sizes, means = rng.dirichlet(np.ones(10)), rng.normal(size=(10, 2))
    rng = np.random.default_rng(seed)
    kinds = rng.choice(10, n, p=sizes)
    given = (rng.random((n, 5, 1)) > answers[kinds]).sum(axis=2)
    return np.hstack([given, np.exp(means[kinds] + 0.5 * rng.normal(size=(n, 2)))])


class Recorder:
    """Steps that fit nothing: a mixture is a number of its mean."""

    def __init__(self) -> None:
        self.rows: list[FloatArray] = []
        self.weights: list[FloatArray] = []
        self.kinds: list[Any] = []

    def start(self, rows: FloatArray, weights: FloatArray, kind: Any) -> Mixture:
        self.rows.append(rows)
        self.weights.append(weights)
        self.kinds.append(kind)
        means = np.array([[float(len(self.rows))], [0.0]])
        return mixture_from_covariances("diag", np.full(2, 0.5), means, np.ones((2, 1)))

    def iterate(self, rows: FloatArray, weights: FloatArray, one: Mixture, n: int) -> Mixture:
        assert rows is self.rows[0]
        assert weights is self.weights[0]
        assert n > 0
        return one

    def steps(self, judge: Any = None, screen: Any = None, **options: Any) -> Steps:
        given = {"n_components": 2, "tol": 1e-3, "reg_covar": 1e-3} | options
        return Steps(self.start, self.iterate, judge, screen or judge, **given)


def number(mixture: Mixture) -> float:
    return float(mixture.means[0, 0])


def weights_of(X: FloatArray) -> FloatArray:
    return np.random.default_rng(1).uniform(0.5, 2.0, size=len(X))


def searched(
    X: FloatArray, steps: Steps, *, exchange: bool, u: FloatArray | None = None
) -> list[Mixture]:
    u = weights_of(X) if u is None else u
    return best_starts(X, u, steps, np.random.default_rng(0), exchange=exchange)


@pytest.mark.parametrize(("exchange", "starts"), [(True, 12), (False, 30)])
def test_best_starts__are_chosen_by_both_who_judge(exchange: bool, starts: int) -> None:
    screened: list[float] = []
    judged: list[float] = []

    def screen(mixture: Mixture) -> float:
        screened.append(number(mixture))
        return number(mixture)

    def judge(mixture: Mixture) -> float:
        judged.append(number(mixture))
        return -number(mixture)

    recorder, X = Recorder(), np.random.default_rng(0).normal(size=(50, 1))
    found = searched(X, recorder.steps(judge, screen), exchange=exchange)
    assert recorder.kinds == [None, "k-means++"] * (starts // 2)
    assert screened[:starts] == [*range(1, starts + 1)]
    kept = {12: 4, 30: 12}[starts]
    assert judged[:kept] == [*range(starts, starts - kept, -1)]
    # An exchange is taken where both find it better, and they never agree here.
    assert [number(one) for one in found] == [starts - kept + 1, starts - kept + 2]
    assert all(rows is X for rows in recorder.rows)


def test_best_starts__exchange_only_for_the_better() -> None:
    X = survey(600)
    values: list[float] = []

    def judge(mixture: Mixture) -> float:
        values.append(float(score_samples(mixture, X[:300]).mean()))
        return values[-1]

    options: dict[str, Any] = {"n_components": 4, "reg_covar": 0.01, "random_state": 0}
    fit = fit_mixture(X[300:], n_init="auto", judge=judge, **options)
    # What EM on all rows ends in is a little off from what was judged before.
    assert judge(fit.mixture) > max(values[:-1]) - 0.01
    plain = fit_mixture(X[300:], n_init=30, judge=judge, **options)
    assert judge(fit.mixture) > judge(plain.mixture) + 0.1


@pytest.mark.nightly
def test_best_starts__exchange_nothing_that_one_who_judges_does_not_find_better(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X = survey(600)

    def by_others(mixture: Mixture) -> float:
        return float(score_samples(mixture, X[:300]).mean())

    def fitted(**judges: Any) -> FloatArray:
        options: dict[str, Any] = {"n_components": 4, "reg_covar": 0.01, "random_state": 0}
        return fit_mixture(X[300:], n_init="auto", **options, **judges).mixture.means

    cases = [{"judge": lambda _: 0.0, "screen": by_others}]
    cases += [{"judge": by_others, "screen": lambda _: 0.0}]
    found = [fitted(**case) for case in cases]
    monkeypatch.setattr(search, "_ROUNDS", 0)
    for case, means in zip(cases, found, strict=True):
        np.testing.assert_array_equal(means, fitted(**case))


@pytest.mark.nightly
def test_best_starts__keep_a_third_of_the_rows_apart_where_none_judge() -> None:
    recorder, X = Recorder(), np.random.default_rng(0).normal(size=(90, 1))
    searched(X, recorder.steps(), exchange=True)
    fitted = recorder.rows[0]
    assert len(fitted) == 60
    assert len(np.unique(np.concatenate([fitted, X]))) == 90
    # Of three rows of like weight one is apart.
    kept = np.searchsorted(np.sort(weights_of(X)), np.sort(recorder.weights[0]))
    np.testing.assert_array_equal(np.bincount(kept // 3, minlength=30), 2)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("n", "exchange", "starts"), [(59, True, 30), (60, True, 12), (60, False, 30)]
)
def test_best_starts__spare_no_rows_of_few(n: int, exchange: bool, starts: int) -> None:
    recorder, X = Recorder(), np.random.default_rng(0).normal(size=(n, 1))
    searched(X, recorder.steps(), exchange=exchange, u=np.ones(n))
    assert len(recorder.kinds) == starts
    assert len(recorder.rows[0]) == (40 if starts == 12 else n)


@pytest.mark.nightly
def test_best_starts__spare_no_rows_where_few_have_the_weight() -> None:
    recorder, X = Recorder(), np.random.default_rng(0).normal(size=(600, 1))
    u = np.full(600, 1e-12)
    u[:3] = 1e12
    searched(X, recorder.steps(), exchange=True, u=u)
    assert len(recorder.kinds) == 30
    assert recorder.weights[0] is u


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("k", "starts", "alone"), [(50, 12, 30), (51, 11, 29), (300, 2, 5), (3000, 2, 2)]
)
def test_best_starts__are_fewer_of_many_components(k: int, starts: int, alone: int) -> None:
    """Each takes longer in proportion."""
    X = np.random.default_rng(0).normal(size=(50, 1))
    for exchange, expected in ((True, starts), (False, alone)):
        recorder = Recorder()
        searched(X, recorder.steps(number, n_components=k), exchange=exchange)
        assert len(recorder.kinds) == expected


@pytest.mark.nightly
def test_best_starts__spare_no_rows_where_few_are_distinct() -> None:
    recorder, X = Recorder(), np.repeat([[0.0], [1.0], [2.0]], 40, axis=0)
    searched(X, recorder.steps(), exchange=True)
    assert len(recorder.kinds) == 30
    assert len(recorder.rows[0]) == 120
    many = np.repeat(X, 50, axis=0)  # a sample of them would have too few, too
    for judge in (None, number):
        recorder = Recorder()
        searched(many, recorder.steps(judge), exchange=True)
        assert len(recorder.rows[0]) == 6000
        assert len(recorder.kinds) == 30


@pytest.mark.nightly
@pytest.mark.parametrize(("judge", "count"), [(number, 3000), (None, 3000)])
def test_best_starts__of_many_rows_are_of_a_sample(judge: Any, count: int) -> None:
    recorder, X = Recorder(), np.random.default_rng(0).normal(size=(20_000, 1))
    X[7] = 1e3
    found = searched(X, recorder.steps(judge), exchange=True)
    assert found
    assert len(recorder.rows[0]) == pytest.approx(count, abs=2)
    u = weights_of(X)
    share = recorder.weights[0].sum() / u.sum()
    assert share == pytest.approx(1.0 if judge else 2 / 3, abs=0.05)
    if judge:
        assert 1e3 in recorder.rows[0]  # half of the sample goes by squared distance


@pytest.mark.nightly
def test_possible__leaves_out_what_fails() -> None:
    def failing() -> int:
        raise InvalidInputError("first")

    def other() -> int:
        raise InvalidInputError("second")

    assert possible([failing, lambda: 1, other]) == [1]
    with pytest.raises(InvalidInputError, match="first"):
        possible([failing, other])
    with pytest.raises(ZeroDivisionError):
        possible([lambda: 1 // 0])


@pytest.mark.nightly
@pytest.mark.parametrize("n_init", [1, "auto"])
def test_search__of_one_component_is_one_start(
    monkeypatch: pytest.MonkeyPatch, n_init: Any
) -> None:
    start = Mock(side_effect=start_mixture)
    monkeypatch.setattr(em, "start_mixture", start)
    X = np.random.default_rng(0).normal(size=(400, 3))
    fit = fit_mixture(X, n_init=n_init, random_state=0)
    np.testing.assert_allclose(fit.mixture.means, [X.mean(axis=0)])
    assert start.call_count == 1


@pytest.mark.nightly
def test_search__ends_where_exchanges_are_singular(monkeypatch: pytest.MonkeyPatch) -> None:
    error = InvalidInputError("singular")
    monkeypatch.setattr(search, "exchanges", Mock(side_effect=error))
    fit = fit_mixture(survey(400), n_components=3, n_init="auto", random_state=0)
    assert fit.converged
    monkeypatch.setattr(search, "exchanges", Mock(return_value=[]))
    assert fit_mixture(survey(400), n_components=3, n_init="auto", random_state=0).converged


@pytest.mark.nightly
def test_search__finds_likelier_mixtures_than_ten_starts() -> None:
    """On fresh rows, for every one of six seeds."""
    fresh = survey(20_000, seed=99)
    gains = []
    for seed in range(6):
        X = survey(900, seed=seed)
        ours, plain = (
            fit_mixture(
                X, n_components=6, covariance_type="diag", reg_covar=0.01, n_init=n_init,
                random_state=seed,
            )
            for n_init in ("auto", 10)
        )  # fmt: skip
        scores = [score_samples(fit.mixture, fresh).mean() for fit in (ours, plain)]
        gains.append(float(scores[0] - scores[1]))
    assert min(gains) > 0.0
    assert np.mean(gains) > 0.1


@pytest.mark.nightly
@pytest.mark.parametrize("max_iter", [1, 3])
def test_search__takes_no_more_iterations_at_once_than_allowed(
    monkeypatch: pytest.MonkeyPatch, max_iter: int
) -> None:
    limits: list[int] = []
    iterate = em._iterate

    def recorded(*args: Any, **options: Any) -> Any:
        limits.append(args[3])
        return iterate(*args, **options)

    monkeypatch.setattr(em, "_iterate", recorded)
    options: dict[str, Any] = {"n_components": 4, "n_init": "auto", "random_state": 0}
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        fit = fit_mixture(survey(400), max_iter=max_iter, tol=1e-9, **options)
    assert set(limits) == {max_iter}
    assert fit.n_iter == len(fit.lower_bounds) == max_iter
