"""Kernel machines on many rows: time of an epoch in reads of the data, and peak memory.

Writes rows of 20 columns and their labels to a scratch Zarr store, trains `CoresetKernelClassifier`
on it by two solvers, and compares an epoch with a read that only adds all numbers up.

    python benchmarks/table2_scale.py --rows 10000000
"""

from __future__ import annotations

import os
import tempfile
from operator import add
from pathlib import Path
from typing import Any

import common
import dask
import numpy as np
import zarr

from daskcoreset.core.blocks import Block
from daskcoreset.estimators import CoresetKernelClassifier
from daskcoreset.execution.engine import map_reduce
from daskcoreset.inputs.blocks import row_blocks

D, BLOCK = 20, 400_000


def write(folder: Path, n: int) -> tuple[Any, Any]:
    """Write rows in [0, 1], and labels that a ball about one of eight centers decides."""
    centers = np.random.default_rng(0).random((8, 4))
    shapes = {"X": ((n, D), np.float32), "y": ((n,), np.int8)}
    X, y = (
        zarr.create_array(
            folder / name, shape=shape, chunks=(BLOCK, *shape[1:]), dtype=dtype, compressors=None
        )
        for name, (shape, dtype) in shapes.items()
    )
    for start in range(0, n, BLOCK):
        rng = np.random.default_rng([1, start])
        rows = rng.random((min(BLOCK, n - start), D), dtype=np.float32)
        rows[:, 4:] *= 0.2  # most of the distance is in the columns that count
        gaps = ((rows[:, np.newaxis, :4] - centers) ** 2).sum(axis=2).min(axis=1)
        X[start : start + len(rows)] = rows
        y[start : start + len(rows)] = gaps < 0.12
    return X, y


def total(block: Block, _index: int, _broadcast: object) -> float:
    """Add all numbers of a block up."""
    return float(block.points.sum(dtype=np.float64))


def main() -> None:
    """Run the benchmark."""
    parser = common.arguments(__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=None, help="where the rows are written")
    args = parser.parse_args()
    options = {"lam": 2048.0, "gamma": 4.0, "max_points": args.points, "random_state": 0}
    with (
        tempfile.TemporaryDirectory(dir=args.folder) as folder,
        dask.config.set(scheduler="threads", num_workers=args.threads),
    ):
        X, y = write(Path(folder), args.rows)
        CoresetKernelClassifier(**options).fit(X[:20_000], y[:20_000])  # compiles
        first = common.high_water() / 1e6
        with common.timed() as clock:
            map_reduce(row_blocks(X), total, add)
        read = clock.wall
        found: dict[str, Any] = {"rows": args.rows, "columns": D, "points": args.points}
        found |= {"threads": args.threads, "read": read, "peak_before": first, "solvers": {}}
        solvers: tuple[Any, ...] = ("newton", "csvrg")
        for label in solvers:
            model = CoresetKernelClassifier("drawn", label, **options)
            with common.timed() as clock:
                model.fit(X, y)
            seconds = np.diff([0.0, *(entry["seconds"] for entry in model.trace_)])
            found["solvers"][label] = {
                "fit": clock.wall,
                "epochs": seconds.tolist(),
                "reads": model.trace_[-1]["reads"],
                "peak": common.high_water() / 1e6,
                "objectives": [entry["objective"] for entry in model.trace_],
                "accuracy": model.score(X[:BLOCK], y[:BLOCK]),
            }
    lines = [
        f"{args.rows:,} x {D} float32, {args.points} core points, {args.threads} threads:",
        f"a plain read takes {read:.2f} s, and the process {first:.0f} MB before.",
        "",
    ]
    rows = []
    for solver, facts in found["solvers"].items():
        epoch = float(np.median(facts["epochs"][1:] or facts["epochs"]))
        # Those of drawn rows are none of the data.
        reads = [str(facts["reads"]), f"{epoch:.2f}", f"{epoch / read:.1f}"]
        cells = [
            solver,
            f"{facts['fit']:.1f}",
            f"{facts['fit'] / read:.1f}",
            *(["-"] * 3 if solver == "newton" else reads),
            f"{facts['peak']:.0f}",
            f"{100 * facts['accuracy']:.2f}",
        ]
        rows.append(cells)
    heads = ["solver", "fit s", "in reads", "training reads", "s each", "in reads"]
    lines += common.table([*heads, "peak MB", "accuracy %"], rows)
    text = "\n".join(lines) + "\n"
    common.write("table2_scale", found, args.out, lambda _: text)
    print(text)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
