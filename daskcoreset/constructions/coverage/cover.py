r"""delta-covers of data of any size: every row lies within half a diameter of a core point."""

from __future__ import annotations

import numbers
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from daskcoreset.constructions.coverage.metric import Cells
from daskcoreset.constructions.coverage.cover_result import Cover
from daskcoreset.constructions.coverage.search import Search
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError

if TYPE_CHECKING:
    from daskcoreset.inputs.blocks import RowBlocks

__all__ = ["Cells", "Cover", "Coverage", "Strategy", "cover"]

Strategy = Literal["online", "farthest"]
"""How core points are chosen: as rows come, or the farthest row next."""

MOST_POINTS = 100_000
"""Core points at most where nothing is said: more would be neither small nor quick to use."""


@dataclass(frozen=True)
class Coverage:
    r"""The construction of covers, for ``daskcoreset.build(X, method=Coverage(diameter=0.3))``.

    Parameters
    ----------
    diameter : float or None, default=None
    max_points : int or None, default=None
    cells : {"euclidean", "chebyshev"}, default="euclidean"
    strategy : {"online", "farthest"}, default="online"
        All as in `cover`, which says what they mean and which errors there are.

    Examples
    --------
    >>> import numpy as np
    >>> from daskcoreset.inputs.blocks import row_blocks
    >>> X = np.random.default_rng(0).random((1000, 2))
    >>> found = Coverage(max_points=10).cover(row_blocks(X))
    >>> len(found) <= 10, 0.5 < found.diameter < 0.8
    (True, True)
    """

    diameter: float | None = None
    max_points: int | None = None
    cells: Cells = "euclidean"
    strategy: Strategy = "online"

    name: ClassVar[str] = "coverage"
    citation: ClassVar[str] = "tan2019coreset, Definitions 1 and 2"

    def __post_init__(self) -> None:
        _check(self.diameter, self.max_points, self.cells, self.strategy)

    def parameters(self) -> dict[str, Any]:
        """Return the parameters by name."""
        return asdict(self)

    def cover(
        self, blocks: RowBlocks, *, split_every: int = 16, progress: bool | None = False
    ) -> Cover:
        """Cover all rows; see `cover`."""
        blocks.refuse_zeros()
        most = MOST_POINTS if self.max_points is None else int(self.max_points)
        search = Search(blocks, self.cells, most, split_every, progress)
        diameter = None if self.diameter is None else float(self.diameter)
        if self.strategy == "farthest":
            return search.farthest(diameter)
        return search.fitting() if diameter is None else search.online(diameter)


def cover(
    blocks: RowBlocks,
    diameter: float | None = None,
    *,
    max_points: int | None = None,
    cells: Cells = "euclidean",
    strategy: Strategy = "online",
    split_every: int = 16,
    progress: bool | None = False,
) -> Cover:
    r"""Cover all rows with cells of a diameter, or with a number of cells.

    Parameters
    ----------
    blocks : RowBlocks
    diameter : float or None, default=None
        :math:`\delta`: every row comes to lie within half of it of a core point, by a margin for
        rounding: where many rows differ by the same distance, as with binary features, pass
        slightly more than twice that. None finds the diameter for `max_points`.
    max_points : int or None, default=None
        With a diameter: more core points are an error; None allows 100,000. Without one: core
        points to use at most.
    cells : {"euclidean", "chebyshev"}, default="euclidean"
        Balls, or boxes with sides along the axes, within which all columns differ by at most half
        the diameter from the core point.
    strategy : {"online", "farthest"}, default="online"
        "online": a row outside all cells opens a new one (AVM). One read opens cells in every
        block and merges them, one or two more open what the merges left uncovered, the last one
        counts: two reads of a single block, three to six of many. Without a diameter 10 to 17:
        one that doubles, and so bounds the diameter, about six that bisect it to 4 %, then those
        that a diameter takes. All but the last are cheap.
        "farthest": the row farthest from the core points becomes one (CVM, Gonzalez). Two reads of
        a single block, four to seven of many, where every one costs as much as the last one of
        "online". Core points are 2 to 29 % more for a diameter, and the diameter for a number of
        them is somewhat larger (``benchmarks/results/covers.md``).
    split_every : int, default=16
        As in `daskcoreset.build`.
    progress : bool or None, default=False
        As in `daskcoreset.build`.

    Returns
    -------
    Cover
        The same bits on every scheduler. Nothing is random.

    Raises
    ------
    InvalidInputError
        If the diameter is not positive and finite, neither diameter nor `max_points` is given, a
        cover of this diameter needs more than `max_points` core points, no row has a weight,
        squared distances overflow, or blocks of sparse rows have more than 16,384 columns and,
        zeros included, 2 ** 28 numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from daskcoreset.inputs.blocks import row_blocks
    >>> X = np.random.default_rng(0).random((1000, 2))
    >>> found = cover(row_blocks(X), 0.5)
    >>> float(found.weights.sum()), bool(found.nearest(X)[1].max() <= 0.25)
    (1000.0, True)

    References
    ----------
    Tan, Zhang and Wang (2019), Definitions 1 and 2; Le et al. (2017); Tsang, Kwok and Cheung
    (2005).
    """
    wanted = Coverage(diameter, max_points, cells, strategy)
    return wanted.cover(blocks, split_every=split_every, progress=progress)


def _check(diameter: Any, max_points: Any, cells: Any, strategy: Any) -> None:
    if cells not in ("euclidean", "chebyshev"):
        found = f'cells must be "euclidean" or "chebyshev", got {cells!r}'
        raise InvalidInputError(f"{found}; pass one of these.")
    if strategy not in ("online", "farthest"):
        found = f'strategy must be "online" or "farthest", got {strategy!r}'
        raise InvalidInputError(f"{found}; pass one of these.")
    if diameter is None and max_points is None:
        raise InvalidInputError(
            "neither diameter nor max_points is given; pass a diameter, or the number of core "
            "points to find one for."
        )
    if diameter is not None:
        if isinstance(diameter, bool) or not isinstance(diameter, numbers.Real):
            raise InvalidTypeError(f"diameter must be a number, got {diameter!r}; pass a float.")
        if not 1e-140 < float(diameter) < 1e140:  # its square must be a number as well
            raise InvalidInputError(
                f"diameter must be positive and finite (and its square, too), got {diameter}; "
                f"pass about a tenth of the extent of the data to begin with."
            )
    if max_points is None:
        return
    if isinstance(max_points, bool) or not isinstance(max_points, numbers.Integral):
        raise InvalidTypeError(f"max_points must be an integer, got {max_points!r}; pass an int.")
    if max_points < 1:
        raise InvalidInputError(f"max_points must be at least 1, got {max_points}; pass more.")
