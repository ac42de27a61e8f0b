"""SVM coresets: Algorithm 1 and Lemma 2 of Tukan et al. (2020)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from daskcoreset.core.block import class_codes
from daskcoreset.core.sampling import StratifiedSample
from daskcoreset.core.typing import FloatArray, IndexArray
from daskcoreset.core.validation import as_float, as_int, check_choice, check_flag
from daskcoreset.objectives import LinearCost
from daskcoreset.sensitivities.base import Sensitivity
from daskcoreset.sensitivities.draw import Candidates, Drawn
from daskcoreset.sensitivities.estimated_error import Fitted, estimated_error
from daskcoreset.sensitivities.pilot import Pilot, PilotMethod, Terms
from daskcoreset.sensitivities.pilot_draw import PilotDraws
from daskcoreset.solvers.kmeans import assign, seed_cells
from daskcoreset.solvers.linear import LinearFit, solve_svm
from daskcoreset.solvers.losses import RoundedHinge

Variant: TypeAlias = Literal["pilot", "paper"]

# Width of the step from rows that pull at the classifier to those that do not.
_SOFTNESS = 0.5

# The loss whose slopes are calibrated: near the hinge, but smooth enough that a sample of some
# hundred rows has rows on the slope.
_ROUNDED = RoundedHinge(0.1)

# Of fits. The trivial classifier may cost a hundredth more than the best one.
_TOL = 1e-4

# Total weight times lambda of a pilot at least: its square is a number.
_MIN_WEIGHT = 1e-150


class Cells(NamedTuple):
    r"""What bounds the sensitivities of rows.

    Attributes
    ----------
    centers : ndarray of shape (k, d), float64
        A row belongs to the nearest of its class.
    means : ndarray of shape (k, d), float64
        :math:`c_i`, the means of the cells.
    weights : ndarray of shape (k,), float64
        :math:`U(P_i)`.
    floor : float
        Lower bound of the cost of any classifier of the pilot.
    cost : ndarray of shape (p,), float64
        :math:`F(\tilde w)` of the pilot's classifiers.
    radius : float
        Typical length of an entry of a row, which the entry of one for the intercept is compared
        with.
    """

    centers: FloatArray
    means: FloatArray
    weights: FloatArray
    floor: float
    cost: FloatArray
    radius: float


@dataclass(frozen=True)
class SVM(PilotMethod):
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
    variant : {"pilot", "paper"}, default="pilot"
        "pilot" uses half the bound and half the activity of a row, which is its length if it
        contributes to the subgradient at the pilot's classifier. Class totals are exact, and
        weights are calibrated to class means, loss and subgradient. The best of several draws is
        kept. Uniform rows are kept instead if their classifier costs less by two standard errors,
        on up to 10,000 other rows.
        "paper" is the bound of Algorithm 1 with unbiased weights. With
        ``Draw(sampling="multinomial", passes=2)`` it is Algorithm 1.
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
    variant: Variant = "pilot"
    intercept: bool = True

    name: ClassVar[str] = "svm"
    citation: ClassVar[str] = "tukan2020coresets, Algorithm 1"
    max_columns: ClassVar[int] = 2**14  # the zeros of sparse rows are gone through as well

    def __post_init__(self) -> None:
        as_float("lam", self.lam, "the C of your solver", maximum=math.inf)
        if self.n_clusters is not None:
            as_int("n_clusters", self.n_clusters)
        check_choice("variant", self.variant, "pilot", "paper")
        check_flag("intercept", self.intercept)

    @property
    def objective(self) -> LinearCost:
        """The cost of the SVM with this lambda."""
        return LinearCost("hinge", float(self.lam), self.intercept)

    def start(self, sample: StratifiedSample, moments: Any, rng: np.random.Generator) -> Pilot:
        """Solve and cluster the pilot."""
        del moments
        origin, u = np.zeros(sample.points.shape[1]), sample.weights
        if self.intercept:
            origin += np.average(sample.points, axis=0, weights=u)
        points = sample.points - origin
        k = self.n_clusters or math.ceil(math.log(max(sample.n_rows, 3)))
        parts = [
            seed_cells(points[members], u[members], k, rng).clusters
            for members in (sample.codes == code for code in range(len(sample.classes)))
        ]
        owners = np.repeat(np.arange(len(parts)), [len(part.centers) for part in parts])
        fits = self._solved(points, signs_of(sample.codes, len(sample.classes)), u)
        centers = np.concatenate([part.centers for part in parts])
        length = float(np.average((points**2).mean(axis=1), weights=u))
        cells = Cells(
            centers=centers,
            means=centers,
            weights=np.concatenate([part.weights for part in parts]),
            floor=min(fit.bound for fit in fits),
            cost=np.array([fit.cost for fit in fits]),
            radius=math.sqrt(length) or 1.0,
        )
        return Pilot(sample.classes, origin, *_model(fits), owners, cells)

    def settled(self, pilot: Pilot) -> Pilot:
        """Replace means and weights of the cells, and costs, by those of all rows."""
        used = pilot.sums["weights"] > 0.0
        weights, rows = pilot.sums["weights"][used], pilot.sums["rows"][used]
        squares = np.square(pilot.coef).sum(axis=1)
        cells = pilot.bounds._replace(
            centers=pilot.bounds.centers[used],
            means=rows / weights[:, np.newaxis],
            weights=weights,
            cost=squares / 2.0 + self.lam * pilot.sums["losses"],
        )
        return replace(
            pilot,
            owners=pilot.owners[used],
            bounds=cells,
            sums={**pilot.sums, "weights": weights, "rows": rows},
        )

    def _opt(self, pilot: Pilot) -> float:
        """Return the opt of Lemma 2."""
        cells: Cells = pilot.bounds
        scale = float(self.lam * cells.weights.sum())
        if len(pilot.classes) < 2:
            # Rows of one class, as in a node of a tree: each may cost as much as lambda.
            return scale
        return max(min(cells.floor, float(cells.cost.min())), 1e-9 * scale)

    def fit(
        self,
        pilot: Pilot,
        points: FloatArray,
        codes: IndexArray,
        weights: FloatArray,
    ) -> Pilot:
        """Return the pilot with the classifiers of these rows."""
        targets = signs_of(codes, len(pilot.classes))
        coef, intercept = _model(self._solved(points, targets, weights))
        return replace(pilot, coef=coef, intercept=intercept)

    def _solved(
        self, points: FloatArray, targets: FloatArray, weights: FloatArray
    ) -> list[LinearFit]:
        """Fit a classifier of every problem, as well as a user does."""
        # A smaller weight gives a classifier as close to zero.
        lam = max(float(self.lam), _MIN_WEIGHT / float(weights.sum()))
        solve = partial(solve_svm, points, intercept=self.intercept, tol=_TOL)
        return [solve(signs, weights, lam) for signs in targets.T]

    def losses(self, codes: IndexArray, decisions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return hinges, and the pulls of hinges that are a little rounded."""
        signs = signs_of(codes, decisions.shape[1] if decisions.shape[1] > 1 else 2)
        margins = signs * decisions
        return np.maximum(1.0 - margins, 0.0), -signs * _ROUNDED.slope(margins)

    def terms(
        self, pilot: Pilot, points: FloatArray, codes: IndexArray, decisions: FloatArray
    ) -> Terms:
        r"""Return the bound of Lemma 2, and the activity of every row.

        A row is active if it pulls at the rough classifier, by :math:`1/(1 + e^{2 (z - 1)})` at the
        margin z, and in proportion to its length: a weight may move the classifier so far.
        """
        parts, cells = pilot.bounds, np.zeros(len(points), dtype=np.int64)
        for code in np.flatnonzero(np.bincount(codes)):
            rows, owned = np.flatnonzero(codes == code), np.flatnonzero(pilot.owners == code)
            cells[rows] = owned[assign(points[rows], parts.centers[owned])[0]]
        squares = np.square(points - parts.means[cells]).sum(axis=1)
        bound = lemma_2(squares, cells, parts.weights, self._opt(pilot), float(self.lam))
        signs = signs_of(codes, len(pilot.classes))
        steps = np.clip((signs * decisions - 1.0) / _SOFTNESS, -50.0, 50.0)
        lengths = np.sqrt(np.square(points).sum(axis=1) + parts.radius**2)
        return Terms(bound, (1.0 / (1.0 + np.exp(steps))).sum(axis=1) * lengths, cells)

    def order(
        self,
        candidates: Candidates,
        second: FloatArray,
        codes: IndexArray,
        decisions: FloatArray,
    ) -> IndexArray:
        """Return the order of a draw: by class, and by margin within every class."""
        del candidates, second
        if decisions.shape[1] == 1:
            margins = signs_of(codes, 2)[:, 0] * decisions[:, 0]
        else:
            margins = decisions[np.arange(len(codes)), codes]
        return np.lexsort((margins, codes))

    def shares(self, totals: FloatArray) -> FloatArray:
        """Return factors of bounds and of activities: those of bounds alone as published."""
        return np.array([1.0, 0.0]) if self.variant == "paper" else super().shares(totals)

    def draw(
        self, candidates: Candidates, summary: Pilot, size: int, rng: np.random.Generator
    ) -> Drawn:
        """Draw by the variant, and estimate the error of the classifier."""
        draws = PilotDraws(self, candidates, summary, size)
        if self.variant == "paper":
            drawn, model = Sensitivity.draw(self, candidates, summary, size, rng), None
        else:
            drawn, model = draws.best(rng)
        is_certain = not ((drawn.second > 0.0) & (drawn.second < 1.0)).any()
        if not candidates.final or is_certain:
            return drawn
        found = draws.judged(model or draws.fitted(drawn), candidates.rows)
        codes = class_codes(candidates.rows, summary.classes)[drawn.chosen]
        targets = signs_of(codes, len(summary.classes))
        none = self.lam * self._least_loss(targets, drawn.weights)
        error = estimated_error(
            Fitted(found.constant, found.losses, self.lam, none),
            drawn.chosen,
            drawn.weights,
            candidates.rows.weights,
            candidates.first,
            drawn.second,
        )
        return drawn._replace(facts={**drawn.facts, "estimated_error": error})

    def _least_loss(self, targets: FloatArray, weights: FloatArray) -> float:
        """Loss of the best classifiers without features, of all problems."""
        positive = np.where(targets > 0.0, weights[:, np.newaxis], 0.0).sum(axis=0)
        total = float(weights.sum())
        if not self.intercept:
            return total * float(targets.shape[1])
        return float(2.0 * np.minimum(positive, total - positive).sum())

    def provenance(self, summary: Pilot) -> dict[str, Any]:
        """Return t, the cost of the rough solution, and the number of cells."""
        return {
            "total_sensitivity": float(summary.sums["totals"][2]),
            "rough_cost": summary.bounds.cost.tolist(),
            "cells": len(summary.owners),
        }

    def parameters(self) -> dict[str, Any]:
        """Return the parameters in plain JSON values."""
        return {**super().parameters(), "lam": float(self.lam)}


