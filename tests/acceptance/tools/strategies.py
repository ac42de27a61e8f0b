"""Hypothesis strategies that make arrays in chunks, for any test that wants them."""

from __future__ import annotations

from typing import Any

import dask.array as da
import hypothesis.extra.numpy as hnp
import numpy as np
from hypothesis import strategies as st


@st.composite
def chunks_of(
    draw: st.DrawFn, length: int, *, max_chunks: int = 6, empty: bool = True
) -> tuple[int, ...]:
    """Cut `length` into at most `max_chunks` chunks, empty ones among them where allowed."""
    first, last = (0, length) if empty else (1, length - 1)
    positions = st.integers(first, max(first, last))
    cuts = draw(st.lists(positions, max_size=max_chunks - 1, unique=not empty).map(sorted))
    if not empty:
        cuts = [cut for cut in cuts if 0 < cut < length]
    return tuple(np.diff([0, *cuts, length]).tolist())


@st.composite
def chunkings(
    draw: st.DrawFn, shape: tuple[int, ...], *, empty: bool = True
) -> tuple[tuple[int, ...], ...]:
    """Chunks of an array of `shape`: rows in any chunks, other axes in chunks that hold some."""
    rows = draw(chunks_of(shape[0], empty=empty))
    return (rows, *(draw(chunks_of(length, max_chunks=3, empty=False)) for length in shape[1:]))


def real_dtypes() -> st.SearchStrategy[Any]:
    """Dtypes of real numbers, either byte order."""
    return st.one_of(
        hnp.floating_dtypes(sizes=(16, 32, 64), endianness="?"),
        hnp.integer_dtypes(endianness="?"),
        hnp.unsigned_integer_dtypes(endianness="?"),
        hnp.boolean_dtypes(),
    )


@st.composite
def matrices(
    draw: st.DrawFn,
    *,
    dtypes: st.SearchStrategy[Any] | None = None,
    max_rows: int = 60,
    max_columns: int = 4,
) -> Any:
    """Finite matrices of real numbers, with duplicates and constant columns among them."""
    shape = draw(st.tuples(st.integers(1, max_rows), st.integers(1, max_columns)))
    dtype = np.dtype(draw(real_dtypes() if dtypes is None else dtypes))
    if dtype.kind == "f":
        # Numbers whose squares stay finite even in single precision.
        elements: Any = st.integers(-1000, 1000).map(lambda number: number / 8)
    elif dtype.kind in "iu" and dtype.itemsize == 8:  # that float64 holds
        elements = hnp.from_dtype(dtype, min_value=-(2**53) * (dtype.kind == "i"), max_value=2**53)
    else:
        elements = hnp.from_dtype(dtype)
    return draw(hnp.arrays(dtype, shape, elements=elements))


@st.composite
def dask_arrays(draw: st.DrawFn, matrix: st.SearchStrategy[Any] | None = None) -> tuple[Any, Any]:
    """Draw a matrix, and the same as a Dask array in any chunks, of unknown sizes or not."""
    rows_in_memory = draw(matrices() if matrix is None else matrix)
    array = da.from_array(rows_in_memory, chunks=draw(chunkings(rows_in_memory.shape)))
    if draw(st.booleans()):
        rows = (np.nan,) * array.numblocks[0]
        array = da.Array(array.dask, array.name, (rows, *array.chunks[1:]), meta=array._meta)
    return rows_in_memory, array
