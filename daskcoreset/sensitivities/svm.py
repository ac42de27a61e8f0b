"""SVM coresets: Algorithm 1 and Lemma 2 of Tukan et al. (2020), and their calibration."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from daskcoreset.core.block import Block
from daskcoreset.core.sampling import merge_reservoirs, sample_strata, stratified_sample
from daskcoreset.core.typing import FloatArray
from daskcoreset.core.validation import as_float, as_int, check_flag, is_choice
from daskcoreset.errors import InvalidInputError
from daskcoreset.objectives import LinearCost
from daskcoreset.sensitivities.base import Scored, Sensitivity
from daskcoreset.sensitivities.draw import Candidates, Drawn
from daskcoreset.sensitivities.pilot import sample_judges
from daskcoreset.sensitivities.svm_calibration import SVMDraws, Variant
from daskcoreset.sensitivities.svm_pilot import (
    PilotSolution,
    PilotSums,
    RowTerms,
    exact_solution,
    lemma_2,
    merge_sums,
    rough_solution,
    row_terms,
    sums_over,
)

# Width of the step from rows that pull at the classifier to those that do not.
_SOFTNESS = 0.5


def totals_of(terms: FloatArray) -> FloatArray:
    """Sum up bounds and activities, and the bounds again with that of a row capped at one.

    A row has at most all of the cost. So the last sum bounds the total sensitivity, and is at most
    the number of rows. Draws use the bounds as they are.

    Examples
    --------
    >>> totals_of(np.array([[0.5, 3.0], [1.0, 1.0]]))
    array([3.5, 2. , 1.5])
    """
    capped: FloatArray = np.minimum(terms[0], 1.0)
    return np.append(terms.sum(axis=1), capped.sum())


_VARIANTS = get_args(Variant)

# Rows of the pilot at most: its classifier costs a few per cent more than the best one, and takes
# some 30 milliseconds.
_PILOT_ROWS = 4096

# Total weight, times lambda where that is below one, whose square is a number yet.
_MIN_WEIGHT = 1e-150

# Entries of the pilot at most.
_PILOT_NUMBERS = 2**19

# Rows of the pilot times problems at most, of many classes: about a second.
_PILOT_WORK = 2**18

# Rows of a class in the pilot, nevertheless.
_MIN_OF_CLASS = 16


@dataclass(frozen=True)
class SVM(Sensitivity[Any]):
    r"""Coresets for linear support vector machines.

    They serve the objective :math:`F(w, b) = |w|^2/2 + \lambda \sum_x u(x) [1 - y(x) (\langle x, w
    \rangle + b)]_+`. The first pass takes a pilot, which is a sample stratified by class. A
    classifier and k-means++ cells of the pilot bound the sensitivity of every row. The second pass
    sums up costs, and draws. With more classes there is one classifier per class against the rest,
    and a row is scored by the hardest. The guide is :doc:`/guides/labels`.

    Parameters
    ----------
    lam : float, default=1.0
        :math:`\lambda`, equal to the C of scikit-learn. The paper's range is (0, 1]. The bounds
        grow with it.
    n_clusters : int, optional
        Cells per class. Default: :math:`\lceil \ln n \rceil`, as in the paper.
    variant : {"auto", "paper", "systematic", "calibrated", "pilot_mix"}, default="auto"
        "auto" uses half the bound and half the activity of a row, which is its length if it
        contributes to the subgradient at the pilot's classifier. Class totals are exact, and
        weights are calibrated to class means, loss and subgradient. The best of several draws is
        kept. Uniform rows are kept instead if their classifier costs less by two standard errors,
        on up to 10,000 other rows.
        "paper" is the bound of Algorithm 1 with unbiased weights. With
        ``Draw(sampling="multinomial", passes=2)`` it is Algorithm 1. "systematic" is the bound as
        printed, "calibrated" adds class means, and "pilot_mix" is a single draw of "auto".
    intercept : bool, default=True
        Whether there is a b. It is not penalized.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If a parameter cannot be used. When building, if labels are missing, of one class, or of
        more than 256.

    Warns
    -----
    CoresetWarning
        If the estimated error is 5 % or more in either direction, or may be 50 %.

    Notes
    -----
    ``provenance["rows"]`` is "uniform" if uniform rows were kept.
    ``provenance["estimated_error"]`` compares the cost of the classifier on all data with its cost
    on the coreset, estimated from candidates outside the coreset. Trees and streams have no
    estimate. ``provenance["calibration"]`` lists the constraints that were met. Scale features with
    different units first.

    Examples
    --------
    >>> import daskcoreset
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(5000, 3)), rng.choice(["no", "yes"], 5000)
    >>> coreset = daskcoreset.build(X, y, size=200, method=SVM(), random_state=0)
    >>> bool(np.isclose(coreset.weights[coreset.labels == "no"].sum(), (y == "no").sum()))
    True

    References
    ----------
    Tukan, Baykal, Feldman and Rus (2020), Algorithm 1 and Lemma 2.
    """

    lam: float = 1.0
    n_clusters: int | None = None
    variant: Variant = "auto"
    intercept: bool = True

    name: ClassVar[str] = "svm"
    citation: ClassVar[str] = "tukan2020coresets, Algorithm 1"
    total_scores_exact: ClassVar[bool] = False
    labels: ClassVar[Literal["classes"]] = "classes"
    max_columns: ClassVar[int] = 2**14  # the zeros of sparse rows are gone through as well

    def __post_init__(self) -> None:
        as_float("lam", self.lam, "the C of your solver", maximum=math.inf)
        if self.n_clusters is not None:
            as_int("n_clusters", self.n_clusters)
        check_flag("intercept", self.intercept)
        if not is_choice(self.variant, _VARIANTS):
            names = ", ".join(f'"{name}"' for name in _VARIANTS)
            raise InvalidInputError(
                f"variant must be one of {names}, got {self.variant!r}",
                argument="variant",
                remedy="pass one of these",
            )

    @property
    def objective(self) -> LinearCost:
        """The cost of the SVM with this lambda."""
        return LinearCost("hinge", float(self.lam), self.intercept)

    @property
    def n_folds(self) -> int:
        """One for the pilot and one for the sums."""
        return 2

    def block_summary(self, block: Block, previous: Any, rng: np.random.Generator) -> Any:
        """Sample the classes. In the second fold, sum terms over the rows, and score them."""
        if previous is None:
            return sample_strata(block, self._pilot_size(block.points.shape[1]), rng)
        # Rows without weight may hold anything.
        counted, scores = np.flatnonzero(block.weights > 0.0), np.zeros(len(block))
        block = block if len(counted) == len(block) else block.take(counted)
        by_pilot = row_terms(block, previous)
        terms = self._terms(block, previous, by_pilot)
        judges = sample_judges(block, previous, rng)
        sums = sums_over(block, previous, by_pilot, totals_of(terms), judges)
        scores[counted] = self._mixed(terms, previous)
        return Scored(sums, scores, self.total_scores(previous, previous))

    def _pilot_size(self, d: int) -> int:
        """Maximal rows of a class. With more than two classes there are more in all."""
        return max(128, min(_PILOT_ROWS, _PILOT_NUMBERS // max(d, 1)) // 2)

    def merge(self, first: Any, second: Any) -> Any:
        """Merge samples, or sums."""
        if isinstance(first, PilotSums):
            return merge_sums(first, second)
        features = [part.rows.points.shape[1] for part in (*first.values(), *second.values())]
        return merge_reservoirs(first, second, self._pilot_size(features[0] if features else 0))

    def finalize(self, summary: Any, rng: np.random.Generator) -> PilotSolution:
        """Solve and cluster the pilot. Then replace its estimated sums by exact ones."""
        if isinstance(summary, PilotSums):
            return exact_solution(summary, float(self.lam))
        weight = sum(part.weight for part in summary.values())
        if not weight * min(float(self.lam), 1.0) >= _MIN_WEIGHT:
            raise InvalidInputError(
                f"sample_weight sums to {weight:.3g}, and with lam={self.lam:.3g} "
                "the losses of the SVM are negligible against |w|^2/2",
                argument="sample_weight",
                remedy="raise the weights, or lam",
            )
        n_features = next(iter(summary.values())).rows.points.shape[1]
        # As many problems as classes, each solved on all of the pilot.
        affordable = max(_MIN_OF_CLASS, _PILOT_WORK // len(summary) ** 2)
        pilot = stratified_sample(summary, min(self._pilot_size(n_features), affordable))
        k = self.n_clusters or math.ceil(math.log(max(pilot.n_rows, 3)))
        rough = rough_solution(pilot, k, float(self.lam), rng, intercept=self.intercept)
        # Candidates are drawn in the second read, before its sums are known: those of the pilot
        # stand for them until then.
        block = Block(pilot.points, pilot.weights, pilot.classes[pilot.codes])
        terms = self._terms(block, rough, row_terms(block, rough))
        return replace(rough, totals=totals_of(terms))

    def _terms(self, block: Block, rough: PilotSolution, by_pilot: RowTerms) -> FloatArray:
        r"""Bound of Lemma 2, and activity, of every row, u included. Shape (2, n).

        A row is active where it pulls at the rough classifier, by :math:`1/(1 + e^{2 (z - 1)})`
        at the margin z, and in proportion to its length: that is how far a weight may move it.
        """
        squares, cells, provable = by_pilot.squares, by_pilot.cells, self.variant == "paper"
        bound = lemma_2(
            squares, cells, rough.weights, rough.opt, float(self.lam), provable=provable
        )
        pull = 1.0 / (1.0 + np.exp(np.clip((by_pilot.margins - 1.0) / _SOFTNESS, -50.0, 50.0)))
        activity = pull.sum(axis=1) * by_pilot.lengths
        return np.stack([block.weights * bound, block.weights * activity])

    def scores(self, block: Block, summary: Any) -> FloatArray:
        """Return u times the score of Lemma 2, or half of it and half of the activity."""
        counted, scores = np.flatnonzero(block.weights > 0.0), np.zeros(len(block))
        block = block if len(counted) == len(block) else block.take(counted)
        terms = self._terms(block, summary, row_terms(block, summary))
        scores[counted] = self._mixed(terms, summary)
        return scores

    def _mixed(self, terms: FloatArray, summary: PilotSolution) -> FloatArray:
        """Return the bound alone, or half of it and half the activity. `terms` is written to."""
        if not self._draws.mixes_activity:
            bounds: FloatArray = terms[0]
            return bounds
        terms /= 2.0 * summary.totals[:2, np.newaxis]
        mixed: FloatArray = terms.sum(axis=0)
        return mixed

    def total_scores(self, local: Any, summary: Any) -> float:
        """Return the sum of `scores`, as the pilot estimates it."""
        totals: FloatArray = local.totals[:2]
        if not self._draws.mixes_activity:
            return float(totals[0])
        return float((totals / (2.0 * summary.totals[:2])).sum())

    @property
    def _draws(self) -> SVMDraws:
        return SVMDraws(float(self.lam), self.variant, self.intercept)

    def draw(
        self, candidates: Candidates, summary: Any, size: int, rng: np.random.Generator
    ) -> Drawn:
        """Draw by margin within the classes, calibrate, and keep the best of several draws."""
        scores = self.scores(candidates.rows, summary)
        return self._draws.draw(candidates, scores, summary, size, rng)

    def provenance(self, summary: Any) -> dict[str, Any]:
        """Return t, the cost of the rough solution, and the number of cells."""
        return {
            "total_sensitivity": float(summary.totals[2]),
            "rough_cost": [float(cost) for cost in summary.cost],
            "cells": len(summary.weights),
        }

    def parameters(self) -> dict[str, Any]:
        """Return the parameters in plain JSON values."""
        return {**super().parameters(), "lam": float(self.lam)}
