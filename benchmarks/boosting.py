"""Gradient boosting on weighted rows, by constructions beside uniform rows.

For every set: rows of each construction, LightGBM (HistGradientBoosting where it is not
installed) on them with their weights, and the log loss on held-out rows, beside the model on
all rows (up to 60,000).

    DASKCORESET_DATA=... python benchmarks/boosting.py --seeds 3

Constructions, half a uniform floor each where it says mixed:

- uniform, uniform by class (half of the rows of each class, weighted back);
- "svm" and "logistic" of `build`, made for other losses;
- margin: a pilot of 2,048 uniform rows, its model's p (1 - p) in a second read, mixed;
- gradient: as margin, by |y - p|, the gradient of the loss, mixed;
- cells: leaves of the pilot's trees, rows by the root of the gradients' second moment in their
  leaf (Neyman's allocation), mixed.
"""

from __future__ import annotations

import warnings
from typing import Any

import common
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.tree import DecisionTreeRegressor

import daskcoreset
from daskcoreset.datasets import load, load_bundled

NAME = "boosting"
REAL = (
    "htru2", "credit", "skin", "magic04", "cod_rna", "ijcnn1", "covtype", "kdd_bio", "a9a", "w8a",
)  # fmt: skip
WAYS = ("uniform", "by class", "svm", "logistic", "margin", "gradient", "cells")
READS = dict(zip(WAYS, (1, 1, 2, 2, 2, 2, 2), strict=True))
SIZE, PILOT, MOST_ROWS, HELD_OUT = 4000, 2048, 60_000, 20_000


def models() -> dict[str, Any]:
    """Return the learner with its defaults: LightGBM, or the one of scikit-learn."""
    # Up to 10,000 rows it would not stop early by default, and of more it would.
    found: dict[str, Any] = {
        "hist": HistGradientBoostingClassifier(random_state=0, early_stopping=False)
    }
    try:
        import lightgbm

        found = {"lightgbm": lightgbm.LGBMClassifier(verbose=-1, n_jobs=1, random_state=0)}
    except ImportError:
        print("skipped: lightgbm is not installed")
    return found


