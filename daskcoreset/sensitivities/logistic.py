"""Coresets for logistic regression: roots of leverage scores, and a pilot in a second pass."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from daskcoreset.core.block import Block, class_codes
from daskcoreset.core.linalg import dense_rows
from daskcoreset.core.moments import merge_scatters
from daskcoreset.core.raking import Calibrated, Target, calibrate_classes, class_sums, join_targets
from daskcoreset.core.sampling import merge_reservoirs, sample_strata, stratified_sample
from daskcoreset.core.typing import FloatArray
from daskcoreset.core.validation import (
    as_float,
    as_int,
    check_choice,
    check_flag,
)
from daskcoreset.errors import InvalidInputError
from daskcoreset.objectives import LinearCost
from daskcoreset.sensitivities.base import Scored, Sensitivity
from daskcoreset.sensitivities.draw import Candidates, Drawn, strata, systematic_draws
from daskcoreset.sensitivities.least_squares import total_leverage
from daskcoreset.sensitivities.logistic_pilot import (
    LabelledScatter,
    LogisticPilot,
    LogisticSums,
    exact_pilot,
    fitted_on,
    labelled_scatter,
    logistic_scores,
    logistic_sums,
    logistic_terms,
    long_factor,
    merge_logistic_sums,
    merge_means,
    one_read_scores,
    rough_model,
)
from daskcoreset.sensitivities.pilot import (
    Judged,
    best_draw,
    centred_rows,
    judges_of,
    modes_for,
    pull_target,
    rake_to_pilot,
    sample_judges,
)

Variant: TypeAlias = Literal["calibrated", "systematic"]

# Shares of the rows in two reads: by the pull at the pilot's model, by leverage, and as in one
# read. The last one bounds every weight by 2.5 times that of one read, and with it the error for
# models far from the pilot's: an eighth of such rows had costs of random models worse than uniform
# rows have where columns are many (Owen and Zhou, 2000, Safe and effective importance sampling).
_SHARES = np.array([0.4, 0.2, 0.4])

# Rows of the pilot; entries of it at most; and rows of a class nevertheless.
_PILOT_ROWS = 2048
_PILOT_NUMBERS = 2**19
_MIN_OF_CLASS = 16

# Draws at most, rows of all draws together, and products in a Newton step of a trial at most: some
# hundred milliseconds.
_MAX_DRAWS = 8
_TRIED_ROWS = 8000
_TRIAL_WORK = 6e7

# Products in a Newton step up to which uniform rows are tried as well.
_COMPARED_WORK = 4e8

# Rows of the coreset for every mean that is calibrated.
_ROWS_PER_MEAN = 4


@dataclass(frozen=True)
class Logistic(Sensitivity[Any]):
    r"""Coresets for logistic regression.

    They serve the objective :math:`|w|^2/2 + \lambda \sum_x u(x) \ln(1 + e^{-y(x) (\langle x, w
    \rangle + b)})`, or the softmax of more classes. With U the total weight and the leverage
    :math:`\ell(x) = 1/U + (x - \mu)^T S^{-1} (x - \mu)`, the score of a row is

    .. math::

        s(x) = u(x) \left( \max \left\{ \sqrt{\ell(x)}, \frac{\ell(x)}{10}
        \sqrt{\frac{U}{d + 1}} \right\} + \frac{1}{U} \right),

    which bounds its sensitivity up to a factor that depends on the data alone. In two passes, two
    fifths of the draws use s and keep the guarantee. Two fifths use :math:`u |g| \sqrt{\ell}`, with
    g the derivative of the loss at a pilot model of up to 2,048 rows. One fifth uses :math:`u
    \ell`. The guide is :doc:`/guides/labels`.

    Parameters
    ----------
    variant : {"calibrated", "systematic"}, default="calibrated"
        "systematic" is unbiased for every model. "calibrated" has exact class totals, and weights
        that are calibrated to class means. In two passes they are also calibrated to loss and
        gradient at the pilot, and the best of several draws is kept. Uniform rows are kept instead
        if their model costs less by two standard errors, on up to 10,000 other rows.
    intercept : bool, default=True
        Whether the model has an intercept. Without it, leverage is about the origin.
    reads : {1, 2}, default=2
        Passes over the data. Two passes give a smaller error. If there are more than 203 columns,
        the pilot has too few rows for a model, and rows are scored as in one pass.
    lam : float, default=1.0
        :math:`\lambda`, equal to the C of scikit-learn, for the pilot and for audits.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If a parameter cannot be used. When building, if labels are missing or of one class.

    Notes
    -----
    ``provenance["calibration"]`` lists the constraints that were met. A block of d features sends d
    x d numbers. A small ridge makes dependent columns possible. ``provenance["rows"]`` is "uniform"
    if uniform rows were kept.

    Examples
    --------
    >>> import daskcoreset
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> y = X[:, 0] + rng.normal(size=2000) > 0
    >>> coreset = daskcoreset.build(X, y, size=100, method="logistic", random_state=0)
    >>> abs(round(float(coreset.weights[coreset.labels].sum() - y.sum()), 6))
    0.0

    References
    ----------
    Munteanu, Schwiegelshohn, Sohler and Woodruff (2018), section 4. Owen and Zhou (2000), for the
    share of the draws that keeps the bound.
    """

    variant: Variant = "calibrated"
    intercept: bool = True
    reads: Literal[1, 2] = 2
    lam: float = 1.0

    name: ClassVar[str] = "logistic"
    citation: ClassVar[str] = "munteanu2018coresets, section 4"
    total_scores_exact: ClassVar[bool] = False
    labels: ClassVar[Literal["classes"]] = "classes"
    max_columns: ClassVar[int] = 2**12  # a factor of a d x d matrix takes seconds for every block

    def __post_init__(self) -> None:
        check_flag("intercept", self.intercept)
        check_choice("variant", self.variant, "calibrated", "systematic")
        if as_int("reads", self.reads) > 2:
            raise InvalidInputError(
                f"reads is {self.reads}", argument="reads", remedy="pass 1 or 2"
            )
        as_float("lam", self.lam, maximum=math.inf)

    @property
    def objective(self) -> LinearCost:
        """The cost of logistic regression, with C = 1."""
        return LinearCost("logistic", float(self.lam), self.intercept)

    @property
    def n_folds(self) -> int:
        """The number of passes."""
        return self.reads

    def block_summary(self, block: Block, previous: Any, rng: np.random.Generator) -> Any:
        """Second moments of the block, means by class and a sample. Then sums by the pilot."""
        if previous is None:
            return self._moments(block, rng)
        terms = logistic_terms(block, previous, intercept=self.intercept)
        scores = logistic_scores(block, previous, terms)
        judges = sample_judges(block, previous, rng)
        sums = logistic_sums(block, previous, terms, scores.sum(axis=1), judges)
        scores *= _factors(previous)[:, np.newaxis]
        return Scored(sums, scores.sum(axis=0), self.total_scores(previous, previous))

    def _moments(self, block: Block, rng: np.random.Generator) -> LabelledScatter:
        summary = labelled_scatter(block)
        if self.reads == 1:
            return summary
        return replace(summary, strata=sample_strata(block, _pilot_size(len(summary.mean)), rng))

    def merge(self, first: Any, second: Any) -> Any:
        """Merge moments, as Chan, Golub and LeVeque (1983) do, or sums."""
        if isinstance(first, LogisticSums):
            return merge_logistic_sums(first, second)
        classes = dict(first.classes)
        for label, moments in second.classes.items():
            earlier = classes.get(label)
            classes[label] = moments if earlier is None else merge_means(earlier, moments)
        whole = merge_scatters(first, second)
        strata = merge_reservoirs(first.strata, second.strata, _pilot_size(len(whole.mean)))
        return LabelledScatter(whole.weight, whole.mean, whole.matrix, classes, strata)

    def finalize(self, summary: Any, rng: np.random.Generator) -> Any:
        """In two passes, fit the pilot. Then replace its estimated sums by exact ones."""
        del rng
        if self.reads == 1:
            return summary
        if isinstance(summary, LogisticSums):
            return exact_pilot(summary)
        affordable = max(_MIN_OF_CLASS, _PILOT_ROWS // max(1, len(summary.strata)))
        sample = stratified_sample(summary.strata, min(_pilot_size(len(summary.mean)), affordable))
        moments = replace(summary, strata={})
        return rough_model(sample, moments, float(self.lam), intercept=self.intercept)

    def scores(self, block: Block, summary: Any) -> FloatArray:
        """Return u s(x), or the score of two passes."""
        if isinstance(summary, LogisticPilot):
            terms = logistic_terms(block, summary, intercept=self.intercept)
            parts = logistic_scores(block, summary, terms)
            mixed: FloatArray = (parts * _factors(summary)[:, np.newaxis]).sum(axis=0)
            return mixed
        if summary.weight == 0.0:
            return np.zeros(len(block))
        return one_read_scores(block, summary, intercept=self.intercept)

    def total_scores(self, local: Any, summary: Any) -> float:
        """Estimate the sum of `scores` over a block by its total leverage, or add up.

        An upper bound for rows of one weight, whose leverages are at most one over it.
        """
        if isinstance(summary, LogisticPilot):
            return float((local.totals * _factors(summary)).sum())
        if local.weight == 0.0:
            return 0.0
        leverage = max(total_leverage(local, summary, intercept=self.intercept), 0.0)
        n_rows = sum(part.count for part in summary.classes.values())
        long = long_factor(summary.weight, len(summary.mean))
        by_length = max(0.0, long - math.sqrt(summary.weight / n_rows)) * leverage
        share = local.weight / summary.weight
        return float(math.sqrt(local.weight * leverage) + by_length + share)

    def draw(
        self, candidates: Candidates, summary: Any, size: int, rng: np.random.Generator
    ) -> Drawn:
        """Draw within the classes, calibrate, and keep the best of several draws."""
        rows, codes = candidates.rows, candidates.codes
        pilot = summary if isinstance(summary, LogisticPilot) else None
        scores = self.scores(rows, summary)
        draws = systematic_draws(candidates, scores, size, codes=codes, order=strata)
        if self.variant == "systematic":
            return draws(rng)

        def by_scores(number: int) -> Drawn:
            drawn = draws(rng)
            kept = rows.take(drawn.chosen)
            if pilot is not None and pilot.sound:
                calibrated = _to_pilot(kept, drawn.weights, pilot, number)
            else:
                moments = summary if pilot is None else pilot.moments
                calibrated = self._to_means(kept, drawn.weights, moments)
            return drawn._replace(weights=calibrated.weights, facts=calibrated.describe())

        if pilot is None or draws.is_certain or _work(size, *pilot.coef.shape) > _COMPARED_WORK:
            return by_scores(0)

        def fit(drawn: Drawn) -> LogisticPilot:
            kept = rows.take(drawn.chosen)
            return fitted_on(kept, drawn.weights, pilot, self.lam, intercept=self.intercept)

        def judge(model: LogisticPilot, others: Block) -> Judged:
            penalty = float(np.square(model.coef).sum()) / (2.0 * self.lam)
            return Judged(penalty, logistic_terms(others, model).losses.sum(axis=1))

        assert pilot.sums is not None  # noqa: S101 - the last fold has summed up
        uniform = systematic_draws(
            candidates, rows.weights, size, codes=codes, order=strata, even=False
        )
        kinds = by_scores, uniform, class_codes(rows, pilot.classes), pilot.class_sums()[0]
        judges = judges_of(pilot.sums.judges, pilot)
        n_draws = _n_draws(size, pilot) if pilot.sound else 1
        return best_draw(*kinds, fit, judge, judges, n_draws, rng)

    def _to_means(self, rows: Block, weights: FloatArray, summary: LabelledScatter) -> Calibrated:
        """Scale weights to the class totals, and calibrate them to the class means."""
        labels = np.array(sorted(summary.classes))
        codes = class_codes(rows, labels)
        of_class = [summary.classes[label] for label in labels.tolist()]
        totals = np.array([moments.weight for moments in of_class])

        def means() -> Target:
            gaps = dense_rows(rows.points) - summary.mean
            sums = [moments.weight * (moments.mean - summary.mean) for moments in of_class]
            return join_targets(class_sums(gaps, codes, sums))

        enough = len(rows) >= _ROWS_PER_MEAN * len(labels) * (len(summary.mean) + 1)
        ladder = [("class means",)] if enough else []
        return calibrate_classes(weights, codes, totals, {"class means": means}, ladder)


def _to_pilot(rows: Block, weights: FloatArray, pilot: LogisticPilot, number: int) -> Calibrated:
    """Scale weights to the class totals, and calibrate them to losses, gradients and means."""
    terms = logistic_terms(rows, pilot)
    points = centred_rows(rows, pilot)

    def pulls() -> Target:
        assert pilot.sums is not None  # noqa: S101 - the last fold has summed up
        return pull_target(points, terms.losses, terms.pulls, pilot.sums.losses, pilot.sums.slopes)

    class_weights, sums = pilot.class_sums()
    modes = modes_for(len(rows), pilot)
    mode = modes[number % len(modes) if len(modes) > 2 else 0]
    return rake_to_pilot(
        weights, terms.codes, points, class_weights, sums, pulls, mode, at_zero=True
    )


def _n_draws(size: int, pilot: LogisticPilot) -> int:
    """Several if rows are few, because the calibration may then fail for some draws."""
    if _work(size, *pilot.coef.shape) > _TRIAL_WORK:
        return 1
    return int(max(1, min(_MAX_DRAWS, _TRIED_ROWS // size)))


def _work(size: int, p: int, d: int) -> int:
    """Products in a step of Newton's method."""
    return size * (p * (d + 1)) ** 2


def _pilot_size(d: int) -> int:
    """Rows of a class in the pilot at most."""
    return max(128, min(_PILOT_ROWS, _PILOT_NUMBERS // max(d, 1)) // 2)


def _factors(pilot: LogisticPilot) -> FloatArray:
    """Factors of the scores of two reads. Without a model only that of one read is left."""
    shares = _SHARES if pilot.sound else np.array([0.0, 0.0, 1.0])
    return np.asarray(shares / np.maximum(pilot.totals, np.finfo(np.float64).tiny))
