"""Seconds to an accuracy, for kernel machines of growing size on more than 100,000 rows.

Every method grows in the way that it has: core points for `CoresetKernelClassifier`, by default and
by the paper's own algorithm (a cover, and its variance-reduced gradient); landmarks for Nystroem +
LinearSVC and random features for RBFSampler + SGDClassifier, each trained on all rows and on as
many as the default draws for that size, and on as many also for Nystroem with ridge regression of
the labels (one Cholesky factor) and with logistic regression ("newton-cholesky"), which are quicker
than LinearSVC for so many rows; rows for `sklearn.svm.SVC`, whose subsample ends with all of them.
LightGBM and HistGradientBoostingClassifier, which are no kernel machines, show what can be had at
all. Width and penalty are the best of nine on 5,000 rows, of twelve for ridge and logistic
regression, which want a larger C, and so is the loss of ours, that of the optimal margin
distribution machine or the squared hinge. A method stops growing when a fit takes longer than the
limit, and a fit that takes twice as long is ended. Seconds are those of the processor, with one
thread.

    DASKCORESET_DATA=... OMP_NUM_THREADS=1 python benchmarks/time_to_accuracy.py

LightGBM is left out with a remark if it is not installed: ``pip install ".[bench]"`` brings it.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import resource
import time
import warnings
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import common
import numpy as np
from sets import load
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC
from table2 import split

from daskcoreset.estimators import CoresetKernelClassifier

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "time_to_accuracy"
SETS = ("ijcnn1", "covtype", "cod_rna", "skin")
GAMMAS = (0.5, 2.0, 8.0)
PENALTIES = (0.1, 1.0, 10.0)
LARGER = (1.0, 10.0, 100.0, 1000.0)
LOSSES = ("odm", "squared_hinge")
POINTS = (25, 50, 100, 200, 400, 800, 1600)
ROWS = (1000, 3000, 10_000, 30_000, 100_000, 10**9)
TREES = (25, 50, 100, 200, 400, 800)
OURS, PAPER = "CoresetKernelClassifier", "the paper's algorithm"
SVM, LIGHT, BOOSTING = "SVC on a subsample", "LightGBM", "HistGradientBoosting"
NYSTROEM, FOURIER = "Nystroem + LinearSVC", "RBFSampler + SGD"
RIDGE, LOGISTIC = "Nystroem + ridge", "Nystroem + logistic"
SAME = ", same rows"
LOOKS = common.looks_of(
    {
        OURS: "csvrg",
        PAPER: "csvrg, paper",
        SVM: "svc",
        NYSTROEM + SAME: "nystroem, same rows",
        RIDGE + SAME: "nystroem, ridge",
        LOGISTIC + SAME: "nystroem, logistic",
        FOURIER + SAME: "fourier, same rows",
        NYSTROEM: "nystroem",
        FOURIER: "fourier",
        LIGHT: "lightgbm",
        BOOSTING: "boosting",
    }
)
BEST = "Nystroem, same rows"
TOGETHER = (NYSTROEM + SAME, RIDGE + SAME, LOGISTIC + SAME)
"""Methods of one column of the README: at each place the best of them."""
IN_README = (OURS, PAPER, SVM, NYSTROEM + SAME, FOURIER + SAME, LIGHT, BOOSTING)
PREDICTED = 10_000
"""Rows whose classes are predicted; SVC takes minutes for all."""


Choice = tuple[float, float, str]
"""Gamma, the penalty, and of ours the loss."""


def make(method: str, size: int, choice: Choice, n_rows: int, seed: int = 0) -> Any:
    """Return a model of a size for so many rows; of SVC, the machine alone."""
    gamma, penalty, loss = choice
    if method in {OURS, PAPER}:
        how: dict[str, Any] = {}
        if method == PAPER:
            how = {"core_points": "cover", "solver": "csvrg"}
        return CoresetKernelClassifier(
            loss=loss, gamma=gamma, lam=penalty * n_rows, max_points=size, theta=0.4, mu=0.2,
            random_state=seed, **how,
        )  # fmt: skip
    if method.startswith((NYSTROEM, RIDGE, LOGISTIC)):
        features: Any = Nystroem(gamma=gamma, n_components=size, random_state=seed)
        machine: Any = LinearSVC(C=penalty, random_state=seed)
        if method.startswith(RIDGE):
            machine = RidgeClassifier(alpha=1 / penalty, solver="cholesky")
        elif method.startswith(LOGISTIC):
            machine = LogisticRegression(C=penalty, solver="newton-cholesky")
        return make_pipeline(features, machine)
    if method.startswith(FOURIER):
        features = RBFSampler(gamma=gamma, n_components=size, random_state=seed)
        return make_pipeline(features, SGDClassifier(alpha=1e-5 / penalty, random_state=seed))
    if method == BOOSTING:
        return HistGradientBoostingClassifier(
            max_iter=size, learning_rate=0.3 * penalty**0.5, random_state=seed
        )
    if method == LIGHT:
        from lightgbm import LGBMClassifier

        return LGBMClassifier(
            n_estimators=size, learning_rate=0.3 * penalty**0.5, n_jobs=1, verbose=-1,
            random_state=seed,
        )  # fmt: skip
    return SVC(C=penalty, gamma=gamma, cache_size=1000)


def rows_for(method: str, step: int, n: int) -> int:
    """Return how many rows a method trains on."""
    if method == SVM:
        return min(step, n)
    return min(n, max(10_000, 100 * step)) if method.endswith(SAME) else n


def steps_of(method: str) -> tuple[int, ...]:
    """Return how a method grows."""
    return ROWS if method == SVM else TREES if method in {LIGHT, BOOSTING} else POINTS


def data_of(name: str, seed: int) -> tuple[np.ndarray, ...]:
    """Split and scale a set, with all of its rows."""
    found = load(name)
    return split(np.asarray(found.X, dtype=np.float32), np.asarray(found.y), seed)


@cache
def tuned(method: str, name: str) -> Choice:
    """Choose gamma, the penalty and the loss on few rows; of trees, the length of the steps."""
    train, labels, test, truth = (part[:5000] for part in data_of(name, 0))
    losses = LOSSES if method == OURS else ("",)
    gammas = GAMMAS[:1] if method in {LIGHT, BOOSTING} else GAMMAS
    penalties = LARGER if method in {RIDGE, LOGISTIC} else PENALTIES
    choices = list(itertools.product(gammas, penalties if len(gammas) > 1 else (0.1, 1.0), losses))
    scores = [
        make(method, 200, one, len(train)).fit(train, labels).score(test, truth) for one in choices
    ]
    return choices[int(np.argmax(scores))]


def fitted(model: Any, data: tuple[np.ndarray, ...], stop: int) -> list[float]:
    """Seconds to train and to predict, accuracy, and the size of the model."""
    train, labels, test, truth = data
    start = time.process_time()
    model.fit(train[:stop], labels[:stop])
    middle = time.process_time()
    found = model.predict(test[:PREDICTED])
    end = time.process_time()
    size = len(model.support_) if isinstance(model, SVC) else 0
    return [middle - start, float(np.mean(found == truth[:PREDICTED])), end - middle, size]


def ended(seconds: float, *args: Any) -> list[float] | None:
    """Fit in a process that is ended after so many seconds of the processor."""

    def work() -> None:
        spent = int(np.ceil(time.process_time() + seconds))
        resource.setrlimit(resource.RLIMIT_CPU, (spent, spent))
        sender.send(fitted(*args))

    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=work)
    process.start()
    sender.close()
    try:
        return list(receiver.recv())
    except EOFError:
        return None
    finally:
        process.join()


def curve(method: str, name: str, limit: float, repeats: int) -> list[dict[str, float]]:
    """Seconds, accuracy and size as a method grows: means over splits, while they are short."""
    splits = [data_of(name, seed) for seed in range(repeats)]
    choice = tuned(OURS if method == PAPER else method.removesuffix(SAME), name)
    print(name, method, choice, flush=True)
    fitted(make(method, 20, choice, 2000), splits[0], 2000)  # whatever is compiled at first
    n, found = len(splits[0][0]), []
    for step in steps_of(method):
        rows = rows_for(method, step, n)
        runs: list[list[float]] = []
        while len(runs) < repeats and sum(run[0] for run in runs) <= limit / 10:
            seed = len(runs)
            one = ended(2 * limit, make(method, step, choice, rows, seed), splits[seed], rows)
            if one is None:
                print(f"{name} {method} {step}: ended after {2 * limit:.0f} s", flush=True)
                return found
            runs.append(one)
        seconds, accuracy, predicting, support = np.mean(runs, axis=0).tolist()
        found.append({
            "size": rows if method == SVM else step, "of": n, "model": support or step,
            "rows": max(10_000, 100 * step) if method == OURS else rows,
            "runs": len(runs),
            "seconds": seconds, "accuracy": accuracy, "predicting": predicting,
        })  # fmt: skip
        print(name, method, found[-1], flush=True)
        if seconds > limit or (method == SVM and rows == n):
            break
    return found


def first_time(points: list[dict[str, float]], accuracy: float) -> float:
    """Seconds of the quickest model that is accurate enough; infinite if there is none."""
    return min((p["seconds"] for p in points if p["accuracy"] >= accuracy), default=np.inf)


def shown(accuracy: float, points: list[dict[str, float]]) -> str:
    """Return the seconds to an accuracy, or what was reached at best."""
    seconds = first_time(points, accuracy)
    if np.isfinite(seconds):
        return f"{seconds:.2f}"
    best = max(points, key=lambda point: point["accuracy"], default=None)
    return "-" if best is None else f"no: {100 * best['accuracy']:.1f} % in {best['seconds']:.1f}"


def report(data: dict[str, Any]) -> str:
    """Return the Markdown text."""
    made, results = data["stamp"], data["results"]
    lines = [
        "# Seconds to an accuracy",
        "",
        "Seconds of the quickest model that reaches it on rows that were held out; where none",
        "does, the best that was tried and its seconds. The accuracies are those of the models of",
        "every method, so that each is looked at where it is best. Seconds of the processor on one",
        f"thread; a method grew until a fit took more than {made['limit']:g} s. Means of",
        f"{common.counted([made['repeats']], 'random split')} at most. {common.stamped(data)}",
        "",
    ]
    rows = []
    for name, curves in results.items():
        for peer, points in curves.items():
            if not points:
                continue
            best = max(points, key=lambda point: point["accuracy"])
            accuracy = best["accuracy"]
            cells = [shown(accuracy, curves[method]) for method in curves]
            rows.append([name, f"{100 * accuracy:.2f} %", f"{peer}, {best['size']:,.0f}", *cells])
    methods = list(next(iter(results.values())))
    lines += common.table(["set", "accuracy", "the best of", *methods], rows)
    rows = [
        [
            name, method, f"{p['size']:,.0f}", f"{p['rows']:,.0f}", f"{p['seconds']:.2f}",
            f"{100 * p['accuracy']:.2f} %", f"{p['predicting']:.2f}", f"{p['model']:,.0f}",
        ]
        for name, curves in results.items() for method, points in curves.items() for p in points
    ]  # fmt: skip
    heads = ["set", "method", "size", "rows", "train s", "accuracy", "predict s", "numbers kept"]
    return "\n".join([*lines, "", *common.table(heads, rows)]) + "\n"


def readme(data: dict[str, Any]) -> str:
    """Return the table of the README."""
    made, rows = data["stamp"], []
    solvers = "Nystroem does so with LinearSVC alone."
    for name, measured in data["results"].items():
        curves = dict(measured)
        methods = [method for method in IN_README if method in curves]
        if all(method in curves for method in TOGETHER):
            methods[methods.index(TOGETHER[0])] = BEST
            curves[BEST] = [point for method in TOGETHER for point in curves[method]]
            solvers = (
                "Nystroem does so with LinearSVC, ridge\nand logistic regression, and stands with "
                "the best of them each time."
            )
        n = f"{curves[OURS][0]['of']:,.0f}"
        for size in (100, 400):
            aims = [point["accuracy"] for point in curves[OURS] if point["size"] == size]
            for accuracy in aims:
                times = [first_time(curves[method], accuracy) for method in methods]
                cells = [f"{t:.2f}" if np.isfinite(t) else "-" for t in times]
                rows.append([name, n, f"{100 * accuracy:.1f} %", *cells])
        bests = [max(curves[m], key=lambda p: p["accuracy"], default=None) for m in methods]
        cells = [
            "-" if best is None else f"{100 * best['accuracy']:.1f} % in {best['seconds']:.1f}"
            for best in bests
        ]
        rows.append([name, n, "best tried", *cells])
    return "\n".join(
        [
            "Seconds to train (of the processor, one thread) until an accuracy is reached on rows",
            "that were held out: those of the first method with 100 and with 400 core points,",
            "and the best of each method among the sizes whose fit took no more than about",
            f'{made["limit"]:g} s. "Same rows" trains on as many rows as the first method draws.',
            solvers,
            "LightGBM and HistGradientBoosting are no kernel machines; they show what the data",
            f"allow. Means of {common.counted([made['repeats']], 'random split')} at most",
            "(`benchmarks/time_to_accuracy.py`; all methods and sizes in",
            f"`benchmarks/results/time_to_accuracy.md`). {common.stamped(data)}",
            "",
            *common.table(["set", "rows", "accuracy", *methods], rows),
        ]
    )


def figure(data: dict[str, Any]) -> Figure:
    """Draw the error, 100 % less the accuracy, against seconds."""
    results = data["results"]
    drawing, axes = common.panels(len(results), columns=2, height=3.6)
    for ax, (name, curves) in zip(axes, results.items(), strict=True):
        for method, points in curves.items():
            seconds, accuracy = [p["seconds"] for p in points], [p["accuracy"] for p in points]
            errors = 100 * (1 - np.array(accuracy))
            ax.plot(seconds, errors, label=method, ms=5, **LOOKS[method].line)
        # A logarithm, or one method far off would press all others into a line.
        ax.set(xscale="log", yscale="log", xlabel="seconds to train", title=name)
        ax.set_ylabel("test error, %")
        common.plain_ticks(ax.xaxis)
        common.plain_ticks(ax.yaxis)
    common.legend(drawing, 3, "lower")
    return drawing


def figures(data: dict[str, Any]) -> dict[str, Figure]:
    """Return the figure."""
    return {NAME: figure(data)}


def main() -> None:
    """Run the benchmark."""
    parser = common.arguments(__doc__, SETS)
    parser.add_argument("--limit", type=float, default=100.0, help="seconds of one fit")
    parser.add_argument("--repeats", type=int, default=5, help="random splits at most")
    args = parser.parse_args()
    names = common.loadable(args.sets)
    if not names:
        return
    methods = list(LOOKS)
    if find_spec("lightgbm") is None:
        print('without LightGBM, which is not installed; pip install ".[bench]" brings it')
        methods.remove(LIGHT)
    warnings.simplefilter("ignore")  # peers that stop early say so
    made = common.stamp(limit=args.limit, repeats=args.repeats)
    data: dict[str, Any] = {"stamp": made, "results": {}}
    for name in names:
        data["results"][name] = {m: curve(m, name, args.limit, args.repeats) for m in methods}
        common.write(NAME, data, args.out, report, figures)
    print(report(data))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
