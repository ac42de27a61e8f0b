r"""The smallest margins of many separators at once, with the rows they belong to, by one fold.

With k rows left out the margin of w is its (k+1)-th smallest, :math:`\rho_k(w)`. A block
returns the k + 1 smallest of each class for every separator; a read serves hundreds of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.execution.gathering import Gathered, gather
from daskcoreset.constructions.margin.classes import signs_of
from daskcoreset.core.tiles import dense_rows
from daskcoreset.core.margin_products import inner_products
from daskcoreset.core.random import Stage, stream

if TYPE_CHECKING:
    from daskcoreset.core.blocks import Block
    from daskcoreset.inputs.blocks import RowBlocks
    from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray

__all__ = ["Draws", "ManyQuestion", "Smallest", "ask_smallest", "leave_out"]

_TILE_NUMBERS = 2**19
"""Products formed at a time, 4 MiB."""

_NONE = -1
"""Number of a block where there is no row."""


@dataclass(frozen=True)
class Draws:
    """Random subsets of the rows, without a list of them.

    Attributes
    ----------
    seed : int
    share : float
        Every row is in a subset with this probability, on its own.
    numbers : tuple of int
        Numbers of the subsets.
    """

    seed: int
    share: float
    numbers: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ManyQuestion:
    """What every block is asked.

    Attributes
    ----------
    normals : ndarray of shape (q, d), float64
    classes : ndarray of shape (2,)
        Labels of the classes -1 and +1.
    most : int
        Margins wanted of each class.
    draws : Draws or None
        Separator j sees the rows of subset j only; None where all see all.
    """

    normals: FloatArray
    classes: AnyArray
    most: int
    draws: Draws | None = None


@dataclass(frozen=True, eq=False)
class Smallest:
    r"""What some blocks answer.

    Attributes
    ----------
    values : ndarray of shape (2, most, q), float64
        Smallest :math:`y \langle w, x\rangle` of the classes +1 and -1, increasing; infinity
        where there are fewer rows.
    numbers, positions : ndarray of shape (2, most, q), int64
        Block and row within it.
    rows : ndarray of shape (r, d), float64
        Every row named above, once.
    keys : ndarray of shape (r, 2), int64
        Its block and its row within it.
    signs : ndarray of shape (r,), float64
    members : ndarray of shape (r, q), bool
        Which subsets it is in.
    """

    values: FloatArray
    numbers: IndexArray
    positions: IndexArray
    rows: FloatArray
    keys: IndexArray
    signs: FloatArray
    members: Any


def ask_smallest(
    blocks: RowBlocks, question: ManyQuestion, *, split_every: int = 16
) -> Gathered[Smallest]:
    """Read all rows once for the smallest margins of several separators.

    Parameters
    ----------
    blocks : RowBlocks
    question : ManyQuestion
    split_every : int, default=16

    Returns
    -------
    Gathered of Smallest
    """
    return gather(blocks, _answer, _merge, given=question, split_every=split_every)


def _answer(block: Block, number: int, question: ManyQuestion) -> Smallest:
    q, most = len(question.normals), question.most
    signs = signs_of(block, question.classes)
    n = len(signs)
    values = np.full((2, most, q), np.inf)
    places = np.full((2, most, q), _NONE, dtype=np.int64)
    draws = question.draws
    coins = [] if draws is None else [_coins(draws, number, one) for one in draws.numbers]
    members: dict[int, AnyArray] = {}
    tile = max(1, _TILE_NUMBERS // q)
    for start in range(0, n, tile):
        within = slice(start, min(n, start + tile))
        products = inner_products(block.points[within], question.normals) * signs[within, None]
        inside = None
        if draws is not None:
            size = within.stop - start
            inside = np.stack([one.random(size) < draws.share for one in coins], axis=1)
            products[~inside] = np.inf
        for group, sign in enumerate((1.0, -1.0)):
            rows = np.flatnonzero(signs[within] == sign)
            _compete(values[group], places[group], products[rows], rows + start)
        if inside is not None:
            held = np.unique(places[(places >= start) & (places < within.stop)])
            members |= {int(row): inside[row - start] for row in held}
    held = np.unique(places[places >= 0])
    every = np.ones((len(held), q), dtype=bool)
    found = [members[int(row)] for row in held] if draws is not None else every
    return Smallest(
        values,
        np.where(places >= 0, number, _NONE),
        places,
        dense_rows(block.points[held]).astype(np.float64),
        np.stack([np.full(len(held), number), held], axis=1),
        signs[held],
        np.array(found, dtype=bool).reshape(len(held), q),
    )


def _coins(draws: Draws, number: int, subset: int) -> np.random.Generator:
    return stream(draws.seed, Stage.SUBSETS, number, subset)


def _compete(values: FloatArray, places: IndexArray, products: FloatArray, rows: Any) -> None:
    """Let new rows into the smallest so far; of equal ones the earlier stays ahead."""
    most = len(values)
    if not len(rows):
        return
    if len(rows) > most:
        # Nearly all rows are above the largest held; one comparison clears them.
        limit = np.minimum(values[-1], np.partition(products, most - 1, axis=0)[most - 1])
        some = (products <= limit).any(axis=1)
        products, rows = products[some], rows[some]
    both = np.concatenate([values, products])
    place = np.concatenate([places, np.broadcast_to(rows[:, None], products.shape)])
    order = np.argsort(both, axis=0, kind="stable")[:most]
    values[:] = np.take_along_axis(both, order, axis=0)
    places[:] = np.where(np.isfinite(values), np.take_along_axis(place, order, axis=0), _NONE)


def _merge(first: Smallest, second: Smallest) -> Smallest:
    most = first.values.shape[1]
    both = np.concatenate([first.values, second.values], axis=1)
    order = np.argsort(both, axis=1, kind="stable")[:, :most]

    def taken(one: Any, two: Any) -> Any:
        return np.take_along_axis(np.concatenate([one, two], axis=1), order, axis=1)

    numbers = taken(first.numbers, second.numbers)
    positions = taken(first.positions, second.positions)
    keys = np.concatenate([first.keys, second.keys])
    # Blocks are neighbours and rows are in order within them, so that no row comes twice.
    named = set(zip(numbers.ravel().tolist(), positions.ravel().tolist(), strict=True))
    held = np.array(
        [i for i, key in enumerate(map(tuple, keys.tolist())) if key in named], dtype=int
    )
    return Smallest(
        np.take_along_axis(both, order, axis=1),
        numbers,
        positions,
        np.concatenate([first.rows, second.rows])[held],
        keys[held],
        np.concatenate([first.signs, second.signs])[held],
        np.concatenate([first.members, second.members])[held],
    )


def leave_out(values: FloatArray, k: int, *, intercept: bool) -> tuple[float, float, int]:
    r"""Margin of a separator with k rows left out, :math:`\rho_k(w)`.

    With an intercept a rows of the class +1 and k - a of the other are left out, and the
    hyperplane goes into the middle of what remains, for the best a.

    Parameters
    ----------
    values : ndarray of shape (2, k + 1), float64
        Smallest :math:`y \langle w, x\rangle` of the classes +1 and -1, increasing.
    k : int
    intercept : bool

    Returns
    -------
    margin : float
    intercept : float
        Zero through the origin.
    n_positive : int
        How many of those left out are of the class +1.

    Examples
    --------
    >>> values = np.array([[-3.0, 1.0], [0.5, 4.0]])
    >>> leave_out(values, 1, intercept=False)
    (0.5, 0.0, 1)
    >>> leave_out(values, 1, intercept=True)
    (0.75, -0.25, 1)
    """
    if not intercept:
        order = np.argsort(values.ravel(), kind="stable")
        margin = float(values.ravel()[order[k]])
        return margin, 0.0, int((order[:k] <= k).sum())
    halves = (values[0] + values[1][::-1]) / 2
    # A class of which nothing remains is no class.
    halves[~np.isfinite(halves)] = -np.inf
    best = int(halves.argmax())
    return float(halves[best]), float(values[1][k - best] - values[0][best]) / 2, best
