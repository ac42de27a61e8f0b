"""Tables as text and as HTML."""

from __future__ import annotations

import html
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


def percent(share: float) -> str:
    """Return a share as text: whole per cents, and of less than one two digits that count.

    Examples
    --------
    >>> percent(0.342), percent(0.0041), percent(0.0)
    ('34 %', '0.41 %', '0 %')
    """
    return f"{100 * share:.0f} %" if abs(share) >= 0.01 else f"{100 * share:.2g} %"


def size_in_bytes(count: int | None) -> str:
    """Return a number of bytes as text.

    Examples
    --------
    >>> size_in_bytes(640), size_in_bytes(40_000_000), size_in_bytes(None)
    ('640 B', '38.1 MiB', 'an unknown size')
    """
    if count is None:
        return "an unknown size"
    value, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    digits = 0 if value >= 100 or units[0] == "B" else 1
    return f"{value:.{digits}f} {units[0]}"


def html_table(rows: Iterable[Sequence[str]], heads: Sequence[str] = (), caption: str = "") -> str:
    """Return an HTML table. Without `heads`, the first cell of every row is the head of the row.

    Examples
    --------
    >>> html_table([("a < b", "1")])[:51]
    '<table><tbody><tr><th style="text-align:left">a &lt'
    """
    first_tag = "td" if heads else "th"
    left_aligned = ' style="text-align:left"'
    body = ""
    for first, *cells in rows:
        body += f"<tr><{first_tag}{left_aligned}>{html.escape(first)}</{first_tag}>"
        body += "".join(
            f"<td{'' if heads else left_aligned}>{html.escape(cell)}</td>" for cell in cells
        )
        body += "</tr>"
    names = "".join(f"<th>{html.escape(name)}</th>" for name in heads)
    head = f"<thead><tr>{names}</tr></thead>" if heads else ""
    # Themes of notebooks have greys for captions, which are not read on every ground.
    inherited = ' style="color:inherit"'
    title = f"<caption{inherited}>{html.escape(caption)}</caption>" if caption else ""
    return f"<table>{title}{head}<tbody>{body}</tbody></table>"
