"""Views that stay fresh: the bytes that a refresh reads after an append of one per cent.

A Zarr array, a folder of Parquet files and a branch of Icechunk, each of 100 parts, get one more.
Bytes of the Zarr array are counted by a store that wraps it, those of the others are those of the
rows, once decoded, as the refresh reports them.

    python benchmarks/refresh.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import common
import numpy as np
import zarr
from zarr.storage import LocalStore, WrapperStore

from daskcoreset import CoresetTree

NAME = "refresh"


class Counting(WrapperStore[Any]):
    """A store that counts the bytes that are read of it."""

    read = 0

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
        """Read, and count."""
        found = await self._store.get(key, prototype, byte_range)
        Counting.read += 0 if found is None else len(found)
        return found


def rows_of(n: int) -> np.ndarray:
    """Return rows that no codec makes small."""
    return np.random.default_rng(n).standard_normal((n, 10))


def zarr_bytes(folder: Path, view: Path) -> tuple[int, int]:
    """Bytes that were read of an array that has grown, and its bytes."""
    store = LocalStore(folder / "rows.zarr")
    array = zarr.create_array(store, shape=(100_000, 10), chunks=(1000, 10), dtype="f8")
    array[:] = rows_of(100_000)
    tree = CoresetTree.follow(Counting(store), view, size=200, random_state=0)
    array.resize((101_000, 10))
    array[100_000:] = rows_of(1000)
    Counting.read = 0
    tree.refresh()
    stored = sum(file.stat().st_size for file in (folder / "rows.zarr").rglob("*"))
    return Counting.read, stored


def parquet_bytes(folder: Path, view: Path) -> tuple[int, int]:
    """Return the same, in rows once decoded, of a folder of Parquet files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def write(i: int) -> None:
        columns = {f"c{j}": column for j, column in enumerate(rows_of(1000 + i).T)}
        pq.write_table(pa.table(columns), folder / f"part.{i}.parquet")

    for i in range(100):
        write(i)
    tree = CoresetTree.follow(folder, view, size=200, random_state=0)
    write(100)
    return tree.refresh().nbytes, 8 * 10 * sum(1000 + i for i in range(101))


def icechunk_bytes(folder: Path, view: Path) -> tuple[int, int]:
    """Return the same, in rows once decoded, of a branch of Icechunk."""
    import icechunk

    del folder
    repository = icechunk.Repository.create(icechunk.in_memory_storage())
    session = repository.writable_session("main")
    array = zarr.create_array(
        session.store, name="X", shape=(100_000, 10), chunks=(1000, 10), dtype="f8"
    )
    array[:] = rows_of(100_000)
    session.commit("rows")
    tree = CoresetTree.follow(repository, view, size=200, random_state=0)
    session = repository.writable_session("main")
    array = zarr.open_array(session.store, path="X")
    array.resize((101_000, 10))
    array[100_000:] = rows_of(1000)
    session.commit("more rows")
    return tree.refresh().nbytes, array.nbytes


KINDS = {
    "Zarr array": zarr_bytes,
    "Parquet folder, rows once decoded": parquet_bytes,
    "Icechunk branch, rows once decoded": icechunk_bytes,
}


def main() -> None:
    """Run the benchmark."""
    args = common.arguments(__doc__).parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, measure in KINDS.items():
            home = Path(folder, name.partition(" ")[0])
            home.mkdir()
            read, stored = measure(home, home.with_suffix(".view"))
            assert read <= 0.011 * stored, f"{name}: {read} of {stored} bytes"
            results[name] = common.printed([read, stored])
    common.write(NAME, {"stamp": common.stamp(), "results": results}, args.out)


if __name__ == "__main__":
    main()
