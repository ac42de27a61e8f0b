"""What benchmarks share: arguments, data, stamps, results, tables, time and memory.

Results are one JSON file of a benchmark, ``{"stamp": ..., "results": ...}``. ``pages.py`` writes
the tables of the README and of the documentation from them, and nobody writes them by hand.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from scipy import stats
from sets import available

RESULTS = Path(__file__).parent / "results"


def arguments(doc: str | None, sets: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Return a parser with the options --out and, where there are data sets, --sets."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    if sets:
        parser.add_argument("--sets", nargs="*", default=list(sets))
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    return parser


def loadable(sets: Iterable[str], *made: str) -> list[str]:
    """Return the sets that can be loaded, and those that are `made`; name the others."""
    known = {*available(), *made}
    missing = [name for name in sets if name not in known]
    if missing:
        print(f"skipped: DASKCORESET_DATA names no folder with {', '.join(missing)}")
    return [name for name in sets if name in known]


def dense(X: Any, dtype: Any = None) -> np.ndarray:
    """Return rows as a dense array."""
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=dtype)


def gaussian(columns: int) -> Callable[[int], np.ndarray]:
    """Return a source of standard normal rows, float32."""
    rng = np.random.default_rng(0)
    return lambda count: rng.standard_normal((count, columns), dtype=np.float32)


def mixture(columns: int) -> Callable[[int], np.ndarray]:
    """Return a source of rows of a mixture of 50 Gaussians, float32."""
    rng = np.random.default_rng(0)
    centers = 10 * rng.standard_normal((50, columns), dtype=np.float32)

    def draw(count: int) -> np.ndarray:
        noise = rng.standard_normal((count, columns), dtype=np.float32)
        return centers[rng.integers(0, 50, count)] + noise

    return draw


def write_rows(
    path: Path, n_rows: int, columns: int, chunk_rows: int, draw: Callable[[int], np.ndarray]
) -> None:
    """Write rows that `draw` makes to a Zarr array with the default codec, chunk by chunk."""
    chunks = (min(chunk_rows, n_rows), columns)
    array = zarr.create_array(path, shape=(n_rows, columns), chunks=chunks, dtype="float32")
    for start in range(0, n_rows, chunk_rows):
        stop = min(start + chunk_rows, n_rows)
        array[start:stop] = draw(stop - start)


def in_child(script: str, *words: object, timeout: float | None = None) -> Any:
    """Run a script in a process of its own; return the last line that it prints, read as JSON."""
    command = [sys.executable, script, *map(str, words)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=timeout)
    return json.loads(done.stdout.splitlines()[-1])


def _git(*words: str) -> str:
    root = Path(__file__).parent.parent
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)  # noqa: S607
    return done.stdout.strip()


def stamp(**settings: Any) -> dict[str, Any]:
    """Return what made a run: commit, date, processors, versions and settings.

    A "+" behind the commit says that the package differed from it. The load is the number of
    processes that wanted a processor over the last quarter of an hour, the benchmark's among them.
    """
    changed = "+" if _git("status", "--porcelain", "--", "daskcoreset") else ""
    return {
        "commit": (_git("rev-parse", "--short=9", "HEAD") or "unknown") + changed,
        "date": datetime.now(UTC).date().isoformat(),
        "cpus": os.cpu_count(),
        "processor": processor(),
        "load": round(os.getloadavg()[2], 1),
        "python": platform.python_version(),
        "numpy": np.__version__,
        **settings,
    }


def processor() -> str:
    """Return the name of the kind of processor, as Linux tells it; that of its family elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def processor_of(stamp: Mapping[str, Any]) -> str:
    """Return the short name of the processor of a run."""
    name = str(stamp.get("processor", "not recorded"))
    return name.replace("(R)", "").replace(" Processor", "")


def stamped(data: Mapping[str, Any]) -> str:
    """Say in a sentence which run made the results."""
    made = data["stamp"]
    load = f", load {made['load']:.1f}" if "load" in made else ""
    of = f" of {processor_of(made)}" if "processor" in made else ""
    return f"Run: commit {made['commit']}, {made['date']}, {made['cpus']} cores{of}{load}."


def write(name: str, data: dict[str, Any], out: Path) -> None:
    """Write the results of a benchmark."""
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.json").write_text(json.dumps(data) + "\n")


def read(name: str, out: Path = RESULTS) -> dict[str, Any]:
    """Read the results of a benchmark."""
    data: dict[str, Any] = json.loads((out / f"{name}.json").read_text())
    return data


def interval(values: Sequence[float] | np.ndarray) -> float:
    """Half width of the 95 % interval of the mean, by Student's t."""
    values = np.asarray(values)
    width = stats.t.ppf(0.975, len(values) - 1)
    return float(width * values.std(ddof=1) / np.sqrt(len(values)))


def cell(share: float, digits: int = 2) -> str:
    """Return a share as per cent, with so many digits that count, and no exponents."""
    value = 100 * share
    if abs(value) < 1e-4:
        return "< 0.0001" if value > 1e-9 else "0"
    places = max(0, digits - 1 - int(np.floor(np.log10(abs(value)))))
    return f"{value:.{places}f}"


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    return lines + [f"| {' | '.join(map(str, row))} |" for row in rows]


def printed(row: Sequence[Any]) -> Sequence[Any]:
    """Print a row of a table as soon as it is there, and return it."""
    print(" | ".join(map(str, row)), flush=True)
    return row


def sizes_of(results: dict[str, Any]) -> list[int]:
    """Return the sizes in the keys "method|size" of the cells of a set, in order."""
    return sorted({int(key.rsplit("|", 1)[1]) for key in results})


class Clock:
    """Seconds of wall clock and of all processors."""

    wall: float
    cpu: float


@contextmanager
def timed() -> Iterator[Clock]:
    """Measure a block of code; seconds of processors do not count what others run beside it."""
    clock = Clock()
    wall, cpu = time.perf_counter(), time.process_time()
    yield clock
    clock.wall, clock.cpu = time.perf_counter() - wall, time.process_time() - cpu


def high_water() -> int:
    """Peak resident bytes of this process since the mark was last reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def reset_high_water() -> int:
    """Set the mark to the present size, and return it in bytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return high_water()
