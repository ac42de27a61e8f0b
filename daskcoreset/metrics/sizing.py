"""The size of a coreset by theory."""

from __future__ import annotations

import math
from typing import Literal

from daskcoreset.core.validation import as_float, as_int, is_choice
from daskcoreset.errors import InvalidInputError

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
    r"""Return the size that theory suggests, up to a constant that the papers leave open.

    .. math::

        m_\text{lightweight} &= c \, \frac{d k \log k + \log(1/\delta)}{\varepsilon^2}, \\
        m_\text{kmeans} &= c \, k^2 \, \frac{d k \log k + \log(1/\delta)}{\varepsilon^2}.

    The theorems say that some constant c is enough, and do not give it. So the result shows how the
    size grows with k, d and :math:`\varepsilon`. It is not a guarantee. In practice far fewer rows
    are enough: `daskcoreset.grow` finds the number. :doc:`/guarantees` has the theorems.

    Parameters
    ----------
    n_clusters : int
        k, the number of centers of your solutions.
    n_features : int
        d, the number of columns of the data.
    epsilon : float
        Relative error, between 0 and 1. For "kmeans" it is relative to the cost of the solution.
        For "lightweight" it is relative to the mean of that cost and the variance of the data. The
        variance is large against the cost of many small clusters.
    delta : float
        Probability, between 0 and 1, that the bound fails.
    method : {"lightweight", "kmeans"}, default="lightweight"
        The method. "uniform" has no bound: if one row is far away, it fails at every size below n.
    constant : float, default=1.0
        The constant c, positive.

    Returns
    -------
    int
        At least 1. Logarithms are natural. For one center, :math:`\log k` is taken to be 1.

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
            f"epsilon={epsilon} and constant={constant} need too many rows to count",
            argument="epsilon",
            remedy="pass a larger epsilon, or a smaller constant",
        ) from None
