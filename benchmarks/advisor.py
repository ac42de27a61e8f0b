"""Whether `advise` chooses well, and whether its intervals hold.

For every set: ask for advice, then build by every construction with other seeds, solve, and
evaluate on all rows. The error is relative to the best solution known. A choice is good where its
mean error is within 10 % of the least one; the interval is for single builds of what was chosen.

    DASKCORESET_DATA=... python benchmarks/advisor.py --seeds 6

The hard sets are those of Fast-Coresets (arXiv 2404.01936): geometric clusters, c-outlier,
Gaussian mixtures whose clusters differ in size by gamma, and the benchmark instance.
"""

from __future__ import annotations

import warnings
from typing import Any

import common
import numpy as np

import daskcoreset
from daskcoreset.core.blocks import Block
from daskcoreset.core.random import Stage, stream
from daskcoreset.datasets import load, load_bundled, make_benchmark, make_geometric
from daskcoreset.metrics.advice_trials import TASKS, block_of

NAME = "advisor"
BUNDLED = ("digits", "breast_cancer", "wine")
REAL = (
    "htru2", "credit", "skin", "magic04", "cod_rna", "ijcnn1", "covtype", "kdd_bio", "flights3m",
    "a9a",
)  # fmt: skip
MADE = ("geometric", "c-outlier", "gamma 0", "gamma 1", "gamma 3", "gamma 5", "benchmark")
LABELLED = ("htru2", "credit", "magic04", "cod_rna", "ijcnn1", "skin", "covtype")
MOST_ROWS = 100_000


def made(name: str) -> np.ndarray:
    """Return the rows of a hard instance."""
    rng = np.random.default_rng(0)
    if name == "geometric":
        return np.asarray(make_geometric(50_000, 20, random_state=0)[0].compute())
    if name == "benchmark":
        return np.asarray(make_benchmark(8, 5).compute())
    if name == "c-outlier":
        X = rng.normal(size=(50_000, 20))
        X[rng.choice(50_000, 25, replace=False)] += 1000 * rng.normal(size=(25, 20))
        return X
    gamma = float(name.split()[1])
    sizes = np.exp(gamma * rng.uniform(-0.5, 0.5, 50))
    labels = rng.choice(50, 50_000, p=sizes / sizes.sum())
    return 5 * rng.normal(size=(50, 20))[labels] + rng.normal(size=(50_000, 20))


def rows_of(name: str, *, scaled: bool) -> tuple[np.ndarray, Any]:
    """Return rows, and labels where there are any."""
    if name in MADE:
        return made(name), None
    data = load_bundled(name) if name in BUNDLED else load(name)
    X, y = common.dense(data.X, np.float64), data.y
    if len(X) > MOST_ROWS:
        kept = np.sort(np.random.default_rng(0).choice(len(X), MOST_ROWS, replace=False))
        X, y = X[kept], None if y is None else np.asarray(y)[kept]
    if scaled:
        spread = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    return X, y


