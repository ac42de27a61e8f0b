"""Trees on an object store: conditional writes of objects against transactions of Icechunk.

Both keep the same nodes and manifests of a `CoresetTree`, one through `RemotePlace`, the other
through a place that is written below. moto's S3 server runs on the loopback interface, answers one
request at a time, and is slowed down by so many milliseconds a request, since what an object store
costs is its answers. Measured are seconds and requests of an append (with its sweep) and of opening
a tree and drawing from it, objects and bytes, how many of two writers at a time were let through,
and what appends lost or made twice whose process was killed.

    python benchmarks/object_store.py
    python benchmarks/object_store.py --appends 8 --races 4 --kills 2

Results are written to ``results/object_store.json`` and ``results/object_store.md``.
"""

from __future__ import annotations

import datetime as dt
import inspect
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import common
import numpy as np
import zarr
from zarr.storage import StorePath

sys.path.append(str(Path(__file__).parents[1]))

from daskcoreset import CoresetTree
from daskcoreset.constructions.tree import persistence, remote, store
from daskcoreset.constructions.tree.chain import Head, overtaken_error
from daskcoreset.constructions.tree.manifest import Manifest
from daskcoreset.constructions.tree.persistence import Origin
from daskcoreset.constructions.tree.places import MAIN, Members, Place, ReadVersion, T
from daskcoreset.core import objects, packing, storage
from daskcoreset.core.contents import HEADER, GroupContents
from daskcoreset.core.errors import StoreError
from tests.acceptance.tools.object_stores import KEY, SECRET, ObjectServer, object_server

NAME = "object_store"
ROWS, D = 1000, 20


def _read(where: StorePath, kind: str) -> GroupContents:
    newest = persistence.SCHEMA_VERSION
    return storage.read_contents(where, str(where), kind, newest, 2)


class IcechunkPlace(Place):
    """A repository of Icechunk, in which a version is a commit."""

    def __init__(self, endpoint: str, bucket: str, *, create: bool = False) -> None:
        import icechunk

        self.endpoint, self.bucket = endpoint, bucket
        where = icechunk.s3_storage(
            bucket=bucket, prefix="days", endpoint_url=endpoint, allow_http=True,
            access_key_id=KEY, secret_access_key=SECRET, region="eu-west-1", force_path_style=True,
        )  # fmt: skip
        make = icechunk.Repository.create if create else icechunk.Repository.open
        self.repository = make(where)

    @property
    def path(self) -> str:
        """What messages call it."""
        return f"s3://{self.bucket}/days"

    def create(
        self,
        settings: GroupContents,
        first: Callable[[Head], Members] | None,  # noqa: ARG002 - of streams
        remedy: str,  # noqa: ARG002 - it is always new
        *,
        overwrite: bool,  # noqa: ARG002 - likewise
    ) -> Head:
        """Commit the settings."""
        head = Head.before_first(settings.digest)
        session = self.repository.writable_session("main")
        self._write_root(session, settings, head)
        session.commit("0")
        return head

    def is_free(self) -> bool:
        """Look for the settings."""
        return not zarr.open_group(self._store(), mode="r").attrs.asdict()

    @staticmethod
    def _write_root(session: Any, settings: GroupContents, head: Head) -> None:
        attributes = {**settings.attributes, "head": head.to_json()}
        root = replace(settings, attributes=attributes).checked()
        group = zarr.group(StorePath(session.store))
        group.attrs.put({**root.attributes, HEADER: root.header(complete=True)})

    def _store(self) -> Any:
        return self.repository.readonly_session("main").store

    @staticmethod
    def _read_root(where: Any) -> tuple[GroupContents, Head]:
        contents = _read(StorePath(where), "coreset-tree")
        attributes: dict[str, Any] = dict(contents.attributes)
        head = Head.from_json(attributes.pop("head"))
        return replace(contents, attributes=attributes), head

    def settings(self) -> GroupContents:
        """Return the attributes of the root."""
        return self._read_root(self._store())[0]

    def newest(self) -> int:
        """Return the version of the root."""
        return self._read_root(self._store())[1].version

    def read_newest(self, origin: Origin, read: ReadVersion[T]) -> tuple[T | None, Head]:  # noqa: ARG002 - all is of one commit
        """Read the version of the root, which is of one commit with it."""
        head = self._read_root(self._store())[1]
        return (read(head.version)[0] if head.version else None), head

    def read(
        self,
        version: int,
        member: str,
        kind: str,
        find_problem: Any = None,  # noqa: ARG002 - of damage, which is not measured
        most: int | None = None,  # noqa: ARG002 - likewise
    ) -> GroupContents:
        """Read a group of the newest commit."""
        return _read(StorePath(self._store(), self.where(version, member)), kind)

    def where(self, version: int, member: str) -> str:
        """Return the path of a group."""
        return f"{version:012d}/{member}"

    def find_missing(self, needed: Iterable[tuple[int, str]]) -> tuple[int, str] | None:
        """Look for groups."""
        there = zarr.open_group(self._store(), mode="r")
        return next((one for one in needed if self.where(*one) not in there), None)

    def check_current(self, head: Head) -> None:
        """Compare with the root."""
        if (found := self._read_root(self._store())[1]) != head:
            raise overtaken_error(self.name, found.version, head)

    def commit(self, head: Head, members: Members) -> Head:
        """Add groups in one commit."""
        from icechunk import ConflictError

        session = self.repository.writable_session("main")
        settings, found = self._read_root(session.store)
        if found != head:
            raise overtaken_error(self.name, found.version, head)
        after = head.followed_by(members[MAIN].digest)
        for member, contents in members.items():
            path = self.where(after.version, member)
            storage.fill_group(StorePath(session.store, path), contents)
        self._write_root(session, settings, after)
        try:
            session.commit(str(after.version))
        except ConflictError as error:
            raise overtaken_error(self.name, after.version, head) from error
        return after

    def sweep(self, keep: Callable[[int, str], bool]) -> None:
        """Leave everything: snapshots refer to it until they expire by the clock."""

    def collect(self) -> float:
        """Expire all snapshots but the newest, collect garbage, and return the seconds."""
        with common.timed() as clock:
            now = dt.datetime.now(dt.UTC)
            self.repository.expire_snapshots(older_than=now)
            self.repository.garbage_collect(now)
        return clock.wall


