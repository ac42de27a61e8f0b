"""Core points of kernel machines, and the rows of the past that stand at them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskcoreset.core.blocks import Block
from daskcoreset.constructions.coverage.cover import Cells, cover
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.core.typing import AnyArray, FloatArray

__all__ = ["CorePoints", "nearest_gaps", "past_rows", "thinned"]


@dataclass(frozen=True, eq=False)
class CorePoints:
    """Core points, and the rows of the past that they stand for.

    Attributes
    ----------
    points : ndarray of shape (r, d)
    diameter : float
        What is promised of rows that were seen already.
    measured : bool
        Whether the rows at hand are to say how far they are from the core points.
    table : ndarray of shape (r, n_classes), float64, or None
        Weight of every class that stands at a core point.
    drawn : Block or None
        Rows to train on that were drawn in the same read.
    """

    points: AnyArray
    diameter: float = 0.0
    measured: bool = True
    table: FloatArray | None = None
    drawn: Block | None = None


def thinned(
    points: AnyArray, table: FloatArray, start: FloatArray, most: int, cells: Cells
) -> tuple[CorePoints, float, FloatArray]:
    """Cover core points by fewer of them, with larger cells.

    Parameters
    ----------
    points : ndarray of shape (r, d)
    table : ndarray of shape (r, n_classes), float64
        Weight of every class that stands at a core point.
    start : ndarray of shape (r, K), float64
        Coefficients.
    most : int
    cells : {"euclidean", "chebyshev"}

    Returns
    -------
    core : CorePoints
        With what stood at the core points that are gone at the nearest that is left.
    diameter : float
        Of the cells.
    start : ndarray of shape (r', K), float64
    """
    found = cover(row_blocks(points), max_points=most, cells=cells)
    nearest = found.nearest(points)[0]
    moved = np.zeros((len(found.points), table.shape[1]))
    np.add.at(moved, nearest, table)
    carried = np.zeros((len(found.points), start.shape[1]))
    np.add.at(carried, nearest, start)
    return CorePoints(found.points, table=moved), found.diameter, carried


def past_rows(points: FloatArray, table: FloatArray, labels: AnyArray) -> Block:
    """Rows that stand for those of the past: core points, with the weight of every class."""
    which, codes = np.nonzero(table)
    return Block(points[which], table[which, codes], np.asarray(labels)[codes]).all_rows()


def nearest_gaps(points: AnyArray, old: AnyArray, cells: str) -> FloatArray:
    """Distance of every point from the nearest of the old ones, in the metric of the cells."""
    from scipy.spatial import cKDTree  # noqa: PLC0415 - only for partial_fit

    p = np.inf if cells == "chebyshev" else 2
    gaps, _ = cKDTree(np.asarray(old, dtype=np.float64)).query(
        np.asarray(points, dtype=np.float64), p=p
    )
    return np.asarray(gaps, dtype=np.float64)
