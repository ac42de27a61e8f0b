"""The part of a mixture's likelihood that depends on the rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from daskcoreset.core.block import Block
from daskcoreset.core.linalg import dense
from daskcoreset.core.typing import FloatArray
from daskcoreset.errors import InvalidInputError, InvalidTypeError
from daskcoreset.objectives.base import ObjectiveOfParts
from daskcoreset.objectives.cells import Bracket, Cells, bracket_below
from daskcoreset.solvers.mixture.model import (
    MixtureModel,
    log_peaks,
    mixture_from_covariances,
    score_samples,
    whitened,
)

# Least variance of a component, as a share of that of the columns: the guarantee is for eigenvalues
# within bounds, and a component on a single row of the coreset has none.
_FLOOR = 1e-3


@dataclass(frozen=True)
class MixtureCost(ObjectiveOfParts[MixtureModel]):
    r"""The part of the negative log-likelihood of a mixture that depends on the rows.

    See :doc:`/guides/trust`.

    .. math::

        \phi_X(\theta) = -\sum_x u(x) \ln \sum_j \frac{w_j}{Z \sqrt{|2 \pi \Sigma_j|}}
        \exp\left(-\tfrac12 (x - \mu_j)^T \Sigma_j^{-1} (x - \mu_j)\right), \qquad
        Z = \sum_j \frac{w_j}{\sqrt{|2 \pi \Sigma_j|}} .

    The negative log-likelihood is :math:`\phi_X(\theta) - U \ln Z`. Relative errors need a
    non-negative cost, which :math:`\phi` is. The source bounds it, too.

    Parameters
    ----------
    n_components : int, optional
        Number of components of the solutions of an audit. None if it is unknown.

    Examples
    --------
    >>> import daskcoreset
    >>> X = np.random.default_rng(0).normal(size=(10_000, 2))
    >>> coreset = daskcoreset.build(X, size=1000, method="uniform", random_state=0)
    >>> coreset.audit(X, objective=MixtureCost(2), random_state=0).distortion < 0.3
    True

    References
    ----------
    Lucic, Faulkner, Krause and Feldman (2017), section 2.
    """

    n_components: int | None = None

    name: ClassVar[str] = "mixture cost"
    parts: ClassVar[str] = "n_components"

    def losses(self, block: Block, solution: MixtureModel) -> FloatArray:
        """Term of every row."""
        most = float(np.logaddexp.reduce(log_peaks(solution)))
        return np.maximum(most - score_samples(solution, block.points), 0.0)

    def brackets(
        self, cells: Cells, solution: MixtureModel, others: Sequence[MixtureModel]
    ) -> Iterator[tuple[Bracket, int | None]]:
        r"""Yield the bound by one component, :math:`a_j + |L_j (x - \mu_j)|^2 / 2`.

        The component is the one that bounds the center of a cell best.
        """
        del others
        peaks, factors = log_peaks(solution), solution.factors
        constants = np.logaddexp.reduce(peaks) - peaks
        scaled = np.stack([*whitened(solution, cells.centers)], axis=1)
        gaps = np.linalg.norm(scaled, axis=2)
        is_full = factors.ndim == 3
        norms = np.linalg.norm(factors, 2, axis=(1, 2)) if is_full else factors.max(axis=1)
        squares = np.broadcast_to(norms * norms / 2.0, gaps.shape)
        at_center = constants + gaps * gaps / 2.0
        bounds = np.stack([at_center, gaps * norms, squares, np.zeros_like(gaps)])
        best = bounds[0].argmin(axis=1)
        high = bounds[:, np.arange(len(best)), best]
        yield bracket_below(high), None

    def solve(self, block: Block, rng: np.random.Generator) -> MixtureModel:
        """Mixture by EM from k-means."""
        return self._fit(block, rng, 50)

    def seed(self, block: Block, rng: np.random.Generator) -> MixtureModel:
        """Mixture by one step of EM from k-means++ seeds."""
        return self._fit(block, rng, 2, init_params="k-means++")

    def candidates(
        self, block: Block, rng: np.random.Generator
    ) -> Iterator[tuple[str, MixtureModel]]:
        """Yield a fitted mixture, four that are fitted a little, and one component."""
        yield "EM", self.solve(block, rng)
        for i in range(1, 5):
            yield f"k-means++ {i}", self.seed(block, rng)
        yield "one component", self.poor(block)

    def poor(self, block: Block) -> MixtureModel:
        """One component, the mean and the covariance of all rows."""
        # Nothing is random about it: every row belongs to it.
        rng = np.random.default_rng(0)
        return self.with_parts(1).seed(block, rng)

    def read(self, solution: Any, n_features: int, name: str) -> MixtureModel:
        """Return a `MixtureModel`, or that of a fitted estimator."""
        mixture = solution if isinstance(solution, MixtureModel) else _mixture_of(solution, name)
        if mixture.means.shape[1] != n_features:
            raise InvalidInputError(
                f"{name} is a mixture in {mixture.means.shape[1]} dimensions",
                argument=name,
                remedy=f"pass one in the {n_features} columns of X",
            )
        return mixture

    def _fit(
        self,
        block: Block,
        rng: np.random.Generator,
        steps: int,
        **options: Any,
    ) -> MixtureModel:
        from sklearn.exceptions import ConvergenceWarning

        from daskcoreset.solvers.mixture.em import fit_mixture

        rows = dense(block.points)
        mean = np.average(rows, axis=0, weights=block.weights)
        variance = float(np.average(np.square(rows - mean), axis=0, weights=block.weights).mean())
        distinct = len(np.unique(rows[block.weights > 0], axis=0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return fit_mixture(
                rows,
                block.weights,
                n_components=min(self.parts_in(block), distinct),
                # Full matrices where they are small against the rows.
                covariance_type="full" if rows.shape[1] <= 30 else "diag",
                reg_covar=max(_FLOOR * variance, 1e-300),
                max_iter=steps,
                random_state=rng,
                **options,
            ).mixture


def _mixture_of(estimator: Any, name: str) -> MixtureModel:
    """Return the parameters of a fitted estimator."""
    kind = getattr(estimator, "covariance_type", None)
    names = ("weights_", "means_", "covariances_")
    parts = [getattr(estimator, part, None) for part in names]
    if kind is None or any(part is None for part in parts):
        raise InvalidTypeError(
            f"{name} must be a fitted mixture such as CoresetGaussianMixture, got "
            f"{type(estimator).__name__}",
            argument=name,
            remedy="fit one, or pass a MixtureModel",
        )
    weights, means, covariances = (np.asarray(part, dtype=np.float64) for part in parts)
    return mixture_from_covariances(kind, weights, means, covariances)
