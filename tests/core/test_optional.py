"""Imports that an interrupt does not break."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType

import pytest

from daskcoreset.core.optional import import_whole

SLOW = "import time\ntime.sleep(0.5)\nwhole = True\n"


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise KeyboardInterrupt


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers")
def test_import_whole__goes_on_after_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_to_import.py").write_text(SLOW)
    monkeypatch.syspath_prepend(str(tmp_path))
    before = signal.signal(signal.SIGALRM, _interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            import_whole("slow_to_import")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert import_whole("slow_to_import").whole
    del sys.modules["slow_to_import"]


def test_import_whole__says_what_is_wrong() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        import_whole("no_such_package")
