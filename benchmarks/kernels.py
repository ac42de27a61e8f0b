"""Kernel machines beside honest ceilings, and the variance-reduced gradient on covers.

The first table trains ours on rows that it draws from all rows, LightGBM and
HistGradientBoosting on 10,000 random rows with their defaults, LightGBM on 40,000 too, SVC on
3,000, and Nystroem + LinearSVC on 10,000 with 400 landmarks. At as many rows and landmarks as ours
LinearSVC takes far longer than anything else here, so Nystroem stands there with the two solvers
that take less for tens of thousands of rows of some hundred features: ridge regression of the
labels by one Cholesky factor, and logistic regression by Newton steps ("newton-cholesky"). Gamma
and C are the best of nine, trained on as many rows,
10,000 at most, and judged on 5,000 further ones (gamma over one by the sum of the variances of the
columns, so that it means the same on every set); with a learned metric gamma is learned in `fit`,
and C the best of three. Ridge and logistic regression want a larger C, and have the best of
fifteen, with 400 landmarks as ours. What the choice takes is not
counted, for none. The second table has the accuracy of
``solver="csvrg"`` on covers, with the paper's number of core points at most and gamma and lambda
from the paper's grid: where drawn rows are half the core points, with a cover alone, and on as many
points that are drawn from the classes, beside the paper's; and diameters of all.

    DASKCORESET_DATA=... OMP_NUM_THREADS=1 python benchmarks/kernels.py
"""

from __future__ import annotations

import itertools
import json
import os
import time
import warnings
from typing import Any

import common
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC
from table2 import GAMMAS, PAPER, rows_of, split

from daskcoreset.estimators import CSVRGClassifier

NAME = "kernels"
SETS = ("covtype", "ijcnn1", "cod_rna", "magic04")
WIDTHS, PENALTIES = (0.5, 2.0, 8.0), (1.0, 10.0, 100.0)
MORE_PENALTIES = (*PENALTIES, 1000.0, 10_000.0)
FEW, SOME, LEAN, MANY = (400, 20_000), (700, 20_000), (800, 16_000), (800, 20_000)
MORE, HUGE = (800, 40_000), (1200, 40_000)
TUNING_ROWS = 10_000
OURS = {
    "ours, 400 points": (FEW, "euclidean"),
    "ours, 400 points, learned metric": (FEW, "learned"),
    "ours, 700 points, learned metric": (SOME, "learned"),
    "ours, 800 points, fewer rows, learned metric": (LEAN, "learned"),
    "ours, 800 points, learned metric": (MANY, "learned"),
    "ours, 800 points, more rows, learned metric": (MORE, "learned"),
    "ours, 1,200 points, learned metric": (HUGE, "learned"),
}
COVERS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "cover": ({"strategy": "online"}, {"span": "span", "nearest": "core_points"}),
    "cover alone": ({"strategy": "online", "drawn_share": 0.0}, {"alone": "span"}),
    "drawn": ({"strategy": "drawn"}, {"drawn": "span"}),
}
COLUMNS = [column for _, kinds in COVERS.values() for column in kinds]
DIAMETERS = ["span", "alone", "drawn"]
LIGHT, BOOSTING, NYSTROEM = "LightGBM", "HistGradientBoosting", "Nystroem + LinearSVC"
PEERS = {LIGHT: 10_000, "LightGBM, more rows": 40_000, BOOSTING: 10_000, "SVC": 3_000}
PEERS |= {NYSTROEM: 10_000}
SOLVERS = ("ridge", "logistic")
AS_OURS = {"400 points": FEW, "800 points": MANY, "800 points, more rows": MORE}
AS_OURS |= {"1,200 points": HUGE}
EQUAL = {
    f"Nystroem + {solver}, {name}": (solver, *both)
    for name, both in AS_OURS.items()
    for solver in SOLVERS
}
"""Peers with as many landmarks, and as many rows, as machines of ours."""


def make(method: str, gamma: float, penalty: float, seed: int) -> Any:
    """Return a model."""
    if method in OURS:
        (points, size), metric = OURS[method]
        return CSVRGClassifier(
            "squared_hinge", gamma="learned" if metric == "learned" else gamma, C=penalty,
            metric=metric, max_points=points, size=size, tol=1e-2, random_state=seed,
        )  # fmt: skip
    if method.startswith(LIGHT):
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_jobs=1, verbose=-1, random_state=seed)
    if method == BOOSTING:
        return HistGradientBoostingClassifier(random_state=seed)
    if method == "SVC":
        return SVC(gamma=gamma, C=penalty)
    solver, points = EQUAL[method][:2] if method in EQUAL else ("", 400)
    machine: Any = LinearSVC(C=penalty, random_state=seed)
    if solver == "ridge":
        machine = RidgeClassifier(alpha=1 / penalty, solver="cholesky")
    elif solver == "logistic":
        machine = LogisticRegression(C=penalty, solver="newton-cholesky")
    return make_pipeline(Nystroem(gamma=gamma, n_components=points, random_state=seed), machine)


