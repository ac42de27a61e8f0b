"""Coresets for Gaussian mixtures: bounds from a rough solution, leverages of a pilot mixture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from daskcoreset.core.linalg import one_thread, tiles as slices_of
from daskcoreset.core.typing import FloatArray
from daskcoreset.core.validation import as_int
from daskcoreset.objectives import MixtureCost
from daskcoreset.sensitivities.draw import Candidates, Drawn, systematic_draw
from daskcoreset.sensitivities.kmeans import RoughKMeans
from daskcoreset.sensitivities.mixture_pilot import (
    FEW_CANDIDATES,
    PILOT_NUMBERS,
    StandardisedPilot,
    count_derivatives,
    derivatives,
    leverages,
    pilot_of,
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


@one_thread()
def _mixed(candidates: Candidates, scores: FloatArray, pilot: StandardisedPilot) -> FloatArray:
    """Mix the bounds with the roots of the leverages, each half of the draw."""
    rows, first = candidates.rows, candidates.first
    pulls = np.empty(len(rows))
    for part in slices_of(len(rows), max(pilot.mixture.means.shape)):
        pulls[part] = leverages(pilot.mixture, pilot.standardised(rows, part))
    by_pull = rows.weights * np.sqrt(pulls)
    mixed: FloatArray = scores / (scores / first).sum() + by_pull / (by_pull / first).sum()
    return mixed if np.isfinite(mixed).all() else scores


@one_thread()
def _adjusted(
    candidates: Candidates, drawn: Drawn, pilot: StandardisedPilot, n_derivatives: int
) -> FloatArray:
    r"""Bring the derivatives of the likelihood at the pilot closer to those of all candidates.

    With :math:`v` the weights, :math:`D = v (1 - \pi_2)`, :math:`S` the derivatives of the rows and
    :math:`t` their sum over all candidates, weights become :math:`v + D g` with the g of the
    least :math:`\sum D g^2 + |S^T (v + D g) - t|^2 / \lambda`, cut to [-1/2, 1] (Bardsley and
    Chambers, 1984).
    """
    rows, (chosen, weights, second, _) = candidates.rows, drawn
    free = second[chosen] < 1.0
    unbiased = np.where(second < 1.0, candidates.weights, 0.0)
    open_rows = np.flatnonzero(unbiased > 0.0)
    total = np.zeros(n_derivatives)
    with np.errstate(over="ignore", invalid="ignore"):
        for part in slices_of(len(open_rows), n_derivatives):
            some = open_rows[part]
            total += unbiased[some] @ derivatives(pilot.mixture, pilot.standardised(rows, some))
        own = derivatives(pilot.mixture, pilot.standardised(rows, chosen[free]))
        room = weights[free] * (1.0 - second[chosen[free]])
        short = total - weights[free] @ own
        ridge = _RIDGE * n_derivatives / len(chosen) * float(candidates.weights.sum())
        moves = _ridge_moves(own, room, short, ridge)
    if not np.isfinite(moves).all():
        return weights
    adjusted = weights.copy()
    adjusted[free] += room * np.clip(moves, -0.5, 1.0)
    return adjusted


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
    def centers(self) -> int:
        """Centers of the rough solution."""
        return self.n_components

    def draw(
        self, candidates: Candidates, summary: Clusters, size: int, rng: np.random.Generator
    ) -> Drawn:
        """Draw half by the bounds and half by leverages in a pilot mixture.

        If candidates are too few for a mixture, or none can be fitted, the bounds are used alone.
        Weights are adjusted if rows are few for the parameters of the pilot and candidates are
        many. Then those of rows that are not certain are scaled to the total weight of the data,
        which decides the costs of rows that are alike.
        """
        rows, scores, pilot = candidates.rows, self.scores(candidates.rows, summary), None
        if np.count_nonzero(scores) > size:
            pilot = pilot_of(rows, candidates.first, summary)
        if pilot is not None:
            scores = _mixed(candidates, scores, pilot)
        drawn = systematic_draw(candidates, scores, size, rng)
        chosen, weights, second, _ = drawn
        if pilot is not None and len(rows) >= FEW_CANDIDATES and (second[chosen] < 1.0).any():
            n_derivatives = count_derivatives(
                pilot.mixture.covariance_type, *pilot.mixture.means.shape
            )
            few = len(chosen) <= _ROWS_PER_DERIVATIVE * n_derivatives
            if few and len(chosen) * n_derivatives <= PILOT_NUMBERS:
                weights = _adjusted(candidates, drawn, pilot, n_derivatives)
        own = rows.weights[chosen]
        sampled = weights != own
        left = summary.weight - weights[~sampled].sum()
        if left > 0.0 and sampled.any():
            scale = left / weights[sampled].sum()
            weights = np.where(sampled, weights * scale, weights)
        return drawn._replace(weights=weights)
