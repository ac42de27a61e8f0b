"""k-means by this library and by what a user would take instead: cost, time and memory.

Every contestant runs in a process of its own on the same Zarr store, with several seeds: the cost
of its centers over all rows, seconds from the path to these centers, and peak memory beyond its
imports. Five sets are real and standardised. One is made, with large and small clusters. The
contestants have their defaults, with these exceptions: `KMeans` on all rows has one start, and on
uniform rows as many as `CoresetKMeans`. faiss draws 256 rows per cluster itself, and runs on all
rows too.

Who is slow runs once. Who is stopped at the limit is not run with more clusters. Peers that are
not installed are left out, and said so; the extra `bench` installs them.

    DASKCORESET_DATA=... python benchmarks/peers_kmeans.py
    python benchmarks/peers_kmeans.py --sets made --k 10 100 --rows 1000000 --limit 60

Results are written to ``results/peers_kmeans.json``. Those of other sets and k stay there.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import common
import dask.array as da
import numpy as np
import zarr
from sets import load
from sklearn.cluster import KMeans, MiniBatchKMeans

import daskcoreset
from daskcoreset.datasets import make_mixture
from daskcoreset.estimators import CoresetKMeans
from daskcoreset.metrics.costs import kmeans_cost
from daskcoreset.solvers.kmeans import auto_starts

NAME = "peers_kmeans"
SETS = ("skin", "cod_rna", "kdd_bio", "covtype", "flights3m", "made")
CLUSTERS = (10, 100, 1000)
COLUMNS, MADE_CLUSTERS = 20, 100  # of the made rows
CHUNK_ROWS = 100_000
SLOW = 10.0  # processor seconds; who takes longer runs once
PEERS = {"scikit-learn": "sklearn", "dask-ml": "dask_ml", "faiss-cpu": "faiss"}  # and modules

Solve = Callable[[str, int, int], np.ndarray]
"""``solve(path, k, seed)`` returns centers."""


def coreset_kmeans(path: str, k: int, seed: int) -> np.ndarray:
    """Fit this library's estimator."""
    return CoresetKMeans(k, random_state=seed).fit(path).cluster_centers_


def uniform(path: str, k: int, seed: int, *, size: int) -> np.ndarray:
    """Solve on rows drawn at random."""
    rows = daskcoreset.build(path, size=size, method="uniform", random_state=seed)
    model = KMeans(k, n_init=auto_starts(k), random_state=seed)
    return model.fit(rows.points, sample_weight=rows.weights).cluster_centers_


def all_rows(path: str, k: int, seed: int) -> np.ndarray:
    """Load all rows, and run k-means++ and Lloyd once."""
    return KMeans(k, n_init=1, random_state=seed).fit(_all(path)).cluster_centers_


def minibatch(path: str, k: int, seed: int) -> np.ndarray:
    """Load all rows, of which it draws its batches."""
    return MiniBatchKMeans(k, random_state=seed).fit(_all(path)).cluster_centers_


def dask_ml(path: str, k: int, seed: int) -> np.ndarray:
    """Fit dask-ml's k-means|| and Lloyd."""
    from dask_ml.cluster import KMeans as DaskKMeans

    return np.asarray(DaskKMeans(k, random_state=seed).fit(da.from_zarr(path)).cluster_centers_)


def faiss_kmeans(path: str, k: int, seed: int, *, rows: int | None = None) -> np.ndarray:
    """Train faiss's k-means, on at most so many rows per cluster."""
    import faiss

    X = _all(path)
    options = {} if rows is None else {"max_points_per_centroid": rows}
    model = faiss.Kmeans(X.shape[1], k, seed=seed, **options)
    model.train(X)
    return np.asarray(model.centroids)


def _all(path: str) -> np.ndarray:
    return np.asarray(zarr.open_array(path, mode="r")[:])


CONTESTANTS: dict[str, Solve] = {
    "CoresetKMeans": coreset_kmeans,
    "uniform, 10,000 rows": partial(uniform, size=10_000),
    "uniform, 50,000 rows": partial(uniform, size=50_000),
    "sklearn.KMeans, all rows": all_rows,
    "sklearn.MiniBatchKMeans": minibatch,
    "dask_ml.KMeans": dask_ml,
    "faiss.Kmeans, all rows": partial(faiss_kmeans, rows=10_000_000),
    "faiss.Kmeans": faiss_kmeans,
}


