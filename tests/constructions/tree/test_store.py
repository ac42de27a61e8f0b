"""`CoresetTree`: few nodes a change, old or new whatever is killed, one of two writers."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from daskcoreset import CoresetTree
from daskcoreset.errors import InvalidInputError
from daskcoreset.testing import assert_mean
from tests.acceptance.tools.trees import day, made

# --- changes -------------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.statistical
@pytest.mark.usefixtures("quick_disk")
def test_coreset__is_unbiased_after_changes(tmp_path: Path) -> None:
    """Total weight and a cost of what is left after replacing and deleting; 1e-6."""
    left = np.concatenate([day(0), day(9, 90), day(2)])
    found = []
    for seed in range(200):
        tree = made(tmp_path / str(seed), 4, size=15, random_state=seed)
        tree.replace("day 1", day(9, 90))
        tree.delete("day 3")
        c = tree.coreset()
        found.append([c.weights.sum(), c.weights @ (c.points**2).sum(axis=1)])
        shutil.rmtree(tmp_path / str(seed))
    assert_mean(np.array(found), np.array([len(left), (left**2).sum()]))


# --- the disk ------------------------------------------------------------------------------


def test_coreset__of_rows_that_were_all_left_out(tmp_path: Path) -> None:
    tree = CoresetTree.create(tmp_path / "t", size=5, random_state=0, on_invalid="drop")
    tree.append(np.full((3, 2), np.nan))
    with pytest.raises(InvalidInputError, match="all were left out as not finite"):
        tree.coreset()
