"""The command line, called within this process."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from daskcoreset.cli.main import main

Capture = pytest.CaptureFixture[str]


def call_main(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def run_main(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "daskcoreset", *map(str, arguments)]
    settings: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 600} | options
    return subprocess.run(command, check=False, **settings)


def facts_of(text: str) -> dict[str, str]:
    """Read the lines of key, tab and value that a pipe gets."""
    lines = [line.split("\t") for line in text.splitlines()]
    assert all(len(line) == 2 for line in lines), text
    return dict(lines)


def error_line(capsys: Capture) -> str:
    """Return what was said on the error stream, which must be one line and all."""
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.endswith("\n")
    assert printed.err.count("\n") == 1
    return printed.err.rstrip()
