"""The pilot of SVM coresets: a rough classifier, cells, and sums of both over all rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from daskcoreset.core.block import Block, class_codes
from daskcoreset.core.sampling import StratifiedSample
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.sensitivities.pilot import Judges, merge_judges, parts
from daskcoreset.solvers.kmeans import assign, seed_cells
from daskcoreset.solvers.linear import solve_svm
from daskcoreset.solvers.losses import RoundedHinge

# Width of the rounded hinge whose sums are calibrated: near the hinge, but smooth enough that a
# sample of some hundred rows has rows on the slope.
WIDTH = 0.1


def lemma_2(
    squares: FloatArray,
    cells: IndexArray,
    weights: FloatArray,
    opt: float,
    lam: float,
    *,
    provable: bool = False,
) -> FloatArray:
    r"""Bound the sensitivity of a row with weight one.

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
    alphas = alpha[cells]
    easy = (2.0 / 3.0 if provable else 4.0 / 9.0) * alphas
    # The root less 2 alpha loses digits where the cell is small; this form of it does not.
    added = squares * (2.0 / (9.0 * opt))
    steep = added / (
        np.sqrt(4.0 * alphas * alphas + added) + 2.0 * alphas + np.finfo(np.float64).tiny
    )
    return np.asarray(1.0 / weights[cells] + 4.5 * lam * np.maximum(easy, steep))


@dataclass(frozen=True, eq=False)
class PilotSolution:
    r"""A rough solution, finalized.

    Attributes
    ----------
    classes : ndarray of shape (K,)
        Sorted labels.
    origin : ndarray of shape (d,), float64
        Subtracted from rows before anything else is done with them. Zero without intercept.
    coef : ndarray of shape (p, d), float64
        :math:`\tilde w` of every problem.
    intercept : ndarray of shape (p,), float64
        For rows without `origin`.
    centers : ndarray of shape (k, d), float64
        A row belongs to the nearest of its class's.
    owners : ndarray of shape (k,), int64
        Class of every cell.
    means : ndarray of shape (k, d), float64
        :math:`c_i`, the means of the cells, without `origin`.
    weights : ndarray of shape (k,), float64
        :math:`U(P_i)`.
    n_rows : int
        Rows of positive weight.
    bound : float
        Lower bound of the cost of the pilot in any problem.
    opt : float
        The opt of Lemma 2.
    radius : float
        Typical length of an entry of a row, which the entry of one for the intercept is
        compared with.
    totals : ndarray of shape (3,), float64
        Sums of the scores of Lemma 2, of the activities, and of the scores capped at one.
    cost : ndarray of shape (p,), float64
        :math:`F(\tilde w)`; of the pilot, until a fold has summed it up.
    sums : PilotSums or None
        Sums over all the data. None after the first fold.
    """

    classes: AnyArray
    origin: FloatArray
    coef: FloatArray
    intercept: FloatArray
    centers: FloatArray
    owners: IndexArray
    means: FloatArray
    weights: FloatArray
    n_rows: int
    bound: float
    opt: float
    radius: float
    totals: FloatArray
    cost: FloatArray
    sums: PilotSums | None = None

    @property
    def weight(self) -> float:
        """Total weight U."""
        return float(self.weights.sum())

    def class_sums(self) -> tuple[FloatArray, FloatArray]:
        """Weight of every class, and the weighted sum of its rows without `origin`."""
        weights = np.zeros(len(self.classes))
        sums = np.zeros((len(self.classes), len(self.origin)))
        np.add.at(weights, self.owners, self.weights)
        np.add.at(sums, self.owners, self.weights[:, np.newaxis] * self.means)
        return weights, sums


