"""Where EM starts from by default: the best of some starts on a sample of rows, after exchanges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.moments import moments_of
from daskcoreset.core.sampling import inclusion_probabilities, systematic
from daskcoreset.core.typing import FloatArray
from daskcoreset.solvers.mixture.init import InitParams
from daskcoreset.solvers.mixture.model import Mixture, log_likelihood
from daskcoreset.solvers.mixture.split_merge import exchanges

_Found = TypeVar("_Found")
Judge: TypeAlias = Callable[[Mixture], float]

# Kinds of starts; None is that of the caller. With six, few rows for many parameters ended in
# poorer optima. Where nothing is exchanged afterwards single runs end in optima that lie far apart,
# on skewed sets by tenths of a nat a row: with ten starts some seeds of every construction ended in
# poor ones.
_STARTS: tuple[InitParams | None, ...] = (None, "k-means++") * 6
_STARTS_ALONE: tuple[InitParams | None, ...] = (None, "k-means++") * 15

# Steps of EM after which so many starts go on, by what takes little time and by what decides. The
# start that ends best may be behind after ten steps. With one in the end some fits ended in poor
# optima.
_STAGES = ((10, 4), (30, 2))
_STAGES_ALONE = ((10, 12), (30, 2))

# Rounds of exchanges at most, how many are tried in each, and steps of EM of these and of the best
# two of them. Some more of any gained little; with four tried, fits ended in poorer optima.
_ROUNDS, _TRIED, _TRIED_STEPS, _MORE_STEPS = 8, 6, 5, 15

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
    judge, screen : callable or None
        What mixtures are to be large by, and what takes less time.
    n_components : int
    tol : float
        What an exchange gains at least.
    reg_covar : float
    """

    start: Callable[[FloatArray, FloatArray, InitParams | None], Mixture]
    iterate: Callable[[FloatArray, FloatArray, Mixture, int], Mixture]
    judge: Judge | None
    screen: Judge | None
    n_components: int
    tol: float
    reg_covar: float


def best_starts(
    points: FloatArray, u: FloatArray, steps: Steps, rng: np.random.Generator, *, exchange: bool
) -> list[Mixture]:
    """Return two mixtures at most from which EM is to go on, on all rows.

    Parameters
    ----------
    points : ndarray of shape (n, d), float64
    u : ndarray of shape (n,), float64
        Positive weights.
    steps : Steps
        Without `judge` a third of the rows of the sample are kept apart to judge where components
        are exchanged: the more is searched, the more the likelihood of the rows themselves is in
        favour of mixtures that have learned single ones by heart. Else that likelihood judges.
    rng : numpy.random.Generator
    exchange : bool
        Whether the best of twelve starts are improved by exchanges of components, where rows are
        left to judge; else the best of thirty are returned. Of more than fifty components there
        are fewer starts, and fewer exchanges.

    Returns
    -------
    list of Mixture

    Raises
    ------
    InvalidInputError
        If all starts fail.

    References
    ----------
    Biernacki, Celeux and Govaert (2003), Choosing starting values for the EM algorithm, for short
    runs; Ueda, Nakano, Ghahramani and Hinton (2000), SMEM Algorithm for Mixture Models, for
    exchanges that are taken where they gain.
    """
    judge, k = steps.judge, steps.n_components
    n_effective = float(u.sum()) ** 2 / float(u @ u)
    spare = exchange and judge is None and n_effective >= _ROWS_PER_COMPONENT * k
    count = _MAX_ROWS + spare * _MAX_ROWS // 2
    points, u = _sample(points, u, k, rng, count)
    if spare and len(points) <= count:
        apart = _apart(u, rng)
        if _n_distinct(points[~apart]) >= 2 * k:
            judge = partial(_mean, X=points[apart], u=u[apart])
            points, u = points[~apart], u[~apart]
    exchange = exchange and judge is not None and len(points) <= _MAX_ROWS
    judge = judge or partial(_mean, X=points, u=u)
    screen = steps.screen or judge
    starts, stages = (_STARTS, _STAGES) if exchange else (_STARTS_ALONE, _STAGES_ALONE)
    starts = starts[: max(2, _in_proportion(len(starts), k))]
    found = possible([partial(steps.start, points, u, kind) for kind in starts])
    for by, (n_steps, kept) in zip((screen, judge), stages, strict=True):
        found = possible([partial(steps.iterate, points, u, one, n_steps) for one in found])
        found = sorted(found, key=by, reverse=True)[:kept]
    if exchange:
        steps = replace(steps, judge=judge, screen=screen)
        found = [_exchanged(points, u, one, steps, rng) for one in found]
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


def _exchanged(
    points: FloatArray, u: FloatArray, mixture: Mixture, steps: Steps, rng: np.random.Generator
) -> Mixture:
    """Exchange components for as long as both who judge find the mixture better."""
    judge, screen = steps.judge, steps.screen
    assert judge is not None and screen is not None  # noqa: S101, PT018 - they are found by now
    shares = u / u.sum()
    screened, judged = screen(mixture), judge(mixture)
    for _ in range(_in_proportion(_ROUNDS, steps.n_components)):
        ranked: list[tuple[float, Mixture]] = []
        try:
            tried = exchanges(mixture, points, shares, _TRIED, reg_covar=steps.reg_covar, rng=rng)
            for n_steps in (_TRIED_STEPS, _MORE_STEPS) if tried else ():
                runs = [partial(steps.iterate, points, u, one, n_steps) for one in tried]
                ranked = sorted(
                    ((screen(one), one) for one in possible(runs)), key=itemgetter(0), reverse=True
                )[:2]
                tried = [one for _, one in ranked]
        except InvalidInputError:  # of components that are singular
            break
        for value, one in ranked:
            if value > screened + steps.tol and (final := judge(one)) > judged + steps.tol:
                mixture, screened, judged = one, value, final
                break
        else:
            break
    return mixture


def _in_proportion(count: int, n_components: int) -> int:
    return min(count, count * _MANY_COMPONENTS // n_components)


def _mean(mixture: Mixture, *, X: FloatArray, u: FloatArray) -> float:
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