def rows_for(method: str) -> int:
    """Return how many rows a method trains on, of a set that has as many."""
    if method in OURS:
        return OURS[method][0][1]
    return EQUAL[method][2] if method in EQUAL else PEERS[method]


def shared(method: str) -> str:
    """Return the method whose gamma and C this one takes: of one kind, that of 400 points."""
    if method in EQUAL:
        return next(one for one in EQUAL if EQUAL[one][0] == EQUAL[method][0])
    if "learned" in method:
        return "ours, 400 points, learned metric"
    return LIGHT if method.startswith(LIGHT) else method


def tuned(method: str, X: np.ndarray, y: np.ndarray, variance: float) -> tuple[float, float]:
    """Choose gamma and C on rows of the training set."""
    penalties = MORE_PENALTIES if method in EQUAL else PENALTIES
    choices = [(width / variance, C) for width, C in itertools.product(WIDTHS, penalties)]
    if method in {LIGHT, BOOSTING}:
        return choices[0]
    if method in OURS and OURS[method][1] == "learned":
        choices = choices[: len(PENALTIES)]  # gamma is learned
    scores = []
    for gamma, penalty in choices:
        model = make(method, gamma, penalty, 0)
        rows, judges = min(rows_for(method), TUNING_ROWS), slice(TUNING_ROWS, TUNING_ROWS + 5_000)
        scores.append(model.fit(X[:rows], y[:rows]).score(X[judges], y[judges]))
    return choices[int(np.argmax(scores))]


def ceilings(name: str, seeds: int, limit: float) -> dict[str, Any]:
    """Medians of accuracy, seconds to train and to predict 10,000 rows, of every method.

    And the rows that it trained on, which are those of the set where these are fewer.
    """
    X, y = rows_of(name)
    found: dict[str, Any] = {}
    runs: dict[str, list[list[float]]] = {method: [] for method in (*PEERS, *EQUAL, *OURS)}
    choice: dict[str, tuple[float, float]] = {}
    for seed in range(seeds):
        train, labels, test, truth = split(X, y, seed)
        variance = float(train[:10_000].var(axis=0).sum())
        for method, done in runs.items():
            key = shared(method)
            if key not in choice:
                choice[key] = tuned(key, train, labels, variance)
                print(name, key, "gamma by the variance, C:", choice[key][0] * variance,
                      choice[key][1], flush=True)  # fmt: skip
            if sum(run[1] for run in done) > limit:
                continue
            rows = len(train) if method in OURS else min(rows_for(method), len(train))
            fits, predictions = [], []
            while len(fits) < 3 and sum(fits) < 1.0:  # the quick ones are timed several times
                start = time.process_time()
                model = make(method, *choice[key], seed).fit(train[:rows], labels[:rows])
                middle = time.process_time()
                accuracy = float(np.mean(model.predict(test[:10_000]) == truth[:10_000]))
                fits.append(middle - start)
                predictions.append(time.process_time() - middle)
            done.append([
                accuracy, float(np.median(fits)), float(np.median(predictions)),
                min(rows_for(method), len(train)),
            ])  # fmt: skip
    for method, several in runs.items():
        found[method] = {"median": np.median(several, axis=0).tolist(), "runs": len(several)}
        found[method]["all"] = several
        print(name, method, found[method], flush=True)
    return found


def covers(name: str, seeds: int) -> dict[str, Any]:
    """Medians over splits, of accuracy, seconds, core points and diameter.

    As many core points that are drawn from the classes are a cover too, of a larger diameter.
    """
    X, y = rows_of(name)
    found: dict[str, Any] = {"paper": PAPER[name][3], "core points": PAPER[name][4]}
    runs = [covered(X, y, PAPER[name][4], seed) for seed in range(seeds)]
    for column in COLUMNS:
        found[column] = np.median([run[column] for run in runs], axis=0).tolist()
    found["larger class"] = float(np.median([run["larger class"] for run in runs]))
    found["runs"] = [{column: run[column][0] for column in COLUMNS} for run in runs]
    found["seconds"] = {column: [run[column][1] for run in runs] for column in COLUMNS}
    print(name, found, flush=True)
    return found


