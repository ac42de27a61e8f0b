"""Seconds from points of a coreset to their rows in a store of some gigabytes.

The coreset is loaded from a store of its own and knows the data by their path alone. Chunks of the
data have 32 MB, as those of a store of any size have: what is read are the chunks of the rows.

    python benchmarks/source_rows.py [--rows 40000000] [--turns 5]

Results are written to ``results/source_rows.json`` and ``results/source_rows.md``.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import common
import numpy as np
import zarr

from daskcoreset import Coreset, build

NAME = "source_rows"
COLUMNS, CHUNK = 25, 320_000
COUNTS = (1, 10, 100)


def measured(folder: Path, rows: int, turns: int, compressors: Any) -> list[float]:
    """Write a store, draw a coreset, and read rows of the data back; return median seconds."""
    shape, chunks = (rows, COLUMNS), (CHUNK, COLUMNS)
    store = zarr.create_array(
        folder / "X.zarr", shape=shape, chunks=chunks, dtype="f4", compressors=compressors
    )
    block = np.random.default_rng(0).normal(size=chunks).astype("f4")
    for start in range(0, rows, CHUNK):
        store[start : start + CHUNK] = block[: rows - start]
    drawn = build(str(folder / "X.zarr"), size=4000, method="uniform", random_state=0)
    drawn.to_zarr(folder / "coreset.zarr")
    coreset = Coreset.from_zarr(folder / "coreset.zarr")
    rng, seconds = np.random.default_rng(1), []
    for count in COUNTS:
        times = []
        for _ in range(turns):
            points = rng.choice(len(coreset), count, replace=False)
            start = time.perf_counter()
            found = coreset.source_rows(points)
            times.append(time.perf_counter() - start)
            np.testing.assert_array_equal(found, coreset.points[points])
        seconds.append(float(np.median(times)))
    return seconds


def report(data: dict[str, Any]) -> str:
    """Return the table of the results."""
    heads = ("chunks", *(f"{common.counted([count], 'row')}, s" for count in COUNTS))
    rows = [(kind, *(f"{x:.3f}" for x in found)) for kind, found in data["results"].items()]
    words = (
        f"Rows of a coreset read back from a Zarr store of {data['rows']:,} x {COLUMNS} float32, "
        f"{data['rows'] * COLUMNS * 4 / 1e9:.1f} GB in chunks of 32 MB: medians of "
        f"{data['turns']} turns."
    )
    return "\n".join([words, "", *common.table(heads, rows), "", common.stamped(data), ""])


def main() -> None:
    """Measure chunks as they lie, and compressed ones."""
    parser = common.arguments(__doc__)
    parser.add_argument("--rows", type=int, default=40_000_000)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    results = {}
    for kind, compressors in (("uncompressed", None), ("zstd, the default of Zarr", "auto")):
        with tempfile.TemporaryDirectory() as folder:
            results[kind] = measured(Path(folder), options.rows, options.turns, compressors)
    data = {"rows": options.rows, "turns": options.turns, "results": results}
    common.write(NAME, {"stamp": common.stamp(), **data}, options.out, report)


if __name__ == "__main__":
    main()
