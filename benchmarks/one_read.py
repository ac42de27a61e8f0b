"""Several coresets from the same passes against one build after another, from a Zarr store.

Five methods on a mixture with labels: passes over the store and bytes, counted by a wrapper around
it, and the peak of memory, each build in a process of its own. Seconds of the processor are medians
of turns in which all builds run one after another. The members of the portfolio are compared with
the coresets of their own builds, bit by bit.

    python benchmarks/one_read.py
    python benchmarks/one_read.py --rows 200_000 --out /tmp/one_read
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import common
import numpy as np

import daskcoreset

NAME = "one_read"
D, CHUNK, SIZE, SEED = 20, 50_000, 5_000, 0
METHODS: dict[str, Any] = {
    "clusters": daskcoreset.StrongKMeans(100),
    "mixture": daskcoreset.Mixture(10),
    "svm": daskcoreset.SVM(),
    "churn": daskcoreset.Logistic(),
    "plain": daskcoreset.Uniform(),
}
ALL = "all together"


def write_data(folder: Path, rows: int) -> None:
    """Write a mixture of ten clusters with labels, some of them wrong, in chunks."""
    import zarr

    rng = np.random.default_rng(SEED)
    centers = rng.normal(scale=3.0, size=(10, D))
    X = zarr.create_array(folder / "X", shape=(rows, D), chunks=(CHUNK, D), dtype="float32")
    y = zarr.create_array(folder / "y", shape=(rows,), chunks=(CHUNK,), dtype="int64")
    for start in range(0, rows, CHUNK):
        stop = min(start + CHUNK, rows)
        cluster = rng.integers(10, size=stop - start)
        X[start:stop] = centers[cluster] + rng.normal(size=(stop - start, D))
        y[start:stop] = (cluster < 3) ^ (rng.random(stop - start) < 0.05)


def open_data(store: str) -> tuple[Any, Any, Any]:
    """Open the store that counts, its rows, and labels in memory."""
    import zarr
    from zarr.storage import LocalStore, WrapperStore

    class Counting(WrapperStore[Any]):
        """A store that counts the chunks and the bytes that are read."""

        chunks = 0
        bytes = 0

        async def get(self, key: str, *args: Any, **kwargs: Any) -> Any:
            value = await super().get(key, *args, **kwargs)
            if value is not None and key.startswith("c/"):
                self.chunks += 1
                self.bytes += len(value)
            return value

    stored = Counting(LocalStore(Path(store) / "X", read_only=True))
    X, y = zarr.open_array(stored, mode="r"), zarr.open_array(Path(store) / "y", mode="r")[:]
    return stored, X, y


def build(X: Any, y: Any, name: str, size: int = SIZE) -> dict[str, Any]:
    """Build one coreset, or all of them; return them by their names."""
    if name == ALL:
        built = daskcoreset.build_many(X, y, methods=METHODS, sizes=size, random_state=SEED)
        return {member: built[member] for member in built}
    method = METHODS[name]
    return {name: daskcoreset.build(X, y, size=size, method=method, random_state=SEED)}


def measure(store: str, name: str) -> None:
    """Build one coreset, or all of them, and print what it took as JSON."""
    stored, X, y = open_data(store)
    # What is compiled, and imported, is no cost of the data.
    build(X[:4_000], y[:4_000], name, 3_000)
    stored.chunks = stored.bytes = 0
    before = common.reset_high_water()
    members = build(X, y, name)
    peak = common.high_water() - before
    found = {"passes": stored.chunks / X.nchunks, "bytes": stored.bytes, "peak": peak}
    found["digests"] = {key: _digest(member) for key, member in members.items()}
    print(json.dumps(found))


def time_turns(store: str, turns: int) -> None:
    """Build every coreset, and all of them, in turns; print seconds of the processor as JSON."""
    _, X, y = open_data(store)
    seconds: dict[str, list[float]] = {name: [] for name in (*METHODS, ALL)}
    for turn in range(turns + 1):
        for name, found in seconds.items():
            with common.timed() as clock:
                build(X, y, name)
            if turn:  # the first one compiles
                found.append(clock.cpu)
    print(json.dumps(seconds))


def _digest(coreset: Any) -> str:
    import hashlib

    parts = (coreset.points, coreset.weights, coreset.indices)
    return hashlib.sha256(
        b"".join(np.ascontiguousarray(part).tobytes() for part in parts)
    ).hexdigest()


def main() -> None:
    """Measure every build in a process of its own."""
    parser = common.arguments(__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--build", nargs=2, help="of the processes of single builds")
    parser.add_argument("--time", help="of the process that times builds in turns")
    options = parser.parse_args()
    if options.time:
        time_turns(options.time, options.turns)
        return
    if options.build:
        measure(*options.build)
        return
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder), options.rows)
        for name in (*METHODS, ALL):
            results[name] = common.in_child(__file__, "--build", folder, name)
            print(name, results[name], file=sys.stderr)
        words = ("--time", folder, "--turns", options.turns)
        for name, found in common.in_child(__file__, *words).items():
            results[name]["seconds"] = found
    same = all(results[name]["digests"][name] == results[ALL]["digests"][name] for name in METHODS)
    stamp = common.stamp(rows=options.rows, size=SIZE, turns=options.turns)
    common.write(NAME, {"stamp": stamp, "results": results, "same_bits": same}, options.out)


if __name__ == "__main__":
    main()
