"""Fig. 4 as it stands: every subset of a few rows."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.constructions.margin.excluding import Pool
from daskcoreset.solvers.hard import hard_margin, hard_margin_bias

if TYPE_CHECKING:
    from daskcoreset.constructions.margin.excluding import Shared
    from daskcoreset.core.typing import FloatArray

__all__ = ["try_all_subsets"]

_TOGETHER = 512
"""Separators measured by one read."""


def try_all_subsets(shared: Shared, n_used: int, limit: int) -> int:
    r"""Measure the hard margin of every subset of c rows, for c = 1, 2, 4, ...

    It stops when a core set of the clean data has no more than c rows: at the latest with
    d rows (with an intercept d + 1), which determine every separator, and before that where
    :math:`c \ge 32 R^2 / (\rho_k^2 \epsilon)` with the largest :math:`\rho_k` found.

    Parameters
    ----------
    shared : Shared
        Its best candidate improves.
    n_used : int
        Rows with a weight.
    limit : int
        Subsets at most.

    Returns
    -------
    int
        Subsets that were tried.

    Raises
    ------
    InvalidInputError
        If there are more of them than `limit`.

    References
    ----------
    Har-Peled, Roth and Zimak (2007), Fig. 4; its test compares with a guess of the margin,
    here with the margin found.
    """
    pool = _all_rows(shared, n_used)
    radius = float(np.sqrt(np.square(pool.rows).sum(axis=1).max()))
    enough = min(n_used, pool.rows.shape[1] + int(shared.intercept))
    tried, c = 0, 1
    while True:
        c = min(c, enough)
        tried += math.comb(n_used, c)
        if tried > limit:
            raise InvalidInputError(
                f'method="subsets" has to try {tried:,} subsets of {c} of {n_used} rows and '
                f'max_problems is {limit}; pass method="auto".'
            )
        normals: list[FloatArray] = []
        for held in itertools.combinations(range(n_used), c):
            w = _normal(pool.rows[list(held)], pool.signs[list(held)], intercept=shared.intercept)
            if w is not None:
                normals.append(w)
        for start in range(0, len(normals), _TOGETHER):
            shared.ask(np.array(normals[start : start + _TOGETHER]))
        margin = 0.0 if shared.best is None else max(0.0, shared.best.margin)
        fits = margin > 0 and c >= 32 * (radius / margin) ** 2 / shared.epsilon
        if c == enough or fits:
            return tried
        c *= 2


def _normal(rows: FloatArray, signs: FloatArray, *, intercept: bool) -> FloatArray | None:
    if not intercept:
        found = hard_margin(rows * signs[:, None])
    elif abs(signs.sum()) < len(signs):
        found = hard_margin_bias(rows, signs)
    else:
        return None
    return found.w if found.separable else None


def _all_rows(shared: Shared, n_used: int) -> Pool:
    """Every row of the data, in order: there are few."""
    # Of length one as every normal: what is asked is measured, and kept if it is the best.
    axis = np.eye(1, shared.pool.rows.shape[1])
    answer = shared.ask(axis, most=n_used)
    found = answer.found
    return Pool(found.rows, found.signs, answer.indices)
