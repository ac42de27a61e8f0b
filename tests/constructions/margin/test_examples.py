"""Structured examples: sequences that chunks cut anywhere, and their edges."""

from __future__ import annotations

import numpy as np
import pytest

from daskcoreset.constructions.margin.examples import check_whole, run_numbers, share_right
from daskcoreset.constructions.margin.problems import SequenceProblem
from daskcoreset.constructions.margin.structured import StructuredMargin, structured_margin
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.inputs.blocks import row_blocks
from tests.tools.structured_problems import planted


@pytest.mark.nightly
def test_examples__chunks_may_cut_sequences_anywhere() -> None:
    X, y, groups, _ = planted(60, seed=3)
    problem = SequenceProblem(2, 3)
    found: list[StructuredMargin] = []
    for chunks in (len(X), 17, 3, 1):
        blocks = row_blocks(X, y, groups, chunks=chunks)
        one = structured_margin(blocks, problem, 1e-3, grouped=True, per_block=100)
        assert one.n_examples == 60
        assert one.converged
        # All of a block are added, so that what is found hardly depends on the blocks.
        assert np.isclose(
            one.data_margin, found[0].data_margin if found else one.data_margin, rtol=2e-3
        )
        assert set(one.examples.tolist()) <= set(
            np.flatnonzero(np.diff(groups, prepend=-1)).tolist()
        )
        assert share_right(blocks, problem, one.w, None, grouped=True) == 1.0
        found.append(one)
    with pytest.raises(InvalidInputError, match="cut an example"):
        check_whole(row_blocks(X, None, groups, chunks=3))
    check_whole(row_blocks(X, None, groups, chunks=len(X)))


def test_run_numbers__of_text_and_wrong_length() -> None:
    assert run_numbers(np.array(["x", "x", "y", "x"]), 4).tolist() == [0, 0, 1, 2]
    with pytest.raises(InvalidInputError, match="one value a row"):
        run_numbers([1, 2], 3)
