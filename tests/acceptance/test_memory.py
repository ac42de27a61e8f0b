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

def status(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))

def peak(n, **options):
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    face.build(made(n), **options)
    return status("VmHWM") - before

with dask.config.set(scheduler="threads", num_workers=2):
    for method, n_clusters, passes in (("lightweight", None, 1), ("kmeans", 5, 2)):
        options = dict(method=method, n_clusters=n_clusters, size=500, random_state=0,
                       draw=face.Draw(passes=passes))
        peak(2, **options)
        planned = face.plan(made(40), **options).peak_bytes
        print(peak(4, **options), peak(40, **options), planned)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs /proc")
def test_build__ten_times_the_rows_take_no_more_memory_and_what_a_plan_says() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(ROWS), str(COLUMNS)],
        check=True, capture_output=True, text=True, cwd=Path(__file__).parents[2],
        # Blocks that malloc maps go back to the kernel at once.
        env=os.environ | {"OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "65536"},
    )  # fmt: skip
    block = ROWS * COLUMNS * 4
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    for line in lines:
        few, many, planned = map(int, line.split())
        assert many - few < 4 * block
        assert many <= planned <= 8 * many
