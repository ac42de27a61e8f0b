"""The size of a coreset by theory."""

from __future__ import annotations

import math
from typing import Literal

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.validation import as_float, as_int, is_choice

__all__ = ["theory_size"]


def theory_size(
    n_clusters: int,
    n_features: int,
    *,
    epsilon: float,
    delta: float,
    method: Literal["lightweight", "kmeans"] = "lightweight",
    constant: float = 1.0,
) -> int:
    r"""Rows by theory, up to a constant that no paper states.

    .. math::

        m_\text{lightweight} &= c \, \frac{d k \log k + \log(1/\delta)}{\varepsilon^2}, \\
        m_\text{kmeans} &= c \, k^2 \, \frac{d k \log k + \log(1/\delta)}{\varepsilon^2}.

    Both theorems say :math:`m \in \Omega(\cdot)`: some constant c is enough, and it is not
    given. With ``constant=1`` this is therefore a *scale* and no guarantee: it tells how the
    size grows with k, d and :math:`\varepsilon`, not where it starts. In practice far fewer
    rows do, and `daskcoreset.grow` finds how many.

    Parameters
    ----------
    n_clusters : int
        k, centers of the solutions that the coreset is for.
    n_features : int
        d, columns of the data.
    epsilon : float
        Relative error wanted, between 0 and 1. It is relative to the mean of the cost of the
        solution and the variance of the data for "lightweight" (an additive part, which is
        large against the cost of many small clusters), to the cost alone for "kmeans".
    delta : float
        Probability, between 0 and 1, that the bound fails.
    method : {"lightweight", "kmeans"}, default="lightweight"
        The construction. There is no bound for "uniform": on data with one far row it fails
        at every size below n.
    constant : float, default=1.0
        c, positive.

    Returns
    -------
    int
        At least 1. Natural logarithms; for one center, where :math:`\log k` vanishes but the
        complexity of the problem is that of d numbers, it is taken to be 1.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If an argument is out of range, or the method has no bound.

    Examples
    --------
    >>> theory_size(10, 5, epsilon=0.1, delta=0.1)
    11744
    >>> theory_size(10, 5, epsilon=0.05, delta=0.1)  # half the error, four times the rows
    46973

    References
    ----------
    Bachem, Lucic and Krause (2018), Theorem 2. Bachem, Lucic and Krause (2017), section 4:
    :math:`S^2` times the complexity, with a total sensitivity S of order k.
    """
    as_int("n_clusters", n_clusters, remedy="pass a larger int")
    as_int("n_features", n_features, remedy="pass a larger int")
    as_float("epsilon", epsilon)
    as_float("delta", delta)
    as_float("constant", constant, maximum=math.inf)
    factors = {"lightweight": 1, "kmeans": n_clusters**2}
    if not is_choice(method, factors):
        names = ", ".join(repr(name) for name in factors)
        raise InvalidInputError(
            f"method {method!r} has no bound on its size",
            argument="method",
            remedy=f"pass one of {names}",
        )
    complexity = n_features * n_clusters * (math.log(n_clusters) if n_clusters > 1 else 1.0)
    try:
        rows = factors[method] * (complexity - math.log(delta)) / epsilon**2
        return max(1, math.ceil(constant * rows))
    except (OverflowError, ZeroDivisionError):
        raise InvalidInputError(
            f"epsilon={epsilon} and constant={constant} ask for more rows than can be counted",
            argument="epsilon",
            remedy="pass a larger epsilon, or a smaller constant",
        ) from None
