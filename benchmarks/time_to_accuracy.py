"""Seconds to an accuracy, for kernel machines of growing size on more than 100,000 rows.

Every method grows in the way that it has: core points for `CSVRGClassifier`, trained on all rows
and on as many as ``size="auto"`` draws, landmarks for Nystroem + LinearSVC, random features for
RBFSampler + SGDClassifier, and rows for `sklearn.svm.SVC`, whose subsample ends with all of them.
Width and penalty are the best of nine on 5,000 rows, and so is the loss of ours, that of the
optimal margin distribution machine or the squared hinge. A method stops growing when a fit takes
longer than the limit, and a fit that takes three times as long is ended.

    DASKCORESET_DATA=... OMP_NUM_THREADS=1 python benchmarks/time_to_accuracy.py
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC
from table2 import split

from daskcoreset.datasets import available, load
from daskcoreset.estimators import CSVRGClassifier

SETS = ("ijcnn1", "covtype", "cod_rna", "skin")
GAMMAS = (0.5, 2.0, 8.0)
PENALTIES = (0.1, 1.0, 10.0)
LOSSES = ("odm", "squared_hinge")
POINTS = (25, 50, 100, 200, 400, 800, 1600)
ROWS = (1000, 3000, 10_000, 30_000, 100_000, 10**9)
OURS, SVM = 'CSVRG, size="auto"', "SVC on a subsample"
LOOKS = {
    OURS: "C0o-",
    "CSVRG": "C4v-",
    "Nystroem + LinearSVC": "C1s--",
    "RBFSampler + SGD": "C2^-.",
    SVM: "C3s:",
}
PREDICTED = 20_000
"""Rows whose classes are predicted; SVC takes minutes for all."""


Choice = tuple[float, float, str]
"""Gamma, the penalty, and of ours the loss."""


def make(method: str, size: int, choice: Choice, seed: int = 0) -> Any:
    """Return a model of a size; of SVC, the machine alone."""
    gamma, penalty, loss = choice
    if method in {OURS, "CSVRG"}:
        return CSVRGClassifier(
            loss, gamma=gamma, C=penalty, max_points=size, theta=0.4, mu=0.2, tol=1e-3,
            size="auto" if method == OURS else None, random_state=seed,
        )  # fmt: skip
    if method == "Nystroem + LinearSVC":
        features: Any = Nystroem(gamma=gamma, n_components=size, random_state=seed)
        return make_pipeline(features, LinearSVC(C=penalty, random_state=seed))
    if method == "RBFSampler + SGD":
        features = RBFSampler(gamma=gamma, n_components=size, random_state=seed)
        return make_pipeline(features, SGDClassifier(alpha=1e-5 / penalty, random_state=seed))
    return SVC(C=penalty, gamma=gamma, cache_size=1000)


def data_of(name: str, seed: int) -> tuple[np.ndarray, ...]:
    """Split and scale a set, with all of its rows."""
    found = load(name)
    return split(np.asarray(found.X, dtype=np.float32), np.asarray(found.y), seed)


def tuned(method: str, data: tuple[np.ndarray, ...]) -> Choice:
    """Choose gamma, the penalty and the loss on few rows."""
    train, labels, test, truth = (part[:5000] for part in data)
    losses = LOSSES if method in {OURS, "CSVRG"} else ("",)
    choices = list(itertools.product(GAMMAS, PENALTIES, losses))
    scores = [make(method, 200, one).fit(train, labels).score(test, truth) for one in choices]
    return choices[int(np.argmax(scores))]


def fitted(model: Any, data: tuple[np.ndarray, ...], stop: int) -> list[float]:
    """Seconds to train and to predict, accuracy, and the size of the model."""
    train, labels, test, truth = data
    start = time.perf_counter()
    model.fit(train[:stop], labels[:stop])
    middle = time.perf_counter()
    found = model.predict(test[:PREDICTED])
    end = time.perf_counter()
    size = len(model.support_) if isinstance(model, SVC) else 0
    return [middle - start, float(np.mean(found == truth[:PREDICTED])), end - middle, size]


def ended(seconds: float, *args: Any) -> list[float] | None:
    """Fit in a process that is ended after so many seconds."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=lambda: sender.send(fitted(*args)))
    process.start()
    found = receiver.recv() if receiver.poll(seconds) else None
    process.terminate()
    process.join()
    return found


