"""Stores that were tampered with: nothing outside is read or deleted, nothing hangs or explodes."""

from __future__ import annotations

import json
import os
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numcodecs.zstd import compress

from daskcoreset import Coreset, CoresetStream, CoresetTree
from daskcoreset.constructions.tree import versions
from daskcoreset.core.errors import StoreError
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


@pytest.mark.parametrize("chunks", ["missing", "bomb"])
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


def test_from_zarr__during_overwrites(tmp_path: Path) -> None:
    """A reader finds one coreset or the other, and never a part of each."""

    def write() -> None:
        n = 0
        while not done.is_set():
            n += 1
            Coreset(np.full((200, 2), float(n)), np.ones(200), np.arange(200)).to_zarr(
                tmp_path / "s", overwrite=True
            )

    a_coreset(1).to_zarr(tmp_path / "s")
    done, seen = threading.Event(), set()
    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write)
        try:
            for _ in range(60):
                points = np.asarray(Coreset.from_zarr(tmp_path / "s").points)[:, 0]
                assert len(np.unique(points)) == 1
                seen.add(points[0])
        finally:
            done.set()
        writer.result()
    assert len(seen) > 1