def place(kind: str, endpoint: str, bucket: str, *, create: bool = False) -> Place:
    """Return the place of a tree."""
    if kind == "Icechunk":
        return IcechunkPlace(endpoint, bucket, create=create)
    options = ObjectServer(endpoint).options
    return remote.place_at("path", f"s3://{bucket}/days", store._LAYOUT, options)  # noqa: SLF001


def opened(kind: str, endpoint: str, bucket: str) -> CoresetTree:
    """Open a tree."""
    there = place(kind, endpoint, bucket)
    settings, origin = persistence.settings_from(there.settings(), there.name, None)
    return CoresetTree(settings, Manifest.newest(there, origin, settings.most_rows))


def made(kind: str, endpoint: str, bucket: str) -> CoresetTree:
    """Make a tree."""
    settings = persistence.settings_contents(_SETTINGS, "coreset-tree")
    there = place(kind, endpoint, bucket, create=True)
    head = there.create(settings, None, "", overwrite=False)
    return CoresetTree(_SETTINGS, Manifest(there, head, most_rows=_SETTINGS.most_rows))


_SETTINGS = store.Settings.checked(
    "lightweight", 500, None, None, 0, "systematic", "raise", "euclidean"
)


def day(number: int) -> np.ndarray:
    """Return the rows of a day."""
    return np.random.default_rng(number).normal(size=(ROWS, D))


def costs(
    kind: str, server: ObjectServer, appends: int, delay: float
) -> tuple[list[str], dict[str, Any]]:
    """Return the row of seconds and requests, and what it is made of."""
    bucket = server.bucket().removeprefix("s3://")
    made(kind, server.endpoint, bucket)
    tree = opened(kind, server.endpoint, bucket)
    tree.append(day(0), name="day 0")
    server.slow_down(delay)
    server.counts()
    seconds, requests = [], []
    for number in range(1, appends + 1):
        with common.timed() as clock:
            tree.append(day(number), name=f"day {number}")
        seconds.append(clock.wall)
        requests.append(sum(server.counts().values()))
    with common.timed() as clock:
        again = opened(kind, server.endpoint, bucket)
        again.coreset()
    asked = sum(server.counts().values())
    server.slow_down(0)
    again.verify()
    stored = [server.folder(f"s3://{bucket}").get(key) for key in _keys(server, bucket)]
    collected = "-"
    if isinstance(again._manifest.place, IcechunkPlace):  # noqa: SLF001
        collected = f"{again._manifest.place.collect():.2f}"  # noqa: SLF001
    row = [kind, f"{median(seconds):.2f}", f"{max(seconds):.2f}", f"{median(requests):.0f}"]
    row += [f"{max(requests)}", f"{clock.wall:.2f}", f"{asked}", f"{len(stored):,}"]
    row += [f"{sum(len(one.data) for one in stored) / 2**20:.1f}", collected]
    return list(common.printed(row)), {"kind": kind, "seconds": seconds, "requests": requests}


def _keys(server: ObjectServer, bucket: str) -> list[str]:
    keys: list[str] = server.folder(f"s3://{bucket}").keys()
    return keys


