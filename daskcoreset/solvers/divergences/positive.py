r"""Divergences of positive data: Kullback-Leibler and Itakura-Saito.

Both are sums of :math:`h(q) = q - \log(1 + q)` of a relative difference q. If q is small, the two
terms of h cancel, so a series is used.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from daskcoreset.core.linalg import dense, product
from daskcoreset.core.typing import AnyArray, FloatArray, Points
from daskcoreset.core.validation import as_numbers
from daskcoreset.errors import InvalidInputError
from daskcoreset.solvers.divergences.base import Divergence
from daskcoreset.solvers.divergences.quadratic import SquaredMahalanobis

_NEAR = 0.3
# 1/3, 1/5, ... from the last: with s^2 < 0.032 for |q| < 0.3 the rest is below 1e-16.
_SERIES = 1.0 / np.arange(3.0, 25.0, 2.0)[::-1]


class _Positive(Divergence):
    """Base of the divergences of positive data."""

    domain: ClassVar[str] = "positive, finite"
    remedy: ClassVar[str] = (
        "add a constant to data with zeros, such as half a count, leave such rows out"
    )

    @abstractmethod
    def _slopes(self, centers: FloatArray, origin: FloatArray) -> FloatArray:
        r""":math:`\nabla\phi(c) - \nabla\phi(o)` for every center, of shape (k, d)."""

    @abstractmethod
    def _curvature(self, at: FloatArray) -> FloatArray:
        r""":math:`\phi''` of every column, decreasing."""

    def valid(self, points: AnyArray) -> AnyArray:
        """Whether each entry is positive and finite."""
        positive: AnyArray = (points > 0) & np.isfinite(points)
        return positive

    def dominating(self, low: Any, high: Any) -> SquaredMahalanobis:
        r"""Squared Mahalanobis distance with :math:`A_{jj} = \phi''(\mathrm{low}_j) / 2`.

        By Taylor's theorem :math:`d_\phi(x, y) = \frac12 \sum_j \phi''(z_j) (x_j - y_j)^2`
        with z between x and y, and :math:`\phi''` decreases: no smaller diagonal A dominates
        on the whole box, and the factor :math:`\phi''(\mathrm{high}_j) /
        \phi''(\mathrm{low}_j)` of `similarity` cannot be larger.
        """
        steepest, _ = self._curvatures(low, high)
        return SquaredMahalanobis(steepest / 2.0)

    def similarity(self, low: Any, high: Any) -> FloatArray:
        r""":math:`\mu_j = \phi''(\mathrm{high}_j) / \phi''(\mathrm{low}_j)`, of shape (d,)."""
        steepest, flattest = self._curvatures(low, high)
        return np.asarray(flattest / steepest)

    def _expanded(
        self, rows: FloatArray, centers: FloatArray, origin: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        from_origin = self.between(np.broadcast_to(origin, centers.shape), centers)
        terms = np.add.outer(self.between(rows, origin), from_origin)
        return terms, product(rows - origin, self._slopes(centers, origin).T)

    def _curvatures(self, low: Any, high: Any) -> tuple[FloatArray, FloatArray]:
        low, high = as_numbers("low", low), as_numbers("high", high)
        if low.ndim != 1 or low.shape != high.shape:
            raise InvalidInputError(
                f"low has shape {low.shape} and high {high.shape}",
                remedy="pass one of each per column",
            )
        with np.errstate(all="ignore"):
            steepest, flattest = self._curvature(low), self._curvature(high)
            factor_exists = np.isfinite(steepest) & (flattest / steepest > 0)
        inside = (low > 0) & (low <= high) & np.isfinite(high)
        bad = np.flatnonzero(~(inside & factor_exists))
        if len(bad):
            j = bad[0]
            problem = f"the {self.title} needs 0 < low <= high"
            if inside[j]:
                problem = f"no float64 holds the factor between the {self.title} and a distance"
            raise InvalidInputError(
                f"low is {low[j]} and high {high[j]} in column {j}, but {problem}",
                argument="low",
                remedy="pass the smallest and largest value of each column, or clip small values",
            )
        return steepest, flattest


@dataclass(frozen=True)
class KullbackLeibler(_Positive):
    r"""Generalized Kullback-Leibler divergence, or relative entropy, of positive data.

    See :doc:`/guides/clusters`.

    .. math::

        d(x, y) = \sum_j x_j \log\frac{x_j}{y_j} - x_j + y_j,
        \qquad \phi(x) = \sum_j x_j \log x_j

    Use it for counts and frequencies. If rows sum to one, it is the divergence of the
    distributions. On a box :math:`A_{jj} = 1 / (2\,\mathrm{low}_j)` and :math:`\mu_j =
    \mathrm{low}_j / \mathrm{high}_j`. Soft clustering with it fits a mixture of Poisson
    distributions.

    Examples
    --------
    >>> KullbackLeibler().divergence(np.array([[1.0, 2.0]]), np.array([[1.0, 2.0], [1.0, 1.0]]))
    array([[0.        , 0.38629436]])
    >>> KullbackLeibler().dominating([0.5], [2.0]).precision
    array([1.])
    >>> KullbackLeibler().similarity([0.5], [2.0])
    array([0.25])

    References
    ----------
    Banerjee et al. (2005), table 1. Bachem, Lucic and Krause (2018), section 6.
    """

    name: ClassVar[str] = "kl"
    title: ClassVar[str] = "Kullback-Leibler divergence"
    citation: ClassVar[str] = "bachem2018scalable, section 6"

    def generator(self, points: Points) -> FloatArray:
        r"""Return :math:`\sum_j x_j \log x_j`."""
        rows = dense(points)
        return np.asarray((rows * np.log(rows)).sum(axis=1))

    def between(self, points: AnyArray, others: AnyArray) -> FloatArray:
        r"""Return :math:`\sum_j x_j h(q_j)` with :math:`q_j = (y_j - x_j) / x_j`."""
        x, y = dense(points), dense(others)
        gap = y - x
        # Logarithms apart: a quotient could overflow where the divergence does not.
        out = x * (np.log(x) - np.log(y)) + gap
        near = np.abs(gap) < _NEAR * x
        out[near] = x[near] * _excess(gap[near] / x[near])
        return np.asarray(out.sum(axis=1))

    def _slopes(self, centers: FloatArray, origin: FloatArray) -> FloatArray:
        return _log_ratio(centers, origin)

    def _curvature(self, at: FloatArray) -> FloatArray:
        return 1.0 / at


@dataclass(frozen=True)
class ItakuraSaito(_Positive):
    r"""Itakura-Saito divergence of positive data, such as power spectra.

    See :doc:`/guides/clusters`.

    .. math::

        d(x, y) = \sum_j \frac{x_j}{y_j} - \log\frac{x_j}{y_j} - 1,
        \qquad \phi(x) = -\sum_j \log x_j

    It does not depend on the scale: :math:`d(s x, s y) = d(x, y)`. On a box :math:`A_{jj} = 1 /
    (2\,\mathrm{low}_j^2)` and :math:`\mu_j = (\mathrm{low}_j / \mathrm{high}_j)^2`. Soft clustering
    with it fits a mixture of exponential distributions.

    Examples
    --------
    >>> ItakuraSaito().divergence(np.array([[2.0]]), np.array([[1.0], [2.0]]))
    array([[0.30685282, 0.        ]])
    >>> ItakuraSaito().dominating([0.5], [1.0]).precision
    array([2.])
    >>> ItakuraSaito().similarity([0.5], [1.0])
    array([0.25])

    References
    ----------
    Banerjee et al. (2005), table 1. Bachem, Lucic and Krause (2018), section 6.
    """

    name: ClassVar[str] = "itakura_saito"
    title: ClassVar[str] = "Itakura-Saito divergence"
    citation: ClassVar[str] = "bachem2018scalable, section 6"

    def generator(self, points: Points) -> FloatArray:
        r"""Return :math:`-\sum_j \log x_j`."""
        return np.asarray(-np.log(dense(points)).sum(axis=1))

    def between(self, points: AnyArray, others: AnyArray) -> FloatArray:
        r"""Return :math:`\sum_j h(q_j)` with :math:`q_j = (x_j - y_j) / y_j`."""
        x, y = dense(points), dense(others)
        with np.errstate(over="ignore"):  # then the divergence is as large
            quotient = (x - y) / y
        out = quotient - (np.log(x) - np.log(y))
        near = np.abs(quotient) < _NEAR
        out[near] = _excess(quotient[near])
        return np.asarray(out.sum(axis=1))

    def _slopes(self, centers: FloatArray, origin: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.asarray((centers - origin) / origin / centers)

    def _curvature(self, at: FloatArray) -> FloatArray:
        return (1.0 / at) ** 2


def _excess(q: FloatArray) -> FloatArray:
    r""":math:`q - \log(1 + q) \ge 0` for :math:`|q| < 0.3`, without cancellation.

    With :math:`s = q / (2 + q)`, :math:`\log(1 + q) = 2 \operatorname{artanh} s` and
    :math:`q = 2 s + q s`: the terms linear in q drop out.
    """
    s = q / (2.0 + q)
    square = s * s
    series = np.zeros_like(q)
    for coefficient in _SERIES:
        series *= square
        series += coefficient
    return np.asarray(s * (q - 2.0 * square * series))


def _log_ratio(x: FloatArray, y: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):  # the other branch is taken where this one fails
        gap = (x - y) / y
        return np.where(np.abs(gap) < _NEAR, np.log1p(gap), np.log(x) - np.log(y))
