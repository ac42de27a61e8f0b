"""Views that stay fresh: bytes read after an append, histories with kills, and the error of a view.

Three parts, each of which can be left out:

- ``bytes``: a Zarr array, a folder of Parquet files, and a branch of Icechunk of 100
  parts grow by one per cent; what a refresh reads, counted by a store that wraps the array, or by
  the sizes of the files that are opened.
- ``histories``: random appends, overwrites, insertions and deletions, with kills at any call that
  changes files, each compared with a view that is made from the source as it is.
- ``error``: root mean square of the relative error of the costs of twelve solutions, of a view of
  50 leaves that came in five steps, against a direct build of the same size. A few dozen seeds do
  not tell 0.7 from 1.7: the cost of a random solution hangs on a few rows, and so does its error.

    DASKCORESET_DATA=... PYTHONPATH=. python benchmarks/refresh.py
    PYTHONPATH=. python benchmarks/refresh.py --parts bytes

Results are printed as Markdown and written to ``results/refresh.md``; parts that are left out stay
there as they are.
"""

from __future__ import annotations

import argparse
import json
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
from sets import load
from sklearn.cluster import KMeans
from zarr.storage import LocalStore, MemoryStore, WrapperStore

import daskcoreset
from daskcoreset import CoresetTree
from daskcoreset.metrics.costs import kmeans_cost
from tests.acceptance.tools.view_histories import run_history
from tests.tools.light_groups import light_groups

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


def view_of(X: np.ndarray, size: int, seed: int, home: Path) -> daskcoreset.Coreset:
    """Return the coreset of a view of rows that came in five steps."""
    chunk = -(-len(X) // N_LEAVES)
    array = zarr.create_array(
        MemoryStore(), shape=(0, X.shape[1]), chunks=(chunk, X.shape[1]), dtype=X.dtype
    )
    tree = None
    with light_groups(), tempfile.TemporaryDirectory(dir=home) as folder:  # the bits of real ones
        for stop in np.linspace(0, len(X), 6).astype(int)[1:]:
            start = array.shape[0]
            array.resize((int(stop), X.shape[1]))
            array[start:] = X[start:stop]
            if tree is None:
                path = Path(folder) / "view"
                tree = CoresetTree.follow(array, path, size=size, random_state=seed)
            else:
                tree.refresh()
        assert tree is not None
        return tree.coreset()


def error_row(name: str, size: int, k: int, seeds: int, home: Path) -> list[object]:
    """Return rows of a set, the errors of both, and their ratio with an interval."""
    X = np.ascontiguousarray(np.asarray(load(name).X)[:100_000], dtype=np.float32)
    solutions = solutions_of(X, k)
    full = np.asarray(kmeans_cost(X, solutions))

    def squared(coreset: daskcoreset.Coreset) -> float:
        costs = np.asarray(kmeans_cost(coreset.points, solutions, coreset.weights))
        return float(np.mean((costs / full - 1.0) ** 2))

    # Direct builds take a tenth of the time: of them there are more.
    builds = (daskcoreset.build(X, size=size, random_state=seed) for seed in range(4 * seeds))
    direct = np.array([squared(build) for build in builds])
    view = np.array([squared(view_of(X, size, seed, home)) for seed in range(seeds)])
    rng = np.random.default_rng(0)
    means = [
        [np.mean(rng.choice(squares, len(squares))) for _ in range(2000)]
        for squares in (view, direct)
    ]
    low, high = np.quantile(np.sqrt(np.divide(*means)), [0.025, 0.975])
    ratio = np.sqrt(view.mean() / direct.mean())
    errors = [f"{100 * np.sqrt(squares.mean()):.3f}" for squares in (direct, view)]
    return [name, f"{len(X):,}", *errors, f"{ratio:.2f}", f"{low:.2f} - {high:.2f}"]


def error_table(sets: Sequence[str], size: int, k: int, seeds: int, home: Path) -> str:
    """Return the error of views against that of direct builds."""
    rows = [common.printed(error_row(name, size, k, seeds, home)) for name in sets]
    text = (
        f"Size {size}, k = {k}, {N_LEAVES} leaves that came in five steps; {seeds} seeds of views "
        f"and {4 * seeds} of direct builds; the interval of the ratio is that of 2,000 resamples "
        f"of the seeds."
    )
    heads = ["data", "rows", "direct build, %", "view, %", "ratio", "interval of 95 %"]
    return "\n".join(["## Error", "", text, "", *common.table(heads, rows)])


def main() -> None:
    """Run the parts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--parts", nargs="+", default=["bytes", "histories", "error"])
    parser.add_argument("--histories", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--clusters", type=int, default=10)
    parser.add_argument("--out", type=Path, default=common.RESULTS)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    memory = Path("/dev/shm")  # noqa: S108 - crashes are simulated, and all of it is removed
    known = args.out / "refresh.json"
    parts = json.loads(known.read_text())["parts"] if known.exists() else {}
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        home = Path(folder)
        makers = {
            "bytes": lambda: bytes_table(home),
            "histories": lambda: histories(home, args.histories),
            "error": lambda: error_table(args.sets, args.size, args.clusters, args.seeds, home),
        }
        for name, make in makers.items():
            if name in args.parts:
                parts[name] = {"text": make(), "stamp": common.stamp()}
                common.write("refresh", {"parts": parts}, args.out, report)


def report(data: dict[str, Any]) -> str:
    """Return the tables."""
    parts = [f"{part['text']}\n\n{common.stamped(part)}" for part in data["parts"].values()]
    return "\n\n".join(["# Views that stay fresh", *parts]) + "\n"


if __name__ == "__main__":
    main()
