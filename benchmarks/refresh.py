"""Views that stay fresh: bytes read after an append, histories with kills, and the error of a view.

Three parts, each of which can be left out:

- ``bytes``: a Zarr array, a folder of Parquet files, a branch of Icechunk and a Delta table of 100
  parts grow by one per cent; what a refresh reads, counted by a store that wraps the array, or by
  the sizes of the files that are opened.
- ``histories``: random appends, overwrites, insertions and deletions, with kills at any call that
  changes files, each compared with a view that is made from the source as it is.
- ``error``: root mean square of the relative error of the costs of twelve solutions, of a view of
  50 leaves that came in five steps, against a direct build of the same size.

    DASKCORESET_DATA=... PYTHONPATH=. python benchmarks/refresh.py
    PYTHONPATH=. python benchmarks/refresh.py --parts bytes

Results are printed as Markdown and written to ``results/refresh.md``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import common
import numpy as np
import zarr
from sklearn.cluster import KMeans
from zarr.storage import LocalStore, WrapperStore

import daskcoreset
from daskcoreset import CoresetTree
from daskcoreset.datasets import load
from daskcoreset.metrics.costs import kmeans_cost

SETS = ("cod_rna", "skin", "ijcnn1", "htru2", "magic04", "covtype")
N_LEAVES = 50


# --- bytes ---------------------------------------------------------------------------------


class Counting(WrapperStore[Any]):
    """A store that counts the bytes that are read of it."""

    read = 0

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
        """Read, and count."""
        found = await self._store.get(key, prototype, byte_range)
        Counting.read += 0 if found is None else len(found)
        return found


@contextmanager
def opened_files() -> Iterator[list[str]]:
    """Collect the Parquet files whose row groups are read."""
    from daskcoreset.inputs.parquet import _RowGroup

    found: list[str] = []
    read = _RowGroup._read  # noqa: SLF001 - what opens a file

    def noted(self: Any, *args: Any) -> Any:
        found.append(self.path)
        return read(self, *args)

    with mock.patch.object(_RowGroup, "_read", noted):
        yield found


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
    """Return the same of a folder of Parquet files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def write(i: int) -> None:
        columns = {f"c{j}": column for j, column in enumerate(rows_of(1000 + i).T)}
        pq.write_table(pa.table(columns), folder / f"part.{i}.parquet")

    for i in range(100):
        write(i)
    tree = CoresetTree.follow(folder, view, size=200, random_state=0)
    write(100)
    with opened_files() as files:
        tree.refresh()
    stored = sum(file.stat().st_size for file in folder.glob("*.parquet"))
    return sum(Path(file).stat().st_size for file in set(files)), stored


def delta_bytes(folder: Path, view: Path) -> tuple[int, int]:
    """Return the same of a Delta table."""
    import deltalake
    import pyarrow as pa

    def write(i: int) -> None:
        columns = {f"c{j}": column for j, column in enumerate(rows_of(1000 + i).T)}
        deltalake.write_deltalake(str(folder), pa.table(columns), mode="append")

    for i in range(100):
        write(i)
    tree = CoresetTree.follow(folder, view, size=200, random_state=0)
    write(100)
    with opened_files() as files:
        tree.refresh()
    stored = sum(file.stat().st_size for file in folder.glob("*.parquet"))
    return sum(Path(file).stat().st_size for file in set(files)), stored


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


def bytes_table(home: Path) -> str:
    """Return what a refresh reads after an append of one per cent."""
    kinds = {
        "Zarr array": zarr_bytes,
        "Parquet folder": parquet_bytes,
        "Delta table": delta_bytes,
        "Icechunk branch, rows once decoded": icechunk_bytes,
    }
    rows = []
    for name, measure in kinds.items():
        folder = home / name.partition(" ")[0]
        folder.mkdir()
        read, stored = measure(folder, home / f"{folder.name}-view")
        assert read <= 0.011 * stored, f"{name}: {read} of {stored} bytes"
        rows.append(
            common.printed([name, f"{read:,}", f"{stored:,}", f"{100 * read / stored:.2f}"])
        )
    heads = ["source of 100 parts, and one more", "bytes read", "bytes there", "%"]
    return "\n".join(["## Bytes", "", *common.table(heads, rows)])


# --- histories -----------------------------------------------------------------------------


