"""How inputs are opened: one record of options, from every public door to `open_all`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from daskcoreset.core.typing import MissingChunks
from daskcoreset.core.validation import a_type, check_choice, check_flag, check_options, shown
from daskcoreset.errors import InvalidInputError, InvalidTypeError


@dataclass(frozen=True)
class ReadOptions:
    """How X, y and sample_weight are opened.

    Attributes
    ----------
    storage_options : mapping of str to object, or None
        For the file system of a URL: never shown, since they hold keys and passwords.
    columns : sequence of str or None
        Features to read, in this order. None reads all.
    missing_chunks : {"raise", "fill"}
        How to treat a chunk that a Zarr array does not store: an error, or the fill value.
    sample_dims, feature_dims : tuple of str, or None
        Dimensions of an xarray object whose cells are rows, and those whose cells are columns.
    unit_length : bool
        Whether every row is divided by its length.
    """

    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)
    columns: Sequence[str] | None = None
    missing_chunks: MissingChunks = "raise"
    sample_dims: str | Sequence[str] | None = None
    feature_dims: str | Sequence[str] | None = None
    unit_length: bool = False

    @property
    def has_dims(self) -> bool:
        """Whether X is asked for as an array of several dimensions."""
        return self.sample_dims is not None or self.feature_dims is not None

    @classmethod
    def of(cls, X: Any) -> tuple[Any, ReadOptions]:
        """Return what was passed as X, and how it is to be opened."""
        return (X.source, X.options) if isinstance(X, Rows) else (X, DEFAULTS)

    def __post_init__(self) -> None:
        check_choice("missing_chunks", self.missing_chunks, "raise", "fill")
        check_options(self.storage_options)
        check_flag("unit_length", self.unit_length)
        for name in ("columns", "sample_dims", "feature_dims"):
            object.__setattr__(self, name, _checked_names(name, getattr(self, name)))


def _checked_names(argument: str, names: Any) -> tuple[Any, ...] | None:
    """Return the names of columns or dimensions as a tuple."""
    if names is None:
        return None
    listed = (names,) if isinstance(names, str) else names
    if not isinstance(listed, Sequence) or not all(isinstance(name, Hashable) for name in listed):
        raise InvalidTypeError(
            f"{argument} is {shown(names)}",
            argument=argument,
            remedy="pass names, such as ['a', 'b']",
        )
    if len(set(listed)) != len(listed) or (argument == "columns" and not listed):
        what = "at least one column" if argument == "columns" else "each dimension once"
        raise InvalidInputError(
            f"{argument} is {list(listed)}",
            argument=argument,
            remedy=f"name {what}, and none of them twice",
        )
    return tuple(listed)


DEFAULTS = ReadOptions()


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows and how to read them. `open_rows` returns it, and every call that takes X accepts it.

    See :doc:`/reference/inputs`.

    Attributes
    ----------
    source : object
        The source that was passed to `open_rows`.
    options : ReadOptions
        How it is read.

    Examples
    --------
    >>> import numpy as np, daskcoreset
    >>> daskcoreset.open_rows(np.ones((4, 2)), unit_length=True)
    Rows(an ndarray, unit_length=True)
    """

    source: Any
    options: ReadOptions

    def __repr__(self) -> str:
        asked = [
            f"{one.name}={getattr(self.options, one.name)!r}"
            for one in fields(ReadOptions)
            if one.repr and getattr(self.options, one.name) != one.default
        ]
        is_path = isinstance(self.source, (str, os.PathLike))
        what = shown(self.source) if is_path else a_type(self.source)
        return f"Rows({', '.join([what, *asked])})"


def open_rows(
    source: Any,
    *,
    columns: Sequence[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    missing_chunks: MissingChunks = "raise",
    sample_dims: str | Sequence[str] | None = None,
    feature_dims: str | Sequence[str] | None = None,
    unit_length: bool = False,
) -> Rows:
    """Choose how rows are read: columns, credentials, dimensions, missing chunks.

    Pass the result as X to any call. No row is read yet. :doc:`/reference/inputs` lists every kind
    of input.

    Parameters
    ----------
    source : array-like of shape (n, d), path, URL, glob, or list of paths
        Any X of `build`.
    columns : sequence of str, optional
        Features to read, in this order. They are columns of a data frame, a table or Parquet
        files, or variables of a Dataset. Default: all columns but those that `y` and
        `sample_weight` name.
    storage_options : mapping of str to object, optional
        Options of the file system of a URL, as in fsspec: ``{"anon": True}``. They are passed to
        the workers, and never stored or printed.
    missing_chunks : {"raise", "fill"}, default="raise"
        How to treat chunks that a Zarr array does not store. Raise a `StoreError` that names the
        chunk, or use the fill value of the array.
    sample_dims, feature_dims : str or sequence of str, optional
        Dimensions of an xarray object. Each cell of `sample_dims` is a row, and each cell of
        `feature_dims` is a column. Default: all dimensions that the other argument leaves.
    unit_length : bool, default=False
        Divide each row by its length. Squared distances are then twice the cosine distances.

    Returns
    -------
    Rows
        With it, `y` and `sample_weight` may be names of columns or arrays of `source`.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If an option has a wrong value or type.

    Examples
    --------
    >>> import numpy as np, pandas as pd, daskcoreset
    >>> frame = pd.DataFrame(np.arange(12.0).reshape(4, 3), columns=["a", "b", "label"])
    >>> rows = daskcoreset.open_rows(frame, columns=["a", "b"])
    >>> daskcoreset.build(rows, "label", size=2, random_state=0).points.shape
    (2, 2)
    """
    options = ReadOptions(
        storage_options, columns, missing_chunks, sample_dims, feature_dims, unit_length
    )
    return Rows(source, options)


def check_columns(columns: Sequence[str], names: Sequence[Any]) -> None:
    """Check that all columns that were asked for are there."""
    found = Counter(names)
    if unknown := [name for name in columns if not found[name]]:
        raise InvalidInputError(
            f"columns has {unknown}, but X has the columns {list(names)}",
            argument="columns",
            remedy="pass some of these names",
        )
    if twice := [name for name in columns if found[name] > 1]:
        raise InvalidInputError(
            f"X has more than one column named {twice}",
            argument="columns",
            remedy="rename the duplicates",
        )
