"""Coresets for Gaussian mixtures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.objectives import MixtureCost
from daskcoreset.sensitivities.base import Sensitivity
from daskcoreset.sensitivities.kmeans import StrongKMeans, too_rough

if TYPE_CHECKING:
    import numpy as np

    from daskcoreset.core.blocks import Block
    from daskcoreset.core.typing import FloatArray
    from daskcoreset.sensitivities.kmeans import KMeansParallelState
    from daskcoreset.solvers.kmeans import Clusters


@dataclass(frozen=True)
class MixtureCoreset(Sensitivity["Clusters | KMeansParallelState"]):
    r"""Coresets for mixtures of k Gaussians.

    The likelihood of a row under a Gaussian whose covariance has eigenvalues within fixed
    bounds falls with its squared distance to the mean, so that a rough k-means solution bounds
    the sensitivities for mixtures as well: rows far from every center, rows of cells that are
    wide, and rows of small cells are kept.

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
    The scores are those of `StrongKMeans`, its constants included: the source bounds
    sensitivities in this form, but its own constants were not at hand to be compared.
    They weigh the three parts against each other; the weights are unbiased with any. The
    guarantee of the source is for eigenvalues within fixed bounds, and distances are
    Euclidean: bring columns of unlike units to one scale first.

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
    Coresets, Algorithm 1.
    """

    n_components: int

    name: ClassVar[str] = "mixture"
    citation: ClassVar[str] = "lucic2017training, Algorithm 1"
    randomised: ClassVar[bool] = True
    total_scores_exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        try:
            _ = self._rough  # which checks the number
        except (InvalidInputError, InvalidTypeError) as error:
            raise type(error)(str(error).replace("n_clusters", "n_components")) from None

    @property
    def objective(self) -> MixtureCost:
        """The part of the likelihood of k Gaussians that rows decide."""
        return MixtureCost(self.n_components)

    @property
    def _rough(self) -> StrongKMeans:
        return StrongKMeans(self.n_components)

    def too_much(self, n_rows: int, n_features: int) -> str | None:
        """Return why a rough solution of a block would take too much."""
        return too_rough(self.n_components, n_rows, n_features)

    def block_summary(
        self,
        block: Block,
        previous: Clusters | KMeansParallelState | None,
        rng: np.random.Generator,
    ) -> Clusters | KMeansParallelState:
        """Cells of the block by k-means++."""
        return self._rough.block_summary(block, previous, rng)

    def proposal(self, block: Block, rng: np.random.Generator) -> tuple[Clusters, FloatArray]:
        """Cells of the block, and scores by the distances that they were made with."""
        return self._rough.proposal(block, rng)

    def merge(
        self, first: Clusters | KMeansParallelState, second: Clusters | KMeansParallelState
    ) -> Clusters | KMeansParallelState:
        """Put the tables of both after one another."""
        return self._rough.merge(first, second)

    def finalize(
        self, summary: Clusters | KMeansParallelState, rng: np.random.Generator
    ) -> Clusters | KMeansParallelState:
        """Cluster the cells of all blocks into k."""
        return self._rough.finalize(summary, rng)

    def scores(self, block: Block, summary: Clusters | KMeansParallelState) -> FloatArray:
        """Return u s(x), its three terms apart."""
        return self._rough.scores(block, summary)

    def total_scores(
        self, local: Clusters | KMeansParallelState, summary: Clusters | KMeansParallelState
    ) -> FloatArray:
        """Return the sums of `scores`, as if every cell of the block lay in one of B."""
        return self._rough.total_scores(local, summary)

    def provenance(self, summary: Clusters | KMeansParallelState) -> dict[str, Any]:
        """Return the cost of the rough solution."""
        return self._rough.provenance(summary)
