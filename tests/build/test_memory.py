"""Peak memory as measured by the kernel: a few blocks per thread, whatever the number of rows.

Every measurement has a process of its own, which warms up first: what imports and compiled
code take is not counted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import zarr

ROWS, D = 50_000, 20  # 4 MB of float32 in a block
BLOCK = ROWS * D * 4
FEW, MANY = 6, 24  # blocks: 24 and 96 MB
THREADS = 2
SIZE = 1000

CLEAR = Path("/proc/self/clear_refs")

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not CLEAR.exists(), reason="the peak of a process is read from /proc"),
]

Passes = Literal[1, 2]


def write_store(path: Path, n_blocks: int) -> None:
    array = zarr.create_array(path, shape=(n_blocks * ROWS, D), chunks=(ROWS, D), dtype="float32")
    rng = np.random.default_rng(0)
    for number in range(n_blocks):
        block = rng.standard_normal((ROWS, D), dtype=np.float32)
        array[number * ROWS : (number + 1) * ROWS] = block


def read_status(field: str) -> int:
    """Bytes that the kernel reports about this process."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    line = next(line for line in lines if line.startswith(field + ":"))
    return int(line.split()[1]) * 1024


def print_peak(kind: str, path: str, passes: Passes, threads: int) -> None:
    """Entry point of the measured processes: build once, print peak and prediction."""
    import dask
    import dask.array as da

    from daskcoreset import Draw, build, plan

    def opened() -> Any:
        if kind == "zarr":
            return zarr.open_array(path, mode="r")
        return da.from_zarr(path, chunks=(ROWS, D // 2))

    def run(X: Any, rows: int) -> Any:
        return build(X, size=SIZE, chunks=rows, random_state=0, draw=Draw(passes=passes))

    with dask.config.set(scheduler="threads", num_workers=threads):
        # Small, but through the same code.
        tiny: Any = opened()
        run(tiny[:2000] if kind != "zarr" else np.asarray(tiny[:2000]), 500)
        planned = plan(opened(), size=SIZE, chunks=ROWS, random_state=0, draw=Draw(passes=passes))
        X = opened()
        CLEAR.write_text("5", encoding="ascii")  # the peak starts again from here
        before = read_status("VmRSS")
        assert len(run(X, ROWS)) == SIZE
        peak = read_status("VmHWM") - before
    sys.stdout.write(json.dumps([peak, planned.peak_bytes]))


def measure(jobs: list[tuple[str, Path, Passes]], threads: int = THREADS) -> list[tuple[int, int]]:
    """Peak and prediction of each job, in bytes; the processes run side by side."""
    # What malloc keeps of freed blocks depends on how threads take turns. Blocks that are mapped
    # go back to the kernel at once.
    env = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"}
    started = []
    for kind, path, passes in jobs:
        call = f"print_peak({kind!r}, {str(path)!r}, {passes}, {threads})"
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", f"from {__name__} import print_peak; {call}"],
                cwd=Path(__file__).parents[2],
                env=env,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
    outputs = [process.communicate(timeout=900)[0] for process in started]
    assert all(process.returncode == 0 for process in started)
    return [tuple(json.loads(output)) for output in outputs]


@pytest.fixture(scope="module")
def stores(real_disk: Path) -> Any:
    folder = real_disk / "memory"
    paths = {}
    for n_blocks in (FEW, MANY):
        paths[n_blocks] = folder / f"{n_blocks}.zarr"
        write_store(paths[n_blocks], n_blocks)
    yield paths
    for path in paths.values():
        for file in path.rglob("*"):
            if file.is_file():
                file.unlink()


@pytest.mark.parametrize(
    ("kind", "passes"),
    [
        ("zarr", 1),
        pytest.param("columns", 2, marks=pytest.mark.nightly),
    ],
)
def test_peak__is_flat_and_as_predicted(kind: str, passes: Passes, stores: dict[int, Path]) -> None:
    jobs = [(kind, path, passes) for path in stores.values()]
    (few, predicted_few), (many, predicted) = measure(jobs)
    # Flat: four times the rows, and less than two blocks more of memory.
    assert many <= few + 2 * BLOCK
    # A few blocks per thread, and the candidates.
    assert many <= THREADS * 3 * BLOCK + 2 * BLOCK
    # The prediction does not know more rows, bounds the peak, and is no wild guess.
    assert predicted == predicted_few
    assert few <= predicted
    assert many <= predicted <= 5 * many
