"""Coresets for Gaussian mixtures: bounds from a rough solution, leverages of a pilot mixture."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from daskcoreset.core.block import Block
from daskcoreset.core.linalg import one_thread, tiles as slices_of
from daskcoreset.core.raking import Calibrated
from daskcoreset.core.typing import FloatArray, IndexArray
from daskcoreset.core.validation import as_int
from daskcoreset.objectives import MixtureCost
from daskcoreset.sensitivities.base import SamplingDesign
from daskcoreset.sensitivities.kmeans import RoughKMeans
from daskcoreset.sensitivities.mixture_pilot import (
    FEW_CANDIDATES,
    PILOT_NUMBERS,
    StandardisedPilot,
    count_derivatives,
    derivatives,
    leverages,
    pilot_of,
    plan_pilot,
)
from daskcoreset.solvers.kmeans import Clusters

# Rows for each derivative up to which weights are moved towards the derivatives of all candidates:
# of more, these are near enough.
_ROWS_PER_DERIVATIVE = 8

# The ridge in units of derivatives per row and of the information of all the data. With two and
# four times of it mixtures were as good, and likelihoods of fixed ones were off by more: what is
# left of the derivatives is a bias. With much less, weights of few rows spread too far.
_RIDGE = 0.5


def _ridge_moves(own: FloatArray, room: FloatArray, short: FloatArray, ridge: float) -> FloatArray:
    """Return g of the least sum of D g^2 and the squared rest of the totals over the ridge."""
    roots = np.sqrt(room)
    scaled = own * roots[:, np.newaxis]
    try:
        if len(own) < own.shape[1]:
            inner = scaled @ scaled.T
            inner.flat[:: len(inner) + 1] += ridge
            return np.asarray(np.linalg.solve(inner, scaled @ short)) / roots
        inner = scaled.T @ scaled
        inner.flat[:: len(inner) + 1] += ridge
        return np.asarray(own @ np.linalg.solve(inner, short))
    except np.linalg.LinAlgError:  # derivatives of rows far out leave nothing of the ridge
        return np.full(len(own), np.nan)


@dataclass(frozen=True)
class MixtureDesign(SamplingDesign[Clusters]):
    """The draw of `Mixture`: half by the bounds, half by leverages in a pilot mixture."""

    # What the last pilot was fitted to, and it: scores and weights of one draw ask for the same.
    _last: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)

    def pilot(self, rows: Block, first: FloatArray, summary: Clusters) -> StandardisedPilot | None:
        """Return `pilot_of` these candidates. It is fitted once for the same objects.

        Each draw makes its own design, so the pilot and the rows are freed with it.
        """
        asked = (rows, first, summary)
        if not (self._last and all(a is b for a, b in zip(asked, self._last, strict=False))):
            self._last[:] = *asked, pilot_of(rows, first, summary)
        found: StandardisedPilot | None = self._last[-1]
        return found

    @one_thread()
    def final_scores(
        self,
        rows: Block,
        first: FloatArray,
        scores: FloatArray,
        summary: Clusters,
        size: int,
    ) -> FloatArray:
        """Mix the bounds with the roots of the leverages, each half of the draw.

        If rows are too few for a mixture, or none can be fitted, the bounds are used alone.
        """
        del size
        pilot = self.pilot(rows, first, summary)
        if pilot is None:
            return scores
        pulls = np.empty(len(rows))
        for part in slices_of(len(rows), max(summary.centers.shape)):
            pulls[part] = leverages(pilot.mixture, pilot.standardised(rows, part))
        by_pull = rows.weights * np.sqrt(pulls)
        mixed: FloatArray = scores / (scores / first).sum() + by_pull / (by_pull / first).sum()
        return mixed if np.isfinite(mixed).all() else scores

    @one_thread()
    def adjust(  # noqa: PLR0917 - all of them are always given
        self,
        rows: Block,
        first: FloatArray,
        second: FloatArray,
        chosen: IndexArray,
        weights: FloatArray,
        summary: Clusters,
    ) -> FloatArray:
        r"""Bring the derivatives of the likelihood at the pilot closer to those of all candidates.

        It does so if rows are few for the parameters of the pilot and candidates are many. With
        :math:`v` the weights, :math:`D = v (1 - \pi_2)`, :math:`S` the derivatives of the rows and
        :math:`t` their sum over all candidates, weights become :math:`v + D g` with the g of the
        least :math:`\sum D g^2 + |S^T (v + D g) - t|^2 / \lambda`, cut to [-1/2, 1] (Bardsley and
        Chambers, 1984).
        """
        k, d = summary.centers.shape
        size, free = len(chosen), second[chosen] < 1.0
        plan = plan_pilot(len(rows), k, d)
        if len(rows) < FEW_CANDIDATES or not free.any() or plan is None:
            return weights
        n_derivatives = count_derivatives(plan[0], k, d)  # of fewer components none are more
        if size > _ROWS_PER_DERIVATIVE * n_derivatives or size * n_derivatives > PILOT_NUMBERS:
            return weights
        pilot = self.pilot(rows, first, summary)
        if pilot is None:
            return weights
        n_derivatives = count_derivatives(plan[0], *pilot.mixture.means.shape)
        unbiased = np.where(second < 1.0, rows.weights / first, 0.0)
        open_rows = np.flatnonzero(unbiased > 0.0)
        total = np.zeros(n_derivatives)
        with np.errstate(over="ignore", invalid="ignore"):
            for part in slices_of(len(open_rows), n_derivatives):
                some = open_rows[part]
                total += unbiased[some] @ derivatives(pilot.mixture, pilot.standardised(rows, some))
            own = derivatives(pilot.mixture, pilot.standardised(rows, chosen[free]))
            room = weights[free] * (1.0 - second[chosen[free]])
            short = total - weights[free] @ own
            ridge = _RIDGE * n_derivatives / size * float((rows.weights / first).sum())
            moves = _ridge_moves(own, room, short, ridge)
        if not np.isfinite(moves).all():
            return weights
        adjusted = weights.copy()
        adjusted[free] += room * np.clip(moves, -0.5, 1.0)
        return adjusted

    def calibrate(
        self, rows: Block, weights: FloatArray, summary: Clusters, draw_index: int = 0
    ) -> Calibrated:
        """Scale weights to the total weight of the data.

        The total decides the costs of rows that are alike. Rows that were drawn for certain keep
        their input weights.
        """
        del draw_index
        drawn = weights != rows.weights
        left = summary.weight - weights[~drawn].sum()
        if left <= 0.0 or not drawn.any():
            return Calibrated(weights)
        scale = left / weights[drawn].sum()
        return Calibrated(np.where(drawn, weights * scale, weights))


@dataclass(frozen=True)
class Mixture(RoughKMeans):
    r"""Coresets for mixtures of k Gaussians.

    Half of the draw uses the bounds of `StrongKMeans`: rows far from every center, rows of wide
    cells, and rows of small cells are kept. The other half uses the influence of each row on a
    pilot, which is a mixture fitted to candidates of the draw. The guide is
    :doc:`/guides/clusters`.

    Parameters
    ----------
    n_components : int
        k, the number of components that you will fit.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If `n_components` is not an integer of at least one.

    Notes
    -----
    The guarantee holds for covariances whose eigenvalues lie within fixed bounds. Distances are
    Euclidean, so scale columns with different units first.

    The influence of a row is :math:`u \sqrt{\ell}`, where :math:`\ell` is the squared length of the
    derivative of its log-density by the parameters of the pilot, in the pilot's information. Each
    row has at least half of the probability that the bounds give it, so the guarantee holds with
    twice the size. Weights of rows that are not drawn for certain are scaled to the total weight of
    the data. Independent draws (``sampling="multinomial"``) use the bounds alone.

    Weights have a small bias if there are at least 10,000 candidates, and fewer than eight rows per
    derivative of the pilot. They are then adjusted so that the derivatives nearly add up to those
    of all candidates (ridge calibration). The bias favors good mixtures. It is smaller than the
    random error of unbiased weights.

    Examples
    --------
    >>> import numpy as np, daskcoreset
    >>> X = np.repeat(np.eye(3), [900, 99, 1], axis=0)
    >>> coreset = daskcoreset.build(X, size=60, method=Mixture(3), random_state=0)
    >>> 999 in coreset.indices  # a component of one row is never missed
    True

    References
    ----------
    Lucic, Faulkner, Krause and Feldman (2017), Training Gaussian Mixture Models at Scale via
    Coresets, Algorithm 1. Ting and Brochu (2018), Optimal subsampling with influence functions, for
    the second half. Bardsley and Chambers (1984), Multipurpose estimation from unbalanced samples,
    for ridge calibration.
    """

    n_components: int

    name: ClassVar[str] = "mixture"
    citation: ClassVar[str] = "lucic2017training, Algorithm 1"

    def __post_init__(self) -> None:
        as_int("n_components", self.n_components)

    @property
    def objective(self) -> MixtureCost:
        """The part of the likelihood of k Gaussians that depends on the rows."""
        return MixtureCost(self.n_components)

    @property
    def design(self) -> MixtureDesign:
        """The design of the draw."""
        return MixtureDesign()

    @property
    def centers(self) -> int:
        """Centers of the rough solution."""
        return self.n_components