def covered(X: np.ndarray, y: np.ndarray, max_points: int, seed: int) -> dict[str, Any]:
    """Accuracy of the variance-reduced gradient on covers of one split, by both stand-ins."""
    train, labels, test, truth = split(X, y, seed)
    found: dict[str, Any] = {}
    found["larger class"] = float(max(np.mean(truth == label) for label in np.unique(truth)))
    for strategy, kinds in COVERS.values():
        options: dict[str, Any] = {
            "theta": 0.6, "mu": 0.2, "max_points": max_points, **strategy,
            "max_iter": 20, "random_state": seed,
        }  # fmt: skip
        grid = [{"gamma": gamma, "lam": lam} for gamma in GAMMAS for lam in (512.0, 2048.0)]
        scores = [
            CSVRGClassifier(**options, **one, solver="exact", tol=1e-2)
            .fit(train[:3000], labels[:3000])
            .score(train[3000:7000], labels[3000:7000])
            for one in grid
        ]
        options |= grid[int(np.argmax(scores))]
        for column, kind in kinds.items():
            model = CSVRGClassifier(**options, solver="csvrg", stand_ins=kind, tol=1e-3)
            with common.timed() as clock:
                model.fit(train, labels)
            accuracy = model.score(test, truth)
            found[column] = [accuracy, clock.cpu, model.n_core_points_, model.diameter_]
    return found


def _ranges(several: list[list[float]]) -> list[str]:
    """Return the least and the most of the seeds, of accuracies in % and of seconds to fit."""
    accuracies, fits = np.array(several).T[:2]
    return [
        f"{100 * accuracies.min():.2f} to {100 * accuracies.max():.2f}",
        f"{fits.min():.2f} to {fits.max():.2f}",
    ]


def report(data: dict[str, Any]) -> str:
    """Return the Markdown text."""
    lines = [
        "Medians of seeds, and of up to three fits of quick ones; seconds of the processor, one",
        "thread; prediction of 10,000 rows. Ours read all training rows twice and train on those",
        "that they draw, the peers take random rows that are in memory. Nystroem has as many rows",
        "and points as ours with the solvers that are quick for so many: ridge regression of the",
        f"labels, and logistic regression. {common.stamped(data)}",
        "",
    ]
    rows = []
    for name, methods in data["results"]["ceilings"].items():
        light = methods[LIGHT]["median"][1]
        for method, one in methods.items():
            accuracy, fit, predict, n_rows = one["median"]
            rows.append([
                name, method, f"{n_rows:,.0f}", f"{100 * accuracy:.2f}", f"{fit:.2f}",
                f"{fit / light:.1f}", f"{predict:.3f}", one["runs"],
                *(_ranges(one["all"]) if "all" in one else ()),
            ])  # fmt: skip
    heads = ["set", "method", "rows", "accuracy %", "fit s", "over LightGBM", "predict s", "seeds"]
    heads += ["accuracies", "seconds to fit"] if len(rows[0]) > len(heads) else []
    lines += [*common.table(heads, rows), ""]
    lines += [
        '`solver="csvrg"`, accuracy in %, medians of splits: on online covers, with the gradients',
        "of rows in the span of the core points or at the nearest one, on covers alone",
        "(`drawn_share=0`), and on drawn core points; and the diameters of the cells. With the",
        "accuracies on the span of all splits, from the least to the most, and median seconds of",
        "the processor of a fit, whose rows are held in memory.",
        common.stamped({"stamp": data["stamp of covers"]}),
        "",
    ]
    rows = [
        [
            name, one["core points"], f"{one['span'][2]:.0f}", f"{one['paper']:.2f}",
            *(f"{100 * one[column][0]:.2f}" for column in COLUMNS),
            f"{100 * one['larger class']:.2f}",
            *(f"{one[column][3]:.2f}" for column in DIAMETERS), len(one["runs"]),
            " to ".join(f"{100 * pick(run['span'] for run in one['runs']):.2f}"
                        for pick in (min, max)),
            *(f"{one[column][1]:.2f}" for column in COLUMNS),
        ]
        for name, one in data["results"]["covers"].items()
    ]  # fmt: skip
    heads = ["set", "the paper's core points", "ours", "the paper", *COLUMNS, "the larger class"]
    heads += [*(f"diameter, {column}" for column in DIAMETERS), "splits", "spans"]
    heads += [f"seconds, {column}" for column in COLUMNS]
    return "\n".join([*lines, *common.table(heads, rows)]) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = common.arguments(__doc__, SETS)
    parser.add_argument("--covers", nargs="*", default=list(PAPER), help="sets of the second table")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=15.0, help="seconds of one method, about")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # peers that stop early say so
    results: dict[str, Any] = {"ceilings": {}, "covers": {}}
    stamp = common.stamp(seeds=args.seeds, limit=args.limit)
    data = {"stamp": stamp, "stamp of covers": stamp, "results": results}
    earlier = args.out / f"{NAME}.json"
    asked = {"ceilings": args.sets, "covers": args.covers}
    for part, key in (("ceilings", "stamp"), ("covers", "stamp of covers")):
        if not asked[part] and earlier.exists():  # which takes long, and is kept
            kept = json.loads(earlier.read_text())
            results[part], data[key] = kept["results"][part], kept[key]
    for name in common.loadable(args.sets):
        results["ceilings"][name] = ceilings(name, args.seeds, args.limit)
        common.write(NAME, data, args.out, report)
    for name in common.loadable(args.covers):
        results["covers"][name] = covers(name, args.seeds)
        common.write(NAME, data, args.out, report)
    print(report(data))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
