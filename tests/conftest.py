"""Settings of the whole test suite."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.acceptance.tools.object_stores import ObjectServer
    from tests.acceptance.tools.servers import FileServer

# A process that finds no bytecode takes three times as long to start.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Threads of two test processes wait for each other on two cores. NumPy is not imported yet.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

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
# Many more of them for the nightly tests.
settings.register_profile("nightly", settings.get_profile("ci"), max_examples=200)
# Before the package is imported, whose contract suite takes over what is set.
settings.load_profile("ci" if os.environ.get("CI") else "default")

MEMORY = Path("/dev/shm")  # noqa: S108 - the folder below it has a name that nobody can guess
ENOUGH = 2 * 2**30
"""Bytes that are free in a memory disk that holds the files of tests."""


@pytest.hookimpl(tryfirst=True)  # before pytest makes the folder
def pytest_configure(config: pytest.Config) -> None:
    """Put the files of tests on a memory disk, which no write has to wait for."""
    of_a_run = config.option.basetemp is None and not hasattr(config, "workerinput")
    if of_a_run and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ENOUGH:
        config.option.basetemp = tempfile.mkdtemp(prefix="daskcoreset-tests-", dir=MEMORY)
        config.add_cleanup(partial(shutil.rmtree, config.option.basetemp, ignore_errors=True))


@pytest.hookimpl(tryfirst=True)  # before tests are selected by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests of clusters.

    The first tests go to one process of pytest, which then is the only one to start a cluster.
    """
    items.sort(key=lambda item: not _on_a_cluster(item))


def _on_a_cluster(item: pytest.Item) -> bool:
    asked: tuple[str, ...] = getattr(item, "fixturenames", ())
    return "cluster" in asked or item.get_closest_marker("distributed") is not None


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


@pytest.fixture(scope="session")
def cluster() -> Any:
    """Two worker processes of one thread each, started once; connect with ``Client(cluster)``."""
    pytest.importorskip("distributed")
    from tests.acceptance.tools.processes import shared_cluster

    return shared_cluster()


@pytest.fixture(scope="session")
def objects() -> Iterator[ObjectServer]:
    """An object store in a process of its own, started once; each test makes its own bucket."""
    for module in ("moto.server", "flask", "obstore"):
        pytest.importorskip(module, reason=f"{module} is not installed")
    from tests.acceptance.tools.object_stores import object_server

    with object_server() as server:
        yield server


@pytest.fixture
def files(tmp_path: Path) -> Iterator[FileServer]:
    """A folder, ``files.folder``, that is served by HTTP."""
    from tests.acceptance.tools.servers import file_server

    folder = tmp_path / "served"
    folder.mkdir()
    with file_server(folder) as server:
        yield server
