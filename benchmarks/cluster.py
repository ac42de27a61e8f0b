"""Compare two worker processes with one worker thread on the same build.

Both clusters stay up; builds on them alternate, so that what else the machine does falls on
both alike. Prints every pair, the ratio of each and the median.

    python benchmarks/cluster.py --rows 5_000_000
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from statistics import median

import common

from daskcoreset import Draw

D = 20
CHUNK_ROWS = 400_000  # 32 MB


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
            common.write_rows(path, options.rows, D, CHUNK_ROWS, common.gaussian(D))
        with common.workers(1) as one, common.workers(2) as two:
            for passes in (1, 2):
                build = {"size": options.size, "draw": Draw(passes=passes)}
                for cluster in (one, two):  # workers import and compile once
                    common.timed_build(cluster, path, **build)
                ratios = []
                for _ in range(options.repeats):
                    slow, fast = (
                        common.timed_build(cluster, path, **build) for cluster in (one, two)
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