def histories(home: Path, count: int) -> str:
    """Run random histories, each of which ends right or raises."""
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from tests.tools.view_histories import run_history

    seen: Counter[str] = Counter()
    for seed in range(count):
        seen += run_history(home, 1000 + seed, ("array", "files")[seed % 2])
    counts = [(name, f"{number:,}") for name, number in seen.most_common()]
    text = f"{count} random histories of arrays and of files, with kills, ended with the bits of a "
    lines = [text + "view made from the source as it was in the end. What happened in them:", ""]
    return "\n".join(["## Histories", "", *lines, *common.table(["what", "times"], counts)])


# --- error ---------------------------------------------------------------------------------


def solutions_of(X: np.ndarray, k: int) -> list[np.ndarray]:
    """Return random rows, and k-means on small samples."""
    rng = np.random.default_rng(0)
    found = [X[rng.choice(len(X), k, replace=False)].astype(float) for _ in range(6)]
    for seed in range(6):
        few = X[rng.choice(len(X), min(len(X), 2000), replace=False)]
        found.append(KMeans(k, n_init=1, max_iter=5, random_state=seed).fit(few).cluster_centers_)
    return found


def view_of(X: np.ndarray, size: int, seed: int) -> daskcoreset.Coreset:
    """Return the coreset of a view of rows that came in five steps."""
    from obstore.store import MemoryStore as Memory
    from zarr.storage import MemoryStore, ObjectStore

    chunk = -(-len(X) // N_LEAVES)
    array = zarr.create_array(
        MemoryStore(), shape=(0, X.shape[1]), chunks=(chunk, X.shape[1]), dtype=X.dtype
    )
    tree = None
    for stop in np.linspace(0, len(X), 6).astype(int)[1:]:
        start = array.shape[0]
        array.resize((int(stop), X.shape[1]))
        array[start:] = X[start:stop]
        if tree is None:
            place = ObjectStore(Memory())
            tree = CoresetTree.follow(array, place, size=size, random_state=seed)
        else:
            tree.refresh()
    assert tree is not None
    return tree.coreset()


def error_table(sets: Sequence[str], size: int, k: int, seeds: int) -> str:
    """Return the error of views against that of direct builds."""
    rows = []
    for name in sets:
        X = np.ascontiguousarray(np.asarray(load(name).X)[:100_000], dtype=np.float32)
        solutions = solutions_of(X, k)
        full = np.asarray(kmeans_cost(X, solutions))
        squares: dict[str, list[float]] = {"view": [], "direct": []}
        for seed in range(seeds):
            made = {
                "view": view_of(X, size, seed),
                "direct": daskcoreset.build(X, size=size, random_state=seed),
            }
            for form, coreset in made.items():
                costs = np.asarray(kmeans_cost(coreset.points, solutions, coreset.weights))
                squares[form].append(float(np.mean((costs / full - 1.0) ** 2)))
        view, direct = (float(np.sqrt(np.mean(squares[form]))) for form in ("view", "direct"))
        rows.append(
            common.printed(
                [
                    name,
                    f"{len(X):,}",
                    common.cell(direct),
                    common.cell(view),
                    f"{view / direct:.2f}",
                ]
            )
        )
    text = f"Size {size}, k = {k}, {seeds} seeds, {N_LEAVES} leaves that came in five steps."
    heads = ["data", "rows", "direct build, %", "view, %", "ratio"]
    return "\n".join(["## Error", "", text, "", *common.table(heads, rows)])


def main() -> None:
    """Run the parts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--parts", nargs="+", default=["bytes", "histories", "error"])
    parser.add_argument("--histories", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--clusters", type=int, default=10)
    parser.add_argument("--out", type=Path, default=common.RESULTS)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    memory = Path("/dev/shm")  # noqa: S108 - crashes are simulated, and all of it is removed
    texts = []
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        home = Path(folder)
        if "bytes" in args.parts:
            texts.append(bytes_table(home))
        if "histories" in args.parts:
            texts.append(histories(home, args.histories))
        if "error" in args.parts:
            texts.append(error_table(args.sets, args.size, args.clusters, args.seeds))
    data = {"text": "\n\n".join(texts), "stamp": common.stamp()}
    common.write("refresh", data, args.out, report)


def report(data: dict[str, Any]) -> str:
    """Return the tables."""
    return f"# Views that stay fresh\n\n{common.stamped(data)}\n\n{data['text']}\n"


if __name__ == "__main__":
    main()
