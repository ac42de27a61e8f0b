"""Whether `advise` chooses well, and whether its intervals hold.

For every task and set: ask for advice, then solve by every construction with other seeds, and
evaluate on all rows. `CoresetKMeans` and `CoresetGaussianMixture` solve with their defaults, linear
models the solvers of the advisor, which end in the optimum of a coreset. The error is that over the
best solution known, from which a solver went on with all rows, of mixtures from the three best: as
a share of its cost, of mixtures in nats a row. A choice is good where its mean error is within 10 %
of the least one; the interval is for single builds of what was chosen. "rows" is clustering once
more, among the constructions whose coresets are rows; "mixture" has sets with fewer rows than
parameters, of which the advisor warns, "larger mixture" at least two rows for each.

    DASKCORESET_DATA=... python benchmarks/advisor.py --seeds 6

The hard sets are those of Fast-Coresets (arXiv 2404.01936): geometric clusters, c-outlier,
Gaussian mixtures whose clusters differ in size by gamma, and the benchmark instance.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import lru_cache
from typing import Any

import common
import numpy as np

import daskcoreset
from daskcoreset.core.blocks import Block
from daskcoreset.core.random import Stage, stream
from daskcoreset.datasets import load, load_bundled, make_benchmark, make_geometric
from daskcoreset.estimators import CoresetGaussianMixture, CoresetKMeans
from daskcoreset.metrics.advice_tasks import TASKS, Candidate, Drawn, Task, block_of

NAME = "advisor"
BUNDLED = ("digits", "breast_cancer", "wine")
REAL = (
    "htru2", "credit", "skin", "magic04", "cod_rna", "ijcnn1", "covtype", "kdd_bio", "flights3m",
    "a9a", "w8a",
)  # fmt: skip
MADE = ("geometric", "c-outlier", "gamma 0", "gamma 1", "gamma 3", "gamma 5", "benchmark")
# Tasks of the advisor where those here have other names.
TASK = {"rows": "clustering", "larger mixture": "mixture"}
MIXED = ("htru2", "credit", "skin", "magic04", "cod_rna", "ijcnn1")
LABELLED = ("htru2", "credit", "magic04", "cod_rna", "ijcnn1", "skin")
NUMBERS = ("htru2", "credit", "magic04", "cod_rna", "skin", "flights3m")
SETS = {
    "clustering": (*BUNDLED, *REAL, *MADE),
    "rows": (*BUNDLED, *REAL, *MADE),
    "classification": LABELLED,
    "svm": LABELLED,
    "regression": NUMBERS,
    "mixture": MIXED,
    "larger mixture": MIXED,
}
# Clusters or components, rows of the coreset, and rows of a set at most: a pilot has 50,000.
SHAPES = {
    "clustering": (50, 2000, 20_000), "rows": (50, 2000, 20_000), "mixture": (8, 1000, 30_000),
    "larger mixture": (8, 5000, 30_000),
}  # fmt: skip
OTHERS = (0, 1000, 60_000)


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


def rows_of(name: str, task: str) -> tuple[np.ndarray, Any]:
    """Return rows, and labels where there are any."""
    if name in MADE:
        return made(name), None
    data = load_bundled(name) if name in BUNDLED else load(name)
    X, y = common.dense(data.X, np.float64), data.y
    most = SHAPES.get(task, OTHERS)[2]
    if len(X) > most:
        kept = np.sort(np.random.default_rng(0).choice(len(X), most, replace=False))
        X, y = X[kept], None if y is None else np.asarray(y)[kept]
    if task not in {"clustering", "rows"}:
        spread = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    if task == "regression":  # the first column by the others
        X, y = np.ascontiguousarray(X[:, 1:]), X[:, 0].copy()
    return X, y


def task_of(task: str) -> Task:
    """Return what the advisor compares."""
    plan = TASKS[TASK.get(task, task)]
    if task == "rows":
        plan = replace(plan, candidates=tuple(one for one in plan.candidates if one.of_rows))
    return plan


def shape_of(X: np.ndarray, task: str) -> tuple[int | None, int]:
    """Return clusters or components, and rows of the coreset."""
    k, size, _ = SHAPES.get(task, OTHERS)
    if len(X) < 10_000:
        k, size = 10, max(30, len(X) // 5)
    return (k if task_of(task).clusters else None), size


def solved(task: str, one: Candidate, X: np.ndarray, y: Any, seed: int) -> Any:
    """Return the solution that a user of one construction gets; None where rows show none."""
    rng, plan = stream(seed, Stage.AUDIT, 0, 9), task_of(task)
    parts, size = shape_of(X, task)
    options: dict[str, Any] = {"size": size, "random_state": 1000 + seed}
    if task == "clustering":
        kind = "rows" if one.of_rows else "centroids"
        method = one.name if one.of_rows else "kmeans"
        model = CoresetKMeans(parts, method=method, representatives=kind, **options)
        return model.fit(X).cluster_centers_
    objective = plan.objective(parts)
    if plan.in_nats:
        fitted = CoresetGaussianMixture(parts, method=one.name, **options).fit(X)
        return objective.read(fitted, X.shape[1], "the fit")
    coreset = one.build(X, y, n_clusters=parts, **options)
    objective = objective.fitted(Block(X, np.ones(len(X)), y))
    try:
        return plan.solve(objective, Drawn(block_of(coreset)), rng)
    except ValueError:
        return None


@lru_cache(None)  # of clustering twice
def errors_of(name: str, task: str, seeds: int) -> dict[str, list[float]]:
    """Return the errors of solutions on coresets, by construction."""
    X, y = rows_of(name, task)
    plan = task_of(task)
    y = y if plan.labels else None
    parts, _ = shape_of(X, task)
    every = Block(X, np.ones(len(X)), y)
    objective = plan.objective(parts).fitted(every)
    solutions: dict[str, list[Any]] = {}
    warnings.simplefilter("ignore")
    for seed in range(seeds):
        for one in plan.candidates:
            solution = solved(task, one, X, y, seed)
            solutions.setdefault(one.name, []).append(solution)
    costs = {
        key: [np.inf if each is None else plan.cost(objective, every, each) for each in found]
        for key, found in solutions.items()
    }
    found = sorted((cost, key, i) for key, values in costs.items() for i, cost in enumerate(values))
    least, known = found[0][0], solutions[found[0][1]][found[0][2]]
    # Likelihoods have optima that differ; of others, as the advisor, from the best one alone.
    for _, key, i in found[: 3 if plan.in_nats else 1]:
        rng = stream(0, Stage.AUDIT, 0, 8)
        ended = plan.solve(objective, Drawn(every), rng, solutions[key][i])
        if (cost := plan.cost(objective, every, ended)) < least:
            least, known = cost, ended
    scale = len(X) if plan.in_nats else objective.cost(every, known)
    return {key: ((np.array(one) - least) / scale).tolist() for key, one in costs.items()}


def run(name: str, task: str, seeds: int) -> dict[str, Any]:
    """Compare the advice for one set with builds."""
    X, y = rows_of(name, task)
    plan, asked = task_of(task), {"task": TASK.get(task, task)}
    if task == "rows":
        asked["representatives"] = "rows"
    parts, size = shape_of(X, task)
    with common.timed() as clock:
        advice = daskcoreset.advise(
            X,
            y if plan.labels else None,
            n_clusters=parts,
            budget=size,
            random_state=0,
            progress=False,
            **asked,
        )
    errors = errors_of(name, "clustering" if task == "rows" else task, seeds)
    return {
        "set": name, "task": task, "n": len(X), "d": X.shape[1], "size": size, "k": parts,
        "chosen": advice.name, "enough": advice.uniform_is_enough,
        "errors": {one.name: errors[one.name] for one in plan.candidates},
        "foretold": [advice.error, advice.low, advice.high], "seconds": clock.wall,
    }  # fmt: skip


def row_of(found: dict[str, Any]) -> tuple[Any, ...]:
    """Return a row of the table."""
    means = {key: float(np.mean(one)) for key, one in found["errors"].items()}
    error, low, high = found["foretold"]

    def shown(value: float) -> str:
        return common.cell(value / 100 if task_of(found["task"]).in_nats else value)

    own = np.array(found["errors"][found["chosen"]])
    # What seeds alone may make of it: two standard errors of the paired difference.
    best = np.array(found["errors"][min(means, key=lambda key: means[key])])
    gap, noise = own - best, 2.0 * float((own - best).std(ddof=1)) / np.sqrt(len(own))
    least = min(means.values())
    ratio = 1.0 if means[found["chosen"]] == least else means[found["chosen"]] / max(least, 1e-12)
    by_chance = bool(ratio > 1.10 and float(gap.mean()) <= noise)
    return (
        f"{found['set']} ({found['n']:,} x {found['d']})",
        f"{found['size']:,}",
        *(
            f"{shown(mean)} ± {shown(common.interval(found['errors'][key]))}"
            for key, mean in means.items()
        ),
        found["chosen"] + ("; uniform is enough" if found["enough"] else ""),
        f"{ratio:.2f}" + " (chance)" * by_chance,
        f"{shown(error)} ({shown(low)} to {shown(high)})",
        f"{int(((own >= low) & (own <= high)).sum())} of {len(own)}",
        f"{found['seconds']:.0f}",
    )


def summary(rows: list[list[str]]) -> str:
    """Count good choices and intervals that hold."""
    ratios = [row[-4].split() for row in rows]
    good = sum(float(ratio[0]) <= 1.10 for ratio in ratios)
    chance = sum(len(ratio) > 1 for ratio in ratios)
    held = np.array([[int(n) for n in row[-2].split(" of ")] for row in rows]).sum(axis=0)
    others = f", and on {chance} more within chance" if chance else ""
    return (
        f"Within 10 % of the least mean error on {good} of {len(rows)} sets{others}. The interval "
        f"holds {held[0]} of {held[1]} builds ({held[0] / held[1]:.0%})."
    )


def report(data: dict[str, Any]) -> str:
    """Write the tables."""
    lines = ["# The advisor", ""]
    for task, rows in data["results"].items():
        if not rows:
            continue
        heads = (
            "set", "rows of the coreset", *(one.name for one in task_of(task).candidates), "advice",
            "its error over the least", "foretold (one build)", "builds within", "seconds",
        )  # fmt: skip
        lines += [f"## {task.capitalize()}", "", *common.table(heads, rows), ""]
        lines += [summary(rows), ""]
    lines += [
        (
            "Mean errors of solutions on all rows, in % of the cost of the best solution known, of "
            "mixtures in nats a row above it, with 95 % intervals of the mean. `CoresetKMeans` and "
            "`CoresetGaussianMixture` solve, whose starts miss something: that is in the errors, "
            "and in those foretold. Chance: the mean of the paired differences is within two of "
            "its standard errors. "
            "Regression is that of the first column by the others. Seconds are of the advice, on "
            "two processors shared with much other work. At most 20,000 rows of a real set for "
            'clustering, 30,000 for mixtures, 60,000 else. "Rows" is clustering once more, among '
            'constructions whose coresets are rows; "mixture" has sets with fewer rows than '
            "parameters, of which the advisor warns. The stamp is that of the task that ran last; "
            "numbers of builds are in the rows."
        ),
        "",
        common.stamped(data),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Run all sets."""
    parser = common.arguments(__doc__, (*BUNDLED, *REAL, *MADE))
    parser.add_argument("--tasks", nargs="*", default=list(SETS))
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--fresh", action="store_true", help="forget results of earlier runs")
    options = parser.parse_args()
    # A set after another is added to the results: all of them take an hour.
    known = (options.out / f"{NAME}.json").exists() and not options.fresh
    results = common.read(NAME, options.out)["results"] if known else {}
    for task in options.tasks:
        rows = results.setdefault(task, [])
        names = [name for name in options.sets if name in SETS[task]]
        for name in common.loadable(names, *BUNDLED, *MADE):
            if not any(row[0].startswith(f"{name} (") for row in rows):
                rows.append(list(common.printed(row_of(run(name, task, options.seeds)))))
                data = {"stamp": common.stamp(seeds=options.seeds), "results": results}
                common.write(NAME, data, options.out, report)


if __name__ == "__main__":
    main()
