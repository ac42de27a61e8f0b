"""Gradient boosting on weighted rows, by constructions beside uniform rows.

For every set: rows of each construction, HistGradientBoosting, and LightGBM where it is
installed, on them with their weights, and the log loss on held-out rows, beside the model on all
rows (up to 60,000). Seconds are those of the processor, to draw the rows and to train on them, with
one thread; a pilot is part of the draw of each construction that has one.

    DASKCORESET_DATA=... OMP_NUM_THREADS=1 python benchmarks/boosting.py --seeds 8

``--seconds 2`` measures the seconds again, of two seeds, and keeps the losses that are there.

Constructions, half a uniform floor each where it says mixed:

- uniform, uniform by class (half of the rows of each class, weighted back);
- "svm" and "logistic" of `build`, made for other losses;
- margin: a pilot of 2,048 uniform rows, its model's p (1 - p) in a second read, mixed;
- gradient: as margin, by |y - p|, the gradient of the loss, mixed; "gradient, 3/4" with a floor of
  a quarter;
- cells: leaves of the pilot's trees, rows by the root of the gradients' second moment in their
  leaf (Neyman's allocation), mixed.

Sets that are made here are hostile: labels by a coin, a third of the labels flipped, classes that a
step in one column decides but for a region where a coin does, a class of sixty rows, rows sorted by
class, few distinct rows, and a column with a row at 1e8.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

import common
import numpy as np
from sets import load
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.tree import DecisionTreeRegressor

import daskcoreset

NAME = "boosting"
REAL = (
    "htru2", "credit", "skin", "magic04", "cod_rna", "ijcnn1", "covtype", "kdd_bio", "a9a", "w8a",
)  # fmt: skip
MADE = ("coin", "flipped", "half a coin", "rare", "sorted", "duplicates", "far row")
WAYS = (
    "uniform", "by class", "svm", "logistic", "margin", "gradient", "gradient, 3/4", "cells",
)  # fmt: skip
PILOTED = WAYS[4:]
DRAW = "draw"
SIZE, PILOT, MOST_ROWS, HELD_OUT = 4000, 2048, 60_000, 20_000


def models() -> dict[str, Any]:
    """Return learners with their defaults: that of scikit-learn, and LightGBM if it is there."""
    # Up to 10,000 rows it would not stop early by default, and of more it would.
    found: dict[str, Any] = {
        "hist": HistGradientBoostingClassifier(random_state=0, early_stopping=False)
    }
    try:
        import lightgbm

        found["lightgbm"] = lightgbm.LGBMClassifier(verbose=-1, n_jobs=1, random_state=0)
    except ImportError:
        print("skipped: lightgbm is not installed")
    return found


def made(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a hostile set of 30,000 rows."""
    rng = np.random.default_rng(0)
    n, d = 30_000, 8
    X = rng.normal(size=(n, d)).astype(np.float32)
    score = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.5 * np.abs(X[:, 3])
    y = score + 0.3 * rng.logistic(size=n) > 0.4
    if name == "coin":
        y = rng.random(n) < 0.5
    elif name == "flipped":
        y ^= rng.random(n) < 1 / 3
    elif name == "half a coin":
        y = np.where(X[:, 1] > 0, rng.random(n) < 0.5, X[:, 0] > 0)
    elif name == "rare":
        y = np.isin(np.arange(n), np.argpartition(score + 0.1 * rng.logistic(size=n), -60)[-60:])
    elif name == "duplicates":
        distinct = rng.integers(0, 300, n)
        X, y = X[distinct], y[distinct] ^ (rng.random(n) < 0.2)
    elif name == "far row":
        X[17, 4] = 1e8
    return X, y


def drawn(
    score: np.ndarray, size: int, rng: np.random.Generator, floor: float = 0.5
) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows in proportion to a score, a part of it uniform, without replacement."""
    share = floor / len(score) + (1.0 - floor) * score / score.sum()
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


def piloted(X: np.ndarray, y: np.ndarray, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a pilot, and the chances of the second class by it for all rows."""
    rows = np.random.default_rng(seed).choice(len(X), min(PILOT, size), replace=False)
    if len(np.unique(y[rows])) < 2:
        return rows, np.full(len(X), y[rows].mean())
    model = HistGradientBoostingClassifier(random_state=0).fit(X[rows], y[rows])
    return rows, model.predict_proba(X)[:, 1]


