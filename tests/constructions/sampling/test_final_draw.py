"""Draws in one read and in two, on blocks as unlike as can be, against one machine.

The reference is a plain NumPy reading of the formulas over all rows at once. Where a test is
statistical its seeds are fixed, and its false-alarm rate over the choice of seeds is stated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskcoreset.core.typing import FloatArray, Sampling
from daskcoreset.sensitivities import Lightweight, Sensitivity, Uniform
from daskcoreset.testing import cut_rows, draw
from tests.tools.draws import modes

METHODS: list[Sensitivity[Any]] = [Lightweight(), Uniform()]
methods = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)


def uneven_rows() -> tuple[FloatArray, list[int]]:
    """Sorted rows in blocks: most of the scores on two of them, one empty, two single rows."""
    rng = np.random.default_rng(4)
    ordinary = np.sort(rng.normal(size=(24, 2)), axis=0)
    outlier = np.array([[40.0, 40.0]])
    alone = np.array([[-60.0, 0.0]])
    constant = np.full((6, 2), 2.5)
    X = np.concatenate([ordinary[:12], ordinary[12:13], constant, outlier, ordinary[13:], alone])
    return X, [12, 0, 1, 6, 1 + 4, 7, 1]


# --- systematic draws --------------------------------------------------------------------


def test_systematic__a_block_that_gave_all_it_has_is_not_read_again() -> None:
    # 20,000 candidates of 32 rows: all of every block, those of outliers too.
    X, sizes = uneven_rows()
    for n_rows in (1, 2, 5):
        selection = draw(cut_rows(X, sizes), Uniform(), n_rows)
        assert selection.rereads == 0


# --- what holds for every way to draw ----------------------------------------------------


@methods
@modes
def test_draw__size_one(method: Sensitivity[Any], sampling: Sampling, passes: int) -> None:
    X, sizes = uneven_rows()
    for seed in range(30):
        selection = draw(cut_rows(X, sizes), method, 1, sampling=sampling, passes=passes, seed=seed)
        assert len(selection.indices) <= 1
        assert np.isfinite(selection.weights).all()


# --- reads -------------------------------------------------------------------------------


"""Both designs and both numbers of reads, once each; `MODES` has them crossed."""
