"""Writers that are killed, and stores that are damaged: how often, and what was lost.

A row of the table is a `Case`: what is done to a store again and again, and what is looked for
after every time. To add one, write a case and name it in `CASES`.

- ``kill``: a process writes to a store without a pause, and gets SIGKILL after a random time. Then
  the store is opened and compared with what it must hold: everything that the process had said to
  be done, and at most one change more.
- ``damage``: one file of a store, drawn at random, is cut, gets another bit, or is removed. The
  store must then be refused, or give what it gave before.
- ``read``: a store is read while another process overwrites it without a pause.

    python benchmarks/crashes.py --times 60

Results are written to ``results/crashes.json``.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import common
import numpy as np

from daskcoreset import Coreset, CoresetStream, CoresetTree
from daskcoreset.errors import CoresetError

ROWS = 50

WRITER = """
import sys
sys.path.insert(0, {folder!r})
import crashes
crashes.WORK[{what!r}]({path!r})
"""


def rows(number: int) -> np.ndarray:
    """Return the rows of a change."""
    return np.random.default_rng(number).normal(number, 1.0, size=(ROWS, 2))


def said(number: int) -> None:
    """Tell the parent that a change is done."""
    print(number, flush=True)


def grow_tree(path: str) -> None:
    """Append to a tree without end."""
    tree = CoresetTree.open(path)
    while True:
        tree.append(rows(tree.version))
        said(tree.version)


def feed_stream(path: str) -> None:
    """Feed a stream without end."""
    stream = CoresetStream.load(path)
    while True:
        stream.partial_fit(rows(stream.n_rows // ROWS))
        said(stream.n_rows // ROWS)


def coreset(number: int) -> Coreset:
    """Return a coreset that tells its number."""
    return Coreset(np.full((ROWS, 2), float(number)), np.ones(ROWS), np.arange(ROWS))


def overwrite(path: str) -> None:
    """Overwrite a coreset without end."""
    number = int(Coreset.from_zarr(path).points[0, 0])
    while True:
        number += 1
        coreset(number).to_zarr(path, overwrite=True)
        said(number)


def convert(path: str) -> None:
    """Write a store without end."""
    from daskcoreset.cli.files import write_store

    X = np.zeros((20_000, 20))
    number = 0
    while True:
        shutil.rmtree(f"{path}-old", ignore_errors=True)
        if Path(path).exists():
            Path(path).rename(f"{path}-old")  # whole: to remove it takes more than one step
        write_store(X, path, rows_per_chunk=1000)
        number += 1
        said(number)


WORK: dict[str, Callable[[str], None]] = {
    "tree": grow_tree,
    "stream": feed_stream,
    "coreset": overwrite,
    "store": convert,
}


def make(what: str, path: Path) -> None:
    """Make an empty store."""
    if what == "tree":
        CoresetTree.create(path, size=10, random_state=0)
    elif what == "stream":
        CoresetStream(size=10, random_state=0, store=path)
    elif what == "coreset":
        coreset(0).to_zarr(path)


def held(what: str, path: Path) -> int:
    """Return how many changes a store holds, after a check of all of it."""
    if what == "tree":
        tree = CoresetTree.open(path)
        tree.verify()
        if [leaf.rows for leaf in tree.leaves] != [ROWS] * tree.version:
            raise AssertionError("leaves were lost or counted twice")
        return tree.version
    if what == "stream":
        stream = CoresetStream.load(path)
        if stream.n_rows and stream.total_weight != stream.n_rows:
            raise AssertionError("rows were lost or counted twice")
        return stream.n_rows // ROWS
    if what == "coreset":
        points = np.unique(Coreset.from_zarr(path).points)
        return int(points.item())
    import zarr

    if path.exists():  # whole or absent
        array = zarr.open_group(path, mode="r")["X"]
        if array.shape != (20_000, 20) or array.nchunks_initialized != array.nchunks:
            raise AssertionError("part of a store")
    return 0


@dataclass
class Found:
    """What was counted."""

    times: int = 0
    refused: int = 0
    lost: int = 0


def started(what: str, path: Path) -> subprocess.Popen[str]:
    """Start a process that writes."""
    script = WRITER.format(folder=str(Path(__file__).parent), what=what, path=str(path))
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)


def kill(what: str, folder: Path, times: int, rng: random.Random) -> Found:
    """Kill a writer again and again."""
    path, found = folder / "s", Found()
    make(what, path)
    for _ in range(times):
        process = started(what, path)
        first = process.stdout.readline()  # it is at work
        time.sleep(rng.uniform(0.0, 0.4))
        process.kill()
        done = [int(line) for line in [first, *process.communicate()[0].split()]]
        found.times += 1
        now = held(what, path)
        found.lost += what != "store" and not done[-1] <= now <= done[-1] + 1
    return found


def damage(what: str, folder: Path, times: int, rng: random.Random) -> Found:
    """Damage a file again and again."""
    source, found = folder / "s", Found()
    make(what, source)
    if what == "tree":
        for number in range(4):
            CoresetTree.open(source).append(rows(number))
    elif what == "stream":
        CoresetStream.load(source).partial_fit(rows(0)).partial_fit(rows(1))
    before = held(what, source)
    files = [path.relative_to(source) for path in source.rglob("*") if path.is_file()]
    for _ in range(times):
        path = folder / "t"
        shutil.copytree(source, path)
        file = path / rng.choice(sorted(files))
        content = file.read_bytes()
        how = rng.choice(["cut", "bit", "gone"])
        if how == "cut":
            file.write_bytes(content[: rng.randrange(max(1, len(content)))])
        elif how == "bit" and content:
            place = rng.randrange(len(content))
            bit = content[place] ^ 1 << rng.randrange(8)
            file.write_bytes(content[:place] + bytes([bit]) + content[place + 1 :])
        else:
            file.unlink()
        found.times += 1
        try:
            found.lost += held(what, path) != before
        except CoresetError:
            found.refused += 1
        shutil.rmtree(path)
    return found


def read(what: str, folder: Path, times: int, _: random.Random) -> Found:
    """Read while another process overwrites."""
    path, found = folder / "s", Found()
    make(what, path)
    process = started(what, path)
    process.stdout.readline()
    last = 0
    for _ in range(20 * times):
        found.times += 1
        try:
            now = held(what, path)
            found.lost += now < last
            last = now
        except CoresetError:
            found.refused += 1
    process.kill()
    process.communicate()
    return found


@dataclass(frozen=True)
class Case:
    """A row of the table.

    Attributes
    ----------
    name : str
    run : callable
        ``run(what, folder, times, rng)`` does it in an empty folder.
    what : str
    """

    name: str
    run: Callable[[str, Path, int, random.Random], Found]
    what: str


CASES = [
    Case("tree: appending process killed", kill, "tree"),
    Case("stream: feeding process killed", kill, "stream"),
    Case("coreset: overwriting process killed", kill, "coreset"),
    Case("`daskcoreset store`: process killed", kill, "store"),
    Case("coreset: read while overwritten", read, "coreset"),
    Case("tree: a file cut, altered or removed", damage, "tree"),
    Case("stream: a file cut, altered or removed", damage, "stream"),
    Case("coreset: a file cut, altered or removed", damage, "coreset"),
]


def main() -> None:
    """Run the cases."""
    parser = common.arguments(__doc__)
    parser.add_argument("--times", type=int, default=60, help="for every row of the table")
    parser.add_argument("--cases", nargs="+", default=[""], help="parts of names of rows")
    args = parser.parse_args()
    stamp, lines = common.stamp(times=args.times), {}
    if args.cases != [""] and (args.out / "crashes.json").exists():
        lines = {line[0]: line for line in common.read("crashes", args.out)["lines"]}
    for number, case in enumerate(CASES):
        if not any(part in case.name for part in args.cases):
            continue
        folder = Path(tempfile.mkdtemp(prefix="daskcoreset-"))
        found = case.run(case.what, folder, args.times, random.Random(number))  # noqa: S311 - of times and places
        shutil.rmtree(folder)
        line = (case.name, found.times, found.refused, found.lost, stamp["commit"])
        lines[case.name] = common.printed(line)
        ordered = [lines[case.name] for case in CASES if case.name in lines]
        # After each, for it takes long.
        common.write("crashes", {"stamp": stamp, "lines": ordered}, args.out)


if __name__ == "__main__":
    main()
