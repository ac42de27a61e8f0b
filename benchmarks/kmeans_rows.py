"""`CoresetKMeans` as it comes against that of an earlier commit, in turns.

Costs of the centers over all rows, and processor seconds of a fit, with 100 clusters. Each commit
has a process of its own, in a checkout of its own.

    git worktree add --detach /tmp/before ed88ae5e
    python benchmarks/kmeans_rows.py --before /tmp/before
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import common
import numpy as np
from sets import load

NAME = "kmeans_rows"
K = 100
REAL = ("cod_rna", "kdd_bio", "covtype", "skin", "ijcnn1", "credit", "a9a")


def _categories(rng: np.random.Generator, count: int, power: float = 1.5) -> np.ndarray:
    return np.eye(count)[np.minimum(rng.zipf(power, 50_000) - 1, count - 1)]


MADE: dict[str, Any] = {
    "150 categories": lambda rng: _categories(rng, 150),
    "500 categories": lambda rng: _categories(rng, 500, 1.2),
    "three columns of 40 categories": lambda rng: np.hstack(
        [_categories(rng, 40) for _ in range(3)]
    ),
}


def rows_of(name: str) -> np.ndarray:
    """Return the rows of a set."""
    if name in MADE:
        return np.ascontiguousarray(MADE[name](np.random.default_rng(0)))
    X = load(name).X
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def work() -> None:
    """Answer for each set and seed that comes in."""
    from daskcoreset.estimators import CoresetKMeans
    from daskcoreset.metrics.costs import kmeans_cost

    known: dict[str, np.ndarray] = {}
    for line in sys.stdin:
        name, seed = json.loads(line)
        if name not in known:
            known = {name: rows_of(name)}
        X = known[name]
        start = time.process_time()
        model = CoresetKMeans(K, random_state=seed).fit(X)
        seconds = time.process_time() - start
        cost = float(kmeans_cost(X, model.cluster_centers_))
        sys.stdout.write(json.dumps([cost, seconds, len(model.coreset_)]) + "\n")
        sys.stdout.flush()


def worker(checkout: Path) -> subprocess.Popen[str]:
    """Start the process of a checkout."""
    return subprocess.Popen(
        [sys.executable, Path(__file__).resolve(), "--work"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
    )


def asked(process: subprocess.Popen[str], name: str, seed: int) -> list[float]:
    """Return cost, seconds and number of points of a fit."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps([name, seed]) + "\n")
    process.stdin.flush()
    return list(json.loads(process.stdout.readline()))


def _excess(costs: np.ndarray, best: float) -> str:
    values = 100 * (costs / best - 1)
    return f"{values.mean():.2f} ± {common.interval(values):.2f}"


def report(data: dict[str, Any]) -> str:
    """Write the table."""
    rows = []
    for one in data["results"]:
        before, now = (np.array(one[kind]) for kind in ("before", "now"))
        best = min(before[:, 0].min(), now[:, 0].min())
        seconds = " → ".join(f"{np.median(each[:, 1]):.2f}" for each in (before, now))
        points = " → ".join(f"{int(np.median(each[:, 2])):,}" for each in (before, now))
        costs = [_excess(each[:, 0], best) for each in (before, now)]
        gain = 100 * (before[:, 0] - now[:, 0]) / best
        gained = f"{gain.mean():.2f} ± {common.interval(gain):.2f}"
        rows.append([one["set"], *costs, gained, points, seconds])
    heads = ("set", "centroids: cost", "rows: cost", "gain", "points", "seconds")
    return "\n".join(
        [
            "# CoresetKMeans on 20,000 rows",
            "",
            f"`CoresetKMeans({K})` as it comes: on 10,000 centroids of 20,000 rows, as it was",
            f"(commit {data['before']}), and on 20,000 rows. Cost of the centers over all rows, in",
            "% above the least of all runs on the set; its gain, in points of it; points that are",
            "solved on; median processor seconds of a fit. Means with intervals of 95 % over",
            f"{data['stamp']['seeds']} seeds. Negative gains are losses.",
            "",
            *common.table(heads, rows),
            "",
            common.stamped(data),
            "",
        ]
    )


def main() -> None:
    """Run and write the results."""
    parser = common.arguments(__doc__, (*REAL, *MADE))
    parser.add_argument("--before", type=Path, help="checkout of the earlier commit")
    parser.add_argument("--now", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--work", action="store_true", help="answer on the standard streams")
    options = parser.parse_args()
    if options.work:
        work()
        return
    head = ["git", "-C", str(options.before), "rev-parse", "--short", "HEAD"]
    before = subprocess.run(head, capture_output=True, text=True, check=True).stdout.strip()
    both = {"before": worker(options.before), "now": worker(options.now)}
    results: list[dict[str, Any]] = []
    for name in options.sets:
        one: dict[str, Any] = {"set": name, "before": [], "now": []}
        for seed in range(options.seeds):
            for kind, process in both.items():
                one[kind].append(asked(process, name, seed))
        results.append(one)
        stamp = common.stamp(seeds=options.seeds)
        common.write(
            NAME, {"stamp": stamp, "before": before, "results": results}, options.out, report
        )
        common.printed([name, *one["before"], *one["now"]])


if __name__ == "__main__":
    main()
