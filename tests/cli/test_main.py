"""The program: exit codes, and errors in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daskcoreset
from tests.tools.command_line import Capture, call_main, error_line, run_main


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ((), "COMMAND; see: daskcoreset --help"),
        (("nope",), "nope"),
        (("build",), "IN, OUT"),
        (("build", "in", "out", "--size", "0"), "--size"),
        (("build", "in", "out", "--size", "x"), "--size"),
        (("build", "in", "out", "--size=1", "--method=k"), "--method: invalid choice: 'k'"),
        (("build", "in", "out", "--size=1", "--sampling=k"), "'systematic', 'multinomial'"),
        (("build", "in", "out", "--size=1", "--passes=3"), "--passes"),
        (("build", "in", "out", "--size=1", "--on-invalid=k"), "'raise', 'drop'"),
        (("build", "in", "out", "--size=1", "--workers=2", "--scheduler=a"), "exclude each other"),
    ],
)
def test_main__says_wrong_usage_in_one_line_with_code_2(
    capsys: Capture, arguments: tuple[str, ...], found: str
) -> None:
    assert call_main(*arguments) == 2
    line = error_line(capsys)
    assert line.startswith("error: ")
    assert found in line
    assert line.endswith(" --help")


def test_main__names_errors_that_are_not_ours(
    npz: Path, out: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise KeyError("first\nsecond")

    monkeypatch.setattr(daskcoreset, "build", fail)
    assert call_main("build", npz, out, "--size", 5) == 1
    assert error_line(capsys).startswith("error: KeyError: ")


@pytest.mark.parametrize("place", [0, 1, 5])
def test_main__shows_the_traceback_wherever_debug_stands(
    tmp_path: Path, out: Path, capsys: Capture, place: int
) -> None:
    arguments: list[object] = ["build", tmp_path / "missing.npz", out, "--size", 5]
    arguments.insert(place, "--debug")
    assert call_main(*arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith("Traceback (most recent call last)")
    assert "MissingPathError: X names no file" in error


def test_main__ends_an_interruption_with_code_130(
    npz: Path, out: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(daskcoreset, "build", interrupt)
    assert call_main("build", npz, out, "--size", 5) == 130
    assert error_line(capsys) == "error: interrupted"
    assert not out.exists()


def test_main__ends_quietly_when_nobody_reads(npz: Path, out: Path) -> None:
    assert call_main("build", npz, out, "--size", 50) == 0
    reader, writer = os.pipe()
    os.close(reader)
    done = run_main("info", out, capture_output=False, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


def test_main__needs_no_streams(tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert call_main("build", tmp_path / "missing", out, "--size", 5) == 1
    monkeypatch.setattr(sys, "stdout", None)
    assert call_main("--version") == 0


def test_main__warnings_are_one_line(tmp_path: Path, capsys: Capture) -> None:
    np.savez(tmp_path / "data.npz", X=np.eye(5))
    assert call_main("build", tmp_path / "data.npz", tmp_path / "out.zarr", "--size", 9) == 0
    assert "warning: nothing was reduced" in capsys.readouterr().err
