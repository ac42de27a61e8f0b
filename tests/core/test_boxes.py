"""Blocks of arrays of several dimensions."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from daskcoreset.core.boxes import Box


@given(st.data())
def test_numbers__are_those_of_the_whole_array(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    starts = tuple(data.draw(st.integers(0, length - 1)) for length in shape)
    lengths = tuple(
        data.draw(st.integers(1, length - start))
        for length, start in zip(shape, starts, strict=True)
    )
    box = Box(tuple(map(str, range(len(shape)))), starts, lengths, shape)
    whole = np.arange(np.prod(shape)).reshape(shape)
    expected = whole[tuple(box.slices.values())].ravel()
    np.testing.assert_array_equal(box.numbers(np.arange(len(box))), expected)