class PilotSums(NamedTuple):
    r"""Sums over rows, given a rough solution.

    Attributes
    ----------
    rough : PilotSolution
        Summary of the fold before.
    weights : ndarray of shape (k,), float64
        :math:`U(P_i)`.
    shifts : ndarray of shape (k, d), float64
        Weighted sums of the rows of every cell about its mean as the pilot has it.
    hinge, rounded : ndarray of shape (p,), float64
        Weighted sums of the hinge, and of the rounded hinge.
    slopes : ndarray of shape (p, d + 1), float64
        Weighted sums of the slopes of the rounded hinge times y times the row and one.
    totals : ndarray of shape (3,), float64
        As in `PilotSolution`.
    judges : Judges
        A sample of every class, by which draws are compared.
    """

    rough: PilotSolution
    weights: FloatArray
    shifts: FloatArray
    hinge: FloatArray
    rounded: FloatArray
    slopes: FloatArray
    totals: FloatArray
    judges: Judges


class RowTerms(NamedTuple):
    r"""Terms of rows by a rough solution: class, cell, distance, margins, length.

    Attributes
    ----------
    codes, cells : ndarray of shape (n,), int64
        Class and cell of every row.
    squares : ndarray of shape (n,), float64
        :math:`|p_\Delta|^2`, squared distance to the mean of the cell.
    margins : ndarray of shape (n, p), float64
    lengths : ndarray of shape (n,), float64
        Lengths of the rows without `origin`, with an entry of `radius` appended.
    """

    codes: IndexArray
    cells: IndexArray
    squares: FloatArray
    margins: FloatArray
    lengths: FloatArray


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
    positive = np.arange(n_classes) if n_classes > 2 else np.array([n_classes - 1])
    return np.where(codes[:, np.newaxis] == positive, 1.0, -1.0)


def row_terms(block: Block, rough: PilotSolution) -> RowTerms:
    """Class, cell, distance, margins and length of every row."""
    codes = class_codes(block, rough.classes)
    signs = signs_of(codes, len(rough.classes))
    cells = np.zeros(len(block), dtype=np.int64)
    squares, lengths = np.zeros(len(block)), np.zeros(len(block))
    margins = np.empty((len(block), len(rough.coef)))
    for rows, tile in parts(block, rough):
        cells[rows] = _cells_of(tile, codes[rows], rough)
        gaps = tile - rough.means[cells[rows]]
        squares[rows] = np.einsum("ij,ij->i", gaps, gaps)
        lengths[rows] = np.einsum("ij,ij->i", tile, tile)
        for problem, (coef, shift) in enumerate(zip(rough.coef, rough.intercept, strict=True)):
            margins[rows, problem] = np.einsum("ij,j->i", tile, coef) + shift
    margins *= signs
    return RowTerms(codes, cells, squares, margins, np.sqrt(lengths + rough.radius**2))


def _cells_of(tile: FloatArray, codes: IndexArray, rough: PilotSolution) -> IndexArray:
    cells = np.zeros(len(tile), dtype=np.int64)
    for code in np.flatnonzero(np.bincount(codes)):
        rows, owned = np.flatnonzero(codes == code), np.flatnonzero(rough.owners == code)
        cells[rows] = owned[assign(tile[rows], rough.centers[owned])[0]]
    return cells


def sums_over(
    block: Block,
    rough: PilotSolution,
    by_pilot: RowTerms,
    totals: FloatArray,
    judges: Judges,
) -> PilotSums:
    """Sum row terms over a block."""
    import scipy.sparse as sp

    d, u = len(rough.origin), block.weights
    signs = signs_of(by_pilot.codes, len(rough.classes))
    rounded = RoundedHinge(WIDTH)
    loss, slope = rounded.value(by_pilot.margins), -rounded.slope(by_pilot.margins)
    pulls = u[:, np.newaxis] * slope * signs
    shifts = np.zeros((len(rough.centers), d))
    slopes = np.zeros((len(rough.coef), d + 1))
    for rows, tile in parts(block, rough):
        gaps = u[rows, np.newaxis] * (tile - rough.means[by_pilot.cells[rows]])
        places = np.arange(len(tile))
        ones = (np.ones(len(tile)), (by_pilot.cells[rows], places))
        shifts += sp.csr_array(ones, shape=(len(shifts), len(tile))) @ gaps
        for problem in range(len(slopes)):
            slopes[problem, :d] += np.einsum("i,ij->j", pulls[rows, problem], tile)
    slopes[:, d] = pulls.sum(axis=0)
    return PilotSums(
        rough=rough,
        weights=np.bincount(by_pilot.cells, u, minlength=len(shifts)).astype(np.float64),
        shifts=shifts,
        hinge=np.einsum("i,ip->p", u, np.maximum(1.0 - by_pilot.margins, 0.0)),
        rounded=np.einsum("i,ip->p", u, loss),
        slopes=slopes,
        totals=totals,
        judges=judges,
    )


