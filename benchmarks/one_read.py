"""Several coresets from the same reads against one build after another, from a Zarr store.

Five constructions of a mixture with labels: bytes and reads of the store as counted by a wrapper
around it, and the largest peak of memory, each build in a process of its own; seconds, the median
of several turns of all builds in one process, which has compiled its loops. The rows come from a
local disk, which the cache of the system holds; from the same disk, each chunk dropped from that
cache before it is read, as if the data were larger than memory (where there is
``posix_fadvise``); from a store that waits as an object store does, 30 ms and 50 MB/s a request;
and from one that gives 100 MB/s in all, as a slow disk or network. The members of the portfolio
are compared with the coresets of their own builds, bit by bit, and the cost of ten random
solutions on each with that on all rows. Writes ``results/one_read.json`` and
``results/one_read.md``.

    python benchmarks/one_read.py
    python benchmarks/one_read.py --rows 200_000 --out /tmp/one_read
"""

from __future__ import annotations

import asyncio
import json
import os
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
    "mixture": daskcoreset.Mixture(10),
    "svm": daskcoreset.SVM(),
    "churn": daskcoreset.Logistic(),
    "plain": daskcoreset.Uniform(),
}
ALL = "all together"
DISK, REMOTE = "local disk, in the cache of the system", "30 ms and 50 MB/s a request"
COLD = "local disk, not in the cache of the system"
SLOW = "100 MB/s in all"
PLACES = (DISK, *([COLD] if hasattr(os, "posix_fadvise") else []), REMOTE, SLOW)
LATENCY, RATE, RATE_IN_ALL = 0.03, 50e6, 100e6


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


def open_data(store: str, place: str) -> tuple[Any, Any, Any]:
    """Open the store that counts, its rows, and labels in memory."""
    import zarr
    from zarr.storage import LocalStore, WrapperStore

    class Counting(WrapperStore[Any]):
        """A store that counts the chunks and the bytes that are read."""

        chunks = 0
        bytes = 0
        free = 0.0  # when it has sent what was asked of it

        async def get(self, key: str, *args: Any, **kwargs: Any) -> Any:
            if place == COLD and key.startswith("c/"):
                _forget(Path(store) / "X" / key)
            value = await super().get(key, *args, **kwargs)
            if value is not None and key.startswith("c/"):
                self.chunks += 1
                self.bytes += len(value)
                if place == REMOTE:
                    await asyncio.sleep(LATENCY + len(value) / RATE)
                elif place == SLOW:
                    now = time.monotonic()
                    self.free = max(self.free, now) + len(value) / RATE_IN_ALL
                    await asyncio.sleep(self.free - now)
            return value

    stored = Counting(LocalStore(Path(store) / "X", read_only=True))
    X, y = zarr.open_array(stored, mode="r"), zarr.open_array(Path(store) / "y", mode="r")[:]
    return stored, X, y


def _forget(path: Path) -> None:
    """Drop a file, which is on the disk, from the cache of the system."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(file)


def build(X: Any, y: Any, name: str, size: int = SIZE) -> Any:
    """Build one coreset, or all of them."""
    method = METHODS if name == ALL else METHODS[name]
    return daskcoreset.build(X, y, size=size, method=method, random_state=SEED)


def time_turns(store: str, place: str, turns: int) -> None:
    """Build every coreset, and all of them, in turns; print the seconds as JSON."""
    _, X, y = open_data(store, place)
    seconds: dict[str, list[float]] = {name: [] for name in (*METHODS, ALL)}
    for turn in range(turns + 1):
        for name, found in seconds.items():
            start = time.perf_counter()
            build(X, y, name)
            if turn:  # the first one compiles
                found.append(time.perf_counter() - start)
    print(json.dumps(seconds))


def measure(store: str, name: str, place: str) -> None:
    """Build one coreset, or all of them, and print what it took as JSON."""
    stored, X, y = open_data(store, place)
    # What is compiled, and imported, is no cost of the data.
    build(X[:4_000], y[:4_000], name, 3_000)
    stored.chunks = stored.bytes = 0
    before = common.reset_high_water()
    built = build(X, y, name)
    peak = common.high_water() - before
    members = built if name == ALL else {name: built}
    print(
        json.dumps(
            {
                "reads": stored.chunks / X.nchunks,
                "bytes": stored.bytes,
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


def ratios(results: dict[str, Any]) -> dict[str, Any]:
    """Seconds of every turn, and the peak, over those of the dearest single build."""
    alone, shared = [one for name, one in results.items() if name != ALL], results[ALL]
    # Turn by turn, since a machine that is slower for a while is so for a whole turn.
    dearest = np.max([one["seconds"] for one in alone], axis=0)
    peak = shared["peak"] / max(one["peak"] for one in alone)
    return {"seconds": list(np.array(shared["seconds"]) / dearest), "peak": peak}


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
                f"{np.median(one['seconds']):.2f}",
                f"{one['peak'] / 1e6:.0f}",
                f"{100 * max(one['errors'].values()):.2f}",
            )
            for name, one in results.items()
        ]
        alone = [one for name, one in results.items() if name != ALL]
        times = np.sum([one["seconds"] for one in alone], axis=0)
        ratios, peak = np.array(data["ratios"][place]["seconds"]), data["ratios"][place]["peak"]
        lines += [f"## From a store: {place}", "", *common.table(heads, rows), ""]
        lines += [
            (
                f"One after another: {sum(one['reads'] for one in alone):.2f} reads, "
                f"{np.median(times):.2f} s. Together: {np.median(ratios):.2f} times the "
                f"seconds ({ratios.min():.2f} to {ratios.max():.2f} in {len(ratios)} turns) and "
                f"{peak:.2f} times the peak of the dearest single build."
            ),
            "",
        ]
    lines += [f"The same bits: {data['same_bits']}.", "", common.stamped(data), ""]
    return "\n".join(lines)


def main() -> None:
    """Measure every build in a process of its own."""
    parser = common.arguments(__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--build", nargs=3, help="of the processes of single builds")
    parser.add_argument("--time", nargs=2, help="of the processes that time builds in turns")
    options = parser.parse_args()
    if options.time:
        time_turns(*options.time, options.turns)
        return
    if options.build:
        measure(*options.build)
        return
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder), options.rows)
        os.sync()  # what is not written yet cannot be dropped
        for place in PLACES:
            for name in (*METHODS, ALL):
                made = common.in_child(__file__, "--build", folder, name, place)
                results.setdefault(place, {})[name] = made
                print(place, name, made, file=sys.stderr)
            turns = ("--turns", str(options.turns))
            seconds = common.in_child(__file__, "--time", folder, place, *turns)
            print(place, seconds, file=sys.stderr)
            for name, found in seconds.items():
                results[place][name]["seconds"] = found
    same = all(
        found[name]["digests"][name] == found[ALL]["digests"][name]
        for found in results.values()
        for name in METHODS
    )
    made = common.stamp(rows=options.rows, size=SIZE)
    found = {place: ratios(builds) for place, builds in results.items()}
    data = {"stamp": made, "results": results, "ratios": found, "same_bits": same}
    common.write(NAME, data, options.out, report)


if __name__ == "__main__":
    main()
