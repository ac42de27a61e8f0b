"""Costs and errors over data of any size, one read for any number of solutions."""

from __future__ import annotations

from collections.abc import Sequence
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.execution.gathering import gather
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.objectives.clustering import as_centers, nearest_distances
from daskcoreset.metrics.svm_metrics import SVMReport, accuracy, hinge_loss, svm_cost, svm_report
from daskcoreset.metrics.svm_total import svm_sensitivity
from daskcoreset.core.typing import FloatArray

if TYPE_CHECKING:
    from daskcoreset.core.blocks import Block
    from daskcoreset.core.coreset import Coreset

__all__ = [
    "SVMReport",
    "accuracy",
    "distortion",
    "hinge_loss",
    "kmeans_cost",
    "relative_error",
    "svm_cost",
    "svm_report",
    "svm_sensitivity",
]


def kmeans_cost(X: Any, centers: Any, sample_weight: Any = None) -> Any:
    r"""Quantization error :math:`\phi_X(Q) = \sum_x u(x) \min_{q \in Q} |x - q|^2`.

    Parameters
    ----------
    X : array-like of shape (n, d), or path
        Any input of `daskcoreset.build`; read once, block by block.
    centers : array-like of shape (k, d), or sequence of such
        One solution, or several to be evaluated in the same read.
    sample_weight : array-like of shape (n,), optional
        Input weights u; ones by default.

    Returns
    -------
    float, or ndarray of shape (n_solutions,), float64
        One cost for one solution, else one for each. Distances are formed from
        differences in float64: float32 data with a large offset lose nothing.

    Raises
    ------
    InvalidInputError
        If `centers` has another number of columns than X, or is not finite.

    Examples
    --------
    >>> kmeans_cost(np.array([[0.0], [1.0], [5.0]]), [[0.0], [5.0]])
    1.0
    >>> kmeans_cost(np.array([[0.0], [1.0]]), [np.zeros((1, 1)), np.ones((1, 1))])
    array([1., 1.])

    References
    ----------
    Bachem, Lucic and Krause (2018), section 2.
    """
    blocks = row_blocks(X, None, sample_weight)
    solutions, single = _as_solutions(centers, blocks.rules.n_features)
    costs = gather(blocks, _costs_of_block, add, given=solutions).value
    return float(costs[0]) if single else costs


def relative_error(cost: Any, reference: Any) -> Any:
    r"""Relative error :math:`(\phi - \phi_{\mathrm{ref}}) / \phi_{\mathrm{ref}}`.

    Parameters
    ----------
    cost : float or array-like
        Cost, over all data, of solutions found on coresets.
    reference : float or array-like
        Cost of the solution found on all data.

    Returns
    -------
    float or ndarray, float64
        Negative where the coreset's solution is the better one.

    Raises
    ------
    InvalidInputError
        If `reference` is not positive.

    Examples
    --------
    >>> relative_error(105.0, 100.0)
    0.05

    References
    ----------
    Bachem, Lucic and Krause (2018), section 7.
    """
    reference = np.asarray(reference, dtype=np.float64)
    if not (reference > 0).all():
        raise InvalidInputError(
            f"reference must be positive, found {reference.min()}; a cost of zero has no "
            f"relative error."
        )
    error = (np.asarray(cost, dtype=np.float64) - reference) / reference
    return float(error) if error.ndim == 0 else error


def distortion(coreset: Coreset, X: Any, solutions: Any, sample_weight: Any = None) -> float:
    r"""Largest relative difference between costs on the coreset and on all data.

    .. math::

        \max_Q \max\left(\frac{\phi_C(Q)}{\phi_X(Q)}, \frac{\phi_X(Q)}{\phi_C(Q)}\right) - 1

    Parameters
    ----------
    coreset : Coreset
    X : array-like of shape (n, d), or path
        The data it was built from; read once.
    solutions : array-like of shape (k, d), or sequence of such
        Candidate solutions Q: solutions found on the coreset show most, for those are
        where a coreset that misses something is wrong.
    sample_weight : array-like of shape (n,), optional
        Input weights u of the data.

    Returns
    -------
    float
        Zero for a coreset that is right on every candidate; infinite where it has cost zero
        and the data have not.

    Examples
    --------
    >>> import daskcoreset
    >>> X = np.arange(20.0).reshape(10, 2)
    >>> coreset = daskcoreset.build(X, size=9, random_state=0)
    >>> 0 <= distortion(coreset, X, [X[:2], X[5:7]]) < 1
    True

    References
    ----------
    Schwiegelshohn and Sheikh-Omar (2022), An Empirical Evaluation of k-Means Coresets,
    section 4.
    """
    several, _ = _as_solutions(solutions, coreset.points.shape[1], "solutions")
    on_all = kmeans_cost(X, several, sample_weight)
    on_coreset = kmeans_cost(coreset.points, several, coreset.weights)
    both_zero = (on_all == 0) & (on_coreset == 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(both_zero, 1.0, on_coreset / on_all)
        return float(np.maximum(ratio, 1.0 / ratio).max() - 1.0)


def _as_solutions(
    centers: Any, n_features: int, name: str = "centers"
) -> tuple[list[FloatArray], bool]:
    several = isinstance(centers, Sequence) and all(np.ndim(one) == 2 for one in centers)
    several = several or np.ndim(centers) == 3
    solutions = [as_centers(one, n_features, name) for one in (centers if several else [centers])]
    if not solutions:
        raise InvalidInputError(f"{name} is empty; pass at least one solution.")
    return solutions, not several


def _costs_of_block(block: Block, number: int, solutions: list[FloatArray]) -> FloatArray:
    del number
    distances = (nearest_distances(block.points, centers) for centers in solutions)
    return np.array([(block.weights * squares).sum() for squares in distances])