def merge_sums(first: PilotSums, second: PilotSums) -> PilotSums:
    """Add the sums over two disjoint sets of rows."""
    sums = {name: getattr(first, name) + getattr(second, name) for name in first._fields[1:-1]}
    judges = merge_judges(first.judges, second.judges, first.rough)
    return first._replace(**sums, judges=judges)


_PILOT_TOL = 1e-4


def rough_solution(
    pilot: StratifiedSample,
    n_clusters: int,
    lam: float,
    rng: np.random.Generator,
    *,
    intercept: bool,
) -> PilotSolution:
    """Solve and cluster a pilot.

    Parameters
    ----------
    pilot : StratifiedSample
    n_clusters : int
        Cells of every class. Fewer where it has fewer distinct rows.
    lam : float
    rng : numpy.random.Generator
    intercept : bool

    Returns
    -------
    PilotSolution
        With cells, costs and opt as the pilot has them. ``totals`` are ones.
    """
    origin = np.zeros(pilot.points.shape[1])
    if intercept:
        origin += np.average(pilot.points, axis=0, weights=pilot.weights)
    points, u = pilot.points - origin, pilot.weights
    tables = [
        seed_cells(points[members], u[members], n_clusters, rng).clusters.centers
        for members in (pilot.codes == code for code in range(len(pilot.classes)))
    ]
    fits = [
        solve_svm(points, y, u, lam, intercept=intercept, tol=_PILOT_TOL)
        for y in signs_of(pilot.codes, len(pilot.classes)).T
    ]
    centers = np.concatenate(tables)
    length = float(np.average((points**2).mean(axis=1), weights=u))
    rough = PilotSolution(
        classes=pilot.classes,
        origin=origin,
        coef=np.stack([fit.coef for fit in fits]),
        intercept=np.array([fit.intercept for fit in fits]),
        centers=centers,
        owners=np.repeat(np.arange(len(tables)), [len(table) for table in tables]),
        means=centers,
        weights=np.zeros(len(centers)),
        n_rows=pilot.n_rows,
        bound=min(fit.bound for fit in fits),
        opt=0.0,
        radius=math.sqrt(length) or 1.0,
        totals=np.ones(3),
        cost=np.array([fit.cost for fit in fits]),
    )
    block = Block(pilot.points, u, pilot.classes[pilot.codes])
    rough = _moved(sums_over(block, rough, row_terms(block, rough), np.ones(3), {}))
    return replace(rough, opt=_opt(rough, lam))


def exact_solution(sums: PilotSums, lam: float) -> PilotSolution:
    """Replace the pilot's estimates by sums over all the data."""
    rough = _moved(sums)
    squares = np.einsum("pj,pj->p", rough.coef, rough.coef)
    rough = replace(rough, cost=squares / 2 + lam * sums.hinge, totals=sums.totals, sums=sums)
    return replace(rough, opt=_opt(rough, lam))


def _opt(rough: PilotSolution, lam: float) -> float:
    scale = lam * rough.weight
    if len(rough.classes) < 2:
        # A part of the data that has one class only: every row may cost as much as lambda.
        return scale
    return max(min(rough.bound, float(rough.cost.min())), 1e-9 * scale)


def _moved(sums: PilotSums) -> PilotSolution:
    """Set the means and weights of the cells to the exact sums."""
    rough, used = sums.rough, sums.weights > 0.0
    centers, owners, weights = rough.centers[used], rough.owners[used], sums.weights[used]
    means = rough.means[used] + sums.shifts[used] / weights[:, np.newaxis]
    return replace(rough, centers=centers, owners=owners, means=means, weights=weights)
