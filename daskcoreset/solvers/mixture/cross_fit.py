"""What the rows behind a coreset score under the mixture that was fitted on it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from daskcoreset.core.linalg import dense
from daskcoreset.core.typing import FloatArray, Points
from daskcoreset.solvers.mixture.em import MixtureFit, fit_mixture
from daskcoreset.solvers.mixture.model import MixtureModel, score_samples

# Of five the refits have a fifth less to learn from, and the estimate is lower by up to 0.1 nats.
_FOLDS = 10


def expected_score(
    points: Points, weights: FloatArray, mixture: MixtureModel, n_rows: int, **options: Any
) -> float:
    r"""Estimate the mean log-density of all rows under a mixture fitted on a coreset of them.

    The weighted mean over the coreset is what EM made large. A row of weight w stands for itself
    and for rows that EM has not seen, and only the former has what EM made of it. So the rows
    are dealt into ten folds; for each, EM goes on from the mixture with the weights of the fold
    cut down to those of single rows, and the fold is scored by what it ends in. What the mean falls
    by is taken off in the proportion :math:`2 (f - 1) / (2 f - 1)` for f folds, for the
    mixture itself was fitted on all of them.

    Parameters
    ----------
    points : ndarray of shape (m, d) or csr_array
        Distinct rows.
    weights : ndarray of shape (m,), float64
        Positive.
    mixture : MixtureModel
        Fitted on them.
    n_rows : int
        Rows that they stand for; all count as of equal weight.
    **options
        Of `fit_mixture`: `tol`, `reg_covar` and `max_iter`.

    Returns
    -------
    float

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows, fresh = rng.normal(size=(60, 4)), rng.normal(size=(10_000, 4))
    >>> mixture = fit_mixture(rows, n_components=3, random_state=0).mixture
    >>> on_rows, on_fresh = (score_samples(mixture, each).mean() for each in (rows, fresh))
    >>> estimate = expected_score(rows, np.full(60, 1e3), mixture, 60_000)
    >>> bool(abs(estimate - on_fresh) < 0.5 * (on_rows - on_fresh))
    True

    References
    ----------
    Stone (1974), Cross-validatory choice and assessment of statistical predictions, for the folds.
    """
    from sklearn.exceptions import ConvergenceWarning

    rows, total = dense(points), float(weights.sum())
    single = np.minimum(weights, total / n_rows)
    # Rows of like weight are dealt out in turns, so that no fold has most of the weight.
    folds = np.empty(len(weights), dtype=np.int64)
    rng = np.random.default_rng(0)
    order = np.argsort(weights, kind="stable")
    for start in range(0, len(order), _FOLDS):
        dealt = order[start : start + _FOLDS]
        folds[dealt] = rng.permutation(_FOLDS)[: len(dealt)]
    start_fit = MixtureFit(mixture, True, 0, -np.inf, np.zeros(0))
    kind, k = mixture.covariance_type, len(mixture.weights)
    held_out = np.empty(len(weights))
    for fold in range(min(_FOLDS, len(weights))):
        held = folds == fold
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fit = fit_mixture(
                rows,
                np.where(held, single, weights),
                n_components=k,
                covariance_type=kind,
                warm_start=start_fit,
                **options,
            )
        held_out[held] = score_samples(fit.mixture, rows[held])
    seen = weights @ score_samples(mixture, rows) / total
    fall = seen - weights @ held_out / total
    return float(seen - 2.0 * (_FOLDS - 1) / (2.0 * _FOLDS - 1) * fall)
