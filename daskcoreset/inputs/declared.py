"""Dask arrays whose blocks are checked against what their chunks declare."""

from __future__ import annotations

from functools import partial
from typing import Any

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.validation import a_type


def with_declared_shapes(array: Any, name: str) -> Any:
    """Return the array, whose blocks raise an error where they are not as long as they declare."""
    # Not of expressions, whatever Dask is set to.
    from dask.array.blockwise import blockwise
    from dask.array.utils import meta_from_array
    from dask.layers import ArrayBlockIdDep, ArrayChunkShapeDep

    axes = tuple(range(array.ndim))
    return blockwise(
        partial(_declared_shape, name),
        axes,
        array,
        axes,
        ArrayBlockIdDep(array.chunks),
        axes,
        ArrayChunkShapeDep(array.chunks),
        axes,
        align_arrays=False,
        meta=meta_from_array(array),
    )


def _declared_shape(
    name: str, block: Any, position: tuple[int, ...], declared: tuple[int, ...]
) -> Any:
    shape = getattr(block, "shape", None)
    if not isinstance(shape, tuple):
        raise InvalidInputError(
            f"{name} has {a_type(block)} in place of an array in its block {position}; "
            f"return numpy.asarray of it there."
        )
    if shape != tuple(declared):
        raise InvalidInputError(
            f"{name} has shape {shape} in its block {position}, whose chunks declare "
            f"{tuple(declared)}; make the chunks of {name} agree with its blocks."
        )
    return block
