"""Anything array-like, brought to row blocks of ``(X, y, sample_weight)``.

What Dask already holds stays a Dask collection, its chunks merged, split or grouped.
Everything else becomes tasks that read their own rows (`daskcoreset.sources`). Nothing is
computed and no row is read here.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from daskcoreset.blocks import Rules, promoted_dtype
from daskcoreset.errors import InvalidInputError, InvalidTypeError
from daskcoreset.opening import is_dask_array, is_sparse, open_all
from daskcoreset.sources import ArraySource, FrameSource, Loader, Source

__all__ = ["BlockSpec", "RowBlocks", "row_blocks"]

TARGET_BYTES = 32 * 2**20
"""Block size aimed at: small enough for memory, large enough to hide a task's overhead."""

SMALL_BYTES = 8 * 2**20
"""Chunks below this are grouped when there are many of them."""

HUGE_BYTES = 256 * 2**20
"""Chunks above this are split."""

FEW_BLOCKS = 64
"""So many chunks cost nothing, however small they are."""


@dataclass(frozen=True)
class BlockSpec:
    """The number of a block and the loaders of the parts that are not Dask collections."""

    number: int
    X: Loader | None = None
    y: Loader | None = None
    sample_weight: Loader | None = None


@dataclass(frozen=True, eq=False)
class RowBlocks:
    """The data, cut into blocks of rows.

    Attributes
    ----------
    rules : Rules
        Number of features, promoted dtype, treatment of invalid rows.
    specs : tuple of BlockSpec
        One for every block.
    sizes : tuple of int, or None
        Rows of every block; None where Dask does not know them.
    arrays : dict
        Dask arrays among ``"X"``, ``"y"``, ``"sample_weight"``, with these row chunks.
    has_labels, sparse : bool
    stored_bytes : int or None
        Bytes of all parts once decoded; None when the number of rows is unknown.
    name : str or None
        Where the rows come from.
    columns : tuple of str or None
    """

    rules: Rules
    specs: tuple[BlockSpec, ...]
    sizes: tuple[int, ...] | None
    arrays: dict[str, Any]
    has_labels: bool
    sparse: bool
    stored_bytes: int | None
    name: str | None
    columns: tuple[str, ...] | None
    in_memory: bool

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.specs)

    @property
    def n_rows(self) -> int | None:
        """Number of rows, or None when it is unknown before reading."""
        return None if self.sizes is None else sum(self.sizes)

    def select(self, positions: list[int]) -> RowBlocks:
        """Return some of the blocks; they keep their numbers."""
        return replace(
            self,
            specs=tuple(self.specs[i] for i in positions),
            sizes=None if self.sizes is None else tuple(self.sizes[i] for i in positions),
            arrays={name: array.blocks[positions] for name, array in self.arrays.items()},
        )


def row_blocks(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    chunks: int | Literal["auto"] = "auto",
    on_invalid: Literal["raise", "drop"] = "raise",
) -> RowBlocks:
    """Bring any input to row blocks.

    Parameters
    ----------
    X : array-like of shape (n, d), or path
        See `daskcoreset.build` for what is accepted.
    y, sample_weight : array-like of shape (n,), str or None
        A string names a member of the same Zarr group, data frame, Parquet or .npz file.
    chunks : int or "auto", default="auto"
        Rows per block. "auto" keeps the chunks of a store or Dask array where they are
        reasonable (8 to 256 MiB) and aims at 32 MiB otherwise.
    on_invalid : {"raise", "drop"}, default="raise"
        What becomes of rows with NaN or infinity.

    Returns
    -------
    RowBlocks

    Raises
    ------
    InvalidInputError
        For a wrong number of dimensions, no rows or columns, lengths that differ.
    InvalidTypeError
        For types and dtypes that hold no real numbers.

    Examples
    --------
    >>> blocks = row_blocks(np.zeros((10, 3), dtype=np.int16), chunks=4)
    >>> blocks.sizes, blocks.rules.dtype
    ((4, 4, 2), dtype('float32'))
    """
    _check_options(chunks, on_invalid)
    parts = open_all(X, y, sample_weight)
    rows_wanted = None if chunks == "auto" else int(chunks)
    n_features = int(parts["X"].shape[1])
    dtype = promoted_dtype(parts["X"].dtype)
    parts, sizes = _align(parts, rows_wanted, n_features * dtype.itemsize)
    arrays = {name: part for name, part in parts.items() if is_dask_array(part)}
    n_blocks = len(sizes) if sizes is not None else parts["X"].numblocks[0]
    source = parts["X"]
    return RowBlocks(
        rules=Rules(n_features, dtype, on_invalid),
        specs=_specs(parts, sizes, n_blocks),
        sizes=sizes,
        arrays=arrays,
        has_labels="y" in parts,
        sparse=is_sparse(source),
        stored_bytes=_stored_bytes(parts, sizes),
        name=_name_of(X, source),
        columns=getattr(source, "columns", None),
        in_memory=all(isinstance(part, (ArraySource, FrameSource)) for part in parts.values()),
    )


