"""Weighted points as named arrays with named dimensions: their form in stores and datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import scipy.sparse as sp

from daskcoreset.core.points import WeightedPoints

if TYPE_CHECKING:
    from collections.abc import Mapping

    from daskcoreset.core.typing import AnyArray

__all__ = ["decode", "encode"]

_CSR = {"points_data": "nonzero", "points_indices": "nonzero", "points_indptr": "bound"}
_VECTORS = ("weights", "indices", "labels")


def encode(
    part: WeightedPoints,
) -> tuple[dict[str, AnyArray], dict[str, tuple[str, ...]], dict[str, Any]]:
    """Name the arrays of weighted points, without copying.

    Parameters
    ----------
    part : WeightedPoints
        The rows.

    Returns
    -------
    arrays : dict of str to ndarray
        ``points`` of shape (m, d), or for sparse points the vectors ``points_data``,
        ``points_indices`` and ``points_indptr`` of their CSR form; ``weights``, ``indices``
        and, if there are any, ``labels``.
    dims : dict of str to tuple of str
        Dimension names of each: ``row`` and ``feature``; ``nonzero`` and ``bound`` in CSR.
    attributes : dict
        ``points_shape``, [m, d], for sparse points.

    Examples
    --------
    >>> import numpy as np
    >>> encode(WeightedPoints(np.eye(2), np.ones(2), np.arange(2)))[1]["points"]
    ('row', 'feature')
    """
    if sp.issparse(part.points):
        points = {name: getattr(part.points, name.removeprefix("points_")) for name in _CSR}
        dims: dict[str, tuple[str, ...]] = {name: (dim,) for name, dim in _CSR.items()}
        attributes: dict[str, Any] = {"points_shape": list(part.points.shape)}
    else:
        points, dims, attributes = {"points": part.points}, {"points": ("row", "feature")}, {}
    vectors = {name: getattr(part, name) for name in _VECTORS if getattr(part, name) is not None}
    return points | vectors, dims | dict.fromkeys(vectors, ("row",)), attributes


def decode(arrays: Mapping[str, AnyArray], attributes: Mapping[str, Any]) -> WeightedPoints:
    """Rebuild what `encode` took apart.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        The arrays, all of them and no others.
    attributes : mapping
        The attributes; others are ignored.

    Returns
    -------
    WeightedPoints
        The rows.

    Raises
    ------
    KeyError
        An array is missing.
    TypeError, ValueError
        Arrays are not of this form or do not fit together; `InvalidInputError` and
        `InvalidTypeError` are among these.

    Examples
    --------
    >>> import numpy as np
    >>> part = WeightedPoints(np.eye(2), np.ones(2), np.arange(2))
    >>> decode(*encode(part)[::2]).equals(part)
    True
    """
    left = dict(arrays)
    if "points_shape" in attributes:
        csr = tuple(left.pop(name) for name in _CSR)
        points = sp.csr_array(csr, shape=tuple(attributes["points_shape"]))
    else:
        points = left.pop("points")
    weights, indices, labels = left.pop("weights"), left.pop("indices"), left.pop("labels", None)
    if left:
        msg = f"unknown arrays {sorted(left)}"
        raise ValueError(msg)
    return WeightedPoints(points, weights, indices, labels)
