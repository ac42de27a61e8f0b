"""The loop that reads every number of a block for each pass, compiled by numba."""

from __future__ import annotations

from daskcoreset.core.compiled import ROW_SUMS, jit  # one way of compiling for the whole package
from daskcoreset.core.typing import AnyArray, FloatArray

__all__ = ["inner_products"]


@jit(ROW_SUMS)
def inner_products(
    points: AnyArray, vectors: FloatArray, out: FloatArray
) -> None:  # pragma: no cover - runs compiled
    """Fill `out` with the product of every row with every vector, in float64."""
    for i in range(points.shape[0]):
        for k in range(vectors.shape[0]):
            total = 0.0
            for j in range(points.shape[1]):
                total += points[i, j] * vectors[k, j]
            out[i, k] = total
