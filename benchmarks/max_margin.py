"""Passes, core-set size and certified share of the maximum-margin core set.

Real sets from which the rows are removed that a soft machine errs on: what share of the largest
margin the core set certifies, beside what `LinearSVC` and `SVC` reach on everything. Then rows in a
Zarr store, with the memory that the process takes.

    DASKCORESET_DATA=... python benchmarks/max_margin.py
    DASKCORESET_DATA=... python benchmarks/max_margin.py --rows 1000000 --scratch /tmp

Curves of active learning are in active_margin.py.
"""

from __future__ import annotations

import argparse
import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import common
import dask.array as da
import numpy as np
import zarr
from sets import available, load
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from daskcoreset.estimators import MaxMarginClassifier

NAME = "max_margin"
N_BLOCKS = 20
MOST_FOR_SVC = 5_000_000


def made_up(n: int, d: int, gap: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return Gaussian rows moved away from a hyperplane through the origin by `gap`."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    w = rng.normal(size=d)
    w /= np.linalg.norm(w)
    y = np.where(X @ w > 0, 1, -1)
    return X + (gap * y)[:, None] * w, y


def fitted(X: np.ndarray, y: np.ndarray, way: Any, **options: Any) -> MaxMarginClassifier:
    """Fit to rows in so many blocks."""
    rows = da.from_array(X, chunks=(-(-len(X) // N_BLOCKS), X.shape[1]))
    model = MaxMarginClassifier(violators=way, **options)
    return model.fit(rows, y)


def run_one(
    X: np.ndarray, y: np.ndarray, way: Any, *, intercept: bool = False, **options: Any
) -> dict[str, Any]:
    """Run one core set, and tell what it took."""
    with warnings.catch_warnings(), common.timed() as clock:
        warnings.simplefilter("ignore")  # of a limit that is shown in the table
        model = fitted(X, y, way, fit_intercept=intercept, **options)
    found: Any = model.result_
    return {
        "reads": found.reads,
        "size": len(model.coreset_),
        "share": found.factor,
        "margin": found.margin,
        "seconds": clock.cpu,
    }


def real_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return sets of two classes, standardised, as far as they are at hand."""
    sets = {}
    digits, target = load_digits(return_X_y=True)
    for one, other in ((1, 8), (3, 5)):
        rows = (target == one) | (target == other)
        sets[f"digits {one}/{other}"] = (digits[rows], np.where(target[rows] == one, 1, -1))
    for name in ("htru2", "w8a"):
        if name in available():
            data = load(name)
            y = np.asarray(data.y)
            sets[name] = (common.dense(data.X, np.float64), np.where(y == y.max(), 1, -1))
    return {name: (StandardScaler().fit_transform(X), y) for name, (X, y) in sets.items()}


def made_separable(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Remove the rows that a soft machine has on the wrong side or nearly so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearSVC(C=1.0, dual=False).fit(X, y)
    kept = y * model.decision_function(X) > 1e-3
    return X[kept], y[kept]


def strip(X: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
    """Return half the width of the strip that a normal leaves between the classes."""
    values = X @ (w / np.linalg.norm(w))
    return float(values[y > 0].min() - values[y < 0].max()) / 2


def on_real(name: str, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Compare time and margin with machines on everything."""
    X, y = made_separable(X, y)
    rows: dict[str, Any] = {"set": name, "n": len(X), "d": X.shape[1], "machines": {}}
    rows["machines"]["core set, default"] = run_one(X, y, "auto", intercept=True)
    best = run_one(X, y, "auto", intercept=True, epsilon=1e-6)
    largest = best["margin"]
    rows["machines"]["core set, epsilon 1e-6"] = best
    models = {
        "LinearSVC(C=1e4)": LinearSVC(C=1e4, max_iter=2000, random_state=0),
        "SVC(C=1e6)": SVC(C=1e6, kernel="linear", max_iter=2_000_000),
    }
    if X.size > MOST_FOR_SVC:
        models = {}  # minutes to hours
    for label, model in models.items():
        with warnings.catch_warnings(), common.timed() as clock:
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        share = strip(X, y, model.coef_[0]) / largest
        rows["machines"][label] = {"seconds": clock.cpu, "share": share}
    rows["margin"] = largest
    print(name, {k: round(v["seconds"], 2) for k, v in rows["machines"].items()}, flush=True)
    return rows


def run_stored(path: str) -> dict[str, float]:
    """Run on a store, and tell what it took; in a process of its own."""
    MaxMarginClassifier().fit(*made_up(1000, 5, 0.5))  # imports and compiles
    before = common.reset_high_water()
    model = MaxMarginClassifier(fit_intercept=False).fit(path, "y")
    peak = common.high_water() - before
    found: Any = model.result_
    share = float(found.factor)
    return {"reads": found.reads, "size": len(model.coreset_), "share": share, "peak": peak}


def on_disk(n: int, scratch: Path) -> list[dict[str, Any]]:
    """Write rows to a store, run in a process of its own, and tell reads and memory."""
    path = scratch / "max_margin.zarr"
    d, rows = 20, 400_000
    results = []
    for size in (n // 10, n):
        group = zarr.open_group(path, mode="w")
        options: dict[str, Any] = {"compressors": None}
        X = group.create_array("X", shape=(size, d), chunks=(rows, d), dtype="f4", **options)
        y = group.create_array("y", shape=(size,), chunks=(rows,), dtype="i1", **options)
        draw = common.gaussian(d)
        w = np.full(d, d**-0.5)
        for start in range(0, size, rows):
            part = draw(min(rows, size - start))
            signs = np.where(part @ w > 0, 1, -1)
            X[start : start + rows] = part + (0.1 * signs)[:, None] * w
            y[start : start + rows] = signs
        found = common.in_child(__file__, "--run", path)
        results.append({"rows": size, "d": d, **found})
        shutil.rmtree(path)
    return results


def main() -> None:
    """Run the benchmark."""
    parser = common.arguments(__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the larger store")
    parser.add_argument("--scratch", type=Path, default=Path("/tmp"), help="where it is written")  # noqa: S108 - a default that the user sees
    parser.add_argument("--run", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        print(json.dumps(run_stored(args.run)))
        return
    real = [on_real(name, X, y) for name, (X, y) in real_sets().items()]
    stored = on_disk(args.rows, args.scratch)
    common.write(NAME, {"stamp": common.stamp(), "real": real, "stored": stored}, args.out)


if __name__ == "__main__":
    main()