def chosen(
    way: str,
    X: np.ndarray,
    y: np.ndarray,
    size: int,
    *,
    pilot: tuple[np.ndarray, np.ndarray],
    seed: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers and weights of rows by a construction."""
    rng = np.random.default_rng((seed, 1))
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
    some, p = pilot
    gradient = np.abs(y - p)
    if way == "margin":
        return drawn(p * (1.0 - p) + 1e-9, size, rng)
    if way.startswith("gradient"):
        return drawn(gradient + 1e-9, size, rng, 0.25 if "3/4" in way else 0.5)
    tree = DecisionTreeRegressor(max_leaf_nodes=64, min_samples_leaf=20, random_state=0)
    leaf = tree.fit(X[some], gradient[some]).apply(X)
    second = np.bincount(leaf, gradient**2) / np.maximum(np.bincount(leaf), 1)
    return drawn(np.sqrt(second)[leaf] + 1e-9, size, rng)


def loss(model: Any, test: tuple[np.ndarray, np.ndarray]) -> float:
    """Log loss on held-out rows."""
    return float(log_loss(test[1], model.predict_proba(test[0]), labels=[False, True]))


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Return rows and labels to train on, and those held out."""
    if name in MADE:
        X, y = made(name)
    else:
        data = load(name)
        X, y = common.dense(data.X, np.float32), np.asarray(data.y) > 0
    order = np.random.default_rng(0).permutation(len(X))[: MOST_ROWS + HELD_OUT]
    held = min(HELD_OUT, len(order) // 3)
    test, train = order[:held], order[held:]
    if name == "sorted":
        train = train[np.lexsort((X[train, 0], y[train]))]
    return X[train], y[train], (X[test], y[test])


def run(name: str, seeds: int) -> dict[str, Any]:
    """Measure one set."""
    X, y, there = rows_of(name)
    size = min(SIZE, len(X) // 4)
    found: dict[str, Any] = {"set": name, "n": len(X), "d": X.shape[1], "size": size}
    found["all"], found["seconds of all"] = {}, {}
    warnings.simplefilter("ignore")
    few = np.linspace(0, len(X) - 1, 2000).astype(int)
    few_pilot = few, np.full(len(few), 0.5)
    for way in WAYS[:-1]:  # whatever is loaded or compiled at first
        chosen(way, X[few], y[few], 500, pilot=few_pilot, seed=0)
    for key, model in models().items():
        model.fit(X[few], np.arange(len(few)) % 2 == 0)
        with common.timed() as clock:
            model.fit(X, y)
        found["all"][key], found["seconds of all"][key] = loss(model, there), clock.cpu
    found["losses"] = {way: {key: [] for key in models()} for way in WAYS}
    found["seconds"] = {way: {key: [] for key in (DRAW, *models())} for way in WAYS}
    for seed in range(seeds):
        with common.timed() as first:
            pilot = piloted(X, y, size, seed)
        for way in WAYS:
            seconds = found["seconds"][way]
            with common.timed() as clock:
                rows, weights = chosen(way, X, y, size, pilot=pilot, seed=seed)
            seconds[DRAW].append(clock.cpu + first.cpu * (way in PILOTED))
            for key, model in models().items():
                with common.timed() as clock:
                    fitted = model.fit(X[rows], y[rows], sample_weight=weights / weights.mean())
                seconds[key].append(clock.cpu)
                found["losses"][way][key].append(loss(fitted, there))
    for key in models():
        print(row_of(found, key), flush=True)
    return found


def quotients(
    found: dict[str, Any], key: str, *, above: float = 0.0
) -> dict[str, tuple[float, float]]:
    """Loss above some loss over that of uniform rows, by construction, and half an interval.

    That of a quotient of means over the same seeds, to first order.
    """
    uniform = np.array(found["losses"]["uniform"][key]) - above
    found_of = {}
    for way in WAYS[1:]:
        own = np.array(found["losses"][way][key]) - above
        quotient = own.mean() / uniform.mean()
        apart = (own - quotient * uniform) / uniform.mean()
        found_of[way] = float(quotient), common.interval(apart)
    return found_of


def row_of(found: dict[str, Any], key: str) -> tuple[Any, ...]:
    """Return a row of the table: quotients of gaps to all rows, of losses where sets are made."""
    uniform, every = found["losses"]["uniform"][key], found["all"][key]
    shown = quotients(found, key, above=0.0 if found["set"] in MADE else every)
    return (
        f"{found['set']} ({found['n']:,} x {found['d']})",
        key,
        f"{every:.4f}",
        f"{np.mean(uniform):.4f} ± {np.std(uniform, ddof=1):.4f}",
        *(f"{gap:.2f} ± {width:.2f}" for gap, width in shown.values()),
    )


def counts(results: Sequence[dict[str, Any]], key: str) -> list[tuple[Any, ...]]:
    """Return on how many sets each construction has a larger loss than uniform rows, or a smaller.

    And on how many real ones the gap to all rows is at most half of that of uniform rows.
    """
    rows = []
    for way in WAYS[1:]:
        losses = {one["set"]: quotients(one, key)[way] for one in results}
        gaps = [
            quotients(one, key, above=one["all"][key])[way][0]
            for one in results
            if one["set"] not in MADE
        ]
        above = [name for name, (quotient, width) in losses.items() if quotient - width > 1.0]
        rows.append((
            way, key,
            sum(quotient > 1.0 for quotient, _ in losses.values()),
            f"{len(above)}{': ' if above else ''}{', '.join(above)}",
            sum(quotient + width < 1.0 for quotient, width in losses.values()),
            sum(gap <= 0.5 for gap in gaps) if gaps else "-",
        ))  # fmt: skip
    return rows


def seconds_of(found: dict[str, Any], key: str) -> tuple[str, ...]:
    """Return seconds on all rows, and of each construction those to draw and to train."""
    cells = []
    for own in found["seconds"].values():
        sums = np.add(own[DRAW], own[key])
        cells.append(
            f"{np.median(own[DRAW]):.2f} + {np.median(own[key]):.2f} "
            f"({sums.min():.2f} to {sums.max():.2f})"
        )
    return found["set"], key, f"{found['seconds of all'][key]:.2f}", *cells


def report(data: dict[str, Any]) -> str:
    """Write the tables."""
    parts = {
        "sets": [one for one in data["results"] if one["set"] not in MADE],
        "hostile sets": [one for one in data["results"] if one["set"] in MADE],
    }
    lines = [
        "# Gradient boosting on coresets",
        "",
        (
            f"Log loss on held-out rows of models on all rows and on {SIZE:,} uniform rows, or a "
            f"quarter of the rows (standard deviation of {data['stamp']['seeds']} seeds). Then, of "
            f"each construction, the gap to all rows over that of uniform rows; of hostile sets, "
            f"where there may be none, the loss over that of uniform rows. With intervals of 95 %, "
            f"paired by seed; below 1 is better. Uniform rows and those by class take one read, "
            f"the others two."
        ),
        "",
    ]
    for title, results in parts.items():
        if not results:
            continue
        keys = list(results[0]["all"])
        heads: tuple[str, ...] = ("set", "model", "all rows", "uniform", *WAYS[1:])
        rows = [row_of(one, key) for key in keys for one in results]
        lines += [f"## {title.capitalize()}", "", *common.table(heads, rows), ""]
        heads = ("construction", "model", "larger", "larger beyond chance", "smaller beyond chance")
        rows = [row for key in keys for row in counts(results, key)]
        lines += [
            (
                f"Of {len(results)} {title} the loss is larger or smaller than that of uniform "
                f"rows, and the gap at most half as wide, on so many:"
            ),
            "",
            *common.table((*heads, "half the gap"), rows),
            "",
        ]
    timed = [one for one in data["results"] if "seconds" in one]
    if timed:
        rows = [seconds_of(one, key) for key in timed[0]["all"] for one in timed]
        lines += [
            "## Seconds",
            "",
            (
                "Of the processor, one thread: to train on all rows, which are in memory; and to "
                "draw rows and to train on them, medians, and the least and the most of both "
                "together. Draws include the pilot where there is one. With weights, "
                "HistGradientBoosting takes longer to bin columns of many values. "
                f"{common.counted({len(one['seconds']['uniform'][DRAW]) for one in timed}, 'seed')}"
                f". {common.stamped({'stamp': data['stamp of seconds']})}"
            ),
            "",
            *common.table(("set", "model", "all rows", *WAYS), rows),
            "",
        ]
    return "\n".join([*lines, common.stamped(data), ""])


def main() -> None:
    """Run all sets."""
    parser = common.arguments(__doc__, (*REAL, *MADE))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--seconds", type=int, help="measure seconds alone, of so many seeds")
    options = parser.parse_args()
    stamp = common.stamp(seeds=options.seeds)
    data: dict[str, Any] = {"stamp": stamp, "results": []}
    if options.seconds:
        data = common.read(NAME, options.out)
    data["stamp of seconds"] = stamp
    for name in common.loadable(options.sets, *MADE):
        found = run(name, options.seconds or options.seeds)
        if options.seconds:
            kept = next(one for one in data["results"] if one["set"] == name)
            kept |= {key: found[key] for key in ("seconds", "seconds of all")}
        else:
            data["results"].append(found)
        common.write(NAME, data, options.out, report)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
