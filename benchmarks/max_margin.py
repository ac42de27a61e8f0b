"""Reads, core-set size and time of the maximum-margin core set.

Part one, made-up data with a known gap: reads of the data and rows in the core set against
epsilon, n, d and R / rho, for one violator a read (Fig. 1) and the default. Part two, real sets
from which the rows are removed that a soft machine errs on: time beside `LinearSVC` and `SVC` on
everything, and what share of the largest margin each reaches. Part three, with --disk: rows in a
Zarr store, with the memory that the process takes.

    DASKCORESET_DATA=... python benchmarks/max_margin.py
    python benchmarks/max_margin.py --disk 10000000 --scratch /tmp

Curves of active learning are in active_margin.py.

Har-Peled, Roth and Zimak (2007), Fig. 1.
"""

from __future__ import annotations

import argparse
import json
import shutil
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import common
import dask.array as da
import numpy as np
import zarr
from looks import look_of
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter
from sets import available, load
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from daskcoreset.estimators import MaxMarginClassifier

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WAYS = {1: "one violator (Fig. 1)", "auto": "default"}
N_BLOCKS = 20
MOST_READS = 400
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
    model = MaxMarginClassifier(violators=way, max_passes=MOST_READS, **options)
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
        "way": str(way),
        "reads": found.reads,
        "size": len(model.coreset_),
        "support": int(np.count_nonzero(found.dual)),
        "factor": found.factor,
        "margin": found.margin,
        "converged": found.converged,
        "ratio": found.radius / found.core_margin,
        "seconds": clock.wall,
    }


