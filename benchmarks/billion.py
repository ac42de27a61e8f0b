"""Cluster and label a billion rows on two cores with 2 GB of memory.

A Zarr store of float32 (10 columns, default codec) is written block by block. Its 64 clusters have
from 17 % of the rows to two in a million. Their centers are planted, and each cluster has about the
same share of the cost. Then each step runs in a process of its own on two processors:

- a plain sum of all rows, to compare with,
- ``build`` of 20,000 rows,
- `CoresetKMeans` on the coreset,
- the labels of all rows, written to a Zarr store block by block,
- the same number of uniform rows, and `CoresetKMeans` on them,
- the cost on all rows of both solutions and of the planted centers, in one pass.

Build, solution and labels are repeated through a ``LocalCluster`` of two workers. Each worker has
one thread and 1 GB of memory.

RLIMIT_DATA limits each process to 2 GB. It counts private memory that is reserved for writing: the
heap, arrays and the stacks of threads. It does not count code, files that are mapped to be read,
and the page cache of the system. The peak is the resident memory of the whole process (VmHWM), with
the interpreter and its packages. The bytes read are those that the process got from any file during
the step (rchar), from the disk or from the page cache. Wall times depend on the disk if the store
is larger than the page cache.

    python benchmarks/billion.py --folder /large/disk              # 40 GB of values, 37 GB on disk
    python benchmarks/billion.py --rows 2_000_000 --out /tmp/billion
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import common
import dask.array as da
import numpy as np

import daskcoreset
from daskcoreset.datasets import make_geometric
from daskcoreset.estimators import CoresetKMeans
from daskcoreset.metrics.costs import kmeans_cost

NAME = "billion"
COLUMNS, CLUSTERS, SIZE, SEED = 10, 64, 20_000, 0
RATIO, SPREAD = 1.2, 0.05
CHUNK_ROWS = 500_000  # 20 MB
CORES, LIMIT = 2, 2_000_000_000
WORKER = "1GB"


def planted() -> np.ndarray:
    """Return the centers of the clusters, the largest cluster first."""
    X, y = make_geometric(
        100 * CLUSTERS, COLUMNS, n_clusters=CLUSTERS, ratio=1.0, growth=RATIO**0.5, spread=0.0,
        dtype="float64", random_state=SEED,
    )  # fmt: skip
    _, firsts = np.unique(y.compute(), return_index=True)
    return X.compute()[firsts]


def cluster_rows(rows: int) -> np.ndarray:
    """Return the expected rows of the clusters, the largest first."""
    shares = RATIO ** -np.arange(CLUSTERS)
    return rows * shares / shares.sum()


def reached(centers: np.ndarray) -> dict[str, Any]:
    """Return the distance of each planted center to the nearest center, and which are found.

    The unit is the radius of the cluster, the root mean square distance of its rows to its center.
    A cluster is found if a center is nearer than half of the way to the next planted center.
    """
    true = planted()
    gaps = np.linalg.norm(true[:, None] - true, axis=2)
    np.fill_diagonal(gaps, np.inf)
    nearest = np.linalg.norm(true[:, None] - centers, axis=2).min(axis=1)
    radii = SPREAD * COLUMNS**0.5 * np.linalg.norm(true, axis=1)
    found = nearest < gaps.min(axis=1) / 2
    return {"distances": (nearest / radii).tolist(), "found": int(found.sum())}


def write(rows: str, out: Path, n_rows: int) -> None:
    """Write the store, under its name once it is whole."""
    X, _ = make_geometric(
        n_rows, COLUMNS, n_clusters=CLUSTERS, ratio=RATIO, spread=SPREAD, chunks=CHUNK_ROWS,
        random_state=SEED,
    )  # fmt: skip
    da.to_zarr(X, out / "writing.zarr")
    (out / "writing.zarr").rename(rows)


def plain_sum(rows: str, _out: Path) -> None:
    """Sum all rows."""
    da.from_zarr(rows).sum(axis=0).compute()


def build(rows: str, out: Path) -> None:
    """Build the coreset."""
    coreset = daskcoreset.build(rows, size=SIZE, n_clusters=CLUSTERS, random_state=SEED)
    coreset.to_zarr(out / "coreset.zarr")


def cluster(_rows: str, out: Path) -> None:
    """Solve on the coreset."""
    _solve(daskcoreset.Coreset.from_zarr(out / "coreset.zarr"), out / "coreset.pickle")


def label(rows: str, out: Path) -> None:
    """Write the label of every row."""
    da.to_zarr(_model(out / "coreset.pickle").predict(rows), out / "labels.zarr")


def uniform(rows: str, out: Path) -> None:
    """Draw uniform rows, and solve on them."""
    sample = daskcoreset.build(rows, size=SIZE, method="uniform", random_state=SEED)
    _solve(sample, out / "uniform.pickle")


def cost(rows: str, out: Path) -> dict[str, Any]:
    """Compute the costs of three solutions on all rows."""
    centers = {
        name: _model(out / f"{name}.pickle").cluster_centers_ for name in ("coreset", "uniform")
    }
    solutions = {"planted": planted(), **centers}
    costs = kmeans_cost(rows, [*solutions.values()])
    return {
        "costs": dict(zip(solutions, costs.tolist(), strict=True)),
        "reached": {name: reached(each) for name, each in centers.items()},
    }


def _solve(rows: daskcoreset.Coreset, path: Path) -> None:
    path.write_bytes(pickle.dumps(CoresetKMeans(CLUSTERS, random_state=SEED).fit(rows)))


def _model(path: Path) -> CoresetKMeans:
    model: CoresetKMeans = pickle.loads(path.read_bytes())  # noqa: S301 - written by `_solve`
    return model


STEPS: dict[str, Callable[[str, Path], Any]] = {
    "plain sum": plain_sum,
    "build": build,
    "cluster": cluster,
    "label": label,
    "uniform": uniform,
    "cost": cost,
}
ON_WORKERS = ("build", "cluster", "label")


def taken() -> dict[str, int | float]:
    """Return what this process took so far: seconds of processors, and bytes read."""
    lines = Path("/proc/self/io").read_text().splitlines()
    counts = dict(line.split(": ") for line in lines)
    return {
        "cpu": time.process_time(),
        "read": int(counts["rchar"]),
        "disk": int(counts["read_bytes"]),
    }


def measured(step: Callable[[], Any]) -> dict[str, Any]:
    """Run a step in this process, and return what it took and what it returned."""
    before, start = taken(), time.perf_counter()
    result = step()
    wall, after = time.perf_counter() - start, taken()
    spent = {key: after[key] - before[key] for key in after}
    return {"wall": wall, **spent, "peak": common.high_water(), "result": result}


def on_workers(rows: str, out: Path) -> dict[str, Any]:
    """Run the steps that have one through a cluster of two workers."""
    from dask.distributed import Client, LocalCluster

    results: dict[str, Any] = {}
    with (
        LocalCluster(
            n_workers=CORES,
            threads_per_worker=1,
            memory_limit=WORKER,
            local_directory=str(out),
            dashboard_address=":0",
        ) as workers,
        Client(workers) as client,
    ):
        for name in ON_WORKERS:
            client.run(common.reset_high_water)
            pids, before = client.run(os.getpid), client.run(taken)
            run = measured(lambda name=name: STEPS[name](rows, out))
            after = client.run(taken)
            for key in ("cpu", "read", "disk"):
                run[key] += sum(one[key] for one in after.values())
                run[key] -= sum(one[key] for worker, one in before.items() if worker in after)
            run["peaks"] = list(client.run(common.high_water).values())
            run["restarted"] = len({*pids.values()} - {*client.run(os.getpid).values()})
            results[name] = run
    return results


def limited(name: str, rows: str, out: Path, n_rows: int) -> dict[str, Any]:
    """Run a step under the limit of memory; the process is its own."""
    import resource  # which Windows has not

    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
    if name == "workers":
        return on_workers(rows, out)
    if name == "write":
        return measured(lambda: write(rows, out, n_rows))
    return measured(lambda: STEPS[name](rows, out))


def run(place: Path, out: Path, n_rows: int) -> dict[str, Any]:
    """Run all steps on the rows in a folder, which are written unless they are there."""
    rows = place / "rows.zarr"

    def step(name: str, folder: Path) -> Any:
        taken = common.in_child(__file__, "--step", name, rows, folder, n_rows)
        print(name, json.dumps(taken), flush=True)
        return taken

    workers = out / "workers"
    workers.mkdir()
    record = place / "write.json"  # beside a store that is kept
    if not rows.exists():
        record.write_text(json.dumps(step("write", out)))
    written = json.loads(record.read_text())
    steps = {name: step(name, out) for name in STEPS}
    results = {"write": written, **steps["cost"].pop("result"), "steps": steps}
    results["workers"] = step("workers", workers)
    results["rows of clusters"] = cluster_rows(n_rows).tolist()
    results["stored"] = sum(file.stat().st_size for file in rows.rglob("*") if file.is_file())
    one, other = (
        daskcoreset.Coreset.from_zarr(folder / "coreset.zarr") for folder in (out, workers)
    )
    return {**results, "same bits": one.equals(other)}


def main() -> None:
    """Write the store, measure all steps, and remove the store."""
    parser = common.arguments(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000_000)
    folder = Path(tempfile.gettempdir())
    parser.add_argument("--folder", type=Path, default=folder, help="where the store goes")
    parser.add_argument(
        "--keep", action="store_true", help="keep the store, which the next run then uses"
    )
    parser.add_argument("--step", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.step:
        name, rows, out, n_rows = args.step
        print(json.dumps(limited(name, rows, Path(out), int(n_rows))))
        return
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    place = args.folder / f"billion-{args.rows}"
    place.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=place) as out:
            results = run(place, Path(out), args.rows)
    finally:
        if not args.keep:
            shutil.rmtree(place)
    settings = {"rows": args.rows, "columns": COLUMNS, "size": SIZE, "limit": LIMIT}
    common.write(NAME, {"stamp": common.stamp(**settings), "results": results}, args.out)


if __name__ == "__main__":
    main()
