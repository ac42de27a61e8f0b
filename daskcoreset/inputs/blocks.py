"""Row blocks of ``(X, y, sample_weight)``, from anything array-like.

Data that Dask already holds stay a Dask collection, its chunks merged, split or grouped.
Everything else becomes tasks that read their own rows (`daskcoreset.inputs.arrays`). Nothing is
computed and no row is read here.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from daskcoreset.core.block import BlockSchema, Box
from daskcoreset.core.tables import counted
from daskcoreset.core.typing import Metric
from daskcoreset.core.validation import (
    as_int,
    check_choice,
    is_choice,
)
from daskcoreset.errors import InvalidInputError
from daskcoreset.inputs.arrays import RowArray, is_sparse
from daskcoreset.inputs.cubes import Cube
from daskcoreset.inputs.cuts import TARGET_BYTES, automatic_cut, even_cut
from daskcoreset.inputs.open import open_all, warn_of_names
from daskcoreset.inputs.options import ReadOptions
from daskcoreset.storage.locations import clean_url

# Columns of sparse rows at most, unless they are few: zeros take as long as other numbers.
_MAX_COLUMNS = 2**14

# Numbers of a block, zeros included, from which sparse rows count as many.
_MAX_ZEROS = 2**28


@dataclass(frozen=True, eq=False, slots=True)  # slots pickle without the names of the fields
class BlockRows:
    """What a task is sent of a block: its position, and the parts that it reads itself.

    Attributes
    ----------
    index : int
    start, size : int or None
        Number of the first row, and rows as declared. None if Dask does not know them.
    box : Box or None
        Position in an array of several dimensions. Rows are counted from block to block all the
        same, and get their numbers in it when a coreset is made.
    parts : dict of str to RowArray
    """

    index: int
    start: int | None
    size: int | None
    box: Box | None
    # Not shown: logs of workers show the arguments of what failed, and URLs may hold passwords.
    parts: dict[str, RowArray] = field(repr=False)


@dataclass(frozen=True, eq=False)
class RowBlocks:
    """The data, cut into blocks of rows.

    Attributes
    ----------
    schema : BlockSchema
        Number of features, promoted dtype, treatment of invalid rows.
    arrays : dict of str to RowArray or dask.array.Array
        ``"X"``, and ``"y"``, ``"sample_weight"`` and ``"groups"`` if given. Dask arrays have the
        row chunks of the blocks. Tasks read all others.
    indices : sequence of int
        Indices of the blocks. Some are left out where some blocks are selected.
    sizes : tuple of int, or None
        Rows of all blocks, by their indices. None if Dask does not know them.
    name : str or None
        Origin of the rows.
    columns : tuple of str or None
    cube : Cube or None
        The labels of rows and columns, if X is an xarray object of several dimensions.
    cut_bytes : int
        Bytes of the largest chunk of Dask that is made whole and then cut into blocks.
    keys : dict of str to str
        Names that y, sample_weight and groups were passed as, if these and X are stored.
    """

    schema: BlockSchema
    arrays: dict[str, Any]
    indices: Sequence[int]
    sizes: tuple[int, ...] | None
    name: str | None
    columns: tuple[str, ...] | None
    cube: Cube | None = None
    cut_bytes: int = 0
    keys: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, position: int) -> BlockRows:
        index = self.indices[position]
        if self.sizes is None:
            return BlockRows(index, None, None, None, {})
        start, size = self.starts[index], self.sizes[index]
        parts = {name: part.cut(start, start + size) for name, part in self.row_arrays.items()}
        box = None if self.boxes is None else self.boxes[index]
        return BlockRows(index, start, size, box, parts)

    @cached_property
    def starts(self) -> list[int]:
        """Number of the first row of each block, and of all rows."""
        return list(itertools.accumulate(self.sizes or (), initial=0))

    @cached_property
    def row_arrays(self) -> dict[str, RowArray]:
        """The parts that tasks read themselves."""
        return {name: part for name, part in self.arrays.items() if isinstance(part, RowArray)}

    @cached_property
    def dask_arrays(self) -> dict[str, Any]:
        """The parts that are Dask arrays."""
        return {name: part for name, part in self.arrays.items() if name not in self.row_arrays}

    @cached_property
    def boxes(self) -> Sequence[Box] | None:
        """Positions of all blocks in a cube."""
        return None if self.cube is None else self.cube.boxes()

    @cached_property
    def sparse(self) -> bool:
        """Whether X is sparse."""
        return is_sparse(self.arrays["X"])

    @cached_property
    def stored_bytes(self) -> int | None:
        """Bytes of all parts once decoded. None if that is unknown before they are read."""
        if self.sizes is None or (self.sparse and "X" in self.dask_arrays):
            return None
        return int(sum(part.nbytes for part in self.arrays.values()))

    @cached_property
    def are_views(self) -> bool:
        """Whether blocks are views of what is in memory already."""
        return all(isinstance(part, RowArray) and part.in_memory for part in self.arrays.values())

    @cached_property
    def has_labels(self) -> bool:
        """Whether there are labels."""
        return "y" in self.arrays

    @cached_property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.indices)

    @cached_property
    def in_memory(self) -> bool:
        """Whether the data are one block in memory, which no graph is worth."""
        return self.are_views and self.n_blocks == 1

    @cached_property
    def n_rows(self) -> int | None:
        """Number of rows, or None when it is unknown before reading."""
        return None if self.sizes is None else sum(self.sizes)

    @cached_property
    def block_rows(self) -> int:
        """Rows of the largest block, or the rows that fit into 32 MiB if they are unknown."""
        fit = TARGET_BYTES // (self.schema.n_features * self.schema.dtype.itemsize)
        return max(1, fit) if self.sizes is None else max(self.sizes)

    def check_method(self, method: Any, *, scored: bool = True) -> None:
        """Raise an error if a method cannot work on the data, whose rows may be `scored` or not."""
        if method.labels is not None and not self.has_labels:
            raise InvalidInputError(
                f"y is missing, and method {method.name!r} needs labels",
                argument="y",
                remedy="pass one label per row of X, or the name of a column or array of X, such "
                'as y="label"',
            )
        n_features = self.schema.n_features
        if scored and method.max_columns is not None and n_features > method.max_columns:
            raise InvalidInputError(
                f"X has {n_features:,} columns, and method {method.name!r} takes at most "
                f"{method.max_columns:,}, because its memory and time grow with their square",
                argument="X",
                remedy="pass fewer, for example those of sklearn.decomposition.TruncatedSVD",
            )

    def refuse_zeros(self, rows: int | None = None) -> None:
        """Raise an error if a number of sparse rows, by default a block, have too many zeros."""
        columns, rows = self.schema.n_features, self.block_rows if rows is None else rows
        if self.sparse and columns > _MAX_COLUMNS and rows * columns > _MAX_ZEROS:
            raise InvalidInputError(
                f"X has {columns:,} columns, and distances go through the zeros of sparse rows too",
                argument="X",
                remedy=f"pass {_MAX_COLUMNS:,} columns at most, for example those of "
                "sklearn.decomposition.TruncatedSVD",
            )

    def by(self, metric: Metric) -> RowBlocks:
        """Return blocks whose rows are of length one where the metric is cosine."""
        check_choice("metric", metric, "euclidean", "cosine")
        if metric == "euclidean":
            return self
        return replace(self, schema=replace(self.schema, metric=metric))

    def select(self, positions: list[int]) -> RowBlocks:
        """Return some of the blocks; they keep their indices."""
        of_dask = {name: array.blocks[positions] for name, array in self.dask_arrays.items()}
        indices = [self.indices[i] for i in positions]
        return replace(self, arrays=self.row_arrays | of_dask, indices=indices)


def row_blocks(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    chunks: int | Literal["auto"] = "auto",
    on_invalid: Literal["raise", "drop"] | None = None,
    groups: Any = None,
    allow_empty: bool = False,
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
    on_invalid : {"raise", "drop"} or None, default=None
        How to treat rows with NaN or infinity. None drops the masked cells of xarray objects
        with ``sample_dims``, and raises for all else.
    groups : array-like of shape (n,), str or None, default=None
        Neighboring rows of one group are an example of several rows.
    allow_empty : bool, default=False
        Whether there may be no rows. They are one block then.

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
    >>> blocks.sizes, blocks.schema.dtype
    ((4, 4, 2), dtype('float32'))
    """
    if isinstance(X, RowBlocks):  # opened before, for a reason of the library's own
        return X
    if on_invalid is not None:
        check_choice("on_invalid", on_invalid, "raise", "drop")
    if not is_choice(chunks, ("auto",)):
        as_int("chunks", chunks)
    data, options = ReadOptions.of(X)
    warn_of_names(options.columns, (y, sample_weight, groups))
    if options.has_dims and chunks != "auto":
        raise InvalidInputError(
            f"chunks={chunks} counts rows, but the blocks of X follow the chunks of its dimensions",
            argument="chunks",
            remedy="leave chunks out, or pass X.chunk(...)",
        )
    opened = open_all(data, y, sample_weight, options, groups=groups, allow_empty=allow_empty)
    rows, labels, cube = opened.X, opened.parts.get("y"), opened.cube
    schema = BlockSchema(
        int(rows.shape[1]),
        rows.dtype,
        on_invalid or ("raise" if cube is None else "drop"),
        text_labels=None if labels is None else np.dtype(labels.dtype).kind not in "biuf",
        columns=opened.columns,
        metric="cosine" if options.unit_length else "euclidean",
    )
    sizes, arrays = opened.sizes, opened.parts
    if cube is None:
        sizes = _block_sizes(opened.parts, schema, chunks)
        arrays = _rechunked(opened.parts, sizes)
    beside = {"y": y, "sample_weight": sample_weight, "groups": groups}
    keys = {name: clean_url(key) for name, key in beside.items() if isinstance(key, str)}
    return RowBlocks(
        schema=schema,
        arrays=arrays,
        indices=range(arrays["X"].numblocks[0] if sizes is None else len(sizes)),
        sizes=sizes,
        name=opened.name,
        columns=opened.columns,
        cube=cube,
        cut_bytes=_cut_bytes(rows, sizes),
        keys={} if opened.name is None or cube is not None else keys,
    )


