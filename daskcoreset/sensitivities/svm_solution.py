r"""Rough solutions behind SVM coresets: of a pilot, and with exact sums over all the data."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from daskcoreset.core.blocks import Block
from daskcoreset.solvers.clusters import seed_clusters
from daskcoreset.solvers.linear import solve_svm
from daskcoreset.sensitivities.svm_rough import Rough, Sums, look, signs_of, sums_over

if TYPE_CHECKING:
    from daskcoreset.core.strata import Pilot

__all__ = ["exact_solution", "rough_solution"]

_PILOT_TOL = 1e-4


def rough_solution(
    pilot: Pilot, n_clusters: int, lam: float, rng: np.random.Generator, *, intercept: bool
) -> Rough:
    """Solve and cluster a pilot.

    Parameters
    ----------
    pilot : Pilot
    n_clusters : int
        Cells of every class; fewer where it has fewer distinct rows.
    lam : float
    rng : numpy.random.Generator
    intercept : bool

    Returns
    -------
    Rough
        With cells, costs and opt as the pilot has them; ``totals`` are ones.
    """
    origin = np.zeros(pilot.points.shape[1])
    if intercept:
        origin += np.average(pilot.points, axis=0, weights=pilot.weights)
    points, u = pilot.points - origin, pilot.weights
    tables = [
        seed_clusters(points[own], u[own], n_clusters, rng).centers
        for own in (pilot.codes == code for code in range(len(pilot.classes)))
    ]
    fits = [
        solve_svm(points, y, u, lam, intercept=intercept, tol=_PILOT_TOL)
        for y in signs_of(pilot.codes, len(pilot.classes)).T
    ]
    centers = np.concatenate(tables)
    length = float(np.average((points**2).mean(axis=1), weights=u))
    rough = Rough(
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
    rough = _moved(sums_over(block, rough, look(block, rough), np.ones(3)))
    return replace(rough, opt=_opt(rough, lam))


def exact_solution(sums: Sums, lam: float) -> Rough:
    """Put sums over all the data in the place of the pilot's estimates."""
    rough = _moved(sums)
    squares = np.einsum("pj,pj->p", rough.coef, rough.coef)
    rough = replace(rough, cost=squares / 2 + lam * sums.hinge, totals=sums.totals, sums=sums)
    return replace(rough, opt=_opt(rough, lam))


def _opt(rough: Rough, lam: float) -> float:
    scale = lam * rough.weight
    if len(rough.classes) < 2:
        # A part of the data that has one class only: every row may cost as much as lambda.
        return scale
    return max(min(rough.bound, float(rough.cost.min())), 1e-9 * scale)


def _moved(sums: Sums) -> Rough:
    """Move the means and weights of the cells to what was summed up."""
    rough, used = sums.rough, sums.weights > 0.0
    return replace(
        rough,
        centers=rough.centers[used],
        owners=rough.owners[used],
        means=rough.means[used] + sums.shifts[used] / sums.weights[used, np.newaxis],
        weights=sums.weights[used],
    )
