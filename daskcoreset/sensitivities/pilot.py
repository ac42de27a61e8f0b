"""What methods with a pilot share: rows that judge draws, and calibration to sums over all rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from daskcoreset.core.block import Block, concatenate
from daskcoreset.core.linalg import dense, tiles
from daskcoreset.core.raking import Calibrated, Target, calibrate_classes, class_sums, join_targets
from daskcoreset.core.sampling import StratifiedReservoir, merge_reservoirs, sample_strata
from daskcoreset.core.typing import FloatArray, IndexArray
from daskcoreset.sensitivities.draw import Candidates, Drawn, SystematicDraws, best_of

M = TypeVar("M")

# Rows by which draws are compared, and numbers in them: 8 MiB of float32. Of a class at least 128.
_JUDGES, _JUDGE_NUMBERS = 10_000, 2**21

# Draws of uniform rows at least, if they are better than one draw by the pilot.
_UNIFORM_DRAWS = 3

# Whether the means of the classes are calibrated, and whether the gradient is.
Mode = tuple[bool, bool]

# Name of what may be met in the place of the means of two classes.
AT_ZERO = "gradient at zero"

# Rows for every feature with which both are: measured on htru2 and credit.
_ROWS_PER_FEATURE = 12

# Rows for every feature with which the gradient alone is.
_SOME = 4

# Products that a Newton step of the raking may take.
_MAX_WORK = 2e9


# --- rows that judge draws -------------------------------------------------------------------

# Samples of every class that are drawn neither for the coreset nor for the pilot.
Judges: TypeAlias = dict[Any, StratifiedReservoir]


def sample_judges(block: Block, rough: Any, rng: np.random.Generator) -> Judges:
    """Sample every class of a block."""
    return sample_strata(block, _judge_size(rough), rng)


def merge_judges(first: Judges, second: Judges, rough: Any) -> Judges:
    """Sample the union of two sets of rows."""
    return merge_reservoirs(first, second, _judge_size(rough))


def judges_of(judges: Judges, rough: Any) -> Candidates:
    """Return the sampled rows, and the probabilities with which they were sampled."""
    size, strata = _judge_size(rough), list(judges.values())
    rows = concatenate([one.rows.take(slice(size)) for one in strata])
    return Candidates(rows, rows.weights / np.concatenate([one.stand_ins(size) for one in strata]))


def _judge_size(rough: Any) -> int:
    """Rows of a class, for the classes and columns of a pilot."""
    rows = min(_JUDGES, _JUDGE_NUMBERS // max(len(rough.origin), 1))
    return max(128, rows // max(2, len(rough.classes)))


class Judged(NamedTuple):
    """Cost of a model: a constant, and losses of rows of weight one."""

    constant: float
    losses: FloatArray


def best_draw(  # noqa: PLR0917 - all of them are always given
    by_pilot: Callable[[int], Drawn],
    uniform: SystematicDraws,
    codes: IndexArray,
    class_weights: FloatArray,
    fit: Callable[[Drawn], M],
    judge: Callable[[M, Block], Judged],
    judges: Candidates,
    n_draws: int,
    rng: np.random.Generator,
) -> Drawn:
    """Return the best of several draws by a pilot, or of uniform rows if these are better.

    Uniform rows are better if the cost of their model is smaller by two standard errors. Draws of
    one pilot differ by less than such errors, so all candidates compare them.

    Parameters
    ----------
    by_pilot : callable
        Makes a draw by the scores of the pilot, from its number.
    uniform : SystematicDraws
        Draws of uniform rows.
    codes : ndarray of shape (k,), int64
        Classes of the candidates.
    class_weights : ndarray of shape (n_classes,), float64
        Their total weights.
    fit : callable
        Returns the model on a draw.
    judge : callable
        Returns its cost over other rows.
    judges : Candidates
        Rows that are drawn for nothing else.
    n_draws : int
        Draws of one kind.
    rng : numpy.random.Generator
    """

    def at_random() -> Drawn:
        drawn = uniform(rng)
        found = calibrate_classes(drawn.weights, codes[drawn.chosen], class_weights, {}, [])
        facts = {**found.describe(), "rows": "uniform"}
        return drawn._replace(weights=found.weights, facts=facts)

    drawn, other = by_pilot(0), at_random()
    model, other_model = fit(drawn), fit(other)
    if _costs_more(judge(model, judges.rows), judge(other_model, judges.rows), judges):
        drawn, model, rows = other, other_model, judges
        further = [at_random() for _ in range(1, max(n_draws, _UNIFORM_DRAWS))]
    else:
        rows = uniform.candidates
        further = [by_pilot(number) for number in range(1, n_draws)]
    if not further:
        return drawn
    found = [judge(one, rows.rows) for one in (model, *map(fit, further))]
    costs = [one.constant + float(rows.weights @ one.losses) for one in found]
    return best_of([drawn, *further], costs)


def _costs_more(first: Judged, second: Judged, judges: Candidates) -> bool:
    """Whether a model costs more than another by two standard errors of the judges."""
    gaps, weights, codes = first.losses - second.losses, judges.weights, judges.codes
    means = np.bincount(codes, weights * gaps) / np.bincount(codes, weights)
    unseen = np.maximum(1.0 - judges.first, 0.0)
    error = math.sqrt(float(unseen @ np.square(weights * (gaps - means[codes]))))
    return first.constant - second.constant + float(weights @ gaps) > 2.0 * error


# --- calibration ---------------------------------------------------------------------------


def modes_for(size: int, rough: Any) -> tuple[Mode, ...]:
    """Return modes of calibration, the likeliest to succeed first.

    Sums that are met by rows too few for them are met by absurd weights; what is too few is
    found by trial.
    """
    both, gradient, means, neither = (True, True), (False, True), (True, False), (False, False)
    d, k, p = len(rough.origin), len(rough.classes), len(rough.coef)
    if p > 1 and size * (p * (d + 2)) ** 2 > _MAX_WORK:
        return (neither,)
    if size >= _ROWS_PER_FEATURE * p * (d + 1):
        cheap = size * ((p + k) * (d + 1)) ** 2 <= _MAX_WORK
        return (both, gradient) if cheap else (gradient,)
    if size >= _SOME * p * (d + 1):
        return gradient, both, means, neither
    return neither, gradient, means, both


def parts(block: Block, rough: Any) -> Iterator[tuple[slice, FloatArray]]:
    """Go through the rows of a block, without `origin` and in float64, some at a time."""
    points: Any = block.points
    for rows in tiles(len(block), points.shape[1]):
        yield rows, dense(points[rows]).astype(np.float64, copy=False) - rough.origin


def centred_rows(rows: Block, rough: Any) -> FloatArray:
    """Return rows less the `origin` of a pilot, as one array."""
    points = np.empty((len(rows), len(rough.origin)))
    for part, tile in parts(rows, rough):
        points[part] = tile
    return points


def rake_to_pilot(  # noqa: PLR0917 - all of them are always given
    weights: FloatArray,
    codes: IndexArray,
    points: FloatArray,
    class_weights: FloatArray,
    sums: FloatArray,
    pulls: Callable[[], Target],
    mode: Mode,
    *,
    at_zero: bool = False,
) -> Calibrated:
    """Scale weights to the totals of the classes, and calibrate them as `mode` says.

    Parameters
    ----------
    weights : ndarray of shape (m,), float64
    codes : ndarray of shape (m,), int64
    points : ndarray of shape (m, d), float64
        As of `centred_rows`.
    class_weights : ndarray of shape (K,), float64
    sums : ndarray of shape (K, d), float64
        Sums of the rows of every class, over all the data.
    pulls : callable
        Makes what `pull_target` returns.
    mode : (bool, bool)
        As of `modes_for`.
    at_zero : bool, default=False
        Whether, of two classes whose means cannot both be met, the difference of their sums may be:
        the gradient of losses where coefficients are zero, which rules the cost of small ones.
        Half as many sums.
    """

    def class_means() -> Iterator[Target]:
        return class_sums(points, codes, sums)

    def differences() -> Target:
        return Target(points * np.where(codes == 1, 1.0, -1.0)[:, np.newaxis], sums[1] - sums[0])

    means, gradient = mode
    targets = {
        "class means": lambda: join_targets(class_means()),
        "gradient": pulls,
        AT_ZERO: differences,
    }
    names = ("gradient",) * gradient + ("class means",) * means
    ladder = [names[:count] for count in range(len(names), 0, -1)]
    if len(names) > 1:
        ladder.append(names[1:])
    if at_zero and means and len(sums) == 2:
        ladder.insert(1, (*names[:-1], AT_ZERO))
        if gradient:
            ladder.append((AT_ZERO,))
    kept = {"class means": class_means}
    return calibrate_classes(weights, codes, class_weights, targets, ladder, kept=kept)


def pull_target(
    points: FloatArray,
    losses: FloatArray,
    pulls: FloatArray,
    total_losses: FloatArray,
    slopes: FloatArray,
) -> Target:
    """Losses and gradients, at a pilot's solution, of the rows drawn; and their sums over all.

    Parameters
    ----------
    points : ndarray of shape (m, d), float64
    losses, pulls : ndarray of shape (m, p), float64
        Pulls are minus the derivatives of the loss by the decision values.
    total_losses : ndarray of shape (p,), float64
    slopes : ndarray of shape (p, d + 1), float64
        Sums of the pulls times the row and one.
    """
    columns: list[FloatArray] = []
    totals: list[FloatArray] = []
    for problem in range(losses.shape[1]):
        pull = pulls[:, problem, np.newaxis]
        columns += [losses[:, problem, np.newaxis], points * pull, pull]
        totals += [total_losses[problem : problem + 1], slopes[problem]]
    return Target(np.concatenate(columns, axis=1), np.concatenate(totals))