def drawn(score: np.ndarray, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows in proportion to a score, half of it uniform, without replacement."""
    share = 0.5 / len(score) + 0.5 * score / score.sum()
    inclusion = share * size
    for _ in range(20):  # no row more than once
        over = inclusion >= 1.0
        rest = size - over.sum()
        inclusion = np.where(over, 1.0, share * rest / share[~over].sum())
        if not (inclusion > 1.0).any():
            break
    order = rng.permutation(len(score))
    marks = np.floor(np.cumsum(np.minimum(inclusion, 1.0)[order]) + rng.random())
    rows = order[np.flatnonzero(np.diff(marks, prepend=0.0) >= 1.0)]
    return rows, 1.0 / np.minimum(inclusion, 1.0)[rows]


def chosen(
    way: str, X: np.ndarray, y: np.ndarray, size: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers and weights of rows by a construction."""
    rng = np.random.default_rng(seed)
    n = len(X)
    if way == "uniform":
        return rng.choice(n, size, replace=False), np.full(size, n / size)
    if way == "by class":
        shares = np.where(y, 0.5 / y.sum(), 0.5 / (~y).sum())
        return drawn(shares, size, rng)
    if way in ("svm", "logistic"):
        spread = X.std(axis=0)
        scaled = (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
        coreset = daskcoreset.build(
            scaled, y.astype(int), method=way, size=size, random_state=seed, progress=False
        )
        return coreset.indices, coreset.weights
    some = rng.choice(n, PILOT, replace=False)
    pilot = HistGradientBoostingClassifier(random_state=0).fit(X[some], y[some])
    p = pilot.predict_proba(X)[:, -1]
    gradient = np.abs(y - p)
    if way == "margin":
        return drawn(p * (1.0 - p) + 1e-9, size, rng)
    if way == "gradient":
        return drawn(gradient + 1e-9, size, rng)
    tree = DecisionTreeRegressor(max_leaf_nodes=64, min_samples_leaf=20, random_state=0)
    leaf = tree.fit(X[some], gradient[some]).apply(X)
    second = np.bincount(leaf, gradient**2) / np.maximum(np.bincount(leaf), 1)
    return drawn(np.sqrt(second)[leaf] + 1e-9, size, rng)


def loss(model: Any, test: tuple[np.ndarray, np.ndarray]) -> float:
    """Log loss on held-out rows."""
    return float(log_loss(test[1], model.predict_proba(test[0]), labels=[False, True]))


def run(name: str, seeds: int) -> dict[str, Any]:
    """Measure one set."""
    data = load_bundled(name) if name == "breast_cancer" else load(name)
    X, y = common.dense(data.X, np.float32), np.asarray(data.y) > 0
    order = np.random.default_rng(0).permutation(len(X))[: MOST_ROWS + HELD_OUT]
    held = min(HELD_OUT, len(order) // 3)
    test, train = order[:held], order[held:]
    X, y, there = X[train], y[train], (X[test], y[test])
    size = min(SIZE, len(X) // 4)
    found: dict[str, Any] = {"set": name, "n": len(X), "d": X.shape[1], "size": size}
    found["all"] = {key: loss(model.fit(X, y), there) for key, model in models().items()}
    found["losses"] = {way: {key: [] for key in models()} for way in WAYS}
    found["seconds"] = {way: [] for way in WAYS}
    warnings.simplefilter("ignore")
    for seed in range(seeds):
        for way in WAYS:
            with common.timed() as clock:
                rows, weights = chosen(way, X, y, size, seed)
            found["seconds"][way].append(clock.cpu)
            for key, model in models().items():
                fitted = model.fit(X[rows], y[rows], sample_weight=weights / weights.mean())
                found["losses"][way][key].append(loss(fitted, there))
    for key in models():
        print(row_of(found, key), flush=True)
    return found


def gap_of(found: dict[str, Any], key: str, way: str) -> str:
    """Return the gap over that of uniform rows, and its interval by the seeds of the way."""
    least = found["all"][key]
    uniform = max(float(np.mean(found["losses"]["uniform"][key])) - least, 1e-12)
    ratios = (np.array(found["losses"][way][key]) - least) / uniform
    return f"{ratios.mean():.2f} ± {common.interval(ratios):.2f}"


def gaps(found: dict[str, Any], key: str) -> dict[str, float]:
    """Gap to all rows over that of uniform rows, by construction."""
    least = found["all"][key]
    uniform = np.mean(found["losses"]["uniform"][key]) - least
    return {
        way: float((np.mean(one[key]) - least) / max(uniform, 1e-12))
        for way, one in found["losses"].items()
    }


def row_of(found: dict[str, Any], key: str) -> tuple[Any, ...]:
    """Return a row of the table."""
    uniform = found["losses"]["uniform"][key]
    return (
        f"{found['set']} ({found['n']:,} x {found['d']})",
        key,
        f"{found['all'][key]:.4f}",
        f"{np.mean(uniform):.4f} ± {common.interval(uniform):.4f}",
        *(gap_of(found, key, way) for way in WAYS[1:]),
    )


def report(data: dict[str, Any]) -> str:
    """Write the table."""
    results = data["results"]
    keys = list(results[0]["all"])
    heads = ("set", "model", "all rows", "uniform", *WAYS[1:])
    rows = [row_of(one, key) for one in results for key in keys]
    reads = ["reads", "", 1, *(READS[way] for way in WAYS)]
    rows.append(reads)
    lines = ["# Gradient boosting on coresets", "", *common.table(heads, rows), ""]
    for key in keys:
        by_set = [gaps(one, key) for one in results]
        counts = [
            f"{way} {sum(g[way] > 1 for g in by_set)} and {sum(g[way] <= 0.5 for g in by_set)}"
            for way in WAYS[1:]
        ]
        lines += [
            (
                f"Sets on which the gap is wider than with uniform rows, and at most half as wide "
                f"({key}, of {len(results)}): {', '.join(counts)}."
            ),
            "",
        ]
    lines += [
        (
            f"Log loss on held-out rows of models on all rows and on {SIZE:,} uniform rows (or a "
            f"quarter of all), with the interval of 95 % of {data['stamp']['seeds']} seeds; then "
            f"the gap to all rows of each construction, over the mean one of uniform rows: below 1 "
            f"is better. A second read scores the rows by what a pilot has learned."
        ),
        "",
    ]
    if all("seconds" in one for one in results):
        took = [[one["set"], *(common.median_cell(one["seconds"][way]) for way in WAYS)]
                for one in results]  # fmt: skip
        lines += ["Seconds of the processor to draw, the pilot's among them:", ""]
        lines += [*common.table(["set", *WAYS], took), ""]
    lines += [
        common.stamped(data),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Run all sets."""
    parser = common.arguments(__doc__, REAL)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    results = [run(name, options.seeds) for name in common.loadable(options.sets)]
    data = {"stamp": common.stamp(seeds=options.seeds), "results": results}
    common.write(NAME, data, options.out, report)


if __name__ == "__main__":
    main()
