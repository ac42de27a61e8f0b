"""Merge and reduce: what levels cost in error, two workers over one, and a long stream.

Three parts, each of which can be left out:

- ``error``: the relative error of weighted costs at the root of a tree against the rows that
  its inner nodes keep, for k-means on real and synthetic sets and, where labels are there, for
  the SVM; beside a coreset drawn from all the data.
- ``workers``: ``build(strategy="tree")`` on clusters of one and of two worker processes.
- ``stream``: rows from a Zarr store through `CoresetStream`, in a process of its own, against
  reading the same rows; with its peak memory.

    DASKCORESET_DATA=... python benchmarks/tree.py
    python benchmarks/tree.py --parts workers stream --rows 1_000_000

Results are printed as Markdown and written to ``results/tree.md``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import dask
import numpy as np
import zarr
from common import high_water, reset_high_water
from distributed import Client, LocalCluster
from sklearn.cluster import KMeans

import daskcoreset
from daskcoreset.datasets import available, load, make_imbalanced
from daskcoreset.metrics.costs import kmeans_cost

D = 20
CHUNK_ROWS = 400_000  # 32 MB
FACTORS = (1.0, 1.5, 2.0, 4.0)
N_BLOCKS = 64

Cost = Callable[[np.ndarray, "np.ndarray | None", "np.ndarray | None"], np.ndarray]


# --- error ---------------------------------------------------------------------------------


def kmeans_costs(X: np.ndarray, k: int) -> Cost:
    """Return costs of twelve solutions: random rows, and k-means on small samples."""
    rng = np.random.default_rng(0)
    solutions = [X[rng.choice(len(X), k, replace=False)].astype(float) for _ in range(6)]
    for seed in range(6):
        few = X[rng.choice(len(X), 2000, replace=False)]
        solutions.append(
            KMeans(k, n_init=1, max_iter=5, random_state=seed).fit(few).cluster_centers_
        )
    return lambda points, weights, _: np.asarray(kmeans_cost(points, solutions, weights))


def hinge_costs(X: np.ndarray, y: np.ndarray) -> Cost:
    """Return sums of hinge losses of SVMs on small samples, and of random directions."""
    from sklearn.svm import LinearSVC

    rng = np.random.default_rng(0)
    w = [rng.normal(size=X.shape[1] + 1) / np.sqrt(X.shape[1]) for _ in range(4)]
    for seed in range(8):
        few = rng.choice(len(X), 2000, replace=False)
        found = LinearSVC(C=1.0, dual=False, random_state=seed).fit(X[few], y[few])
        w.append(np.append(found.coef_[0], found.intercept_[0]))
    solutions = np.array(w)

    def costs(
        points: np.ndarray, weights: np.ndarray | None, labels: np.ndarray | None
    ) -> np.ndarray:
        margins = (points @ solutions[:, :-1].T + solutions[:, -1]) * np.asarray(labels)[:, None]
        losses = np.maximum(0.0, 1.0 - margins)
        return losses.sum(axis=0) if weights is None else weights @ losses

    return costs


def problems(k: int) -> dict[str, tuple[np.ndarray, np.ndarray | None, object, Cost]]:
    """Return data, labels, method and costs by name."""
    made = np.ascontiguousarray(make_imbalanced(200_000, 10, random_state=0)[0].compute())
    sets = {"imbalanced": made}
    if "cod_rna" in available():
        sets["cod_rna"] = np.ascontiguousarray(load("cod_rna").X, dtype=np.float32)
    found: dict[str, tuple[np.ndarray, np.ndarray | None, object, Cost]] = {}
    for name, X in sets.items():
        costs = kmeans_costs(X, k)
        found[f"{name}, lightweight"] = X, None, "lightweight", costs
        found[f"{name}, kmeans"] = X, None, daskcoreset.StrongKMeans(k), costs
    for name in ("skin", "cod_rna"):
        if name in available() and "svm" in daskcoreset.sensitivities.CONSTRUCTIONS:
            X, y = (np.asarray(part) for part in (load(name).X, load(name).y))
            X = (X - X.mean(axis=0)) / X.std(axis=0)
            y = np.where(y == y.max(), 1, -1)
            found[f"{name}, svm"] = X, y, "svm", hinge_costs(X, y)
    return found


def measured(
    make: Callable[[int], daskcoreset.Coreset], seeds: int, costs: Cost, full: np.ndarray
) -> tuple[str, float]:
    """Root mean square of relative errors in %, with half its 95 % interval; and seconds."""
    errors, seconds = [], []
    for seed in range(seeds):
        start = time.perf_counter()
        coreset = make(seed)
        seconds.append(time.perf_counter() - start)
        estimate = costs(coreset.points, coreset.weights, coreset.labels)
        errors.append(np.mean((estimate / full - 1.0) ** 2))
    mean, spread = float(np.mean(errors)), float(np.std(errors, ddof=1)) / np.sqrt(seeds)
    rms = np.sqrt(mean)
    return f"{100 * rms:.2f} ± {100 * 0.98 * spread / rms:.2f}", median(seconds)


def error_table(k: int, size: int, seeds: int) -> str:
    """Return the error at the root against the rows of inner nodes."""
    lines = [
        "Root mean square of the relative error of the costs of 12 solutions, in %, with its 95 %",
        f"interval; size {size}, k = {k} where there are clusters, {N_BLOCKS} blocks, {seeds}",
        "seeds; in brackets the median of the seconds of one thread.",
        "",
        "| data, method | form | " + " | ".join(f"inner = {f:g} size" for f in FACTORS) + " |",
        "|---|---|" + "---|" * len(FACTORS),
    ]
    for name, (X, y, method, costs) in problems(k).items():
        full = costs(X, None, y)
        chunks = -(-len(X) // N_BLOCKS)

        def build(
            seed: int,
            X: np.ndarray = X,
            y: np.ndarray | None = y,
            method: object = method,
            chunks: int = chunks,
            **options: object,
        ) -> daskcoreset.Coreset:
            return daskcoreset.build(
                X, y, size=size, method=method, random_state=seed, chunks=chunks, **options
            )

        def streamed(
            seed: int,
            factor: float,
            X: np.ndarray = X,
            y: np.ndarray | None = y,
            method: object = method,
        ) -> daskcoreset.Coreset:
            stream = daskcoreset.CoresetStream(
                method, size, inner_size=int(factor * size), random_state=seed
            )
            return stream.partial_fit(X, y).coreset()

        passes = {"passes": 2} if getattr(method, "folds", 1) > 1 else {}
        text, seconds = measured(partial(build, **passes), seeds, costs, full)
        lines.append(
            f"| {name} | from all rows | {text} ({seconds:.2f}) |" + " |" * (len(FACTORS) - 1)
        )
        print(lines[-1], flush=True)
        for form in ("tree, split_every=2", "tree, split_every=16", "stream"):
            cells = []
            for factor in FACTORS:
                if form == "stream":
                    make = partial(streamed, factor=factor)
                else:
                    options = {
                        "strategy": "tree",
                        "inner_size": int(factor * size),
                        "split_every": int(form.split("=")[1]),
                    }
                    make = partial(build, **options)
                text, seconds = measured(make, seeds, costs, full)
                cells.append(f"{text} ({seconds:.2f})")
            lines.append(f"| {name} | {form} | " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


# --- workers -------------------------------------------------------------------------------


def write_store(path: Path, n_rows: int) -> None:
    """Write Gaussian rows with the default codec, chunk by chunk."""
    array = zarr.create_array(
        path, shape=(n_rows, D), chunks=(min(CHUNK_ROWS, n_rows), D), dtype="float32"
    )
    rng = np.random.default_rng(0)
    for start in range(0, n_rows, CHUNK_ROWS):
        rows = min(CHUNK_ROWS, n_rows - start)
        array[start : start + rows] = rng.standard_normal((rows, D), dtype=np.float32)


def timed_build(cluster: LocalCluster, path: Path, size: int, method: object) -> float:
    """Seconds of one tree on a cluster."""
    with Client(cluster):
        began = time.perf_counter()
        daskcoreset.build(
            path, size=size, method=method, strategy="tree", random_state=0, progress=False
        )
        return time.perf_counter() - began


def workers_table(path: Path, size: int, repeats: int) -> str:
    """Return times on one and two worker processes, which alternate, and their ratio."""
    lines = ["| method | one worker, s | two workers, s | median ratio |", "|---|---|---|---|"]
    clusters = [
        LocalCluster(n_workers=n, threads_per_worker=1, processes=True, dashboard_address=":0")
        for n in (1, 2)
    ]
    with clusters[0], clusters[1]:
        for method in ("lightweight", daskcoreset.StrongKMeans(20)):
            for cluster in clusters:  # workers import and compile once
                timed_build(cluster, path, size, method)
            pairs = [
                [timed_build(cluster, path, size, method) for cluster in clusters]
                for _ in range(repeats)
            ]
            one, two = (median(pair[i] for pair in pairs) for i in (0, 1))
            ratio = median(pair[0] / pair[1] for pair in pairs)
            name = method if isinstance(method, str) else method.name
            lines.append(f"| {name} | {one:.2f} | {two:.2f} | {ratio:.2f} |")
            print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


# --- stream --------------------------------------------------------------------------------


def stream_once(path: Path, size: int, mode: str) -> None:
    """Read the rows, or stream them; print seconds and peak memory as JSON. In its own process."""
    rows = zarr.open_array(path, mode="r")
    warm = daskcoreset.CoresetStream(size=size, random_state=0)
    warm.partial_fit(np.random.default_rng(0).normal(size=(50 * size, D)).astype(np.float32))
    warm.coreset()
    before = reset_high_water()
    began, worked = time.perf_counter(), time.process_time()
    held = 0
    if mode == "read":
        for start in range(0, rows.shape[0], CHUNK_ROWS):
            _ = rows[start : start + CHUNK_ROWS]
    else:
        stream = daskcoreset.CoresetStream(size=size, random_state=0).partial_fit(rows)
        stream.coreset()
        held = stream.n_held
    seconds, cpu = time.perf_counter() - began, time.process_time() - worked
    peak = high_water()
    said = {
        "seconds": seconds,
        "cpu": cpu,
        "peak": peak / 2**20,
        "before": before / 2**20,
        "held": held,
    }
    print(json.dumps(said))


def stream_table(path: Path, half: Path, size: int, repeats: int) -> str:
    """Return rates and peak memory of the stream, for all rows and for half of them."""
    lines = [
        "| rows | reading, s | stream, s | fraction | in CPU time | held | peak, MiB | at start |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for store in (half, path):
        found: dict[str, list[dict[str, float]]] = {"read": [], "stream": []}
        for _ in range(repeats):
            for mode, results in found.items():
                command = [
                    sys.executable,
                    __file__,
                    "--once",
                    mode,
                    "--store",
                    str(store),
                    "--size",
                    str(size),
                ]
                output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                results.append(json.loads(output.splitlines()[-1]))
        read, stream = (median(r["seconds"] for r in found[mode]) for mode in ("read", "stream"))
        busy = [median(r["cpu"] for r in found[mode]) for mode in ("read", "stream")]
        peak = max(r["peak"] for r in found["stream"])
        before = max(r["before"] for r in found["stream"])
        rows = zarr.open_array(store, mode="r").shape[0]
        lines.append(
            f"| {rows:,} | {read:.2f} | {stream:.2f} | {read / stream:.2f} | "
            f"{busy[0] / busy[1]:.2f} | "
            f"{found['stream'][0]['held']:,} | {peak:.0f} | {before:.0f} |"
        )
        print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", default=["error", "workers", "stream"])
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--k", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--store", type=Path, help="keep the rows here, or find them here")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--once", choices=["read", "stream"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        stream_once(options.store, options.size, options.once)
        return
    warnings.simplefilter("ignore")
    text = ["# Merge and reduce\n"]
    folder = Path(tempfile.mkdtemp(prefix="daskcoreset-"))
    path, half = options.store or folder / "X.zarr", folder / "half.zarr"
    try:
        if "error" in options.parts:
            with dask.config.set(scheduler="sync"):
                text += ["## Error\n", error_table(options.k, options.size, options.seeds)]
        if not path.exists() and set(options.parts) & {"workers", "stream"}:
            write_store(path, options.rows)
        if "workers" in options.parts:
            text += [f"## Two workers over one, {options.rows:,} rows\n"]
            text += [workers_table(path, options.size, options.repeats)]
        if "stream" in options.parts:
            write_store(half, options.rows // 2)
            text += ["## Stream\n", stream_table(path, half, options.size, options.repeats)]
    finally:
        shutil.rmtree(folder)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "tree.md").write_text("\n".join(text))


if __name__ == "__main__":
    main()
