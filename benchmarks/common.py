"""What benchmarks share: the stamp of a run, its results on the disk, tables, figures, peak memory.

Results are one JSON file of a benchmark, ``{"stamp": ..., "results": ...}``. Tables are made from
it, never by hand: the benchmark writes its Markdown file from it, and ``readme.py`` the tables of
the README.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from scipy import stats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "RESULTS",
    "Clock",
    "cell",
    "counted",
    "high_water",
    "interval",
    "panels",
    "parts_of",
    "read",
    "reset_high_water",
    "stamp",
    "stamped",
    "table",
    "timed",
    "write",
]

RESULTS = Path(__file__).parent / "results"


def _git(*words: str) -> str:
    root = Path(__file__).parent.parent
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)  # noqa: S607
    return done.stdout.strip()


def stamp(**settings: Any) -> dict[str, Any]:
    """Return what made a run: commit, date, processors, versions and settings.

    A "+" behind the commit says that the package differed from it.
    """
    changed = "+" if _git("status", "--porcelain", "--", "daskcoreset") else ""
    return {
        "commit": (_git("rev-parse", "--short=9", "HEAD") or "unknown") + changed,
        "date": datetime.now(UTC).date().isoformat(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        **settings,
    }


def stamped(data: dict[str, Any]) -> str:
    """Say in a line which run made the results."""
    made = data["stamp"]
    return f"Commit {made['commit']}, {made['date']}, {made['cpus']} cores."


def write(
    name: str,
    data: dict[str, Any],
    out: Path,
    report: Callable[[Any], str],
    figures: Callable[[Any], dict[str, Figure]] | None = None,
) -> None:
    """Write the results of a benchmark, its report, and its figures by their names."""
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.json").write_text(json.dumps(data) + "\n")
    (out / f"{name}.md").write_text(report(data))
    for title, drawing in (figures(data) if figures else {}).items():
        drawing.savefig(out / f"{title}.png", dpi=110)


def read(name: str, out: Path = RESULTS) -> dict[str, Any]:
    """Read the results of a benchmark."""
    data: dict[str, Any] = json.loads((out / f"{name}.json").read_text())
    return data


def interval(values: Sequence[float] | np.ndarray) -> float:
    """Half width of the 95 % interval of the mean, by Student's t."""
    found = np.asarray(values)
    width = stats.t.ppf(0.975, len(found) - 1)
    return float(width * found.std(ddof=1) / np.sqrt(len(found)))


def counted(counts: Iterable[int], word: str) -> str:
    """Return how many there are of something, such as "3 or 10 trials"."""
    known = sorted(set(counts))
    return f"{' or '.join(map(str, known))} {word}{'' if known == [1] else 's'}"


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


def panels(count: int, columns: int = 3, height: float = 3.2) -> tuple[Figure, Iterator[Axes]]:
    """Return a figure of so many panels; those that are left over are not drawn."""
    columns = min(columns, count)
    rows = -(-count // columns)
    drawing = Figure(figsize=(4 * columns, height * rows + 0.4), layout="constrained")
    FigureCanvasAgg(drawing)
    axes = drawing.subplots(rows, columns, squeeze=False).ravel()
    for ax in axes[:count]:
        ax.grid(visible=True, alpha=0.3)
    for ax in axes[count:]:
        ax.set_axis_off()
    return drawing, iter(axes[:count])


def parts_of(results: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Go through the keys "method|size" of the cells of a set."""
    for key in results:
        method, size = key.rsplit("|", 1)
        yield method, int(size)


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