def _cut_bytes(X: Any, sizes: tuple[int, ...] | None) -> int:
    if isinstance(X, RowArray) or sizes is None:
        return 0
    largest = max(X.chunks[0], default=0)
    return int(X.nbytes * largest / X.shape[0]) if largest > max(sizes, default=0) else 0


def _block_sizes(
    parts: dict[str, Any], schema: BlockSchema, chunks: int | Literal["auto"]
) -> tuple[int, ...] | None:
    """Return the rows of the blocks of all parts. None if they are unknown."""
    X = parts["X"]
    if np.isnan(X.shape[0]):
        if chunks != "auto":
            raise _unknown("X", f"chunks={chunks}, but X has unknown chunk sizes")
        return None
    n_rows = int(X.shape[0])
    if not n_rows:
        return (0,)
    row_bytes = schema.n_features * schema.dtype.itemsize
    if is_sparse(X):
        if chunks == "auto" and not isinstance(X, RowArray):
            return tuple(X.chunks[0])  # what a row takes is not known before it is read
        row_bytes = -(-X.nbytes // n_rows)
    return automatic_cut(X, row_bytes) if chunks == "auto" else even_cut(n_rows, int(chunks))


def _rechunked(parts: dict[str, Any], sizes: tuple[int, ...] | None) -> dict[str, Any]:
    """Give Dask arrays the row chunks of all parts, and X one chunk of columns."""
    if sizes is None:
        X, n_blocks = parts["X"], parts["X"].numblocks[0]
        for name, array in parts.items():
            if isinstance(array, RowArray) or array.numblocks[0] != n_blocks:
                raise _unknown(
                    "X",
                    f"X has {counted(n_blocks, 'block')} of unknown chunk sizes, which cannot be "
                    f"paired with the rows of {name}",
                )
        # Not one more layer where the columns are one chunk already.
        return parts if X.numblocks[1] == 1 else {**parts, "X": X.rechunk({1: -1}, method="tasks")}
    aligned = {}
    for name, array in parts.items():
        if isinstance(array, RowArray):
            aligned[name] = array
            continue
        if np.isnan(array.shape[0]):
            raise _unknown(name, f"{name} has unknown chunk sizes but X has known ones")
        chunks = (sizes, *((length,) for length in array.shape[1:]))
        # Shuffles of the cluster write to disk what a few concatenations do in memory.
        aligned[name] = array.rechunk(chunks, method="tasks")
    return aligned


def _unknown(name: str, problem: str) -> InvalidInputError:
    """Return the error of an array whose rows must be counted first."""
    return InvalidInputError(
        problem,
        argument=name,
        remedy=f"call {name}.compute_chunk_sizes() first, or {name}.to_dask_array(lengths=True) on "
        "a Dask DataFrame or Series",
    )
