"""Covers: core points, reads and seconds, of a diameter and of a number of core points.

    DASKCORESET_DATA=... python benchmarks/covers.py

Features are scaled to [0, 1]. Seconds are also given as a multiple of one read of the data, here
one lightweight coreset with one read. AVM is one pass over all rows in order.

Results are written to ``results/covers.json`` and ``results/covers.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import common
import numpy as np
from sets import load

import daskcoreset
from daskcoreset.constructions.coverage.reads import cover, online
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
    read = best(lambda: daskcoreset.build(X, size=1000, chunks=chunks, random_state=0)).cpu
    lines, raw = [], []
    asked: list[dict[str, Any]] = [{"diameter": value} for value in SETS[name]]
    asked += [{"max_points": 100}, {"max_points": 1000}]
    for options in asked:
        plain = "-"
        if "diameter" in options:
            rows, _ = online(X, options["diameter"] / 2, max_points=20_000)
            plain = f"{len(rows):,}"
        with common.timed() as clock:
            found = cover(blocks, **options)
        bound = found.diameter / found.least_diameter if found.least_diameter else None
        line = [
            f"{name} ({len(X):,} x {X.shape[1]})",
            f"{found.diameter:.3f}{' *' if bound else ''}",
            f"{len(found):,}",
            plain,
            "-" if bound is None else f"{bound:.2f}",
            str(found.reads),
            f"{clock.cpu:.2f}",
            f"{clock.cpu / read:.0f}",
        ]
        lines.append(common.printed(line))
        facts = {"set": name, "diameter": found.diameter, "bound": bound, "points": len(found)}
        raw.append({**facts, "reads": found.reads, "seconds": clock.cpu, "read_seconds": read})
    return lines, raw


def report(data: dict[str, Any]) -> str:
    """Return the tables of the parts."""
    lines = ["# Covers"]
    lines += common.part_lines(data["parts"]["covers"])
    explained = (
        f"Rows in {N_BLOCKS} blocks, features in [0, 1]. AVM: core points of "
        "one pass over all rows in order. A diameter with * was found for the number of core "
        "points, and is at most `bound` times the least possible one. The last column is the "
        "time over that of a lightweight coreset with one read. Nothing is drawn, so core "
        "points, bounds and reads have no intervals. Seconds are those of the processor."
    )
    lines += [explained, ""]
    return "\n".join(lines)


def main() -> None:
    """Measure, print and write."""
    args = common.arguments(__doc__, tuple(SETS)).parse_args()
    rows: list[Sequence[Any]] = []
    raw: list[dict[str, Any]] = []
    for name in common.loadable(args.sets):
        lines, facts = covers(name)
        rows, raw = rows + lines, raw + facts
    heads = ["set", "diameter", "core points", "AVM", "bound", "reads", "seconds", "in reads"]
    parts = {"covers": common.part(heads, rows, raw)}
    common.write(NAME, {"stamp": common.stamp(), "parts": parts}, args.out, report)


if __name__ == "__main__":
    main()
