"""k-means of a labelled cube that is larger than memory: bytes, reads, seconds, peak memory.

A cube like those of ERA5 (time, latitude, longitude; float32; an ocean mask) is generated lazily,
block by block, so that it needs no disk. The address space of the process is limited. A plain read
of the blocks, which adds up every variable, is timed before the lines of a user. Reads are counted
where blocks are made.

    python benchmarks/cube.py --gigabytes 20
"""

from __future__ import annotations

import resource
import threading
from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

import common
import dask
import dask.array as da
import numpy as np
import xarray as xr

import daskcoreset.xarray  # noqa: F401 - registers .coreset

LAT, LON = 721, 1440
VARIABLES = {"t2m": ("K", 280.0), "d2m": ("K", 275.0), "u10": ("m s-1", 2.0), "v10": ("m s-1", 0.0)}
STEPS = 2  # of time in a chunk
GIGABYTE = 10**9
READS: Counter[tuple[str, int]] = Counter()
LOCK = threading.Lock()


@dataclass(frozen=True, eq=False)
class Field:
    """A variable as an array that makes its cells when they are asked for."""

    name: str
    mean: float
    shape: tuple[int, int, int]
    noise: Any
    land: Any
    dtype: ClassVar[Any] = np.dtype(np.float32)
    ndim: ClassVar[int] = 3

    def __getitem__(self, index: tuple[slice, ...]) -> np.ndarray:
        """Return whole steps of time."""
        steps = range(self.shape[0])[index[0]]
        with LOCK:
            READS[self.name, steps[0]] += 1
        cells = np.empty((len(steps), *self.shape[1:]), np.float32)
        band = np.cos(np.linspace(-np.pi / 2, np.pi / 2, LAT, dtype=np.float32))[:, None]
        for position, step in enumerate(steps):
            cell = cells[position]
            start = (step * 7919 + len(self.name) * 104_729 + ord(self.name[0])) % LAT
            np.multiply(np.roll(self.noise, start, axis=0), 5, out=cell)
            cell += self.mean + 15 * band * np.float32(1 + 0.2 * np.sin(step / 60))
            cell[self.land] = np.nan
        return cells[:, index[1], index[2]]


def make_cube(steps: int) -> xr.Dataset:
    """Return the cube, lazily."""
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((LAT, LON), dtype=np.float32)
    rough = rng.standard_normal((10, 16)) > 0.5
    land = np.kron(rough, np.ones((LAT // 10 + 1, LON // 16), dtype=bool))[:LAT, :LON]
    lat = xr.Variable("lat", np.linspace(90, -90, LAT), {"units": "degrees_north"})
    lon = xr.Variable("lon", np.arange(LON) / 4, {"units": "degrees_east"})
    time = np.datetime64("2020-01-01", "ns") + np.arange(steps) * np.timedelta64(1, "h")
    shape = (steps, LAT, LON)
    arrays = {
        name: da.from_array(
            Field(name, mean, shape, noise, land), chunks=(STEPS, LAT, LON), name=name
        )
        for name, (_, mean) in VARIABLES.items()
    }
    variables = {
        name: (("time", "lat", "lon"), array, {"units": VARIABLES[name][0]})
        for name, array in arrays.items()
    }
    return xr.Dataset(variables, {"time": time, "lat": lat, "lon": lon})


def peak() -> int:
    """Return the largest resident memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(cube: xr.Dataset, n_clusters: int, **parameters: Any) -> dict[str, Any]:
    """Read the cube once, then fit, then map some steps of time."""
    dask.compute(*(array.data.sum() for array in make_cube(2 * STEPS).values()))  # warms up
    READS.clear()
    with common.timed() as plain:
        dask.compute(*(array.data.sum() for array in cube.values()))
    READS.clear()
    before = peak()
    with common.timed() as fit:
        model = cube.coreset.kmeans(
            n_clusters, weights=np.cos(np.deg2rad(cube.lat)), random_state=0, **parameters
        )
    reads = dict(READS)
    labels = model.predict(cube)
    assert labels.chunks == cube.t2m.chunks, "the chunks were touched"
    some = labels.isel(time=slice(0, STEPS)).compute()
    return {
        "bytes": cube.nbytes,
        "chunks": len(reads),
        "reads": max(reads.values()),
        "bytes_read": sum(reads.values()) * STEPS * LAT * LON * 4,
        "plain": plain.wall,
        "fit": fit.wall,
        "peak_before": before,
        "peak": peak(),
        "masked": float(np.isnan(some).mean()),
        "rows": int(model.coreset_.provenance["n"]),
        "coreset": len(model.coreset_),
    }


def main() -> None:
    """Run the benchmark."""
    import os

    parser = common.arguments(__doc__)
    parser.add_argument("--gigabytes", type=float, default=20.0)
    parser.add_argument("--limit", type=float, default=4.0, help="address space, in GB")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--clusters", type=int, default=8)
    parser.add_argument("--method", default="kmeans")
    args = parser.parse_args()
    limit = int(args.limit * GIGABYTE)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    step = len(VARIABLES) * LAT * LON * 4
    steps = max(STEPS, round(args.gigabytes * GIGABYTE / step / STEPS) * STEPS)
    with dask.config.set(scheduler="threads", num_workers=args.threads):
        results = measure(make_cube(steps), args.clusters, method=args.method)
    stamp = common.stamp(
        n_clusters=args.clusters,
        method=args.method,
        threads=args.threads,
        limit=args.limit,
        load=os.getloadavg()[0],
    )
    data = {"stamp": stamp, "results": results}
    common.write("cube", data, args.out)


if __name__ == "__main__":
    main()
