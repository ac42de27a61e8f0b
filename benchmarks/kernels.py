"""Kernel machines beside honest ceilings.

Ours train on rows that they draw from all rows, LightGBM and HistGradientBoosting on 10,000 random
rows with their defaults, LightGBM on 40,000 too, SVC on 3,000, and Nystroem + LinearSVC on 10,000
with 400 landmarks. At as many rows and landmarks as ours LinearSVC takes far longer than anything
else here, so Nystroem stands there with the two solvers that take less for tens of thousands of
rows of some hundred features: ridge regression of the labels by one Cholesky factor, and logistic
regression by Newton steps ("newton-cholesky"). Gamma and C are the best of nine, trained on as many
rows, 10,000 at most, and judged on 5,000 further ones (gamma over one by the sum of the variances
of the columns, so that it means the same on every set). Ridge and logistic regression want a larger
C, and have the best of fifteen, with 400 landmarks as ours. What the choice takes is not counted,
for none.

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
from table2 import rows_of, split

from daskcoreset.estimators import CoresetKernelClassifier

NAME = "kernels"
SETS = ("covtype", "ijcnn1", "cod_rna", "magic04")
WIDTHS, PENALTIES = (0.5, 2.0, 8.0), (1.0, 10.0, 100.0)
MORE_PENALTIES = (*PENALTIES, 1000.0, 10_000.0)
FEW, MANY, MORE, HUGE = (400, 20_000), (800, 20_000), (800, 40_000), (1200, 40_000)
TUNING_ROWS = 10_000
AS_OURS = {"400 points": FEW, "800 points": MANY, "800 points, more rows": MORE}
AS_OURS |= {"1,200 points": HUGE}
OURS = {f"ours, {name}": both for name, both in AS_OURS.items()}
LIGHT, BOOSTING, NYSTROEM = "LightGBM", "HistGradientBoosting", "Nystroem + LinearSVC"
PEERS = {LIGHT: 10_000, "LightGBM, more rows": 40_000, BOOSTING: 10_000, "SVC": 3_000}
PEERS |= {NYSTROEM: 10_000}
SOLVERS = ("ridge", "logistic")
EQUAL = {
    f"Nystroem + {solver}, {name}": (solver, *both)
    for name, both in AS_OURS.items()
    for solver in SOLVERS
}
"""Peers with as many landmarks, and as many rows, as machines of ours."""


def make(method: str, gamma: float, penalty: float, seed: int, n_rows: int) -> Any:
    """Return a model for so many rows."""
    if method in OURS:
        points, size = OURS[method]
        return CoresetKernelClassifier(
            loss="squared_hinge", gamma=gamma, lam=penalty * n_rows, max_points=points, size=size,
            random_state=seed,
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
        return OURS[method][1]
    return EQUAL[method][2] if method in EQUAL else PEERS[method]


def shared(method: str) -> str:
    """Return the method whose gamma and C this one takes: of one kind, that of 400 points."""
    if method in EQUAL:
        return next(one for one in EQUAL if EQUAL[one][0] == EQUAL[method][0])
    if method in OURS:
        return "ours, 400 points"
    return LIGHT if method.startswith(LIGHT) else method


def tuned(method: str, X: np.ndarray, y: np.ndarray, variance: float) -> tuple[float, float]:
    """Choose gamma and C on rows of the training set."""
    penalties = MORE_PENALTIES if method in EQUAL else PENALTIES
    choices = [(width / variance, C) for width, C in itertools.product(WIDTHS, penalties)]
    if method in {LIGHT, BOOSTING}:
        return choices[0]
    scores = []
    for gamma, penalty in choices:
        rows, judges = min(rows_for(method), TUNING_ROWS), slice(TUNING_ROWS, TUNING_ROWS + 5_000)
        model = make(method, gamma, penalty, 0, rows).fit(X[:rows], y[:rows])
        scores.append(model.score(X[judges], y[judges]))
    return choices[int(np.argmax(scores))]


def ceilings(name: str, seeds: int, limit: float, methods: list[str]) -> dict[str, Any]:
    """Medians of accuracy, seconds to train and to predict 10,000 rows, of every method.

    And the rows that it trained on, which are those of the set where these are fewer.
    """
    X, y = rows_of(name)
    found: dict[str, Any] = {}
    runs: dict[str, list[list[float]]] = {method: [] for method in methods}
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
                model = make(method, *choice[key], seed, rows)
                model.fit(train[:rows], labels[:rows])
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


def main() -> None:
    """Run the benchmark."""
    parser = common.arguments(__doc__, SETS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=15.0, help="seconds of one method, about")
    parser.add_argument("--ours", action="store_true", help="measure ours, and keep the peers")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # peers that stop early say so
    results: dict[str, Any] = {"ceilings": {}}
    stamp = common.stamp(seeds=args.seeds, limit=args.limit)
    data = {"stamp": stamp, "results": results}
    methods = [*PEERS, *EQUAL, *OURS]
    if args.ours:
        earlier = json.loads((args.out / f"{NAME}.json").read_text())
        data["stamp of peers"] = earlier.get("stamp of peers", earlier["stamp"])
        results["ceilings"], methods = earlier["results"]["ceilings"], list(OURS)
    for name in common.loadable(args.sets):
        found = ceilings(name, args.seeds, args.limit, methods)
        results["ceilings"].setdefault(name, {}).update(found)
        common.write(NAME, data, args.out)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