def races(kind: str, server: ObjectServer, count: int) -> list[str]:
    """Return how often both of two writers were let through, one, or none."""
    bucket = server.bucket().removeprefix("s3://")
    made(kind, server.endpoint, bucket)
    won = {0: 0, 1: 0, 2: 0}
    for turn in range(count):
        rivals = [opened(kind, server.endpoint, bucket) for _ in range(2)]
        results: list[bool] = []

        def write(tree: CoresetTree, name: str, results: list[bool]) -> None:
            try:
                tree.append(day(0), name=name)
                results.append(True)
            except StoreError:
                results.append(False)

        threads = [
            threading.Thread(target=write, args=(tree, f"{turn} {who}", results))
            for who, tree in enumerate(rivals)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        won[sum(results)] += 1
        assert len(opened(kind, server.endpoint, bucket)) == sum(
            both * n for both, n in won.items()
        )
    return [f"{won[2]}", f"{won[1]}", f"{won[0]}"]


def kills(kind: str, server: ObjectServer, count: int) -> list[str]:
    """Return kills, and the leaves that were lost or there twice."""
    bucket = server.bucket().removeprefix("s3://")
    made(kind, server.endpoint, bucket)
    rng = random.Random(0)  # noqa: S311 - a time to wait
    told, wrong = 0, 0
    for _ in range(count):
        words = [sys.executable, __file__, "--append", kind, server.endpoint, bucket]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            process.stdout.readline()  # it has appended once: all is compiled
            time.sleep(rng.uniform(0.0, 0.8))
            os.kill(process.pid, signal.SIGKILL)
            told = max([told, *map(int, process.stdout.read().split())])
        tree = opened(kind, server.endpoint, bucket)
        tree.verify()
        # All that was told to be there is there, and at most one more.
        wrong += tree.leaves.names != [f"day {i}" for i in range(len(tree))]
        wrong += not told <= len(tree) <= told + 1
        told = len(tree)
    return [f"{count}", f"{wrong}", f"{told}"]


def append_until_killed(kind: str, endpoint: str, bucket: str) -> None:
    """Append, and tell how many leaves there are. In its own process."""
    tree = opened(kind, endpoint, bucket)
    print(len(tree), flush=True)
    for number in range(len(tree), 10_000):
        tree.append(day(number), name=f"day {number}")
        print(number + 1, flush=True)


def code_lines(*parts: Any) -> int:
    """Return lines of code, without docstrings, comments and blank lines."""
    import ast

    count = 0
    for part in parts:
        tree = ast.parse(inspect.getsource(part))
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            first = body[0] if isinstance(body, list) and body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                body[0] = ast.Pass()  # type: ignore[index]
        count += len(ast.unparse(tree).splitlines())
    return count


COST_HEADS = [
    "", "append, s", "longest", "requests", "most", "open and draw, s", "requests", "objects",
    "MiB", "garbage, s",
]  # fmt: skip
SAFE_HEADS = ["", "both won", "one won", "none", "kills", "lost or twice", "leaves at the end"]


def report(data: dict[str, Any]) -> str:
    """Return the tables."""
    made, sizes = data["stamp"], data["code_lines"]
    explained = (
        f"{made['appends']} appends of {ROWS:,} rows of {D} columns, inner nodes of 1,000 rows; "
        f"{1000 * made['delay']:.0f} ms a request. `garbage`: what expiring snapshots and "
        "collecting garbage take with Icechunk; conditional writes sweep with every append, in "
        "its time."
    )
    counted = (
        f"Lines of code: {sizes[0]} (`remote`, `objects`, `packing`; `objects` serves coresets at "
        f"URLs as well) and {sizes[1]} (without options, errors, retries and leftovers)."
    )
    lines = ["# Trees on an object store", *common.part_lines(data["parts"]["costs"])]
    lines += [explained, *common.part_lines(data["parts"]["safe"]), counted, ""]
    return "\n".join(lines)


def main() -> None:
    """Measure, print and write."""
    parser = common.arguments(__doc__)
    parser.add_argument("--appends", type=int, default=64)
    parser.add_argument("--races", type=int, default=50)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--delay", type=float, default=0.02, help="seconds of a request")
    parser.add_argument("--append", nargs=3, help="used by the benchmark itself")
    args = parser.parse_args()
    if args.append:
        append_until_killed(*args.append)
        return
    kinds = ("conditional writes", "Icechunk")
    with object_server() as server:
        rows, raw = zip(
            *(costs(kind, server, args.appends, args.delay) for kind in kinds), strict=True
        )
        safe = [
            [kind, *races(kind, server, args.races), *kills(kind, server, args.kills)]
            for kind in kinds
        ]
    for row in safe:
        common.printed(row)
    data = {
        "stamp": common.stamp(appends=args.appends, delay=args.delay),
        "parts": {
            "costs": common.part(COST_HEADS, rows, raw),
            "safe": common.part(SAFE_HEADS, safe, [row[1:] for row in safe]),
        },
        "code_lines": [code_lines(remote, objects, packing), code_lines(IcechunkPlace)],
    }
    common.write(NAME, data, args.out, report)


if __name__ == "__main__":
    main()
