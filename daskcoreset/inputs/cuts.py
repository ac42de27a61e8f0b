"""How rows are cut into blocks, and how large blocks are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from daskcoreset.errors import InvalidInputError

# Block size aimed at: small enough for memory, large enough to hide a task's overhead.
TARGET_BYTES = 32 * 2**20

# Chunks below this are grouped when there are many of them.
SMALL_BYTES = 8 * 2**20

# Chunks above this are split.
HUGE_BYTES = 256 * 2**20

# An array in memory up to this is one block, which takes no scheduler; a larger one is cut, so that
# all cores work on it.
MEMORY_BYTES = 2 * TARGET_BYTES

# So many chunks cost nothing, however small they are.
FEW_BLOCKS = 64

# Blocks at most, unless the caller cuts them: a scheduler takes about 6 KB a task.
MAX_BLOCKS = 100_000

# A list of more blocks takes gigabytes, and minutes, before the first is read.
_MOST_BLOCKS = 10**7


def even_cut(n_rows: int, rows: int) -> tuple[int, ...]:
    """Cut `n_rows` into blocks of exactly `rows`, the last one of the rest.

    Examples
    --------
    >>> even_cut(10, 4)
    (4, 4, 2)
    """
    full, remainder = divmod(n_rows, rows)
    if full > _MOST_BLOCKS:
        raise InvalidInputError(
            f"X has {n_rows:,} rows, which chunks of {rows} cut into {full:,} blocks",
            argument="X",
            remedy="pass larger chunks, or check the shape in the store",
        )
    return (rows,) * full + ((remainder,) if remainder else ())


def cut_chunks(chunks: Iterable[int], joined: int | None, most: int, part: int) -> tuple[int, ...]:
    """Join neighbours of up to `joined` rows, and split chunks of more than `most` evenly.

    Examples
    --------
    >>> cut_chunks([2, 2, 2, 9], 4, 8, 3)
    (4, 2, 3, 3, 3)
    """
    sizes: list[int] = []
    for size in chunks:
        if joined is not None and sizes and sizes[-1] + size <= joined:
            sizes[-1] += size
        else:
            parts = -(-size // part) if size > most else 1
            sizes += [size // parts + (i < size % parts) for i in range(parts)]
    return tuple(sizes)


def automatic_cut(X: Any, row_bytes: int) -> tuple[int, ...]:
    """Return the rows of blocks of what is stored together, joined if small, split if huge.

    Parameters
    ----------
    X : RowArray or dask.array.Array
    row_bytes : int
        Bytes of a row.
    """
    n_rows = int(X.shape[0])
    # So that there are few enough blocks, however neighbours are joined.
    least = max(1, -(-2 * n_rows // MAX_BLOCKS))
    target, huge = max(least, TARGET_BYTES // row_bytes), max(least, HUGE_BYTES // row_bytes)
    if hasattr(X, "__dask_graph__"):
        n_chunks = len(X.chunks[0])
        small = n_chunks > FEW_BLOCKS and n_rows * row_bytes < n_chunks * SMALL_BYTES
        joined = target if small or n_chunks > MAX_BLOCKS else None
        return cut_chunks(X.chunks[0], joined, max(target, huge), target)
    if X.in_memory and n_rows * row_bytes <= MEMORY_BYTES:
        return (n_rows,)
    if least <= X.granularity and SMALL_BYTES <= X.granularity * row_bytes <= TARGET_BYTES:
        # What is stored together is a block already; two at a time would be decoded into twice
        # the memory, and copied.
        target = X.granularity
    sizes: tuple[int, ...] = X.block_sizes(target, huge)
    return sizes
