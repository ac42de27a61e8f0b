"""Rows equal to a few given ones, with the opposite label: the plainest evidence there is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.execution.gathering import gather
from daskcoreset.constructions.margin.classes import signs_of
from daskcoreset.core.tiles import dense_rows
from daskcoreset.core.margin_products import inner_products

if TYPE_CHECKING:
    from daskcoreset.core.blocks import Block
    from daskcoreset.inputs.blocks import RowBlocks
    from daskcoreset.constructions.margin.core import Core
    from daskcoreset.core.typing import AnyArray, FloatArray

__all__ = ["find_twins"]


@dataclass(frozen=True, eq=False)
class _Wanted:
    points: AnyArray
    signs: FloatArray
    keys: FloatArray
    key: FloatArray
    classes: AnyArray


def find_twins(blocks: RowBlocks, core: Core, classes: AnyArray) -> tuple[int, int] | None:
    """Look in all the data for a row equal to one of `core`, with the other label.

    Parameters
    ----------
    blocks : RowBlocks
        Read once.
    core : Core
        A few rows.
    classes : ndarray of shape (2,)

    Returns
    -------
    tuple of int or None
        Numbers of the two rows, the smaller one first.
    """
    points = dense_rows(core.points)
    # Equal rows have equal products with anything; few others have.
    key = np.sqrt(np.arange(2.0, points.shape[1] + 2.0))
    keys = inner_products(points, key[None])[:, 0]
    wanted = _Wanted(points, core.rows.signs, keys, key, classes)
    found = gather(blocks, _look, _first, given=wanted)
    if not found.value:
        return None
    number, position, row = found.value[0]
    pair = sorted((found.row(number, position), int(core.indices[row])))
    return pair[0], pair[1]


def _look(block: Block, number: int, wanted: _Wanted) -> list[tuple[int, int, int]]:
    signs = signs_of(block, wanted.classes)
    keys = inner_products(block.points, wanted.key[None])[:, 0]
    close = np.flatnonzero((signs != 0.0) & np.isin(keys, wanted.keys))
    for position in close:
        row: Any = dense_rows(block.points[[position]])[0]
        same = (wanted.points == row).all(axis=1) & (wanted.signs == -signs[position])
        if same.any():
            return [(number, int(position), int(same.argmax()))]
    return []


def _first(
    one: list[tuple[int, int, int]], two: list[tuple[int, int, int]]
) -> list[tuple[int, int, int]]:
    return one or two
