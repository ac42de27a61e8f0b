"""The size of a coreset, by theory and by search."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from daskcoreset.build import build
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.random import RandomState
from daskcoreset.core.tables import html_table
from daskcoreset.core.typing import Sampling
from daskcoreset.core.validation import as_float, as_int, is_choice
from daskcoreset.sensitivities import Sensitivity

__all__ = ["SizeSearch", "SizeStep", "auto_size", "theory_size"]


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
    rows do, and `auto_size` finds how many.

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
            f"method {method!r} has no bound on its size; the ones that have are {names}."
        )
    complexity = n_features * n_clusters * (math.log(n_clusters) if n_clusters > 1 else 1.0)
    try:
        rows = factors[method] * (complexity - math.log(delta)) / epsilon**2
        return max(1, math.ceil(constant * rows))
    except (OverflowError, ZeroDivisionError):
        raise InvalidInputError(
            f"epsilon={epsilon} and constant={constant} ask for more rows than can be counted; "
            f"pass a larger epsilon, or a smaller constant."
        ) from None


@dataclass(frozen=True)
class SizeStep:
    r"""Two independent coresets of one size.

    Attributes
    ----------
    size : int
        Rows asked of each.
    disagreement : float
        Largest :math:`|\phi_A(Q) - \phi_B(Q)| / \min` over the solutions tried.
    solutions : int
        Solutions tried; the first disagreement ends a step.
    reads : int
        Reads of the data for both together. Dask collections, whose blocks both builds find
        under the same keys, are read half as often.
    on_data : float or None
        Largest difference of the costs of six of the solutions, on both coresets together,
        from those over all data; None where the two disagreed, and the data were not read.
    """

    size: int
    disagreement: float
    solutions: int
    reads: int
    on_data: float | None = None


@dataclass(frozen=True, eq=False)
class SizeSearch:
    """Result of `auto_size`.

    Attributes
    ----------
    size : int
        Rows of each of the two coresets that agreed.
    agreed : bool
        False where the search gave up at half the rows of the data, or at 2**20 rows.
    epsilon, delta : float
    steps : tuple of SizeStep
        The trace.
    coreset : Coreset
        The union of the two last, each with half its weights: what ``build(size="auto")``
        returns.
    """

    size: int
    agreed: bool
    epsilon: float
    delta: float
    steps: tuple[SizeStep, ...]
    coreset: Coreset

    @property
    def reads(self) -> int:
        """Reads of the data in all."""
        return sum(step.reads for step in self.steps)

    def _cells(self) -> list[tuple[str, str, str, str]]:
        return [
            (f"{s.size:,}", f"{s.disagreement:.3g}", str(s.solutions), str(s.reads))
            for s in self.steps
        ]

    def __repr__(self) -> str:
        verdict = "agreement" if self.agreed else "no agreement"
        lines = [
            f"SizeSearch({verdict} at {self.size:,} rows, epsilon {self.epsilon:g})",
            f"{'size':>10} {'disagreement':>13} {'solutions':>10} {'reads':>6}",
        ]
        lines += [f"{a:>10} {b:>13} {c:>10} {d:>6}" for a, b, c, d in self._cells()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        verdict = "Agreement" if self.agreed else "No agreement"
        caption = f"{verdict} at {self.size:,} rows, epsilon {self.epsilon:g}"
        return html_table(self._cells(), ("size", "disagreement", "solutions", "reads"), caption)


def auto_size(
    X: Any,
    y: Any = None,
    *,
    method: str | Sensitivity[Any] = "lightweight",
    n_clusters: int | None = None,
    epsilon: float = 0.05,
    delta: float = 0.1,
    sample_weight: Any = None,
    random_state: RandomState = None,
    sampling: Sampling = "systematic",
    passes: Literal[1, 2] = 1,
    chunks: int | Literal["auto"] = "auto",
    on_invalid: Literal["raise", "drop"] | None = None,
    progress: bool | None = None,
) -> SizeSearch:
    r"""Double the size of a coreset until an independent one of the same size agrees.

    Two coresets A and B of m rows are built with independent random numbers. Their costs, by the
    objective that the method is made for, are compared on candidate solutions Q: for k-means
    these are k-means on A, k-means on B, one center at the mean of both, and k-means++ seedings of
    both together. They agree when

    .. math::

        \max_Q \frac{|\phi_A(Q) - \phi_B(Q)|}{\min(\phi_A(Q), \phi_B(Q))} \le \varepsilon ,

    and when, of the first six of these solutions, the costs on both coresets together differ no
    more from those over all data, which are added up in another read: what both coresets miss,
    neither shows. Otherwise m is doubled. The solution that was fitted to one coreset costs more
    on the other for as long as it fits what is peculiar to that one, so that this is the hard
    part. A row far away, which has a center of its own in all of these, shows in the cost of the
    mean.

    Parameters
    ----------
    X, y, method, sample_weight, random_state, sampling, passes, chunks, on_invalid, progress
        As in `daskcoreset.build`.
    n_clusters : int or None, default=None
        Centers of the candidate solutions; those of the construction, where it has any.
    epsilon : float, default=0.05
        Relative difference of costs tolerated.
    delta : float, default=0.1
        So many seedings are compared, :math:`\lceil \log \delta / \log(1 - \delta) \rceil`
        (22 for 0.1), that with confidence :math:`1 - \delta` at most a share
        :math:`\delta` of all k-means++ seedings would show a larger difference. This is
        said of the two coresets at hand, on one step, and is not the delta of the theorems,
        which hold for all solutions.

    Returns
    -------
    SizeSearch
        The size, every step, and the coreset: the union of A and B, each with half its
        weights. They are there already, and as the errors of both are independent the union
        has half the root mean square of the difference that was compared with `epsilon`.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        As `daskcoreset.build`; also if no number of clusters is known.

    Warns
    -----
    CoresetWarning
        If there was no agreement up to half the rows of the data, or 2**20 rows.

    See Also
    --------
    theory_size : What the theorems say.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(50_000, 2))
    >>> found = auto_size(X, n_clusters=3, epsilon=0.1, random_state=0)
    >>> found.agreed, found.steps[-1].disagreement <= 0.1
    (True, True)
    """
    coreset = build(
        X,
        y,
        size="auto",
        method=method,
        n_clusters=n_clusters,
        epsilon=epsilon,
        delta=delta,
        sample_weight=sample_weight,
        random_state=random_state,
        sampling=sampling,
        passes=passes,
        chunks=chunks,
        on_invalid=on_invalid,
        progress=progress,
    )
    rule = coreset.provenance["size_rule"]
    # JSON has no infinity: None stands for it.
    records: list[dict[str, Any]] = [
        {name: math.inf if value is None else value for name, value in step.items()}
        for step in rule["steps"]
    ]
    steps = tuple(SizeStep(**record) for record in records)
    return SizeSearch(rule["size"], rule["agreed"], epsilon, delta, steps, coreset)
