"""Blocks as tasks, random streams of blocks, and checks of arguments, for all generators."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import dask.array as da
import numpy as np
from dask.base import tokenize

from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.typing import AnyArray
from daskcoreset.core.validation import is_int, is_number, shown

if TYPE_CHECKING:
    import numpy.typing as npt

# Rows per block, or ``"auto"`` for blocks of about 16 MiB.
Chunks: TypeAlias = int | Literal["auto"]

_AUTO_BYTES = 16 * 2**20
_MAX_BLOCKS = 10**7  # a tuple of more chunks is itself out of proportion
# Rows are made block by block; columns and clusters lie in memory, as matrices of both.
_MAX_ROWS, _MAX_SIDE = 2**48, 2**20
_NAMESPACE = 0xDA7A  # keeps these streams apart from those of a build with the same seed


class Part(enum.IntEnum):
    """Purpose of a random stream; the values determine the bits."""

    CENTERS = 0
    LABELS = 1
    POINTS = 2


# ``make(block, start, stop)``: rows ``start`` to ``stop``, one block; must pickle.
MakeRows: TypeAlias = "Callable[[int, int, int], AnyArray]"


class Recipe(Protocol):
    """Rows and their labels, block by block; a frozen dataclass, which pickles."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the points."""

    def points(self, block: int, start: int, stop: int, /) -> AnyArray:
        """Return the points of one block."""

    def labels(self, block: int, start: int, stop: int, /) -> AnyArray:
        """Return the labels of one block."""


def block_stream(seed: int, part: Part, block: int = 0) -> np.random.Generator:
    """Return the generator of one part of one block, independent of every other one.

    Parameters
    ----------
    seed : int
        Root seed, as returned by `daskcoreset.core.random.resolve_seed`.
    part : Part
        What the numbers are for.
    block : int, default=0
        Number of the block; 0 for what is drawn when the array is defined.
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(_NAMESPACE, int(part), block))
    return np.random.Generator(np.random.PCG64(sequence))


def lazy_rows(
    make: MakeRows, *, kind: str, rows: int, shape: tuple[int, ...], dtype: npt.DTypeLike
) -> da.Array:
    """Turn a maker of rows into an array with one task for each block and no compute.

    Parameters
    ----------
    make : callable
        Called with the number of the block and its first and last-but-one row number.
        A method of a frozen dataclass: its fields name the array, so two arrays defined
        alike are one and the same for Dask.
    kind : str
        First part of the name that dashboards show.
    rows : int
        Rows per block; the last block may be smaller.
    shape : tuple of int
        ``(n,)`` or ``(n, d)``. Columns are never split.
    dtype : dtype
        Of the blocks that `make` returns.

    Returns
    -------
    dask.array.Array
        Its graph is one blockwise layer, which fuses with blockwise work on top.
    """
    n, *columns = shape
    full, remainder = divmod(n, rows)
    row_chunks = (rows,) * full + ((remainder,) if remainder else ())
    array: da.Array = da.map_blocks(
        _make_block,
        make=make,
        n=n,
        rows=rows,
        chunks=(row_chunks, *((width,) for width in columns)),
        dtype=dtype,
        meta=np.empty((0,) * len(shape), dtype=dtype),
        name=f"{kind}-{tokenize(make, shape, rows, np.dtype(dtype))}",
    )
    return array


def lazy_arrays(
    recipe: Recipe,
    kind: str,
    chunks: Chunks,
    *,
    shape: tuple[int, int],
    label_dtype: npt.DTypeLike = np.int64,
) -> tuple[da.Array, da.Array]:
    """Return points and labels as lazy arrays whose names begin with `kind`."""
    n, d = shape
    rows = rows_per_block(chunks, n=n, d=d, dtype=recipe.dtype)
    return (
        lazy_rows(recipe.points, kind=kind, rows=rows, shape=(n, d), dtype=recipe.dtype),
        lazy_rows(recipe.labels, kind=f"{kind}-labels", rows=rows, shape=(n,), dtype=label_dtype),
    )


def _make_block(*, make: MakeRows, n: int, rows: int, block_id: tuple[int, ...]) -> AnyArray:
    block = block_id[0]
    start = block * rows
    return make(block, start, min(n, start + rows))


def rows_per_block(chunks: Chunks, *, n: int, d: int, dtype: np.dtype[Any]) -> int:
    """Check `chunks` and return the number of rows that it means.

    Raises
    ------
    InvalidInputError
        If `chunks` is neither ``"auto"`` nor a positive integer, or means more than ten
        million blocks.
    """
    if isinstance(chunks, str):
        if chunks != "auto":
            raise InvalidInputError(
                f"chunks must be 'auto' or a number of rows, got {chunks!r}; "
                "pass for example chunks=100_000."
            )
        rows = _AUTO_BYTES // (d * dtype.itemsize)
    else:
        rows = check_count("chunks", chunks, minimum=1)
    rows = max(1, min(n, rows))
    if n > rows * _MAX_BLOCKS:
        raise InvalidInputError(
            f"chunks must give at most {_MAX_BLOCKS:,} blocks, got {rows:,} rows per block for "
            f"{n:,} rows; pass more rows per block or ask for fewer rows."
        )
    return rows


def check_count(name: str, value: Any, *, minimum: int) -> int:
    """Return `value` as an int, after a check."""
    if not is_int(value):
        raise InvalidTypeError(
            f"{name} must be an integer, got {shown(value)} of type {type(value).__name__}; "
            f"pass an integer of at least {minimum}."
        )
    if value < minimum:
        raise InvalidInputError(
            f"{name} must be at least {minimum}, got {value}; pass a larger number."
        )
    if value > (maximum := _MAX_ROWS if name == "n" else _MAX_SIDE):
        raise InvalidInputError(
            f"{name} must be at most {maximum:,}, got {shown(value)}; pass a smaller number."
        )
    return int(value)


def check_real(
    name: str, value: Any, *, minimum: float = -math.inf, maximum: float = math.inf
) -> float:
    """Return `value` as a finite float, if it lies within the closed interval."""
    if not is_number(value):
        raise InvalidTypeError(
            f"{name} must be a number, got {shown(value)} of type {type(value).__name__}; pass a "
            f"float."
        )
    real = float(value)
    if not math.isfinite(real) or not minimum <= real <= maximum:
        raise InvalidInputError(
            f"{name} must be a finite number in [{minimum:g}, {maximum:g}], got {real:g}; "
            "pass a number from that interval."
        )
    return real


def check_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return `dtype` as a dtype object if it is float32 or float64."""
    try:
        resolved = np.dtype(dtype)
    except (TypeError, ValueError) as error:
        raise InvalidTypeError(
            f"dtype must name a dtype, got {shown(dtype)}; pass 'float32' or 'float64'."
        ) from error
    if resolved not in (np.dtype("float32"), np.dtype("float64")):
        raise InvalidInputError(
            f"dtype must be float32 or float64, got {resolved}; convert the array afterwards."
        )
    return resolved
