"""Settings of the whole test suite."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from daskcoreset.testing import shared_cluster
from tests.tools.object_stores import ObjectServer, object_server
from tests.tools.servers import FileServer, file_server

# No deadline: the first call of a kernel compiles it, which takes seconds once.
settings.register_profile("default", deadline=None, max_examples=50)
# The same examples on every run, so that a red build can be repeated.
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    max_examples=25,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],  # a loaded machine is no fault of the code
)
# More of them for the nightly tests that the server runs; and many more in the nightly form.
settings.register_profile("server", settings.get_profile("ci"), max_examples=30)
settings.register_profile("nightly", settings.get_profile("ci"), max_examples=200)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.hookimpl(tryfirst=True)  # before tests are selected by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all but some of the parametrisations of a test as nightly, where the test says so.

    What runs always is spread over all of them: of the n that ``nightly_beyond(n)`` keeps, the
    first is the first, and the others follow at even distances.
    """
    variants: dict[tuple[Any, str], list[pytest.Item]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("nightly_beyond"):
            variants.setdefault((item.parent, item.originalname), []).append(item)
    for found in variants.values():
        mark = found[0].get_closest_marker("nightly_beyond")
        assert mark is not None
        always = {i * len(found) // mark.args[0] for i in range(mark.args[0])}
        for i, item in enumerate(found):
            if i not in always:
                item.add_marker("nightly")


def pytest_runtest_setup() -> None:
    """Leave a test out, and say so, once the time that was set for all of them is over."""
    until = os.environ.get("DASKCORESET_TESTS_UNTIL")
    if until is not None and time.time() > float(until):
        pytest.skip("the time for tests is over (DASKCORESET_TESTS_UNTIL)")


USUAL_PORTS = (8786, 8787)
"""What a Dask scheduler and its dashboard listen at if nobody says otherwise."""


@pytest.fixture
def agg() -> Iterator[None]:
    """A backend without windows, and no figure left behind."""
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    with mpl.rc_context({"backend": "Agg"}):
        yield
    plt.close("all")


@pytest.fixture(scope="session", autouse=True)
def taken_ports() -> Iterator[None]:
    """Hold the usual ports, as another program of the same machine may: no test needs them."""
    with ExitStack() as held:
        for port in USUAL_PORTS:
            taken = held.enter_context(socket.socket())
            try:
                taken.bind(("", port))
                taken.listen()
            except OSError:  # by another program, or another worker of this run
                continue
        yield


@pytest.fixture
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no write wait for the disk: for tests of many that are not about power cuts."""
    monkeypatch.setattr(os, "fsync", lambda *_: None)


@pytest.fixture
def light_trees(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep what trees on the disk hold in memory: for tests that are about their sources."""
    from tests.tools.light_groups import light_groups

    monkeypatch.setattr(os, "fsync", lambda *_: None)
    with light_groups():
        yield


@pytest.fixture(scope="session")
def cluster() -> Any:
    """Two worker processes of one thread each, started once; connect with ``Client(cluster)``."""
    pytest.importorskip("distributed")
    return shared_cluster()


@pytest.fixture(scope="session")
def objects() -> Iterator[ObjectServer]:
    """An object store in a process of its own, started once; each test makes its own bucket."""
    for module in ("moto.server", "flask", "obstore"):
        pytest.importorskip(module, reason=f"{module} is not installed")
    with object_server() as server:
        yield server


@pytest.fixture
def files(tmp_path: Path) -> Iterator[FileServer]:
    """A folder, ``files.folder``, that is served by HTTP."""
    folder = tmp_path / "served"
    folder.mkdir()
    with file_server(folder) as server:
        yield server