def contest(path: str, name: str, k: int, turns: int, *, limit: int) -> list[dict[str, Any]]:
    """Measure a contestant with several seeds; runs in a process of its own.

    It ends by a signal when a run takes more processor seconds than the limit.
    """
    import resource  # which Windows has not

    warnings.simplefilter("ignore")
    columns = zarr.open_array(path, mode="r").shape[1]
    with tempfile.TemporaryDirectory() as folder:  # import, and compile what is compiled once
        tiny = f"{folder}/tiny.zarr"
        few = np.random.default_rng(0).random((500, columns), dtype=np.float32)
        zarr.create_array(tiny, data=few)
        CoresetKMeans(2, size=100).fit(tiny)
        CONTESTANTS[name](tiny, 2, 0)
    runs: list[dict[str, Any]] = []
    for seed in range(turns):
        most = int(time.process_time()) + 1 + limit
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
        before = common.reset_high_water()
        with common.timed() as clock:
            centers = CONTESTANTS[name](path, k, seed)
        peak = common.high_water() - before
        took = {"wall": clock.wall, "cpu": clock.cpu, "peak": peak}
        runs.append({**took, "centers": centers.tolist()})
        if clock.cpu > SLOW:
            break
    return runs


def write_set(name: str, path: str, n_rows: int) -> None:
    """Write the rows of a set to a store."""
    if name == "made":
        X, _ = make_mixture(
            n_rows, COLUMNS, n_clusters=MADE_CLUSTERS, imbalance=1000, random_state=0
        )
        da.to_zarr(X.rechunk((CHUNK_ROWS, COLUMNS)), path)
        return
    X = common.dense(load(name).X, np.float64)
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    zarr.create_array(path, data=X.astype("f4"), chunks=(CHUNK_ROWS, X.shape[1]))


def compete(path: str, name: str, k: int, args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return cost, seconds and peak memory of the runs of a contestant; none if it was stopped."""
    try:
        found: list[dict[str, Any]] = common.in_child(
            __file__, "--limit", args.limit, "--contest", path, name, k, args.turns
        )
    except subprocess.CalledProcessError as error:
        if error.returncode != -signal.SIGXCPU:
            raise
        return []
    for run in found:
        run["cost"] = float(kmeans_cost(path, run.pop("centers")))
    return found


def main() -> None:
    """Run the benchmark."""
    parser = common.arguments(__doc__, SETS)
    parser.add_argument("--k", type=int, nargs="*", default=CLUSTERS)
    parser.add_argument("--rows", type=int, default=2_000_000, help="of the made store")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument(
        "--limit", type=int, default=150, help="processor seconds of each; stopped beyond"
    )
    parser.add_argument("--contest", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.contest:
        path, name, *numbers = args.contest
        print(json.dumps(contest(path, name, *map(int, numbers), limit=args.limit)))
        return
    missing = {one for one in PEERS.values() if importlib.util.find_spec(one) is None}
    if missing:
        print(f"{', '.join(missing)}: not installed and left out; the extra bench has them")
    names = [name for name in CONTESTANTS if name.split(".")[0] not in missing]
    settings = {
        "turns": args.turns,
        "limit": args.limit,
        "niceness": os.nice(0),
        "peers": {one: version(one) for one, module in PEERS.items() if module not in missing},
    }
    place = args.out / f"{NAME}.json"
    results = common.read(NAME, args.out)["results"] if place.exists() else []
    for name in common.loadable(args.sets, "made"):
        stopped: set[str] = set()
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "rows.zarr")
            write_set(name, path, args.rows)
            shape = zarr.open_array(path, mode="r").shape
            for k in sorted(args.k):
                runs: dict[str, list[dict[str, Any]]] = {}
                for each in names:
                    runs[each] = [] if each in stopped else compete(path, each, k, args)
                    if not runs[each]:
                        stopped.add(each)
                    found = [f"{run['cpu']:.1f} s, {run['cost']:.6g}" for run in runs[each]]
                    print(f"{name}, k = {k}, {each}: {'; '.join(found) or 'stopped'}", flush=True)
                stamp = common.stamp(**settings)
                results = [one for one in results if (one["set"], one["k"]) != (name, k)]
                results.append({"set": name, "shape": shape, "k": k, "runs": runs, "stamp": stamp})
                results.sort(key=lambda one: (one["set"] == "made", one["set"], one["k"]))
                common.write(NAME, {"stamp": stamp, "results": results}, args.out)


if __name__ == "__main__":
    main()
