"""A test of independent draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.stats

if TYPE_CHECKING:
    from daskcoreset.core.typing import FloatArray


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
