"""k-means by this library and by what a user would take instead, in memory, time and cost.

Every contestant runs in a process of its own on the same Zarr store, in turns with other seeds: the
cost of its centers over all rows, seconds from the path to these centers, and peak memory beyond
its imports. Those that choose rows are given as many and solve by `KMeans` on these. One store is
made and larger than some memories, with large and small clusters; the others are real sets,
standardised. On the real sets stand also libraries that have to hold all rows (coreax, faiss) or
take them one by one in Python (river), with their defaults.

Who is slow runs once. Peers that are not installed are left out, and said so; the extra `bench`
installs them.

    DASKCORESET_DATA=... python benchmarks/peers_kmeans.py
    python benchmarks/peers_kmeans.py --sets made --rows 1000000 --limit 60

Results are written to ``results/peers_kmeans.json``.
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
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

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

NAME = "peers_kmeans"
SETS = ("htru2", "magic04", "credit", "made")
COLUMNS = 20  # of the made rows
CHUNK_ROWS = {"made": 200_000}  # of others 10,000
MADE, REAL = (100, 10_000), (20, 1000)  # clusters, rows that are chosen
SLOW = 15.0  # processor seconds; who takes longer runs once
LEAF = 10_000  # rows of a part in coreax, whose solvers are quadratic in the rows


class Solved(NamedTuple):
    """Centers, and the cost that the chosen rows say they have over all rows."""

    centers: np.ndarray
    told: float | None = None


def _on_rows(points: np.ndarray, weights: np.ndarray, k: int, seed: int) -> Solved:
    model = KMeans(k, n_init=3, random_state=seed).fit(points, None, weights)
    return Solved(model.cluster_centers_, float(model.inertia_))


def coreset_kmeans(path: str, k: int, size: int, seed: int) -> Solved:
    """Fit this library's estimator as it comes."""
    model = CoresetKMeans(k, size=size, random_state=seed).fit(path)
    return Solved(model.cluster_centers_, float(model.coreset_inertia_))


def uniform_sample(path: str, k: int, size: int, seed: int) -> Solved:
    """Solve on rows drawn at random."""
    rows = daskcoreset.build(
        path,
        size=size,
        method="uniform",
        random_state=seed,
        draw=daskcoreset.Draw(sampling="multinomial", passes=2),
    )
    return _on_rows(rows.points, rows.weights, k, seed)


def minibatch(path: str, k: int, size: int, seed: int) -> Solved:  # noqa: ARG001 - chooses no rows
    """Feed the blocks of the store one by one."""
    model = MiniBatchKMeans(k, random_state=seed)
    for block in _blocks(path):
        model.partial_fit(block)
    return Solved(model.cluster_centers_)


def in_memory(path: str, k: int, size: int, seed: int) -> Solved:  # noqa: ARG001 - likewise
    """Load everything, where it fits, and run k-means++ and Lloyd once."""
    model = KMeans(k, n_init=1, random_state=seed).fit(_all(path))
    return Solved(model.cluster_centers_)


def dask_ml(path: str, k: int, size: int, seed: int) -> Solved:  # noqa: ARG001 - likewise
    """Fit dask-ml's k-means|| and Lloyd, as it comes."""
    from dask_ml.cluster import KMeans as DaskKMeans

    warnings.simplefilter("ignore")
    model = DaskKMeans(k, random_state=seed).fit(da.from_zarr(path))
    return Solved(np.asarray(model.cluster_centers_))


def faiss_kmeans(path: str, k: int, size: int, seed: int) -> Solved:  # noqa: ARG001 - likewise
    """Train faiss's k-means, which draws rows itself where there are many."""
    import faiss

    X = _all(path)
    model = faiss.Kmeans(X.shape[1], k, seed=seed)
    model.train(X)
    return Solved(model.centroids)


def coreax_herding(path: str, k: int, size: int, seed: int) -> Solved:
    """Solve on rows of kernel herding, part by part, with its median heuristic for the width."""
    from coreax.solvers import KernelHerding, MapReduce

    X = _all(path)
    herding = KernelHerding(size, kernel=_kernel(X, seed), block_size=64)
    return _reduced(MapReduce(herding, leaf_size=LEAF), X, k, seed)


