"""Time and memory of a build against one plain pass over the same store.

For every number of rows: a Zarr store of float32 (20 columns, default codec) is written, and
``X.sum(axis=0).compute()``, ``build(passes=1)`` and ``build(passes=2)`` are timed in turns on
the threads scheduler. Ratios are medians over the turns, each against the plain pass of its
own turn. Peak memory is measured in a process of its own for each, beyond what the process
held after its imports and a tiny build. Last, builds of an array in memory against a plain
NumPy lightweight coreset in two passes.

    python benchmarks/throughput.py --rows 2500000 5000000 10000000 20000000
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

import common
import dask
import dask.array as da
import numpy as np
import zarr

import daskcoreset

COLUMNS = 20
CHUNK_ROWS = 200_000  # 16 MB
SIZE = 10_000


def jobs(path: str) -> dict[str, Callable[[], object]]:
    """Return what is compared, by name."""
    return {
        "plain sum": lambda: da.from_zarr(path).sum(axis=0).compute(),
        "passes=1": lambda: daskcoreset.build(path, size=SIZE, random_state=0),
        "passes=2": lambda: daskcoreset.build(path, size=SIZE, random_state=0, passes=2),
        "passes=1, Dask array": lambda: daskcoreset.build(
            da.from_zarr(path), size=SIZE, random_state=0
        ),
        "passes=2, Dask array": lambda: daskcoreset.build(
            da.from_zarr(path), size=SIZE, random_state=0, passes=2
        ),
    }


def interleaved(functions: dict[str, Callable[[], object]], turns: int) -> dict[str, np.ndarray]:
    """Time the functions in turns; the first turn warms up and does not count."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for turn in range(turns + 1):
        for name, function in functions.items():
            with common.timed() as clock:
                function()
            if turn:
                times[name].append(clock.wall)
    return {name: np.array(seconds) for name, seconds in times.items()}


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


def in_memory(turns: int) -> str:
    """Compare builds of an array in memory with the floor."""
    rows = []
    for n_rows in (10_000, 100_000, 1_000_000):
        X = np.random.default_rng(0).standard_normal((n_rows, COLUMNS), dtype=np.float32)
        size = min(SIZE, n_rows // 10)
        times = interleaved(
            {
                "floor": lambda X=X, size=size: numpy_lightweight(X, size, 0),
                "1": lambda X=X, size=size: daskcoreset.build(X, size=size, random_state=0),
                "2": lambda X=X, size=size: daskcoreset.build(
                    X, size=size, random_state=0, passes=2
                ),
            },
            turns,
        )
        ratios = {name: np.median(found / times["floor"]) for name, found in times.items()}
        floor = 1e3 * np.median(times["floor"])
        cells = [f"{floor:.1f} ms", f"{ratios['1']:.2f} x", f"{ratios['2']:.2f} x"]
        rows.append([f"{n_rows:,}", *cells])
    return "\n".join(
        common.table(["rows in memory", "NumPy, two passes", "passes=1", "passes=2"], rows)
    )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="+", type=int, default=[10_000_000])
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="where the stores go; removed afterwards")
    parser.add_argument("--out", type=Path, help="write the table to this file")
    parser.add_argument("--peak-of", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peak_of:
        print(measure_peak(*args.peak_of))
        return
    rows = []
    with (
        dask.config.set(scheduler="threads"),
        tempfile.TemporaryDirectory(dir=args.folder) as folder,
    ):
        for n_rows in args.rows:
            path = Path(folder) / f"{n_rows}.zarr"
            common.write_rows(path, n_rows, COLUMNS, CHUNK_ROWS, common.mixture(COLUMNS))
            times = interleaved(jobs(str(path)), args.turns)
            for name, seconds in times.items():
                ratio = np.median(seconds / times["plain sum"])
                peak = common.in_child(__file__, "--peak-of", path, name) / 2**20
                cells = [f"{np.median(seconds):.2f} s", f"{ratio:.2f}", f"{peak:.0f} MiB"]
                rows.append(common.printed([f"{n_rows:,}", name, *cells]))
    heads = ["rows", "job", "median time", "ratio to the plain sum", "peak memory"]
    text = "\n".join(common.table(heads, rows)) + "\n\n" + in_memory(args.turns) + "\n"
    print(text)
    if args.out:
        args.out.write_text(text)


if __name__ == "__main__":
    main()
