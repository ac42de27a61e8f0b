"""Progress: every block of every pass is counted, and nobody else's."""

from __future__ import annotations

import errno
import importlib.util
import os
import struct
import subprocess
import sys
import time
from io import StringIO
from threading import Thread
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
import pytest

import daskcoreset
from daskcoreset.execution import progress

if TYPE_CHECKING:
    from collections.abc import Callable


BLOCKS = 12


class Recorder:
    """Stands in for the bar, and remembers what it was told."""

    made: list[Recorder]

    def __init__(self, total: int, unit: str) -> None:
        self.total, self.unit, self.done, self.closed = total, unit, 0, False
        self.made.append(self)

    def advance(self, steps: int) -> None:
        assert steps >= 0
        self.done += steps

    def show_compiling(self, begins: bool) -> None:
        pass

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[Recorder]:
    made: list[Recorder] = []
    monkeypatch.setattr(Recorder, "made", made, raising=False)
    monkeypatch.setattr(progress, "_Bar", Recorder)
    return made


def _rows(seconds: float = 0.0) -> Any:
    def wait(block: Any) -> Any:
        time.sleep(seconds)
        return block

    X = da.random.default_rng(0).normal(size=(BLOCKS * 50, 3), chunks=(50, 3))
    return X.map_blocks(wait, meta=np.empty((0, 3)))


def _build(seconds: float = 0.0, **options: Any) -> daskcoreset.Coreset:
    settings: dict[str, Any] = {"size": 20, "chunks": 50, "random_state": 0} | options
    coreset: daskcoreset.Coreset = daskcoreset.build(_rows(seconds), **settings)
    return coreset


@pytest.mark.nightly
@pytest.mark.distributed
@pytest.mark.parametrize("passes", [1, 2])
def test_showing__counts_blocks_of_a_cluster(
    bars: list[Recorder], monkeypatch: pytest.MonkeyPatch, cluster: Any, passes: int
) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(progress, "_INTERVAL", 0.01)
    with distributed.Client(cluster):
        _build(0.05, passes=passes, progress=True)
    (bar,) = bars
    assert bar.total == passes * BLOCKS
    # Of the last blocks nobody asks any more once the result is there.
    assert bar.total // 2 < bar.done <= bar.total
    assert bar.closed


@pytest.mark.parametrize(
    ("asked", "terminal", "shown"),
    [(None, True, True), (None, False, False), (True, False, True), (False, True, False)],
)
def test_showing__follows_the_argument_then_the_terminal(
    bars: list[Recorder],
    monkeypatch: pytest.MonkeyPatch,
    asked: bool | None,
    terminal: bool,
    shown: bool,
) -> None:
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    _build(progress=asked)
    assert bool(bars) is shown


@pytest.mark.parametrize("widgets", [True, False])
def test_showing__is_shown_in_a_notebook_with_widgets(
    bars: list[Recorder], monkeypatch: pytest.MonkeyPatch, widgets: bool
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    monkeypatch.setitem(sys.modules, "ipykernel", progress)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: progress if widgets else None)
    _build()
    assert bool(bars) is widgets


# --- the bar itself ----------------------------------------------------------------------


class Stream:
    """An error stream that can be read again, or that fails."""

    encoding = "utf-8"

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure, self.written, self.attempts = failure, "", 0

    def write(self, text: str) -> int:
        self.attempts += 1
        if self.failure is not None:
            raise self.failure
        self.written += text
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return True


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Stream]:
    def use(failure: Exception | None = None) -> Stream:
        made = Stream(failure)
        monkeypatch.setattr(sys, "stderr", made)
        # At once, and at every step; zero would draw before the first.
        monkeypatch.setattr(progress, "_DELAY", 1e-9)
        return made

    return use


def test_counting__draws_steps_and_clears_the_line(stream: Callable[..., Stream]) -> None:
    seen = stream()
    with progress.count_reads(None, 4, unit="step") as advance:
        for _ in range(4):
            time.sleep(0.11)  # tqdm draws ten times a second at most
            advance(1)
    assert "daskcoreset:  50%" in seen.written
    assert "2/4" in seen.written
    assert "step" in seen.written
    assert seen.written.endswith("\r")


@pytest.mark.parametrize(
    "failure", [OSError(errno.EPIPE, "Broken pipe"), ValueError("odd"), RuntimeError("odd")]
)
def test_showing__never_ends_the_build(stream: Callable[..., Stream], failure: Exception) -> None:
    seen = stream(failure)
    _build(0.03, progress=True)
    assert seen.attempts >= 1

    # tqdm's lock is free: for bars of other threads, and for the thread that it joins at the end.
    tqdm = pytest.importorskip("tqdm").tqdm
    other = Thread(target=lambda: tqdm(total=1, file=StringIO()).close(), daemon=True)
    other.start()
    other.join(timeout=30)
    assert not other.is_alive()


def test_showing__works_without_tqdm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    assert len(_build(progress=True)) == 20


# --- real terminals and pipes ------------------------------------------------------------


SCRIPT = """
import time
from io import StringIO
from threading import Thread
import dask.array as da, numpy as np
import daskcoreset
from daskcoreset.execution import progress

def wait(block):
    time.sleep(0.1)
    return block

progress._DELAY = 0.2
X = da.zeros((1200, 2), chunks=(50, 2)).map_blocks(wait, meta=np.empty((0, 2)))
print(len(daskcoreset.build(X, size=10, chunks=50)))
"""


@pytest.mark.nightly
def test_build__shows_a_bar_on_a_terminal() -> None:
    # Which Windows does not have.
    fcntl, termios = pytest.importorskip("fcntl"), pytest.importorskip("termios")
    ours, theirs = os.openpty()
    # A new pseudo-terminal has no columns, and a bar that fits into them is empty.
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, stderr=theirs, text=True
    ) as process:
        os.close(theirs)
        drawn = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # Linux says so when the other side is closed
                break
            if not part:
                break
            drawn += part
        printed = process.communicate(timeout=600)[0]
    os.close(ours)
    assert (printed, process.returncode) == ("10\n", 0)
    assert b"daskcoreset:" in drawn
    assert b"/24 [" in drawn  # 24 blocks, counted one by one
    assert drawn.endswith(b"\r")  # and taken away at the end
