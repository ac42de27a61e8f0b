"""Covers: core points, reads and seconds against the diameter, and the loops beside their peers.

    DASKCORESET_DATA=... python benchmarks/covers.py
    DASKCORESET_DATA=... python benchmarks/covers.py --parts covers

Features are scaled to [0, 1]. Seconds are also given as a multiple of one read of the data, here
one lightweight coreset with one read. AVM is one pass over all rows in order.

Results are written to ``results/covers.json`` and ``results/covers.md``; a part that is left out
stays as it was measured before.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import common
import numpy as np
from scipy.spatial import cKDTree
from sets import load

import daskcoreset
from daskcoreset.constructions.coverage import cover
from daskcoreset.constructions.coverage.metric import Metric, Sorted
from daskcoreset.constructions.coverage.online import online
from daskcoreset.core.errors import CoresetWarning, InvalidInputError
from daskcoreset.inputs.blocks import row_blocks

NAME = "covers"
SETS: dict[str, tuple[float, ...]] = {
    "magic04": (0.4, 0.6, 0.8, 1.0),
    "cod_rna": (0.3, 0.4, 0.6, 0.8),
    "ijcnn1": (0.8, 1.0, 1.2, 1.4),
    "covtype": (1.2, 1.4, 1.6, 2.0),
}
N_BLOCKS = 16


def scaled(name: str) -> np.ndarray:
    """Return the rows of a set with every feature in [0, 1]."""
    X = np.asarray(load(name).X, dtype=np.float32)
    low, width = X.min(axis=0), np.ptp(X, axis=0)
    return (X - low) / np.where(width > 0, width, 1)


def best(work: Callable[[], Any]) -> common.Clock:
    """Return the least seconds of three goes."""
    clocks = []
    for _ in range(3):
        with common.timed() as clock:
            work()
        clocks.append(clock)
    return min(clocks, key=lambda clock: clock.cpu)


def covers(name: str) -> tuple[list[Sequence[Any]], list[dict[str, Any]]]:
    """Return the rows of the table for one set, and what they are made of."""
    X = scaled(name)
    chunks = -(-len(X) // N_BLOCKS)
    blocks = row_blocks(X, chunks=chunks)
    cover(row_blocks(X[:100]), 1.0)  # compiles
    daskcoreset.build(X, size=1000, chunks=chunks, random_state=0)
    read = best(lambda: daskcoreset.build(X, size=1000, chunks=chunks, random_state=0)).wall
    lines, raw = [], []
    asked: list[dict[str, Any]] = [{"diameter": value} for value in SETS[name]]
    asked += [{"max_points": 100}, {"max_points": 1000}]
    for options in asked:
        plain = "-"
        if "diameter" in options:
            rows, _ = online(X, options["diameter"] / 2, Metric(boxes=False), max_points=20_000)
            plain = f"{len(rows):,}"
        for strategy in ("online", "farthest"):
            try:
                with common.timed() as clock:
                    found = cover(blocks, strategy=strategy, **options)
            except InvalidInputError as error:
                print(f"{name} {options} {strategy}: {error}", flush=True)
                continue
            bound = found.diameter / found.least_diameter if found.least_diameter else None
            line = [
                f"{name} ({len(X):,} x {X.shape[1]})",
                f"{found.diameter:.3f}{' *' if bound else ''}",
                strategy,
                f"{len(found):,}",
                plain,
                "-" if bound is None else f"{bound:.2f}",
                str(found.reads),
                f"{clock.wall:.2f}",
                f"{clock.wall / read:.0f}",
            ]
            lines.append(common.printed(line))
            facts = {"set": name, "strategy": strategy, "diameter": found.diameter, "bound": bound}
            facts |= {"points": len(found), "reads": found.reads, "seconds": clock.wall}
            raw.append({**facts, "read_seconds": read, **options})
    return lines, raw


def near_a_surface(n: int, d: int) -> np.ndarray:
    """Rows near a surface of at most six dimensions, in [0, 1]."""
    rng = np.random.default_rng(0)
    inner = min(d, 6)
    X = np.tanh(rng.random((n, inner)) @ rng.normal(size=(inner, d)) / np.sqrt(inner))
    X += 0.02 * rng.normal(size=X.shape)
    return (X - X.min(axis=0)) / np.ptp(X, axis=0)


def nearest_by_blas(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return the nearest center by matrix products of tiles, without rechecks."""
    middle = centers.mean(axis=0)
    shifted = centers - middle
    squares = np.einsum("ij,ij->i", shifted, shifted)
    labels = np.empty(len(X), dtype=np.int64)
    for start in range(0, len(X), 512):
        product = (X[start : start + 512] - middle) @ shifted.T
        labels[start : start + 512] = (squares - 2 * product).argmin(axis=1)
    return labels


