"""Time and memory of a build against one plain pass over the same store.

For every number of rows: a Zarr store of float32 (20 columns, default codec) is written, and
``X.sum(axis=0).compute()``, ``build(passes=1)`` and ``build(passes=2)`` are timed in turns on
the threads scheduler. Ratios are medians over the turns, each against the plain pass of its
own turn. Peak memory is measured in a process of its own for each, beyond what the process
held after its imports and a tiny build. Then builds of an array in memory against a plain
NumPy lightweight coreset in two passes, and streams of batches against reading their rows.

    python benchmarks/throughput.py --rows 2500000 5000000 10000000 20000000
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import common
import dask
import dask.array as da
import numpy as np
import zarr

import daskcoreset

NAME = "throughput"
COLUMNS = 20
CHUNK_ROWS = 200_000  # 16 MB
SIZE = 10_000


def jobs(path: str) -> dict[str, Callable[[], object]]:
    """Return what is compared, by name."""
    return {
        "plain sum": lambda: da.from_zarr(path).sum(axis=0).compute(),
        "passes=1": lambda: daskcoreset.build(path, size=SIZE, random_state=0),
        "passes=2": lambda: daskcoreset.build(
            path, size=SIZE, random_state=0, draw=daskcoreset.Draw(passes=2)
        ),
        "passes=1, Dask array": lambda: daskcoreset.build(
            da.from_zarr(path), size=SIZE, random_state=0
        ),
        "passes=2, Dask array": lambda: daskcoreset.build(
            da.from_zarr(path), size=SIZE, random_state=0, draw=daskcoreset.Draw(passes=2)
        ),
    }


def interleaved(functions: dict[str, Callable[[], object]], turns: int) -> dict[str, np.ndarray]:
    """Time the functions in turns, by the wall clock."""
    return {name: times[:, 0] for name, times in by_both_clocks(functions, turns).items()}


def by_both_clocks(functions: dict[str, Callable[[], object]], turns: int) -> dict[str, np.ndarray]:
    """Time the functions in turns, by the wall clock and that of the processors.

    The first turn warms up and does not count.
    """
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in functions}
    for turn in range(turns + 1):
        for name, function in functions.items():
            with common.timed() as clock:
                function()
            if turn:
                times[name].append((clock.wall, clock.cpu))
    return {name: np.array(seconds) for name, seconds in times.items()}


def ratios(times: dict[str, np.ndarray], floor: str) -> dict[str, list[float]]:
    """Return the medians of the ratios to a floor, by both clocks."""
    return {name: np.median(found / times[floor], axis=0).tolist() for name, found in times.items()}


def each_turn(times: dict[str, np.ndarray], floor: str) -> dict[str, list[float]]:
    """Return the ratios of all turns to a floor, by the processors."""
    return {name: (found / times[floor])[:, 1].tolist() for name, found in times.items()}


def measure_peak(path: str, name: str) -> int:
    """Peak bytes of one job beyond the baseline; runs in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        tiny = zarr.create_array(Path(folder) / "tiny.zarr", shape=(1000, COLUMNS), dtype="f4")
        tiny[:] = 1
        daskcoreset.build(f"{folder}/tiny.zarr", size=10, random_state=0)
    before = common.reset_high_water()
    jobs(path)[name]()
    return common.high_water() - before


