"""Numbers and tables as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from daskcoreset.core.typing import AnyArray

# Seeds up to so many digits are shown in full: those that people choose.
_DIGITS = 20


def text_table(rows: Sequence[Sequence[str]], left_columns: Iterable[int] = (0,)) -> list[str]:
    """Return the lines of a table.

    Parameters
    ----------
    rows : sequence of sequence of str
        The heads are one of them.
    left_columns : iterable of int, default=(0,)
        Columns that are aligned to the left. All others are aligned to the right.

    Examples
    --------
    >>> text_table([("name", "rows"), ("first", "9")])
    ['name   rows', 'first     9']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    align = [str.ljust if i in left_columns else str.rjust for i in range(len(widths))]
    return [
        "  ".join(put(cell, width) for put, cell, width in zip(align, row, widths, strict=True))
        for row in rows
    ]


def counted(count: int, noun: str, several: str | None = None) -> str:
    """Return a number with what it counts.

    Examples
    --------
    >>> counted(1, "row"), counted(2000, "row"), counted(2, "leaf", "leaves")
    ('1 row', '2,000 rows', '2 leaves')
    """
    return f"{count:,} {noun if count == 1 else several or noun + 's'}"


def kind_of_values(values: AnyArray) -> str:
    """Return what values are called: text as such, whatever its length, numbers by their dtype.

    Examples
    --------
    >>> import numpy as np
    >>> kind_of_values(np.array(["spam", "ham"])), kind_of_values(np.array([1, 0]))
    ('text', 'int64')
    """
    return "text" if values.dtype.kind in "UT" else str(values.dtype)


def short_seed(seed: object) -> str:
    """Return a seed for a reader: of a long one, the first and the last digits.

    Examples
    --------
    >>> short_seed(7), short_seed(163658991865484104730248038907061454586)
    ('7', '163658…454586')
    """
    text = str(seed)
    return text if len(text) <= _DIGITS else f"{text[:6]}…{text[-6:]}"
