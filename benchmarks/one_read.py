"""Several coresets from the same reads against one build after another, from a Zarr store.

Five constructions of a mixture with labels: bytes and reads of the store as counted by a wrapper
around it, seconds, and the largest peak of memory, each build in a process of its own, from a
local disk and from a store that waits as an object store does: 30 ms and 50 MB/s a request. The
members of the portfolio are compared with the coresets of their own builds, bit by bit, and the
cost of ten random solutions on each with that on all rows. Writes ``results/one_read.json`` and
``results/one_read.md``.

    python benchmarks/one_read.py
    python benchmarks/one_read.py --rows 200_000 --out /tmp/one_read
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import common
import numpy as np

import daskcoreset

NAME = "one_read"
D, CHUNK, SIZE, SEED = 20, 50_000, 5_000, 0
METHODS: dict[str, Any] = {
    "clusters": daskcoreset.StrongKMeans(100),
    "mixture": daskcoreset.MixtureCoreset(10),
    "svm": daskcoreset.SVM(),
    "churn": daskcoreset.Logistic(),
    "plain": daskcoreset.Uniform(),
}
ALL = "all together"
DISK, REMOTE = "local disk", "30 ms and 50 MB/s a request"
LATENCY, RATE = 0.03, 50e6


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


def measure(store: str, name: str, place: str) -> None:
    """Build one coreset, or all of them, and print what it took as JSON."""
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
                if place == REMOTE:
                    await asyncio.sleep(LATENCY + len(value) / RATE)
            return value

    stored = Counting(LocalStore(Path(store) / "X", read_only=True))
    X, y = zarr.open_array(stored, mode="r"), zarr.open_array(Path(store) / "y", mode="r")[:]
    method = METHODS if name == ALL else METHODS[name]
    # What is compiled, and imported, is no cost of the data.
    daskcoreset.build(X[:4_000], y[:4_000], size=3_000, method=method, random_state=SEED)
    stored.chunks = stored.bytes = 0
    before = common.reset_high_water()
    start = time.perf_counter()
    built = daskcoreset.build(X, y, size=SIZE, method=method, random_state=SEED)
    seconds = time.perf_counter() - start
    peak = common.high_water() - before
    members = built if name == ALL else {name: built}
    print(
        json.dumps(
            {
                "reads": stored.chunks / X.nchunks,
                "bytes": stored.bytes,
                "seconds": seconds,
                "peak": peak,
                "digests": {key: _digest(member) for key, member in members.items()},
                "errors": {key: _error(member, X) for key, member in members.items()},
            }
        )
    )


def _digest(coreset: Any) -> str:
    import hashlib

    parts = (coreset.points, coreset.weights, coreset.indices)
    return hashlib.sha256(
        b"".join(np.ascontiguousarray(part).tobytes() for part in parts)
    ).hexdigest()


def _error(coreset: Any, X: Any) -> float:
    """Largest relative error of the squared distances to ten random rows, over a part of X."""
    rng = np.random.default_rng(1)
    errors = []
    moments = [(len(part), part.mean(axis=0), (part**2).sum()) for part in _parts(X)]
    n = sum(rows for rows, _, _ in moments)
    mean = sum(rows * mean for rows, mean, _ in moments) / n
    squares = sum(total for _, _, total in moments)
    for center in coreset.points[rng.integers(len(coreset), size=10)].astype(np.float64):
        exact = squares - 2.0 * n * mean @ center + n * (center @ center)
        gaps = coreset.points.astype(np.float64) - center
        estimate = coreset.weights @ np.einsum("ij,ij->i", gaps, gaps)
        errors.append(abs(estimate / exact - 1.0))
    return float(max(errors))


def _parts(X: Any) -> Any:
    for start in range(0, X.shape[0], CHUNK):
        yield X[start : start + CHUNK].astype(np.float64)


def report(data: dict[str, Any]) -> str:
    """Return the tables of the results."""
    heads = ("build", "reads", "MB read", "seconds", "peak MB", "largest error, %")
    lines = ["# One read, many answers", ""]
    for place, results in data["results"].items():
        rows = [
            (
                name,
                f"{one['reads']:.2f}",
                f"{one['bytes'] / 1e6:.0f}",
                f"{one['seconds']:.2f}",
                f"{one['peak'] / 1e6:.0f}",
                f"{100 * max(one['errors'].values()):.2f}",
            )
            for name, one in results.items()
        ]
        alone = [one for name, one in results.items() if name != ALL]
        shared = results[ALL]
        seconds = shared["seconds"] / max(one["seconds"] for one in alone)
        peak = shared["peak"] / max(one["peak"] for one in alone)
        lines += [f"## From a store: {place}", "", *common.table(heads, rows), ""]
        lines += [
            (
                f"One after another: {sum(one['reads'] for one in alone):.2f} reads, "
                f"{sum(one['seconds'] for one in alone):.2f} s. Together: {seconds:.2f} times the "
                f"seconds and {peak:.2f} times the peak of the dearest single build."
            ),
            "",
        ]
    lines += [f"The same bits: {data['same_bits']}.", "", common.stamped(data), ""]
    return "\n".join(lines)


def main() -> None:
    """Measure every build in a process of its own."""
    parser = common.arguments(__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--build", nargs=3, help="of the processes of single builds")
    options = parser.parse_args()
    if options.build:
        measure(*options.build)
        return
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder), options.rows)
        for place in (DISK, REMOTE):
            for name in (*METHODS, ALL):
                made = common.in_child(__file__, "--build", folder, name, place)
                results.setdefault(place, {})[name] = made
                print(place, name, made, file=sys.stderr)
    same = all(
        found[name]["digests"][name] == found[ALL]["digests"][name]
        for found in results.values()
        for name in METHODS
    )
    made = common.stamp(rows=options.rows, size=SIZE)
    data = {"stamp": made, "results": results, "same_bits": same}
    common.write(NAME, data, options.out, report)


if __name__ == "__main__":
    main()
