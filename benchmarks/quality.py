"""Error of k-means on coresets against k-means on everything, on real data.

For every set, size and seed: build a coreset, solve k-means on it, evaluate the solution on
all data. Uniform and lightweight coresets as in the paper (independent draws, two reads)
stand beside the default of this library. Prints a Markdown table, and writes it with a
figure and the raw errors into the folder given.

    DASKCORESET_DATA=... python benchmarks/quality.py --seeds 20

Bachem, Lucic and Krause (2018), section 7: k-means++ and Lloyd on everything is FULL, and the
same on each subsample.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, StrMethodFormatter
from sklearn.cluster import KMeans

import daskcoreset
from daskcoreset.datasets import available, load
from daskcoreset.metrics import kmeans_cost, relative_error

METHODS = {
    "uniform": {"method": "uniform", "sampling": "multinomial", "passes": 2},
    "lightweight, paper": {"method": "lightweight", "sampling": "multinomial", "passes": 2},
    "default": {},
}
SETS = ("cod_rna", "kdd_bio", "covtype", "skin", "ijcnn1", "credit")
N_BLOCKS = 20


def solve(points: np.ndarray, weights: np.ndarray | None, k: int, seed: int) -> np.ndarray:
    """Return the centers that k-means++ and Lloyd find from one start."""
    model = KMeans(k, n_init=1, random_state=seed).fit(points, sample_weight=weights)
    return model.cluster_centers_


def errors_of(
    X: np.ndarray, full: float, *, k: int, size: int, options: dict[str, object], seeds: range
) -> np.ndarray:
    """Return the relative error of the solution for each seed."""
    solutions = []
    for seed in seeds:
        coreset = daskcoreset.build(
            X, size=size, random_state=seed, chunks=-(-len(X) // N_BLOCKS), **options
        )
        solutions.append(solve(coreset.points, coreset.weights, k, seed))
    return relative_error(kmeans_cost(X, solutions), full)


def interval(errors: np.ndarray) -> float:
    """Half width of the 95 % interval of the mean, normal approximation."""
    return float(1.96 * errors.std(ddof=1) / np.sqrt(len(errors)))


def run(name: str, k: int, sizes: list[int], seeds: range) -> dict[str, object]:
    """Measure one data set."""
    X = np.asarray(load(name).X)
    start = time.perf_counter()
    full = float(np.mean(kmeans_cost(X, [solve(X, None, k, seed) for seed in range(3)])))
    print(f"{name}: {X.shape}, FULL {full:.6g} in {time.perf_counter() - start:.0f} s", flush=True)
    cells = {}
    for method, options in METHODS.items():
        for size in sizes:
            errors = errors_of(X, full, k=k, size=size, options=options, seeds=seeds)
            cells[f"{method}|{size}"] = errors.tolist()
            print(f"  {method} {size}: {errors.mean():.1%} +- {interval(errors):.1%}", flush=True)
    return {"set": name, "shape": X.shape, "full": full, "errors": cells}


def table(results: list[dict[str, object]], sizes: list[int]) -> str:
    """Return the Markdown table: mean relative error in % with its 95 % interval."""
    lines = [
        "| set | size | " + " | ".join(METHODS) + " | default / paper |",
        "|---|---|" + "---|" * (len(METHODS) + 1),
    ]
    for result in results:
        for size in sizes:
            found = {m: np.array(result["errors"][f"{m}|{size}"]) for m in METHODS}
            cells = [f"{100 * e.mean():.1f} ± {100 * interval(e):.1f}" for e in found.values()]
            ratio = found["default"].mean() / found["lightweight, paper"].mean()
            lines.append(f"| {result['set']} | {size} | " + " | ".join(cells) + f" | {ratio:.2f} |")
    return "\n".join(lines) + "\n"


def figure(results: list[dict[str, object]], sizes: list[int], k: int) -> Figure:
    """Draw error against size, one panel a set."""
    columns = min(3, len(results))
    rows = -(-len(results) // columns)
    drawing = Figure(figsize=(4 * columns, 3.2 * rows), layout="constrained")
    FigureCanvasAgg(drawing)
    axes = drawing.subplots(rows, columns, squeeze=False).ravel()
    looks = (("C7", "s", ":"), ("C0", "o", "--"), ("C3", "^", "-"))
    styles = dict(zip(METHODS, looks, strict=True))
    for ax, result in zip(axes, results, strict=False):
        for method, (color, marker, line) in styles.items():
            found = [100 * np.array(result["errors"][f"{method}|{size}"]) for size in sizes]
            means, bars = [e.mean() for e in found], [interval(e) for e in found]
            look = {"c": color, "marker": marker, "ls": line, "capsize": 3}
            ax.errorbar(sizes, means, bars, label=method, **look)
        ax.set(xscale="log", yscale="log", title=result["set"], xticks=sizes, xticklabels=sizes)
        ax.minorticks_off()
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        ax.grid(visible=True, alpha=0.3)
    for ax in axes[len(results) :]:
        ax.set_axis_off()
    drawing.supxlabel("coreset size")
    drawing.supylabel("relative error of the cost, %")
    handles, labels = axes[0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside upper center", ncols=3, title=f"k-means, k = {k}")
    return drawing


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--sizes", nargs="+", type=int, default=[1000, 2000, 5000])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--k", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    names = [name for name in args.sets if name in available()]
    if not names:
        print("skipped: DASKCORESET_DATA names no folder with these sets")
        return
    results = [run(name, args.k, args.sizes, range(args.seeds)) for name in names]
    args.out.mkdir(parents=True, exist_ok=True)
    text = table(results, args.sizes)
    (args.out / "quality.md").write_text(text)
    (args.out / "quality.json").write_text(json.dumps(results))
    figure(results, args.sizes, args.k).savefig(args.out / "quality.png", dpi=120)
    print(text)


if __name__ == "__main__":
    main()
