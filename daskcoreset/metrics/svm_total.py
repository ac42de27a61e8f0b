"""The total sensitivity of data for support vector machines: whether a small coreset exists."""

from __future__ import annotations

from dataclasses import dataclass
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.validation import check_flag
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.execution.gathering import gather
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.core.random import RandomState, Stage, resolve_seed, stream
from daskcoreset.sensitivities import SVM

if TYPE_CHECKING:
    from daskcoreset.core.blocks import Block

__all__ = ["svm_sensitivity"]


def svm_sensitivity(
    X: Any,
    y: Any,
    *,
    lam: float = 1.0,
    sample_weight: Any = None,
    n_clusters: int | None = None,
    provable: bool = False,
    intercept: bool = True,
    random_state: RandomState = 0,
) -> float:
    r"""Total sensitivity t: the sum of the bounds of Lemma 2 over all rows, in three reads.

    The bound of a row is capped at one: no row has more than all of the cost.

    A coreset of m rows has a squared error of the order of t / m (Theorem 1). Where t is of the
    order of the number of rows, no small coreset is known to exist.

    Parameters
    ----------
    X : array-like of shape (n, d), or path
        Any input of `daskcoreset.build`.
    y : array-like of shape (n,), or str
    lam : float, default=1.0
    sample_weight : array-like of shape (n,), optional
    n_clusters, intercept
        As in `daskcoreset.SVM`.
    provable : bool, default=False
        Whether the easy case counts as three alpha, as in the proof, or as two, as printed.
    random_state : int, Generator, RandomState or None, default=0
        For the clusters and the rough solution.

    Returns
    -------
    float
        ``provenance["total_sensitivity"]`` of a coreset estimates the same from fewer reads.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> 10 < svm_sensitivity(X, X[:, 0] + X[:, 1] ** 2 > 0.5) < 400
    True

    References
    ----------
    Tukan, Baykal, Feldman and Rus (2020), Lemmas 2 and 3, and Table 1.
    """
    check_flag("provable", provable)
    construction = SVM(lam, n_clusters, "paper" if provable else "systematic", intercept)
    blocks = row_blocks(X, y, sample_weight)
    if not blocks.has_labels:
        raise InvalidInputError("y is missing; pass the labels of the rows.")
    seed, summary = resolve_seed(random_state), None
    for fold in range(construction.folds):
        found = gather(
            blocks, _Summarise(construction, seed, fold), construction.merge, given=summary
        )
        if not found.value:
            raise InvalidInputError("sample_weight is zero for every row; give some row a weight.")
        summary = construction.settle(found.value, stream(seed, Stage.SETTLING, 0, fold))
        construction.check(summary)
    total: float = gather(blocks, _Score(construction), add, given=summary).value
    return total


@dataclass(frozen=True)
class _Summarise:
    construction: SVM
    seed: int
    fold: int

    def __call__(self, block: Block, number: int, given: Any) -> Any:
        problem = self.construction.problem(block)
        rng = stream(self.seed, Stage.SUMMARIES, number, self.fold)
        return problem or self.construction.summarise(block, given, rng)


@dataclass(frozen=True)
class _Score:
    construction: SVM

    def __call__(self, block: Block, number: int, given: Any) -> float:
        del number
        return float(np.minimum(self.construction.scores(block, given), 1.0).sum())
