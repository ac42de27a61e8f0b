"""Rows of data whose columns are known from before, from a fit or a coreset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.validation import how_to_select
from daskcoreset.inputs.blocks import RowBlocks, row_blocks, selection_of
from daskcoreset.inputs.options import ReadOptions, is_path


def known_blocks(
    known: Sequence[str] | None,
    owner: str,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    **options: Any,
) -> RowBlocks:
    """Open rows of which some columns are wanted.

    Parameters
    ----------
    known : sequence of str or None
        Columns that are wanted, where they have names.
    owner : str
        What has them, for the error.
    X, y, sample_weight, **options
        As in `daskcoreset.inputs.blocks.row_blocks`.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        As `row_blocks`. Where columns that hold no numbers are not wanted, the error says at once
        which ones to select.

    Examples
    --------
    >>> import pandas as pd
    >>> known_blocks(["a"], "the fit", pd.DataFrame({"a": [1.0], "name": ["x"]}))
    Traceback (most recent call last):
    ...
    daskcoreset.errors.InvalidInputError: X has columns that the fit has not: ['name']; pass ...
    """
    try:
        return row_blocks(X, y, sample_weight, **options)
    except InvalidTypeError as error:
        others, found = (vars(error).get(name, ()) for name in ("others", "columns"))
        if not others or known is None or {*others} & {*known}:
            raise
        named = isinstance(y, str) or isinstance(sample_weight, str)
        data = ReadOptions.of(X)[0]
        selection = selection_of(data, stored=is_path(data), named=named)
        problem = how_to_select(found, known, owner, selection)
        if problem is None:
            raise
        raise InvalidInputError(problem) from None
