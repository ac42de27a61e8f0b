r"""The score of Lemma 2 of Tukan, Baykal, Feldman and Rus (2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from daskcoreset.core.typing import FloatArray, IndexArray

if TYPE_CHECKING:
    from daskcoreset.core.blocks import Block
    from daskcoreset.sensitivities.svm_rough import Rough, Seen

__all__ = ["lemma_2", "terms_of", "totals_of"]

_SOFTNESS = 0.5
"""Width of the step from rows that pull at the classifier to those that do not."""


def lemma_2(
    squares: FloatArray,
    cells: IndexArray,
    weights: FloatArray,
    opt: float,
    lam: float,
    *,
    provable: bool = False,
) -> FloatArray:
    r"""Bound the sensitivity of a row of weight one.

    With :math:`\alpha_i = (U - U(P_i)) / (2 \lambda U\, U(P_i))`

    .. math::

        \gamma = \frac{1}{U(P_i)} + \frac{9 \lambda}{2} \max\left\{ \frac{4}{9} \alpha_i,
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
    provable : bool, default=False
        Whether the easy case of the proof counts as :math:`3 \alpha_i`, as the proof has it,
        instead of the :math:`2 \alpha_i` of the statement.

    Returns
    -------
    ndarray of shape (n,), float64

    Notes
    -----
    Algorithm 1 prints :math:`u(p)^{9/2}` for the factor 9/2, and :math:`\mathrm{opt}^2`: both
    are misprints, as the lemma and its proof show.

    Examples
    --------
    >>> lemma_2(np.zeros(1), np.zeros(1, dtype=int), np.array([4.0]), 1.0, 1.0)
    array([0.25])
    """
    total = weights.sum()
    alpha = (total - weights) / (2.0 * lam * total * weights)
    own = alpha[cells]
    easy = (2.0 / 3.0 if provable else 4.0 / 9.0) * own
    # The root less 2 alpha loses digits where the cell is small; this form of it does not.
    added = squares * (2.0 / (9.0 * opt))
    steep = added / (np.sqrt(4.0 * own * own + added) + 2.0 * own + np.finfo(np.float64).tiny)
    return np.asarray(1.0 / weights[cells] + 4.5 * lam * np.maximum(easy, steep))


def terms_of(block: Block, rough: Rough, seen: Seen, lam: float, *, provable: bool) -> FloatArray:
    r"""Score of Lemma 2, and activity, of every row, u included; shape (2, n).

    A row is active where it pulls at the rough classifier, by :math:`1/(1 + e^{2 (z - 1)})` at
    the margin z, and in proportion to its length: that is how far a weight may move it.
    """
    bound = lemma_2(seen.squares, seen.cells, rough.weights, rough.opt, lam, provable=provable)
    pull = 1.0 / (1.0 + np.exp(np.clip((seen.margins - 1.0) / _SOFTNESS, -50.0, 50.0)))
    activity = pull.sum(axis=1) * seen.lengths
    return np.stack([block.weights * bound, block.weights * activity])


def totals_of(terms: FloatArray) -> FloatArray:
    """Sum up both `terms_of`, and the first one once more with a row's bound capped at one.

    No row has more than all of the cost, so that the last sum, which is at most the number of
    rows, is what is known of the total sensitivity. Draws are made by the bounds as they are.

    Examples
    --------
    >>> totals_of(np.array([[0.5, 3.0], [1.0, 1.0]]))
    array([3.5, 2. , 1.5])
    """
    capped: FloatArray = np.minimum(terms[0], 1.0)
    return np.append(terms.sum(axis=1), capped.sum())
