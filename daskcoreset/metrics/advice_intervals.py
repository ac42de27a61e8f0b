"""The interval in which the error of one build more is expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from daskcoreset.metrics.advice_tasks import Candidate
from daskcoreset.metrics.advice_trials import Trials

# Error of coresets up to which what the solver misses on them is taken for what it misses on any;
# the second in nats a row.
_NEAR, _NEAR_IN_NATS = 0.1, 1.0

# Least spread of the logarithm of an error between builds: trials may agree by chance, and a pilot
# is not the data.
_LEAST_SPREAD, _PILOT_SPREAD = 0.15, 0.25

# The same where weights met a part only of the sums that they are calibrated to: how much of them a
# build meets is chance, and its error falls with the square of what is missing, of which builds
# met a quarter to seven tenths.
_UNMET_SPREAD = 0.5


def missed_by_starts(trials: Trials, candidates: Sequence[Candidate]) -> Any:
    """Return what starts missed in all trials, whose coresets are near to the data.

    It is of the data and not of a construction, and may be rare: the few trials of one
    construction can all have gone well where every fifth build ends in a poor optimum.
    """
    if not trials.task.by_chance:
        return np.empty(0)
    missed, near = [], _NEAR_IN_NATS if trials.task.in_nats else _NEAR
    for one in candidates:
        own = trials.errors(one.name, of_coreset=True)
        if float(own.mean()) <= near:
            missed.append(np.maximum(trials.errors(one.name) - own, 0.0))
    return np.concatenate(missed) if missed else np.empty(0)


def interval_of_build(
    trials: Trials, candidate: Candidate, missed: Any, confidence: float
) -> tuple[float, float]:
    """Return the interval of the error of one build more, whatever its starts miss."""
    errors = trials.errors(candidate.name)
    spread = _PILOT_SPREAD if len(trials.pilot) < trials.n_rows else _LEAST_SPREAD
    if candidate.name in trials.unmet:
        spread = _UNMET_SPREAD
    least = trials.least_spread()
    low, high = _interval(errors, confidence, spread, least)
    if len(missed) and np.isfinite(errors).all():
        own = trials.errors(candidate.name, of_coreset=True)
        fewest, most = quantiles(missed, confidence)
        low = min(low, _interval(own, confidence, spread, least)[0] + fewest)
        high = max(high, float(own.mean()) + most)
    if trials.task.in_nats:
        # Likelihoods have many optima: who fits all rows, or builds often, may know of none that
        # is better than those on coresets.
        low = max(0.0, low - trials.gained_on_all_rows())
    return low, max(high, float(errors.mean())) + trials.error_of_unknown()


def quantiles(values: Any, confidence: float) -> tuple[float, float]:
    """Return values within which a share of all lies, the outer ones where there are few."""
    tail = 0.5 - confidence / 2.0
    low = np.quantile(values, tail, method="lower")
    return float(low), float(np.quantile(values, 1.0 - tail, method="higher"))


def _interval(
    errors: Any, confidence: float, spread: float, least: float = 0.0
) -> tuple[float, float]:
    """Interval of the error of one build more: that of Student for the logarithm.

    The deviation of the logarithms is `least` at least, and `spread` is added to it. Where `least`
    is positive, errors are quadratic forms, whose logarithms reach further down than up: the low
    end is that of a gamma variate of this deviation, if that is lower.
    """
    if not np.isfinite(errors).all():
        return 0.0, np.inf
    from scipy import special, stats

    floor = max(1e-12, 0.05 * float(errors.mean()))
    logs = np.log(np.maximum(errors, floor))
    n = len(logs)
    width = np.hypot(max(float(logs.std(ddof=1)), least), spread) * np.sqrt(1.0 + 1.0 / n)
    half = float(stats.t.ppf(0.5 + confidence / 2.0, n - 1)) * width
    high = float(np.exp(logs.mean() + half))
    if float(errors.min()) <= floor:
        return 0.0, high
    if not least:
        return float(np.exp(logs.mean() - half)), high
    tail = 0.5 - confidence / 2.0
    shape = _shape_of(half / float(special.ndtri(1.0 - tail)))
    gamma = np.log(special.gammaincinv(shape, tail)) - float(special.digamma(shape))
    return float(np.exp(logs.mean() + min(-half, float(gamma)))), high


def _shape_of(deviation: float) -> float:
    """Shape of a gamma variate whose logarithm has this standard deviation."""
    from scipy import optimize, special

    ends = (1e-3, 1e6)  # of deviations from a thousandth to a thousand
    variance = min(max(deviation**2, 2e-6), 9e5)
    return float(optimize.brentq(lambda x: float(special.polygamma(1, x)) - variance, *ends))
