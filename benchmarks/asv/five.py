"""The figures of speed that are followed from commit to commit, by `asv <https://asv.readthedocs.io>`_.

Time is given as a ratio of two things measured in turns in one run, so that figures of a noisy
machine can be compared; the larger measurements are the scripts of the folder above. Without asv,
the table of them all:

    python benchmarks/asv/five.py
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import dask
import numpy as np
import zarr

sys.path.insert(0, str(Path(__file__).parents[1]))

import common
from throughput import interleaved, numpy_lightweight

import daskcoreset

ROWS, COLUMNS, CHUNK_ROWS, SIZE = 2_000_000, 20, 200_000, 10_000
TURNS = 5


def _ratio(job: Callable[[], object], floor: Callable[[], object], turns: int = TURNS) -> float:
    """Median over the turns of the time of `job` over that of `floor`; the first does not count."""
    times = interleaved({"floor": floor, "job": job}, turns)
    return float(np.median(times["job"] / times["floor"]))


class OutOfCore:
    """Builds from a Zarr store of 160 MB, in chunks of 16 MB."""

    timeout = 600

    def setup(self) -> None:
        """Write the store."""
        self.folder = tempfile.TemporaryDirectory()
        self.path = str(Path(self.folder.name) / "rows.zarr")
        common.write_rows(Path(self.path), ROWS, COLUMNS, CHUNK_ROWS, common.gaussian(COLUMNS))

    def teardown(self) -> None:
        """Remove the store."""
        self.folder.cleanup()

    def _read(self) -> None:
        rows = zarr.open_array(self.path, mode="r")
        for start in range(0, ROWS, CHUNK_ROWS):
            _ = rows[start : start + CHUNK_ROWS]

    def _stream(self) -> None:
        rows = zarr.open_array(self.path, mode="r")
        daskcoreset.CoresetStream(size=1000, random_state=0).partial_fit(rows).coreset()

    def _build(self) -> None:
        daskcoreset.build(self.path, size=SIZE, random_state=0)

    def track_build_over_a_plain_read(self) -> float:
        """Time of a build over that of Dask's sum of the columns, on one thread each."""
        import dask.array as da

        with dask.config.set(scheduler="sync"):
            return _ratio(self._build, lambda: da.from_zarr(self.path).sum(axis=0).compute())

    def track_stream_over_a_plain_read(self) -> float:
        """Time of a stream over that of reading its rows."""
        return _ratio(self._stream, self._read)

    def peakmem_build(self) -> None:
        """Peak memory of the process that builds."""
        self._build()

    track_build_over_a_plain_read.unit = track_stream_over_a_plain_read.unit = "times"  # type: ignore[attr-defined]


def _in_memory(n_rows: int, turns: int) -> float:
    X = np.random.default_rng(0).standard_normal((n_rows, COLUMNS), dtype=np.float32)
    size = n_rows // 10
    return _ratio(
        lambda: daskcoreset.build(X, size=size, random_state=0),
        lambda: numpy_lightweight(X, size, 0),
        turns,
    )


def track_build_in_memory_over_numpy() -> float:
    """Time of a build of 100,000 rows in memory over a NumPy reading of the algorithm."""
    return _in_memory(100_000, 4 * TURNS)


def track_small_build_in_memory_over_numpy() -> float:
    """Time of a build of 10,000 rows in memory over a NumPy reading of the algorithm."""
    return _in_memory(10_000, 20 * TURNS)


def _run_import(package: str) -> None:
    subprocess.run([sys.executable, "-c", f"import {package}"], check=True)


def track_import_over_numpy() -> float:
    """Time of a process that imports this package over that of one that imports NumPy."""
    return _ratio(lambda: _run_import("daskcoreset"), lambda: _run_import("numpy"))


def track_import_cpu() -> float:
    """Processor time of a process that imports this package; Python's own start is in it."""
    seconds = []
    for _ in range(2 * TURNS + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        _run_import("daskcoreset")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return float(np.median(seconds[1:]))


for _track in (
    track_build_in_memory_over_numpy,
    track_small_build_in_memory_over_numpy,
    track_import_over_numpy,
):
    _track.unit = "times"  # type: ignore[attr-defined]
track_import_cpu.unit = "s"  # type: ignore[attr-defined]


def main() -> None:
    """Measure all but the peak, and print and write the table."""
    args = common.arguments(__doc__).parse_args()
    stored = OutOfCore()
    stored.setup()
    measured = {
        f"build of {ROWS:,} rows from Zarr over a plain sum": (
            stored.track_build_over_a_plain_read(), 1.1,
        ),
        f"stream of {ROWS:,} rows from Zarr over reading them": (
            stored.track_stream_over_a_plain_read(), 1.25,
        ),
        "build of 100,000 rows in memory over NumPy": (track_build_in_memory_over_numpy(), 3),
        "build of 10,000 rows in memory over NumPy": (
            track_small_build_in_memory_over_numpy(), 5,
        ),
        "import over that of NumPy": (track_import_over_numpy(), ""),
        "import, seconds of processor time": (track_import_cpu(), 0.5),
    }  # fmt: skip
    stored.teardown()
    data = {"stamp": common.stamp(), "results": measured}

    common.write("five", data, args.out)
    rows = [(name, f"{found:.2f}", goal) for name, (found, goal) in measured.items()]
    print(*common.table(["figure", "median", "at most, as a goal"], rows), sep="\n")


if __name__ == "__main__":
    main()
