"""Where EM starts from by default: the best of several short runs on a sample of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.moments import moments_of
from daskcoreset.core.sampling import inclusion_probabilities, systematic
from daskcoreset.core.typing import FloatArray
from daskcoreset.solvers.mixture.init import InitParams
from daskcoreset.solvers.mixture.model import MixtureModel, log_likelihood

_Found = TypeVar("_Found")
Judge: TypeAlias = Callable[[MixtureModel], float]

# Kinds of starts; None is that of the caller.
_STARTS: tuple[InitParams | None, ...] = (None, "k-means++") * 4

# Steps of EM after which so many starts go on, by what takes little time and by what decides. The
# start that ends best may be behind after ten steps.
_STAGES = ((10, 4), (30, 2))

# Rows of the sample at most: the choice ended in optima as good as that of steps on all rows.
_MAX_ROWS = 3_000

# Rows for each component, without which none of them are kept apart to judge; rows of uneven
# weight count as fewer.
_ROWS_PER_COMPONENT = 30

# Components of which more take so much longer that less is searched, in proportion.
_MANY_COMPONENTS = 50


@dataclass(frozen=True, eq=False)
class Steps:
    """What is done to mixtures on some rows.

    Attributes
    ----------
    start : callable
        From points, weights and a kind of start, None for that of the caller, to a mixture.
    iterate : callable
        From points, weights, a mixture and a number of iterations of EM to a mixture.
    rank : callable
        From what mixtures are to be large by to what sorts them.
    judge, screen : callable or None
        What mixtures are to be large by, and what takes less time.
    n_components : int
    """

    start: Callable[[FloatArray, FloatArray, InitParams | None], MixtureModel]
    iterate: Callable[[FloatArray, FloatArray, MixtureModel, int], MixtureModel]
    rank: Callable[[Judge], Callable[[MixtureModel], tuple[int, float]]]
    judge: Judge | None
    screen: Judge | None
    n_components: int


def best_starts(
    points: FloatArray, u: FloatArray, steps: Steps, rng: np.random.Generator
) -> list[MixtureModel]:
    """Return two mixtures at most from which EM is to go on, on all rows.

    Parameters
    ----------
    points : ndarray of shape (n, d), float64
    u : ndarray of shape (n,), float64
        Positive weights.
    steps : Steps
        Without `judge` a third of the rows of the sample are kept apart to judge, for the
        likelihood of the rows themselves favours mixtures that have learned single ones by heart.
    rng : numpy.random.Generator

    Returns
    -------
    list of Mixture

    Raises
    ------
    InvalidInputError
        If all starts fail.

    References
    ----------
    Biernacki, Celeux and Govaert (2003), Choosing starting values for the EM algorithm.
    """
    judge, k = steps.judge, steps.n_components
    n_effective = float(u.sum()) ** 2 / float(u @ u)
    spare = judge is None and n_effective >= _ROWS_PER_COMPONENT * k
    count = _MAX_ROWS + spare * _MAX_ROWS // 2
    points, u = _sample(points, u, k, rng, count)
    if spare and len(points) <= count:
        apart = _apart(u, rng)
        if _n_distinct(points[~apart]) >= 2 * k:
            judge = partial(_mean, X=points[apart], u=u[apart])
            points, u = points[~apart], u[~apart]
    judge = judge or partial(_mean, X=points, u=u)
    starts = _STARTS[: max(2, _in_proportion(len(_STARTS), k))]
    found = possible([partial(steps.start, points, u, kind) for kind in starts])
    for by, (n_steps, kept) in zip((steps.screen or judge, judge), _STAGES, strict=True):
        found = possible([partial(steps.iterate, points, u, one, n_steps) for one in found])
        found = sorted(found, key=steps.rank(by), reverse=True)[:kept]
    return found


def possible(runs: Sequence[Callable[[], _Found]]) -> list[_Found]:
    """Return what came of the runs that did not fail; an error where all do."""
    found, errors = [], []
    for run in runs:
        try:
            found.append(run())
        except InvalidInputError as error:
            errors.append(error)
    if not found:
        raise errors[0]
    return found


def _in_proportion(count: int, n_components: int) -> int:
    return min(count, count * _MANY_COMPONENTS // n_components)


def _mean(mixture: MixtureModel, *, X: FloatArray, u: FloatArray) -> float:
    return log_likelihood(mixture, X, u) / float(u.sum())


def _apart(u: FloatArray, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Whether rows are kept apart: of every group of three or more of like weight, one."""
    apart = np.zeros(len(u), dtype=np.bool_)
    for group in np.array_split(np.argsort(u, kind="stable"), len(u) // 3):
        apart[rng.choice(group)] = True
    return apart


def _n_distinct(points: FloatArray) -> int:
    return len(np.unique(points, axis=0))


def _sample(
    points: FloatArray, u: FloatArray, n_components: int, rng: np.random.Generator, count: int
) -> tuple[FloatArray, FloatArray]:
    """Return some rows of many with their weights, or all where so few of them are distinct.

    Half by weight, and half by squared distance to the mean in columns of one scale, so that rare
    components far out have rows as well.
    """
    if len(points) <= count:
        return points, u
    moments = moments_of(points, u)
    variance = moments.m2 / moments.weight
    scale = np.where(variance > 0.0, variance, 1.0)
    costs = u * (points**2 / scale).sum(axis=1)
    scores = u / u.sum() + costs / max(float(costs.sum()), np.finfo(np.float64).tiny)
    inclusion = inclusion_probabilities(scores, count)
    rows = systematic(inclusion, rng)
    if _n_distinct(points[rows]) < 2 * n_components:
        return points, u
    return points[rows], u[rows] / inclusion[rows]
