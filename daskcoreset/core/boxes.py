"""Blocks of arrays of several dimensions, and the numbers of their rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskcoreset.core.typing import IndexArray


@dataclass(frozen=True, slots=True)  # slots pickle without the names of the fields
class Box:
    """A block of an array of several dimensions, each cell of which is a row.

    Rows lie within the block in C order, and are numbered in the C order of the whole array.

    Attributes
    ----------
    dims : tuple of str
        Names of the dimensions.
    starts, lengths : tuple of int
        Start and length of the block along each dimension.
    shape : tuple of int
        Shape of the whole array.
    """

    dims: tuple[str, ...]
    starts: tuple[int, ...]
    lengths: tuple[int, ...]
    shape: tuple[int, ...]

    def __len__(self) -> int:
        return math.prod(self.lengths)

    @property
    def slices(self) -> dict[str, slice]:
        """The block, as xarray selects it by positions."""
        parts = zip(self.dims, self.starts, self.lengths, strict=True)
        return {dim: slice(start, start + length) for dim, start, length in parts}

    def numbers(self, positions: Any) -> IndexArray:
        """Return the numbers, in the whole array, of rows at positions of the block.

        Examples
        --------
        >>> Box(("y", "x"), (1, 2), (2, 2), (4, 5)).numbers([0, 1, 2])
        array([ 7,  8, 12])
        """
        places = np.unravel_index(np.asarray(positions, dtype=np.int64), self.lengths)
        moved = tuple(place + start for place, start in zip(places, self.starts, strict=True))
        return np.asarray(np.ravel_multi_index(moved, self.shape), dtype=np.int64)

    def describe(self, position: int) -> str:
        """Return where a row is, for errors.

        Examples
        --------
        >>> Box(("y", "x"), (1, 2), (2, 2), (4, 5)).describe(3)
        'row 13 (y 2, x 3)'
        """
        number = int(self.numbers(position))
        places = zip(self.dims, np.unravel_index(number, self.shape), strict=True)
        return f"row {number} ({', '.join(f'{dim} {int(place)}' for dim, place in places)})"
