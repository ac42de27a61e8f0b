"""Quotas, draws, inclusion probabilities and weights, each against what defines it."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from daskcoreset.core.block import Block
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.sampling import (
    draw_with_replacement,
    inclusion_probabilities,
    merge_reservoirs,
    sample_strata,
    stratified_sample,
    systematic,
)
from daskcoreset.core.typing import FloatArray
from daskcoreset.testing import assert_mean
from tests.pairs import each


def assert_multinomial(counts: Any, probability: FloatArray, rate: float = 1e-6) -> None:
    """Assert that counts are those of independent draws with the given probabilities.

    Two tests: a chi-square test of all counts together, which sees a wrong distribution, and
    one of the sum of the chi-square statistics of single samples, which sees draws that are
    too even (strata, rounded quotas) or too uneven (copies).

    Parameters
    ----------
    counts : array-like of shape (n_samples, n_cells), int
        Every row counts the same number of draws.
    probability : ndarray of shape (n_cells,)
        Of a cell in one draw; where it is zero, counts must be zero.
    rate : float, default=1e-6
        False-alarm rate of both tests together.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> assert_multinomial(np.random.default_rng(0).multinomial(10, half, 100), half)
    >>> assert_multinomial(np.full((100, 2), 5), half)
    Traceback (most recent call last):
    ...
    AssertionError: draws are too even: dispersion -7.45 standard errors from multinomial
    """
    counts = np.asarray(counts)
    possible = probability > 0
    if counts[:, ~possible].any():
        raise AssertionError("cells of probability zero were drawn")
    counts, p = counts[:, possible], probability[possible] / probability.sum()
    draws = counts.sum(axis=1)[0]
    pooled = counts.sum(axis=0)
    expected = pooled.sum() * p
    if expected.min() < 20:
        raise ValueError(f"only {expected.min():.1f} draws expected in a cell; draw more samples")
    chance = scipy.stats.chi2.sf(((pooled - expected) ** 2 / expected).sum(), len(p) - 1)
    if chance < rate / 2:
        ratio = pooled / expected
        raise AssertionError(f"draws have other probabilities, by factors of {ratio}")
    # Mean and variance of Pearson's statistic for a finite number of draws.
    statistics = ((counts - draws * p) ** 2 / (draws * p)).sum(axis=1)
    cells = len(p)
    variance = 2 * (cells - 1) + ((1 / p).sum() - cells**2 - 2 * cells + 2) / draws
    z = (statistics.mean() - (cells - 1)) / np.sqrt(variance / len(counts))
    if abs(z) > scipy.stats.norm.isf(rate / 4):
        raise AssertionError(
            f"draws are too {'uneven' if z > 0 else 'even'}: dispersion {z:.2f} standard errors "
            f"from multinomial"
        )


# Scores as blocks have them: sums and shares neither overflow nor underflow.
MODERATE = st.one_of(st.sampled_from([0.0, 1.0, 0.1]), st.floats(1e-6, 1e6))


# --- draws with replacement --------------------------------------------------------------


@pytest.mark.statistical
def test_draw_with_replacement__rows_in_proportion_and_independent() -> None:
    """False-alarm rate: 1e-6."""
    scores = np.array([0.0, 5.0, 1.0, 0.0, 0.0, 2.0, 2.0, 0.0])
    draws = [draw_with_replacement(scores, 30, np.random.default_rng(s)) for s in range(3000)]

    counts = [np.bincount(rows, minlength=len(scores)) for rows in draws]
    assert_multinomial(counts, scores / 10)


# --- inclusion probabilities -------------------------------------------------------------


def check_inclusion(scores: FloatArray, size: float) -> FloatArray:
    inclusion = inclusion_probabilities(scores, size)
    positive = int((scores > 0).sum())
    assert inclusion.shape == scores.shape
    assert (inclusion >= 0).all()
    assert (inclusion <= 1).all()
    assert not inclusion[scores == 0].any()
    assert inclusion.sum() == pytest.approx(min(size, positive), rel=1e-12)
    return inclusion


@given(
    scores=arrays(np.float64, st.integers(1, 60), elements=MODERATE),
    size=st.one_of(st.integers(1, 70), st.floats(1e-3, 70.0)),
)
def test_inclusion_probabilities__proportional_below_the_cap(
    scores: FloatArray, size: float
) -> None:
    inclusion = check_inclusion(scores, size)

    # All rows below the cap share one factor, by which every row at the cap exceeds it.
    free = (inclusion < 1) & (scores > 0)
    if free.any():
        factor = (inclusion[free].sum()) / scores[free].sum()
        np.testing.assert_allclose(inclusion[free], factor * scores[free], rtol=1e-9)
        assert (scores[inclusion == 1] * factor >= 1 - 1e-9).all()


# --- systematic draws --------------------------------------------------------------------


def pivotal_design(inclusion: list[Fraction]) -> dict[tuple[int, ...], Fraction]:
    """Probability of every sample under the ordered pivotal method, as it is defined.

    Two rows with probabilities a and b fight: where a + b < 1 one of them drops out and the
    other goes on with a + b; else one is taken and the other goes on with a + b - 1.
    """
    states: dict[Any, Fraction] = {(-1, Fraction(0), ()): Fraction(1)}
    for row, b in enumerate(inclusion):
        following: dict[Any, Fraction] = defaultdict(Fraction)
        for (other, a, taken), chance in states.items():
            if a + b < 1:
                following[other, a + b, taken] += chance * a / (a + b)
                following[row, a + b, taken] += chance * b / (a + b)
            elif b == 1:  # certain
                following[other, a, (*taken, row)] += chance
            else:
                wins = (1 - b) / (2 - a - b)
                following[row, a + b - 1, (*taken, other)] += chance * wins
                following[other, a + b - 1, (*taken, row)] += chance * (1 - wins)
        states = following
    design: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for (other, a, taken), chance in states.items():
        design[tuple(sorted((*taken, other)))] += chance * a
        design[tuple(sorted(taken))] += chance * (1 - a)
    return {sample: chance for sample, chance in design.items() if chance}


@pytest.mark.statistical
@pytest.mark.parametrize(
    "eighths",
    [[3, 2, 7, 4], [6, 6, 6, 6], [1, 1, 8, 5, 5, 2, 2]],
)
def test_systematic__is_the_ordered_pivotal_method(eighths: list[int]) -> None:
    """Every sample as often as in Chauvet (2012). False-alarm rate: 1e-6 a case."""
    design = pivotal_design([Fraction(i, 8) for i in eighths])
    inclusion = np.array(eighths) / 8
    rng = np.random.default_rng(7)
    n_draws = 8000
    counts = Counter(tuple(systematic(inclusion, rng).tolist()) for _ in range(n_draws))

    assert set(counts) <= set(design)
    if len(design) > 1:
        expected = [n_draws * float(chance) for chance in design.values()]
        assert scipy.stats.chisquare([counts[s] for s in design], expected).pvalue > 1e-6


@given(
    inclusion=arrays(np.float64, st.integers(0, 60), elements=st.floats(0, 1)),
    seed=st.integers(0, 99),
)
def test_systematic__as_many_rows_as_expected_in_every_stretch(
    inclusion: FloatArray, seed: int
) -> None:
    rows = systematic(inclusion, np.random.default_rng(seed))

    assert rows.dtype == np.int64
    assert (np.diff(rows) > 0).all()
    assert (inclusion[rows] > 0).all()
    taken = np.isin(np.arange(len(inclusion)), rows)
    assert taken[inclusion == 1].all()
    # Up to any row, what is taken differs from what is expected by less than one.
    assert np.abs(np.cumsum(taken - inclusion)).max(initial=0.0) < 1 + 1e-6
    assert abs(len(rows) - inclusion.sum()) < 1 + 1e-6


RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
Y = RNG.choice(["a", "b", "c"], 400, p=[0.7, 0.25, 0.05])
U = RNG.lognormal(size=400) * (RNG.random(400) < 0.9)


def strata(seed: int, size: int, cuts: tuple[int, ...] = (0, 150, 150, 400)) -> list[Any]:
    return [
        sample_strata(
            Block(X[start:stop], U[start:stop], Y[start:stop]),
            size,
            stream(seed, Stage.SUMMARIES, i),
        )
        for i, (start, stop) in enumerate(pairwise(cuts))
    ]


def test_strata__merge_is_associative_and_bounded() -> None:
    parts = strata(0, 10)

    def merge(first: Any, second: Any) -> Any:
        return merge_reservoirs(first, second, 10)

    left = stratified_sample(reduce(merge, parts), 10)
    right = stratified_sample(merge(parts[0], merge(parts[1], parts[2])), 10)
    for one, other in zip(left, right, strict=True):
        np.testing.assert_array_equal(one, other)
    assert left.classes.tolist() == ["a", "b", "c"]
    assert np.bincount(left.codes).max() == 10
    assert left.n_rows == np.count_nonzero(U)
    for code, label in enumerate("abc"):
        total = left.weights[left.codes == code].sum()
        np.testing.assert_allclose(total, U[label == Y].sum())


@each(sigma=[0.0, 1.0, 8.0], size=[1, 20, 500])
def test_strata__are_the_rows_of_the_smallest_keys(size: int, sigma: float) -> None:
    """As a sort of all keys finds them, also where weights are so unlike that a guess is wrong."""
    rng = np.random.default_rng(size)
    n = 5000
    weights = np.where(rng.random(n) < 0.1, 0.0, rng.lognormal(sigma=sigma, size=n))
    labels = np.sort(rng.choice(4, n, p=[0.9, 0.09, 0.009, 0.001]))
    weights[labels == 2] = 0.0
    found = sample_strata(
        Block(np.zeros((n, 1)), weights, labels), size, stream(0, Stage.SUMMARIES)
    )
    coins = stream(0, Stage.SUMMARIES).standard_exponential(n)
    assert sorted(found) == [0, 1, 3]
    for label, part in found.items():
        members = np.flatnonzero((labels == label) & (weights > 0.0))
        keys = coins[members] / weights[members]
        first = np.argsort(keys, kind="stable")[: size + 1]
        assert part.count == len(members)
        np.testing.assert_allclose(part.weight, weights[members].sum())
        np.testing.assert_array_equal(part.keys, keys[first])
        np.testing.assert_array_equal(part.rows.rows, members[first])


@pytest.mark.statistical
def test_strata__weights_stand_for_the_rows() -> None:
    """Weights before they are scaled to the class are unbiased; false-alarm rate 1e-6."""
    estimates = []
    for seed in range(2000):
        whole = sample_strata(Block(X, U, Y), 25, stream(seed, Stage.SUMMARIES))["a"]
        u = whole.rows.weights[:25]
        weights = u / -np.expm1(-u * whole.keys[25])
        estimates.append([weights.sum(), *(weights @ whole.rows.points[:25])])
    own = Y == "a"
    assert_mean(np.array(estimates), np.array([U[own].sum(), *(U[own] @ X[own])]))
