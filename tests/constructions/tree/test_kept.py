"""Interrupts of a save: the object goes on, from what is there."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daskcoreset import CoresetStream, CoresetTree, MergeReduce
from daskcoreset.errors import StoreError

OPTIONS: dict[str, Any] = {
    "method": "uniform",
    "draw": MergeReduce(sampling="multinomial"),
    "random_state": 1,
}
ROWS = np.arange(400, dtype=float).reshape(-1, 2)


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies__go_on_by_themselves(again: Callable[[Any], Any], tmp_path: Path) -> None:
    stream = CoresetStream(size=150, random_state=1).partial_fit(ROWS[:100])
    copied = again(stream).partial_fit(ROWS[150:])
    assert np.array_equal(stream.partial_fit(ROWS[100:]).rows().points, ROWS)
    assert np.array_equal(copied.rows().points, np.delete(ROWS, slice(100, 150), axis=0))
    tree = CoresetTree.create(tmp_path / "tree", **OPTIONS)
    again(tree).append(ROWS)
    assert not tree.leaves


def test_save__while_the_store_is_out_of_reach_leaves_the_rows_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = CoresetStream(size=3, random_state=1, store=tmp_path / "s").partial_fit(np.eye(4))
    before = stream.coreset()

    def gone(*_: Any) -> Any:
        raise StoreError("out of reach")

    monkeypatch.setattr("daskcoreset.storage.disk.DiskFolder.root", gone)
    with pytest.raises(StoreError, match="out of reach"):
        stream.partial_fit(np.eye(4))
    assert (stream.n_rows, stream.coreset().equals(before)) == (4, True)
    monkeypatch.undo()
    assert stream.partial_fit(np.eye(4)).n_rows == CoresetStream.load(tmp_path / "s").n_rows == 8
