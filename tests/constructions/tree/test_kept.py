"""Interrupts of a save: the object goes on, from what is there."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daskcoreset import CoresetStream, CoresetTree, MergeReduce
from daskcoreset.core.typing import AnyArray
from daskcoreset.errors import StoreError

OPTIONS: dict[str, Any] = {
    "method": "uniform",
    "draw": MergeReduce(sampling="multinomial"),
    "random_state": 1,
}
ROWS = np.arange(400, dtype=float).reshape(-1, 2)


def batch(number: int) -> AnyArray:
    return ROWS[8 * number : 8 * number + 8]


def stream_in(path: Path) -> CoresetStream:
    return CoresetStream(**OPTIONS, size=3, leaf_size=20, store=path)


def tree_in(path: Path) -> CoresetTree:
    return CoresetTree.create(path, **OPTIONS, size=3)


@pytest.mark.parametrize("make", [stream_in, tree_in])
def test_interrupt__while_the_store_does_not_read_says_so_and_goes_on_when_it_does(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = make(tmp_path / "store")
    saved.partial_fit(batch(0))
    text, replace = repr(saved), os.replace

    def interrupted(*args: Any, **options: Any) -> None:
        replace(*args, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        saved.partial_fit(batch(1))
    monkeypatch.undo()
    (tmp_path / "store").rename(tmp_path / "away")
    for use in (lambda: len(saved), lambda: saved.partial_fit(batch(2))):
        with pytest.raises(StoreError, match="there is no coreset-"):
            use()
    # What is only shown is as it was before.
    assert repr(saved) == text
    (tmp_path / "away").rename(tmp_path / "store")
    assert len(saved) == (2 if make is tree_in else 16)
    saved.partial_fit(batch(2))
    opened: Any = CoresetTree.open if make is tree_in else CoresetStream.load
    assert saved.coreset().equals(opened(tmp_path / "store").coreset())


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
