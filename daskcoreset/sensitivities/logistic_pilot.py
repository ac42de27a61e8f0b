"""The pilot of logistic coresets: its model, scores by it, and sums of its losses over all rows."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from daskcoreset.core.block import Block, class_codes
from daskcoreset.core.linalg import one_thread, product, tiles
from daskcoreset.core.moments import Scatter, merged_mean, moments_of
from daskcoreset.core.sampling import StratifiedReservoir, StratifiedSample
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.sensitivities.least_squares import gaps_of, leverages, leverages_and_products
from daskcoreset.sensitivities.pilot import Judges, merge_judges

# Arrays that stand in the cache at a time.
_ARRAYS = 8

# Rows this many times as long as others have probabilities by their leverage: those of its root are
# so small that a row with nearly all of the scatter was missing from most coresets of a hundred
# rows, whose class means were raked to it nevertheless.
_LONG = 10.0

# Coefficients of all classes up to which Newton's method, with a matrix of their squares, is used.
_NEWTON_COLUMNS = 512

_MAX_ITER = 200

# Rows of the pilot for every column with which its model is worth anything: with 5.8 of w8a, nearly
# separable, draws by it were worse than uniform ones, with 16 of a9a they were twice as good.
ROWS_PER_COLUMN = 10


@dataclass(frozen=True, eq=False)
class ClassMean:
    """Rows of positive weight of a class, their weight, and their mean of shape (d,)."""

    count: int
    weight: float
    mean: FloatArray


@dataclass(frozen=True, eq=False)
class LabelledScatter(Scatter):
    r"""Scatter of all rows, and means by class.

    Attributes
    ----------
    classes : dict of label to ClassMean
        Means of every class that has a weight.
    strata : dict of label to StratifiedReservoir
        A sample of every class, for a pilot. Empty where there is none.
    """

    classes: dict[Any, ClassMean]
    strata: dict[Any, StratifiedReservoir]


@dataclass(frozen=True, eq=False)
class LogisticPilot:
    r"""A rough model, and what is known of all rows.

    Attributes
    ----------
    moments : LabelledScatter
        Moments of all rows, from the first read.
    classes : ndarray of shape (K,)
        Sorted labels.
    n_rows : int
        Rows of positive weight.
    origin : ndarray of shape (d,), float64
        Subtracted from rows before anything else is done with them. Zero without intercept.
    coef : ndarray of shape (p, d), float64
        Coefficients of the second of two classes, or of every one of more, with their softmax.
    intercept : ndarray of shape (p,), float64
        For rows without `origin`.
    totals : ndarray of shape (3,), float64
        Sums of the `logistic_scores`; of the pilot, until a fold has summed them up.
    sums : LogisticSums or None
        Sums over all the data. None after the first fold.
    sound : bool
        Whether the pilot had rows enough for a model. Without, coefficients are zero.
    """

    moments: LabelledScatter
    classes: AnyArray
    n_rows: int
    origin: FloatArray
    coef: FloatArray
    intercept: FloatArray
    totals: FloatArray
    sums: LogisticSums | None = None
    sound: bool = True

    def class_sums(self) -> tuple[FloatArray, FloatArray]:
        """Weight of every class, and the weighted sum of its rows without `origin`."""
        moments = [self.moments.classes[label] for label in self.classes.tolist()]
        weights = np.array([part.weight for part in moments])
        means = np.stack([part.mean for part in moments])
        return weights, weights[:, np.newaxis] * (means - self.origin)


class LogisticSums(NamedTuple):
    """Sums over rows, given a rough model.

    Attributes
    ----------
    pilot : LogisticPilot
        Summary of the fold before.
    losses : ndarray of shape (p,), float64
        Weighted sums of the losses.
    slopes : ndarray of shape (p, d + 1), float64
        Weighted sums of the pulls times the row and one.
    totals : ndarray of shape (3,), float64
        As in `LogisticPilot`.
    judges : Judges
        A sample of every class, by which draws are compared.
    """

    pilot: LogisticPilot
    losses: FloatArray
    slopes: FloatArray
    totals: FloatArray
    judges: Judges


def labelled_scatter(block: Block) -> LabelledScatter:
    """Scatter and means of one block, without a sample."""
    _, labels, codes = block.coded
    points: Any = block.points
    u, whole = block.weights, moments_of(points, block.weights)
    d = len(whole.mean)
    # Sums of gaps from the mean: neither an offset of all rows costs digits, nor light rows.
    matrix, shift, masses = np.zeros((d, d)), np.zeros((len(labels), d)), np.zeros(len(labels))
    for rows, gaps in gaps_of(points, u, whole.mean):
        of_class = (codes[rows] == np.arange(len(labels))[:, np.newaxis]) * u[rows]
        masses += of_class.sum(axis=1)
        shift += product(of_class, gaps)
        matrix += product((gaps * u[rows, np.newaxis]).T, gaps)
    means = whole.mean + shift / np.where(masses > 0.0, masses, 1.0)[:, np.newaxis]
    counts, _ = block.class_totals
    classes = {
        labels[code].item(): ClassMean(int(counts[code]), float(masses[code]), means[code])
        for code in np.flatnonzero(counts)
    }
    return LabelledScatter(whole.weight, whole.mean, matrix, classes, {})


def merge_means(first: ClassMean, second: ClassMean) -> ClassMean:
    """Merge the means of two disjoint sets of rows of a class."""
    mean = merged_mean(first.mean, second.mean, first.weight, second.weight)
    return ClassMean(first.count + second.count, first.weight + second.weight, mean)


class LogisticTerms(NamedTuple):
    r"""Terms of rows by a rough model.

    Attributes
    ----------
    codes : ndarray of shape (n,), int64
        Class of every row.
    losses : ndarray of shape (n, p), float64
        The loss of two classes. If there are more, the loss of the class of the row, in its column.
    pulls : ndarray of shape (n, p), float64
        One for the class of the row, less the probability of every class.
    leverages : ndarray of shape (n,), float64
        Empty where they were not asked for.
    """

    codes: IndexArray
    losses: FloatArray
    pulls: FloatArray
    leverages: FloatArray


def logistic_terms(
    block: Block, pilot: LogisticPilot, *, intercept: bool | None = None
) -> LogisticTerms:
    """Class, loss and pull of every row. Leverages too, if `intercept` is given."""
    codes = class_codes(block, pilot.classes)
    p, shift, found = len(pilot.coef), pilot.intercept, np.empty(0)
    if intercept is None:
        losses = _products(block, pilot)
    else:
        coef, moments = np.ascontiguousarray(pilot.coef), pilot.moments
        found, losses = leverages_and_products(
            block.points, block.weights, moments, coef, intercept=intercept
        )
        if intercept:  # of which `origin` is a rounding
            shift = shift + np.einsum("pj,j->p", coef, moments.mean - pilot.origin)
    pulls = np.empty_like(losses)
    for rows in tiles(len(block), _ARRAYS * p):
        values = losses[rows] + shift
        own = codes[rows, np.newaxis] == (np.arange(p) if p > 1 else 1)
        if p == 1:
            signs = 2.0 * own - 1.0  # where() takes ten times as long, at random labels
            values *= signs
            small = np.exp(-np.abs(values))
            losses[rows] = np.log1p(small) - np.minimum(values, 0.0)
            # One less the probability of its own class.
            pulls[rows] = signs * (np.exp(-np.maximum(values, 0.0)) / (1.0 + small))
        else:
            values -= values.max(axis=1, keepdims=True)
            chances = np.exp(values)
            totals = chances.sum(axis=1, keepdims=True)
            losses[rows] = np.where(own, np.log(totals) - values, 0.0)
            pulls[rows] = own - chances / totals
    return LogisticTerms(codes, losses, pulls, found)


def _products(block: Block, pilot: LogisticPilot) -> FloatArray:
    """Products of rows, without `origin`, and the coefficients of every problem."""
    out = np.empty((len(block), len(pilot.coef)))
    for rows, tile in gaps_of(block.points, block.weights, pilot.origin):
        out[rows] = product(tile, np.ascontiguousarray(pilot.coef.T))
    return out


def root_scores(leverage: FloatArray, weight: float, d: int) -> FloatArray:
    r"""Score rows of weight one by the roots of their leverages. Shape (n,).

    Parameters
    ----------
    leverage : ndarray of shape (n,), float64
        Leverages for weight one, which are at least 1/U.
    weight : float
        U, of all rows.
    d : int
        Columns.

    Examples
    --------
    >>> root_scores(np.array([0.01, 0.04, 1.0]), 300.0, 2).round(3).tolist()
    [0.103, 0.203, 1.003]
    >>> root_scores(np.array([1.0]), 30_000.0, 2).round(3).tolist()
    [10.0]
    """
    return np.asarray(
        np.maximum(np.sqrt(leverage), long_factor(weight, d) * leverage) + 1.0 / weight
    )


def one_read_scores(block: Block, moments: LabelledScatter, *, intercept: bool) -> FloatArray:
    """Score rows as in one read, by the roots of their leverages times their weights."""
    found = leverages(block.points, block.weights, moments, intercept=intercept)
    return np.asarray(block.weights * root_scores(found, moments.weight, len(moments.mean)))


def long_factor(weight: float, d: int) -> float:
    """Return what leverages count in `root_scores`: the root of a typical one, over that, a tenth.

    Examples
    --------
    >>> long_factor(300.0, 2)
    1.0
    """
    return math.sqrt(weight / (d + 1)) / _LONG


def logistic_scores(block: Block, pilot: LogisticPilot, terms: LogisticTerms) -> FloatArray:
    r"""Score rows by their pull at the rough model, by leverage, and by its root. Shape (3, n).

    The first is :math:`u |g| \sqrt{\ell}`, g the pulls of the row: the length of its gradient, in
    the norm in which the rows of all the data are alike in every direction. The second is
    :math:`u \ell`, the third the score of the one-read form.
    """
    leverage, d = terms.leverages, len(pilot.origin)
    scores = np.empty((3, len(block)))
    for rows in tiles(len(block), _ARRAYS * len(pilot.coef)):
        roots, pulls = np.sqrt(leverage[rows]), terms.pulls[rows]
        one = pulls.shape[1] == 1  # of which the length takes no root
        lengths = abs(pulls[:, 0]) if one else np.sqrt(np.einsum("ip,ip->i", pulls, pulls))
        scores[0, rows] = lengths * roots
        scores[1, rows] = leverage[rows]
        scores[2, rows] = root_scores(leverage[rows], pilot.moments.weight, d)
        scores[:, rows] *= block.weights[rows]
    return scores


def logistic_sums(
    block: Block, pilot: LogisticPilot, terms: LogisticTerms, totals: FloatArray, judges: Judges
) -> LogisticSums:
    """Sum the terms of a block."""
    u, d = block.weights, len(pilot.origin)
    pulls = u[:, np.newaxis] * terms.pulls
    slopes = np.zeros((len(pilot.coef), d))
    for rows, tile in gaps_of(block.points, u, pilot.origin):
        slopes += product(np.ascontiguousarray(pulls[rows].T), tile)
    slopes = np.column_stack([slopes, pulls.sum(axis=0)])
    return LogisticSums(pilot, np.einsum("i,ip->p", u, terms.losses), slopes, totals, judges)


def merge_logistic_sums(first: LogisticSums, second: LogisticSums) -> LogisticSums:
    """Add the sums over two disjoint sets of rows."""
    sums = {name: getattr(first, name) + getattr(second, name) for name in first._fields[1:-1]}
    judges = merge_judges(first.judges, second.judges, first.pilot)
    return first._replace(**sums, judges=judges)


def exact_pilot(sums: LogisticSums) -> LogisticPilot:
    """Replace the pilot's estimates by sums over all the data."""
    return replace(sums.pilot, totals=sums.totals, sums=sums)