def coreax_cholesky(path: str, k: int, size: int, seed: int) -> Solved:
    """Solve on the pivots of a randomly pivoted Cholesky decomposition."""
    import jax
    from coreax.solvers import RPCholesky

    X = _all(path)
    solver = RPCholesky(size, random_key=jax.random.key(seed), kernel=_kernel(X, seed))
    return _reduced(solver, X, k, seed)


def _kernel(X: np.ndarray, seed: int) -> Any:
    from coreax.kernels import SquaredExponentialKernel, median_heuristic

    few = np.random.default_rng(seed).choice(len(X), min(len(X), 1000), replace=False)
    return SquaredExponentialKernel(length_scale=median_heuristic(X[few]))


def _reduced(solver: Any, X: np.ndarray, k: int, seed: int) -> Solved:
    from coreax import Data

    coreset, _ = solver.reduce(Data(X))
    rows = X[np.asarray(coreset.unweighted_indices)]
    return _on_rows(rows, np.full(len(rows), len(X) / len(rows)), k, seed)


def river_kmeans(path: str, k: int, size: int, seed: int) -> Solved:  # noqa: ARG001 - no rows
    """Learn row by row."""
    from river.cluster import KMeans as RiverKMeans

    return _learned(RiverKMeans(k, seed=seed), path)


def river_clustream(path: str, k: int, size: int, seed: int) -> Solved:  # noqa: ARG001 - no rows
    """Learn row by row, with its hundred micro-clusters."""
    from river.cluster import CluStream

    return _learned(CluStream(k, seed=seed), path)


def _learned(model: Any, path: str) -> Solved:
    for block in _blocks(path):
        for row in block.tolist():
            model.learn_one(dict(enumerate(row)))
    centers = [[center[j] for j in range(block.shape[1])] for center in model.centers.values()]
    return Solved(np.array(centers))


def _all(path: str) -> np.ndarray:
    return np.asarray(zarr.open_array(path, mode="r")[:])


def _blocks(path: str) -> Iterable[np.ndarray]:
    store = zarr.open_array(path, mode="r")
    for start in range(0, store.shape[0], store.chunks[0]):
        yield np.asarray(store[start : start + store.chunks[0]])


CONTESTANTS: dict[str, Callable[[str, int, int, int], Solved]] = {
    "CoresetKMeans": coreset_kmeans,
    "uniform sample": uniform_sample,
    "MiniBatchKMeans, partial_fit": minibatch,
    "KMeans, all rows in memory": in_memory,
    "dask_ml.cluster.KMeans": dask_ml,
    "faiss.Kmeans": faiss_kmeans,
    "coreax KernelHerding, MapReduce": coreax_herding,
    "coreax RPCholesky": coreax_cholesky,
    "river.cluster.KMeans": river_kmeans,
    "river.cluster.CluStream": river_clustream,
}
# Packages that may be missing, by the first word of a contestant.
PACKAGES = {"dask_ml": "dask_ml", "faiss": "faiss", "coreax": "coreax", "river": "river"}
# They hold all rows beside kernels of them, or take a row at a time.
SMALL_ONLY = ("faiss", "coreax", "river")


def package_of(name: str) -> str | None:
    """Return the package that a contestant needs beside those of this library."""
    return PACKAGES.get(name.replace(".", " ").split()[0])


def contest(path: str, name: str, *numbers: int, limit: int) -> dict[str, Any]:
    """Measure one contestant; runs in a process of its own, which ends at the limit."""
    import resource  # which Windows has not

    columns = zarr.open_array(path, mode="r").shape[1]
    with tempfile.TemporaryDirectory() as folder:  # import, and compile what is compiled once
        tiny = zarr.create_array(f"{folder}/tiny.zarr", shape=(500, columns), dtype="f4")
        tiny[:] = np.random.default_rng(0).random((500, columns))
        CONTESTANTS[name](f"{folder}/tiny.zarr", 5, 100, 0)
    most = int(time.process_time()) + 1 + limit
    resource.setrlimit(resource.RLIMIT_CPU, (most, most + 5))
    before = common.reset_high_water()
    with common.timed() as clock:
        centers, told = CONTESTANTS[name](path, *numbers)
    return {
        "wall": clock.wall,
        "cpu": clock.cpu,
        "peak": common.high_water() - before,
        "told": told,
        "centers": np.asarray(centers).tolist(),
    }


