"""Stores that were tampered with: nothing outside is read or deleted, nothing hangs or explodes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numcodecs.zstd import compress

from daskcoreset import Coreset, CoresetStream, CoresetTree, WeightedPoints
from daskcoreset.cli.convert import write_store
from daskcoreset.constructions.tree import persistence, versions
from daskcoreset.core import storage, stored_arrays
from daskcoreset.core.errors import StoreError
from tests.acceptance.tools.groups import names
from tests.acceptance.tools.trees import day, made

if TYPE_CHECKING:
    from collections.abc import Callable

POSIX = pytest.mark.skipif(os.name != "posix", reason="links and pipes of POSIX systems")


def a_stream(path: Path) -> CoresetStream:
    stream = CoresetStream(size=10, random_state=0, store=path)
    return stream.partial_fit(day(1)).partial_fit(day(2))


def a_coreset(n: int = 20) -> Coreset:
    return Coreset(np.arange(2.0 * n).reshape(n, 2), np.ones(n), np.arange(n))


def look_at_tree(path: Path) -> None:
    CoresetTree.open(path).verify()


MAKE: dict[str, tuple[Callable[[Path], Any], Callable[[Path], Any], Callable[[Path], Any]]] = {
    # How it is made, read and changed.
    "tree": (
        lambda path: made(path, 2),
        look_at_tree,
        lambda path: CoresetTree.open(path).append(day(3)),
    ),
    "stream": (
        a_stream,
        CoresetStream.load,
        lambda path: CoresetStream.load(path).partial_fit(day(3)),
    ),
    "coreset": (
        lambda path: a_coreset().to_zarr(path),
        Coreset.from_zarr,
        lambda path: a_coreset().to_zarr(path, overwrite=True),
    ),
}

# --- links, pipes, devices -----------------------------------------------------------------


@POSIX
@pytest.mark.parametrize(("kind", "part"), [("tree", "versions"), ("stream", "states")])
@pytest.mark.parametrize("what", ["link", "pipe", "folder"])
def test_lock__is_a_plain_file_and_stays_as_it_is(
    tmp_path: Path, kind: str, part: str, what: str
) -> None:
    make, look, change = MAKE[kind]
    make(tmp_path / "s")
    lock = tmp_path / "s" / part / ".lock"
    lock.write_text("kept")
    os.link(lock, tmp_path / "hard")  # a copy of a backup program, say
    change(tmp_path / "s")
    assert (tmp_path / "hard").read_text() == "kept"
    lock.unlink()
    (tmp_path / "mine").write_text("mine")
    if what == "link":
        lock.symlink_to(tmp_path / "mine")
    elif what == "pipe":
        os.mkfifo(lock)
    else:
        lock.mkdir()
    with pytest.raises(StoreError):
        change(tmp_path / "s")
    assert (tmp_path / "mine").read_text() == "mine"
    look(tmp_path / "s")


@POSIX
@pytest.mark.parametrize("kind", ["tree", "stream", "coreset"])
def test_stores__are_refused_with_anything_but_plain_files(tmp_path: Path, kind: str) -> None:
    """Links to the very same contents, and pipes, which would let a reader wait for ever."""
    make, look, _ = MAKE[kind]
    store = tmp_path / "s"
    make(store)
    before = f"states/{versions.newest(store / 'states') - 1:012d}"  # which is not read
    parts = [
        path
        for path in sorted(store.rglob("*"))
        if path.name != ".lock" and f"{before}/" not in path.as_posix()
    ]
    assert len(parts) > 10
    for part in parts:
        aside = tmp_path / "aside"
        part.rename(aside)
        part.symlink_to(aside)
        with pytest.raises(StoreError):
            look(store)
        part.unlink()
        if aside.is_file():
            os.mkfifo(part)
            with pytest.raises(StoreError):
                look(store)
            part.unlink()
        aside.rename(part)
    look(store)


# --- the chain -----------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "part"), [("tree", "versions"), ("stream", "states")])
def test_open__after_a_kill_before_the_record(tmp_path: Path, kind: str, part: str) -> None:
    make, look, change = MAKE[kind]
    make(tmp_path / "s")
    root = tmp_path / "s" / part
    for _ in range(2):
        before = (tmp_path / "s" / "head.json").read_bytes()
        change(tmp_path / "s")
        newest = versions.newest(root)
        (tmp_path / "s" / "head.json").write_bytes(before)
        look(tmp_path / "s")
        assert versions.newest(root) == newest
    change(tmp_path / "s")
    recorded = versions.read_head(root)
    assert recorded is not None
    assert recorded.version == versions.newest(root) == newest + 1


# --- sizes ---------------------------------------------------------------------------------


def edited(path: Path, edit: Callable[[Any], None]) -> None:
    values = json.loads((path / "zarr.json").read_text())
    edit(values)
    (path / "zarr.json").write_text(json.dumps(values))


def declare(store: Path, n: int) -> None:
    """Declare other numbers of rows everywhere, in a store of a coreset."""

    def arrays(values: Any) -> None:
        for spec in values["attributes"]["daskcoreset"]["arrays"].values():
            spec["shape"][0] = n

    edited(store, arrays)
    for path in store.glob("*/zarr.json"):
        edited(path.parent, lambda values: values["shape"].__setitem__(0, n))


def peak_of(call: Callable[[], Any], match: str | None = None) -> int:
    tracemalloc.start()
    try:
        with pytest.raises(StoreError, match=match):
            call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("chunks", ["missing", "one", "bomb"])
def test_from_zarr__declared_sizes_are_compared_with_what_is_stored(
    tmp_path: Path, chunks: str
) -> None:
    a_coreset().to_zarr(tmp_path / "s")
    n = 60_000_000
    declare(tmp_path / "s", n)

    def chunk_of(rows: int) -> Callable[[Any], None]:
        def edit(values: Any) -> None:
            values["chunk_grid"]["configuration"]["chunk_shape"][0] = rows

        return edit

    for path in tmp_path.glob("s/*/zarr.json"):
        if chunks != "missing":
            edited(path.parent, chunk_of(n))
        if chunks == "bomb":  # a frame that decodes to more than it should
            for chunk in path.parent.glob("c/**/0"):
                if chunk.is_file():
                    chunk.write_bytes(compress(bytes(2**28)))
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) < 100_000
    assert peak_of(lambda: Coreset.from_zarr(tmp_path / "s")) < 2**25


def test_from_zarr__a_bomb_that_agrees_with_itself(tmp_path: Path) -> None:
    """Small files that say the truth about gigabytes, digest included."""
    a_coreset().to_zarr(tmp_path / "s")
    n = 5_000_000
    declare(tmp_path / "s", n)
    for path in tmp_path.glob("s/*/zarr.json"):
        for chunk in path.parent.glob("c/**/0"):
            if chunk.is_file():
                chunk.write_bytes(
                    compress(bytes(16 * n if path.parent.name == "points" else 8 * n))
                )
        edited(path.parent, lambda values: values["chunk_grid"]["configuration"]["chunk_shape"]
               .__setitem__(0, n))  # fmt: skip
    said = f"declared to hold {32 * n:,} bytes of"
    assert peak_of(lambda: Coreset.from_zarr(tmp_path / "s"), said) < 2**25
    # A node may be small enough, and larger than a node of its tree.
    made(tmp_path / "t", 2)
    for what in (WeightedPoints(np.zeros((100_000, 2)), np.ones(100_000), np.arange(100_000)),
                 WeightedPoints(np.zeros((9, 20_000)), np.ones(9), np.arange(9))):  # fmt: skip
        node = tmp_path / "t" / "versions" / f"{1:012d}" / "node-0"
        digest = json.loads((node / "zarr.json").read_text())["attributes"]["daskcoreset"]["digest"]
        shutil.rmtree(node)
        contents = persistence.state_contents("coreset-tree-node", {"name": "leaf-0-0"}, [what])
        storage.fill_group(node, contents)

        def named(values: Any, digest: str = digest) -> None:
            values["attributes"]["daskcoreset"]["digest"] = digest

        edited(node, named)
        with pytest.raises(StoreError, match=r"declared to hold (100,000 rows|points of shape)"):
            CoresetTree.open(tmp_path / "t").verify()


@pytest.mark.parametrize("packed", [True, False])
def test_to_zarr__rows_that_pack_too_well_are_read_again(
    tmp_path: Path, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What would look like a bomb is not packed, and what is large and not equal is."""
    monkeypatch.setattr(stored_arrays, "_FREE", 2**20)
    monkeypatch.setattr(stored_arrays, "_SMALL", 2**16)
    n = 100_000
    numbers = np.arange(n) if packed else np.zeros(n, dtype=np.int64)
    labels = np.full(n, "some")
    coreset = Coreset(np.zeros((n, 3)), np.ones(n), numbers, labels)
    coreset.to_zarr(tmp_path / "s")
    assert Coreset.from_zarr(tmp_path / "s").equals(coreset)
    stored = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert (stored < 16 * n) == packed


