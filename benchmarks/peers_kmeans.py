"""k-means on one Zarr store by this library and by what a user would take instead.

Every contestant runs in a process of its own on the same store, in turns: time from the path to
fitted centers, peak memory beyond its imports, and the cost of its centers over all rows.
Contestants that are not installed are left out, and said so.

    python benchmarks/peers_kmeans.py --rows 5000000 --k 100
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import common
import dask.array as da
import numpy as np
import zarr
from sklearn.cluster import KMeans, MiniBatchKMeans

import daskcoreset
from daskcoreset.datasets import make_imbalanced
from daskcoreset.estimators import CoresetKMeans
from daskcoreset.metrics.costs import kmeans_cost

COLUMNS = 20
UNIFORM_ROWS = 10_000


def coreset_kmeans(path: str, k: int) -> np.ndarray:
    """Fit this library's estimator as it comes."""
    return CoresetKMeans(k, random_state=0).fit(path).cluster_centers_


def uniform_sample(path: str, k: int) -> np.ndarray:
    """Solve on rows drawn at random, as many as the coreset has."""
    rows = daskcoreset.build(
        path, size=UNIFORM_ROWS, method="uniform", sampling="multinomial", random_state=0
    )
    return KMeans(k, n_init=3, random_state=0).fit(rows.points, None, rows.weights).cluster_centers_


def minibatch(path: str, k: int) -> np.ndarray:
    """Feed the blocks of the store one by one."""
    store = zarr.open_array(path, mode="r")
    model = MiniBatchKMeans(k, random_state=0)
    for start in range(0, store.shape[0], store.chunks[0]):
        model.partial_fit(np.asarray(store[start : start + store.chunks[0]]))
    return model.cluster_centers_


def in_memory(path: str, k: int) -> np.ndarray:
    """Load everything, where it fits, and run k-means++ and Lloyd once."""
    return KMeans(k, n_init=1, random_state=0).fit(zarr.open_array(path)[:]).cluster_centers_


def dask_ml(path: str, k: int) -> np.ndarray:
    """Fit dask-ml's k-means|| and Lloyd, as it comes."""
    from dask_ml.cluster import KMeans as DaskKMeans

    warnings.simplefilter("ignore")
    return np.asarray(DaskKMeans(k, random_state=0).fit(da.from_zarr(path)).cluster_centers_)


CONTESTANTS: dict[str, Callable[[str, int], np.ndarray]] = {
    "CoresetKMeans": coreset_kmeans,
    "uniform sample": uniform_sample,
    "MiniBatchKMeans, partial_fit": minibatch,
    "KMeans, all rows in memory": in_memory,
    "dask_ml.cluster.KMeans": dask_ml,
}


def contest(path: str, name: str, k: int) -> dict[str, object]:
    """Measure one contestant; runs in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:  # compile what is compiled once
        tiny = zarr.create_array(f"{folder}/tiny.zarr", shape=(2000, COLUMNS), dtype="f4")
        tiny[:] = np.random.default_rng(0).random((2000, COLUMNS))
        CONTESTANTS[name](f"{folder}/tiny.zarr", 5)
    before = common.reset_high_water()
    with common.timed() as clock:
        centers = CONTESTANTS[name](path, k)
    peak = common.high_water() - before
    return {"seconds": clock.wall, "peak": peak, "centers": centers.tolist()}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--k", type=int, default=100)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument(
        "--limit", type=float, default=1800.0, help="seconds for each; dropped beyond"
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--contest", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.contest:
        print(json.dumps(contest(*args.contest, args.k)))
        return
    names = list(CONTESTANTS)
    if importlib.util.find_spec("dask_ml") is None:
        names.remove("dask_ml.cluster.KMeans")
        print("dask_ml is not installed and is left out")
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/rows.zarr"
        X, _ = make_imbalanced(args.rows, COLUMNS, n_clusters=args.k, random_state=0)
        da.to_zarr(X.rechunk((200_000, COLUMNS)), path)
        found: dict[str, list[dict[str, object]]] = {name: [] for name in names}
        running = list(names)
        for _ in range(args.turns):
            for name in list(running):
                words = ["--contest", path, name, "--k", args.k]
                try:
                    run = common.in_child(__file__, *words, timeout=args.limit)
                except subprocess.TimeoutExpired:  # it would be stopped in every turn
                    print(f"{name}: stopped after {args.limit:.0f} s", flush=True)
                    running.remove(name)
                    continue
                found[name].append(run)
                print(f"{name}: {run['seconds']:.1f} s", flush=True)
        costs = {
            name: float(np.mean(kmeans_cost(path, [np.array(run["centers"]) for run in runs])))
            for name, runs in found.items()
            if runs
        }
    best = min(costs.values())
    rows = []
    ours = np.median([run["seconds"] for run in found["CoresetKMeans"]])
    for name, runs in found.items():
        if not runs:
            least = args.limit / ours
            rows.append([name, f"over {args.limit:.0f}", f"over {least:.0f}", "stopped", "-"])
            continue
        seconds = np.median([run["seconds"] for run in runs])
        peak = np.median([run["peak"] for run in runs]) / 2**20
        worse = 100 * (costs[name] / best - 1)
        cells = [f"{seconds:.1f}", f"{seconds / ours:.1f}", f"{peak:.0f} MiB", f"+{worse:.1f} %"]
        rows.append([name, *cells])
    heads = [
        "contestant",
        "seconds",
        "time over CoresetKMeans",
        "peak memory",
        "cost over the best",
    ]
    title = f"k-means, k = {args.k}, {args.rows:,} x {COLUMNS} float32 in Zarr"
    text = "\n".join([title, "", *common.table(heads, rows)]) + "\n"
    print(text)
    if args.out:
        args.out.write_text(text)


if __name__ == "__main__":
    main()
