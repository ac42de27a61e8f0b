"""How rows come into a stream: whole batches from memory, anything else block by block."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.inputs.blocks import RowBlocks, row_blocks
from daskcoreset.execution.passes import fold, read_block
from daskcoreset.constructions.tree.buckets import Buckets, Growth
from daskcoreset.constructions.tree.schema import Form
from daskcoreset.constructions.tree.nodes import weighted_points

if TYPE_CHECKING:
    from collections.abc import Sequence

    from daskcoreset.core.blocks import BlockRows

__all__ = ["State", "open_batch", "read_ahead"]


@dataclass(frozen=True, eq=False)
class State:
    """A stream after some rows; immutable, so that a batch is taken wholly or not at all.

    Attributes
    ----------
    buckets : Buckets
    form : Form or None
        None before the first row.
    n_rows, n_dropped : int
        Rows that came, and those of them that were left out.
    """

    buckets: Buckets = field(default_factory=Buckets)
    form: Form | None = None
    n_rows: int = 0
    n_dropped: int = 0

    @property
    def n_kept(self) -> int:
        """Rows that came and were not left out."""
        return self.n_rows - self.n_dropped

    def agree(self, blocks: RowBlocks, growth: Growth) -> Form:
        """Return the form of the rows to come, or say what is wrong with them."""
        found = Form.of(blocks)
        if growth.reducer.needs_labels and not found.has_labels:
            raise InvalidInputError(f"method {growth.reducer.name!r} needs labels; pass y.")
        d = blocks.rules.n_features
        blocks.refuse(growth.reducer.name, growth.reducer.too_much(growth.leaf_size, d))
        if self.form is None:
            return found
        self.form.check(found)
        return self.form

    def add(self, rows: BlockRows, start: int, form: Form, growth: Growth) -> State:
        """Return the state after a block of rows; `start` of its batch were before it."""
        problem = rows.problem
        if rows.block is not None and problem is None:
            problem = growth.reducer.problem(rows.block)
        if problem is not None:
            raise problem.error(start)
        assert rows.block is not None  # noqa: S101 - there is one without a problem
        points, form = form.fit(weighted_points(rows.block, self.n_rows))
        return State(
            self.buckets.add(points, growth),
            form,
            self.n_rows + rows.read,
            self.n_dropped + rows.read - len(points),
        )


def open_batch(
    X: Any, y: Any, sample_weight: Any, on_invalid: Literal["raise", "drop"]
) -> RowBlocks:
    """Open a batch; data in memory become one block, which is checked as a whole."""
    blocks = row_blocks(X, y, sample_weight, on_invalid=on_invalid)
    if blocks.in_memory and blocks.n_blocks > 1:
        rows = blocks.n_rows or 1
        blocks = row_blocks(X, y, sample_weight, chunks=rows, on_invalid=on_invalid)
    return blocks


def read_ahead(blocks: RowBlocks) -> Iterator[BlockRows]:
    """Read the blocks in order, one ahead of the one that is used."""
    if blocks.n_blocks == 1:
        yield _read(blocks, 0)
        return
    with ThreadPoolExecutor(1, "coreset-stream") as reader:
        ahead = reader.submit(_read, blocks, 0)
        for i in range(blocks.n_blocks):
            rows = ahead.result()
            if i + 1 < blocks.n_blocks:
                ahead = reader.submit(_read, blocks, i + 1)
            yield rows


def _read(blocks: RowBlocks, i: int) -> BlockRows:
    if not blocks.arrays:
        return read_block(blocks.specs[i], {}, blocks.rules)
    return fold(blocks.select([i]), _same, _only).compute()


def _same(rows: BlockRows, number: int, given: object) -> BlockRows:
    del number, given
    return rows


def _only(parts: Sequence[BlockRows]) -> BlockRows:
    (rows,) = parts
    return rows