def run(name: str, task: str, seeds: int) -> dict[str, Any]:
    """Compare the advice for one set with builds."""
    X, y = rows_of(name, scaled=task != "clustering")
    y = y if TASKS[task].labels else None
    k, size = (50, 2000) if len(X) >= 10_000 else (10, max(30, len(X) // 5))
    parts = k if TASKS[task].clusters else None
    with common.timed() as clock:
        advice = daskcoreset.advise(
            X, y, task=task, n_clusters=parts, budget=size, random_state=0, progress=False
        )
    plan = TASKS[task]
    every = Block(X, np.ones(len(X)), y)
    objective = plan.objective(parts).fitted(every)
    costs: dict[str, list[float]] = {}
    warnings.simplefilter("ignore")
    large = daskcoreset.build(
        X, y, method=plan.pilot, n_clusters=parts, size=50_000, random_state=5
    )
    start = plan.solve(objective, block_of(large), stream(0, Stage.AUDIT, 0, 8))
    for seed in range(seeds):
        rng = stream(seed, Stage.AUDIT, 0, 9)
        for one in plan.candidates:
            coreset = one.build(X, y, n_clusters=parts, size=size, random_state=1000 + seed)
            try:
                solution = plan.solve(objective, block_of(coreset), rng, start)
                costs.setdefault(one.name, []).append(objective.cost(every, solution))
            except ValueError:
                costs.setdefault(one.name, []).append(np.inf)
    least = objective.cost(every, start)
    least = min(least, *(min(one) for one in costs.values()))
    errors = {key: (np.array(one) / least - 1.0).tolist() for key, one in costs.items()}
    return {
        "set": name, "task": task, "n": len(X), "d": X.shape[1], "size": size, "k": parts,
        "chosen": advice.name, "enough": advice.uniform_is_enough, "errors": errors,
        "foretold": [advice.error, advice.low, advice.high], "seconds": clock.wall,
    }  # fmt: skip


def row_of(found: dict[str, Any]) -> tuple[Any, ...]:
    """Return a row of the table."""
    means = {key: float(np.mean(one)) for key, one in found["errors"].items()}
    error, low, high = found["foretold"]
    own = np.array(found["errors"][found["chosen"]])
    ratio = means[found["chosen"]] / max(min(means.values()), 1e-12)
    return (
        f"{found['set']} ({found['n']:,} x {found['d']})",
        f"{found['size']:,}",
        *(
            f"{common.cell(mean)} ± {common.cell(common.interval(found['errors'][key]))}"
            for key, mean in means.items()
        ),
        found["chosen"] + ("; uniform is enough" if found["enough"] else ""),
        f"{ratio:.2f}",
        f"{common.cell(error)} ({common.cell(low)} to {common.cell(high)})",
        f"{int(((own >= low) & (own <= high)).sum())} of {len(own)}",
        f"{found['seconds']:.0f}",
    )


def summary(rows: list[list[str]]) -> str:
    """Count good choices and intervals that hold."""
    good = sum(float(row[-4]) <= 1.10 for row in rows)
    held = np.array([[int(n) for n in row[-2].split(" of ")] for row in rows]).sum(axis=0)
    return (
        f"Within 10 % of the least mean error on {good} of {len(rows)} sets. The interval holds "
        f"{held[0]} of {held[1]} builds ({held[0] / held[1]:.0%})."
    )


def report(data: dict[str, Any]) -> str:
    """Write the tables."""
    lines = ["# The advisor", ""]
    for task, rows in data["results"].items():
        heads = (
            "set", "rows of the coreset", *(one.name for one in TASKS[task].candidates), "advice",
            "its error over the least", "foretold (one build)", "builds within", "seconds",
        )  # fmt: skip
        lines += [f"## {task.capitalize()}", "", *common.table(heads, rows), ""]
        lines += [summary(rows), ""]
    lines += [
        (
            "Mean relative errors of solutions on all rows, in %, with 95 % intervals of the mean, "
            "over the best solution known. k-means on a coreset starts at the best solution known, "
            "so that the error is that of the coreset and not of the start. "
            "Four or six builds. Seconds are of the "
            "advice, on two processors shared with much other work. At most 100,000 rows of a set."
        ),
        "",
        common.stamped(data),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Run all sets."""
    parser = common.arguments(__doc__, (*BUNDLED, *REAL, *MADE))
    parser.add_argument("--labelled", nargs="*", default=list(LABELLED))
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--fresh", action="store_true", help="forget results of earlier runs")
    options = parser.parse_args()
    sets = common.loadable(options.sets, *BUNDLED, *MADE)
    labelled = common.loadable(options.labelled)
    # A set after another is added to the results: all of them take an hour.
    known = (options.out / f"{NAME}.json").exists() and not options.fresh
    results = common.read(NAME, options.out)["results"] if known else {}
    for task, names in {"clustering": sets, "classification": labelled}.items():
        rows = results.setdefault(task, [])
        for name in names:
            if not any(row[0].startswith(f"{name} (") for row in rows):
                rows.append(list(common.printed(row_of(run(name, task, options.seeds)))))
                data = {"stamp": common.stamp(seeds=options.seeds), "results": results}
                common.write(NAME, data, options.out, report)


if __name__ == "__main__":
    main()
