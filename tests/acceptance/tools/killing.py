"""Processes that are killed: run a piece of work again and again until it gets through.

Run as a program, with the name of a file that defines ``work(path)`` and ``report(path)``, a
path, and a seed. Each attempt is a process of its own, which is killed with SIGKILL: either by
this one after a random time, or by itself at the n-th time that it flushes, renames or removes
a file, or writes or removes an object of an object store, n one more with every attempt, so that
every step of writing is hit. After every kill
``report`` runs, in a process of its own too, and prints what it finds.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import runpy
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any


def run(script: str, folder: Path, *, seed: int, timed: bool, step: int = 1) -> dict[str, Any]:
    """Run `script` until it gets through; return how often it was killed, and the reports."""
    file = folder / "script.py"
    file.write_text(script)
    options = {"seed": seed, "timed": timed, "step": step}
    done = subprocess.run(
        [sys.executable, __file__, str(file), str(folder / "store"), json.dumps(options)],
        capture_output=True, text=True, check=False, timeout=1200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _fork(function: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            function()
            code = 0
        except BaseException:  # noqa: BLE001 - told to the parent by the exit code
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return pid


def _armed(work: Callable[[], None], step: int) -> Callable[[], None]:
    """Make `work` kill its process at the given step of writing."""
    left = [step]

    def counting(original: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*args, **kwargs)

        return counted

    def armed() -> None:
        os.fsync = counting(os.fsync)
        os.rename = counting(os.rename)
        os.rmdir = counting(os.rmdir)
        Path.rename = counting(Path.rename)  # type: ignore[method-assign] # to be killed there
        shutil.rmtree = counting(shutil.rmtree)  # type: ignore[assignment] # likewise
        if "obstore" in sys.modules:
            import obstore

            obstore.put = counting(obstore.put)
            obstore.delete = counting(obstore.delete)
        work()

    return armed


def _main(file: str, path: str, options: dict[str, Any]) -> None:
    names = runpy.run_path(file)
    # What the work imports on its way is imported once, and not by every process.
    for name in ("dask.array", "zarr"):
        importlib.import_module(name)
    rng = random.Random(options["seed"])  # noqa: S311 - a time to wait
    kills, reports, attempt = 0, [], 0
    report_file = Path(path + ".report")

    def report() -> None:
        report_file.write_text(json.dumps(names["report"](path)))

    while True:
        attempt += 1
        if options["timed"]:
            pid = _fork(lambda: names["work"](path))
            time.sleep(rng.uniform(0.02, 0.1) * 1.4**attempt)
            os.kill(pid, signal.SIGKILL)
        else:
            pid = _fork(_armed(lambda: names["work"](path), 1 + (attempt - 1) * options["step"]))
        _, status = os.waitpid(pid, 0)
        killed = os.WIFSIGNALED(status)
        assert killed or os.WEXITSTATUS(status) == 0, "the work failed"
        kills += killed
        _, status = os.waitpid(_fork(report), 0)
        assert os.WEXITSTATUS(status) == 0, f"what {kills} kills left does not open"
        reports.append(json.loads(report_file.read_text()))
        if not killed:
            break
    print(json.dumps({"kills": kills, "reports": reports}))  # noqa: T201 - the answer


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
