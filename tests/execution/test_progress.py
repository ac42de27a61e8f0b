"""Progress: every block of every pass is counted, on a bar that follows the terminal."""

from __future__ import annotations

import importlib.util
import sys
import time

import pytest

from daskcoreset.execution import progress


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
