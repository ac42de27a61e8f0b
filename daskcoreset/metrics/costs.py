"""Costs and errors over data of any size, with one pass for any number of solutions."""

from __future__ import annotations

from operator import add
from typing import Any, Literal

from daskcoreset.core.block import Block
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.invalid import find_unusable_row, refuse
from daskcoreset.core.tables import counted
from daskcoreset.core.validation import columns_error
from daskcoreset.errors import InvalidInputError
from daskcoreset.execution.engine import map_reduce
from daskcoreset.inputs.blocks import RowBlocks, row_blocks
from daskcoreset.objectives import QuantizationError, total_costs


def kmeans_cost(X: Any, centers: Any, sample_weight: Any = None) -> Any:
    r"""Compute the k-means cost :math:`\sum_x u(x) \min_{q \in Q} |x - q|^2` on all rows.

    See :doc:`/guides/clusters`.

    One pass over the data serves any number of solutions.

    Parameters
    ----------
    X : array-like of shape (n, d), path, URL, or Rows
        Any X of `daskcoreset.build`, read block by block. ``open_rows(X, unit_length=True)``
        divides rows by their lengths.
    centers : array-like of shape (k, d), or sequence of such
        One solution, or several.
    sample_weight : array-like of shape (n,), optional
        Weights u of the rows. Default: ones.

    Returns
    -------
    float, or ndarray of shape (n_solutions,), float64
        One cost for one solution, else one per solution. Distances are differences in float64, so
        float32 data with a large offset lose no digits.

    Raises
    ------
    InvalidInputError
        If `centers` has another number of columns than X, or is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> kmeans_cost(np.array([[0.0], [1.0], [5.0]]), [[0.0], [5.0]])
    1.0
    >>> kmeans_cost(np.array([[0.0], [1.0]]), [np.zeros((1, 1)), np.ones((1, 1))])
    array([1., 1.])

    References
    ----------
    Bachem, Lucic and Krause (2018), section 2.
    """
    blocks = row_blocks(X, None, sample_weight)
    cost = QuantizationError()
    several = cost.several(centers, "centers")
    solutions = [cost.read(one, blocks.schema.n_features, "centers") for one in several]
    costs = map_reduce(blocks, total_costs, add, broadcast=(cost, solutions)).value
    return float(costs[0]) if several[0] is centers else costs


def check_usable(rows: Block, name: str = "coreset.points") -> None:
    """Check that no square overflows. Hand-made coresets may have such values."""
    refuse(find_unusable_row(rows.points, rows.weights, name=name))


def data_of(
    coreset: Coreset,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    chunks: int | Literal["auto"] = "auto",
    on_invalid: Literal["raise", "drop"] | None,
) -> RowBlocks:
    """Open the data of a coreset. The default of `on_invalid` is that of the build."""
    if on_invalid is None:
        on_invalid = "drop" if coreset.provenance.get("n_dropped") else None
    known = coreset.provenance.get("columns")
    blocks = row_blocks(X, y, sample_weight, chunks=chunks, on_invalid=on_invalid)
    blocks, columns = blocks.by(coreset.metric), blocks.columns
    if known is not None and columns is not None and [*known] != [*columns]:
        raise columns_error(columns, known, "the coreset", selects=blocks.cube is None)
    if blocks.schema.n_features != coreset.n_features:
        raise InvalidInputError(
            f"X has {counted(blocks.schema.n_features, 'column')} and the coreset "
            f"{coreset.n_features}",
            argument="X",
            remedy="pass the data of the coreset",
        )
    return blocks
