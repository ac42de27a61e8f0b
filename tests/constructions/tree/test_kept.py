"""Interrupts of a save: the object goes on, from what is there."""

from __future__ import annotations

import copy
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from daskcoreset import CoresetStream, CoresetTree
from daskcoreset.core.errors import StoreError
from daskcoreset.core.typing import AnyArray
from tests.tools.light_groups import light_groups

OPTIONS: dict[str, Any] = {"method": "uniform", "sampling": "multinomial", "random_state": 1}
ROWS = np.arange(400, dtype=float).reshape(-1, 2)
PACKAGE = str(Path("daskcoreset", "constructions", "tree"))


def batch(number: int) -> AnyArray:
    return ROWS[8 * number : 8 * number + 8]


def stream_in(path: Path) -> CoresetStream:
    return CoresetStream(**OPTIONS, size=3, leaf_size=20, store=path)


def tree_in(path: Path) -> CoresetTree:
    return CoresetTree.create(path, **OPTIONS, size=3)


def in_peace(n: int) -> CoresetStream:
    stream = CoresetStream(**OPTIONS, size=3, leaf_size=20)
    return stream.partial_fit(ROWS[: 8 * n])


def fed_until(stream: CoresetStream, at: int) -> int:
    """Feed a third batch, interrupted if the interpreter looks for signals the n-th time."""
    passed = 0

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal passed
        if event in {"call", "c_return"} and PACKAGE in frame.f_code.co_filename:
            passed += 1
            if passed == at:
                sys.setprofile(None)
                raise KeyboardInterrupt

    sys.setprofile(profile)
    try:
        stream.partial_fit(batch(2))
    except KeyboardInterrupt:
        return -1
    finally:
        sys.setprofile(None)
    return passed


# A file whose opening is interrupted is closed when it is collected.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupt__wherever_the_interpreter_looks_for_signals(tmp_path: Path) -> None:
    """Early interrupts leave a change that was not made, late ones one that was."""

    def stream_of(name: str) -> CoresetStream:
        return stream_in(tmp_path / name).partial_fit(batch(0)).partial_fit(batch(1))

    had = []
    with light_groups():
        fed_until(stream_of("imports"), -1)
        n_places = fed_until(stream_of("counted"), -1)
        for at in range(1, n_places + 1, 7):
            stream = stream_of(f"at {at}")
            assert fed_until(stream, at) == -1
            had.append(stream.n_rows // 8)
            assert CoresetStream.load(tmp_path / f"at {at}").n_rows == stream.n_rows
            for number in range(had[-1], 4):
                stream.partial_fit(batch(number))
            for one in (stream, CoresetStream.load(tmp_path / f"at {at}")):
                assert one.coreset().equals(in_peace(4).coreset())
    assert had == sorted(had)
    assert {2, 3} == set(had)


@pytest.mark.parametrize("make", [stream_in, tree_in])
def test_interrupt__while_the_store_does_not_read_says_so_and_goes_on_when_it_does(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = make(tmp_path / "store")
    saved.partial_fit(batch(0))
    text, rename = repr(saved), os.rename

    def interrupted(*args: Any, **options: Any) -> None:
        rename(*args, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        saved.partial_fit(batch(1))
    monkeypatch.undo()
    (tmp_path / "store").rename(tmp_path / "away")
    with pytest.raises(StoreError, match=r"last change was interrupted; .* or open it again"):
        len(saved)
    with pytest.raises(StoreError, match="last change was interrupted"):
        saved.partial_fit(batch(2))
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
