"""Table 1 of the lightweight-coreset paper, on the sets at hand, beside the paper's figures.

UNIFORM, LWCS and CS (the strong coresets of Lucic et al. 2016), each with independent draws as
in the paper, and this library's default for k-means (strong, one read, systematic draws), for
k = 100 and 500. Relative error against FULL (mean of three runs of k-means++ and Lloyd on
everything) with its 95 % interval, and speed-up: time of FULL over time to build and solve.

    DASKCORESET_DATA=... python benchmarks/table1.py --seeds 20

Bachem, Lucic and Krause (2018), Table 1: KDD is kdd_bio here; RNA is cod_rna, of which two
thirds of the rows are at hand.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, StrMethodFormatter
from quality import N_BLOCKS, interval, solve

import daskcoreset
from daskcoreset import StrongKMeans
from daskcoreset.datasets import available, load
from daskcoreset.metrics import kmeans_cost, relative_error

PAPER = {
    ("kdd_bio", 100): {
        "UNIFORM": (195.1, 105.9, 33.8),
        "LWCS": (18.5, 12.1, 6.8),
        "CS": (16.0, 10.1, 5.1),
    },
    ("kdd_bio", 500): {"LWCS": (33.1, 24.6, 15.9), "CS": (32.9, 23.4, 14.3)},
    ("cod_rna", 100): {
        "UNIFORM": (98.5, 46.8, 23.5),
        "LWCS": (29.5, 18.3, 8.4),
        "CS": (20.7, 12.4, 5.3),
    },
    ("cod_rna", 500): {"LWCS": (189.2, 88.0, 39.5), "CS": (68.8, 36.4, 17.8)},
}
SIZES = (1000, 2000, 5000)
SETS = ("kdd_bio", "cod_rna", "covtype", "skin", "credit")
METHODS = ("UNIFORM", "LWCS", "CS", "default")
LOOKS = dict(zip(METHODS, ("C7s:", "C0o--", "C2v-.", "C3^-"), strict=True))


def options_of(method: str, k: int) -> dict[str, Any]:
    """Return the arguments of `build` for a row of the table."""
    paper = {"sampling": "multinomial", "passes": 2}
    return {
        "UNIFORM": {"method": "uniform", **paper},
        "LWCS": {"method": "lightweight", **paper},
        "CS": {"method": StrongKMeans(k), **paper},
        "default": {"method": StrongKMeans(k)},
    }[method]


def cell(
    X: np.ndarray, full: float, k: int, *, size: int, method: str, seeds: int
) -> dict[str, Any]:
    """Measure errors and seconds of one cell."""
    solutions, seconds = [], []
    for seed in range(seeds):
        start = time.perf_counter()
        coreset = daskcoreset.build(
            X, size=size, random_state=seed, chunks=-(-len(X) // N_BLOCKS), **options_of(method, k)
        )
        solutions.append(solve(coreset.points, coreset.weights, k, seed))
        seconds.append(time.perf_counter() - start)
    errors = relative_error(kmeans_cost(X, solutions), full)
    return {"errors": errors.tolist(), "seconds": seconds}


def run(name: str, k: int, seeds: int) -> dict[str, Any]:
    """Measure one set and one k."""
    X = np.asarray(load(name).X)
    start = time.perf_counter()
    costs = kmeans_cost(X, [solve(X, None, k, seed) for seed in range(3)])
    seconds = (time.perf_counter() - start) / 3
    full = float(np.mean(costs))
    spread = (costs / full - 1).tolist()
    print(
        f"{name} k={k}: FULL {full:.6g} in {seconds:.1f} s, runs {np.round(spread, 4)}", flush=True
    )
    cells: dict[str, Any] = {}
    for method in METHODS:
        for size in SIZES:
            found = cell(X, full, k, size=size, method=method, seeds=seeds)
            cells[f"{method}|{size}"] = found
            errors = np.array(found["errors"])
            print(f"  {method} {size}: {errors.mean():.1%} +- {interval(errors):.1%}", flush=True)
    return {
        "set": name,
        "k": k,
        "shape": X.shape,
        "full": full,
        "full_spread": spread,
        "seconds": seconds,
        "cells": cells,
    }


def table(results: list[dict[str, Any]]) -> str:
    """Return the Markdown table; the paper's figures stand in brackets."""
    heads = [f"m = {size}" for size in SIZES]
    lines = [
        "Relative error against FULL in %, mean ± 95 % interval [paper]; speed-up over FULL.",
        "",
        "| set | k | method | "
        + " | ".join(heads)
        + " | speed-up, m = "
        + " / ".join(map(str, SIZES))
        + " |",
        "|---|---|---|" + "---|" * (len(SIZES) + 1),
    ]
    for result in results:
        published = PAPER.get((result["set"], result["k"]), {})
        for method in METHODS:
            cells, speeds = [], []
            for i, size in enumerate(SIZES):
                found = result["cells"][f"{method}|{size}"]
                errors = 100 * np.array(found["errors"])
                beside = f" [{published[method][i]}]" if method in published else ""
                cells.append(f"{errors.mean():.1f} ± {interval(errors):.1f}{beside}")
                speeds.append(f"{result['seconds'] / np.median(found['seconds']):.0f}")
            row = [result["set"], str(result["k"]), method, *cells, " / ".join(speeds)]
            lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def figure(results: list[dict[str, Any]]) -> Figure:
    """Draw error against size, one panel for a set and a k."""
    columns = min(5, len(results))
    rows = -(-len(results) // columns)
    drawing = Figure(figsize=(3.2 * columns, 3 * rows + 0.5), layout="constrained")
    FigureCanvasAgg(drawing)
    axes = drawing.subplots(rows, columns, squeeze=False).ravel()
    for ax, result in zip(axes, results, strict=False):
        for method, look in LOOKS.items():
            found = [100 * np.array(result["cells"][f"{method}|{m}"]["errors"]) for m in SIZES]
            means = [max(errors.mean(), 0.1) for errors in found]
            bars = [interval(errors) for errors in found]
            ax.errorbar(SIZES, means, bars, fmt=look[2:], color=look[:2], capsize=3, label=method)
        ax.set(xscale="log", yscale="log", title=f"{result['set']}, k = {result['k']}")
        ax.set(xticks=SIZES, xticklabels=SIZES)
        ax.minorticks_off()
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        ax.grid(visible=True, alpha=0.3)
    for ax in axes[len(results) :]:
        ax.set_axis_off()
    drawing.supxlabel("coreset size")
    drawing.supylabel("relative error of the cost, %")
    drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return drawing


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--k", nargs="+", type=int, default=[100, 500])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    names = [name for name in args.sets if name in available()]
    if not names:
        print("skipped: DASKCORESET_DATA names no folder with these sets")
        return
    results = []
    args.out.mkdir(parents=True, exist_ok=True)
    for k in args.k:
        for name in names:
            results.append(run(name, k, args.seeds))
            (args.out / "table1.md").write_text(table(results))
            (args.out / "table1.json").write_text(json.dumps(results))
            figure(results).savefig(args.out / "table1.png", dpi=110)
    print(table(results))


if __name__ == "__main__":
    main()
