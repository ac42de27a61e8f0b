"""Seconds of a build against the fastest plain decode of the same bytes.

10 million rows of float32 (20 columns) lie in Zarr, with the default codec, uncompressed and in
shards, and in Parquet. Libraries that decode them (zarrs, tensorstore, Zarr, pyarrow) read block
by block on as many threads as there are processors, and drop what they have read. Beside them run
Dask's plain sum of the columns and ``build``, also for ten clusters. All jobs of a store run in
turns. A ratio is that of the seconds of one turn, by the wall clock or by the processors.

    python benchmarks/readers.py
    python benchmarks/readers.py --rows 1_000_000 --turns 3

Libraries that are not installed are left out, and named. The extra `bench` installs them.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import common
import dask
import dask.array as da
import numpy as np
import zarr
from throughput import by_both_clocks

import daskcoreset

NAME = "readers"
COLUMNS, CHUNK_ROWS, SIZE, CLUSTERS = 20, 200_000, 10_000, 10
THREADS = os.cpu_count() or 1
LAYOUTS: dict[str, dict[str, Any]] = {
    "zarr": {"chunks": (CHUNK_ROWS, COLUMNS)},
    "zarr, uncompressed": {"chunks": (CHUNK_ROWS, COLUMNS), "compressors": None},
    "zarr, sharded": {"chunks": (CHUNK_ROWS // 10, COLUMNS), "shards": (CHUNK_ROWS, COLUMNS)},
}
OURS = ("sum", "build", "build for clusters")
PACKAGES = ("zarrs", "tensorstore", "zarr", "pyarrow")


def write_stores(folder: Path, n_rows: int) -> None:
    """Write the same rows to all stores, block by block."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    shape = (n_rows, COLUMNS)
    arrays = [
        zarr.create_array(folder / name, shape=shape, dtype="f4", **layout)
        for name, layout in LAYOUTS.items()
    ]
    draw = common.mixture(COLUMNS)
    schema = pa.schema([(f"x{j}", pa.float32()) for j in range(COLUMNS)])
    with pq.ParquetWriter(folder / "rows.parquet", schema) as writer:
        for start in range(0, n_rows, CHUNK_ROWS):
            rows = draw(min(CHUNK_ROWS, n_rows - start))
            for array in arrays:
                array[start : start + len(rows)] = rows
            writer.write_table(pa.table(list(rows.T), schema=schema))


def in_threads(read: Callable[[int], object], numbers: range) -> None:
    """Call `read` with every number, on all processors, and drop what it returns."""

    def drop(number: int) -> None:
        read(number)

    with ThreadPoolExecutor(THREADS) as pool:
        for _ in pool.map(drop, numbers):
            pass


def by_zarr(path: str, pipeline: str) -> None:
    """Decode every block by a pipeline of Zarr."""
    with zarr.config.set({"codec_pipeline.path": pipeline, "threading.max_workers": THREADS}):
        array = zarr.open_array(path, mode="r")
    in_threads(lambda i: array[i : i + CHUNK_ROWS], range(0, array.shape[0], CHUNK_ROWS))


def by_tensorstore(path: str) -> None:
    """Decode every block by tensorstore."""
    import tensorstore

    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": path}}
    limit = {"data_copy_concurrency": {"limit": THREADS}}
    array = tensorstore.open({**spec, "context": limit}).result()
    blocks = range(0, array.shape[0], CHUNK_ROWS)
    in_threads(lambda i: array[i : i + CHUNK_ROWS].read().result(), blocks)


def by_scanner(path: str) -> None:
    """Decode the file by the scanner of pyarrow."""
    import pyarrow.dataset as ds

    for _ in ds.dataset(path, format="parquet").scanner(batch_size=CHUNK_ROWS).to_batches():
        pass


def by_row_groups(path: str) -> None:
    """Decode every row group by pyarrow."""
    import pyarrow.parquet as pq

    def read(number: int) -> object:
        return pq.ParquetFile(path).read_row_group(number, use_threads=False)

    in_threads(read, range(pq.ParquetFile(path).num_row_groups))


def plain_sum(path: str) -> None:
    """Add up the columns by Dask."""
    if path.endswith(".parquet"):
        import dask.dataframe as dd

        dd.read_parquet(path).sum().compute()
    else:
        da.from_zarr(path).sum(axis=0).compute()


def jobs(path: str) -> dict[str, Callable[[], object]]:
    """Return the jobs of a store, by the name of the library that reads."""
    if path.endswith(".parquet"):
        readers: dict[str, Any] = {
            "pyarrow, scanner": by_scanner,
            "pyarrow, row groups": by_row_groups,
        }
    else:
        own = zarr.config.get("codec_pipeline.path")
        readers = {
            "zarrs": partial(by_zarr, pipeline="zarrs.ZarrsCodecPipeline"),
            "tensorstore": by_tensorstore,
            "zarr": partial(by_zarr, pipeline=own),
        }
    found = {name: partial(read, path) for name, read in readers.items() if installed(name)}
    found["sum"] = partial(plain_sum, path)
    found["build"] = partial(daskcoreset.build, path, size=SIZE, random_state=0)
    found["build for clusters"] = partial(found["build"], n_clusters=CLUSTERS)
    return found


def installed(name: str) -> bool:
    """Whether the library of a reader is installed."""
    return importlib.util.find_spec(name.partition(",")[0]) is not None


def compare(path: Path, turns: int) -> dict[str, Any]:
    """Time the jobs of a store in turns, and compare each with the fastest reader."""
    times = by_both_clocks(jobs(str(path)), turns)
    seconds = {name: np.median(found, axis=0).tolist() for name, found in times.items()}
    readers = [name for name in times if name not in OURS]
    fastest = min(readers, key=lambda name: seconds[name][0])
    ratios = {name: (found / times[fastest]).tolist() for name, found in times.items()}
    decoder = daskcoreset.plan(str(path), size=SIZE).forecast.decoder
    for name, found in seconds.items():
        ratio = np.median(ratios[name], axis=0)
        common.printed([path.name, name, *np.round([*found, *ratio], 3)])
    return {
        "store": path.name,
        "decoder": decoder,
        "fastest": fastest,
        "seconds": seconds,
        "ratios": ratios,
    }


def main() -> None:
    """Run the benchmark."""
    parser = common.arguments(__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--folder", type=Path, help="where the stores go; removed afterwards")
    args = parser.parse_args()
    if missing := [name for name in PACKAGES if not installed(name)]:
        print(f"{', '.join(missing)}: not installed and left out; the extra bench has them")
    with (
        dask.config.set(scheduler="threads"),
        tempfile.TemporaryDirectory(dir=args.folder) as folder,
    ):
        write_stores(Path(folder), args.rows)
        stores = [Path(folder) / name for name in (*LAYOUTS, "rows.parquet")]
        results = [compare(store, args.turns) for store in stores]
    versions = {name: version(name) for name in PACKAGES if installed(name)}
    stamp = common.stamp(rows=args.rows, turns=args.turns, readers=versions, missing=missing)
    common.write(NAME, {"stamp": stamp, "results": results}, args.out)


if __name__ == "__main__":
    main()
