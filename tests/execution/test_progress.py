"""Progress: every block of every pass is counted, on a bar that follows the terminal."""

from __future__ import annotations

import importlib.util
import sys
import time
from typing import Any

import dask.array as da
import numpy as np
import pytest
from tqdm import auto

import daskcoreset
from daskcoreset.execution import progress

BLOCKS = 12


class Stream:
    """An error stream of a terminal, or of none, that can be read again."""

    encoding = "utf-8"

    def __init__(self, *, terminal: bool) -> None:
        self.terminal, self.written = terminal, ""

    def write(self, text: str) -> int:
        self.written += text
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.nightly
@pytest.mark.distributed
@pytest.mark.parametrize("passes", [1, 2])
def test_showing__counts_blocks_of_a_cluster(
    monkeypatch: pytest.MonkeyPatch, cluster: Any, passes: Any
) -> None:
    distributed = pytest.importorskip("distributed")
    bars: list[Any] = []

    class Seen(auto.tqdm):  # type: ignore[misc,unused-ignore] # of two classes
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            bars.append(self)

    def wait(block: Any) -> Any:
        time.sleep(0.05)
        return block

    monkeypatch.setattr(auto, "tqdm", Seen)
    monkeypatch.setattr(progress, "_INTERVAL", 0.01)
    X = da.random.default_rng(0).normal(size=(BLOCKS * 50, 3), chunks=(50, 3))
    X = X.map_blocks(wait, meta=np.empty((0, 3)))
    draw = daskcoreset.Draw(passes=passes)
    with distributed.Client(cluster):
        daskcoreset.build(X, size=20, chunks=50, random_state=0, draw=draw, progress=True)
    (bar,) = bars
    assert bar.total == passes * BLOCKS
    # Nobody asks for the last blocks any more once the result is there.
    assert bar.total // 2 < bar.n <= bar.total


@pytest.mark.parametrize(
    ("asked", "terminal", "notebook", "shown"),
    [
        (None, True, None, True),
        (None, False, None, False),
        (True, False, None, True),
        (False, True, None, False),
        (None, False, "with widgets", True),
        (None, False, "without widgets", False),
    ],
)
def test_counting__follows_the_argument_then_the_terminal(
    monkeypatch: pytest.MonkeyPatch,
    asked: bool | None,
    terminal: bool,
    notebook: str | None,
    shown: bool,
) -> None:
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    if notebook:
        monkeypatch.setitem(sys.modules, "ipykernel", progress)
        found = progress if notebook == "with widgets" else None
        monkeypatch.setattr(importlib.util, "find_spec", lambda _: found)
    stream = Stream(terminal=terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    # At once, and at every step; zero would draw before the first.
    monkeypatch.setattr(progress, "_DELAY", 1e-9)
    with progress.count_reads(asked, 2, unit="step") as advance:
        for _ in range(2):
            time.sleep(0.11)  # tqdm draws ten times a second at most
            advance(1)
    assert ("daskcoreset:  50%" in stream.written) is shown
    assert not stream.written or stream.written.endswith("\r")
