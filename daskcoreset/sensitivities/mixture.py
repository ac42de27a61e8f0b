"""Coresets for Gaussian mixtures: bounds from a rough solution, leverages of a pilot mixture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from daskcoreset.core.blocks import Block
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.linalg import dense, dense_rows, one_thread, rows_at
from daskcoreset.core.linalg import tiles as slices_of
from daskcoreset.core.moments import moments_of
from daskcoreset.core.sampling import Calibrated
from daskcoreset.core.typing import FloatArray, IndexArray
from daskcoreset.core.validation import as_int
from daskcoreset.objectives import MixtureCost
from daskcoreset.sensitivities.base import SamplingDesign
from daskcoreset.sensitivities.kmeans import RoughKMeans, RoughSummary
from daskcoreset.solvers.kmeans import Clusters, assign
from daskcoreset.solvers.mixture.model import CovarianceType, Mixture, posterior, whitened
from daskcoreset.solvers.mixture.steps import expectation, maximisation, moments_of_components

# Candidates that the pilot is fitted to: gains are the same with all 20,000 of them.
_PILOT_ROWS = 3000

# The same for every number in the parameters of the pilot. A pilot with covariances in full that
# has about as many rows as parameters fits the noise of these rows, and leverages follow it.
_ROWS_PER_NUMBER = 4

# Numbers in them at most, 32 MiB.
_PILOT_NUMBERS = 2**22

# Steps of EM: gains are the same with ten.
_PILOT_STEPS = 5

# Candidates below which a pilot is rougher, as in nodes of trees, which are drawn from once more:
# of 1,500 rows where its kind needs no more, in two steps, in 3/4 of the time of a stream. Mixtures
# on the rows were as good on six sets; errors of likelihoods fell on four and rose on two. Without
# a pilot in nodes they were up to twice as large.
_FEW_CANDIDATES = 10_000
_PILOT_ROWS_OF_FEW = 1500
_PILOT_STEPS_OF_FEW = 2

# Added to the variances of the pilot, in those of the columns.
_PILOT_REGULARISATION = 1e-3

# Where standardised gaps are cut: the fourth powers are added up.
_LARGEST_GAP = 1e50


def leverages(mixture: Mixture, tile: FloatArray) -> FloatArray:
    r"""Squared lengths of the derivatives of the log-density, in the information of the mixture.

    Parameters
    ----------
    mixture : Mixture
        Of the type "full" or "diag".
    tile : ndarray of shape (n, d), float64

    Returns
    -------
    ndarray of shape (n,), float64
        With responsibilities :math:`r_k` and :math:`z_k = (x - \mu_k) U_k`

        .. math:: \ell(x) = \sum_k \frac{r_k^2}{\pi_k}
                  \Bigl(1 + |z_k|^2 + \tfrac12 |z_k z_k^T - I|_F^2\Bigr),

        in the information of rows whose components are known, which is the sum of those of the
        weights, the means and the covariances. For "diag" the last norm is of the diagonal.

    Examples
    --------
    >>> from daskcoreset.solvers.mixture.model import mixture_from_covariances
    >>> standard = mixture_from_covariances(
    ...     "full", np.ones(1), np.zeros((1, 1)), np.ones((1, 1, 1))
    ... )
    >>> leverages(standard, np.array([[0.0], [1.0], [3.0]]))
    array([ 1.5,  2. , 42. ])
    """
    k, d = mixture.means.shape
    lengths, spread = np.empty((k, len(tile))), np.empty((k, len(tile)))
    with np.errstate(over="ignore", invalid="ignore"):
        for some, gaps in whitened(mixture, tile):
            np.einsum("kri,kri->kr", gaps, gaps, out=lengths[some])
            if mixture.covariance_type == "diag":
                squares = np.square(np.clip(gaps, -_LARGEST_GAP, _LARGEST_GAP, out=gaps), out=gaps)
                squares -= 1.0
                np.einsum("kri,kri->kr", squares, squares, out=spread[some])
    shares = posterior(mixture, tile, lengths)[1]
    np.square(shares, out=shares)
    shares /= np.maximum(mixture.weights, np.finfo(np.float64).tiny)[:, np.newaxis]
    np.minimum(lengths, d * _LARGEST_GAP**2, out=lengths)
    if mixture.covariance_type == "full":
        spread = lengths * lengths - 2.0 * lengths + d
    found: FloatArray = np.einsum("kr,kr->r", shares, 1.0 + lengths + 0.5 * spread)
    return found


@dataclass(frozen=True)
class MixtureDesign(SamplingDesign[RoughSummary]):
    """The draw of `MixtureCoreset`: half by the bounds, half by leverages in a pilot mixture."""

    @one_thread()
    def final_scores(
        self,
        rows: Block,
        first: FloatArray,
        scores: FloatArray,
        summary: RoughSummary,
        size: int,
    ) -> FloatArray:
        """Mix the bounds with the roots of the leverages, each half of the draw.

        Where rows are too few for a mixture, or none can be fitted, the bounds stand alone.
        """
        del size
        assert isinstance(summary, Clusters)  # noqa: S101 - the last fold weighs
        k, d = summary.centers.shape
        n_numbers, few = k * d * (d + 3) // 2, len(rows) < _FEW_CANDIDATES
        wanted = _PILOT_ROWS
        if few:
            in_full = _ROWS_PER_NUMBER * n_numbers
            wanted = max(_PILOT_ROWS_OF_FEW, in_full if in_full <= _PILOT_ROWS else 0)
        n_pilot = min(len(rows), max(wanted, _ROWS_PER_NUMBER * k * d), _PILOT_NUMBERS // d)
        if 2 * k * d > n_pilot:
            return scores
        kind: CovarianceType = "full" if _ROWS_PER_NUMBER * n_numbers <= n_pilot else "diag"
        weights = rows.weights / first
        moments = moments_of(rows.points, weights)
        scale = np.sqrt(moments.m2 / moments.weight)
        scale[scale == 0.0] = 1.0
        # Their order may be periodic, and their number is all that is known of them here.
        positions = np.sort(np.random.default_rng(0).permutation(len(rows))[:n_pilot])
        some = dense_rows(rows_at(rows.points, positions))
        labels = assign(some, summary.centers)[0]
        centred = (some - moments.mean) / scale
        try:
            n_steps = _PILOT_STEPS_OF_FEW if few else _PILOT_STEPS
            pilot = _pilot(centred, weights[positions], labels, kind, n_steps)
        except InvalidInputError:  # it is singular to rounding
            return scores
        pulls = np.empty(len(rows))
        for part in slices_of(len(rows), max(d, k)):
            tile = (dense(rows.points[part]) - moments.mean) / scale
            pulls[part] = leverages(pilot, tile)
        by_pull = rows.weights * np.sqrt(pulls)
        mixed: FloatArray = scores / (scores / first).sum() + by_pull / (by_pull / first).sum()
        return mixed if np.isfinite(mixed).all() else scores

    def calibrate(
        self, rows: Block, weights: FloatArray, summary: RoughSummary, draw_index: int = 0
    ) -> Calibrated:
        """Scale weights to that of all the data, which decides the costs of rows that are alike.

        Rows that were drawn for certain stand for themselves alone, as they do in the data.
        """
        assert isinstance(summary, Clusters)  # noqa: S101
        del draw_index
        drawn = weights != rows.weights
        left = summary.weight - weights[~drawn].sum()
        if left <= 0.0 or not drawn.any():
            return Calibrated(weights)
        scale = left / weights[drawn].sum()
        return Calibrated(np.where(drawn, weights * scale, weights))


def _pilot(
    points: FloatArray,
    weights: FloatArray,
    labels: IndexArray,
    kind: CovarianceType,
    n_steps: int,
) -> Mixture:
    """Fit a mixture roughly, from the clusters in which rows lie."""
    _, codes = np.unique(labels, return_inverse=True)
    shares = np.zeros((codes.max() + 1, len(points)))
    shares[codes, np.arange(len(points))] = weights
    moments = moments_of_components(points, shares, kind)
    mixture = maximisation(moments, None, _PILOT_REGULARISATION)
    for _ in range(n_steps):
        moments = expectation(mixture, points, weights)
        mixture = maximisation(moments, mixture, _PILOT_REGULARISATION)
    return mixture


@dataclass(frozen=True)
class MixtureCoreset(RoughKMeans):
    r"""Coresets for mixtures of k Gaussians.

    The likelihood of a row under a Gaussian whose covariance has eigenvalues within fixed
    bounds falls with its squared distance to the mean, so that a rough k-means solution bounds
    the sensitivities for mixtures as well: rows far from every center, rows of cells that are
    wide, and rows of small cells are kept. Half of the draw goes by these bounds. The other half
    goes by what each row would change in a mixture that was fitted to some candidates of the draw.

    Parameters
    ----------
    n_components : int
        k, the number of components that will be fitted.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If `n_components` is not an integer of at least one.

    Notes
    -----
    The bounds are those of `StrongKMeans`, its constants included: the source bounds
    sensitivities in this form, but its own constants were not at hand to be compared.
    They weigh the three parts against each other; the weights are unbiased with any. The
    guarantee of the source is for eigenvalues within fixed bounds, and distances are
    Euclidean: bring columns of unlike units to one scale first.

    In the second half a row is drawn in proportion to :math:`u \sqrt{\ell}`, where
    :math:`\ell` is the squared length of the derivative of its log-density by the parameters of
    the pilot, in the pilot's information: of all draws it is the one after which the maximum of
    the likelihood lies nearest to that of all rows, to first order. The pilot is five steps of EM
    on 3,000 candidates or more, of fewer than 10,000, as in nodes of trees, two on 1,500 or more,
    with covariances in full where there are four of them for each number in these, else with
    variances; where they are too few for these as well, as with hundreds of components, bounds
    stand alone. A row is drawn with at least half the chance that the bounds
    give it, so that their guarantee holds with twice as many rows. Weights of rows that are not
    certain are scaled, so that all add up to that of all the data. Independent draws
    (``sampling="multinomial"``) go by the bounds.

    Examples
    --------
    >>> import numpy as np, daskcoreset
    >>> X = np.repeat(np.eye(3), [900, 99, 1], axis=0)
    >>> coreset = daskcoreset.build(X, size=60, method=MixtureCoreset(3), random_state=0)
    >>> 999 in coreset.indices  # a component of one row is never missed
    True

    References
    ----------
    Lucic, Faulkner, Krause and Feldman (2017), Training Gaussian Mixture Models at Scale via
    Coresets, Algorithm 1. Ting and Brochu (2018), Optimal subsampling with influence functions,
    for the second half.
    """

    n_components: int

    name: ClassVar[str] = "mixture"
    citation: ClassVar[str] = "lucic2017training, Algorithm 1"

    def __post_init__(self) -> None:
        as_int("n_components", self.n_components)

    @property
    def objective(self) -> MixtureCost:
        """The part of the likelihood of k Gaussians that rows decide."""
        return MixtureCost(self.n_components)

    @property
    def design(self) -> MixtureDesign:
        """The design of the draw."""
        return MixtureDesign()

    @property
    def centers(self) -> int:
        """Centers of the rough solution."""
        return self.n_components