def sweeps(n: int) -> list[dict[str, Any]]:
    """Vary one of epsilon, n, d and the gap at a time, around one problem."""
    base = {"epsilon": 0.1, "n": n, "d": 50, "gap": 0.1}
    values = {
        "epsilon": [0.5, 0.2, 0.1, 0.05, 0.01, 0.001],
        "n": [n // 100, n // 10, n, n * 3],
        "d": [10, 20, 50, 100, 200],
        "gap": [1.0, 0.3, 0.1, 0.03, 0.01, 0.001],
    }
    found = []
    for name, several in values.items():
        for value in several:
            case = {**base, name: value}
            X, y = made_up(int(case["n"]), int(case["d"]), float(case["gap"]))
            for way in WAYS:
                if way == 1 and int(case["d"]) * int(case["n"]) > 100 * n:
                    continue  # minutes for one number, known to be beyond 400
                result = run_one(X, y, way, epsilon=case["epsilon"])
                found.append({"varied": name, "value": value, **result})
            reads = [r["reads"] for r in found if (r["varied"], r["value"]) == (name, value)]
            print(f"{name} = {value}: {reads} reads", flush=True)
    return found


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
        del models["SVC(C=1e6)"]  # hours
    for label, model in models.items():
        with warnings.catch_warnings(), common.timed() as clock:
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        share = strip(X, y, model.coef_[0]) / largest
        rows["machines"][label] = {"seconds": clock.wall, "share": share, "reads": None}
    for one in rows["machines"].values():
        one.setdefault("share", one.get("factor"))
    rows["margin"] = largest
    print(name, {k: round(v["seconds"], 2) for k, v in rows["machines"].items()}, flush=True)
    return rows


def tables(found: list[dict[str, Any]], real: list[dict[str, Any]], n: int) -> str:
    """Return the Markdown tables."""
    base = next(r for r in found if r["varied"] == "epsilon" and r["value"] == 0.1)
    summary = (
        f"Reads of the data / rows in the core set, {N_BLOCKS} blocks, through the origin. One "
        f"thing is varied at a time; the others are epsilon = 0.1, n = {n:,}, d = 50, gap = 0.1 "
        f"and R / rho = {base['ratio']:.0f}. A + means that {MOST_READS} reads were not enough."
    )
    of_real = (
        "Real sets, standardised, without the rows that `LinearSVC(C=1)` errs on, with an "
        "intercept. Share: of the largest margin; for a core set what it certifies, for a machine "
        "what its normal reaches on all rows (negative: it does not separate them)."
    )
    rows = []
    cases = dict.fromkeys((r["varied"], r["value"]) for r in found)
    for varied, value in cases:
        these = {r["way"]: r for r in found if (r["varied"], r["value"]) == (varied, value)}
        cells = []
        for way in WAYS:
            one = these.get(str(way))
            plus = "" if one is None or one["converged"] else "+"
            cells.append("not run" if one is None else f"{one['reads']}{plus} / {one['size']}")
        some = these["auto"]
        rows.append([f"{varied} = {value:g}", f"{some['ratio']:.0f}", *cells])
    heads = ["varied", "R / rho", *WAYS.values()]
    lines = ["# Maximum-margin core sets", "", summary, "", *common.table(heads, rows)]
    rows = [
        [
            of_set["set"],
            f"{of_set['n']:,} x {of_set['d']}",
            label,
            f"{one['seconds']:.2f}",
            f"{one['share']:.4f}",
            "" if one["reads"] is None else one["reads"],
            one.get("size", ""),
        ]
        for of_set in real
        for label, one in of_set["machines"].items()
    ]
    heads = ["set", "n x d", "machine", "seconds", "share", "reads", "rows"]
    return "\n".join([*lines, "", of_real, "", *common.table(heads, rows)]) + "\n"


def figure(found: list[dict[str, Any]], n: int) -> Figure:
    """Draw reads and rows against what is varied, and the gap closing."""
    drawing = common.figure(13, 8.5)
    grid = drawing.add_gridspec(3, 4)
    axes = np.array([[drawing.add_subplot(grid[i, j]) for j in range(4)] for i in range(2)])
    names = {"epsilon": "epsilon", "n": "rows n", "d": "columns d", "gap": "R / rho"}
    looks = {"1": look_of("margin"), "auto": look_of("csvrg")}
    for column, (varied, title) in enumerate(names.items()):
        for way, label in WAYS.items():
            these = [r for r in found if r["varied"] == varied and r["way"] == str(way)]
            values = [r["ratio"] if varied == "gap" else r["value"] for r in these]
            look = {**looks[str(way)].line, "label": label}
            axes[0, column].plot(values, [r["reads"] for r in these], **look)
            axes[1, column].plot(values, [r["size"] for r in these], **look)
        whats = ("reads of the data", "rows in the core set")
        for ax, what in zip(axes[:2, column], whats, strict=True):
            ax.set(xscale="log", yscale="log", xlabel=title, ylabel=what if not column else "")
            ax.grid(visible=True, alpha=0.3)
            ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            ax.yaxis.set_minor_locator(NullLocator())
    common.legend(drawing, 3)
    X, y = made_up(n, 50, 0.1)
    wide = [drawing.add_subplot(grid[2, :2]), drawing.add_subplot(grid[2, 2:])]
    for ax, way in zip(wide, (1, "auto"), strict=True):
        trace: Any = fitted(X, y, way, fit_intercept=False).trace_
        reads = [step.reads for step in trace]
        for name in ("core_margin", "margin"):
            values = [max(getattr(step, name), 0.0) for step in trace]
            ax.plot(reads, values, label=f"on the {'core set' if 'core' in name else 'data'}")
        ax.set(title=WAYS[way], xlabel="reads of the data", ylabel="margin")
        ax.legend(frameon=False)
    return drawing


def run_stored(path: str) -> list[float]:
    """Run on a store; return reads, rows, margin, seconds and MB. In a process of its own."""
    MaxMarginClassifier().fit(*made_up(1000, 5, 0.5))  # imports and compiles
    before = common.reset_high_water()
    with common.timed() as clock:
        model = MaxMarginClassifier(fit_intercept=False).fit(path, "y")
    peak = (common.high_water() - before) / 1e6
    found: Any = model.result_
    return [found.reads, len(model.coreset_), found.factor, clock.wall, peak]


def on_disk(n: int, scratch: Path) -> dict[str, Any]:
    """Write rows to a store, run in a process of its own, and tell reads, time and memory."""
    path = scratch / "max_margin.zarr"
    d, rows = 20, 400_000
    lines, raw = [], []
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
        reads, core, factor, taken, peak = common.in_child(__file__, "--run", path)
        raw.append([size, reads, core, factor, taken, peak])
        assert reads <= 30, "more than 30 reads"
        cells = [f"{reads:.0f}", f"{core:.0f}", f"{factor:.3f}", f"{taken:.1f}", f"{peak:.0f} MB"]
        lines.append(common.printed([f"{size:,}", f"{size * d * 4 / 1e6:,.0f} MB", *cells]))
        shutil.rmtree(path)
    heads = ["rows", "bytes", "reads", "core set", "certified", "seconds", "peak of memory"]
    return common.part(heads, lines, raw)


def disk_report(data: dict[str, Any]) -> str:
    """Return the table of stores."""
    lines = ["# 20 columns on disk, epsilon = 0.1, through the origin"]
    lines += [*common.part_lines(data["parts"]["disk"])]
    return "\n".join([*lines, "Memory: above that of the process before the run.", ""])


def main() -> None:
    """Run the benchmark."""
    parser = common.arguments(__doc__)
    parser.add_argument("--n", type=int, default=100_000, help="rows of the made-up data")
    parser.add_argument("--disk", type=int, default=0, help="rows of the store; 0 for none")
    parser.add_argument("--scratch", type=Path, default=Path("/tmp"), help="where it is written")  # noqa: S108 - a default that the user sees
    parser.add_argument("--run", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        print(json.dumps(run_stored(args.run)))
        return
    args.out.mkdir(parents=True, exist_ok=True)
    if args.disk:
        parts = {"disk": on_disk(args.disk, args.scratch)}
        data = {"stamp": common.stamp(), "parts": parts}
        common.write("max_margin_disk", data, args.out, disk_report)
        return
    found = sweeps(args.n)
    real = [on_real(name, X, y) for name, (X, y) in real_sets().items()]
    text = tables(found, real, args.n)
    common.write(
        "max_margin",
        {"made_up": found, "real": real},
        args.out,
        lambda _: text,
        lambda _: {"max_margin": figure(found, args.n)},
    )
    print(text)


if __name__ == "__main__":
    main()
