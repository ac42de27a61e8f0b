"""Seconds to an accuracy, for kernel machines of growing size on more than 100,000 rows.

Every method grows in the way that it has: core points for `CSVRGClassifier`, landmarks for
Nystroem + LinearSVC, random features for RBFSampler + SGDClassifier, and rows for
`sklearn.svm.SVC`, whose subsample ends with all of them. Width and penalty are the best of nine
on 5,000 rows. A method stops growing when one fit takes longer than the limit.

    DASKCORESET_DATA=... python benchmarks/time_to_accuracy.py
"""

from __future__ import annotations

import argparse
import json
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
from table2 import rows_of, split

from daskcoreset.datasets import available
from daskcoreset.estimators import CSVRGClassifier

SETS = ("ijcnn1", "covtype")
GAMMAS = (0.5, 2.0, 8.0)
PENALTIES = (0.1, 1.0, 10.0)
POINTS = (50, 100, 200, 400, 800, 1600)
ROWS = (1000, 3000, 10_000, 30_000, 100_000, 10**9)
LOOKS = {
    "CSVRGClassifier": "C0o-",
    "Nystroem + LinearSVC": "C1s--",
    "RBFSampler + SGD": "C2^-.",
    "SVC on a subsample": "C3v:",
}


def make(method: str, size: int, gamma: float, penalty: float) -> Any:
    """Return a model of a size; of SVC, the machine alone."""
    if method == "CSVRGClassifier":
        return CSVRGClassifier(
            gamma=gamma, C=penalty, max_points=size, theta=0.4, mu=0.2, tol=1e-3, random_state=0
        )
    if method == "Nystroem + LinearSVC":
        features: Any = Nystroem(gamma=gamma, n_components=size, random_state=0)
        return make_pipeline(features, LinearSVC(C=penalty, random_state=0))
    if method == "RBFSampler + SGD":
        features = RBFSampler(gamma=gamma, n_components=size, random_state=0)
        return make_pipeline(features, SGDClassifier(alpha=1e-5 / penalty, random_state=0))
    return SVC(C=penalty, gamma=gamma, cache_size=1000)


def tuned(method: str, data: tuple[np.ndarray, ...]) -> tuple[float, float]:
    """Choose gamma and the penalty on few rows."""
    train, labels, test, truth = (part[:5000] for part in data)
    pairs = [(gamma, penalty) for gamma in GAMMAS for penalty in PENALTIES]
    scores = [make(method, 200, *pair).fit(train, labels).score(test, truth) for pair in pairs]
    return pairs[int(np.argmax(scores))]


def curve(method: str, name: str, limit: float) -> list[list[float]]:
    """Seconds, accuracy and size as a method grows."""
    data = split(*rows_of(name), 0)
    train, labels, test, truth = data
    gamma, penalty = tuned(method, data)
    found: list[list[float]] = []
    subsampled = method == "SVC on a subsample"
    for size in ROWS if subsampled else POINTS:
        stop = min(size, len(train)) if subsampled else len(train)
        start = time.perf_counter()
        model = make(method, size, gamma, penalty).fit(train[:stop], labels[:stop])
        seconds = time.perf_counter() - start
        few = slice(0, 20_000)  # SVC takes minutes for all of them
        accuracy = float(np.mean(model.predict(test[few]) == truth[few]))
        found.append([seconds, accuracy, stop if subsampled else size])
        print(f"{name} {method} {found[-1][2]:.0f}: {seconds:.2f} s, {accuracy:.4f}", flush=True)
        if seconds > limit or (stop == len(train) and subsampled):
            break
    return found


def first_time(points: list[list[float]], accuracy: float) -> str:
    """Seconds of the smallest model that is accurate enough."""
    there = [seconds for seconds, reached, _ in points if reached >= accuracy]
    return f"{min(there):.1f}" if there else f"not in {max(point[0] for point in points):.0f}"


def table(results: dict[str, dict[str, list[list[float]]]]) -> str:
    """Return the Markdown text."""
    lines = [
        "# Seconds to an accuracy",
        "",
        "Seconds of the smallest model that reaches it on rows that were held out; 'not in' where",
        "the largest one that was tried does not, after so many seconds.",
        "",
        "| set | accuracy | " + " | ".join(LOOKS) + " |",
        "|---|---|" + "---|" * len(LOOKS),
    ]
    for name, curves in results.items():
        best = max(point[1] for point in curves["CSVRGClassifier"])
        worst = min(point[1] for point in curves["CSVRGClassifier"])
        for accuracy in np.round(np.linspace(worst, best, 5), 4):
            cells = [first_time(curves[method], accuracy - 5e-5) for method in LOOKS]
            lines.append(f"| {name} | {100 * accuracy:.2f} % | " + " | ".join(cells) + " |")
    lines += ["", "| set | method | size | seconds | accuracy |", "|---|---|---|---|---|"]
    lines += [
        f"| {name} | {method} | {size:,.0f} | {seconds:.2f} | {100 * accuracy:.2f} % |"
        for name, curves in results.items()
        for method, points in curves.items()
        for seconds, accuracy, size in points
    ]
    return "\n".join(lines) + "\n"


def figure(results: dict[str, dict[str, list[list[float]]]]) -> Figure:
    """Draw accuracy against seconds."""
    drawing = Figure(figsize=(4.5 * len(results), 3.6), layout="constrained")
    FigureCanvasAgg(drawing)
    for ax, (name, curves) in zip(
        drawing.subplots(1, len(results), squeeze=False)[0], results.items(), strict=True
    ):
        for method, points in curves.items():
            seconds, accuracy = [p[0] for p in points], [100 * p[1] for p in points]
            ax.plot(seconds, accuracy, LOOKS[method], label=method)
        ax.set(xscale="log", xlabel="seconds to train", ylabel="accuracy, %", title=name)
        ax.grid(visible=True, alpha=0.3)
    ax.legend()
    return drawing


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of one fit")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    names = [name for name in args.sets if name in available()]
    if not names:
        print("skipped: DASKCORESET_DATA names no folder with these sets")
        return
    warnings.simplefilter("ignore")  # peers that stop early say so
    results: dict[str, dict[str, list[list[float]]]] = {}
    args.out.mkdir(parents=True, exist_ok=True)
    for name in names:
        results[name] = {method: curve(method, name, args.limit) for method in LOOKS}
    (args.out / "time_to_accuracy.json").write_text(json.dumps(results))
    (args.out / "time_to_accuracy.md").write_text(table(results))
    figure(results).savefig(args.out / "time_to_accuracy.png", dpi=110)
    print(table(results))


if __name__ == "__main__":
    main()
