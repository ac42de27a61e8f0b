"""The margin on a core set against that on all data, in one read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from daskcoreset.core.blocks import Block, labels_of
from daskcoreset.core.tables import counted, html_table, text_table
from daskcoreset.core.typing import AnyArray, FloatArray, Points
from daskcoreset.execution.engine import map_reduce
from daskcoreset.inputs.blocks import RowBlocks

# ``margins(points, labels)``: how far every row is on the right side, negative on a wrong one.
Margins = Callable[[Points, AnyArray], FloatArray]


@dataclass(frozen=True, eq=False, repr=False)
class MarginAudit:
    """The margin of a separator on its core set against that on all data.

    Attributes
    ----------
    on_coreset, on_data : float
        Least distance of a row from the boundary, of the core set and of all data; negative where
        a row is on the wrong side.
    largest : float
        The largest margin on the core set, which no separator passes on all data; NaN where the
        separator is not one of the largest margin.
    epsilon : float
        `on_data` is promised to be ``(1 - epsilon) * largest``.
    n_left_out : int
        Rows of least distance that do not count in `on_data`, as the separator was asked for.
    n_inside : int
        Rows nearer than ``(1 - epsilon) * largest``, or on the wrong side, with those left out.
    n_wrong : int
        Rows on the wrong side.
    n_core, n_rows : int
        Rows of the core set, and of the data with a positive weight.
    """

    on_coreset: float
    on_data: float
    largest: float
    epsilon: float
    n_left_out: int
    n_inside: int
    n_wrong: int
    n_core: int
    n_rows: int

    @property
    def factor(self) -> float:
        """Share of the largest margin that is reached on the data, at least."""
        return self.on_data / self.largest

    @property
    def holds(self) -> bool:
        """Whether the data keep ``1 - epsilon`` of the largest margin."""
        # What rounds when rows are read again is not the separator's fault.
        return bool(self.factor >= (1.0 - self.epsilon) * (1.0 - 1e-9))

    def _cells(self) -> list[tuple[str, str, str]]:
        left_out = f", {self.n_left_out:,} left out" if self.n_left_out else ""
        largest = "unknown" if np.isnan(self.largest) else f"{self.largest:.6g}"
        share = "" if np.isnan(self.largest) else f"{self.factor:.2%} of it reached"
        return [
            (f"margin{left_out}", f"{self.on_coreset:.6g}", f"{self.on_data:.6g}"),
            ("largest margin", largest, share),
            ("rows", f"{self.n_core:,}", f"{self.n_rows:,}"),
            ("rows on the wrong side", "", f"{self.n_wrong:,}"),
            ("rows inside the margin", "", f"{self.n_inside:,}"),
        ]

    def _title(self) -> str:
        if np.isnan(self.largest):
            return f"margin, {self.n_wrong:,} of {counted(self.n_rows, 'row')} wrong"
        promise = f"{'at least' if self.holds else 'below'} {1 - self.epsilon:.6g}"
        return f"margin, {promise} of the largest, over {counted(self.n_rows, 'row')}"

    def __repr__(self) -> str:
        table = text_table([_HEAD, *self._cells()])
        return "\n".join([f"{type(self).__name__}({self._title()})", *table])

    def _repr_html_(self) -> str:
        title = self._title()
        return html_table(self._cells(), _HEAD, f"{title[0].upper()}{title[1:]}")


_HEAD = ("", "on core set", "on all data")


def audit_margin(
    blocks: RowBlocks,
    core: Block,
    margins: Margins,
    *,
    largest: float,
    epsilon: float,
    n_left_out: int = 0,
    progress: bool | None = False,
) -> MarginAudit:
    """Measure the margin of a separator on all rows with a positive weight, in one read.

    Parameters
    ----------
    blocks : RowBlocks
        With labels.
    core : Block
        Rows of the core set, with labels.
    margins : callable
        ``margins(points, labels)``, picklable.
    largest, epsilon, n_left_out
        As in `MarginAudit`.
    progress : bool or None, default=False
        As in `daskcoreset.build`.

    Examples
    --------
    >>> from daskcoreset.inputs.blocks import row_blocks
    >>> X, y = np.array([[-3.0], [-1.0], [2.0], [5.0]]), np.array([-1, -1, 1, 1])
    >>> core = Block(X[1:3], np.ones(2), y[1:3])
    >>> found = audit_margin(
    ...     row_blocks(X, y), core, lambda x, y: x[:, 0] * y, largest=1.5, epsilon=0.5
    ... )
    >>> found.on_coreset, found.on_data, found.holds, found.n_wrong
    (1.0, 1.0, True, 0)
    """
    floor = 0.0 if np.isnan(largest) else max(0.0, (1.0 - epsilon) * largest * (1.0 - 1e-9))
    work = partial(_of_block, margins=margins, floor=floor, n_keep=n_left_out + 1)
    merge = partial(_merge, n_keep=n_left_out + 1)
    smallest, counts = map_reduce(blocks, work, merge, progress=progress).value
    n_rows, n_inside, n_wrong = counts.tolist()
    return MarginAudit(
        on_coreset=float(margins(core.points, labels_of(core)).min()),
        on_data=float(smallest[-1]) if len(smallest) > n_left_out else float("inf"),
        largest=largest,
        epsilon=epsilon,
        n_left_out=n_left_out,
        n_inside=n_inside,
        n_wrong=n_wrong,
        n_core=len(core),
        n_rows=n_rows,
    )


def _of_block(
    block: Block,
    _block_index: int,
    _broadcast: object,
    *,
    margins: Margins,
    floor: float,
    n_keep: int,
) -> tuple[FloatArray, AnyArray]:
    values = margins(block.points, labels_of(block))[block.weights > 0]
    counts = np.array([len(values), (values < floor).sum(), (values <= 0.0).sum()])
    return np.sort(values)[:n_keep], counts


def _merge(
    first: tuple[FloatArray, AnyArray], second: tuple[FloatArray, AnyArray], *, n_keep: int
) -> tuple[FloatArray, AnyArray]:
    return np.sort(np.concatenate([first[0], second[0]]))[:n_keep], first[1] + second[1]
