"""Labels that are needed for 95 % of the accuracy that all labels give: real sets, many seeds.

Every seed draws a pool of rows to be asked about, and other rows for testing. The methods are
active learning with ``strategy="cover"``, one row at a time and five at a time, plain uncertainty
sampling likewise (a linear SVM on all its labels with scikit-learn's defaults, and the rows
closest to its boundary), the same with C=0.1, and random rows. The learner has the model with
C=0.1 in scikit-learn's terms, and an intercept that is the weight of a column of
ones. Uncertainty sampling and random rows begin with random rows until both classes are there;
all labels count, those of the beginning as well. The goal is 95 % of the accuracy of the same SVM
on all labels of the pool; where the larger class alone comes that far, 95 % of its balanced
accuracy. It is looked for after every fifth label, and has to be reached three times in a row,
for luck reaches it early. A run that has not come so far within the budget counts as the budget.
Prints a Markdown table, and writes it with a figure and the raw numbers into the folder given.

The eight sets to be judged by were named before the run: without credit, whose goal is a few
points above chance, and w8a, whose goal is beyond the budget. The method was chosen on pools of
the seeds 100 to 111.

    DASKCORESET_DATA=... python benchmarks/active_cover.py --seeds 8

With ``--pool 10000000`` it measures instead batches from a pool of so many rows, made lazily, and
keeps the rest of the results.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import common
import dask.array as da
import numpy as np
from looks import look_of
from matplotlib.colors import to_rgba
from sets import load
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from daskcoreset.constructions.margin.active import ActiveMaxMargin

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "active_cover"
SETS = (
    "htru2", "credit", "skin", "magic04", "w8a", "a9a", "cod_rna", "ijcnn1", "covtype", "kdd_bio",
)  # fmt: skip
NAMED = tuple(name for name in SETS if name not in {"credit", "w8a"})
METHODS = (
    "cover", "cover, five", "uncertainty", "uncertainty, C=0.1", "uncertainty, five", "random",
)  # fmt: skip
OURS = METHODS[:2]
ROWS = 8000
SHARE = 0.95
BATCH = 5
KEPT = 3
FEW = 0.1  # C of LinearSVC for few labels; half of the C of a learner

Scores = Iterator[tuple[int, np.ndarray]]


def rows_of(data: Any, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return a pool, its classes, and rows for testing, with theirs."""
    rng = np.random.default_rng([seed, 11])
    rows = rng.permutation(data.X.shape[0])[: 2 * ROWS]
    X, y = common.dense(data.X[rows], np.float64), np.where(data.y[rows] == data.y.max(), 1, -1)
    half = len(y) // 2
    if not hasattr(data.X, "toarray"):
        X = StandardScaler().fit(X[:half]).transform(X)
    return X[:half], y[:half], X[half:], y[half:]