def rough_model(
    sample: StratifiedSample, moments: LabelledScatter, lam: float, *, intercept: bool
) -> LogisticPilot:
    """Fit a model on a sample. Its totals are those of the sample.

    Parameters
    ----------
    sample : StratifiedSample
    moments : LabelledScatter
        Moments of all rows.
    lam : float
        C of scikit-learn.
    intercept : bool
    """
    d = sample.points.shape[1]
    sound = len(sample.points) >= min(sample.n_rows, ROWS_PER_COLUMN * (d + 1))
    none = without_model(moments, intercept=intercept)
    pilot = replace(none, classes=sample.classes, n_rows=sample.n_rows, sound=sound)
    block = Block(sample.points, sample.weights, sample.classes[sample.codes])
    if sound:
        pilot = fitted_on(block, block.weights, pilot, lam, intercept=intercept)
    terms = logistic_terms(block, pilot, intercept=intercept)
    scores = logistic_scores(block, pilot, terms)
    return replace(pilot, totals=scores.sum(axis=1))


def without_model(moments: LabelledScatter, *, intercept: bool) -> LogisticPilot:
    """Return a pilot whose coefficients are zero."""
    classes, d = np.array(sorted(moments.classes)), len(moments.mean)
    p = len(classes) if len(classes) > 2 else 1
    return LogisticPilot(
        moments,
        classes,
        sum(part.count for part in moments.classes.values()),
        # Rounded, so that the last digits of sums do not decide what is fitted.
        moments.mean.astype(np.float32).astype(np.float64) if intercept else np.zeros(d),
        np.zeros((p, d)),
        np.zeros(p),
        np.ones(3),
    )


