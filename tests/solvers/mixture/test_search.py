"""Starts of EM by default: how many are made, on which rows, and who judges them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from daskcoreset.core.typing import FloatArray
from daskcoreset.solvers.mixture.model import Mixture, mixture_from_covariances
from daskcoreset.solvers.mixture.search import Steps, best_starts


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
        given = {"n_components": 2} | options
        return Steps(self.start, self.iterate, self.rank, judge, screen or judge, **given)

    def rank(self, by: Any) -> Any:
        return lambda one: (0, by(one))


def number(mixture: Mixture) -> float:
    return float(mixture.means[0, 0])


def weights_of(X: FloatArray) -> FloatArray:
    return np.random.default_rng(1).uniform(0.5, 2.0, size=len(X))


def searched(X: FloatArray, steps: Steps, u: FloatArray | None = None) -> list[Mixture]:
    u = weights_of(X) if u is None else u
    return best_starts(X, u, steps, np.random.default_rng(0))


def test_best_starts__are_chosen_by_both_who_judge() -> None:
    screened: list[float] = []
    judged: list[float] = []

    def screen(mixture: Mixture) -> float:
        screened.append(number(mixture))
        return number(mixture)

    def judge(mixture: Mixture) -> float:
        judged.append(number(mixture))
        return -number(mixture)

    recorder, X = Recorder(), np.random.default_rng(0).normal(size=(50, 1))
    found = searched(X, recorder.steps(judge, screen))
    assert recorder.kinds == [None, "k-means++"] * 4
    assert screened == [*range(1, 9)]
    assert judged == [8, 7, 6, 5]
    assert [number(one) for one in found] == [5, 6]
    assert all(rows is X for rows in recorder.rows)


def test_best_starts__of_fewer_spikes_win() -> None:
    recorder, X = Recorder(), np.random.default_rng(0).normal(size=(50, 1))
    steps = replace(recorder.steps(number), rank=lambda by: lambda one: (-(by(one) > 3), by(one)))
    assert [number(one) for one in searched(X, steps)] == [3, 2]


def test_best_starts__keep_a_third_of_the_rows_apart_where_none_judge() -> None:
    recorder, X = Recorder(), np.random.default_rng(0).normal(size=(90, 1))
    searched(X, recorder.steps())
    fitted = recorder.rows[0]
    assert len(fitted) == 60
    assert len(np.unique(np.concatenate([fitted, X]))) == 90
    # Of three rows of like weight one is apart.
    kept = np.searchsorted(np.sort(weights_of(X)), np.sort(recorder.weights[0]))
    np.testing.assert_array_equal(np.bincount(kept // 3, minlength=30), 2)
