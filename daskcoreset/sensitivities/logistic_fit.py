"""Models of logistic coresets: of a pilot, of rows drawn, and whether those are worse than none."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from daskcoreset.core.blocks import Block, class_codes
from daskcoreset.core.linalg import one_thread
from daskcoreset.core.sampling import StratifiedSample
from daskcoreset.core.typing import FloatArray
from daskcoreset.sensitivities.least_squares import gaps_of
from daskcoreset.sensitivities.logistic_pilot import (
    LabelledScatter,
    LogisticPilot,
    logistic_scores,
    logistic_terms,
)

# Coefficients of all classes up to which Newton's method, with a matrix of their squares, is used.
_NEWTON_COLUMNS = 512

_MAX_ITER = 200

# Rows of the pilot for every column with which its model is worth anything: with 5.8 of w8a, nearly
# separable, draws by it were worse than uniform ones, with 16 of a9a they were twice as good.
ROWS_PER_COLUMN = 10

# Cost of a model, over that of one without features, from which on a build warns; and by how many
# standard errors of the difference, where the candidates are a sample.
_WORSE, _SURE = 1.05, 3.0


def rough_model(
    sample: StratifiedSample, moments: LabelledScatter, lam: float, *, intercept: bool
) -> LogisticPilot:
    """Fit a model on a sample; its totals are those of the sample.

    Parameters
    ----------
    sample : StratifiedSample
    moments : LabelledScatter
        Of all rows.
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


def cost_over_none(  # noqa: PLR0917 - all of them are always given
    rows: Block,
    weights: FloatArray,
    candidates: Block,
    candidate_weights: FloatArray,
    none: LogisticPilot,
    lam: float,
    *,
    intercept: bool,
) -> float | None:
    """Cost of a model fitted on rows drawn, over that of one without features, where it is worse.

    Parameters
    ----------
    rows : Block
        The rows drawn.
    weights : ndarray of shape (m,), float64
    candidates : Block
        All the data or a sample of them, by which both are judged, with input weights.
    candidate_weights : ndarray of shape (k,), float64
        Input weights over the probabilities of being candidates.
    none : LogisticPilot
        As of `without_model`.
    lam : float
    intercept : bool

    Returns
    -------
    float or None
        Above one by five hundredths at least, and by more than the candidates leave to chance;
        None where the model is no worse, or worse by less than that. Rows that were candidates for
        certain leave nothing to chance, and all the data do not.
    """
    masses = [none.moments.classes[label].weight for label in none.classes.tolist()]
    if intercept:
        logs = np.log(masses)
        shift = logs[1:] - logs[0] if len(logs) == 2 else logs
        none = replace(none, intercept=shift)
    fit = fitted_on(rows, weights, none, lam, intercept=intercept)
    own, others = (logistic_terms(candidates, one).losses.sum(axis=1) for one in (fit, none))
    penalty = float(np.square(fit.coef).sum()) / (2.0 * lam)
    terms = candidate_weights * (own - others)
    chance = sampling_error(terms, candidates.weights, candidate_weights)
    excess = penalty + float(terms.sum())
    without = float(candidate_weights @ others)
    worse = excess > max((_WORSE - 1.0) * without, _SURE * chance)
    return 1.0 + excess / without if worse else None


def sampling_error(parts: FloatArray, inputs: FloatArray, weights: FloatArray) -> float:
    r"""Return the standard error of the sum of `parts`, terms of a sample of rows, weighted.

    The root of :math:`\sum (1 - \pi) (w t)^2`, without bias for the variance of rows that are drawn
    independently. Rows drawn systematically, as candidates are, mostly have a smaller one.

    Parameters
    ----------
    parts : ndarray of shape (k,), float64
        w t.
    inputs : ndarray of shape (k,), float64
        :math:`\pi w`, the weights of the same rows in the data.
    weights : ndarray of shape (k,), float64
        w, over the probabilities :math:`\pi` with which they are there.

    Returns
    -------
    float
        Zero where every row of the data is there.

    Examples
    --------
    >>> parts, weights = np.array([4.0, 3.0, -3.0]), np.array([1.0, 2.0, 2.0])
    >>> round(sampling_error(parts, np.ones(3), weights), 9)
    3.0

    References
    ----------
    Horvitz and Thompson (1952), A generalization of sampling without replacement from a finite
    universe, section 2.
    """
    sampled = weights > inputs
    probability = np.divide(inputs, weights, out=np.ones(len(parts)), where=sampled)
    return float(np.linalg.norm(parts * np.sqrt(1.0 - probability)))


@one_thread()
def fitted_on(
    rows: Block, weights: FloatArray, pilot: LogisticPilot, lam: float, *, intercept: bool
) -> LogisticPilot:
    """Return the model fitted to weighted rows; the same one where none can be fitted."""
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