@POSIX
@pytest.mark.parametrize("kind", ["tree", "stream", "coreset"])
def test_read__files_that_are_far_too_long(tmp_path: Path, kind: str) -> None:
    """Neither one with holes, of which nothing is on the disk, nor one that is longer at all."""
    make, look, _ = MAKE[kind]
    make(tmp_path / "s")
    files = [path for path in (tmp_path / "s").rglob("*")
             if path.is_file() and (path.name == "zarr.json" or "c" in path.parts)]  # fmt: skip
    read = [file for file in sorted(files) if kind != "stream" or f"{2:012d}" not in file.parts]
    for file in read[-9:]:
        content = file.read_bytes()
        # Memory of this process ends far below.
        for length in (2**27, 2**42):
            os.truncate(file, length)
            assert peak_of(lambda: look(tmp_path / "s")) < 2**25
        file.write_bytes(content)
    look(tmp_path / "s")


def test_read_group__chunks_decode_to_what_they_should(tmp_path: Path) -> None:
    a_coreset().to_zarr(tmp_path / "s")
    chunk = tmp_path / "s" / "weights" / "c" / "0"
    streamed = b"\x28\xb5\x2f\xfd\x00\x00" + bytes(9)
    for content in (compress(bytes(2**28)), streamed, b"\x28\xb5\x2f\xfd", b""):
        chunk.write_bytes(content)
        assert peak_of(lambda: Coreset.from_zarr(tmp_path / "s")) < 2**25


