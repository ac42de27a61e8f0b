"""Problems of structured output against all answers."""

from __future__ import annotations

import itertools

import numpy as np
import scipy.sparse as sp
from hypothesis import given, strategies as st

from daskcoreset.constructions.margin.problems import SequenceProblem
from tests.tools.structured_problems import Array


def brute(problem: SequenceProblem, w: Array, x: Array, y: Array) -> float:
    own, best = problem.joint_features(x, y), np.inf
    for answer in itertools.product(range(problem.n_classes), repeat=len(y)):
        other = np.array(answer)
        if (other != y).any():
            gap = float(w @ (own - problem.joint_features(x, other)))
            best = min(best, gap)
    return best


@given(
    seed=st.integers(0, 2**32 - 1),
    length=st.integers(1, 5),
    K=st.integers(2, 3),
    ties=st.booleans(),
)
def test_sequence__oracle_is_the_best_of_all_paths(
    seed: int, length: int, K: int, ties: bool
) -> None:
    rng = np.random.default_rng(seed)
    problem = SequenceProblem(2, K)
    w, x = rng.normal(size=problem.dimension), rng.normal(size=(length, 2))
    if ties:
        w, x = np.round(w), np.round(x)
    y = rng.integers(0, K, size=length)
    rival = problem.separation_oracle(w, x, y)
    assert (rival.y != y).any()
    assert rival.loss == 1.0
    gap = w @ (problem.joint_features(x, y) - problem.joint_features(x, rival.y))
    assert np.isclose(gap / rival.loss, rival.margin, atol=1e-9)
    assert np.isclose(rival.margin, brute(problem, w, x, y), atol=1e-9)
    best = problem.separation_oracle(w, x, None).y
    scores = [
        w @ problem.joint_features(x, np.array(path))
        for path in itertools.product(range(K), repeat=length)
    ]
    assert np.isclose(w @ problem.joint_features(x, best), max(scores))


@given(seed=st.integers(0, 2**32 - 1), K=st.integers(2, 4))
def test_sequence__many_at_a_time_are_as_one_at_a_time(seed: int, K: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 7, size=6)
    starts = np.append(0, np.cumsum(lengths))
    X, y = rng.normal(size=(starts[-1], 3)), rng.integers(0, K, size=starts[-1])
    problem = SequenceProblem(3, K)
    w = rng.normal(size=problem.dimension)
    rivals, margins, _ = problem.rivals(w, X, y, starts)
    for i, (a, b) in enumerate(itertools.pairwise(starts)):
        one = problem.separation_oracle(w, X[a:b], y[a:b])
        assert np.array_equal(rivals[a:b], one.y)
        assert np.isclose(margins[i], one.margin)
    sparse = problem.rivals(w, sp.csr_array(X), y, starts)
    assert np.array_equal(sparse[0], rivals)