def quality(scores: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return accuracy and balanced accuracy."""
    right = np.where(scores > 0, 1, -1) == y
    return float(right.mean()), float((right[y > 0].mean() + right[y < 0].mean()) / 2)


def goal_of(X: np.ndarray, y: np.ndarray, T: np.ndarray, t: np.ndarray) -> tuple[int, float]:
    """Return the measure, accuracy (0) or balanced accuracy (1), and what is to be reached."""
    scores = LinearSVC(random_state=0, dual=False).fit(X, y).decision_function(T)
    full = quality(scores, t)
    larger = max(float((t > 0).mean()), float((t < 0).mean()))
    measure = int(larger >= SHARE * full[0])
    return measure, SHARE * full[measure]


def by_cover(X: np.ndarray, y: np.ndarray, T: np.ndarray, seed: int, method: str) -> Scores:
    """Yield numbers of labels, and scores of rows for testing."""
    batch = BATCH if method.endswith("five") else 1
    learner = ActiveMaxMargin(
        error=1e-6, C=2 * FEW, intercept=False, strategy="cover", batch=batch, classes=(-1, 1),
        random_state=seed,
    )  # fmt: skip
    X, T = (np.column_stack([rows, np.ones(len(rows))]) for rows in (X, T))
    asking = learner.start(X)
    while (query := asking.ask()) is not None:
        asking.tell(y[query.indices])
        if asking.state.labelled.both:
            yield asking.n_labels, asking.result().decision_function(T)


def by_svm(X: np.ndarray, y: np.ndarray, T: np.ndarray, seed: int, method: str) -> Scores:
    """Do the same with an SVM on all labels, of the closest rows or of random ones."""
    order = np.random.default_rng([seed, 7]).permutation(len(y))
    rows = order[: int((y[order] != y[order[0]]).argmax()) + 1].tolist()
    step = 1 if method in {"uncertainty", "uncertainty, C=0.1"} else BATCH
    svc = LinearSVC(C=FEW if method.endswith("C=0.1") else 1.0, random_state=0)
    while len(rows) < len(y):
        svc.fit(X[rows], y[rows])
        yield len(rows), svc.decision_function(T)
        if method == "random":
            rows = order[: len(rows) + step].tolist()
            continue
        gaps = np.abs(svc.decision_function(X))
        gaps[rows] = np.inf
        rows.extend(np.argsort(gaps, kind="stable")[:step].tolist())


def labels_needed(
    runs: Scores, right: Callable[[np.ndarray], float], goal: float, most: int
) -> int:
    """Return the least multiple of five labels that reaches the goal, as do the next two."""
    known, reached, count = False, 0, BATCH
    for n_labels, scores in runs:
        while count < n_labels:  # with fewer labels than these there is what was known before
            reached = reached + 1 if known else 0
            if reached == KEPT or count >= most:
                break
            count += BATCH
        if reached == KEPT or count >= most:
            break
        known = right(scores) >= goal
    return count - (KEPT - 1) * BATCH if reached == KEPT else most


def _right(scores: np.ndarray, *, t: np.ndarray, measure: int) -> float:
    return quality(scores, t)[measure]


def add_pool(result: dict[str, Any], data: Any, seed: int, budget: int) -> None:
    """Measure one pool of a set."""
    X, y, T, t = rows_of(data, seed)
    measure, goal = goal_of(X, y, T, t)
    right = partial(_right, t=t, measure=measure)
    for method in METHODS:
        by = by_cover if method.startswith("cover") else by_svm
        with common.timed() as clock:
            count = labels_needed(by(X, y, T, seed, method), right, goal, budget)
        result["needed"].setdefault(method, []).append(count)
        result["seconds"].setdefault(method, []).append(clock.cpu)
    result["measures"].append(measure)
    result["goals"].append(goal)


def ratio(result: dict[str, Any], other: str, ours: str = "cover") -> tuple[float, float, float]:
    """Return the ratio of mean labels, and its 95 % interval by resampling the seeds."""
    a, b = (np.array(result["needed"][method], dtype=np.float64) for method in (ours, other))
    drawn = np.random.default_rng(0).integers(0, len(a), (4000, len(a)))
    low, high = np.quantile(a[drawn].mean(axis=1) / b[drawn].mean(axis=1), [0.025, 0.975])
    return float(a.mean() / b.mean()), float(low), float(high)


def _beaten(results: list[dict[str, Any]], ours: str) -> str:
    named = [result for result in results if result["set"] in NAMED]
    return "; ".join(
        f"{other} on {sum(ratio(result, other, ours)[0] <= 0.8 for result in named)}"
        for other in METHODS
        if other not in OURS
    )


def report(data: dict[str, Any]) -> str:
    """Return the Markdown table."""
    settings, results = data["stamp"], data["results"]
    rows = []
    for result in results:
        cells = []
        for method in METHODS:
            values = result["needed"][method]
            late = sum(value >= settings["budget"] for value in values)
            cells.append(
                f"{np.mean(values):.0f} ± {common.interval(values):.0f}"
                + (f" ({late} of {len(values)} not within the budget)" if late else "")
            )
        shares = [ratio(result, "uncertainty", ours) for ours in OURS]
        measure = " or ".join(("accuracy", "balanced")[i] for i in sorted(set(result["measures"])))
        goal = f"{100 * np.mean(result['goals']):.1f}"
        rows.append(
            [
                result["set"],
                measure,
                goal,
                *cells,
                *(f"{share:.2f} ({low:.2f} to {high:.2f})" for share, low, high in shares),
            ]
        )
    heads = ["set", "measure", "goal, %", *METHODS, *(f"{ours} by uncertainty" for ours in OURS)]
    intro = (
        f"Labels to {100 * SHARE:.0f} % of the accuracy of a linear SVM on all labels of a pool of "
        f"{ROWS} rows, on {ROWS} others: means of {settings['seeds']} pools with 95 % intervals, "
        f"budget {settings['budget']} labels. {common.stamped(data)}"
    )
    lines = [
        intro,
        "",
        *common.table(heads, rows),
        "",
        f"Of the {len(NAMED)} sets named before ({', '.join(NAMED)}):",
        "",
        *(
            f"- {ours} needs at most 80 % of the labels of {_beaten(results, ours)}."
            for ours in OURS
        ),
        "",
        "A set beyond the budget by both methods shows nothing.",
        "",
        "Not here, for no package ships them: MiniBooNE and webspam.",
        *_costs(results),
        *(_pool_lines(data["pool"]) if "pool" in data else ()),
    ]
    return "\n".join(lines) + "\n"


def _costs(results: list[dict[str, Any]]) -> list[str]:
    """Return the lines on reads, and of the table of seconds where these were measured."""
    reads = [
        "",
        "All methods but random rows read the pool once a batch: once a label, or once in five.",
    ]
    if any("seconds" not in result for result in results):
        return reads
    rows = []
    for result in results:
        cells = []
        for method in METHODS:
            taken = result["seconds"][method]
            cells.append(f"{np.mean(taken):.2f} ± {common.interval(taken):.2f}")
        rows.append([result["set"], *cells])
    return [
        *reads,
        "Seconds of the processor of these runs from pools in memory, with the scores of the rows",
        "for testing that the count needs:",
        "",
        *common.table(["set", *METHODS], rows),
    ]


def _pool_lines(pool: dict[str, Any]) -> list[str]:
    """Return the lines of the table of a large pool."""
    made = pool["stamp"]
    rows = []
    for name, found in pool["seconds"].items():
        clocks = zip(*found, strict=True)
        rows.append([name, *(common.median_cell(times, ".1f") for times in clocks), 1])
    return [
        "",
        f"From a pool of {made['rows']:,} rows of 20 columns, drawn when they are read: a batch of",
        f"{made['batch']} rows by cover, beside a plain read that draws the same rows and keeps",
        f"none. Medians of {len(found)} in turns, and the least and the most.",
        common.stamped(pool),
        "",
        *common.table(["", "seconds", "of the processor", "reads of the pool"], rows),
    ]


def figure(data: dict[str, Any]) -> Figure:
    """Draw labels needed, a group of bars a set."""
    drawing = common.figure(10, 4)
    ax = drawing.subplots()
    results, width = data["results"], 0.13
    names = ("active", "active", "uncertainty", "uncertainty", "uncertainty", "random")
    hatches = ("", "///", "---", "...", "\\\\\\", "xxx")  # they are told apart without colours
    for i, (method, name, hatch) in enumerate(zip(METHODS, names, hatches, strict=True)):
        values = [result["needed"][method] for result in results]
        places = np.arange(len(results)) + width * (i - 2.5)
        ax.bar(
            places,
            [float(np.mean(v)) for v in values],
            width,
            yerr=[common.interval(v) for v in values],
            ecolor="0.3",
            capsize=2,
            fc=to_rgba(look_of(name).color, 0.45 if hatch else 1.0),
            ec="black",
            lw=0.5,
            hatch=hatch,
            label=method,
        )
    ax.set_yscale("log", nonpositive="clip")
    ax.set_ylim(bottom=2)
    common.plain_ticks(ax.yaxis)
    ax.set_xticks(np.arange(len(results)), [result["set"] for result in results])
    ax.set_ylabel("labels to 95 % of full accuracy")
    ax.grid(visible=True, axis="y", alpha=0.3)
    common.legend(drawing, 3)
    return drawing


def figures(data: dict[str, Any]) -> dict[str, Figure]:
    """Return the figure."""
    return {NAME: figure(data)}


def large(rows: int, batch: int = 20) -> dict[str, Any]:
    """Measure batches from a large pool, beside plain reads of it, by both clocks."""
    X = da.random.default_rng(0).standard_normal((rows, 20), chunks=(100_000, 20))
    w = np.random.default_rng(1).normal(size=20)
    asking = ActiveMaxMargin(C=1.0, strategy="cover", batch=batch, random_state=0).start(X)
    stamp = common.stamp(rows=rows, batch=batch)
    seconds: dict[str, list[tuple[float, float]]] = {"batch": [], "plain read": []}
    for _ in range(4):
        with common.timed() as clock:
            query = asking.ask()
        seconds["batch"].append((clock.wall, clock.cpu))
        assert query is not None  # a pool of so many rows is not done so soon
        heights = query.rows @ w
        asking.tell(heights > np.median(heights) if not asking.state.trace else heights > 0)
        with common.timed() as clock:
            da.map_blocks(
                lambda block: block[:1, :1].copy(), X, chunks=((1,) * X.numblocks[0], 1)
            ).compute()
        seconds["plain read"].append((clock.wall, clock.cpu))
    return {"stamp": stamp, "seconds": seconds}


def main() -> None:
    """Run the command line."""
    parser = common.arguments(__doc__, SETS)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--budget", type=int, default=400)
    parser.add_argument("--pool", type=int, help="rows of a lazy pool, to time batches from")
    args = parser.parse_args()
    known = common.read(NAME, args.out) if (args.out / f"{NAME}.json").exists() else {}
    if args.pool:
        pool = large(args.pool)
        print("\n".join(_pool_lines(pool)))
        if "results" in known:
            common.write(NAME, {**known, "pool": pool}, args.out, report, figures)
        return
    kept = {"pool": known["pool"]} if "pool" in known else {}
    warnings.simplefilter("ignore", ConvergenceWarning)  # of LinearSVC on a handful of rows
    data = {name: load(name) for name in common.loadable(args.sets)}
    results: list[dict[str, Any]] = [
        {"set": name, "needed": {}, "seconds": {}, "measures": [], "goals": []} for name in data
    ]
    stamp = common.stamp(budget=args.budget)  # of the code that runs, whatever is committed later
    for seed in range(args.seeds):
        for result in results:
            add_pool(result, data[result["set"]], seed, args.budget)
            counts = {method: values[-1] for method, values in result["needed"].items()}
            print(seed, result["set"], counts, flush=True)
        written = {"stamp": {**stamp, "seeds": seed + 1}, "results": results, **kept}
        print(report(written), flush=True)
        # After every pool, so that a run that is ended early leaves whole rows.
        common.write(NAME, written, args.out, report, figures)


if __name__ == "__main__":
    main()
