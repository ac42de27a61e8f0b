"""The five figures that are followed from commit to commit, by `asv <https://asv.readthedocs.io>`_.

Time is given as a ratio of two things measured in turns in one run, so that figures of a noisy
machine can be compared; the larger measurements are the scripts of the folder above.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import dask
import numpy as np
import zarr

import daskcoreset

ROWS, COLUMNS, CHUNK_ROWS, SIZE = 2_000_000, 20, 200_000, 10_000
TURNS = 5


def _ratio(job: Callable[[], object], floor: Callable[[], object]) -> float:
    """Median over the turns of the time of `job` over that of `floor`; the first does not count."""
    ratios = []
    for _ in range(TURNS + 1):
        start = time.perf_counter()
        floor()
        middle = time.perf_counter()
        job()
        ratios.append((time.perf_counter() - middle) / (middle - start))
    return median(ratios[1:])


def _two_passes(X: np.ndarray, size: int) -> np.ndarray:
    """Draw a lightweight coreset as one would by hand."""
    rng = np.random.default_rng(0)
    gaps = X - X.mean(axis=0)
    distances = np.einsum("ij,ij->i", gaps, gaps)
    q = 0.5 / len(X) + 0.5 * distances / distances.sum()
    return X[rng.choice(len(X), size, p=q / q.sum())]


class OutOfCore:
    """Builds from a Zarr store of 160 MB, in chunks of 16 MB."""

    timeout = 600

    def setup(self) -> None:
        """Write the store."""
        self.folder = tempfile.TemporaryDirectory()
        self.path = str(Path(self.folder.name) / "rows.zarr")
        store = zarr.create_array(
            self.path, shape=(ROWS, COLUMNS), chunks=(CHUNK_ROWS, COLUMNS), dtype="f4"
        )
        rng = np.random.default_rng(0)
        for start in range(0, ROWS, CHUNK_ROWS):
            store[start : start + CHUNK_ROWS] = rng.standard_normal((CHUNK_ROWS, COLUMNS), "f4")

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


def track_build_in_memory_over_numpy() -> float:
    """Time of a build of 100,000 rows in memory over a NumPy reading of the algorithm."""
    X = np.random.default_rng(0).standard_normal((100_000, COLUMNS), dtype=np.float32)
    return _ratio(
        lambda: daskcoreset.build(X, size=SIZE, random_state=0), lambda: _two_passes(X, SIZE)
    )


def track_import_over_numpy() -> float:
    """Time of a process that imports this package over that of one that imports NumPy."""

    def run(package: str) -> None:
        subprocess.run([sys.executable, "-c", f"import {package}"], check=True)

    return _ratio(lambda: run("daskcoreset"), lambda: run("numpy"))


track_build_in_memory_over_numpy.unit = track_import_over_numpy.unit = "times"  # type: ignore[attr-defined]
