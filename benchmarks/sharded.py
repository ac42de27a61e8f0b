"""Builds of sharded Zarr stores against a plain read by zarrs, in pairs.

A sharded store of float32 rows (20 columns, zstd) is written. Three things are timed in turns on
the threads scheduler: a plain read of all blocks by zarrs, a build that decodes by zarrs, and a
build by Zarr's own pipeline. Ratios are medians over the turns, each against the plain read of its
own turn. That both builds give the same bits is asserted.

    python benchmarks/sharded.py --rows 10000000
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import common
import dask
import dask.array as da
import numpy as np
import zarr

import daskcoreset

COLUMNS = 20
CHUNK_ROWS, SHARD_ROWS = 10_000, 200_000  # 0.8 and 16 MB
SIZE = 10_000
JOBS = ("plain read by zarrs", "build", "build by Zarr's own pipeline")


def write_shards(path: Path, n_rows: int) -> None:
    """Write the store, shard by shard."""
    draw = common.mixture(COLUMNS)
    shape = {"shape": (n_rows, COLUMNS), "shards": (SHARD_ROWS, COLUMNS)}
    array = zarr.create_array(
        path,
        **shape,
        chunks=(CHUNK_ROWS, COLUMNS),
        dtype="float32",
        compressors=zarr.codecs.ZstdCodec(level=3),
    )
    for start in range(0, n_rows, SHARD_ROWS):
        stop = min(start + SHARD_ROWS, n_rows)
        array[start:stop] = draw(stop - start)


def plain_read(path: Path) -> None:
    """Read every shard once, by zarrs, and add it up."""
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
        array = zarr.open_array(path, mode="r")
    rows = da.from_zarr(array, chunks=array.shards)
    rows.sum(axis=0).compute()


def build(path: Path, *, own: bool) -> Any:
    """Build a coreset, by Zarr's own pipeline or by zarrs."""
    hidden = {"zarrs": None} if own else {}
    with mock.patch.dict(sys.modules, hidden):
        return daskcoreset.build(path, size=SIZE, random_state=0, progress=False)


def measure(path: Path, turns: int) -> dict[str, list[float]]:
    """Time the jobs in turns; the first turn warms up and does not count."""
    times: dict[str, list[float]] = {name: [] for name in JOBS}
    made = {}
    for turn in range(turns + 1):
        for name in JOBS:
            with common.timed() as clock:
                if name == JOBS[0]:
                    plain_read(path)
                else:
                    made[name] = build(path, own=name == JOBS[2])
            if turn:
                times[name].append(clock.wall)
    first, second = made.values()
    assert first.equals(second), "the pipelines give other bits"
    return times


def report(data: dict[str, Any]) -> str:
    """Return the table."""
    settings = data["stamp"]
    rows = []
    plain = np.array(data["results"][JOBS[0]])
    for name, seconds in data["results"].items():
        ratios = np.array(seconds) / plain
        low, high = np.quantile(ratios, [0.25, 0.75])
        rows.append(
            [
                name,
                f"{np.median(seconds):.2f} s",
                f"{np.median(ratios):.2f}",
                f"{low:.2f}-{high:.2f}",
            ]
        )
    head = (
        f"{settings['rows']:,} rows of {COLUMNS} columns, float32, zstd, shards of "
        f"{SHARD_ROWS:,} rows in chunks of {CHUNK_ROWS:,}; {settings['turns']} turns; "
        f"decoded by {settings['decoder']}, zarr {settings['zarr']}."
    )
    heads = ["job", "median time", "ratio to the plain read", "quartiles"]
    return "\n".join(
        [
            head,
            "",
            *common.table(heads, rows),
            "",
            common.stamped(data),
            "",
        ]
    )


def main() -> None:
    """Run the benchmark."""
    parser = common.arguments(__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--folder", type=Path, help="where the store goes; removed afterwards")
    args = parser.parse_args()
    with (
        dask.config.set(scheduler="threads"),
        tempfile.TemporaryDirectory(dir=args.folder) as folder,
    ):
        path = Path(folder) / "sharded.zarr"
        write_shards(path, args.rows)
        decoder = daskcoreset.plan(path, size=SIZE).forecast.decoder
        results = measure(path, args.turns)
    stamp = common.stamp(rows=args.rows, turns=args.turns, decoder=decoder, zarr=zarr.__version__)
    data = {"stamp": stamp, "results": results}
    common.write("sharded", data, args.out, report)
    print(report(data))


if __name__ == "__main__":
    main()
