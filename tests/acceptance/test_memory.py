"""Peak memory is that of a few blocks a worker, whatever the number of rows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROWS, COLUMNS = 40_000, 16

SCRIPT = """
import sys
from pathlib import Path
import dask, numpy as np, dask.array as da
from tests.acceptance import face

method, passes = sys.argv[1], int(sys.argv[2])
rows, columns = int(sys.argv[3]), int(sys.argv[4])

def made(n):
    def block(block_id=None):
        rng = np.random.default_rng(block_id[0])
        return rng.standard_normal((rows, columns), dtype=np.float32)
    return da.map_blocks(block, chunks=((rows,) * n, (columns,)), dtype=np.float32)

def peak(n):
    Path("/proc/self/clear_refs").write_text("5")
    draw = face.Draw(passes=passes)
    face.build(made(n), method=method, size=500, random_state=0, n_clusters=None if method ==
               "lightweight" else 5, draw=draw)
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

with dask.config.set(scheduler="threads", num_workers=2):
    peak(2)
    print(peak(4), peak(40))
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs /proc")
@pytest.mark.parametrize(("method", "passes"), [("lightweight", "1"), ("kmeans", "2")])
def test_build__ten_times_the_rows_take_no_more_memory(method: str, passes: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, method, passes, str(ROWS), str(COLUMNS)],
        check=True, capture_output=True, text=True, cwd=Path(__file__).parents[2],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    few, many = map(int, done.stdout.split())
    block = ROWS * COLUMNS * 4
    assert many - few < 4 * block
