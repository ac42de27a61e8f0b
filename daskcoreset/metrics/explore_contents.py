"""What the page of `explore` shows."""

from __future__ import annotations

from typing import Any, NamedTuple

from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

# The name that rare labels share, the last one where there are too many for colours.
OTHERS = "others"


class Clusters(NamedTuple):
    """Clusters for one number of them, with what a further coreset may differ by.

    Attributes
    ----------
    labels : ndarray of shape (m,), int64
    shares, share_errors : ndarray of shape (k,), float64
        Share of the weight of all data, and half its 95 % interval.
    means, mean_errors : ndarray of shape (k, columns), float64
    """

    labels: IndexArray
    shares: FloatArray
    share_errors: FloatArray
    means: FloatArray
    mean_errors: FloatArray


class Contents(NamedTuple):
    """What a page shows.

    Attributes
    ----------
    names : list of str
        Of the values: principal axes, and columns.
    positions : ndarray of shape (r,), int64
        Rows of the coreset that are drawn.
    values : ndarray of shape (r, names), float32
    weights : ndarray of shape (r,), float64
    indices : ndarray of shape (r,), int64
        Rows of the data.
    classes : list of str
        Labels, the most common first; empty without labels, or where they are numbers.
    labels : ndarray of shape (r,), or None
        Positions in `classes`, or the numbers themselves.
    where : list of str
        Coordinates of the rows, where they have some.
    rare : list of str or None
        Labels of the rows whose class is `OTHERS`, None for other rows; empty without that class.
    clusters : list of Clusters
        For 1, 2, ... of them; labels of the rows that are drawn.
    facts : dict of str to object
        n, m, total weight, method, whether all rows are there, and clusters to begin with.
    """

    names: list[str]
    positions: IndexArray
    values: FloatArray
    weights: FloatArray
    indices: IndexArray
    classes: list[str]
    labels: AnyArray | None
    clusters: list[Clusters]
    where: list[str]
    rare: list[str | None]
    facts: dict[str, Any]
