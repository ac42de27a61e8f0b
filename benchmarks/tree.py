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

Results are written to ``results/tree.json`` and ``results/tree.md``; parts that are left out stay
as they were measured before.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import common
import dask
import numpy as np
import zarr
from sets import available, load
from sklearn.cluster import KMeans

import daskcoreset
from daskcoreset import MergeReduce
from daskcoreset.datasets import make_mixture
from daskcoreset.metrics.costs import kmeans_cost

NAME = "tree"
D = 20
CHUNK_ROWS = 400_000  # 32 MB
FACTORS = (1.0, 1.5, 2.0, 4.0)
N_BLOCKS = 64

Cost = Callable[[np.ndarray, "np.ndarray | None", "np.ndarray | None"], np.ndarray]
Part = dict[str, Any]


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
    X, _ = make_mixture(200_000, 10, n_clusters=60, imbalance=1000, random_state=0)
    made = np.ascontiguousarray(X.compute())
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
) -> dict[str, list[float]]:
    """Return mean squares of relative errors, and seconds, of every seed."""
    errors, seconds = [], []
    for seed in range(seeds):
        with common.timed() as clock:
            coreset = make(seed)
        seconds.append(clock.wall)
        estimate = costs(coreset.points, coreset.weights, coreset.labels)
        errors.append(float(np.mean((estimate / full - 1.0) ** 2)))
    return {"squares": errors, "seconds": seconds}


def error_cell(found: dict[str, list[float]]) -> str:
    """Root mean square of relative errors in %, with half its 95 % interval; and seconds."""
    squares = found["squares"]
    rms = np.sqrt(np.mean(squares))
    half = 0.98 * np.std(squares, ddof=1) / np.sqrt(len(squares)) / rms
    return f"{100 * rms:.2f} ± {100 * half:.2f} ({median(found['seconds']):.2f})"


def error_part(k: int, size: int, seeds: int, names: list[str] | None) -> Part:
    """Return the error at the root against the rows of inner nodes."""
    rows, raw = [], []
    for name, (X, y, method, costs) in problems(k).items():
        if names and name not in names:
            continue
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
                method,
                size=size,
                random_state=seed,
                draw=MergeReduce(inner_size=int(factor * size)),
            )
            return stream.partial_fit(X, y).coreset()

        found = [measured(build, seeds, costs, full)]
        raw.append({"data": name, "form": "from all rows", "cells": found})
        blanks = [""] * (len(FACTORS) - 1)
        rows.append(common.printed([name, "from all rows", error_cell(found[0]), *blanks]))
        for form in ("tree, split_every=2", "tree, split_every=16", "stream"):
            found = []
            for factor in FACTORS:
                if form == "stream":
                    make = partial(streamed, factor=factor)
                else:
                    options = {
                        "draw": MergeReduce(
                            inner_size=int(factor * size), split_every=int(form.split("=")[1])
                        )
                    }
                    make = partial(build, **options)
                found.append(measured(make, seeds, costs, full))
            raw.append({"data": name, "form": form, "cells": found})
            rows.append(common.printed([name, form, *map(error_cell, found)]))
    heads = ["data, method", "form", *(f"inner = {factor:g} size" for factor in FACTORS)]
    return common.part(heads, rows, raw, k=k, size=size, seeds=seeds)


# --- workers -------------------------------------------------------------------------------


def workers_part(path: Path, size: int, repeats: int) -> Part:
    """Return times on one and two worker processes, which alternate, and their ratio."""
    rows, raw = [], {}
    clusters = [common.workers(count) for count in (1, 2)]
    with clusters[0], clusters[1]:
        for method in ("lightweight", daskcoreset.StrongKMeans(20)):
            options = {"size": size, "method": method, "draw": MergeReduce()}
            # The first turn does not count: workers import and compile.
            pairs = [
                [common.timed_build(cluster, path, **options) for cluster in clusters]
                for _ in range(repeats + 1)
            ][1:]
            one, two = (median(pair[i] for pair in pairs) for i in (0, 1))
            ratio = median(pair[0] / pair[1] for pair in pairs)
            name = method if isinstance(method, str) else method.name
            raw[name] = pairs
            rows.append(common.printed([name, f"{one:.2f}", f"{two:.2f}", f"{ratio:.2f}"]))
    heads = ["method", "one worker, s", "two workers, s", "median ratio"]
    return common.part(heads, rows, raw, rows=zarr.open_array(path, mode="r").shape[0])


# --- stream --------------------------------------------------------------------------------


