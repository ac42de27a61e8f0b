"""Table 1 of the lightweight-coreset paper, on the sets at hand, beside the paper's figures.

UNIFORM, LWCS and CS (the strong coresets of Lucic et al. 2016) with independent draws as in the
paper, CS both as published, with a rough solution by k-means++ on everything, and with the pilot
of this library, which takes one more read in place of k of them; and this library's default for
k-means (strong, one read). Relative error against FULL with its 95 % interval, and speed-up:
seconds of the processor of FULL over those to build and to solve.

    DASKCORESET_DATA=... python benchmarks/table1.py --seeds 20

Bachem, Lucic and Krause (2018), Table 1 and Figures 1 and 2: KDD is kdd_bio here; RNA is cod_rna,
of which two thirds of the rows are at hand.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import common
import numpy as np
from quality import INDEPENDENT, Draw, drawn_by, figure, full_of, run, shown, solved
from sets import load
from sklearn.cluster import kmeans_plusplus
from threadpoolctl import threadpool_limits

from daskcoreset import StrongKMeans

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "table1"
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
PUBLISHED_SIZES = (1000, 2000, 5000)
SETS = ("kdd_bio", "cod_rna", "covtype", "skin", "credit")
METHODS = ("UNIFORM", "LWCS", "CS", "CS, pilot", "default")
LOOKS = common.looks_of(
    {
        "UNIFORM": "uniform",
        "LWCS": "lightweight, paper",
        "CS": "kmeans, paper",
        "CS, pilot": "kmeans, pilot",
        "default": "kmeans",
    }
)


class PublishedCS:
    """CS as published: k-means++ on everything, its scores, and independent draws."""

    def __init__(self, k: int) -> None:
        self.k = k
        self._scored = cache(self._scored_once)

    def _scored_once(self, seed: int) -> tuple[np.ndarray, float]:
        """Return probabilities of the rows, and the seconds that they took; for all sizes."""
        with common.timed() as clock, threadpool_limits(1):
            centers, _ = kmeans_plusplus(self._rows, self.k, random_state=seed, n_local_trials=1)
            labels, squares = np.empty(len(self._rows), dtype=np.int64), np.empty(len(self._rows))
            for start in range(0, len(self._rows), 20_000):
                rows = slice(start, start + 20_000)
                part = self._rows[rows].astype(np.float64) - centers[0]
                gaps = (part**2).sum(axis=1)[:, None] - 2 * part @ (centers - centers[0]).T
                gaps += ((centers - centers[0]).astype(np.float64) ** 2).sum(axis=1)
                labels[rows] = gaps.argmin(axis=1)
                squares[rows] = np.maximum(gaps.min(axis=1), 0)
            counts = np.bincount(labels, minlength=self.k)
            costs = np.bincount(labels, squares, minlength=self.k)
            mean, alpha = squares.mean(), 16 * (math.log(self.k) + 2)
            scores = alpha * squares / mean
            scores += 2 * alpha * (costs / np.maximum(counts, 1))[labels] / mean
            scores += 4 * len(labels) / counts[labels]
        return scores / scores.sum(), clock.cpu

    def __call__(self, X: np.ndarray, size: int, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
        """Draw rows; the seconds of the rough solution count for every size."""
        self._rows = X
        before = self._scored.cache_info().misses
        chances, seconds = self._scored(seed)
        rows = np.random.default_rng(seed).choice(len(X), size, p=chances)
        again = self._scored.cache_info().misses == before
        return X[rows], 1 / (size * chances[rows]), seconds if again else 0.0


def draws_of(k: int) -> dict[str, Draw]:
    """Return the ways to draw, in the order of the rows of the table."""
    return {
        "UNIFORM": drawn_by({"method": "uniform", **INDEPENDENT}),
        "LWCS": drawn_by({"method": "lightweight", **INDEPENDENT}),
        "CS": PublishedCS(k),
        "CS, pilot": drawn_by({"method": StrongKMeans(k), **INDEPENDENT}),
        "default": drawn_by({"method": StrongKMeans(k)}),
    }


def report(data: dict[str, Any]) -> str:
    """Return the Markdown table; the paper's figures stand in brackets."""
    made = data["stamp"]
    lines = [
        "# Table 1 of the lightweight-coreset paper",
        "",
        "Relative error against FULL in %, mean ± 95 % interval [paper]; speed-up over FULL in",
        f"seconds of the processor. {common.stamped(data)}",
    ]
    for k in made["k"]:
        results = [result for result in data["results"] if result["k"] == k]
        if not results:
            continue
        sizes = common.sizes_of(results[0]["cells"])
        rows = []
        for result in results:
            published = PAPER.get((result["set"], k), {})
            for method in METHODS:
                found = [result["cells"][f"{method}|{size}"] for size in sizes]
                beside = [
                    f" [{published[method][PUBLISHED_SIZES.index(size)]}]"
                    if method in published and size in PUBLISHED_SIZES
                    else ""
                    for size in sizes
                ]
                cells = [shown(one) + text for one, text in zip(found, beside, strict=True)]
                speeds = [result["full_seconds"] / np.median(one["seconds"]) for one in found]
                speed = " / ".join(f"{one:.0f}" for one in speeds)
                rows.append([result["set"], method, *cells, speed])
        seeds = made["seeds"] if k == made["k"][0] else made["seeds_further"]
        heads = ["set", "method", *(f"m = {size:,}" for size in sizes), "speed-up"]
        lines += ["", f"## k = {k}, {seeds} seeds", "", *common.table(heads, rows)]
    return "\n".join(lines) + "\n"


def figures(data: dict[str, Any]) -> dict[str, Figure]:
    """Return all figures."""
    return {
        "table1": figure(data, LOOKS, times=False),
        "table1_time": figure(data, LOOKS, times=True),
    }


def main() -> None:
    """Run the benchmark."""
    parser = common.arguments(__doc__, SETS)
    parser.add_argument("--k", nargs="+", type=int, default=[100, 500])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--seeds-further", type=int, help="seeds from the second k on")
    parser.add_argument("--sizes", nargs="+", type=int, default=[1000, 2000, 5000, 10_000, 20_000])
    parser.add_argument("--fresh", action="store_true", help="solve on everything again")
    args = parser.parse_args()
    names = common.loadable(args.sets)
    if not names:
        return
    further = args.seeds_further or args.seeds
    made = common.stamp(k=args.k, seeds=args.seeds, seeds_further=further, sizes=args.sizes)
    data: dict[str, Any] = {"stamp": made, "results": []}
    for k in args.k:
        first = k == args.k[0]
        # With more clusters the published sizes: larger ones take as long as everything.
        sizes = args.sizes if first else [size for size in args.sizes if size <= 5000]
        for name in names:
            if not first and (name, k) not in PAPER:
                continue
            full = full_of(name, np.asarray(load(name).X), k, args.out, fresh=args.fresh)
            seeds = args.seeds if first else further
            ways = {method: solved(draw, k) for method, draw in draws_of(k).items()}
            data["results"].append(run(name, ways, k=k, sizes=sizes, seeds=seeds, full=full))
            common.write(NAME, data, args.out, report, figures)
    print(report(data))


if __name__ == "__main__":
    main()