def numpy_lightweight(X: np.ndarray, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Algorithm 1 as one would write it by hand."""
    rng = np.random.default_rng(seed)
    gaps = X - X.mean(axis=0)
    distances = np.einsum("ij,ij->i", gaps, gaps)
    q = 0.5 / len(X) + 0.5 * distances / distances.sum()
    chosen = rng.choice(len(X), size, p=q / q.sum())
    return X[chosen], 1 / (size * q[chosen])


def in_memory(turns: int) -> list[dict[str, Any]]:
    """Compare builds of an array in memory with the floor."""
    rows = []
    for n_rows in (10_000, 100_000, 1_000_000):
        X = np.random.default_rng(0).standard_normal((n_rows, COLUMNS), dtype=np.float32)
        size = min(SIZE, n_rows // 10)
        times = by_both_clocks(
            {
                "floor": lambda X=X, size=size: numpy_lightweight(X, size, 0),
                "passes=1": lambda X=X, size=size: daskcoreset.build(X, size=size, random_state=0),
                "passes=2": lambda X=X, size=size: daskcoreset.build(
                    X, size=size, random_state=0, draw=daskcoreset.Draw(passes=2)
                ),
            },
            max(turns, min(100, 2_000_000 // n_rows)),
        )
        seconds = float(np.median(times["floor"][:, 1]))
        turn = {"ratios": ratios(times, "floor"), "turns": each_turn(times, "floor")}
        rows.append({"rows": n_rows, "floor": seconds, **turn})
    return rows


def from_batches(turns: int) -> list[dict[str, Any]]:
    """Compare streams of batches in memory with reading the same rows from Zarr."""
    rows = []
    n_rows = 10 * CHUNK_ROWS
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.zarr"
        common.write_rows(path, n_rows, COLUMNS, CHUNK_ROWS, common.gaussian(COLUMNS))
        stored = zarr.open_array(path, mode="r")
        X = stored[:]

        def read() -> None:
            for start in range(0, n_rows, CHUNK_ROWS):
                _ = stored[start : start + CHUNK_ROWS]

        def stream(batch: int) -> None:
            stream = daskcoreset.CoresetStream(size=1000, random_state=0)
            for start in range(0, n_rows, batch):
                stream.partial_fit(X[start : start + batch])
            stream.coreset()

        for batch in (1_000, 10_000, CHUNK_ROWS):
            times = by_both_clocks({"read": read, "stream": partial(stream, batch)}, turns)
            each = float(np.median(times["stream"][:, 1])) / n_rows
            turn = {"ratios": ratios(times, "read"), "turns": each_turn(times, "read")}
            rows.append({"batch": batch, "each": each, **turn})
    return rows


def elsewhere(out: Path, processor: str) -> list[dict[str, Any]]:
    """Return earlier runs on other kinds of processors, on which ratios are others."""
    if not (out / f"{NAME}.json").exists():
        return []
    data = common.read(NAME, out)
    runs = [data, *data.get("elsewhere", [])]
    plain = [{key: run[key] for key in ("stamp", "results")} for run in runs]
    return [run for run in plain if run["stamp"].get("processor") != processor]


def measure_stored(rows: Iterable[int], folder: Path | None, turns: int) -> list[dict[str, Any]]:
    """Compare builds from stores with plain sums of them."""
    found = []
    with (
        dask.config.set(scheduler="threads"),
        tempfile.TemporaryDirectory(dir=folder) as place,
    ):
        for n_rows in rows:
            path = Path(place) / f"{n_rows}.zarr"
            common.write_rows(path, n_rows, COLUMNS, CHUNK_ROWS, common.mixture(COLUMNS))
            times = by_both_clocks(jobs(str(path)), turns)
            ratio, turn = ratios(times, "plain sum"), each_turn(times, "plain sum")
            for name, seconds in times.items():
                peak = common.in_child(__file__, "--peak-of", path, name)
                medians = np.median(seconds, axis=0).tolist()
                measured = {"seconds": medians, "ratio": ratio[name], "peak": peak}
                measured["turns"] = turn[name]
                found.append({"rows": n_rows, "job": name, **measured})
                common.printed([f"{n_rows:,}", name, medians, ratio[name]])
    return found


def main() -> None:
    """Run the benchmark."""
    parser = common.arguments(__doc__)
    parser.add_argument("--rows", nargs="+", type=int, default=[10_000_000])
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="where the stores go; removed afterwards")
    parser.add_argument("--peak-of", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peak_of:
        print(measure_peak(*args.peak_of))
        return
    results = {
        "stored": measure_stored(args.rows, args.folder, args.turns),
        "memory": in_memory(args.turns),
        "batches": from_batches(args.turns),
    }
    data: dict[str, Any] = {"stamp": common.stamp(turns=args.turns), "results": results}
    data["elsewhere"] = elsewhere(args.out, data["stamp"]["processor"])
    common.write(NAME, data, args.out)


if __name__ == "__main__":
    main()
