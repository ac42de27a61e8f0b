"""Servers that do not answer, or hardly: every call ends in time, with one clear error."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from zarr.storage import ObjectStore

from tests.acceptance.face import (
    Coreset,
    CoresetError,
    CoresetStream,
    CoresetTree,
    build,
    create_tree,
    errors,
    estimators,
    open_rows,
    plan,
    time_limit,
)
from tests.acceptance.tools.object_stores import SECRET, ObjectServer, store_at
from tests.acceptance.tools.servers import FileServer, deaf_server, refusing_port

for module in ("aiohttp", "obstore", "s3fs"):
    pytest.importorskip(module, reason=f"{module} is not installed")

# Seconds until a call ends, and those that a busy machine may take beyond.
LIMIT, MORE = 0.3, 20.0

ROWS = np.random.default_rng(0).normal(size=(200, 3))


def rows_of(tree: CoresetTree) -> int:
    """Number of rows that a tree has taken."""
    return len(ROWS) * len(tree.leaves)


def make() -> Coreset:
    return build(ROWS, size=10, random_state=0)


def in_time(call: Callable[..., Any], *args: Any, limit: float = LIMIT, **options: Any) -> Any:
    with time_limit(limit):
        return call(*args, **options)


def of_zarr(storage_options: dict[str, Any]) -> Any:
    """A build of a store that the user opened."""
    return build(ObjectStore(store_at(storage_options["client_kwargs"]["endpoint_url"], "box")))


S3_CALLS: dict[str, Callable[..., Any]] = {
    "zarr": lambda **options: build(open_rows("s3://box/a.zarr", **options)),
    "parquet": lambda **options: build(open_rows("s3://box/a.parquet", **options)),
    "glob": lambda **options: build(open_rows("s3://box/*.npy", **options)),
    "labels": lambda **options: build(open_rows(ROWS, **options), "s3://box/y.npy"),
    "store": of_zarr,
    "plan": lambda **options: plan(open_rows("s3://box/a.h5", **options)),
    "audit": lambda **options: make().audit(open_rows("s3://box/a.zarr", **options), n_clusters=2),
    "to_zarr": lambda **options: make().to_zarr("s3://box/a", **options),
    "from_zarr": lambda **options: Coreset.from_zarr("s3://box/a", **options),
    "tree": lambda **options: CoresetTree.open("s3://box/a", **options),
    "create": lambda **options: create_tree("s3://box/a", size=9, **options),
    "stream": lambda **options: CoresetStream.load("s3://box/a", **options),
}


def ends_in_time(names: str, call: Callable[..., Any], *args: Any, **options: Any) -> None:
    """Check that a call ends in time, and that its error names the place and no secret."""
    began = time.monotonic()
    with pytest.raises(errors.OutOfTimeError, match=rf"time limit of {LIMIT:g} seconds") as told:
        in_time(call, *args, **options)
    assert time.monotonic() - began < LIMIT + MORE
    assert names in str(told.value)
    assert SECRET not in f"{told.value}{told.value.__cause__}{told.value.__context__}"


@pytest.fixture(scope="module")
def deaf() -> Iterator[str]:
    with deaf_server() as address:
        yield address


@pytest.mark.parametrize("name", S3_CALLS)
def test_silent_server(name: str, deaf: str) -> None:
    ends_in_time("box", S3_CALLS[name], storage_options=ObjectServer(f"http://{deaf}").options)


@pytest.mark.parametrize("name", ["a.npy", "a.zarr"])
def test_silent_web_server(name: str, deaf: str) -> None:
    ends_in_time(name, estimators.CoresetKMeans(2).fit, f"http://me:{SECRET}@{deaf}/{name}")


def test_server__that_sends_a_byte_a_second() -> None:
    with deaf_server(drips=True) as address:
        ends_in_time(
            "box", S3_CALLS["tree"], storage_options=ObjectServer(f"http://{address}").options
        )


@pytest.mark.slow
def test_refused_port__is_an_error_without_a_timeout() -> None:
    began = time.monotonic()
    with refusing_port() as address, pytest.raises(CoresetError) as told:
        S3_CALLS["zarr"](storage_options=ObjectServer(f"http://{address}").options)
    assert not isinstance(told.value, errors.OutOfTimeError)
    # The parts of the library that ask take seven seconds in all at most, or nearly so.
    assert time.monotonic() - began < 10.0 + MORE
    assert "s3://box/a" in str(told.value)
    assert SECRET not in f"{told.value}{told.value.__cause__}{told.value.__context__}"


def test_name_that_is_not_found__of_a_web_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(CoresetError, match="gaierror: Temporary failure"):
        build("http://no-such-host.invalid/a.npy")


def test_names_that_are_looked_up_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()

    def late(*_: Any, **__: Any) -> Any:
        answered.wait(60)
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", late)
    try:
        ends_in_time("host.invalid", build, "http://host.invalid/a.npy")
    finally:
        answered.set()


def test_server__that_falls_silent_while_blocks_are_read(files: FileServer) -> None:
    np.save(files.folder / "a.npy", ROWS)
    lazy = plan(f"{files.url}/a.npy", size=10, chunks=50, random_state=0)
    whole = lazy.compute(scheduler="threads")
    files.silent = True
    for scheduler in ("threads", "sync"):
        ends_in_time("tasks were done", lazy.compute, scheduler=scheduler)
    files.silent = False
    # What was left behind is not waited for.
    assert in_time(lazy.compute, limit=10 * MORE, scheduler="threads").equals(whole)


@pytest.mark.slow
def test_changes_of_a_tree__that_run_out_of_time(objects: ObjectServer) -> None:
    url, options = objects.bucket() + "/tree", objects.options
    tree = create_tree(url, size=20, storage_options=options, random_state=0)
    made, ended = 0, 0
    for limit in (0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 10 * MORE):
        objects.slow_down(0.1)
        try:
            with time_limit(limit):
                tree.append(ROWS + made)
            made += 1
        except errors.OutOfTimeError as error:
            ended += 1
            objects.slow_down(0.0)
            tree = CoresetTree.open(url, storage_options=options)
            assert rows_of(tree) in {made * len(ROWS), (made + 1) * len(ROWS)}
            if rows_of(tree) > made * len(ROWS):  # it was made, and the answer came too late
                assert "complete or was not made" in str(error)  # noqa: PT017 - not each one fails
                made += 1
        finally:
            objects.slow_down(0.0)
    assert ended > 1
    tree = CoresetTree.open(url, storage_options=options)
    tree.verify()
    assert rows_of(tree) == made * len(ROWS)


def test_coreset__whose_writing_runs_out_of_time(objects: ObjectServer) -> None:
    url, options = objects.bucket() + "/one", objects.options
    objects.slow_down(0.1)
    try:
        with time_limit(LIMIT), pytest.raises(errors.OutOfTimeError, match="s3://bucket"):
            make().to_zarr(url, storage_options=options)
        objects.slow_down(0.0)
        time.sleep(0.5)
        with pytest.raises(errors.StoreError, match=r"incomplete|there is no"):
            Coreset.from_zarr(url, storage_options=options)  # nothing went on writing
        make().to_zarr(url, storage_options=options, overwrite=True)
        objects.slow_down(0.3)
        with time_limit(LIMIT), pytest.raises(errors.OutOfTimeError):
            Coreset.from_zarr(url, storage_options=options)
    finally:
        objects.slow_down(0.0)
    with time_limit(10 * MORE):
        assert Coreset.from_zarr(url, storage_options=options).equals(make())