def loops(n: int) -> dict[str, Any]:
    """Return microseconds a row of the loops and of what else could do their work."""
    metric = Metric(boxes=False)
    lines, raw = [], []
    # ruff: noqa: B023 - what is defined in a loop is called in its turn
    for d in (3, 20, 100):
        X = near_a_surface(n, d)
        for wanted in (100, 1000, 5000):
            low, high = 1e-3, 10.0
            for _ in range(14):
                middle = float(np.sqrt(low * high))
                count = len(online(X, middle, metric, most=2 * wanted)[0])
                low, high = (middle, high) if count > wanted else (low, middle)
            rows, _ = online(X, high, metric, most=2 * wanted)
            centers = X[rows]
            known, tree = Sorted.of(centers, metric), cKDTree(centers)
            works = (
                lambda: online(X, high, metric, most=2 * wanted),
                lambda: known.nearest(X, high),
                lambda: known.nearest(X),
                lambda: nearest_by_blas(X, centers),
                lambda: tree.query(X),
            )
            took = [1e6 * best(work).cpu / n for work in works]
            raw.append({"d": d, "r": len(rows), "microseconds": took})
            lines.append(common.printed([d, len(rows), *(f"{one:.2f}" for one in took)]))
    heads = ["d", "r", "online rule", "nearest within reach", "nearest", "by BLAS", "by k-d tree"]
    return common.part(heads, lines, raw, rows=n)


def foretold(n: int) -> dict[str, Any]:
    """Return what `build` does with diameters that are too small, and with one that it names."""
    X = common.gaussian(20)(n)
    options: dict[str, Any] = {"random_state": 0, "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoresetWarning)
        daskcoreset.build(X[:1000], method=daskcoreset.Coverage(8.0), **options)  # compiles
    daskcoreset.build(X, size=1000, **options)
    read = best(lambda: daskcoreset.build(X, size=1000, **options)).cpu
    lines, raw, named = [], [], 0.0
    for asked in (4.0, 8.0, None):
        diameter = named if asked is None else asked
        said, points = "", "refused"
        with common.timed() as clock:
            try:
                found = daskcoreset.build(X, method=daskcoreset.Coverage(diameter), **options)
                points = f"{len(found):,}"
            except InvalidInputError as error:
                said = str(error)
                named = float(re.findall(r"at about ([\d.]+) ", said)[0])
        seconds = f"{clock.wall:.2f}", f"{clock.cpu:.2f}", f"{clock.cpu / read:.1f}"
        row = [f"{diameter:g}{' (named)' if asked is None else ''}", points, *seconds, said or "-"]
        lines.append(common.printed(row))
        facts = {"diameter": diameter, "points": points, "said": said, "read_seconds": read}
        raw.append({**facts, "wall": clock.wall, "seconds": clock.cpu})
    heads = ["diameter", "core points", "seconds", "of the processor", "in reads", "error"]
    return common.part(heads, lines, raw, rows=n)


def report(data: dict[str, Any]) -> str:
    """Return the tables of the parts."""
    lines = ["# Covers"]
    if "covers" in data["parts"]:
        lines += common.part_lines(data["parts"]["covers"])
        explained = (
            f"Rows in {N_BLOCKS} blocks, Euclidean cells, features in [0, 1]. AVM: core points of "
            "one pass over all rows in order. A diameter with * was found for the number of core "
            "points, and is at most `bound` times the least possible one. The last column is the "
            "time over that of a lightweight coreset with one read. Nothing is drawn, so core "
            "points, bounds and reads have no intervals; seconds are those of one search, and "
            "upper bounds where other work ran beside it."
        )
        lines += [explained, ""]
    if "foretold" in data["parts"]:
        part = data["parts"]["foretold"]
        lines += ["## Foretold", *common.part_lines(part)]
        explained = (
            f'`build(X, method="coverage", diameter=...)` of {part["stamp"]["rows"]:,} standard '
            "normal rows of 20 columns, one block in memory: a look at a sample refuses what would "
            "take long or give too many core points, and names a diameter, which is tried last. "
            "The time over that of a lightweight coreset is that of the processor."
        )
        lines += [explained, ""]
    if "loops" in data["parts"]:
        part = data["parts"]["loops"]
        rows = part["stamp"]["rows"]
        lines += ["## Loops", *common.part_lines(part)]
        lines += [f"Microseconds a row of one processor; one block of {rows:,} rows.", ""]
    return "\n".join(lines)


def main() -> None:
    """Measure, print and write."""
    parser = common.arguments(__doc__, tuple(SETS))
    parser.add_argument("--rows", type=int, default=40_000, help="of the blocks for the loops")
    parser.add_argument("--parts", nargs="+", default=["covers", "foretold", "loops"])
    parser.add_argument("--many", type=int, default=1_000_000, help="rows that are too many")
    args = parser.parse_args()
    parts = common.read_parts(NAME, args.out)
    if "covers" in args.parts:
        rows: list[Sequence[Any]] = []
        raw: list[dict[str, Any]] = []
        for name in common.loadable(args.sets):
            lines, facts = covers(name)
            rows, raw = rows + lines, raw + facts
        heads = ["set", "diameter", "strategy", "core points", "AVM", "bound", "reads"]
        parts["covers"] = common.part([*heads, "seconds", "in reads"], rows, raw)
    if "foretold" in args.parts:
        parts["foretold"] = foretold(args.many)
    if "loops" in args.parts:
        parts["loops"] = loops(args.rows)
    known = {name: parts[name] for name in ("covers", "foretold", "loops") if name in parts}
    common.write(NAME, {"stamp": common.stamp(), "parts": known}, args.out, report)


if __name__ == "__main__":
    main()