def _check_options(chunks: Any, on_invalid: Any) -> None:
    if chunks != "auto" and (isinstance(chunks, bool) or not isinstance(chunks, (int, np.integer))):
        raise InvalidTypeError(
            f'chunks must be a number of rows or "auto", got {chunks!r}; pass an int.'
        )
    if chunks != "auto" and chunks < 1:
        raise InvalidInputError(f"chunks must be at least 1 row, got {chunks}; pass a larger int.")
    if on_invalid not in ("raise", "drop"):
        raise InvalidInputError(
            f'on_invalid must be "raise" or "drop", got {on_invalid!r}; pass one of these.'
        )


def _align(
    parts: dict[str, Any], rows_wanted: int | None, row_bytes: int
) -> tuple[dict[str, Any], tuple[int, ...] | None]:
    """Give all parts the same row blocks; sizes are None where Dask does not know them."""
    X = parts["X"]
    if not is_dask_array(X):
        default = max(1, TARGET_BYTES // row_bytes)
        if isinstance(X, (ArraySource, FrameSource)) and X.shape[0] * row_bytes <= HUGE_BYTES:
            default = X.shape[0]  # of moderate size in memory: one block, no scheduler
        sizes = X.cut(rows_wanted or default)
        return _rechunked(parts, sizes), sizes
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    known = not any(np.isnan(X.chunks[0]))
    if known:
        sizes = _row_chunks(X.chunks[0], rows_wanted, row_bytes)
        return _rechunked({**parts, "X": X}, sizes), sizes
    _check_unknown(parts, X.numblocks[0])
    return {**parts, "X": X}, None


def _row_chunks(
    chunks: tuple[int, ...], rows_wanted: int | None, row_bytes: int
) -> tuple[int, ...]:
    if rows_wanted is not None:
        full, rest = divmod(sum(chunks), rows_wanted)
        return (rows_wanted,) * full + ((rest,) if rest else ())
    crowded = len(chunks) > FEW_BLOCKS and sum(chunks) * row_bytes < len(chunks) * SMALL_BYTES
    target = max(1, TARGET_BYTES // row_bytes)
    huge = max(1, HUGE_BYTES // row_bytes)
    sizes: list[int] = []
    for size in chunks:
        if crowded and sizes and sizes[-1] + size <= target:
            sizes[-1] += size
        elif size > huge:
            pieces = -(-size // target)
            sizes += [size // pieces + (i < size % pieces) for i in range(pieces)]
        else:
            sizes.append(size)
    return tuple(sizes)


def _rechunked(parts: dict[str, Any], sizes: tuple[int, ...]) -> dict[str, Any]:
    aligned = {}
    for name, part in parts.items():
        if is_dask_array(part) and any(np.isnan(part.chunks[0])):
            raise InvalidInputError(
                f"{name} has unknown chunk sizes but X has known ones; call "
                f"{name}.compute_chunk_sizes() first, so that their rows can be paired."
            )
        if is_dask_array(part) and part.chunks[0] != sizes:
            part = part.rechunk({0: sizes})  # noqa: PLW2901
        aligned[name] = part
    return aligned


def _check_unknown(parts: dict[str, Any], n_blocks: int) -> None:
    for name, part in parts.items():
        if not is_dask_array(part):
            raise InvalidInputError(
                f"X has unknown chunk sizes, so an in-memory or stored {name} cannot be paired "
                f"with its rows; call X.compute_chunk_sizes() first, or pass {name} as a Dask "
                f"collection with the same partitions."
            )
        if part.numblocks[0] != n_blocks:
            raise InvalidInputError(
                f"{name} has {part.numblocks[0]} blocks but X has {n_blocks}, of unknown sizes; "
                f"give both the same partitions."
            )


def _specs(
    parts: dict[str, Any], sizes: tuple[int, ...] | None, n_blocks: int
) -> tuple[BlockSpec, ...]:
    sources = {name: part for name, part in parts.items() if isinstance(part, Source)}
    if sizes is None or not sources:
        return tuple(BlockSpec(number) for number in range(n_blocks))
    specs, start = [], 0
    for number, size in enumerate(sizes):
        stop = start + size
        loaders = {name: source.loader(start, stop) for name, source in sources.items()}
        specs.append(BlockSpec(number, **loaders))
        start = stop
    return tuple(specs)


def _stored_bytes(parts: dict[str, Any], sizes: tuple[int, ...] | None) -> int | None:
    if sizes is None:
        return None
    total = 0
    for part in parts.values():
        held: Any = getattr(part, "array", None)
        if hasattr(held, "indptr"):
            total += held.data.nbytes + held.indices.nbytes + held.indptr.nbytes
        else:
            itemsize = np.dtype(part.dtype).itemsize
            total += itemsize * int(np.prod(part.shape, dtype=np.int64))
    return total


def _name_of(X: Any, source: Any) -> str | None:
    if isinstance(source, Source) and source.name:
        return source.name
    if isinstance(X, (str, os.PathLike)):
        return os.fspath(X)
    # The name of a Dask array is a hash, and tells nobody where it came from.
    name = None if is_dask_array(X) else getattr(X, "name", None)
    return name if isinstance(name, str) else None
