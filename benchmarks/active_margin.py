"""Labels asked against accuracy: active maximum margin, random rows, plain uncertainty sampling.

Every method starts from the same random rows, labelled until both classes are there, and is
evaluated on the whole pool after so many labels. Plain uncertainty sampling fits a linear SVM
on all its labels and asks for the row closest to its boundary; random rows are fitted by the
solver of the active learner. Sets are made separable by leaving out rows that a linear SVM on
everything has near or beyond its boundary, and taken as they are (of the digits two per cent of
the labels are flipped, for they are separable). Writes the raw numbers into the folder given.

    DASKCORESET_DATA=... python benchmarks/active_margin.py --seeds 20 --out benchmarks/results

Har-Peled, Roth and Zimak (2007), Fig. 2.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

import common
import numpy as np
from sets import load
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from daskcoreset.estimators import ActiveMaxMarginClassifier

NAME = "active_margin"
METHODS = ("active max margin", "uncertainty", "random")
MOST_ROWS = 4000


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Return threes and eights."""
    X, y = load_digits(return_X_y=True)
    keep = (y == 3) | (y == 8)
    return X[keep] / 16.0, np.where(y[keep] == 8, 1, -1)


def stored(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return some rows of a stored set, drawn once."""
    data = load(name)
    rows = np.sort(np.random.default_rng(0).permutation(data.X.shape[0])[:MOST_ROWS])
    X, y = common.dense(data.X[rows], np.float64), np.where(data.y[rows] == data.y.max(), 1, -1)
    return (X if hasattr(data.X, "toarray") else StandardScaler().fit_transform(X)), y


def cases() -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray, float]]:
    """Yield name, rows, labels as given, true labels, and C."""
    for name, (X, y) in {
        "digits 3/8": digits(),
        "htru2": stored("htru2"),
        "w8a": stored("w8a"),
    }.items():
        svc = LinearSVC(C=10.0, max_iter=20_000).fit(X, y)
        clean = y * svc.decision_function(X) > 0.2
        yield f"{name}, made separable", X[clean], y[clean], y[clean], math.inf
        labels = y.copy()
        if name.startswith("digits"):
            flip = np.random.default_rng(1).permutation(len(y))[: len(y) // 50]
            labels[flip] *= -1
            yield f"{name}, 2 % flipped", X, labels, y, 1.0
        else:
            yield f"{name}, as it is", X, labels, y, 1.0


def quality(scores: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return accuracy and balanced accuracy."""
    right = np.where(scores > 0, 1, -1) == y
    return float(right.mean()), float((right[y > 0].mean() + right[y < 0].mean()) / 2)


def start_of(y: np.ndarray, seed: int) -> np.ndarray:
    """Return random rows, up to the first of the second class."""
    order = np.random.default_rng([seed, 7]).permutation(len(y))
    return order[: int((y[order] != y[order[0]]).argmax()) + 1]


def started(X: np.ndarray, labels: np.ndarray, rows: Any, C: float, **options: Any) -> Any:
    """Start from rows whose labels are known; with a finite C errors are allowed."""
    soft = math.isfinite(C)
    options = {"C": C if soft else 1.0, "on_inseparable": "raise", **options}
    model = ActiveMaxMarginClassifier(**options)
    return model.start(X, known=(rows, labels[rows]), soft=soft)


def by_active(
    X: np.ndarray, labels: np.ndarray, C: float, seed: int, most: int
) -> tuple[dict[int, np.ndarray], dict[str, Any]]:
    """Return scores of all rows by number of labels, and what the run says of itself."""
    first = start_of(labels, seed)
    asking = started(X, labels, first, C, error=0.01, random_state=seed)
    scores, settled = {}, None
    while len(first) + asking.n_labels < most and (query := asking.ask()) is not None:
        if settled is None and query.phase.name == "VERIFYING":
            settled = len(first) + asking.n_labels
        asking.tell(labels[query.indices])
        result = asking.result()
        scores[len(first) + asking.n_labels] = result.decision_function(X)
    return scores, {"settled": settled, "stopped": asking.state.stopped}


def by_uncertainty(
    X: np.ndarray, labels: np.ndarray, C: float, seed: int, most: int
) -> dict[int, np.ndarray]:
    """Do the same, asking for the row closest to a linear SVM of all labels."""
    rows = start_of(labels, seed).tolist()
    svc, scores = LinearSVC(C=1.0 if math.isfinite(C) else 100.0, random_state=0), {}
    while True:
        values = svc.fit(X[rows], labels[rows]).decision_function(X)
        scores[len(rows)] = values
        if len(rows) >= most:
            return scores
        gaps = np.abs(values)
        gaps[rows] = np.inf
        rows.append(int(gaps.argmin()))


def by_random(
    X: np.ndarray, labels: np.ndarray, C: float, seed: int, counts: list[int]
) -> dict[int, np.ndarray]:
    """Do the same with random rows."""
    first = start_of(labels, seed)
    rest = np.setdiff1d(np.random.default_rng([seed, 8]).permutation(len(X)), first)
    rest = np.random.default_rng([seed, 9]).permutation(rest)
    scores = {}
    for count in counts:
        rows = np.concatenate([first, rest])[: max(count, len(first))]
        asking = started(X, labels, rows, C, random_state=seed)
        scores[len(rows)] = asking.result().decision_function(X)
    return scores


def at(scores: dict[int, np.ndarray], count: int, constant: np.ndarray) -> np.ndarray:
    """Return what was known after so many labels: one class alone before there are two."""
    known = [n for n in scores if n <= count]
    return scores[max(known)] if known else constant


def run(
    case: tuple[str, np.ndarray, np.ndarray, np.ndarray, float], seeds: int, counts: list[int]
) -> dict[str, Any]:
    """Measure one set."""
    name, X, labels, y, C = case
    curves: dict[str, list[list[list[float]]]] = {method: [] for method in METHODS}
    settled = []
    for seed in range(seeds):
        active, facts = by_active(X, labels, C, seed, counts[-1])
        settled.append(facts["settled"])
        constant = np.full(len(y), float(labels[start_of(labels, seed)[0]]))
        for method, scores in zip(
            METHODS,
            (
                active,
                by_uncertainty(X, labels, C, seed, counts[-1]),
                by_random(X, labels, C, seed, counts),
            ),
            strict=True,
        ):
            values = [at(scores, count, constant) for count in counts]
            curves[method].append([list(quality(v, y)) for v in values])
    print(f"{name}: {X.shape}, {seeds} seeds", flush=True)
    share = float((y > 0).mean())
    return {"set": name, "shape": X.shape, "share": share, "settled": settled, "curves": curves}


def main() -> None:
    """Run the command line."""
    parser = common.arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument(
        "--labels", type=int, nargs="+", default=[10, 20, 30, 40, 60, 100, 150, 200]
    )
    parser.add_argument("--only", default="", help="part of the name of a set")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # of LinearSVC on a handful of rows
    counts = sorted(args.labels)
    stamp = common.stamp(seeds=args.seeds)
    results = [run(case, args.seeds, counts) for case in cases() if args.only in case[0]]
    data = {"stamp": stamp, "labels": counts, "results": results}
    common.write(NAME, data, args.out)


if __name__ == "__main__":
    main()
