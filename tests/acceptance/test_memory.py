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

rows, columns = map(int, sys.argv[1:])

def made(n):
    def block(block_id=None):
        rng = np.random.default_rng(block_id[0])
        return rng.standard_normal((rows, columns), dtype=np.float32)
    return da.map_blocks(block, chunks=((rows,) * n, (columns,)), dtype=np.float32)

def peak(n, method, passes):
    Path("/proc/self/clear_refs").write_text("5")
    draw = face.Draw(passes=passes)
    face.build(made(n), method=method, size=500, random_state=0, n_clusters=None if method ==
               "lightweight" else 5, draw=draw)
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

with dask.config.set(scheduler="threads", num_workers=2):
    for each in (("lightweight", 1), ("kmeans", 2)):
        peak(2, *each)
        print(peak(4, *each), peak(40, *each))
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs /proc")
def test_build__ten_times_the_rows_take_no_more_memory() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(ROWS), str(COLUMNS)],
        check=True, capture_output=True, text=True, cwd=Path(__file__).parents[2],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    block = ROWS * COLUMNS * 4
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    for line in lines:
        few, many = map(int, line.split())
        assert many - few < 4 * block
