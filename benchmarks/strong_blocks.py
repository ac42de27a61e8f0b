"""Strong k-means on long blocks, today and by an earlier commit: seconds, and what is kept.

Both packages are loaded in processes of their own, which build in turns from the same array in
memory. Ratios are medians over the turns of seconds of processor time, which another load on
the machine hardly changes; wall time is the least of all turns. What is kept is judged by NumPy
alone: planted clusters that have rows in the coreset, and the cost over all rows of a solution
found on the coreset, against that of a coreset made from blocks of 16,384 rows.

    git worktree add ../before 2b1a29a
    python benchmarks/strong_blocks.py --before ../before

Results are written to ``results/strong_blocks.json`` and ``results/strong_blocks.md``; a part that
is left out stays as it was measured before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import common
import instances
import numpy as np
import numpy.typing as npt

from daskcoreset import Draw, MergeReduce

NAME = "strong_blocks"
ROWS, COLUMNS, SIZE = 2_000_000, 20, 10_000
SPEED: list[tuple[str, int | None, dict[str, Any]]] = [
    (f"k = {k}, {name}", k, options)
    for k in (10, 100)
    for name, options in (
        ("one read", {}),
        ("two reads", {"draw": Draw(passes=2)}),
        ("blocks of 16,384 rows", {"chunks": 16_384}),
    )
]
SPEED.append(("lightweight", None, {}))
KEPT: dict[str, dict[str, Any]] = {
    "one read": {},
    "two reads": {"draw": Draw(passes=2)},
    "tree": {"draw": MergeReduce()},
    "blocks of 16,384 rows": {"chunks": 16_384},
}
INSTANCES = {
    # generator, arguments, clusters, size
    "hidden clusters": (instances.hidden, (1_000_000, 5), 12, 1000),
    "giants": (instances.giants, (500_000, 38), 20, 1000),
}

Rows = npt.NDArray[np.floating[Any]]


def squares(X: Rows, centers: Rows) -> Rows:
    """Squared distances of rows to centers, by differences."""
    out = np.empty((len(X), len(centers)))
    for j, center in enumerate(centers):
        gaps = X - center
        out[:, j] = np.einsum("ij,ij->i", gaps, gaps)
    return out


def cost(X: Rows, centers: Rows) -> float:
    """Sum of squared distances to the nearest center."""
    tiles = range(0, len(X), 8192)
    return float(
        sum(squares(X[i : i + 8192].astype(float), centers).min(axis=1).sum() for i in tiles)
    )


def solution(X: Rows, weights: Rows, k: int, seed: int) -> Rows:
    """Centers of the best of five runs of greedy k-means++ and Lloyd on weighted rows."""
    rng, best, least = np.random.default_rng(seed), X[:k], np.inf
    for _ in range(5):
        centers = X[rng.choice(len(X), 1, p=weights / weights.sum())]
        near = squares(X, centers)[:, 0]
        while len(centers) < k:
            mass = weights * near
            some = X[rng.choice(len(X), 2 + int(np.log(k)), p=mass / mass.sum())]
            then = np.minimum(near[:, None], squares(X, some))
            chosen = int((weights @ then).argmin())
            centers, near = np.vstack([centers, some[chosen]]), then[:, chosen]
        for _ in range(25):
            labels = squares(X, centers).argmin(axis=1)
            held = np.bincount(labels, weights, minlength=k)[:, None]
            shift = [
                np.bincount(labels, weights * (x - c[labels]), minlength=k)
                for x, c in zip(X.T, centers.T, strict=True)
            ]
            centers = centers + np.stack(shift, axis=1) / np.where(held > 0, held, 1)
        found = float((weights * squares(X, centers).min(axis=1)).sum())
        if found < least:
            best, least = centers, found
    return best


def work() -> None:
    """Build what the lines of standard input ask for, and answer each with a line."""
    import daskcoreset

    warnings.simplefilter("ignore")
    X: Any = np.zeros((1, 1))
    for line in sys.stdin:
        k, size, seed, options, data = json.loads(line)
        if data is not None:
            X = np.load(data, mmap_mode=None)
            continue
        method: Any = "lightweight" if k is None else daskcoreset.StrongKMeans(k)
        with common.timed() as clock:
            made: Any = daskcoreset.build(X, size=size, method=method, random_state=seed, **options)
        answer = {
            "wall": clock.wall,
            "cpu": clock.cpu,
            "indices": made.indices.tolist(),
            "weights": made.weights.tolist(),
        }
        print(json.dumps(answer), flush=True)


class Worker:
    """A process with one of the two packages."""

    def __init__(self, root: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--work"],
            env=os.environ | {"PYTHONPATH": root, "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def load(self, path: Path) -> None:
        """Read the array that builds are made from."""
        self._send([None, 0, 0, {}, str(path)])

    def build(self, k: int | None, size: int, seed: int, options: dict[str, Any]) -> Any:
        """Build; return seconds, row numbers and weights."""
        self._send([k, size, seed, options, None])
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def _send(self, message: list[Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()


def speed(workers: dict[str, Worker], folder: Path, turns: int) -> dict[str, Any]:
    """Return the table of seconds."""
    rows, raw = [], []
    for dtype in ("float32", "float64"):
        path = folder / "mixture.npy"
        np.save(path, common.mixture(COLUMNS)(ROWS).astype(dtype))
        for worker in workers.values():
            worker.load(path)
        for name, k, options in SPEED:
            took: dict[str, list[tuple[float, float]]] = {"before": [], "now": []}
            for turn in range(turns + 1):  # the first compiles
                for which, worker in workers.items():
                    found = worker.build(k, SIZE, turn, options)
                    took[which].append((found["wall"], found["cpu"]))
            raw.append({"dtype": dtype, "job": name, "seconds": took})
            wall, cpu = {}, {}
            for which, pairs in took.items():
                wall[which], _ = np.min(pairs[1:], axis=0)
                _, cpu[which] = np.median(pairs[1:], axis=0)
            ratios = [b[1] / a[1] for a, b in zip(took["before"], took["now"], strict=True)][1:]
            seconds = [f"{one[which]:.2f} s" for one in (wall, cpu) for which in took]
            cells = [name, *seconds, f"{np.median(ratios):.2f}"]
            rows.append(common.printed([f"{ROWS:,} x {COLUMNS} {dtype}", *cells]))
    heads = ["rows", "job", "wall before", "wall now", "processor before", "processor now"]
    return common.part([*heads, "ratio"], rows, raw, turns=turns)


def kept(workers: dict[str, Worker], folder: Path, seeds: int) -> dict[str, Any]:
    """Return the table of clusters and costs."""
    lines, raw = [], []
    for instance, (generator, shape, k, size) in INSTANCES.items():
        X, y = generator(*shape)
        path = folder / "instance.npy"
        np.save(path, X)
        rows: list[tuple[str, str, int, str, float]] = []
        for which, worker in workers.items():
            worker.load(path)
            for mode, options in KEPT.items():
                costs, least, whole = [], size, 0
                for seed in range(seeds):
                    found = worker.build(k, size, seed, options)
                    indices, weights = np.array(found["indices"]), np.array(found["weights"])
                    least = min(least, len(indices))
                    whole += set(y[indices]) == set(y)
                    some = X[indices].astype(float)
                    costs.append(
                        cost(X, solution(some, weights, k, seed) if len(some) > k else some)
                    )
                raw.append({"instance": instance, "mode": mode, "package": which, "costs": costs})
                mean = float(np.exp(np.log(costs).mean()))
                rows.append((mode, which, least, f"{whole} of {seeds}", mean))
        reference = rows[-1][-1]
        for mode, which, least, whole_of, mean in rows:
            facts = [mode, which, f"{least:,}", whole_of, f"{mean / reference:.3g}"]
            lines.append(common.printed([instance, k, f"{size:,}", *facts]))
    heads = ["instance", "k", "size", "mode", "package", "rows", "all clusters", "cost"]
    return common.part(heads, lines, raw, seeds=seeds)


def report(data: dict[str, Any]) -> str:
    """Return the tables of the parts."""
    lines = ["# Strong k-means on long blocks, now and before"]
    for part in data["parts"].values():
        lines += common.part_lines(part)
    return "\n".join(lines)


def main() -> None:
    """Run everything and write the tables."""
    parser = common.arguments(__doc__)
    parser.add_argument("--before", help="folder of an earlier commit")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", choices=["speed", "kept"])
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work()
        return
    here = str(Path(__file__).parents[1])
    workers = {"before": Worker(options.before), "now": Worker(here)}
    parts = common.read_parts(NAME, options.out)
    with tempfile.TemporaryDirectory() as folder:
        if options.only != "kept":
            parts["speed"] = speed(workers, Path(folder), options.turns)
        if options.only != "speed":
            parts["kept"] = kept(workers, Path(folder), options.seeds)
    common.write(NAME, {"stamp": common.stamp(), "parts": parts}, options.out, report)
    for worker in workers.values():
        worker.process.communicate()


if __name__ == "__main__":
    main()