def test_read_group__names_that_lead_outside(tmp_path: Path) -> None:
    a_coreset().to_zarr(tmp_path / "s")

    def outside(values: Any) -> None:
        arrays = values["attributes"]["daskcoreset"]["arrays"]
        arrays["../s/points"] = arrays.pop("points")

    edited(tmp_path / "s", outside)
    with pytest.raises(StoreError, match="no array has a name such as"):
        Coreset.from_zarr(tmp_path / "s")


# --- kills and overwrites ------------------------------------------------------------------

WRITER = """
import sys, time
import numpy as np
from daskcoreset import Coreset
from daskcoreset.cli import convert
from daskcoreset.core import storage

def hang(*_):
    print("writing", flush=True)
    time.sleep(600)

def coreset(n):
    return Coreset(np.full((200, 2), float(n)), np.ones(200), np.arange(200))

what, path = sys.argv[1:]
if what == "loop":
    print("writing", flush=True)
    for n in range(10**9):
        coreset(n).to_zarr(path, overwrite=True)
elif what == "coreset":
    storage.write_arrays = hang
    coreset(1).to_zarr(path, overwrite=True)
else:
    convert._plain = hang
    convert.write_store(np.eye(4), path)
"""


def writer(what: str, path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, what, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    return process


@POSIX
@pytest.mark.parametrize("what", ["coreset", "store"])
def test_writers__sweep_what_killed_ones_left(tmp_path: Path, what: str) -> None:
    def write() -> None:
        if what == "coreset":
            a_coreset().to_zarr(tmp_path / "s", overwrite=True)
        else:
            shutil.rmtree(tmp_path / "s", ignore_errors=True)
            write_store(np.eye(4), tmp_path / "s")

    alive = writer(what, tmp_path / "s")
    try:
        for _ in range(2):
            killed = writer(what, tmp_path / "s")
            killed.kill()
            killed.communicate()
        assert len(names(tmp_path)) > 1
        write()
        (kept,) = names(tmp_path) - {"s"}  # of the one that lives
        assert alive.poll() is None
    finally:
        alive.kill()
        alive.communicate()
    assert (tmp_path / kept).is_dir()
    write()
    assert names(tmp_path) == {"s"}


def test_from_zarr__during_overwrites(tmp_path: Path) -> None:
    process = writer("loop", tmp_path / "s")
    try:
        end = time.monotonic() + 60
        while not (tmp_path / "s").exists() and time.monotonic() < end:
            time.sleep(0.01)
        seen = set()
        for _ in range(150):
            coreset = Coreset.from_zarr(tmp_path / "s")
            assert len(np.unique(coreset.points)) == 1
            seen.add(coreset.points[0, 0])
        assert len(seen) > 1
    finally:
        process.kill()
        process.communicate()
    Coreset.from_zarr(tmp_path / "s")
