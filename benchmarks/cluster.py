"""Compare two worker processes with one worker thread on the same build.

Both clusters stay up; builds on them alternate, so that what else the machine does falls on
both alike. Prints every pair, the ratio of each and the median.

    python benchmarks/cluster.py --rows 5_000_000
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import zarr
from distributed import Client, LocalCluster

import daskcoreset

D = 20
CHUNK_ROWS = 400_000  # 32 MB


def write_store(path: Path, n_rows: int) -> None:
    """Write Gaussian rows with the default codec, chunk by chunk."""
    array = zarr.create_array(
        path, shape=(n_rows, D), chunks=(min(CHUNK_ROWS, n_rows), D), dtype="float32"
    )
    rng = np.random.default_rng(0)
    for start in range(0, n_rows, CHUNK_ROWS):
        rows = min(CHUNK_ROWS, n_rows - start)
        array[start : start + rows] = rng.standard_normal((rows, D), dtype=np.float32)


def start(n_workers: int) -> LocalCluster:
    """Start worker processes of one thread each."""
    return LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0"
    )


def timed_build(cluster: LocalCluster, path: Path, passes: Any, size: int) -> float:
    """Seconds of one build on a cluster."""
    with Client(cluster):
        began = time.perf_counter()
        daskcoreset.build(path, size=size, passes=passes, random_state=0, progress=False)
        return time.perf_counter() - began


def main() -> None:
    """Print interleaved times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--store", type=Path, help="keep the data here, or find them here")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="daskcoreset-"))
    path = options.store or folder / "X.zarr"
    try:
        if not path.exists():
            write_store(path, options.rows)
        with start(1) as one, start(2) as two:
            for passes in (1, 2):
                for cluster in (one, two):  # workers import and compile once
                    timed_build(cluster, path, passes, options.size)
                ratios = []
                for _ in range(options.repeats):
                    slow, fast = (
                        timed_build(cluster, path, passes, options.size) for cluster in (one, two)
                    )
                    ratios.append(slow / fast)
                    print(
                        f"passes={passes}: one {slow:.2f} s, two {fast:.2f} s, {ratios[-1]:.2f} x"
                    )
                print(f"passes={passes}: median ratio {median(ratios):.2f}")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
