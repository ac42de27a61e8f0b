"""Error of linear SVMs on coresets of a stream, against the SVM on everything.

The rows of every set come in batches, in random order, into a `CoresetStream` and into a
uniform reservoir of the same size; after the last one a classifier is fitted on either and
its objective is evaluated on all rows. Features are standardised, lambda = 1. Writes a table,
a figure like the paper's 3 and 5, and the raw errors.

    DASKCORESET_DATA=... python benchmarks/svm_streaming.py --trials 30

Tukan, Baykal, Feldman and Rus (2020), On Coresets for Support Vector Machines, section 6 and
Algorithm 2.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from svm_offline import SETS, cost, data_of

from daskcoreset import SVM, CoresetStream
from daskcoreset.datasets import available
from daskcoreset.linear import solve_svm

METHODS = ("reservoir", "stream")
LOOKS = {"reservoir": "C7s:", "stream": "C3^-"}
BATCH = 5000


def reservoir(n: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return the rows that a uniform reservoir holds after n rows."""
    held = np.arange(min(size, n))
    for row, place in enumerate(rng.integers(0, np.arange(size, n) + 1), start=size):
        if place < size:
            held[place] = row
    return held


def stream_error(
    X: np.ndarray, y: np.ndarray, size: int, full: float, seed: int
) -> dict[str, tuple[float, float]]:
    """Return the error and the seconds of every method."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    found = {}
    start = time.perf_counter()
    held = order[reservoir(len(y), size, rng)]
    fit = solve_svm(X[held], y[held].astype(float), np.full(len(held), len(y) / len(held)))
    error = cost(X, y, fit.coef, fit.intercept) / full - 1
    found["reservoir"] = (error, time.perf_counter() - start)
    start = time.perf_counter()
    stream = CoresetStream(SVM(), size, random_state=seed)
    for first in range(0, len(y), BATCH):
        rows = order[first : first + BATCH]
        stream.partial_fit(X[rows], y[rows])
    coreset = stream.coreset()
    fit = solve_svm(coreset.points, coreset.labels.astype(float), coreset.weights)
    error = cost(X, y, fit.coef, fit.intercept) / full - 1
    found["stream"] = (error, time.perf_counter() - start)
    return found


def run(name: str, trials: int, count: int) -> dict[str, Any]:
    """Measure one set."""
    X, y = data_of(name)
    n = len(y)
    full = solve_svm(X, y.astype(float), np.ones(n), tol=1e-6).cost
    print(f"{name}: {X.shape}, F {full:.6g}", flush=True)
    errors, seconds = {}, {}
    for size in (round(size) for size in np.geomspace(math.log(n), n**0.8, count)):
        found = [stream_error(X, y, size, full, seed) for seed in range(trials)]
        for method in METHODS:
            errors[f"{method}|{size}"] = [one[method][0] for one in found]
            seconds[f"{method}|{size}"] = float(np.median([one[method][1] for one in found]))
        cells = (np.mean(errors[f"{method}|{size}"]) for method in METHODS)
        print(f"  {size}: " + ", ".join(f"{cell:.3%}" for cell in cells), flush=True)
    return {
        "set": name,
        "shape": X.shape,
        "full": full,
        "trials": trials,
        "errors": errors,
        "seconds": seconds,
    }


def table(results: list[dict[str, Any]]) -> str:
    """Return the Markdown table."""
    lines = [
        "# Linear SVMs on coresets of a stream",
        "",
        "Relative error of F in %, mean ± standard deviation; seconds of the stream for all rows.",
        "",
        "| set | trials | size | reservoir | stream | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for result in results:
        for size in sorted({int(key.split("|")[1]) for key in result["errors"]}):
            found = [100 * np.array(result["errors"][f"{m}|{size}"]) for m in METHODS]
            cells = " | ".join(f"{e.mean():.3g} ± {e.std(ddof=1):.2g}" for e in found)
            took = result["seconds"][f"stream|{size}"]
            lines.append(
                f"| {result['set']} | {result['trials']} | {size} | {cells} | {took:.2f} |"
            )
    return "\n".join(lines) + "\n"


def figure(results: list[dict[str, Any]]) -> Figure:
    """Draw mean errors with their standard deviations, one panel a set."""
    columns = min(3, len(results))
    rows = -(-len(results) // columns)
    drawing = Figure(figsize=(4 * columns, 3.2 * rows + 0.4), layout="constrained")
    FigureCanvasAgg(drawing)
    axes = drawing.subplots(rows, columns, squeeze=False).ravel()
    for ax, result in zip(axes, results, strict=False):
        sizes = sorted({int(key.split("|")[1]) for key in result["errors"]})
        for method, look in LOOKS.items():
            means = [100 * np.mean(result["errors"][f"{method}|{size}"]) for size in sizes]
            ax.plot(sizes, np.maximum(means, 1e-4), look[2:], color=look[:2], label=method)
        ax.set(xscale="log", yscale="log", title=result["set"])
        ax.grid(visible=True, alpha=0.3)
    for ax in axes[len(results) :]:
        ax.set_axis_off()
    drawing.supxlabel("size of the coreset")
    drawing.supylabel("relative error of F, %")
    drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return drawing


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=SETS[:-1])
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--sizes", type=int, default=8, help="how many sizes")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    names = [name for name in args.sets if name == "pathological" or name in available()]
    if len(names) < len(args.sets):
        print("skipped: DASKCORESET_DATA names no folder with all sets")
    results = []
    args.out.mkdir(parents=True, exist_ok=True)
    for name in names:
        results.append(run(name, args.trials, args.sizes))
        (args.out / "svm_streaming.md").write_text(table(results))
        (args.out / "svm_streaming.json").write_text(json.dumps(results))
        figure(results).savefig(args.out / "svm_streaming.png", dpi=110)
    print(table(results))


if __name__ == "__main__":
    main()