def stream_once(path: Path, size: int, mode: str) -> None:
    """Read the rows, or stream them; print seconds and peak memory as JSON. In its own process."""
    rows = zarr.open_array(path, mode="r")
    warm = daskcoreset.CoresetStream(size=size, random_state=0)
    warm.partial_fit(np.random.default_rng(0).normal(size=(50 * size, D)).astype(np.float32))
    warm.coreset()
    before = common.reset_high_water()
    n_held = 0
    with common.timed() as clock:
        if mode == "read":
            for start in range(0, rows.shape[0], CHUNK_ROWS):
                _ = rows[start : start + CHUNK_ROWS]
        else:
            stream = daskcoreset.CoresetStream(size=size, random_state=0).partial_fit(rows)
            stream.coreset()
            n_held = stream.n_held
    peaks = {"peak": common.high_water() / 2**20, "before": before / 2**20}
    print(json.dumps({"seconds": clock.wall, "cpu": clock.cpu, "held": n_held, **peaks}))


def stream_part(path: Path, half: Path, size: int, repeats: int) -> Part:
    """Return rates and peak memory of the stream, for all rows and for half of them."""
    cells, raw = [], {}
    for store in (half, path):
        runs: dict[str, list[dict[str, float]]] = {"read": [], "stream": []}
        for _ in range(repeats):
            for mode, results in runs.items():
                words = ["--once", mode, "--store", store, "--size", size]
                results.append(common.in_child(__file__, *words))
        read, stream = (median(r["seconds"] for r in runs[mode]) for mode in ("read", "stream"))
        busy = [median(r["cpu"] for r in runs[mode]) for mode in ("read", "stream")]
        peak = max(r["peak"] for r in runs["stream"])
        before = max(r["before"] for r in runs["stream"])
        rows = zarr.open_array(store, mode="r").shape[0]
        raw[rows] = runs
        seconds = [f"{read:.2f}", f"{stream:.2f}", f"{read / stream:.2f}"]
        facts = [f"{busy[0] / busy[1]:.2f}", f"{runs['stream'][0]['held']:,}"]
        cells.append(
            common.printed([f"{rows:,}", *seconds, *facts, f"{peak:.0f}", f"{before:.0f}"])
        )
    heads = ["rows", "reading, s", "stream, s", "fraction"]
    heads += ["in CPU time", "held", "peak, MiB", "at start"]
    return common.part(heads, cells, raw)


# --- the report ----------------------------------------------------------------------------


def report(data: dict[str, Any]) -> str:
    """Return the tables of the parts."""
    lines = ["# Merge and reduce", ""]
    for name, part in data["parts"].items():
        made = part["stamp"]
        if name == "error":
            said = (
                "Root mean square of the relative error of the costs of 12 solutions, in %, with "
                f"its 95 % interval; size {made['size']}, k = {made['k']} where there are "
                f"clusters, {N_BLOCKS} blocks, {made['seeds']} seeds; in brackets the median of "
                "the seconds of one thread, with the other work of the machine in them."
            )
            lines += ["## Error", "", said]
        elif name == "workers":
            lines += [f"## Two workers over one, {made['rows']:,} rows"]
        else:
            lines += ["## Stream"]
        lines += common.part_lines(part)
    return "\n".join(lines)


def main() -> None:
    """Run the parts that are asked for."""
    parser = common.arguments(__doc__)
    parser.add_argument("--parts", nargs="+", default=["error", "workers", "stream"])
    parser.add_argument("--problems", nargs="+", help="of the errors, as in the table")
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--k", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--store", type=Path, help="keep the rows here, or find them here")
    parser.add_argument("--once", choices=["read", "stream"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        stream_once(options.store, options.size, options.once)
        return
    warnings.simplefilter("ignore")
    parts = common.read_parts(NAME, options.out)
    folder = Path(tempfile.mkdtemp(prefix="daskcoreset-"))
    path, half = options.store or folder / "X.zarr", folder / "half.zarr"
    try:
        if "error" in options.parts:
            with dask.config.set(scheduler="sync"):
                parts["error"] = error_part(
                    options.k, options.size, options.seeds, options.problems
                )
        if not path.exists() and set(options.parts) & {"workers", "stream"}:
            common.write_rows(path, options.rows, D, CHUNK_ROWS, common.gaussian(D))
        if "workers" in options.parts:
            parts["workers"] = workers_part(path, options.size, options.repeats)
        if "stream" in options.parts:
            common.write_rows(half, options.rows // 2, D, CHUNK_ROWS, common.gaussian(D))
            parts["stream"] = stream_part(path, half, options.size, options.repeats)
    finally:
        shutil.rmtree(folder)
    known = {name: parts[name] for name in ("error", "workers", "stream") if name in parts}
    common.write(NAME, {"stamp": common.stamp(), "parts": known}, options.out, report)


if __name__ == "__main__":
    main()