def write_set(name: str, path: str, n_rows: int) -> tuple[int, int]:
    """Write the rows of a set to a store; return their number and that of the columns."""
    if name == "made":
        made, _ = make_mixture(n_rows, COLUMNS, n_clusters=MADE[0], imbalance=1000, random_state=0)
        da.to_zarr(made.rechunk((CHUNK_ROWS[name], COLUMNS)), path)
        return n_rows, COLUMNS
    X = common.dense(load(name).X, np.float64)
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    chunks = (min(len(X), 10_000), X.shape[1])
    zarr.create_array(path, data=X.astype("f4"), chunks=chunks)
    return X.shape


def compete(name: str, path: str, names: list[str], args: argparse.Namespace) -> dict[str, Any]:
    """Run the contestants on one set in turns."""
    shape = write_set(name, path, args.rows)
    k, size = MADE if name == "made" else REAL
    runs: dict[str, list[dict[str, Any]]] = {each: [] for each in names}
    stopped: dict[str, int] = {}
    for turn in range(args.turns):
        for each, done in runs.items():
            if each in stopped or (done and done[0]["cpu"] > SLOW):
                continue
            words = ["--limit", args.limit, "--contest", path, each, k, size, turn]
            try:
                run = common.in_child(__file__, *words)
            except subprocess.CalledProcessError as error:
                if error.returncode != -signal.SIGXCPU:
                    raise
                stopped[each] = args.limit  # it would be stopped in every turn
                print(f"{name}, {each}: stopped after {args.limit} s", flush=True)
                continue
            run["cost"] = float(kmeans_cost(path, np.array(run.pop("centers"))))
            run["load"] = round(os.getloadavg()[0], 1)
            done.append(run)
            print(f"{name}, {each}: {run['cpu']:.1f} s, {run['cost']:.6g}", flush=True)
    return {"set": name, "shape": shape, "k": k, "size": size, "runs": runs, "stopped": stopped}


def versions() -> dict[str, str]:
    """Return the versions of the peers that are installed."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for package in ("scikit-learn", "dask-ml", "faiss-cpu", "coreax", "jax", "river"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def main() -> None:
    """Run the benchmark."""
    parser = common.arguments(__doc__, SETS)
    parser.add_argument("--rows", type=int, default=5_000_000, help="of the made store")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument(
        "--limit", type=int, default=600, help="processor seconds of each; dropped beyond"
    )
    parser.add_argument("--contest", nargs=5, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.contest:
        path, name, *numbers = args.contest
        print(json.dumps(contest(path, name, *map(int, numbers), limit=args.limit)))
        return
    missing = [one for one in PACKAGES.values() if importlib.util.find_spec(one) is None]
    if missing:
        print(f"{', '.join(missing)}: not installed and left out; the extra bench has them")
    names = [name for name in CONTESTANTS if package_of(name) not in missing]
    settings = {
        "rows": args.rows,
        "turns": args.turns,
        "limit": args.limit,
        "niceness": os.nice(0),
        "peers": versions(),
    }
    results: list[dict[str, Any]] = []
    for name in common.loadable(args.sets, "made"):
        few = [one for one in names if name != "made" or package_of(one) not in SMALL_ONLY]
        with tempfile.TemporaryDirectory() as folder:
            results.append(compete(name, str(Path(folder) / "rows.zarr"), few, args))
        data = {"stamp": common.stamp(**settings), "missing": missing, "results": results}
        common.write(NAME, data, args.out)


if __name__ == "__main__":
    main()