@one_thread()
def fitted_on(
    rows: Block, weights: FloatArray, pilot: LogisticPilot, lam: float, *, intercept: bool
) -> LogisticPilot:
    """Return the model fitted to weighted rows. The same one where none can be fitted."""
    from sklearn.linear_model import LogisticRegression

    codes = class_codes(rows, pilot.classes)
    if len(np.unique(codes)) < max(2, len(pilot.classes)):  # a node of a tree has one class
        return pilot
    points = np.concatenate([tile for _, tile in gaps_of(rows.points, weights, pilot.origin)])
    total = weights.sum()
    n_columns = (points.shape[1] + 1) * len(pilot.coef)
    newton = n_columns <= _NEWTON_COLUMNS
    model = LogisticRegression(
        # Weights that add up to one: squares of very large and very small ones are no numbers.
        C=float(np.clip(lam * total, 1e-12, 1e12)),
        fit_intercept=intercept,
        solver="newton-cholesky" if newton else "lbfgs",
        max_iter=_MAX_ITER,
        tol=1e-10 if newton else 1e-6,
    )
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # any model will do, if not the very best
        try:
            model.fit(points, codes, sample_weight=weights / total)
        except (ValueError, FloatingPointError, np.linalg.LinAlgError):
            return pilot
    coef = model.coef_.astype(np.float64)
    shift = np.broadcast_to(model.intercept_, len(coef)).astype(np.float64)
    if not (np.isfinite(coef).all() and np.isfinite(shift).all()):
        return pilot
    return replace(pilot, coef=coef, intercept=shift)