def curve(method: str, name: str, limit: float, repeats: int) -> list[dict[str, float]]:
    """Seconds, accuracy and size as a method grows: means over splits, while they are short."""
    splits = [data_of(name, seed) for seed in range(repeats)]
    choice = tuned(method, splits[0])
    print(name, method, choice, flush=True)
    fitted(make(method, 20, choice), splits[0], 2000)  # whatever is compiled at first
    n, found = len(splits[0][0]), []
    for step in ROWS if method == SVM else POINTS:
        rows = min(step, n) if method == SVM else n
        runs: list[list[float]] = []
        while len(runs) < repeats and sum(run[0] for run in runs) <= limit / 10:
            seed = len(runs)
            one = ended(3 * limit, make(method, step, choice, seed), splits[seed], rows)
            if one is None:
                print(f"{name} {method} {step}: ended after {3 * limit:.0f} s", flush=True)
                return found
            runs.append(one)
        seconds, accuracy, predicting, support = np.mean(runs, axis=0).tolist()
        found.append({
            "size": rows if method == SVM else step, "of": n, "model": support or step,
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


def told(seconds: float, points: list[dict[str, float]]) -> str:
    """Return seconds as text."""
    if np.isfinite(seconds):
        return f"{seconds:.2f}"
    return f"not in {max(p['seconds'] for p in points):.0f}"


def table(results: dict[str, dict[str, list[dict[str, float]]]]) -> str:
    """Return the Markdown text."""
    lines = [
        "# Seconds to an accuracy",
        "",
        "Seconds of the quickest model that reaches it on rows that were held out; 'not in' where",
        "the largest one that was tried does not, after so many seconds. The accuracies are those",
        "of the peers' own models, so that each is looked at where it is best.",
        "",
        "| set | accuracy | of | " + " | ".join(LOOKS) + f" | that / {OURS} |",
        "|---|---|---|" + "---|" * (len(LOOKS) + 1),
    ]
    for name, curves in results.items():
        for peer in list(LOOKS)[2:]:
            for point in curves[peer]:
                if peer == SVM and point["size"] < point["of"]:
                    continue  # a subsample
                accuracy = point["accuracy"]
                times = [first_time(curves[method], accuracy) for method in LOOKS]
                cells = [told(t, curves[m]) for t, m in zip(times, LOOKS, strict=True)]
                ratio = f"{point['seconds'] / times[0]:.1f}" if np.isfinite(times[0]) else "-"
                which = "SVC, all rows" if peer == SVM else f"{peer}, {point['size']}"
                lines.append(
                    f"| {name} | {100 * accuracy:.2f} % | {which} | "
                    + " | ".join([*cells, ratio]) + " |"
                )  # fmt: skip
    lines += ["", "| set | method | size | train s | accuracy | predict s | numbers in the model |",
              "|---|---|---|---|---|---|---|"]  # fmt: skip
    lines += [
        f"| {name} | {method} | {p['size']:,.0f} | {p['seconds']:.2f} | "
        f"{100 * p['accuracy']:.2f} % | {p['predicting']:.2f} | {p['model']:,.0f} |"
        for name, curves in results.items()
        for method, points in curves.items()
        for p in points
    ]
    return "\n".join(lines) + "\n"


def figure(results: dict[str, dict[str, list[dict[str, float]]]]) -> Figure:
    """Draw accuracy against seconds."""
    drawing = Figure(figsize=(3.6 * len(results), 3.4), layout="constrained")
    FigureCanvasAgg(drawing)
    axes = drawing.subplots(1, len(results), squeeze=False)[0]
    for ax, (name, curves) in zip(axes, results.items(), strict=True):
        for method, points in curves.items():
            seconds, accuracy = [p["seconds"] for p in points], [p["accuracy"] for p in points]
            ax.plot(seconds, 100 * np.array(accuracy), LOOKS[method], label=method, markersize=4)
        ax.set(xscale="log", xlabel="seconds to train", ylabel="accuracy, %", title=name)
        ax.grid(visible=True, alpha=0.3)
    lines, labels = axes[0].get_legend_handles_labels()
    drawing.legend(lines, labels, loc="outside lower center", ncols=len(LOOKS))
    return drawing


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--limit", type=float, default=100.0, help="seconds of one fit")
    parser.add_argument("--repeats", type=int, default=5, help="random splits at most")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    names = [name for name in args.sets if name in available()]
    if not names:
        print("skipped: DASKCORESET_DATA names no folder with these sets")
        return
    warnings.simplefilter("ignore")  # peers that stop early say so
    results: dict[str, dict[str, list[dict[str, float]]]] = {}
    args.out.mkdir(parents=True, exist_ok=True)
    for name in names:
        results[name] = {m: curve(m, name, args.limit, args.repeats) for m in LOOKS}
        (args.out / "time_to_accuracy.json").write_text(json.dumps(results))
        (args.out / "time_to_accuracy.md").write_text(table(results))
        figure(results).savefig(args.out / "time_to_accuracy.png", dpi=110)
    print(table(results))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
