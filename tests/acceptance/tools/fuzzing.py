"""Mutations in a process of their own, which a watch ends where one hangs.

The process may take so much memory and no more, loads no pickled object, and every mutation has
seconds to end; what does not end shows where it stands, and is a failure.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, seed as with_seed, settings

SECONDS = 60
"""Of a mutation, first compilations of loops among them."""

MEMORY = 3 * 2**30
"""Bytes of addresses that mutations may take beside what the process has at the beginning."""


class Unpickled(BaseException):
    """Something was about to be loaded as a pickled object."""


def run(module: str, folder: Path, seed: int, count: int) -> dict[str, Any]:
    """Run ``main`` of a module of mutations in a process; return what it says at its end."""
    code = f"import sys; from {module} import main; main(*sys.argv[1:])"
    out = folder / "found.json"
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", code, str(out), str(seed), str(count)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "MPLBACKEND": "Agg"},
        capture_output=True, text=True, check=False, timeout=1200,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def guard() -> None:
    """Bound the memory of this process from now on."""
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if sys.platform == "linux" else 0
    if pages:
        limit = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))


_watched = [False]


# Dask names tasks, and numba finds compiled loops, by pickles of their own.
_OWN = ("dask/tokenize.py", "numba/core/caching.py", "numba/core/serialize.py")


def _hook(event: str, _: Any) -> None:
    if not _watched[0] or event != "pickle.find_class":
        return
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.endswith(_OWN):
            return
        frame = frame.f_back  # type: ignore[assignment] # None ends the loop
    raise Unpickled


def refuse_pickles() -> None:
    """Make every look-up of a class by a pickle an error, while `watched` runs something."""
    sys.addaudithook(_hook)


def watched(function: Callable[[], Any], name: str, *, pickles: bool = False) -> Any:
    """Call a function; the process ends where that takes too long."""
    print(name, file=sys.stderr, flush=True)  # noqa: T201 - where it stands, if it ends here
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    _watched[0] = not pickles
    try:
        return function()
    finally:
        _watched[0] = False
        faulthandler.cancel_dump_traceback_later()


def examples(seed: str, count: str) -> Callable[[Any], Any]:
    """Decorate a test that Hypothesis calls with so many examples, the same ones for a seed."""
    found = settings(
        max_examples=int(count), deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    return lambda test: with_seed(int(seed))(found(test))


def described(error: BaseException) -> str:
    """Say what an error is that is not ours, and where it comes from."""
    lines = traceback.extract_tb(error.__traceback__)
    places = [f"{'/'.join(Path(line.filename).parts[-2:])}:{line.lineno}" for line in lines]
    try:
        said = str(error)[:160]
    except BaseException:  # noqa: BLE001 - of a hostile object
        said = "?"
    return f"{type(error).__name__}: {said} @ {' '.join(places[-5:])}"


def report(out: str, count: int, failures: Iterable[str], **facts: Any) -> None:
    """Write what was found, for `run`."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    told = {"count": count, "failures": sorted(set(failures)), "peak_mib": peak // 1024, **facts}
    Path(out).write_text(json.dumps(told))