def _model(fits: list[LinearFit]) -> tuple[FloatArray, FloatArray]:
    """Return coefficients and intercepts of all problems."""
    return np.stack([fit.coef for fit in fits]), np.array([fit.intercept for fit in fits])


def signs_of(codes: IndexArray, n_classes: int) -> FloatArray:
    """Labels of every problem, -1 or +1, of shape (n, p).

    Examples
    --------
    >>> signs_of(np.array([0, 1]), 2).ravel()
    array([-1.,  1.])
    >>> signs_of(np.array([0, 2]), 3)
    array([[ 1., -1., -1.],
           [-1., -1.,  1.]])
    """
    positive = np.arange(n_classes) if n_classes > 2 else np.array([1])
    return np.where(codes[:, np.newaxis] == positive, 1.0, -1.0)


def lemma_2(
    squares: FloatArray, cells: IndexArray, weights: FloatArray, opt: float, lam: float
) -> FloatArray:
    r"""Bound the sensitivity of a row with weight one.

    With :math:`\alpha_i = (U - U(P_i)) / (2 \lambda U\, U(P_i))`

    .. math::

        \gamma = \frac{1}{U(P_i)} + \frac{9 \lambda}{2} \max\left\{ \frac{2}{3} \alpha_i,
        \sqrt{4 \alpha_i^2 + \frac{2 |p_\Delta|^2}{9\, \mathrm{opt}}} - 2 \alpha_i \right\} .

    Parameters
    ----------
    squares : ndarray of shape (n,), float64
        :math:`|p_\Delta|^2`, squared distance of the row to the mean of its cell.
    cells : ndarray of shape (n,), int64
        i.
    weights : ndarray of shape (k,), float64
        :math:`U(P_i)`.
    opt : float
        Positive.
    lam : float
        :math:`\lambda`.

    Returns
    -------
    ndarray of shape (n,), float64

    Notes
    -----
    Algorithm 1 prints :math:`u(p)^{9/2}` for the factor 9/2, and :math:`\mathrm{opt}^2`. Both are
    misprints, as the lemma and its proof show. The easy case is that of the proof,
    :math:`3 \alpha_i`. The lemma states :math:`2 \alpha_i`.

    Examples
    --------
    >>> lemma_2(np.zeros(1), np.zeros(1, dtype=int), np.array([4.0]), 1.0, 1.0)
    array([0.25])
    """
    total = weights.sum()
    alpha = (total - weights) / (2.0 * lam * total * weights)
    alphas = alpha[cells]
    # The root less 2 alpha loses digits where the cell is small; this form of it does not.
    added = squares * (2.0 / (9.0 * opt))
    steep = added / (
        np.sqrt(4.0 * alphas * alphas + added) + 2.0 * alphas + np.finfo(np.float64).tiny
    )
    return np.asarray(1.0 / weights[cells] + 4.5 * lam * np.maximum(alphas * 2.0 / 3.0, steep))
