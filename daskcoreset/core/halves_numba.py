"""Half precision to single, compiled by numba when it is first called.

NumPy converts number by number, which took fifteen times as long, and more than all that is done to
the numbers afterwards.
"""

from __future__ import annotations

import numpy as np

from daskcoreset.core.jit_numba import AS_WRITTEN, jit
from daskcoreset.core.typing import AnyArray

# Of the bits of a half-precision number: all but its sign, and the first of those that are infinite
# or no number, and of normal ones; below that last one numbers are multiples of the least of all.
_SIGN, _MAGNITUDE, _INFINITE, _NORMAL = 0x8000, 0x7FFF, 0x7C00, 0x0400
_LEAST = 2.0**-24

# Bits of the fraction that single precision has more, and what its exponent is larger by.
_MORE = 13
_OFFSET = (127 - 15) << 23


@jit(AS_WRITTEN)
def widen(halves: AnyArray, singles: AnyArray) -> None:  # pragma: no cover - runs compiled
    """Fill in the bits of numbers in single precision, uint32, from those in half, uint16."""
    for i in range(len(halves)):
        half = np.uint32(halves[i])
        magnitude = half & np.uint32(_MAGNITUDE)
        bits = (magnitude << np.uint32(_MORE)) + np.uint32(_OFFSET)
        if magnitude >= np.uint32(_INFINITE):
            bits += np.uint32(_OFFSET)  # to the largest exponent, whose fraction says which
        if magnitude < np.uint32(_NORMAL):
            # Not by its bits in single precision: code compiled to flush those loses them.
            bits = np.float32(np.float32(magnitude) * np.float32(_LEAST)).view(np.uint32)
        singles[i] = bits | (half & np.uint32(_SIGN)) << np.uint32(16)
